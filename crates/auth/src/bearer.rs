//! The tokens of one server as its link uses them: read when first needed,
//! renewed before they end, and asked for anew when the server says so.

mod anew;
mod awaited;
mod ready;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderValue;
use tokio::sync::Mutex;
use url::Url;

use self::anew::{Waiter, Want};
use self::awaited::{Awaited, What};
use self::ready::Ready;
use super::account::Account;
use super::authorize::{Authorize, Prompt, Refused as Refusal, TryAgain};
use super::browser::Browser;
use super::challenge::Challenge;
use super::discovery::settle;
use super::error::{AuthError, AuthErrorKind};
use super::redact::Redact;
use super::settings::{Endpoint, Grant};
use super::store::Login;
use super::tokens::{self, Ask, Refused};

/// How soon a token that still lasts is tried to be renewed again.
const RENEW_AGAIN: Duration = Duration::from_secs(5);

/// A token that is refused this soon after it was had was never good.
pub(super) const RIGHT_AWAY: Duration = Duration::from_secs(60);

/// The authorization of requests to this server. The tokens are hidden by `redact`.
pub fn authorize(endpoint: &Endpoint, redact: &Redact) -> Arc<dyn Authorize> {
    match Account::new(endpoint, redact) {
        Ok(account) => Arc::new(Bearer::new(account)),
        Err(error) => Arc::new(Unable(error)),
    }
}

/// No login is possible: a server that asks for one gets no token, and the error says why.
#[derive(Debug)]
struct Unable(AuthError);

impl Authorize for Unable {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn refused<'a>(&'a self, refused: Refusal<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        let answer = match refused.status {
            401 => Err(self.0.clone()),
            _ => Ok(TryAgain::No),
        };
        std::future::ready(answer).boxed()
    }
}

/// An [`Authorize`] with a login.
pub(super) struct Bearer {
    inner: Arc<Inner>,
}

struct Inner {
    account: Account,
    /// What a request takes without waiting.
    ready: RwLock<Ready>,
    /// Held while tokens are read, renewed or asked for.
    state: Mutex<State>,
    /// What whoever holds it waits for.
    awaited: Awaited,
}

#[derive(Default)]
struct State {
    login: Option<Login>,
    /// The token that was had last without a person, by renewing or by the
    /// client's credentials, and when: if it is refused right away, having
    /// another one is no use.
    last: Option<(String, Instant)>,
    /// When a token that still lasted could not be renewed.
    not_renewed: Option<Instant>,
}

impl Bearer {
    pub(super) fn new(account: Account) -> Self {
        Self {
            inner: Arc::new(Inner {
                account,
                ready: RwLock::default(),
                state: Mutex::default(),
                awaited: Awaited::default(),
            }),
        }
    }
}

impl Authorize for Bearer {
    fn header(&self, prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        let ready = self.inner.ready.read();
        let ready = match &*ready.unwrap_or_else(PoisonError::into_inner) {
            Ready::None => Some(None),
            Ready::Token { header, tokens, .. } if !tokens.is_stale() => Some(Some(header.clone())),
            Ready::Token { .. } | Ready::Unknown => None,
        };
        match ready {
            Some(ready) => std::future::ready(Ok(ready)).boxed(),
            None => {
                let waiter = Waiter::now(prompt);
                self.lasting(move |inner| inner.fresh(waiter)).boxed()
            }
        }
    }

    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        let sent = refusal.sent.cloned();
        let header = refusal.www_authenticate.map(str::to_owned);
        let waiter = Waiter::now(refusal.prompt);
        match refusal.status {
            401 => self
                .lasting(move |inner| async move { inner.refused(sent, header, waiter).await })
                .boxed(),
            403 => {
                let challenge = header.as_deref().and_then(Challenge::bearer);
                match challenge {
                    Some(challenge) if challenge.error.as_deref() == Some("insufficient_scope") => {
                        self.lasting(move |inner| async move {
                            inner.too_narrow(sent, header, &challenge, waiter).await
                        })
                        .boxed()
                    }
                    _ => std::future::ready(Ok(TryAgain::No)).boxed(),
                }
            }
            _ => std::future::ready(Ok(TryAgain::No)).boxed(),
        }
    }

    fn accepted(&self, sent: &HeaderValue) {
        self.inner.came_of_it(Some(sent), Browser::taken);
    }

    fn refused_for_good(&self, refusal: Refusal<'_>) {
        if refusal.status == 401 {
            self.inner.came_of_it(refusal.sent, Browser::of_no_use);
        }
    }

    fn pending(&self) -> Option<AuthError> {
        self.inner.holds_up()
    }

    fn may_follow(&self, url: &Url) -> bool {
        self.inner.ready().may_go(url)
    }

    fn login_id(&self) -> Option<Arc<str>> {
        self.inner.ready().login()
    }
}

