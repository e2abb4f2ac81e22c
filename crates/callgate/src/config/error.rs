//! Problems in a configuration file, each with its place.

use std::fmt;
use std::path::{Path, PathBuf};

/// The problems of one configuration file. Its `Display` has one line for each, and for several
/// their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(Vec<Problem>);

impl ConfigError {
    /// All problems, in the order of the file.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// An error about the file as a whole.
    pub(super) fn file(path: &Path, message: impl fmt::Display) -> Self {
        Self::from(Problem {
            path: path.to_owned(),
            place: None,
            message: message.to_string(),
        })
    }

    /// The error for a file that cannot be read.
    pub(super) fn unread(path: &Path, reason: impl fmt::Display) -> Self {
        Self::file(path, format_args!("cannot be read: {reason}"))
    }

    /// The error for these problems, if there are any.
    pub(super) fn of(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by_key(|problem| problem.place);
        problems.dedup();
        (!problems.is_empty()).then_some(Self(problems))
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        if let [first, _, ..] = self.0.as_slice() {
            let (count, path) = (lines.len(), first.path.display());
            lines.push(format!("{count} mistakes in {path}"));
        }
        f.write_str(&lines.join("\n"))
    }
}

/// One problem, or one warning. Its `Display` is `callgate.json:12:5: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file: relative to the current folder if it lies in it.
    pub path: PathBuf,
    /// Line and column, both from 1; the column counts UTF-16 units, as
    /// editors do. `None` for a problem of the file as a whole.
    pub place: Option<(u32, u32)>,
    /// The mistake and what to do, without the place.
    pub message: String,
}

/// A server that is not in use because its entry has a mistake or names an unset variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The server's name.
    pub server: String,
    /// The reason.
    pub problem: Problem,
    /// True if the reason is that variables are not set.
    pub is_unset: bool,
}

impl Problem {
    /// A problem at a byte position of the file's text.
    pub(super) fn at(path: &Path, text: &str, position: usize, message: &str) -> Self {
        let before = text.get(..position).unwrap_or(text);
        let before = before.replace("\r\n", "\n").replace('\r', "\n");
        let line = before.rsplit('\n').next().unwrap_or_default();
        let column = line.encode_utf16().count();
        let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        Self {
            path: path.to_owned(),
            place: Some((number(before.matches('\n').count()), number(column))),
            message: message.to_owned(),
        }
    }
}

/// A mistake in a value or key. It never holds a value of the file.
#[derive(Debug)]
pub(super) enum Wrong {
    Key {
        key: String,
        ours: &'static [&'static str],
    },
    Twice(String),
    /// A clause that follows the name of the value.
    Clause(String),
    /// An environment variable that is not set.
    Unset(String),
}

/// The path in messages: relative where the file lies in the current folder.
pub(super) fn shown(path: &Path) -> PathBuf {
    let current = std::env::current_dir().ok();
    match current.and_then(|current| path.strip_prefix(current).ok()) {
        Some(relative) if relative.as_os_str().is_empty() => PathBuf::from("."),
        Some(relative) => relative.to_owned(),
        None => path.to_owned(),
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.message)
    }
}
