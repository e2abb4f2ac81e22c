//! Entries that would start Callgate with their own configuration, again and again.

use std::path::{Path, PathBuf};

use callgate_servers::Stdio;

use super::find;

/// True if a server is Callgate with the configuration in this file, also behind a launcher or a
/// shell.
pub(super) fn is_itself(stdio: &Stdio, file: &Path) -> bool {
    let texts = [&stdio.command].into_iter().chain(&stdio.args);
    // A shell takes its command in one text.
    let words = texts.flat_map(|text| text.split_whitespace());
    let mut words = words.map(|word| word.trim_matches(['"', '\'']));
    let is_callgate = words.any(is_callgate);
    let arguments: Vec<&str> = words.collect();
    is_callgate
        && arguments.contains(&"serve")
        && served(&arguments, stdio.cwd.as_deref()).is_some_and(|it| Some(it) == real(file))
}

/// The file that `callgate` serves with these arguments in this folder.
fn served(arguments: &[&str], cwd: Option<&Path>) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let folder = cwd.map_or(here.clone(), |cwd| here.join(cwd));
    let mut arguments = arguments.iter();
    let named = arguments.find_map(|it| it.strip_prefix("--config"));
    match named {
        Some(value) => real(&folder.join(match value.strip_prefix('=') {
            Some(path) => path,
            None => arguments.next()?,
        })),
        None => real(&find(&folder).ok()??),
    }
}

/// True for Callgate's own name, such as `callgate@1.2`.
fn is_callgate(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".js").unwrap_or(name);
    name.split(['@', '=']).next() == Some("callgate")
}

fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}