impl Bearer {
    /// Does it in a task of its own. A call that is cancelled must not take a
    /// renewal with it: the old refresh token may be spent by then, and the new
    /// one not kept yet.
    async fn lasting<
        T: Send + 'static,
        F: Future<Output = Result<T, AuthError>> + Send + 'static,
    >(
        &self,
        act: impl FnOnce(Arc<Inner>) -> F,
    ) -> Result<T, AuthError> {
        let task = tokio::spawn(act(Arc::clone(&self.inner)));
        task.await.unwrap_or_else(|_| {
            Err(self
                .inner
                .account
                .exchange("the task that sees to it has ended"))
        })
    }
}

impl Inner {
    /// Tells the browser what came of the login with which a request had this header.
    fn came_of_it(&self, sent: Option<&HeaderValue>, tell: impl Fn(&Browser, &Path, u64)) {
        let account = &self.account;
        let made = self.ready().made_if_sent(sent);
        if let (Some(browser), Some(made)) = (&account.settings.browser, made) {
            tell(browser, &account.store.file(), made);
        }
    }

    /// The header for the next request.
    async fn fresh(self: Arc<Self>, waiter: Waiter) -> Result<Option<HeaderValue>, AuthError> {
        let mut state = self.state.lock().await;
        if let Err(error) = self.refresh(&mut state).await {
            // A person is not asked for one login after the other of this kind.
            if state.login.as_ref().is_some_and(anew::has_never_lasted) {
                return Err(error);
            }
            self.or_by_person(&mut state, error, waiter, None, false)
                .await?;
        }
        Ok(self.ready().header())
    }

    /// Sees to it that there is no token that has ended.
    async fn refresh(&self, state: &mut State) -> Result<(), AuthError> {
        if matches!(*self.ready(), Ready::Unknown) {
            let login = match self.account.settings.grant {
                Grant::AuthorizationCode => self.account.store.load().await?,
                Grant::ClientCredentials => None,
            };
            self.adopt(state, login)?;
        }
        let tokens = state.login.as_ref().map(|login| &login.tokens);
        let Some(tokens) = tokens.filter(|tokens| tokens.is_stale()) else {
            return Ok(());
        };
        let tried = state.not_renewed.map(|at| at.elapsed() < RENEW_AGAIN);
        if tried == Some(true) && !tokens.has_ended() {
            return Ok(());
        }
        let access = tokens.access_token.clone();
        let renewed = self.renew(state, Some(&access), "the token has ended");
        if let Err(error) = renewed.await {
            // It is renewed early, so it may be good for a while yet.
            let lasts =
                |login: &Login| login.tokens.access_token == access && !login.tokens.has_ended();
            if !state.login.as_ref().is_some_and(lasts) {
                return Err(error);
            }
            tracing::warn!(server = self.account.server, %error, "a token is used to its end");
            state.not_renewed = Some(Instant::now());
        }
        Ok(())
    }

    /// After a 401.
    async fn refused(
        &self,
        sent: Option<HeaderValue>,
        header: Option<String>,
        waiter: Waiter,
    ) -> Result<TryAgain, AuthError> {
        let mut state = self.state.lock().await;
        if self.ready().is_other_than(sent.as_ref()) {
            return Ok(TryAgain::Yes);
        }
        let header = header.as_deref();
        let access = state
            .login
            .as_ref()
            .map(|login| login.tokens.access_token.clone());
        let no_use = state
            .last
            .as_ref()
            .is_some_and(|(last, had)| access.as_ref() == Some(last) && had.elapsed() < RIGHT_AWAY);
        if self.account.settings.grant == Grant::ClientCredentials {
            if no_use {
                return Err(self
                    .account
                    .exchange("the server refuses the token just issued"));
            }
            self.by_credentials(&mut state, header).await?;
            return Ok(TryAgain::Yes);
        }
        let renewed = if no_use {
            // Unless another process has done better since.
            let stored = self.account.store.load().await?;
            let other = stored.filter(|login| Some(&login.tokens.access_token) != access.as_ref());
            match other {
                Some(login) => self.adopt(&mut state, Some(login)),
                None => Err(self.account.login_required("refuses its token")),
            }
        } else {
            self.renew(&mut state, access.as_deref(), "it refuses the token")
                .await
        };
        if let Err(error) = renewed {
            self.or_by_person(&mut state, error, waiter, header, true)
                .await?;
        }
        Ok(TryAgain::Yes)
    }

