//! What is waited for before a request can have its token, for those whose time is over
//! meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::error::{AuthError, AuthErrorKind};
use super::super::settings::Grant;
use super::Inner;

/// What the one waits for who sees to the token.
#[derive(Default)]
pub(super) struct Awaited(Mutex<Option<What>>);

/// What that is, besides answers of the authorization server and the keyring.
#[derive(Clone)]
pub(super) enum What {
    /// Another process changes the login.
    Process,
    /// A person logs in, if need be for this scope.
    Login { scope: Option<String> },
}

/// It is waited for as long as this is there.
pub(super) struct Waiting<'a>(&'a Awaited);

impl Awaited {
    pub(super) fn begin(&self, what: What) -> Waiting<'_> {
        *self.what() = Some(what);
        Waiting(self)
    }

    fn what(&self) -> MutexGuard<'_, Option<What>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        *self.0.what() = None;
    }
}

impl Inner {
    /// Why there is no token yet, if that is being seen to.
    pub(super) fn holds_up(&self) -> Option<AuthError> {
        let what = self.awaited.what().clone();
        let reason = match what {
            Some(What::Login { scope }) => {
                return Some(self.account.error(AuthErrorKind::Awaited { scope }));
            }
            Some(What::Process) => "another process is still busy with it",
            None if self.state.try_lock().is_ok() => return None,
            None => "that has taken too long",
        };
        Some(match self.account.settings.grant {
            Grant::AuthorizationCode => self.account.error(AuthErrorKind::Renewal {
                reason: reason.to_owned(),
            }),
            Grant::ClientCredentials => self.account.exchange(reason),
        })
    }
}
