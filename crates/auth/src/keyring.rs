//! The system's keyring: the Secret Service on Linux, the Keychain on macOS.
//!
//! A keyring may wait for a person to unlock it, and its client blocks. So each access has its own
//! thread and a time limit. After a timeout, the thread ends when the keyring answers.

#[cfg(test)]
pub(crate) mod fake;

use std::time::Duration;

#[cfg(not(test))]
use keyring::Entry;
use keyring::Error;
use tokio::sync::oneshot;

#[cfg(test)]
use self::fake::Entry;

/// The time limit of one access, including the time for a person to unlock the keyring.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Why an access failed. Never contains a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct KeyringError {
    reason: String,
    is_absent: bool,
}

impl KeyringError {
    /// True if the machine has no keyring. False if its keyring does not answer.
    pub(crate) fn is_absent(&self) -> bool {
        self.is_absent
    }

    fn other(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_absent: false,
        }
    }
}

/// The password of an entry; `None` without the entry.
pub(crate) async fn read(service: &str, account: &str) -> Result<Option<String>, KeyringError> {
    on_thread(service, account, |entry| match entry.get_password() {
        Ok(password) => Ok(Some(password)),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(error),
    })
    .await
}

/// Sets the password of an entry.
pub(crate) async fn write(
    service: &str,
    account: &str,
    password: String,
) -> Result<(), KeyringError> {
    on_thread(service, account, move |entry| entry.set_password(&password)).await
}

/// Removes an entry, if it exists.
pub(crate) async fn remove(service: &str, account: &str) -> Result<(), KeyringError> {
    on_thread(service, account, |entry| match entry.delete_credential() {
        Ok(()) | Err(Error::NoEntry) => Ok(()),
        Err(error) => Err(error),
    })
    .await
}

async fn on_thread<T: Send + 'static>(
    service: &str,
    account: &str,
    act: impl FnOnce(&Entry) -> keyring::Result<T> + Send + 'static,
) -> Result<T, KeyringError> {
    let (service, account) = (service.to_owned(), account.to_owned());
    let (done, result) = oneshot::channel();
    std::thread::Builder::new()
        .name("callgate-keyring".to_owned())
        .spawn(move || {
            let result = Entry::new(&service, &account).and_then(|entry| act(&entry));
            let _ = done.send(result.map_err(|error| describe(&error)));
        })
        .map_err(|error| KeyringError::other(format!("no thread for the keyring: {error}")))?;
    match tokio::time::timeout(TIME_LIMIT, result).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(KeyringError::other("the keyring's client ended early")),
        Err(_) => Err(KeyringError::other(format!(
            "the keyring did not answer within {} s; unlock it",
            TIME_LIMIT.as_secs()
        ))),
    }
}

/// Describes a failure. Errors about the data of an entry are not quoted, because they contain it.
fn describe(error: &Error) -> KeyringError {
    let reason = match error {
        Error::NoDefaultStore => match Entry::store_status() {
            Err(Error::PlatformFailure(reason) | Error::NoStorageAccess(reason)) => {
                format!("there is no keyring to reach: {reason}")
            }
            _ => "there is no keyring to reach".to_owned(),
        },
        Error::NoStorageAccess(reason) => format!("the keyring is locked: {reason}"),
        Error::PlatformFailure(reason) => format!("the keyring failed: {reason}"),
        Error::BadEncoding(_) | Error::BadDataFormat(..) => {
            "the keyring's entry is damaged".to_owned()
        }
        Error::TooLong(what, limit) => format!("{what} is over the keyring's limit of {limit}"),
        _ => "the keyring failed".to_owned(),
    };
    KeyringError {
        reason,
        is_absent: matches!(error, Error::NoDefaultStore),
    }
}
