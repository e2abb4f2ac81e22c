//! The name or path with which a client starts this program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::clients::Client;

/// The name of the program.
const NAME: &str = "callgate";

/// Folders of package caches, of packages, and of one version of Node or Python.
const PASSING: &str = "_npx dlx node_modules site-packages archive-v0 .cache Caches .venv versions \
                       .nvm fnm .fnm fnm_multishells asdf .asdf mise";

/// The command in a client's entry, and the advice if the client cannot find it.
pub struct Program {
    pub command: String,
    pub advice: Option<&'static str>,
}

impl Program {
    /// The program for a client's entry: the name, if a shell finds this program by it, else its
    /// path. A project's file, which other people use, has the name in any case.
    pub fn of(client: Client) -> Self {
        let this = std::env::current_exe().ok();
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::find(client, this.as_deref(), &path)
    }

    fn find(client: Client, this: Option<&Path>, path: &OsStr) -> Self {
        let this = this.filter(|this| lasts(this));
        // A package's launcher starts a program in the package.
        let this_file = this.and_then(|this| this.canonicalize().ok());
        let is_this = |found: &PathBuf| match &this_file {
            Some(this) => found.canonicalize().is_ok_and(|found| found == *this),
            None => found.is_file(),
        };
        let in_path = std::env::split_paths(path).map(|folder| folder.join(NAME));
        let mut in_path = in_path.filter(|found| found.is_absolute() && lasts(found));
        let in_path = in_path.find(is_this);
        let own = in_path.as_deref().or(this);
        let command = match own {
            // Desktop programs have a different `PATH`.
            Some(own) if client.is_desktop_program() => own.display().to_string(),
            Some(own) if in_path.is_none() && !client.writes_to_project() => {
                own.display().to_string()
            }
            _ => NAME.to_owned(),
        };
        let is_found = in_path.is_some() || command != NAME;
        Self {
            command,
            advice: (!is_found).then_some(
                "no lasting `callgate` is in PATH, and the client starts it by that name; install \
                 it (see Install in the README), or put a link to it into a folder of PATH",
            ),
        }
    }
}

/// True for a path outside of caches and of folders of one version.
fn lasts(path: &Path) -> bool {
    let mut folders = path.iter().filter_map(|folder| folder.to_str());
    !folders.any(|folder| PASSING.split(' ').any(|passing| passing == folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command for a client in a folder with these programs, of which one runs, and whether
    /// there is advice.
    fn command(client: Client, this: &str, path: &str) -> (String, bool) {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("a path");
        let place = |name: &str| folder.join(name).join(NAME);
        for name in path.split_whitespace().chain([this]) {
            std::fs::create_dir_all(folder.join(name)).expect("a folder");
            std::fs::write(place(name), name).expect("a file");
        }
        let path = path.split_whitespace().map(|name| folder.join(name));
        let path = std::env::join_paths(path).expect("a path");
        let program = Program::find(client, Some(&place(this)), &path);
        let command = program.command.replace(&folder.display().to_string(), "F");
        (command, program.advice.is_some())
    }

    #[test]
    fn only_lasting_programs_are_written() {
        use Client::{Codex, Cursor, Windsurf, Zed};
        let (package, its_bin) = ("_npx/1/node_modules/x", "_npx/1/node_modules/.bin");
        let node = ".nvm/versions/node/v24/bin";
        for (client, this, path, expected, advises) in [
            (Codex, "bin", "other bin", "callgate", false),
            (Codex, "build", "other", "F/build/callgate", false),
            (Windsurf, "bin", "bin", "F/bin/callgate", false),
            (Cursor, "build", "", "callgate", true),
            (Cursor, "bin", "bin", "callgate", false),
            (Codex, package, its_bin, "callgate", true),
            (Codex, "uv/archive-v0/a", "local/bin", "callgate", false),
            (Zed, node, node, "callgate", true),
        ] {
            let is = command(client, this, path);
            assert_eq!(is, (expected.to_owned(), advises), "{this}");
        }
    }
}
