//! What is kept of a login: a file about it, and its tokens in the keyring or,
//! where there is none, in the same file.
//!
//! A login belongs to a server's name and URL together: the same name with
//! another URL, as a changed configuration has it, finds nothing here.

mod entry;
mod file;

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::entry::{NotKept, SERVICE};
use self::file::{Document, is_absent, prepare_folder, private, read_document, write_whole};
use super::challenge::is_scope;
use super::error::{AuthError, AuthErrorKind};
use super::settings::{OAuth, TokenPlace};
use super::tokens::Tokens;
use super::unsaved;
use crate::keyring;

/// How long another process may take over a token.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);

/// Where one server's login is kept.
#[derive(Debug, Clone)]
pub(super) struct Store {
    server: String,
    /// Without an extension.
    path: PathBuf,
    /// The account of the keyring's entry.
    account: String,
    place: TokenPlace,
}

/// What is known of a login besides its tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    /// The server's name and URL in the configuration, for people who look.
    pub(super) server: String,
    pub(super) url: String,
    /// What the tokens are for, as the server names itself.
    pub(super) resource: String,
    /// Who issued them.
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<String>,
    /// Whether the endpoints were read where the issuer publishes them. Those of
    /// an older login may be the word of somebody else.
    #[serde(default)]
    pub(super) published: bool,
    /// When it was made, in seconds since 1970, which renewals leave as it is.
    #[serde(default)]
    pub(super) made: u64,
    /// Its own name, which no other login has and renewals leave as it is; no secret. Empty
    /// for an older one, and for a token by the client's credentials.
    #[serde(default)]
    pub(super) id: String,
    /// How the client shows who it is at the token endpoint.
    pub(super) client: ClientAuthentication,
    pub(super) client_id: String,
    /// The scopes that were asked for, which may be others than those that were granted. Empty
    /// for an older login.
    #[serde(default)]
    pub(super) asked: Vec<String>,
    /// Where the tokens are.
    pub(super) kept: Kept,
    /// Whether tokens may be in the keyring though these are not read from there: those of an
    /// earlier login, or these, by a keyring that was given up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) left_in_keyring: bool,
}

impl Record {
    /// Whether tokens, its own or those of an earlier login, may be in the keyring.
    fn may_be_in_keyring(&self) -> bool {
        self.kept == Kept::Keyring || self.left_in_keyring
    }
}

/// How a client shows who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ClientAuthentication {
    /// By its identifier only.
    None,
    /// By its secret in the request's body.
    Post,
    /// By its secret in the request's header.
    Basic,
}

/// Where tokens are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Kept {
    /// In the system's keyring.
    Keyring,
    /// In a file that only the user can read.
    File,
}

/// A login as it is kept.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) record: Record,
    pub(super) tokens: Tokens,
}

impl Login {
    /// The scopes that tokens in the place of these are to be for, too, lest they be for less:
    /// those that were both asked for and granted. What an authorization server says it has
    /// granted may be names of its own, which it does not take when they are asked for and which
    /// do not tell what they stand for; then, all that were asked for.
    pub(super) fn repeated(&self) -> Vec<String> {
        let (asked, granted) = (&self.record.asked, &self.tokens.scopes);
        let has_own_names = granted.iter().any(|scope| !asked.contains(scope));
        // A file may have been written by hand.
        let fit = |scope: &&String| is_scope(scope) && (has_own_names || granted.contains(*scope));
        asked.iter().filter(fit).cloned().collect()
    }
}

/// What there was of a login that has been removed.
pub(super) struct Removed {
    /// Whether there was a file about one.
    pub(super) was_there: bool,
    /// Why tokens may be in the keyring still, if they may.
    pub(super) may_be_left: Option<String>,
}

/// The right to change a login, across processes, until it is dropped.
pub(super) struct Lock {
    _file: File,
}

