//! A keyring of this process, for the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use keyring::{Error, Result};

/// The place of an entry of the system's keyring.
pub(super) struct Entry {
    key: Key,
}

/// A service and an account.
type Key = (String, String);

#[derive(Default)]
struct Fake {
    passwords: BTreeMap<Key, String>,
    /// The accounts that are locked.
    locked: BTreeSet<String>,
}

/// The password of an account at a service.
pub(crate) fn password(service: &str, account: &str) -> Option<String> {
    let key = (service.to_owned(), account.to_owned());
    fake().passwords.get(&key).cloned()
}

/// Locks or unlocks an account.
pub(crate) fn lock(account: &str, locked: bool) {
    let mut fake = fake();
    if locked {
        fake.locked.insert(account.to_owned());
    } else {
        fake.locked.remove(account);
    }
}

impl Entry {
    pub(super) fn new(service: &str, account: &str) -> Result<Self> {
        let key = (service.to_owned(), account.to_owned());
        Ok(Self { key })
    }

    pub(super) fn store_status() -> &'static Result<()> {
        &Ok(())
    }

    pub(super) fn get_password(&self) -> Result<String> {
        let fake = self.unlocked()?;
        fake.passwords.get(&self.key).cloned().ok_or(Error::NoEntry)
    }

    pub(super) fn set_password(&self, password: &str) -> Result<()> {
        let key = self.key.clone();
        self.unlocked()?.passwords.insert(key, password.to_owned());
        Ok(())
    }

    pub(super) fn delete_credential(&self) -> Result<()> {
        let removed = self.unlocked()?.passwords.remove(&self.key);
        removed.map(drop).ok_or(Error::NoEntry)
    }

    fn unlocked(&self) -> Result<MutexGuard<'static, Fake>> {
        let fake = fake();
        if fake.locked.contains(&self.key.1) {
            return Err(Error::NoStorageAccess("it was not unlocked".into()));
        }
        Ok(fake)
    }
}

fn fake() -> MutexGuard<'static, Fake> {
    static FAKE: OnceLock<Mutex<Fake>> = OnceLock::new();
    FAKE.get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}
