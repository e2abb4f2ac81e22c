//! Entries that would start Callgate with their own configuration, again and again.

use std::path::{Path, PathBuf};

use callgate_servers::Stdio;

use super::find;

/// Programs that start the program in their arguments.
const LAUNCHERS: &str = "npx npm pnpx pnpm yarn bunx bun node uvx uv pipx python python3 env";

/// Shells, which take a command in one text.
const SHELLS: &str = "sh bash dash zsh";

/// Words of launchers before the program.
const BEFORE: &str = "run tool dlx exec x";

/// True if a server is Callgate with the configuration in this file.
pub(super) fn is_itself(stdio: &Stdio, file: &Path) -> bool {
    let command = name(&stdio.command);
    let mut words: Vec<&str> = stdio.args.iter().map(String::as_str).collect();
    let is_shell = has(SHELLS, command);
    if is_shell {
        let inner = words.iter().flat_map(|text| text.split_whitespace());
        words = inner.map(|word| word.trim_matches(['"', '\''])).collect();
    }
    let mut words = words.into_iter();
    let program = if is_shell || has(LAUNCHERS, command) {
        let is_variable = |word: &str| command == "env" && word.contains('=');
        words.find(|word| !(word.starts_with('-') || has(BEFORE, word) || is_variable(word)))
    } else {
        Some(stdio.command.as_str())
    };
    let rest: Vec<&str> = words.collect();
    program.is_some_and(is_callgate)
        && rest.contains(&"serve")
        && served(&rest, stdio.cwd.as_deref()).is_some_and(|it| Some(it) == real(file))
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
    let name = name(program);
    let name = name.strip_suffix(".js").unwrap_or(name);
    name.split(['@', '=']).next() == Some("callgate")
}

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|it| it == word)
}

fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}
