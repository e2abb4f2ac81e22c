//! The interface between a connection and the login that it uses.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::HeaderValue;
use url::Url;

use crate::error::AuthError;

/// The authorization of requests to one server.
pub trait Authorize: fmt::Debug + Send + Sync {
    /// The `Authorization` value for the next request; `None` to send it without one, or with
    /// the configured one. A person may have to log in first.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if there is no token. The request must not be sent then.
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        std::future::ready(Ok(None)).boxed()
    }

    /// Reports a 401 or 403. The answer says whether to send the same request again, with
    /// another [`Authorize::header`]. A request is sent three times at most: a server may refuse
    /// the token first and its scope then.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if a person has to do something first.
    fn refused<'a>(&'a self, _refused: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        std::future::ready(Ok(TryAgain::No)).boxed()
    }

    /// Reports that the server accepted a request with this header for the first time.
    fn accepted(&self, _sent: &HeaderValue) {}

    /// The reason why [`Authorize::header`] or [`Authorize::refused`] takes long, for a caller
    /// whose time is over; `None` if that is not known.
    fn pending(&self) -> Option<AuthError> {
        None
    }

    /// Tells whether a request that the server redirects to this URL, within its origin, may
    /// take its header along.
    fn may_follow(&self, _url: &Url) -> bool {
        true
    }

    /// The identifier of the login in use: no secret, and another one for each login.
    fn login_id(&self) -> Option<Arc<str>> {
        None
    }
}

/// The right of a request to have a person asked for a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// A call or a start waits for the request.
    Allowed,
    /// Nothing waits for the request: no login page is shown for it.
    Never,
}

/// The answer to a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryAgain {
    /// Send the request again: there may be a better token now.
    Yes,
    /// The refusal stands.
    No,
}

/// A refused request.
#[derive(Clone, Copy)]
pub struct Refused<'a> {
    /// 401 or 403.
    pub status: u16,
    /// The values of `WWW-Authenticate`, joined by `, ` if there are several.
    pub www_authenticate: Option<&'a str>,
    /// The `Authorization` header of the request.
    pub sent: Option<&'a HeaderValue>,
    /// The right to have a person asked for a login.
    pub prompt: Prompt,
}

impl fmt::Debug for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("status", &self.status)
            .field("www_authenticate", &self.www_authenticate)
            .field("prompt", &self.prompt)
            .finish_non_exhaustive()
    }
}

/// No authorization beyond the configured headers: every refusal stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAuthorization;

impl Authorize for NoAuthorization {}
