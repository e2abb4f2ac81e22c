//! Blobs: files beside the database, named by their hashes. A row says which run has a blob.

use std::fs::{self, DirEntry, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, named_params};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::folder::{Folder, make_private, remove_file};
use super::rows::{execute, exists, texts};
use crate::error::StoreError;

/// A file of this age that has no row belongs to a process that ended before it wrote the row.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// The hash of bytes.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Writes bytes to a temporary file.
pub(super) fn write(folder: &Folder, bytes: &[u8]) -> Result<NamedTempFile, StoreError> {
    folder.prepare()?;
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix(".new-").tempfile_in(folder.blobs())?;
    file.as_file()
        .set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Gives a file its name. Call it in the transaction that adds the row: files are removed in
/// transactions only.
pub(super) fn place(folder: &Folder, hash: &str, file: NamedTempFile) -> Result<(), StoreError> {
    let path = path(folder, hash);
    if let Some(shard) = path.parent() {
        make_private(shard)?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Reads a blob; `None` if its file is missing, or was cut by a power failure.
pub(super) fn read(folder: &Folder, wanted: &str) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path(folder, wanted)) {
        Ok(bytes) => Ok(Some(bytes).filter(|bytes| hash(bytes) == wanted)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes the blobs of a run. Call it in a transaction.
pub(super) fn remove(
    connection: &Connection,
    folder: &Folder,
    run: &str,
) -> Result<(), StoreError> {
    let params = named_params! { ":run": run };
    let hashes = texts(
        connection,
        "SELECT hash FROM blobs WHERE run = :run",
        params,
    )?;
    execute(connection, "DELETE FROM blobs WHERE run = :run", params)?;
    for hash in hashes {
        if !has_row(connection, &hash)? {
            remove_file(&path(folder, &hash))?;
        }
    }
    Ok(())
}

/// Old files, which may have no row.
pub(super) fn old(folder: &Folder) -> io::Result<Vec<DirEntry>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder.blobs())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let shard: io::Result<Vec<_>> = fs::read_dir(entry.path())?.collect();
            files.extend(shard?);
        } else {
            files.push(entry);
        }
    }
    files.retain(is_old);
    Ok(files)
}

/// The files without a row.
pub(super) fn without_row<'f>(
    connection: &Connection,
    files: &'f [DirEntry],
) -> Result<Vec<&'f DirEntry>, StoreError> {
    let mut found = Vec::new();
    for file in files {
        if !has_row(connection, &file.file_name().to_string_lossy())? {
            found.push(file);
        }
    }
    Ok(found)
}

/// Removes an old file without a row. Call it in a transaction.
pub(super) fn remove_abandoned(connection: &Connection, file: &DirEntry) -> Result<(), StoreError> {
    let hash = file.file_name();
    // It may have been written again.
    if is_old(file) && !has_row(connection, &hash.to_string_lossy())? {
        remove_file(&file.path())?;
    }
    Ok(())
}

fn is_old(file: &DirEntry) -> bool {
    let written = fs::metadata(file.path()).and_then(|found| found.modified());
    let age = written.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
    age.is_ok_and(|age| age > ABANDONED)
}

fn has_row(connection: &Connection, hash: &str) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM blobs WHERE hash = :hash";
    exists(connection, sql, named_params! { ":hash": hash })
}

/// The path of a blob with a row.
fn path(folder: &Folder, hash: &str) -> PathBuf {
    let shard = hash.get(..2).unwrap_or("00");
    folder.blobs().join(shard).join(hash)
}
