//! A keyring of this process's own, for the tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use keyring::{Error, Result};

/// What there is instead of an entry of the system's keyring.
pub(super) struct Entry {
    service: String,
    account: String,
}

#[derive(Default)]
struct Fake {
    /// By service and account.
    passwords: BTreeMap<(String, String), Vec<u8>>,
    /// What the matter is, by account.
    troubles: BTreeMap<String, Trouble>,
    /// What happens when a password is removed, by account.
    at_removal: BTreeMap<String, Box<dyn FnOnce() + Send>>,
}

/// What may be the matter with a keyring.
#[derive(Clone, Copy)]
pub(crate) enum Trouble {
    /// Nobody unlocks it.
    Locked,
    /// There is none.
    Absent,
    /// What it was given up over is done all the same.
    Late,
}

/// The password of an account at a service.
pub(crate) fn password(service: &str, account: &str) -> Option<String> {
    let key = (service.to_owned(), account.to_owned());
    let password = fake().passwords.get(&key).cloned();
    password.map(|password| String::from_utf8_lossy(&password).into_owned())
}

/// Puts what is no text in the place of a password.
pub(crate) fn garble(service: &str, account: &str) {
    let key = (service.to_owned(), account.to_owned());
    fake().passwords.insert(key, b"\xff".to_vec());
}

/// From now on, or no more, nothing can be done with an account.
pub(crate) fn lock(account: &str, locked: bool) {
    trouble(account, locked.then_some(Trouble::Locked));
}

/// What the matter is with an account from now on, if anything.
pub(crate) fn trouble(account: &str, trouble: Option<Trouble>) {
    let mut fake = fake();
    match trouble {
        Some(trouble) => drop(fake.troubles.insert(account.to_owned(), trouble)),
        None => drop(fake.troubles.remove(account)),
    }
}

/// What happens once when the password of an account is removed.
pub(crate) fn at_removal(account: &str, happens: impl FnOnce() + Send + 'static) {
    let happens = Box::new(happens);
    fake().at_removal.insert(account.to_owned(), happens);
}

impl Entry {
    pub(super) fn new(service: &str, account: &str) -> Result<Self> {
        Ok(Self {
            service: service.to_owned(),
            account: account.to_owned(),
        })
    }

    pub(super) fn store_status() -> &'static Result<()> {
        &Ok(())
    }

    pub(super) fn get_password(&self) -> Result<String> {
        let password = self.act(|passwords, key| passwords.get(&key).cloned())?;
        String::from_utf8(password.ok_or(Error::NoEntry)?)
            .map_err(|error| Error::BadEncoding(error.into_bytes()))
    }

    pub(super) fn set_password(&self, password: &str) -> Result<()> {
        self.act(|passwords, key| passwords.insert(key, password.into()))?;
        match fake().troubles.get(&self.account) {
            Some(Trouble::Late) => Err(Error::PlatformFailure("it is busy".into())),
            _ => Ok(()),
        }
    }

    pub(super) fn delete_credential(&self) -> Result<()> {
        let removed = self.act(|passwords, key| passwords.remove(&key))?;
        let happens = fake().at_removal.remove(&self.account);
        if let Some(happens) = happens {
            happens();
        }
        removed.map(drop).ok_or(Error::NoEntry)
    }

    fn act<T>(
        &self,
        act: impl FnOnce(&mut BTreeMap<(String, String), Vec<u8>>, (String, String)) -> T,
    ) -> Result<T> {
        let mut fake = fake();
        match fake.troubles.get(&self.account) {
            Some(Trouble::Locked) => {
                return Err(Error::NoStorageAccess("nobody unlocks it".into()));
            }
            Some(Trouble::Absent) => return Err(Error::NoDefaultStore),
            Some(Trouble::Late) | None => {}
        }
        let key = (self.service.clone(), self.account.clone());
        Ok(act(&mut fake.passwords, key))
    }
}

fn fake() -> MutexGuard<'static, Fake> {
    static FAKE: OnceLock<Mutex<Fake>> = OnceLock::new();
    FAKE.get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}
