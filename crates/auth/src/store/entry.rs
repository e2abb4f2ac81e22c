//! The keyring's entry of a login: its tokens, and whose they are.

use serde::{Deserialize, Serialize};

use super::{Login, Record, Store};
use crate::error::AuthError;
use crate::keyring::{self, KeyringError};
use crate::tokens::Tokens;

/// The service under which tokens stand in the keyring.
pub(super) const SERVICE: &str = "callgate";

/// The content of the keyring's entry. The file is not written at the same moment, and a copy
/// of it may be anywhere, so the tokens say whose they are.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// The `id` of the login's record.
    #[serde(default)]
    login: String,
    #[serde(flatten)]
    tokens: Tokens,
}

/// Why a login is not kept in the keyring.
pub(super) struct NotKept {
    pub(super) error: AuthError,
    /// Whether its tokens may be there all the same.
    pub(super) may_be_left: bool,
    /// Whether there is no keyring at all.
    pub(super) no_keyring: bool,
}

impl Store {
    /// The tokens of this login, if they are there.
    pub(super) async fn read_entry(&self, record: &Record) -> Result<Option<Tokens>, AuthError> {
        let kept = keyring::read(SERVICE, &self.account).await;
        let Some(kept) = kept.map_err(|error| self.failed(error.to_string()))? else {
            return Ok(None);
        };
        let entry: Entry = serde_json::from_str(&kept)
            .map_err(|_| self.failed("the keyring's entry is not one of ours".to_owned()))?;
        // Another login's tokens must not go where this one's record says.
        Ok((entry.login == record.id).then_some(entry.tokens))
    }

    pub(super) async fn write_entry(&self, login: &Login) -> Result<(), AuthError> {
        let entry = self.entry(login)?;
        keyring::write(SERVICE, &self.account, entry)
            .await
            .map_err(|error| self.failed(error.to_string()))
    }

    /// Keeps a login made just now, its file included.
    pub(super) async fn create_in_keyring(&self, login: &Login) -> Result<(), NotKept> {
        let before = match keyring::read(SERVICE, &self.account).await {
            Ok(before) => before,
            // It is of no use to any login, so it is in no new one's way.
            Err(error) if error.is_garbled() => None,
            Err(error) => return Err(self.nothing_put(&error)),
        };
        let entry = self.entry(login)?;
        if let Err(error) = keyring::write(SERVICE, &self.account, entry).await {
            if error.is_absent() {
                return Err(self.nothing_put(&error));
            }
            // What is given up may be done later.
            return Err(NotKept {
                error: self.failed(format!(
                    "{error}; tokens may be in it all the same, so log out where it can be reached"
                )),
                may_be_left: true,
                no_keyring: false,
            });
        }
        let Err(error) = self.write_file(login).await else {
            return Ok(());
        };
        // The file that is there goes with the tokens that were there.
        let put_back = match before {
            Some(before) => keyring::write(SERVICE, &self.account, before).await,
            None => keyring::remove(SERVICE, &self.account).await,
        };
        match put_back {
            Ok(()) => Err(error.into()),
            Err(lost) => Err(NotKept {
                error: self.failed(format!(
                    "{error}; and a login that is not to be kept stays in the keyring: {lost}"
                )),
                may_be_left: true,
                no_keyring: false,
            }),
        }
    }

    /// Over a failure before anything has come to be there.
    fn nothing_put(&self, error: &KeyringError) -> NotKept {
        NotKept {
            error: self.failed(error.to_string()),
            may_be_left: false,
            no_keyring: error.is_absent(),
        }
    }

    fn entry(&self, login: &Login) -> Result<String, AuthError> {
        let entry = Entry {
            login: login.record.id.clone(),
            tokens: login.tokens.clone(),
        };
        serde_json::to_string(&entry).map_err(|error| self.failed(error.to_string()))
    }
}

impl From<AuthError> for NotKept {
    /// Nothing has come to be there.
    fn from(error: AuthError) -> Self {
        Self {
            error,
            may_be_left: false,
            no_keyring: false,
        }
    }
}