impl Store {
    pub(super) fn new(server: &str, url: &str, settings: &OAuth) -> Result<Self, AuthError> {
        let folder = match &settings.folder {
            Some(folder) => folder.clone(),
            None => default_folder().ok_or_else(|| {
                let reason = "there is no folder for them: neither XDG_STATE_HOME nor HOME is set";
                let reason = reason.to_owned();
                AuthError::new(server, AuthErrorKind::Store { reason })
            })?,
        };
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

    /// The file in which the login is described.
    pub(super) fn file(&self) -> PathBuf {
        self.path.with_extension("json")
    }

    /// Whether there may be a login.
    pub(super) fn exists(&self) -> bool {
        self.file().exists()
    }

    /// Whether nothing was ever written for a login here.
    pub(super) fn is_untouched(&self) -> bool {
        !self.exists() && !self.lock_file().exists()
    }

    fn lock_file(&self) -> PathBuf {
        self.path.with_extension("lock")
    }

    /// The newest login that is known, if there is one.
    pub(super) async fn load(&self) -> Result<Option<Login>, AuthError> {
        let stored = self.stored().await?;
        Ok(stored.map(|stored| unsaved::newest(&self.path, stored)))
    }

    /// The name of the login that is kept; `None` if there is none.
    pub(super) fn login_id(&self) -> Result<Option<String>, AuthError> {
        let path = self.file();
        match read_document(&path) {
            Ok(document) => Ok(document.map(|document| document.record.id)),
            Err(error) => Err(self.failed(format!("{}: {error}", path.display()))),
        }
    }

    /// What is known of the login that is kept, tokens or none; `None` too if that cannot be
    /// read.
    pub(super) async fn record(&self) -> Option<Record> {
        let path = self.file();
        let read = self.blocking(move || read_document(&path)).await;
        Some(read.ok()??.record)
    }

    async fn stored(&self) -> Result<Option<Login>, AuthError> {
        let path = self.file();
        let read = self.blocking(move || read_document(&path)).await?;
        let Some(Document { record, tokens, .. }) = read else {
            return Ok(None);
        };
        let tokens = match (record.kept, tokens) {
            (Kept::File, Some(tokens)) => tokens,
            (Kept::File, None) => return Ok(None),
            (Kept::Keyring, _) => {
                let Some(tokens) = self.read_entry(&record).await? else {
                    return Ok(None);
                };
                tokens
            }
        };
        Ok(Some(Login { record, tokens }))
    }

    /// Keeps a login made just now and says where. The one before it stays if it cannot be.
    pub(super) async fn create(&self, login: &Login) -> Result<Kept, AuthError> {
        let mut login = login.clone();
        let mut may_be_left = false;
        let mut no_keyring = false;
        if self.place != TokenPlace::File {
            login.record.kept = Kept::Keyring;
            login.record.left_in_keyring = false;
            match self.create_in_keyring(&login).await {
                Ok(()) => return Ok(Kept::Keyring),
                Err(NotKept { error, .. }) if self.place == TokenPlace::Keyring => {
                    return Err(error);
                }
                Err(not_kept) => {
                    may_be_left = not_kept.may_be_left;
                    no_keyring = not_kept.no_keyring;
                    let error = not_kept.error;
                    tracing::info!(server = self.server, %error, "tokens go to a file");
                }
            }
        }
        let path = self.file();
        let before = self.blocking(move || read_document(&path)).await;
        login.record.kept = Kept::File;
        login.record.left_in_keyring = may_be_left
            || match &before {
                Ok(Some(before)) => before.record.may_be_in_keyring(),
                Ok(None) => false,
                // It may have said so. Where there is no keyring, none was put into it.
                Err(_) => !no_keyring,
            };
        self.save(&login).await?;
        // A keyring that takes nothing just now gives nothing up either: that is left to a
        // logout then.
        if self.place == TokenPlace::File && login.record.left_in_keyring {
            let removed = match keyring::remove(SERVICE, &self.account).await {
                Err(error) if error.is_absent() && before.is_err() => Ok(()),
                removed => removed,
            };
            match removed {
                Ok(()) => {
                    login.record.left_in_keyring = false;
                    // It is kept as it is. Until its file is written again, a logout is only the
                    // more careful.
                    if let Err(error) = self.save(&login).await {
                        tracing::warn!(
                            server = self.server, %error,
                            "a logout looks for an earlier login's tokens in the keyring, where \
                             none are left"
                        );
                    }
                }
                Err(error) => tracing::warn!(
                    server = self.server, %error,
                    "an earlier login's tokens stay in the keyring until a logout"
                ),
            }
        }
        Ok(Kept::File)
    }

    /// Keeps a renewed login in place of `before`. With the lock held: nobody
    /// else's is overwritten. This process can go on with one that cannot be
    /// saved; others cannot until it is.
    pub(super) async fn replace(&self, login: &Login, before: &Login) {
        if let Err(error) = self.save(login).await {
            tracing::warn!(
                server = self.server,
                %error,
                "a renewed login is not saved; its next renewal tries again"
            );
            unsaved::remember(&self.path, login, before);
        }
    }

    /// Tries again to save a login if it could not be. With the lock held.
    pub(super) async fn save_again(&self, login: &Login) {
        if unsaved::is_unsaved(&self.path, login) {
            self.replace(login, login).await;
        }
    }

    /// Keeps a login where it was kept before.
    async fn save(&self, login: &Login) -> Result<(), AuthError> {
        if login.record.kept == Kept::Keyring {
            self.write_entry(login).await?;
        }
        self.write_file(login).await
    }

    async fn write_file(&self, login: &Login) -> Result<(), AuthError> {
        let document = Document {
            version: 1,
            record: login.record.clone(),
            tokens: (login.record.kept == Kept::File).then(|| login.tokens.clone()),
        };
        let text =
            serde_json::to_vec_pretty(&document).map_err(|error| self.failed(error.to_string()))?;
        let path = self.file();
        self.blocking(move || write_whole(&path, &text)).await?;
        unsaved::forget(&self.path);
        Ok(())
    }

    /// Forgets the login. Nothing is forgotten where its file says that its tokens, or those of
    /// an earlier one, may be in a keyring that does not give them up, or where a damaged one may
    /// have said so.
    pub(super) async fn remove(&self) -> Result<Removed, AuthError> {
        let path = self.file();
        let read_path = path.clone();
        let read = self.blocking(move || read_document(&read_path)).await;
        let mut may_be_left = None;
        // Tokens may be there whatever the file says, and without one.
        if let Err(error) = keyring::remove(SERVICE, &self.account).await {
            // Where there is none, none were put into it.
            let is_there = !error.is_absent();
            let may_be_in_it = match &read {
                Ok(Some(document)) => document.record.may_be_in_keyring(),
                Ok(None) => false,
                Err(_) => is_there && self.place != TokenPlace::File,
            };
            if may_be_in_it {
                return Err(self.failed(format!(
                    "{error}; some may be in it, so log out where it can be reached"
                )));
            }
            let is_told = matches!(read, Ok(Some(_)));
            may_be_left = (is_there && !is_told).then(|| error.to_string());
            tracing::debug!(server = self.server, %error, "no keyring was looked at");
        }
        unsaved::forget(&self.path);
        let removed = self.blocking(move || match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        });
        Ok(Removed {
            was_there: removed.await?,
            may_be_left,
        })
    }

