//! The commands of a person: log in, look at a login, log out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::account::Account;
use crate::browser::OpenUrl;
use crate::discovery::probe;
use crate::error::AuthError;
use crate::login::log_in;
use crate::redact::{Redact, url_secrets};
use crate::settings::{Endpoint, Grant};
use crate::store::{Kept, Login};
use crate::tokens;

/// A login to make.
#[derive(Clone)]
#[non_exhaustive]
pub struct LoginRequest {
    /// Scopes to ask for, besides those of an earlier login and the configured ones. Default:
    /// none; if none are configured either, those that the server names.
    pub scopes: Vec<String>,
    /// Shows the login's page to the person.
    pub browser: Arc<dyn OpenUrl>,
    /// The person's time limit. Default: 5 min.
    pub patience: Duration,
}

impl LoginRequest {
    /// A login for the scopes that the server names.
    pub fn new(browser: Arc<dyn OpenUrl>) -> Self {
        Self {
            scopes: Vec::new(),
            browser,
            patience: Duration::from_secs(300),
        }
    }
}

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
    /// The end of the access token, in seconds since 1970, if it is known.
    pub expires_at: Option<u64>,
    /// True if the access token has ended.
    pub expired: bool,
    /// True if there is a token to renew it with.
    pub renewable: bool,
    /// The place of the tokens.
    pub kept: Kept,
    /// The file about the login, which holds the tokens if they are kept in a file.
    pub file: PathBuf,
}

impl LoginStatus {
    /// The time until the access token ends, if it is known.
    pub fn ends_in(&self) -> Option<Duration> {
        let left = self.expires_at?.saturating_sub(tokens::now());
        Some(Duration::from_secs(left))
    }
}

/// The result of logging out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoggedOut {
    /// There was no login.
    WasNot,
    /// The tokens are deleted, and the authorization server has revoked them.
    Revoked,
    /// The tokens are deleted here. The authorization server was not told, or did not confirm.
    Forgotten,
}

/// Checks by the configuration that a person can log in at a server.
/// The error: [`AuthError::is_no_login`] if the grant is the client's own credentials.
pub fn takes_login(endpoint: &Endpoint) -> Result<(), AuthError> {
    persons_account(endpoint).map(drop)
}

/// Has a person log in at an HTTP server, and keeps the tokens.
/// The error: [`AuthError`], also as [`takes_login`].
pub async fn login(endpoint: &Endpoint, request: LoginRequest) -> Result<LoginStatus, AuthError> {
    let account = persons_account(endpoint)?;
    let challenge = probe(&account, endpoint.url.as_str()).await?;
    let login = log_in(&account, &request, challenge.as_deref()).await?;
    Ok(describe(&account, login))
}

/// The login of a server; `None` if there is none that may be used.
/// The error: as [`takes_login`], and if the store of logins fails.
pub async fn status(endpoint: &Endpoint) -> Result<Option<LoginStatus>, AuthError> {
    let account = persons_account(endpoint)?;
    let login = account.fitting().await?;
    Ok(login.map(|login| describe(&account, login)))
}

/// The identifier of a server's login: no secret, and another one for each login. `None` if
/// there is none, or the server takes none. Reads a file, and blocks for that.
/// The error: [`AuthError`] if the store of logins fails.
pub fn login_id(endpoint: &Endpoint) -> Result<Option<String>, AuthError> {
    let account = account(endpoint)?;
    match account.settings.grant {
        Grant::AuthorizationCode => account.store.login_id(),
        Grant::ClientCredentials => Ok(None),
    }
}

/// Deletes a server's tokens, and has the authorization server revoke them if it offers that.
/// The error: [`AuthError`] if the store of logins fails; the login is left as it is if its tokens,
/// or those of an earlier one, may be in a keyring that cannot be reached.
pub async fn logout(endpoint: &Endpoint) -> Result<LoggedOut, AuthError> {
    let account = account(endpoint)?;
    let _lock = account.store.lock_existing().await?;
    // A login that cannot be read is deleted all the same.
    let login = account.store.load().await.ok().flatten();
    if !account.store.remove().await? {
        return Ok(LoggedOut::WasNot);
    }
    Ok(match login {
        Some(login) if login.record.published && revoke(&account, &login).await => {
            LoggedOut::Revoked
        }
        _ => LoggedOut::Forgotten,
    })
}

async fn revoke(account: &Account, login: &Login) -> bool {
    account.hide(login).await;
    let secret = account.secret_of(login).await;
    let (Ok(web), Ok(secret)) = (account.web().await, secret) else {
        return false;
    };
    tokens::revoke(web, &login.record, &login.tokens, secret.as_deref()).await
}

/// The account at a server where a person logs in.
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
    LoginStatus {
        issuer: login.record.issuer,
        resource: login.record.resource,
        client_id: login.record.client_id,
        scopes: login.tokens.scopes,
        expires_at: login.tokens.expires_at,
        expired,
        renewable: login.tokens.refresh_token.is_some(),
        kept: login.record.kept,
        file: account.store.file(),
    }
}
