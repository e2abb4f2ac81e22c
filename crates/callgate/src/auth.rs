//! Logins at HTTP servers.
//!
//! A person makes a login once, with a browser; its tokens are kept in the system's keyring, and
//! the gate uses and renews them. An [`OpenUrl`] shows the [`LoginPage`]: one given to [`login`], or
//! to [`GateBuilder::browser`](crate::GateBuilder::browser) for logins that calls need.

pub use callgate_auth::{
    AuthError, Browser, Grant, LoggedOut, LoginPage, LoginRequest, LoginStatus, OAuth, OpenUrl,
    TokenPlace,
};

use callgate_servers::ServerSpec;

/// Tells by the configuration whether a person can log in at a server. No request is sent.
///
/// # Errors
///
/// [`AuthError`], as [`login`] has it for a server that takes no login.
pub fn takes_login(server: &ServerSpec) -> Result<(), AuthError> {
    callgate_auth::takes_login(&server.endpoint()?)
}

/// Has a person log in at an HTTP server and keeps the tokens.
///
/// # Errors
///
/// [`AuthError`], also for a server that takes no login: a program to start, one with a
/// configured `Authorization` header, one whose `oauth` is off, one whose grant is the
/// client's own credentials.
pub async fn login(server: &ServerSpec, request: LoginRequest) -> Result<LoginStatus, AuthError> {
    callgate_auth::login(&server.endpoint()?, request).await
}

/// The login that is kept for a server; `None` if there is none that would be used.
///
/// # Errors
///
/// As [`login`] for servers that take none, and if the login cannot be read.
pub async fn status(server: &ServerSpec) -> Result<Option<LoginStatus>, AuthError> {
    callgate_auth::status(&server.endpoint()?).await
}

/// The identifier of the login that is kept for a server: no secret, and another one for each
/// login. `None` if there is none, or the server takes none.
pub(crate) fn login_id(server: &ServerSpec) -> Result<Option<String>, AuthError> {
    let endpoint = server.endpoint();
    match endpoint.and_then(|endpoint| callgate_auth::login_id(&endpoint)) {
        Err(error) if error.is_no_login() => Ok(None),
        found => found,
    }
}

/// Deletes a server's tokens, and revokes them where the authorization server offers that.
///
/// # Errors
///
/// As [`status`]; the login is left as it is if tokens may be in a
/// keyring that cannot be reached.
pub async fn logout(server: &ServerSpec) -> Result<LoggedOut, AuthError> {
    callgate_auth::logout(&server.endpoint()?).await
}
