//! Finds the native TypeScript: the configured one, one beside the running program, or one in a
//! `node_modules` of the project.

use std::env::consts;
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest major version that is a native program with this API.
const MIN_MAJOR: u32 = 7;

/// Maximum bytes of a `package.json`.
const MAX_MANIFEST: u64 = 1 << 20;

/// A native TypeScript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The program; its library is in the same folder.
    pub path: PathBuf,
    /// Such as `7.0.2`.
    pub version: String,
}

/// The reason why there is no usable TypeScript, with advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FindError(String);

/// Finds the native TypeScript: the `configured` one, or else the first usable one in `typescript`
/// beside `program` and one folder above that, in `lib/callgate` there, and in `node_modules` of
/// `project` and of the folders above it. Without a `project`, its author cannot choose the program.
///
/// A program that a different user may have put there is only used if it is configured.
pub fn find(
    configured: Option<&Path>,
    program: Option<&Path>,
    project: Option<&Path>,
) -> Result<Executable, FindError> {
    if let Some(configured) = configured {
        return at_path(configured);
    }
    let beside = program
        .into_iter()
        .flat_map(Path::ancestors)
        .skip(1)
        .take(2);
    let beside = beside
        .flat_map(|folder| ["typescript", "lib/callgate/typescript"].map(|name| folder.join(name)))
        .map(|folder| trusted(in_folder(&folder)?, program));
    let above = project.into_iter().flat_map(Path::ancestors);
    let above = above.map(|folder| trusted(in_modules(&folder.join("node_modules"))?, None));
    let mut first_error = None;
    for found in beside.chain(above) {
        match found {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| {
        FindError(format!(
            "TypeScript {MIN_MAJOR} was not found; install it with `npm install \
             typescript@{MIN_MAJOR}`, or name it under \"check\", \"typescript\" in the configuration"
        ))
    }))
}

/// Refuses a program that a different user may have written or put there. Beside Callgate's own
/// program, the owner of its folder is trusted and modes do not count: who may write there can replace
/// both programs.
fn trusted(
    found: Option<Executable>,
    beside: Option<&Path>,
) -> Result<Option<Executable>, FindError> {
    let Some(Executable { path, version }) = &found else {
        return Ok(None);
    };
    let fault = match beside.and_then(Path::parent) {
        Some(folder) => callgate_files::has_other_owner(path, folder)
            .map(|is_theirs| is_theirs.then(|| "may come from another user".to_owned())),
        None => callgate_files::exposure(path).map(|it| it.map(|exposure| exposure.fault)),
    };
    match fault {
        Ok(None) => Ok(found),
        Ok(Some(fault)) => Err(FindError(format!(
            "TypeScript {version} in {} {fault}; name it under \"check\", \"typescript\" in the \
             configuration to use it",
            path.display()
        ))),
        Err(error) => Err(FindError(format!("{}: {error}", path.display()))),
    }
}

/// The program at a configured path: its file, its package, or a folder with `node_modules`.
fn at_path(configured: &Path) -> Result<Executable, FindError> {
    let wrong = |reason: &str| {
        let path = configured.display();
        FindError(format!(
            "{path} is not native TypeScript: {reason}; change \"check\", \"typescript\""
        ))
    };
    if configured.is_dir() {
        let lacks = "it has neither lib/tsc nor node_modules with TypeScript 7";
        return in_folder(configured)?.ok_or_else(|| wrong(lacks));
    }
    if !configured.is_file() {
        return Err(wrong("there is no such file"));
    }
    // A link in `.bin` leads to a script of Node.js in a different folder.
    let path = fs::canonicalize(configured).map_err(|error| wrong(&error.to_string()))?;
    let misplaced = "it is not in the lib folder of its package, as lib/tsc is";
    let library = path.with_file_name("lib.esnext.d.ts");
    let package = path.parent().and_then(Path::parent);
    let version = package.and_then(version).filter(|_| library.is_file());
    let version = version.ok_or_else(|| wrong(misplaced))?;
    check_version(&path, &version)?;
    Ok(Executable { path, version })
}

/// A folder that is a package or has `node_modules`.
fn in_folder(folder: &Path) -> Result<Option<Executable>, FindError> {
    match in_package(folder)? {
        Some(found) => Ok(Some(found)),
        None => in_modules(&folder.join("node_modules")),
    }
}

/// The layouts of package managers: the program's package is beside `typescript`, beside the target
/// of the link `typescript`, or inside it.
fn in_modules(modules: &Path) -> Result<Option<Executable>, FindError> {
    let wanted = platform_package();
    let typescript = fs::canonicalize(modules.join("typescript")).ok();
    let linked = typescript.iter().flat_map(|package| {
        let beside = package.parent().map(Path::to_owned);
        beside.into_iter().chain([package.join("node_modules")])
    });
    for modules in [modules.to_owned()].into_iter().chain(linked) {
        if let Some(found) = in_package(&modules.join(&wanted))? {
            return Ok(Some(found));
        }
    }
    let Some(version) = typescript.as_deref().and_then(version) else {
        return Ok(None);
    };
    let path = modules.join("typescript");
    check_version(&path, &version)?;
    Err(FindError(format!(
        "TypeScript {version} in {} lacks its native program for this machine ({wanted}); install it \
         again with its optional dependencies",
        path.display()
    )))
}

fn in_package(package: &Path) -> Result<Option<Executable>, FindError> {
    // Versions before 7 have a script in a different folder.
    let path = package.join(format!("lib/tsc{}", consts::EXE_SUFFIX));
    let Some(version) = version(package).filter(|_| path.is_file()) else {
        return Ok(None);
    };
    check_version(&path, &version)?;
    Ok(Some(Executable { path, version }))
}

fn check_version(path: &Path, version: &str) -> Result<(), FindError> {
    let major = version
        .split('.')
        .next()
        .and_then(|it| it.parse::<u32>().ok());
    if major.is_some_and(|major| major >= MIN_MAJOR) {
        return Ok(());
    }
    Err(FindError(format!(
        "TypeScript {version} in {} is too old; install version {MIN_MAJOR} or later with `npm \
         install typescript@{MIN_MAJOR}`",
        path.display()
    )))
}

/// `@typescript/typescript-linux-x64` and its like.
fn platform_package() -> String {
    let system = match consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let processor = match consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("@typescript/typescript-{system}-{processor}")
}

/// The version in a package's manifest.
fn version(package: &Path) -> Option<String> {
    let manifest = callgate_files::read(&package.join("package.json"), MAX_MANIFEST).ok()?;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).ok()?;
    let version = manifest.get("version")?.as_str()?;
    // It is printed, so it may only have the characters of a version.
    let is_version = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    (version.len() <= 64 && version.bytes().all(is_version)).then(|| version.to_owned())
}
