//! Tokens that are no renewed ones: by the client's own credentials, or by a
//! person's login.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::super::authorize::Prompt;
use super::super::browser::{Browser, NotAsked, OpenUrl, Request, Turn};
use super::super::challenge::Challenge;
use super::super::discovery::{authentication, discover, probe};
use super::super::error::{AuthError, AuthErrorKind};
use super::super::login::{NoLogin, OFFLINE, Wish, log_in};
use super::super::settings::Grant;
use super::super::store::{Kept, Login, Record};
use super::super::tokens::{self, Ask, Refused};
use super::awaited::What;
use super::{Inner, State};

/// For whom something is done.
#[derive(Clone, Copy)]
pub(super) struct Waiter {
    pub(super) prompt: Prompt,
    /// Since when.
    pub(super) since: Instant,
}

/// What a person is to be asked for.
pub(super) struct Want<'a> {
    /// Besides those of the login that is there; empty for those that the server names.
    pub(super) scopes: Vec<String>,
    /// The server's challenge, if there is one.
    pub(super) challenge: Option<&'a str>,
    /// Since when a call has waited.
    pub(super) since: Instant,
    /// Whether the server has refused what there was.
    pub(super) refused: bool,
    /// What is wrong, for where asking would be of no use.
    pub(super) otherwise: AuthError,
}

/// How long a person has for a login that a call waits for.
const LOGIN_PATIENCE: Duration = Duration::from_secs(300);

/// A token that ended this soon after its login, in seconds, was of no use ever.
const LASTING: u64 = 5;

