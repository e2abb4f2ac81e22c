//! Where the native TypeScript is: where the configuration says, beside the
//! running program, or in a `node_modules` of the project.

use std::env::consts;
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest major version that is a native program with the API that is used.
const MIN_MAJOR: u32 = 7;

/// Bytes of a `package.json` that are read.
const MAX_MANIFEST: u64 = 1 << 20;

/// A native TypeScript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The program; its library lies in the same folder.
    pub path: PathBuf,
    /// Its version, such as `7.0.2`.
    pub version: String,
}

/// Finds the native TypeScript: `named`, or else the first that can be used of
/// those in `typescript` beside `program` and one folder above that, in `lib/callgate` there, and
/// in `node_modules` of `project` and of the folders above it. Without a `project`, its author
/// decides nothing about the program that runs.
///
/// A program that another user may have put there is not used, unless the configuration names it.
pub fn find(
    named: Option<&Path>,
    program: Option<&Path>,
    project: Option<&Path>,
) -> Result<Executable, String> {
    if let Some(named) = named {
        return of_name(named);
    }
    let beside = program
        .into_iter()
        .flat_map(Path::ancestors)
        .skip(1)
        .take(2);
    let beside = beside
        .flat_map(|folder| ["typescript", "lib/callgate/typescript"].map(|name| folder.join(name)))
        .map(|folder| own(in_folder(&folder)?, program));
    let above = project.into_iter().flat_map(Path::ancestors);
    let above = above.map(|folder| own(in_modules(&folder.join("node_modules"))?, None));
    let mut unusable = None;
    for found in beside.chain(above) {
        match found {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(error) => drop(unusable.get_or_insert(error)),
        }
    }
    Err(unusable.unwrap_or_else(|| {
        format!(
            "TypeScript {MIN_MAJOR} was not found; install it with `npm install \
             typescript@{MIN_MAJOR}`, or name it under \"check\", \"typescript\" in the configuration"
        )
    }))
}

/// Refuses a program that another user may have written or put there. Beside our own program, the
/// owner of its folder is trusted, and modes do not count: who may write there can replace both.
fn own(found: Option<Executable>, beside: Option<&Path>) -> Result<Option<Executable>, String> {
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
        Ok(Some(fault)) => Err(format!(
            "TypeScript {version} in {} {fault}; name it under \"check\", \"typescript\" in the \
             configuration if it is to be used",
            path.display()
        )),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn of_name(named: &Path) -> Result<Executable, String> {
    let wrong = |reason: &str| {
        let path = named.display();
        format!("{path} is not native TypeScript: {reason}; change \"check\", \"typescript\"")
    };
    if named.is_dir() {
        let lacks = "it has neither lib/tsc nor node_modules with TypeScript 7";
        return in_folder(named)?.ok_or_else(|| wrong(lacks));
    }
    if !named.is_file() {
        return Err(wrong("there is no such file"));
    }
    // A link in `.bin` leads to a script of Node, which lies elsewhere.
    let path = fs::canonicalize(named).map_err(|error| wrong(&error.to_string()))?;
    let elsewhere = "it does not lie in the lib folder of its package, as lib/tsc does";
    let library = path.with_file_name("lib.esnext.d.ts");
    let package = path.parent().and_then(Path::parent);
    let version = package.and_then(version).filter(|_| library.is_file());
    usable(path, version.ok_or_else(|| wrong(elsewhere))?)
}

/// A folder with a package in it, or with `node_modules`.
fn in_folder(folder: &Path) -> Result<Option<Executable>, String> {
    match in_package(folder)? {
        Some(found) => Ok(Some(found)),
        None => in_modules(&folder.join("node_modules")),
    }
}

/// As package managers lay it out: the program's package beside `typescript`,
/// or beside the place that `typescript` is a link to, or inside it.
fn in_modules(modules: &Path) -> Result<Option<Executable>, String> {
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
    Err(match major(&version) {
        Some(major) if major >= MIN_MAJOR => format!(
            "TypeScript {version} in {} lacks its native program for this machine ({wanted}); \
             install it again with its optional dependencies",
            path.display()
        ),
        _ => too_old(&path, &version),
    })
}

fn in_package(package: &Path) -> Result<Option<Executable>, String> {
    let path = package.join(format!("lib/tsc{}", consts::EXE_SUFFIX));
    // Before version 7 there was a text of that name in another folder; here is
    // a program or nothing.
    if !path.is_file() {
        return Ok(None);
    }
    version(package)
        .map(|version| usable(path, version))
        .transpose()
}

fn usable(path: PathBuf, version: String) -> Result<Executable, String> {
    match major(&version) {
        Some(major) if major >= MIN_MAJOR => Ok(Executable { path, version }),
        _ => Err(too_old(&path, &version)),
    }
}

fn too_old(path: &Path, version: &str) -> String {
    format!(
        "TypeScript {version} in {} is too old; install version {MIN_MAJOR} or later with `npm \
         install typescript@{MIN_MAJOR}`",
        path.display()
    )
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
    // It is printed: nothing but a version.
    let is_version = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    (version.len() <= 64 && version.bytes().all(is_version)).then(|| version.to_owned())
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}
