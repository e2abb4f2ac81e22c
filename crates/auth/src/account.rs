//! One server's login: what is configured of it, where it is kept, and the
//! client that reaches its authorization server.

use tokio::sync::OnceCell;
use url::Url;

use super::error::{AuthError, AuthErrorKind};
use super::http::Web;
use super::issuer;
use super::settings::{Endpoint, OAuth};
use super::store::{Login, Store};
use super::tokens::covers;
use crate::redact::Redact;

#[derive(Debug)]
pub(super) struct Account {
    pub(super) server: String,
    /// Without query and fragment: they may hold a key, and the authorization
    /// server is told what the token is for.
    pub(super) url: Url,
    pub(super) settings: OAuth,
    pub(super) secrets: Redact,
    pub(super) store: Store,
    web: OnceCell<Web>,
}

impl Account {
    pub(super) fn new(endpoint: &Endpoint, secrets: &Redact) -> Result<Self, AuthError> {
        let Endpoint {
            server,
            url,
            oauth: settings,
        } = endpoint;
        let mut url = url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let store = Store::new(server, url.as_str(), settings)?;
        Ok(Self {
            server: server.clone(),
            url,
            settings: settings.clone(),
            secrets: secrets.clone(),
            store,
            web: OnceCell::new(),
        })
    }

    /// The client. It is made once: what the server may send a login to is
    /// settled then.
    pub(super) async fn web(&self) -> Result<&Web, AuthError> {
        self.web
            .get_or_try_init(|| Web::new(&self.url))
            .await
            .map_err(|error| {
                self.error(AuthErrorKind::Discovery {
                    reason: error.to_string(),
                })
            })
    }

    /// Refuses an authorization server that is not the configured one.
    pub(super) fn check_issuer(&self, issuer: &str) -> Result<(), AuthError> {
        match &self.settings.issuer {
            Some(configured) if !issuer::is_same(configured, issuer) => {
                let reason = format!(
                    "its authorization server is {issuer:?}, and the \"issuer\" is {configured:?}"
                );
                Err(self.error(AuthErrorKind::Settings {
                    reason: self.secrets.message(&reason),
                }))
            }
            _ => Ok(()),
        }
    }

    /// Refuses the configured client at another authorization server than the one where it was
    /// used first: it is not known there, or is another one.
    pub(super) async fn check_client(&self, id: &str, issuer: &str) -> Result<(), AuthError> {
        // Who configures that says where the client is registered.
        if self.settings.issuer.is_some() {
            return Ok(());
        }
        match self.store.record().await {
            Some(record) if record.client_id == id && !issuer::is_same(&record.issuer, issuer) => {
                let reason = format!(
                    "its \"clientId\" was used at {:?} before, and the server names {issuer:?} now; \
                     write the \"issuer\" that the client is registered at",
                    record.issuer
                );
                Err(self.error(AuthErrorKind::Settings {
                    reason: self.secrets.message(&reason),
                }))
            }
            _ => Ok(()),
        }
    }

    /// Why a login is not to be used for this server, if it is not.
    pub(super) fn unfit(&self, login: &Login) -> Option<&'static str> {
        if !covers(&login.record.resource, self.url.as_str()) {
            Some("has a login that is for another resource")
        } else if self.check_issuer(&login.record.issuer).is_err() {
            Some("has a login at another authorization server than its \"issuer\"")
        } else {
            None
        }
    }

    /// The login that requests are made with, not one that is for somebody else.
    pub(super) async fn fitting(&self) -> Result<Option<Login>, AuthError> {
        let login = self.store.load().await?;
        Ok(login.filter(|login| self.unfit(login).is_none()))
    }

    /// The scopes of the login before that a new one is to ask for, too: else it would take away
    /// what was added to the first one. `used` is the login that requests are made with here.
    pub(super) async fn repeated(&self, used: Option<&Login>) -> Vec<String> {
        match self.fitting().await {
            Ok(Some(login)) => {
                self.hide(&login);
                login.repeated()
            }
            // Somebody may have logged out, to have no scopes asked for again.
            Ok(None) => Vec::new(),
            // What cannot be read is in no new login's way, and as a rule it is the one in use.
            Err(_) => used.map(Login::repeated).unwrap_or_default(),
        }
    }

    /// The secret of the configured client, for the issuer that it is of alone.
    pub(super) async fn client_secret(&self, issuer: &str) -> Result<Option<String>, AuthError> {
        let Some(source) = &self.settings.client_secret else {
            return Ok(None);
        };
        if self.settings.issuer.is_none() {
            return Err(self.error(AuthErrorKind::Settings {
                reason: "a \"clientSecret\" is for one authorization server; write its \"issuer\""
                    .to_owned(),
            }));
        }
        self.check_issuer(issuer)?;
        match source.resolve("clientSecret", &self.secrets).await {
            Ok(secret) => Ok(Some(secret)),
            Err(error) => Err(self.error(AuthErrorKind::Settings {
                reason: format!("there is no value for \"clientSecret\": {error}"),
            })),
        }
    }

    /// The secret to show with a login's tokens.
    pub(super) async fn secret_of(&self, login: &Login) -> Result<Option<String>, AuthError> {
        match &login.tokens.client_secret {
            Some(secret) => Ok(Some(secret.clone())),
            None if self.settings.client_id.as_ref() == Some(&login.record.client_id) => {
                self.client_secret(&login.record.issuer).await
            }
            None => Ok(None),
        }
    }

    /// Keeps a login's tokens out of every message.
    pub(super) fn hide(&self, login: &Login) {
        let tokens = &login.tokens;
        self.secrets.learn("access token", &tokens.access_token);
        if let Some(token) = &tokens.refresh_token {
            self.secrets.learn("refresh token", token);
        }
        if let Some(secret) = &tokens.client_secret {
            self.secrets.learn("client secret", secret);
        }
    }

    pub(super) fn error(&self, kind: AuthErrorKind) -> AuthError {
        AuthError::new(self.server.as_str(), kind).login_flags(&self.settings.login_flags)
    }

    pub(super) fn login_required(&self, reason: &str) -> AuthError {
        self.error(AuthErrorKind::LoginRequired {
            reason: format!("server `{}` {reason}", self.server),
        })
    }

    pub(super) fn exchange(&self, reason: impl Into<String>) -> AuthError {
        self.error(AuthErrorKind::Exchange {
            reason: self.secrets.message(&reason.into()),
        })
    }
}
