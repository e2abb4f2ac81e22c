//! Authorization of HTTP servers: which `Authorization` goes with a request,
//! and what to do when a server refuses it.
//!
//! A link asks its [`Authorize`] before each request and tells it of each
//! refusal; where tokens come from, how long they live and where they are kept
//! is not the link's business.

mod account;
mod bearer;
mod browser;
mod challenge;
mod discovery;
mod error;
mod http;
mod issuer;
mod login;
mod manage;
mod reach;
mod redirect;
mod settings;
mod store;
mod tokens;
mod unsaved;

use std::fmt;
use std::sync::Arc;

use ::http::HeaderValue;
use futures::FutureExt;
use futures::future::BoxFuture;
use url::Url;

use self::account::Account;
use self::bearer::Bearer;
pub use self::browser::{Browser, OpenUrl};
pub use self::error::{AuthError, AuthErrorKind};
pub use self::manage::{
    LoggedOut, LoginRequest, LoginStatus, login, login_id, logout, status, takes_login,
};
pub(crate) use self::reach::is_loopback;
pub use self::settings::{Grant, OAuth, TokenPlace};
pub use self::store::Kept;
use crate::secrets::Secrets;
use crate::spec::Http;

/// What a link asks about authorization.
pub trait Authorize: fmt::Debug + Send + Sync {
    /// The `Authorization` value for the next request; `None` if it goes
    /// without one, or with the one that is configured. `waits` says who waits for
    /// that request.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if there should be one and cannot be: the request must not
    /// be sent.
    fn bearer(&self, waits: Waits) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>>;

    /// Tells of a 401 or a 403. `Ok(true)` means that the same request should
    /// be sent once more, with what [`Authorize::bearer`] gives then; `Ok(false)`,
    /// that the refusal stands. A request is sent three times at most: a server
    /// may refuse the token first and its scope then.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if a person has to do something first.
    fn challenged<'a>(&'a self, refusal: Refusal<'a>) -> BoxFuture<'a, Result<bool, AuthError>>;

    /// Tells that the server has taken a request with this `Authorization`, which it had not
    /// been seen to take before.
    fn taken(&self, _sent: &HeaderValue) {}

    /// Tells of a 401 or a 403 that stands because the request was sent often enough: what was
    /// done about the refusals before was in vain.
    fn in_vain(&self, _refusal: Refusal<'_>) {}

    /// Why a request that waits for one of these has to, for whoever cannot wait any
    /// longer; `None` if that is not known.
    fn holds_up(&self) -> Option<AuthError> {
        None
    }

    /// Whether a request that a server redirects within its origin may take the
    /// header of [`Authorize::bearer`] along to this URL.
    fn may_go(&self, _url: &Url) -> bool {
        true
    }

    /// The name of the person's login that requests go with now, which is no secret and
    /// another for each login; `None` if they go without one.
    fn login(&self) -> Option<Arc<str>> {
        None
    }
}

/// What a server's link asks. `http` has its values looked up; what is learned
/// of tokens goes to `secrets`.
pub(crate) fn authorize(server: &str, http: &Http, secrets: &Secrets) -> Arc<dyn Authorize> {
    match &http.oauth {
        Some(settings) if !http.has_authorization() => {
            match Account::new(server, http, settings, secrets) {
                Ok(account) => Arc::new(Bearer::new(account)),
                Err(error) => Arc::new(Unable(error)),
            }
        }
        _ => Arc::new(NoAuthorization),
    }
}

/// Who waits for what comes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// A call does, or a start: a person may be asked for a login.
    Someone,
    /// Nobody does: no page may come up for it.
    Nobody,
}

/// How a server refused a request.
///
/// The `Debug` form does not show what was sent.
#[derive(Clone, Copy)]
pub struct Refusal<'a> {
    /// 401 or 403.
    pub status: u16,
    /// The values of `WWW-Authenticate`, joined by `, ` if there are several.
    pub www_authenticate: Option<&'a str>,
    /// The `Authorization` that the request had: several requests may be
    /// refused for one token, and it is renewed once.
    pub sent: Option<&'a HeaderValue>,
    /// Who waits for the request.
    pub waits: Waits,
}

impl fmt::Debug for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("status", &self.status)
            .field("www_authenticate", &self.www_authenticate)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}

/// No authorization beyond the configured headers: every refusal stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAuthorization;

impl Authorize for NoAuthorization {
    fn bearer(&self, _waits: Waits) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn challenged<'a>(&'a self, _refusal: Refusal<'a>) -> BoxFuture<'a, Result<bool, AuthError>> {
        std::future::ready(Ok(false)).boxed()
    }
}

/// No login is possible: a server that wants one says so, and why is told then.
#[derive(Debug)]
struct Unable(AuthError);

impl Authorize for Unable {
    fn bearer(&self, _waits: Waits) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn challenged<'a>(&'a self, refusal: Refusal<'a>) -> BoxFuture<'a, Result<bool, AuthError>> {
        let answer = match refusal.status {
            401 => Err(self.0.clone()),
            _ => Ok(false),
        };
        std::future::ready(answer).boxed()
    }
}
