//! The file about a login: read whole, and put whole in the place of the one before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Record;
use crate::tokens::Tokens;

/// More than any of our own files has.
const MAX_FILE: u64 = 1 << 20;

/// The file's content.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    pub(super) version: u32,
    #[serde(flatten)]
    pub(super) record: Record,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<Tokens>,
}

pub(super) fn read_document(path: &Path) -> io::Result<Option<Document>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    // A parser's message may quote what it found.
    let unreadable = || io::Error::other("it is not one of ours; log in again");
    let document: Document = serde_json::from_str(&text).map_err(|_| unreadable())?;
    if document.version != 1 {
        return Err(unreadable());
    }
    Ok(Some(document))
}

/// Whether it says that there is no such file, or no such folder.
pub(super) fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Puts a whole file in the place of another one, so that a reader sees the old
/// one or the new one, and no one but the user sees either.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    prepare_folder(path)?;
    let new = path.with_extension(format!("new-{}", std::process::id()));
    // One that a process of this number left behind may have other rights.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = (|| {
        let mut file = private().create_new(true).write(true).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        // The first failure says it better.
        let _gone = fs::remove_file(&new);
    }
    written
}

pub(super) fn prepare_folder(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) => fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder),
        None => Ok(()),
    }
}

pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}
