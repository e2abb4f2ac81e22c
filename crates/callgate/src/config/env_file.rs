//! Environment files: lines `NAME=value` that give values to the references of a configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use callgate_text::shell_word;

use super::error::{ConfigError, Problem, shown};

/// Bytes of an environment file.
const MAX_BYTES: u64 = 1 << 20;

/// The values of environment files, by name. The `Debug` form has the names alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvFile(BTreeMap<String, String>);

impl EnvFile {
    /// Reads a file. It must belong to this user, and if it holds values, no other user may read
    /// it. Of several lines with one name, the last one counts.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with the file, and with the line if one is malformed. It holds no value.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let shown = shown(path);
        let unread = |error: io::Error| ConfigError::unread(&shown, error);
        let (bytes, metadata) =
            callgate_files::read_with_metadata(path, MAX_BYTES).map_err(unread)?;
        if !callgate_files::is_own(&metadata).map_err(unread)? {
            let message = "it belongs to another user; make a copy of your own, and name that";
            return Err(ConfigError::unread(&shown, message));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| ConfigError::unread(&shown, "it is not UTF-8 text"))?;
        let values = parse(&shown, &text);
        let is_empty = values.as_ref().is_ok_and(|values| values.0.is_empty());
        if !is_empty && metadata.mode() & 0o077 != 0 {
            let path = path.display().to_string();
            let message = format!(
                "other users have access to it, and it holds values; run `chmod 600 {}`",
                shell_word(&path)
            );
            return Err(ConfigError::unread(&shown, message));
        }
        Ok(values?)
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets the value of a name.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// Adds the values of another file, which override those of this one.
    pub fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The text of a file with exactly these values.
    pub fn text(&self) -> String {
        self.0
            .iter()
            .map(|(name, value)| line(name, value))
            .collect()
    }
}

impl fmt::Debug for EnvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A line with this value, in which nothing is replaced.
fn line(name: &str, value: &str) -> String {
    let mut line = format!("{name}=\"");
    for character in value.chars() {
        match character {
            '\n' => line += "\\n",
            '"' | '\\' | '$' => line.extend(['\\', character]),
            other => line.push(other),
        }
    }
    line + "\"\n"
}

fn parse(path: &Path, text: &str) -> Result<EnvFile, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The parser refuses some last lines without an end.
    let text = format!("{text}\n");
    let values = |text: &str| -> Result<BTreeMap<String, String>, dotenvy::Error> {
        dotenvy::from_read_iter(text.as_bytes()).collect()
    };
    if let Ok(values) = values(&text) {
        return Ok(EnvFile(values));
    }
    // The error quotes the line, and does not have its number.
    let starts = text.match_indices('\n').rev();
    let mut starts = starts.filter_map(|(end, _)| text.get(..=end));
    let good = starts.find(|start| values(start).is_ok());
    let line = good.unwrap_or_default().matches('\n').count() + 1;
    Err(Problem {
        path: path.to_owned(),
        place: Some((u32::try_from(line).unwrap_or(u32::MAX), 1)),
        message: "the line is not NAME=value; put double quotes around a value with spaces or \
                  quotes, and \\ before each \", \\ and $ in it"
            .to_owned(),
    })
}
