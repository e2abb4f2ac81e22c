//! The login that is kept for a server: a file about it, and its tokens in the keyring or, if
//! there is none, in the same file.
//!
//! A login belongs to a server's name and URL together. The same name with another URL, as
//! in a changed configuration, has no login.

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
use crate::settings::{OAuth, TokenPlace};
use crate::tokens::{Tokens, is_scope};

/// The service of our entries in the keyring.
const SERVICE: &str = "callgate";
/// The time to wait for another process that changes the login.
const LOCK_LIMIT: Duration = Duration::from_secs(60);
/// The largest file that is read. Ours are smaller.
const MAX_FILE: u64 = 1 << 20;

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

/// A login without its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// The server's name and URL in the configuration, for people who read the file.
    pub(crate) server: String,
    pub(crate) url: String,
    /// The resource that the tokens are for.
    pub(crate) resource: String,
    /// The issuer of the tokens.
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revocation_endpoint: Option<String>,
    /// True if the endpoints are those that the issuer publishes. Those of an older login may
    /// come from another party.
    #[serde(default)]
    pub(crate) published: bool,
    /// The identifier of the login, which no other login has: no secret. A renewal does not
    /// change it. Empty in an older login, and for the client credentials grant.
    #[serde(default)]
    pub(crate) id: String,
    pub(crate) client: ClientAuthentication,
    pub(crate) client_id: String,
    /// The scopes that were asked for, which may differ from those that were granted. Empty in
    /// an older login.
    #[serde(default)]
    pub(crate) asked: Vec<String>,
    /// The origin of the login's page, if a person approved that it is not the issuer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approved: Option<String>,
    /// The place of the tokens.
    pub(crate) kept: Kept,
}

/// The authentication of a client at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ClientAuthentication {
    /// With its identifier only.
    None,
    /// With its secret in the form.
    Post,
    /// With its secret in a header.
    Basic,
}

/// The place of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Kept {
    /// In the system's keyring.
    Keyring,
    /// In a file that only the user can read.
    File,
}

/// A login and its secrets.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) record: Record,
    pub(crate) tokens: Tokens,
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

/// The content of the keyring's entry. It is not written at the same moment as the file, so it
/// names its login.
#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(default)]
    login: String,
    #[serde(flatten)]
    tokens: Tokens,
}

impl Login {
    /// The scopes that a login in place of this one asks for too, so that it is not narrower:
    /// those that were both asked for and granted. If the authorization server granted names
    /// of its own, which do not tell what they stand for: all that were asked for.
    pub(crate) fn scopes_to_repeat(&self) -> Vec<String> {
        let (asked, granted) = (&self.record.asked, &self.tokens.scopes);
        let has_own_names = granted.iter().any(|scope| !asked.contains(scope));
        // The file may have been edited.
        let is_fit =
            |scope: &&String| is_scope(scope) && (has_own_names || granted.contains(*scope));
        asked.iter().filter(is_fit).cloned().collect()
    }
}

impl Store {
    pub(crate) fn new(server: &str, url: &str, settings: &OAuth) -> Result<Self, AuthError> {
        let default = || Some(xdg_folder("XDG_STATE_HOME", ".local/state")?.join("auth"));
        let folder = settings.folder.clone().or_else(default).ok_or_else(|| {
            let lack = "there is no folder for them: neither XDG_STATE_HOME nor HOME is set";
            failed(server, &lack)
        })?;
        // A URL has no NUL, so no user's name can make the key of another's.
        let login = match &settings.user {
            None => format!("{server}\0{url}"),
            Some(user) => format!("{server}\0{url}\0{user}"),
        };
        // There is one keyring for all folders.
        let absolute = std::path::absolute(&folder);
        let place = absolute.as_deref().unwrap_or(&folder).as_os_str();
        Ok(Self {
            server: server.to_owned(),
            path: folder.join(digest(&[login.as_bytes()])),
            account: digest(&[login.as_bytes(), b"\0", place.as_bytes()]),
            place: settings.place,
        })
    }

    /// The file about the login.
    pub(crate) fn file(&self) -> PathBuf {
        self.path.with_extension("json")
    }

    /// Refuses a folder in which other users may put logins.
    pub(crate) async fn check_folder(&self) -> Result<(), AuthError> {
        let path = self.file();
        self.blocking(move || own_folder(&path)).await
    }

    /// The identifier of the login; `None` without one.
    pub(crate) fn login_id(&self) -> Result<Option<String>, AuthError> {
        let read = read_document(&self.file());
        let read = read.map_err(|error| self.failed(error))?;
        Ok(read.map(|document| document.record.id))
    }

