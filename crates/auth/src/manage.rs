//! The commands of a person: login, status, logout.

use std::path::PathBuf;
use std::time::Duration;

use crate::account::Account;
use crate::discovery::probe;
use crate::error::AuthError;
use crate::login::{LoginRequest, log_in};
use crate::record::{Login, now};
use crate::redact::{Redact, url_secrets};
use crate::settings::{Endpoint, Grant};
use crate::token_endpoint;

/// A server's login, without tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginStatus {
    /// The authorization server that issued the tokens.
    pub issuer: String,
    /// The resource that the tokens are for.
    pub resource: String,
    /// The client's identifier.
    pub client_id: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The time until the access token ends, if known.
    pub ends_in: Option<Duration>,
    /// True if the access token has ended.
    pub expired: bool,
    /// True if the login was refused at its last use, so that a person has to log in again.
    pub ended: bool,
    /// True if the access token can be renewed.
    pub renewable: bool,
    /// True if the tokens are in the system's keyring, and not in the file.
    pub in_keyring: bool,
    /// The file of the login, which only the user can read.
    pub file: PathBuf,
}

/// The result of logging out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoggedOut {
    /// There was no login.
    NotLoggedIn,
    /// The tokens are deleted, and the authorization server has revoked them.
    Revoked,
    /// The tokens are deleted here. The authorization server has not confirmed a revocation.
    Forgotten,
}

/// Checks from the configuration alone that a person can log in at a server. The error:
/// [`AuthError::is_no_login`] if the grant is the client's own credentials.
pub fn takes_login(endpoint: &Endpoint) -> Result<(), AuthError> {
    persons_account(endpoint).map(drop)
}

/// Lets a person log in at an HTTP server, and stores the tokens. The error: [`AuthError`], also as
/// [`takes_login`].
pub async fn login(endpoint: &Endpoint, request: LoginRequest) -> Result<LoginStatus, AuthError> {
    let account = persons_account(endpoint)?;
    let challenge = probe(&account, endpoint.url.as_str()).await?;
    let login = log_in(&account, &request, challenge.as_deref()).await?;
    Ok(describe(&account, login))
}

/// The login of a server; `None` without a usable login. The error: as [`takes_login`], and if the
/// store of logins fails.
pub async fn status(endpoint: &Endpoint) -> Result<Option<LoginStatus>, AuthError> {
    let account = persons_account(endpoint)?;
    let login = account.fitting().await?;
    Ok(login.map(|login| describe(&account, login)))
}

/// The unique identifier of a server's login, which is no secret; `None` without a login. Blocks
/// while it reads a file. The error: as [`status`].
pub fn login_id(endpoint: &Endpoint) -> Result<Option<String>, AuthError> {
    persons_account(endpoint)?.store.login_id()
}

/// Deletes a server's tokens, and revokes them at the authorization server if it offers that. The
/// error: [`AuthError`] if the store of logins fails. Nothing is deleted if tokens may be in a
/// keyring that cannot be reached.
pub async fn logout(endpoint: &Endpoint) -> Result<LoggedOut, AuthError> {
    let account = account(endpoint)?;
    let _lock = account.store.lock_existing().await?;
    // A login that cannot be read is deleted, too.
    let login = account.store.load().await.ok().flatten();
    if !account.store.remove().await? {
        return Ok(LoggedOut::NotLoggedIn);
    }
    Ok(match login {
        Some(login) if revoke(&account, &login).await => LoggedOut::Revoked,
        _ => LoggedOut::Forgotten,
    })
}

async fn revoke(account: &Account, login: &Login) -> bool {
    account.hide(login).await;
    let secret = account.secret_of(login).await;
    let (Ok(web), Ok(secret)) = (account.web().await, secret) else {
        return false;
    };
    token_endpoint::revoke(web, &login.record, &login.tokens, secret.as_deref()).await
}

/// The account at a server where a person can log in.
fn persons_account(endpoint: &Endpoint) -> Result<Account, AuthError> {
    let account = account(endpoint)?;
    match account.settings.grant {
        Grant::AuthorizationCode => Ok(account),
        Grant::ClientCredentials => Err(AuthError::no_login(
            &account.server,
            "with the grant \"client_credentials\" its tokens come without one, when it is \
             connected to",
        )),
    }
}

fn account(endpoint: &Endpoint) -> Result<Account, AuthError> {
    let redact = Redact::new(url_secrets(endpoint.url.as_str()));
    Account::new(endpoint, &redact)
}

fn describe(account: &Account, login: Login) -> LoginStatus {
    let expired = login.tokens.has_ended();
    let seconds_left = |end: u64| Duration::from_secs(end.saturating_sub(now()));
    LoginStatus {
        issuer: login.record.issuer,
        resource: login.record.resource,
        client_id: login.record.client_id,
        scopes: login.tokens.scopes,
        ends_in: login.tokens.expires_at.map(seconds_left),
        expired,
        ended: login.record.ended,
        renewable: login.tokens.refresh_token.is_some(),
        in_keyring: login.record.in_keyring,
        file: account.store.file(),
    }
}