    /// After a 403 with `insufficient_scope`.
    async fn too_narrow(
        &self,
        sent: Option<HeaderValue>,
        header: Option<String>,
        challenge: &Challenge,
        waiter: Waiter,
    ) -> Result<TryAgain, AuthError> {
        let mut state = self.state.lock().await;
        if self.ready().is_other_than(sent.as_ref()) {
            return Ok(TryAgain::Yes);
        }
        let wanted = challenge.scopes();
        let narrow = || {
            let named = !wanted.is_empty();
            self.account.error(AuthErrorKind::InsufficientScope {
                scope: named.then(|| wanted.join(" ")),
                grant: self.account.settings.grant,
            })
        };
        if self.account.settings.grant == Grant::ClientCredentials {
            return Err(narrow());
        }
        // A person may have agreed to more in another process.
        let stored = self.account.store.load().await?;
        let access = state.login.as_ref().map(|login| &login.tokens.access_token);
        if let Some(login) = stored
            && Some(&login.tokens.access_token) != access
        {
            self.adopt(&mut state, Some(login))?;
            return Ok(TryAgain::Yes);
        }
        let granted = state.login.as_ref().map(|login| &login.tokens.scopes);
        let has = |scope| granted.is_some_and(|granted| granted.contains(scope));
        let has_all = wanted.iter().all(has);
        match self.asks(waiter.prompt) {
            // What was granted and is refused all the same is not granted by
            // asking for it again.
            Some(browser) if !wanted.is_empty() && !has_all => {
                let want = Want {
                    scopes: wanted.clone(),
                    challenge: header.as_deref(),
                    since: waiter.since,
                    refused: true,
                    otherwise: narrow(),
                };
                self.by_person(&mut state, browser, want).await?;
                Ok(TryAgain::Yes)
            }
            _ => Err(narrow()),
        }
    }

    /// Has another token than `refused`, from another process or by renewing,
    /// which one process at a time does.
    async fn renew(
        &self,
        state: &mut State,
        refused: Option<&str>,
        why: &str,
    ) -> Result<(), AuthError> {
        let account = &self.account;
        if account.settings.grant == Grant::ClientCredentials {
            return self.by_credentials(state, None).await;
        }
        let none = || account.login_required("wants a login, and there is none");
        // Nothing is written for a server at which nobody ever logged in.
        if !account.store.exists() {
            self.adopt(state, None)?;
            return Err(none());
        }
        let waiting = self.awaited.begin(What::Process);
        let _lock = account.store.lock().await?;
        drop(waiting);
        let Some(mut stored) = account.store.load().await? else {
            self.adopt(state, None)?;
            return Err(none());
        };
        account.store.save_again(&stored).await;
        let newer = Some(stored.tokens.access_token.as_str()) != refused;
        if newer && !stored.tokens.is_stale() {
            return self.adopt(state, Some(stored));
        }
        account.hide(&stored);
        self.fits(&stored)?;
        let Some(refresh_token) = stored.tokens.refresh_token.clone() else {
            self.adopt(state, Some(stored.clone()))?;
            return Err(account.login_required(&format!(
                "needs a new login: {why}, and there is nothing to renew it by"
            )));
        };
        settle(account, &mut stored.record).await?;
        let secret = account.secret_of(&stored).await?;
        let ask = Ask::Refresh {
            refresh_token: &refresh_token,
            scopes: &stored.tokens.scopes,
        };
        let answer =
            tokens::request(account.web().await?, &stored.record, secret.as_deref(), ask).await;
        let mut login = stored.clone();
        match answer {
            Ok(mut renewed) => {
                renewed.client_secret = stored.tokens.client_secret.clone();
                login.tokens = renewed;
                state.last = Some((login.tokens.access_token.clone(), Instant::now()));
                account.store.replace(&login, &stored).await;
                tracing::info!(server = account.server, "renewed a token");
                self.adopt(state, Some(login))
            }
            Err(Refused::InvalidGrant) => {
                login.tokens.refresh_token = None;
                account.store.replace(&login, &stored).await;
                self.adopt(state, Some(login))?;
                Err(account.login_required(&format!(
                    "needs a new login: {why}, and the login has ended"
                )))
            }
            Err(Refused::Other(reason)) => Err(account.error(AuthErrorKind::Renewal {
                reason: account.secrets.message(&reason),
            })),
        }
    }

    /// Goes on with this login, or without any.
    fn adopt(&self, state: &mut State, login: Option<Login>) -> Result<(), AuthError> {
        let is_persons = self.account.settings.grant == Grant::AuthorizationCode;
        let ready = match &login {
            None => Ready::None,
            Some(login) => {
                self.account.hide(login);
                self.fits(login)?;
                let header = login.tokens.bearer().ok_or_else(|| {
                    self.account
                        .login_required("has a token that no header can carry")
                })?;
                Ready::Token {
                    header,
                    tokens: Box::new(login.tokens.clone()),
                    resource: login.record.resource.clone(),
                    login: is_persons.then(|| login.record.id.as_str().into()),
                    made: is_persons.then_some(login.record.made),
                }
            }
        };
        state.login = login;
        *self.ready.write().unwrap_or_else(PoisonError::into_inner) = ready;
        Ok(())
    }

    /// A token goes only to what it was issued for, and counts only where its issuer is the
    /// configured one: that may have been written after the login.
    fn fits(&self, login: &Login) -> Result<(), AuthError> {
        match self.account.unfit(login) {
            Some(reason) => Err(self.account.login_required(reason)),
            None => Ok(()),
        }
    }

    fn ready(&self) -> std::sync::RwLockReadGuard<'_, Ready> {
        self.ready.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer")
            .field("server", &self.inner.account.server)
            .finish_non_exhaustive()
    }
}