    /// Waits until no other process changes the login.
    pub(super) async fn lock(&self) -> Result<Lock, AuthError> {
        let path = self.lock_file();
        let locked = self.blocking(move || {
            prepare_folder(&path)?;
            let file = private()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)?;
            file.lock()?;
            Ok(Lock { _file: file })
        });
        match tokio::time::timeout(LOCK_PATIENCE, locked).await {
            Ok(locked) => locked,
            Err(_) => Err(self.failed(format!(
                "another process has been busy with them for {} s",
                LOCK_PATIENCE.as_secs()
            ))),
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, AuthError> {
        let done = tokio::task::spawn_blocking(act).await;
        done.map_err(io::Error::other)
            .and_then(|result| result)
            .map_err(|error| self.failed(format!("{}: {error}", self.file().display())))
    }

    fn failed(&self, reason: String) -> AuthError {
        AuthError::new(self.server.as_str(), AuthErrorKind::Store { reason })
    }
}

/// 128 bits of a digest over all parts, in hexadecimal digits.
fn digest(parts: &[&[u8]]) -> String {
    let digest = parts.iter().fold(Sha256::new(), Sha256::chain_update);
    let digest = digest.finalize();
    digest.iter().take(16).map(|b| format!("{b:02x}")).collect()
}

fn default_folder() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .and_then(absolute)
        .or_else(|| {
            let home = std::env::var_os("HOME").map(PathBuf::from);
            Some(home.and_then(absolute)?.join(".local/state"))
        })?;
    Some(state.join("callgate/auth"))
}

#[cfg(test)]
mod tests;
