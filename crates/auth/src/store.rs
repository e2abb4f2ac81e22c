//! The stored login of a server: a file with its record, and its tokens in the keyring or, without
//! a keyring, in the same file.
//!
//! A login belongs to a server's name and URL together. The same name with a different URL has no
//! login.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::error::AuthError;
use crate::keyring;
use crate::record::{Login, Record, Tokens};
use crate::settings::{OAuth, TokenPlace};

/// The service of the entries in the keyring.
const SERVICE: &str = "callgate";
/// The time limit for another process that changes the login.
const LOCK_LIMIT: Duration = Duration::from_secs(60);
/// Bytes of a file; Callgate's are smaller.
const MAX_FILE: u64 = 1 << 20;
/// The version of the file's format. Files of version 1 may hold endpoints that the issuer does not
/// publish.
const VERSION: u32 = 2;

/// The place of one server's login.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    server: String,
    /// Without an extension.
    path: PathBuf,
    /// The account of the keyring's entry.
    account: String,
    place: TokenPlace,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    #[serde(flatten)]
    record: Record,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<Tokens>,
}

impl Store {
    pub(crate) fn new(server: &str, url: &str, settings: &OAuth) -> Result<Self, AuthError> {
        let default = || Some(xdg_folder("XDG_STATE_HOME", ".local/state")?.join("auth"));
        let folder = settings.folder.clone().or_else(default).ok_or_else(|| {
            failed(
                server,
                &"neither XDG_STATE_HOME nor HOME is set; set one of them",
            )
        })?;
        // A URL has no NUL, so two users never have the same key.
        let login = match &settings.user {
            None => format!("{server}\0{url}"),
            Some(user) => format!("{server}\0{url}\0{user}"),
        };
        // All folders share one keyring.
        let absolute = std::path::absolute(&folder);
        let place = absolute.as_deref().unwrap_or(&folder).as_os_str();
        Ok(Self {
            server: server.to_owned(),
            path: folder.join(digest(&[login.as_bytes()])),
            account: digest(&[login.as_bytes(), b"\0", place.as_bytes()]),
            place: settings.place,
        })
    }

    /// The file with the record.
    pub(crate) fn file(&self) -> PathBuf {
        self.path.with_extension("json")
    }

    /// Refuses a folder that other users may write to.
    pub(crate) async fn check_folder(&self) -> Result<(), AuthError> {
        let path = self.file();
        self.blocking(move || own_folder(&path)).await
    }

    /// The identifier of the login; `None` without a login.
    pub(crate) fn login_id(&self) -> Result<Option<String>, AuthError> {
        let read = read_document(&self.file());
        let read = read.map_err(|error| self.failed(error))?;
        Ok(read.map(|document| document.record.id))
    }

    /// The record of the login, even without tokens; `None` also if it cannot be read.
    pub(crate) async fn record(&self) -> Option<Record> {
        Some(self.document().await.ok()??.record)
    }

    /// Reads the login.
    pub(crate) async fn load(&self) -> Result<Option<Login>, AuthError> {
        let Some(Document { record, tokens, .. }) = self.document().await? else {
            return Ok(None);
        };
        let tokens = if record.in_keyring {
            self.read_entry().await?
        } else {
            tokens
        };
        // The tokens of a different login must not be sent to this record's endpoints.
        let tokens = tokens.filter(|tokens| tokens.login == record.id);
        Ok(tokens.map(|tokens| Login { record, tokens }))
    }

    async fn document(&self) -> Result<Option<Document>, AuthError> {
        let path = self.file();
        self.blocking(move || read_document(&path)).await
    }

    async fn read_entry(&self) -> Result<Option<Tokens>, AuthError> {
        let text = keyring::read(SERVICE, &self.account).await;
        let Some(text) = text.map_err(|error| self.failed(error))? else {
            return Ok(None);
        };
        let damaged = |_| self.failed("the keyring's entry is damaged; log in again");
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }

    /// Stores a new login, and sets its place in its record. If that fails, the login before stays.
    pub(crate) async fn create(&self, login: &mut Login) -> Result<(), AuthError> {
        let before = self.record().await;
        if self.place != TokenPlace::File {
            login.record.in_keyring = true;
            match self.put(login).await {
                Ok(()) => return Ok(()),
                Err(error) if self.place == TokenPlace::Keyring => return Err(error),
                Err(error) => tracing::info!(server = self.server, %error, "tokens go to a file"),
            }
        }
        login.record.in_keyring = false;
        self.put(login).await?;
        let was_in_keyring = before.is_some_and(|before| before.in_keyring);
        if self.place == TokenPlace::File
            && was_in_keyring
            && let Err(error) = keyring::remove(SERVICE, &self.account).await
        {
            tracing::warn!(
                server = self.server, %error,
                "an earlier login's tokens may stay in the keyring until a logout"
            );
        }
        Ok(())
    }

