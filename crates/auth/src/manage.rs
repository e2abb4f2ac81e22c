//! Logging in, looking at a login, and logging out: what a person does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::account::Account;
use super::browser::OpenUrl;
use super::discovery::{probe, settle};
use super::error::{AuthError, AuthErrorKind};
use super::login::{Wish, log_in};
use super::settings::{Endpoint, Grant};
use super::store::{Kept, Login};
use super::tokens;
use crate::redact::{Redact, url_secrets};

/// A login to make.
#[derive(Clone)]
#[non_exhaustive]
pub struct LoginRequest {
    /// Scopes to ask for, besides those that an earlier login has and those that
    /// are configured. Default: none; if none are configured either, those that the
    /// server names take their place.
    pub scopes: Vec<String>,
    /// Who shows the login's URL to the person.
    pub browser: Arc<dyn OpenUrl>,
    /// How long the person has. Default: 5 min. Over it the login fails with
    /// [`AuthErrorKind::Exchange`].
    pub patience: Duration,
}

impl LoginRequest {
    /// A login for what the server names.
    pub fn new(browser: Arc<dyn OpenUrl>) -> Self {
        Self {
            scopes: Vec::new(),
            browser,
            patience: Duration::from_secs(300),
        }
    }
}

/// What is known of a server's login. No token is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginStatus {
    /// The authorization server that issued the tokens.
    pub issuer: String,
    /// What the tokens are for.
    pub resource: String,
    /// The client's identifier.
    pub client_id: String,
    /// What was granted.
    pub scopes: Vec<String>,
    /// When the access token ends, in seconds since 1970; `None` if the
    /// authorization server did not say.
    pub expires_at: Option<u64>,
    /// Whether the access token has ended.
    pub expired: bool,
    /// Whether there is a token to renew it by.
    pub renewable: bool,
    /// Where the tokens are.
    pub kept: Kept,
    /// The file in which the login is described, tokens included if they are
    /// kept in a file.
    pub file: PathBuf,
}

impl LoginStatus {
    /// How long the access token is still good for, if that is known.
    pub fn ends_in(&self) -> Option<Duration> {
        let left = self.expires_at?.saturating_sub(tokens::now());
        Some(Duration::from_secs(left))
    }
}

/// What came of logging out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoggedOut {
    /// There was no login.
    WasNot,
    /// The tokens are deleted, and the authorization server has taken them back.
    Revoked,
    /// The tokens are deleted here. The authorization server was not told, or
    /// did not say that it took them back.
    Forgotten,
    /// There is no login here now, but tokens of an earlier one may be in the
    /// keyring: it could not be looked at, and no file says that there are none.
    MayBeLeft {
        /// Why it could not.
        reason: String,
    },
}

/// Whether a person can log in at a server by its configuration. Nobody is asked.
///
/// # Errors
///
/// [`AuthError`], as [`login`] has it for a server that takes no login.
pub fn takes_login(endpoint: &Endpoint) -> Result<(), AuthError> {
    persons_account(endpoint).map(drop)
}

/// Has a person log in at an HTTP server and keeps the tokens.
///
/// # Errors
///
/// [`AuthError`], also for a server that takes no login: a program to start,
/// one with a configured `Authorization` header, one whose `oauth` is off, one whose
/// grant is the client's own credentials.
pub async fn login(endpoint: &Endpoint, request: LoginRequest) -> Result<LoginStatus, AuthError> {
    let (account, url) = persons_account(endpoint)?;
    let challenge = probe(&account, &url).await?;
    let wish = Wish {
        scopes: request.scopes,
        used: None,
        challenge: challenge.as_deref(),
        patience: request.patience,
    };
    let mut login = log_in(&account, &*request.browser, wish).await?;
    let _lock = account.store.lock().await?;
    login.record.kept = account.store.create(&login).await?;
    Ok(describe(&account, login))
}

/// What is known of a server's login; `None` if there is none, or if it is not used, as one of
/// another issuer than the configured one is not. Asks nobody but the keyring.
///
/// # Errors
///
/// As [`login`] for servers that take none, and [`AuthErrorKind::Store`].
pub async fn status(endpoint: &Endpoint) -> Result<Option<LoginStatus>, AuthError> {
    let (account, _) = persons_account(endpoint)?;
    let login = account.fitting().await?;
    Ok(login.map(|login| describe(&account, login)))
}

/// The name of the login that is kept for a server, which is no secret and another for each
/// login; `None` if there is none, or the server takes none. Reads a file, and waits for that.
///
/// # Errors
///
/// [`AuthErrorKind::Settings`] and [`AuthErrorKind::Store`].
pub fn login_id(endpoint: &Endpoint) -> Result<Option<String>, AuthError> {
    match account(endpoint) {
        Ok((account, _)) if account.settings.grant == Grant::AuthorizationCode => {
            account.store.login_id()
        }
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes a server's tokens, and has the authorization server take them back
/// where it offers that. Those of a login of which no file is left go, too, if the keyring
/// can be reached.
///
/// # Errors
///
/// As [`status`], except that a login from before the grant was the client's own credentials
/// can be ended; [`AuthErrorKind::Store`] too, with the login left as it is, where its tokens
/// or those of an earlier login may be in a keyring that does not give them up.
pub async fn logout(endpoint: &Endpoint) -> Result<LoggedOut, AuthError> {
    let (account, _) = account(endpoint)?;
    // For a login that never was, nothing is written, nor has to be writable.
    let _lock = match account.store.is_untouched() {
        true => None,
        false => Some(account.store.lock().await?),
    };
    // A login that cannot be read is deleted all the same.
    let login = account.store.load().await.ok().flatten();
    let removed = account.store.remove().await?;
    if let Some(reason) = removed.may_be_left {
        return Ok(LoggedOut::MayBeLeft { reason });
    }
    Ok(match login {
        _ if !removed.was_there => LoggedOut::WasNot,
        Some(login) if revoked(&account, &login).await => LoggedOut::Revoked,
        _ => LoggedOut::Forgotten,
    })
}

async fn revoked(account: &Account, login: &Login) -> bool {
    account.hide(login);
    let mut record = login.record.clone();
    let settled = settle(account, &mut record).await;
    let secret = account.secret_of(login).await;
    let (Ok(web), Ok(()), Ok(secret)) = (account.web().await, settled, secret) else {
        return false;
    };
    tokens::revoke(web, &record, &login.tokens, secret.as_deref()).await
}

/// The account at a server where a person logs in.
fn persons_account(endpoint: &Endpoint) -> Result<(Account, String), AuthError> {
    let (account, url) = account(endpoint)?;
    if account.settings.grant == Grant::ClientCredentials {
        return Err(account.error(AuthErrorKind::NoLogin {
            reason:
                "with the grant \"client_credentials\" its tokens come without one, when it is \
                     connected to"
                    .to_owned(),
        }));
    }
    Ok((account, url))
}

fn account(endpoint: &Endpoint) -> Result<(Account, String), AuthError> {
    let url = endpoint.url.to_string();
    let redact = Redact::new(url_secrets(&url));
    Ok((Account::new(endpoint, &redact)?, url))
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