    /// The record of the login, with tokens or without; `None` also if it cannot be read.
    pub(crate) async fn record(&self) -> Option<Record> {
        Some(self.document().await.ok()??.record)
    }

    /// Reads the login.
    pub(crate) async fn load(&self) -> Result<Option<Login>, AuthError> {
        let Some(Document { record, tokens, .. }) = self.document().await? else {
            return Ok(None);
        };
        let tokens = match record.kept {
            Kept::File => tokens,
            Kept::Keyring => self.read_entry(&record).await?,
        };
        Ok(tokens.map(|tokens| Login { record, tokens }))
    }

    async fn document(&self) -> Result<Option<Document>, AuthError> {
        let path = self.file();
        self.blocking(move || read_document(&path)).await
    }

    /// Reads the tokens of this login from the keyring.
    async fn read_entry(&self, record: &Record) -> Result<Option<Tokens>, AuthError> {
        let text = keyring::read(SERVICE, &self.account).await;
        let Some(text) = text.map_err(|error| self.failed(error))? else {
            return Ok(None);
        };
        let entry: Entry = serde_json::from_str(&text)
            .map_err(|_| self.failed("the keyring's entry is not one of ours"))?;
        // Another login's tokens must not go where this record says.
        Ok((entry.login == record.id).then_some(entry.tokens))
    }

    /// Keeps a new login, and notes its place in its record. If it fails, the login before stays.
    pub(crate) async fn create(&self, login: &mut Login) -> Result<(), AuthError> {
        let before = self.record().await;
        if self.place != TokenPlace::File {
            login.record.kept = Kept::Keyring;
            match self.put(login).await {
                Ok(()) => return Ok(()),
                Err(error) if self.place == TokenPlace::Keyring => return Err(error),
                Err(error) => tracing::info!(server = self.server, %error, "tokens go to a file"),
            }
        }
        login.record.kept = Kept::File;
        self.put(login).await?;
        let was_in_keyring = before.is_some_and(|before| before.kept == Kept::Keyring);
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
    /// a full disk leaves both as they are.
    pub(crate) async fn put(&self, login: &Login) -> Result<(), AuthError> {
        let in_keyring = login.record.kept == Kept::Keyring;
        let document = Document {
            version: 1,
            record: login.record.clone(),
            tokens: (!in_keyring).then(|| login.tokens.clone()),
        };
        let text = serde_json::to_vec_pretty(&document).map_err(|e| self.failed(e))?;
        let path = self.file();
        let prepared = self.blocking(move || prepare(&path, &text)).await?;
        if in_keyring {
            let entry = Entry {
                login: login.record.id.clone(),
                tokens: login.tokens.clone(),
            };
            let entry = serde_json::to_string(&entry).map_err(|e| self.failed(e))?;
            let written = keyring::write(SERVICE, &self.account, entry).await;
            written.map_err(|error| self.failed(error))?;
        }
        let path = self.file();
        self.blocking(move || prepared.persist(path).map(drop).map_err(io::Error::from))
            .await
    }

    /// Removes the login, and tells whether there was one. Nothing is removed if tokens may be in
    /// a keyring that fails.
    pub(crate) async fn remove(&self) -> Result<bool, AuthError> {
        let document = self.document().await;
        // Tokens may be there whatever the file says, and without one.
        if let Err(error) = keyring::remove(SERVICE, &self.account).await {
            let may_be_there = match &document {
                Ok(Some(document)) => document.record.kept == Kept::Keyring,
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

    /// As [`Store::lock`], if there is a login: nothing is written for one that never was.
    pub(crate) async fn lock_existing(&self) -> Result<Option<File>, AuthError> {
        if !self.file().exists() {
            return Ok(None);
        }
        self.lock().await.map(Some)
    }

    /// Waits until no other process changes the login. None does until the file is dropped.
    pub(crate) async fn lock(&self) -> Result<File, AuthError> {
        let path = self.path.with_extension("lock");
        let locked = self.blocking(move || {
            make_folder(&path)?;
            // Opening a pipe would wait for its reader.
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
    let document = document.filter(|document: &Document| document.version == 1);
    let unreadable = || io::Error::other("it is not one of ours; log in again");
    document.map(Some).ok_or_else(unreadable)
}

/// Tells whether the file or its folder does not exist.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Writes a file beside `path`, to be moved there. Only the user can read it.
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

/// Refuses a file in a folder that other users than this one and root may change, or may put
/// another one in place of.
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
    digest.iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// Callgate's folder in the one that an environment variable such as `XDG_STATE_HOME` names, else
/// in `default` of the home folder; `None` if neither is set.
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
