//! Errors of stores.

use std::io;
use std::path::Path;

use rusqlite::{ErrorCode, ffi};

/// The reason why a store did not do an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
}

/// The kind of a [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No record has this id, or it belongs to a user whom the access does not cover.
    NotFound,
    /// A record with this id exists, or the record's state does not permit the operation.
    Conflict,
    /// The disk is full.
    Full,
    /// Other processes were writing for too long. A later try may succeed.
    Locked,
    /// The store is damaged.
    Damaged,
    /// A newer version of the program made the store or the record, and this one cannot read it.
    Newer,
    /// The store's folder belongs to a different user, or has other files and is open to others.
    Foreign,
    /// The store cannot be used for any other reason.
    Unavailable,
}

impl StoreError {
    /// An error with its message: what is wrong, and what to do next.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message }
    }

    /// The kind of the error.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The error of an id without a record; `noun` names the kind of record.
    pub(crate) fn not_found(noun: &str, id: &str) -> Self {
        let message = format!("there is no {noun} `{id}`");
        Self::new(StoreErrorKind::NotFound, message)
    }

    /// The error with the place of the store, if the store itself is at fault.
    pub(crate) fn at(mut self, folder: &Path) -> Self {
        use StoreErrorKind::{Conflict, NotFound};
        if !matches!(self.kind, NotFound | Conflict) {
            self.message = format!("the store in {}: {}", folder.display(), self.message);
        }
        self
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        let kind = match error.kind() {
            StorageFull | QuotaExceeded => StoreErrorKind::Full,
            _ => StoreErrorKind::Unavailable,
        };
        Self::new(kind, format!("{error}{}", advice(kind)))
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use StoreErrorKind::{Conflict, Damaged, Full, Locked, Newer, Unavailable};
        let (kind, problem) = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => (Full, "the disk is full"),
            // The shared index of the log cannot grow.
            Some(_) if error.sqlite_extended_error_code() == Some(ffi::SQLITE_IOERR_SHMSIZE) => {
                (Full, "the disk is full")
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (Locked, "other processes were writing for too long")
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                (Damaged, "the file is damaged")
            }
            Some(ErrorCode::ConstraintViolation) => (Conflict, "a record with this id exists"),
            _ if matches!(error, rusqlite::Error::FromSqlConversionFailure(..)) => (
                Newer,
                "a record cannot be read; a newer version may have written it",
            ),
            _ => (Unavailable, "the database cannot be used"),
        };
        Self::new(kind, format!("{problem} ({error}){}", advice(kind)))
    }
}

/// The end of a message: what to do next.
fn advice(kind: StoreErrorKind) -> &'static str {
    use StoreErrorKind::{Conflict, Damaged, Foreign, Full, Locked, Newer, NotFound, Unavailable};
    match kind {
        Full => "; free some space",
        Locked => "; try again",
        Damaged => "; move it away",
        Newer => "; update this version",
        Unavailable => "; check that its folder and disk can be used",
        NotFound | Conflict | Foreign => "",
    }
}
