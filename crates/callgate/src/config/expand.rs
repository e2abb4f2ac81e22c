//! `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${workspaceFolder}` and other references of editors
//! in texts; paths from the file's folder.

use std::path::{Component, Path, PathBuf};

use super::env_file::EnvFile;
use super::error::Wrong;

/// The maximum length of a name in a message, in bytes.
const MAX_SHOWN: usize = 64;

/// The reference to the file's folder.
const FOLDER: &str = "${workspaceFolder}";

/// The sources of the values of references.
pub(super) struct Variables<'a> {
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
    /// The values of `envFile`, for names that the environment does not have.
    pub(super) file: EnvFile,
    pub(super) folder: &'a Path,
}

impl Variables<'_> {
    /// Replaces every reference in `text`. Values are put in as they are:
    /// references inside a value are not looked at again. Those that came from the
    /// environment are added to `used`, with their names.
    pub(super) fn expand(
        &self,
        text: &str,
        used: &mut Vec<(String, String)>,
    ) -> Result<String, Wrong> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            expanded.push_str(before);
            let Some((reference, after)) = after.split_once('}') else {
                let clause = ": \"${\" has no closing \"}\"; close it, as in \"${NAME}\"";
                return Err(Wrong::Clause(clause.to_owned()));
            };
            expanded.push_str(&match reference {
                "workspaceFolder" => self.folder_before(after),
                "workspaceFolderBasename" => {
                    let name = self.folder.file_name().unwrap_or_default();
                    name.to_string_lossy().into_owned()
                }
                "userHome" => self.value("HOME", &mut Vec::new())?,
                "pathSeparator" | "/" => std::path::MAIN_SEPARATOR_STR.to_owned(),
                _ => self.value(reference, used)?,
            });
            rest = after;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    /// Puts the folder into a prefix or a glob of a rule that begins with its reference. Nothing
    /// else is replaced: a rule that was granted for exact arguments is read as it was written.
    pub(super) fn in_folder(&self, text: &str, is_glob: bool) -> String {
        let signs = ['*', '?', '[', ']', '{', '}', '\\'];
        match text.strip_prefix(FOLDER) {
            // A special character in the folder's name would change the glob.
            Some(_) if is_glob && self.folder.to_string_lossy().contains(signs) => text.to_owned(),
            Some(rest) => format!("{}{rest}", self.folder_before(rest)),
            None => text.to_owned(),
        }
    }

    /// The folder before the rest of a text: without its final `/` if the rest begins with one.
    fn folder_before(&self, rest: &str) -> String {
        let folder = self.folder.to_string_lossy();
        let is_before_slash = |c: char| c == '/' && rest.starts_with('/');
        folder.trim_end_matches(is_before_slash).to_owned()
    }

    fn value(&self, reference: &str, used: &mut Vec<(String, String)>) -> Result<String, Wrong> {
        if reference.starts_with("input:") {
            // The rest of the reference may be a value.
            let message = ": \"${input:…}\" asks a person in VS Code, and Callgate cannot ask; put \
                           the value into an environment variable and write \"${NAME}\"";
            return Err(Wrong::Clause(message.to_owned()));
        }
        let name = reference.strip_prefix("env:").unwrap_or(reference);
        let (name, default) = match name.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (name, None),
        };
        let is_name = |name: &str| {
            !name.starts_with(|c: char| c.is_ascii_digit())
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !is_name(name) || default.is_some_and(|default| default.contains("${")) {
            return Err(Wrong::Clause(format!(
                ": {} is not a reference; write \"${{NAME}}\", \
                 \"${{NAME:-default}}\", \"${{env:NAME}}\" or \"${{workspaceFolder}}\"",
                shown(reference)
            )));
        }
        // As in a shell, the default of ":-" also replaces an empty variable.
        let value = (self.environment)(name).or_else(|| self.file.get(name).map(str::to_owned));
        let value = value.filter(|value| default.is_none() || !value.is_empty());
        match (value, default) {
            (Some(value), _) => {
                used.push((name.to_owned(), value.clone()));
                Ok(value)
            }
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(Wrong::Unset(name.to_owned())),
        }
    }
}

/// The part of a wrong reference that holds no value: the text before a default, if it looks
/// like a name.
fn shown(reference: &str) -> String {
    let (name, rest) = match reference.split_once(":-") {
        Some((name, _)) => (name, ":-…"),
        None => (reference, ""),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.len() <= MAX_SHOWN && name.chars().all(is_plain) {
        return format!("\"${{{name}{rest}}}\"");
    }
    "\"${…}\"".to_owned()
}

/// The forms in which other programs name a variable: what stands before and after its name.
const OTHER_FORMS: [(&str, &str); 6] = [
    ("{{", "}}"),
    ("{{ ", " }}"),
    ("{env:", "}"),
    ("$env:", ""),
    ("$", ""),
    ("%", "%"),
];

/// The first form in a text that other programs replace, such as `$NAME`.
pub(super) fn unreplaced(text: &str) -> Option<String> {
    if text.starts_with("~/") || text.contains("=~/") {
        return Some("~/".to_owned());
    }
    OTHER_FORMS.iter().find_map(|(open, close)| {
        text.match_indices(open).find_map(|(at, _)| {
            let (before, rest) = text.split_at(at);
            // Inside of a word it may be a part of a secret.
            let is_start = |c: char| " \t=/:@,?&\"'".contains(c);
            if !before.chars().next_back().is_none_or(is_start) {
                return None;
            }
            let rest = rest.strip_prefix(open)?;
            let is_other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            let (name, after) = rest.split_at(rest.find(is_other).unwrap_or(rest.len()));
            let is_name = name.len() > 2
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && (open.starts_with('{') || name == name.to_ascii_uppercase());
            // The text itself may be a secret, so the message has the form alone.
            (is_name && after.starts_with(close)).then(|| format!("{open}NAME{close}"))
        })
    })
}

/// The path without `.` and `..`, by its text.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
