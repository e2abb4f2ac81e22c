//! `types --out`: the files with which editors and `tsc` check scripts.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path};

use anyhow::{Context as _, bail};
use callgate::Gate;
use callgate::settings::Detail;
use serde_json::json;

use crate::doctor::count;
use crate::print;

/// The first line of each written file. Only a file with this line is replaced.
const MARKER: &str = "// Written by `callgate types --out`, which replaces this file.\n";

/// Maximum bytes of a file that is replaced.
const MAX_BYTES: u64 = 64 << 20;

const DECLARATIONS: &str = "callgate.d.ts";
const PROJECT: &str = "tsconfig.json";

/// The options of Callgate's own check, over the library of the editor's TypeScript. `files` also
/// holds for a project that extends this one.
const OPTIONS: &str = r#"{
  "compilerOptions": {
    "target": "esnext",
    "module": "esnext",
    "moduleDetection": "force",
    "lib": ["esnext"],
    "types": [],
    "strict": true,
    "useUnknownInCatchVariables": false,
    "skipLibCheck": true,
    "noEmit": true
  },
  "files": ["callgate.d.ts"],
  "include": ["**/*.ts"]
}
"#;

/// Writes the files, and prints the next step. Returns the exit code.
pub fn write(gate: &Gate, folder: &Path) -> anyhow::Result<u8> {
    let globals = callgate::faces::sandbox_declarations();
    let declared = gate.declarations(Detail::Full, |_| true);
    let files = [
        (DECLARATIONS, format!("{MARKER}{globals}{declared}")),
        (PROJECT, format!("{MARKER}{OPTIONS}")),
    ];
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {shown}"))?;
    for (name, _) in &files {
        check_replaceable(&folder.join(name))?;
    }
    for (name, text) in &files {
        let path = folder.join(name);
        replace(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let [declarations, project] = [DECLARATIONS, PROJECT].map(|name| folder.join(name));
    let (declarations, project) = (declarations.display(), project.display());
    let functions = count(gate.tools().len(), "function");
    print::out(&format!(
        "wrote {declarations} ({functions}) and {project}\n{}",
        next_step(folder)
    ))?;
    Ok(0)
}

/// An error for an existing file that this module did not write.
fn check_replaceable(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    match callgate_files::read(path, MAX_BYTES) {
        Ok(bytes) if bytes.starts_with(MARKER.as_bytes()) => Ok(()),
        Ok(_) => bail!(
            "{shown} was not written by `callgate types --out`, so it is kept; name a different \
             folder, or move the file"
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{shown} cannot be read")),
    }
}

/// Writes the file in one step, so that an editor never reads a part of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let mut file = tempfile::Builder::new()
        .prefix(".callgate.")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// The scripts that are checked now, and the file with which others are.
fn next_step(folder: &Path) -> String {
    let shown = folder.display();
    if folder.components().all(|part| part == Component::CurDir) {
        return "next: write scripts in this folder; an editor and `tsc` check them\n".to_owned();
    }
    // A path without a dot before it would be that of a package.
    let from_here = if folder.is_absolute() || folder.starts_with("..") {
        folder.to_owned()
    } else {
        Path::new(".").join(folder.strip_prefix(".").unwrap_or(folder))
    };
    let extends = from_here.join(PROJECT).display().to_string();
    let project = json!({ "extends": extends, "include": ["**/*.ts"] });
    format!(
        "next: write scripts in {shown}; for those of the current folder, write this \
         ./{PROJECT}:\n  {project}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_step_names_the_project_from_here() {
        let check = |folder: &str, expected: &str| {
            let text = next_step(Path::new(folder));
            let expected = format!("{{\"extends\":\"{expected}/tsconfig.json\",");
            assert!(text.contains(&expected), "{folder}: {text}");
        };
        check("types", "./types");
        check("./deep/types", "./deep/types");
        check(".hidden", "./.hidden");
        check("../shared types", "../shared types");
        check("/srv/types", "/srv/types");
        for here in [".", "./"] {
            let text = next_step(Path::new(here));
            assert!(!text.contains("extends"), "{here}: {text}");
        }
    }
}