    /// Writes a login to the place that its record names. The file is prepared first, so that
    /// a full disk changes neither place.
    pub(crate) async fn put(&self, login: &Login) -> Result<(), AuthError> {
        let in_keyring = login.record.in_keyring;
        let document = Document {
            version: VERSION,
            record: login.record.clone(),
            tokens: (!in_keyring).then(|| login.tokens.clone()),
        };
        let text = serde_json::to_vec_pretty(&document).map_err(|e| self.failed(e))?;
        let path = self.file();
        let prepared = self.blocking(move || prepare(&path, &text)).await?;
        if in_keyring {
            let entry = serde_json::to_string(&login.tokens).map_err(|e| self.failed(e))?;
            let written = keyring::write(SERVICE, &self.account, entry).await;
            written.map_err(|error| self.failed(error))?;
        }
        let path = self.file();
        self.blocking(move || prepared.persist(path).map(drop).map_err(io::Error::from))
            .await
    }

    /// Removes the login; false if there was none. Removes nothing if tokens may be in a keyring
    /// that fails.
    pub(crate) async fn remove(&self) -> Result<bool, AuthError> {
        let document = self.document().await;
        // Tokens may be in the keyring even if the file does not say so.
        if let Err(error) = keyring::remove(SERVICE, &self.account).await {
            let may_be_there = match &document {
                Ok(Some(document)) => document.record.in_keyring,
                _ => !error.is_absent() && self.place != TokenPlace::File,
            };
            if may_be_there {
                return Err(self.failed(format!(
                    "{error}; some may be in it, so log out where it can be reached"
                )));
            }
        }
        let path = self.file();
        let removed = self.blocking(move || match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        });
        removed.await
    }

    /// As [`Store::lock`]; `None` without a login, so that no lock file is made for it.
    pub(crate) async fn lock_existing(&self) -> Result<Option<File>, AuthError> {
        if !self.file().exists() {
            return Ok(None);
        }
        self.lock().await.map(Some)
    }

    /// Waits until no other process changes the login, and prevents changes until the file is
    /// dropped.
    pub(crate) async fn lock(&self) -> Result<File, AuthError> {
        let path = self.path.with_extension("lock");
        let locked = self.blocking(move || {
            make_folder(&path)?;
            // Opening a pipe would wait for a reader.
            if path.metadata().is_ok_and(|found| !found.is_file()) {
                return Err(io::Error::other("its lock is not a file"));
            }
            let mut options = File::options();
            options.mode(0o600).create(true).truncate(false).write(true);
            let file = options.open(&path)?;
            file.lock()?;
            Ok(file)
        });
        tokio::time::timeout(LOCK_LIMIT, locked)
            .await
            .unwrap_or_else(|_| {
                Err(self.failed(format!(
                    "another process has been busy with them for {} s",
                    LOCK_LIMIT.as_secs()
                )))
            })
    }

    async fn blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, AuthError> {
        let done = tokio::task::spawn_blocking(act).await;
        let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
        done.map_err(|error| self.failed(format!("{}: {error}", self.file().display())))
    }

    fn failed(&self, reason: impl fmt::Display) -> AuthError {
        failed(&self.server, &reason)
    }
}

fn failed(server: &str, reason: &dyn fmt::Display) -> AuthError {
    let problem = format!("the tokens of server `{server}` cannot be read or kept: {reason}");
    AuthError::new(server, problem)
}

fn read_document(path: &Path) -> io::Result<Option<Document>> {
    own_folder(path)?;
    let bytes = match callgate_files::read(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    // A parser's message may quote a token.
    let document = serde_json::from_slice(&bytes).ok();
    let document = document.filter(|document: &Document| document.version == VERSION);
    let unusable = "the login is damaged, or from an earlier version of Callgate; log in again";
    document.map(Some).ok_or_else(|| io::Error::other(unusable))
}

/// True if the file or its folder does not exist.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Writes a file next to `path`, to be moved there. Only the user can read it.
fn prepare(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let folder = make_folder(path)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Makes the folder of a file, for the user alone.
fn make_folder(file: &Path) -> io::Result<&Path> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    own_folder(file)?;
    Ok(folder)
}

/// Refuses a file in a folder that a user other than this one and root may change or replace.
fn own_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mode = match folder.metadata() {
        Ok(metadata) => metadata.mode(),
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    // In a sticky folder others cannot replace a file, and can add one.
    let fault = if mode & 0o002 != 0 {
        Some(format!(
            "is one that other users may write to ({})",
            folder.display()
        ))
    } else {
        callgate_files::exposure(folder)?.map(|exposure| exposure.fault)
    };
    match fault {
        None => Ok(()),
        Some(fault) => Err(io::Error::other(format!(
            "the folder of logins {fault}; take that away with \"chmod go-w\", or choose another \
             folder with XDG_STATE_HOME"
        ))),
    }
}

/// The first 128 bits of the SHA-256 of all parts, in hexadecimal.
fn digest(parts: &[&[u8]]) -> String {
    let digest = parts.iter().fold(Sha256::new(), Sha256::chain_update);
    let digest = digest.finalize();
    hex::encode(digest.get(..16).unwrap_or_default())
}

/// Callgate's folder below that of an environment variable such as `XDG_STATE_HOME`, or below
/// `default` in the home folder; `None` if neither is set.
pub fn xdg_folder(variable: &str, default: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let home = || Some(absolute("HOME")?.join(default));
    Some(absolute(variable).or_else(home)?.join("callgate"))
}

#[cfg(test)]
mod tests;
