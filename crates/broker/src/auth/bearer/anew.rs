//! Tokens that are no renewed ones: by the client's own credentials, or by a
//! person's login.

use std::time::{Duration, Instant};

use super::super::challenge::Challenge;
use super::super::discovery::{authentication, discover};
use super::super::error::{AuthError, AuthErrorKind};
use super::super::login::{Wish, log_in};
use super::super::settings::Browser;
use super::super::store::{Kept, Login, Record};
use super::super::tokens::{self, Ask, Refused};
use super::{Inner, State};

/// How long a person has for a login that a call waits for.
const LOGIN_PATIENCE: Duration = Duration::from_secs(300);

impl Inner {
    /// Has a token by the client's own credentials. It is not kept: it can be
    /// had again.
    pub(super) async fn by_credentials(
        &self,
        state: &mut State,
        challenge: Option<&str>,
    ) -> Result<(), AuthError> {
        let account = &self.account;
        let settings = &account.settings;
        let lacking = || {
            account.error(AuthErrorKind::Settings {
                reason: "the client credentials grant needs \"clientId\" and \"clientSecret\""
                    .to_owned(),
            })
        };
        let Some(id) = &settings.client_id else {
            return Err(lacking());
        };
        let record = match &state.login {
            Some(login) => login.record.clone(),
            None => {
                let found = discover(account, challenge).await?;
                Record {
                    server: account.server.clone(),
                    url: account.url.to_string(),
                    client: authentication(&found.metadata, true),
                    client_id: id.clone(),
                    resource: found.resource,
                    issuer: found.issuer,
                    token_endpoint: found.metadata.token_endpoint,
                    revocation_endpoint: None,
                    kept: Kept::File,
                }
            }
        };
        let secret = account.client_secret(&record.issuer).await?;
        let secret = secret.ok_or_else(lacking)?;
        let mut scopes = settings.scopes.clone();
        if scopes.is_empty() {
            let challenge = challenge.and_then(Challenge::bearer);
            scopes = challenge
                .map(|challenge| challenge.scopes())
                .unwrap_or_default();
        }
        let ask = Ask::ClientCredentials { scopes: &scopes };
        let issued = tokens::request(account.web().await?, &record, Some(&secret), ask).await;
        let tokens = issued.map_err(|refused| match refused {
            Refused::InvalidGrant => account.exchange("the client's credentials were refused"),
            Refused::Other(reason) => account.exchange(reason),
        })?;
        state.last = Some((tokens.access_token.clone(), Instant::now()));
        self.adopt(state, Some(Login { record, tokens }))
    }

    /// Has a token by a person's login.
    pub(super) async fn by_person(
        &self,
        state: &mut State,
        browser: &Browser,
        scopes: Vec<String>,
        challenge: Option<&str>,
    ) -> Result<(), AuthError> {
        let wish = Wish {
            scopes,
            challenge,
            patience: LOGIN_PATIENCE,
        };
        let mut login = log_in(&self.account, &*browser.0, wish).await?;
        let _lock = self.account.store.lock().await?;
        login.record.kept = self.account.store.create(&login).await?;
        state.last = None;
        self.adopt(state, Some(login))
    }
}
