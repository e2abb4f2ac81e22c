//! Renewed logins that could not be saved, for as long as this process lives.
//!
//! What the store has in place of such a one is spent: presenting its refresh
//! token again may end the whole login. So this process goes on from what it
//! has, unless the store has come to hold something else since.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::store::Login;

struct Unsaved {
    login: Login,
    /// The access token of what the store has. With another one there, another
    /// process has renewed the login, or a person has logged in.
    over: String,
}

/// By the place of the login. A server that is connected to again has another
/// link, and the same login.
fn all() -> MutexGuard<'static, HashMap<PathBuf, Unsaved>> {
    static ALL: OnceLock<Mutex<HashMap<PathBuf, Unsaved>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Remembers a login that could not be saved in place of `before`.
pub(super) fn remember(place: &Path, login: &Login, before: &Login) {
    let mut all = all();
    let over = match all.remove(place) {
        Some(unsaved) if is_same(&unsaved.login, before) => unsaved.over,
        _ => before.tokens.access_token.clone(),
    };
    let login = login.clone();
    all.insert(place.to_owned(), Unsaved { login, over });
}

pub(super) fn forget(place: &Path) {
    all().remove(place);
}

/// The newest login that is known, if this one is stored.
pub(super) fn newest(place: &Path, stored: Login) -> Login {
    match all().get(place) {
        Some(unsaved) if unsaved.over == stored.tokens.access_token => unsaved.login.clone(),
        _ => stored,
    }
}

/// Whether this login is one that could not be saved.
pub(super) fn is_unsaved(place: &Path, login: &Login) -> bool {
    let all = all();
    let unsaved = all.get(place);
    unsaved.is_some_and(|unsaved| is_same(&unsaved.login, login))
}

fn is_same(one: &Login, other: &Login) -> bool {
    one.tokens.access_token == other.tokens.access_token
}
