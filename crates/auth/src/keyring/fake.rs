//! A keyring of this process, for the tests.

use std::collections::{BTreeMap, BTreeSet};

use keyring::{Error, Result};
use parking_lot::{Mutex, MutexGuard};

/// The place of an entry of the system's keyring.
pub(super) struct Entry {
    key: Key,
}

/// A service and an account.
type Key = (String, String);

struct Fake {
    passwords: BTreeMap<Key, String>,
    /// The accounts that are locked.
    locked: BTreeSet<String>,
}

static FAKE: Mutex<Fake> = Mutex::new(Fake {
    passwords: BTreeMap::new(),
    locked: BTreeSet::new(),
});

/// The password of an account at a service.
pub(crate) fn password(service: &str, account: &str) -> Option<String> {
    let key = (service.to_owned(), account.to_owned());
    FAKE.lock().passwords.get(&key).cloned()
}

/// Locks or unlocks an account.
pub(crate) fn lock(account: &str, locked: bool) {
    let mut fake = FAKE.lock();
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
        let fake = FAKE.lock();
        if fake.locked.contains(&self.key.1) {
            return Err(Error::NoStorageAccess("it was not unlocked".into()));
        }
        Ok(fake)
    }
}
