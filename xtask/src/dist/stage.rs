//! The folder that every package installs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Release, notices};
use crate::files::{self, copy, write};
use crate::{demo, process};

/// Completion scripts: the shell, and the usual file in packages.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/callgate"),
    ("zsh", "share/zsh/site-functions/_callgate"),
    ("fish", "share/fish/vendor_completions.d/callgate.fish"),
];

/// Fills the release's prefix. `compiler` is the program of the native TypeScript.
pub(super) fn fill(release: &Release<'_>, compiler: &Path) -> Result<()> {
    let (project, prefix) = (release.project, &release.prefix);
    files::empty(prefix)?;
    let program = prefix.join("bin/callgate");
    for name in demo::PROGRAMS {
        copy(
            &project.built_as("dist", name),
            &prefix.join("bin").join(name),
        )?;
    }
    type_checker(compiler, &prefix.join("lib/callgate/typescript"))?;

    for (shell, file) in COMPLETIONS {
        let script = process::output(Command::new(&program).args(["completions", shell]))?;
        write(&prefix.join(file), &script)?;
    }
    let pages = prefix.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    process::output(Command::new(&program).arg("man").arg(&pages))?;

    let documents = prefix.join("share/doc/callgate");
    for name in ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"] {
        copy(&project.root.join(name), &documents.join(name))?;
    }
    let schema = process::output(Command::new(&program).arg("schema"))?;
    write(&prefix.join("share/callgate/callgate.schema.json"), &schema)?;
    let notices = notices::make(release, compiler)?;
    write(&documents.join("THIRD-PARTY.txt"), &notices.licences)?;
    write(&documents.join("callgate.cdx.json"), &notices.sbom)
}

/// Copies the compiler and the library files of the language, without those of browsers.
fn type_checker(compiler: &Path, to: &Path) -> Result<()> {
    let library = compiler.parent().context("the compiler is in no folder")?;
    copy(compiler, &to.join("lib/tsc"))?;
    for entry in fs::read_dir(library)? {
        let path = entry?.path();
        let name = files::name(&path);
        let is_of_browsers = ["dom", "webworker", "scripthost"]
            .iter()
            .any(|part| name.contains(part));
        if name.starts_with("lib") && name.ends_with(".d.ts") && !is_of_browsers {
            copy(&path, &to.join("lib").join(name))?;
        }
    }
    let package = library.parent().context("the compiler is in no package")?;
    copy(&package.join("package.json"), &to.join("package.json"))?;
    copy(&package.join("LICENSE"), &to.join("LICENSE"))
}