impl Waiter {
    pub(super) fn now(prompt: Prompt) -> Self {
        let since = Instant::now();
        Self { prompt, since }
    }
}

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
        let (mut record, named) = match &state.login {
            Some(login) => {
                // The next one is to be good for what this one was, and for what the server
                // asks for now.
                let challenge = challenge.and_then(Challenge::bearer);
                let asked = challenge.map(|challenge| challenge.scopes());
                let mut named = login.repeated();
                named.extend(asked.into_iter().flatten());
                (login.record.clone(), named)
            }
            None => {
                let found = discover(account, challenge).await?;
                let mut named = found.scopes;
                // There is nothing to renew such a token by.
                named.retain(|scope| scope != OFFLINE);
                let record = Record {
                    server: account.server.clone(),
                    url: account.url.to_string(),
                    client: authentication(&found.metadata, true),
                    client_id: id.clone(),
                    resource: found.resource,
                    issuer: found.issuer,
                    token_endpoint: found.metadata.token_endpoint,
                    revocation_endpoint: None,
                    published: true,
                    made: tokens::now(),
                    id: String::new(),
                    asked: Vec::new(),
                    kept: Kept::File,
                    left_in_keyring: false,
                };
                (record, named)
            }
        };
        let secret = account.client_secret(&record.issuer).await?;
        let secret = secret.ok_or_else(lacking)?;
        let mut scopes = match settings.scopes.is_empty() {
            true => named,
            false => settings.scopes.clone(),
        };
        let mut seen = HashSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        record.asked.clone_from(&scopes);
        let ask = Ask::ClientCredentials { scopes: &scopes };
        let issued = tokens::request(account.web().await?, &record, Some(&secret), ask).await;
        let tokens = issued.map_err(|refused| match refused {
            Refused::InvalidGrant => account.exchange("the client's credentials were refused"),
            Refused::Other(reason) => account.exchange(reason),
        })?;
        state.last = Some((tokens.access_token.clone(), Instant::now()));
        self.adopt(state, Some(Login { record, tokens }))
    }

    /// Has a person log in where that mends the error. `refused` says whether the server has
    /// refused what there was.
    pub(super) async fn or_by_person(
        &self,
        state: &mut State,
        error: AuthError,
        waiter: Waiter,
        challenge: Option<&str>,
        refused: bool,
    ) -> Result<(), AuthError> {
        match self.asks(waiter.prompt) {
            Some(browser) if matches!(error.kind, AuthErrorKind::LoginRequired { .. }) => {
                let want = Want {
                    scopes: Vec::new(),
                    challenge,
                    since: waiter.since,
                    refused,
                    otherwise: error,
                };
                self.by_person(state, browser, want).await
            }
            _ => Err(error),
        }
    }

    /// Who asks a person now, if anybody does.
    pub(super) fn asks(&self, prompt: Prompt) -> Option<&Browser> {
        let settings = &self.account.settings;
        let is_persons = settings.grant == Grant::AuthorizationCode;
        let browser = settings.browser.as_ref();
        browser.filter(|_| is_persons && prompt == Prompt::Allowed)
    }

    /// Has a token by a person's login. Somebody who does not want one, or whose login is of no
    /// use, is asked once for these scopes, however many calls come; of connections that want
    /// a login, one at a time asks, and what comes of it is for all who want the same.
    pub(super) async fn by_person(
        &self,
        state: &mut State,
        browser: &Browser,
        want: Want<'_>,
    ) -> Result<(), AuthError> {
        let Want {
            scopes,
            challenge,
            since,
            refused,
            otherwise,
        } = want;
        let made = state.login.as_ref().map(|login| login.record.made);
        let scope = (!scopes.is_empty()).then(|| scopes.join(" "));
        let _waiting = self.awaited.begin(What::Login { scope });
        let login = loop {
            let turn = browser.ask(Request {
                place: self.account.store.file(),
                made,
                scopes: &scopes,
                since,
                refused,
            });
            let turn = turn.map_err(|not| match not {
                NotAsked::For(kind) => self.account.error(kind),
                NotAsked::Failed(error) => error,
                NotAsked::OfNoUse => otherwise.clone(),
            });
            match turn? {
                Turn::Own(asking) => {
                    let used = state.login.as_ref();
                    let made = self.made_by_person(asking.opener(), scopes, challenge, used);
                    let made = made.await;
                    break asking.has_come_to(made)?;
                }
                Turn::Another { mut outcome, same } => {
                    tracing::debug!(server = self.account.server, "a login is under way");
                    let outcome = outcome.wait_for(Option::is_some).await;
                    let outcome = outcome.ok().and_then(|outcome| outcome.clone());
                    match outcome {
                        // If it is for too little, the server says so once more.
                        Some(Ok(login)) => break login,
                        Some(Err(error)) if same => return Err(error),
                        None if same => {
                            let reason = "another call had begun it, and gave it up; call again";
                            return Err(self.account.exchange(reason));
                        }
                        // Something else may be had.
                        Some(Err(_)) | None => {}
                    }
                }
            }
        };
        state.last = None;
        self.adopt(state, Some(login))
    }

    /// Has a person log in, and keeps what comes of it.
    async fn made_by_person(
        &self,
        opener: &dyn OpenUrl,
        scopes: Vec<String>,
        challenge: Option<&str>,
        used: Option<&Login>,
    ) -> Result<Login, NoLogin> {
        let probed;
        let challenge = match challenge {
            Some(challenge) => Some(challenge),
            None => {
                probed = probe(&self.account, self.account.url.as_str()).await?;
                probed.as_deref()
            }
        };
        let wish = Wish {
            scopes,
            used,
            challenge,
            patience: LOGIN_PATIENCE,
        };
        let mut login = log_in(&self.account, opener, wish).await?;
        let store = &self.account.store;
        let _lock = store.lock().await?;
        login.record.kept = store.create(&login).await?;
        Ok(login)
    }
}

/// Whether the token of a login, which was not renewed, had ended about when it came.
pub(super) fn has_never_lasted(login: &Login) -> bool {
    let ended = login.tokens.expires_at;
    ended.is_some_and(|ended| ended < login.record.made.saturating_add(LASTING))
}
