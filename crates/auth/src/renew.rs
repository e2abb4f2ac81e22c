//! The authorization of requests to one server: its token is read when first needed, renewed
//! before it ends, and replaced when the server refuses it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::Mutex;
use url::Url;

use crate::account::{Account, covers};
use crate::browser::{NotShown, Page};
use crate::challenge::Challenge;
use crate::discovery::{discover, probe, update_endpoints};
use crate::error::{AuthError, Remedy};
use crate::login::{Attempt, OFFLINE, dedup, log_in};
use crate::redact::Redact;
use crate::settings::{Endpoint, Grant};
use crate::store::Login;
use crate::tokens::{self, NoToken};

/// The pause after a failed renewal of a token that still lasts.
const RENEW_AGAIN: Duration = Duration::from_secs(5);
/// A token that is refused so soon after it was issued was never good.
const SOON: Duration = Duration::from_secs(60);
/// A person's time limit for a login that a call waits for.
const LOGIN_PATIENCE: Duration = Duration::from_secs(300);

/// The authorization of requests to one server. Clones are the same one. Default: nothing beyond
/// the configured headers.
#[derive(Clone, Default)]
pub struct Authorization(Option<Arc<Inner>>);

struct Inner {
    account: Account,
    /// The login that requests use. Requests read it while `busy` is held.
    current: Mutex<Current>,
    /// Held while tokens are read, renewed or asked for.
    busy: tokio::sync::Mutex<Busy>,
    /// The error for a caller that cannot wait for the page that is open.
    pending: Mutex<Option<AuthError>>,
}

#[derive(Clone, Default)]
enum Current {
    /// The store was not read yet.
    #[default]
    Unread,
    None,
    Login(Arc<Login>, HeaderValue),
}

#[derive(Default)]
struct Busy {
    /// The last token that was issued without a person, and the time: if it is refused soon,
    /// another one is of no use.
    issued: Option<(String, Instant)>,
    /// The time of the last failed renewal of a token that still lasted.
    not_renewed: Option<Instant>,
}

/// The right of a request to have a person asked for a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// A call or a start waits for the request.
    Allowed,
    /// Nothing waits for the request: no login page is shown for it.
    Never,
}

/// A request that waits for a token.
struct Waiting {
    since: Instant,
    prompt: Prompt,
    /// The `Authorization` header that the server refused.
    sent: Option<HeaderValue>,
    /// The `WWW-Authenticate` header of the refusal.
    challenge: Option<String>,
}

impl Waiting {
    fn new(prompt: Prompt) -> Self {
        Self {
            since: Instant::now(),
            prompt,
            sent: None,
            challenge: None,
        }
    }
}

/// Resets [`Inner::pending`] on drop.
struct Pending<'a>(&'a Mutex<Option<AuthError>>);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl Authorization {
    /// The authorization at this server. `redact` hides the tokens in messages.
    pub fn new(endpoint: &Endpoint, redact: &Redact) -> Self {
        match Account::new(endpoint, redact) {
            Ok(account) => Self(Some(Arc::new(Inner {
                account,
                current: Mutex::default(),
                busy: tokio::sync::Mutex::default(),
                pending: Mutex::default(),
            }))),
            Err(error) => {
                tracing::warn!(server = endpoint.server, %error, "no login can be used");
                Self::default()
            }
        }
    }

    /// The `Authorization` value for the next request; `None` to send it without one, or with
    /// the configured one. A person may have to log in first.
    /// The error: [`AuthError`] if there is no token. The request must not be sent then.
    pub async fn header(&self, prompt: Prompt) -> Result<Option<HeaderValue>, AuthError> {
        let Some(inner) = &self.0 else {
            return Ok(None);
        };
        match inner.current() {
            Current::None => Ok(None),
            Current::Login(login, header) if !login.tokens.is_stale() => Ok(Some(header)),
            _ => {
                let waiting = Waiting::new(prompt);
                in_task(inner, |inner| async move { inner.fresh(waiting).await }).await
            }
        }
    }

    /// Reports a 401 or 403 with the values of its `WWW-Authenticate`, for a request with the
    /// header `sent`. True to send the request again, with another [`Authorization::header`]. A
    /// request is sent three times at most: a server may refuse the token first and its scope then.
    /// The error: [`AuthError`] if a person has to do something first.
    pub async fn refused(
        &self,
        status: u16,
        www_authenticate: Option<String>,
        sent: Option<HeaderValue>,
        prompt: Prompt,
    ) -> Result<bool, AuthError> {
        let Some(inner) = &self.0 else {
            return Ok(false);
        };
        let challenge = Challenge::parse(www_authenticate.as_deref().unwrap_or_default());
        let waiting = Waiting {
            sent,
            challenge: www_authenticate,
            ..Waiting::new(prompt)
        };
        match status {
            401 => in_task(inner, |inner| async move { inner.replace(waiting).await }).await?,
            403 if challenge.error.as_deref() == Some("insufficient_scope") => {
                let scopes = challenge.scopes;
                let widen = |inner: Arc<Inner>| async move { inner.widen(waiting, scopes).await };
                in_task(inner, widen).await?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reports that the server accepted a request with this header.
    pub fn accepted(&self, sent: &HeaderValue) {
        let Some(inner) = &self.0 else { return };
        if let (Some(browser), Current::Login(login, header)) =
            (&inner.account.settings.browser, inner.current())
            && header == sent
        {
            browser.accepted(&inner.account.store.file(), &login.record.id);
        }
    }

    /// The reason why [`Authorization::header`] or [`Authorization::refused`] takes long, for a
    /// caller whose time is over; `None` if that is not known.
    pub fn pending(&self) -> Option<AuthError> {
        self.0.as_ref()?.pending.lock().clone()
    }

    /// Tells whether a request that the server redirects to this URL, within its origin, may
    /// take its header along.
    pub fn may_follow(&self, url: &Url) -> bool {
        let login = self.0.as_ref().and_then(|inner| inner.login());
        login.is_none_or(|login| covers(&login.record.resource, url.as_str()))
    }

    /// The identifier of a person's login that is in use: no secret, and another one for each
    /// login.
    pub fn login_id(&self) -> Option<Arc<str>> {
        let inner = self.0.as_ref().filter(|inner| inner.is_persons())?;
        Some(inner.login()?.record.id.as_str().into())
    }
}

/// Runs in a task of its own: a call that is cancelled must not take a renewal with it, as the
/// old refresh token may be used up then and the new one not kept yet.
async fn in_task<T: Send + 'static, F: Future<Output = Result<T, AuthError>> + Send + 'static>(
    inner: &Arc<Inner>,
    act: impl FnOnce(Arc<Inner>) -> F,
) -> Result<T, AuthError> {
    let task = tokio::spawn(act(Arc::clone(inner)));
    let ended = |_| Err(inner.account.exchange("its task has ended"));
    task.await.unwrap_or_else(ended)
}

impl Inner {
    fn current(&self) -> Current {
        self.current.lock().clone()
    }

    fn login(&self) -> Option<Arc<Login>> {
        match self.current() {
            Current::Login(login, _) => Some(login),
            _ => None,
        }
    }

    /// Tells whether a request that had this header would have another one now.
    fn has_other_than(&self, sent: Option<&HeaderValue>) -> bool {
        matches!(self.current(), Current::Login(_, header) if Some(&header) != sent)
    }

    fn is_persons(&self) -> bool {
        self.account.settings.grant == Grant::AuthorizationCode
    }

    /// The header for the next request, with a token that has not ended.
    async fn fresh(&self, waiting: Waiting) -> Result<Option<HeaderValue>, AuthError> {
        let mut busy = self.busy.lock().await;
        if let Err(error) = self.refresh(&mut busy).await {
            self.by_person(&mut busy, &waiting, Vec::new(), error)
                .await?;
        }
        Ok(match self.current() {
            Current::Login(_, header) => Some(header),
            _ => None,
        })
    }

    /// Reads the store if that was not done, and renews a token that is about to end.
    async fn refresh(&self, busy: &mut Busy) -> Result<(), AuthError> {
        if matches!(self.current(), Current::Unread) {
            let login = if self.is_persons() {
                self.account.store.load().await?
            } else {
                None
            };
            self.adopt(login)?;
        }
        let Some(login) = self.login().filter(|login| login.tokens.is_stale()) else {
            return Ok(());
        };
        let is_soon = busy
            .not_renewed
            .is_some_and(|at| at.elapsed() < RENEW_AGAIN);
        if is_soon && !login.tokens.has_ended() {
            return Ok(());
        }
        let renewed = self.renew(
            busy,
            Some(&login.tokens.access_token),
            "the token has ended",
        );
        let Err(error) = renewed.await else {
            return Ok(());
        };
        let lasts = |now: Arc<Login>| {
            now.tokens.access_token == login.tokens.access_token && !now.tokens.has_ended()
        };
        if !self.login().is_some_and(lasts) {
            return Err(error);
        }
        tracing::warn!(server = self.account.server, %error, "a token is used to its end");
        busy.not_renewed = Some(Instant::now());
        Ok(())
    }

    /// Replaces the token after a 401.
    async fn replace(&self, waiting: Waiting) -> Result<(), AuthError> {
        let mut busy = self.busy.lock().await;
        if self.has_other_than(waiting.sent.as_ref()) {
            return Ok(());
        }
        let access = self.login().map(|login| login.tokens.access_token.clone());
        let was_just_issued = busy
            .issued
            .as_ref()
            .is_some_and(|(issued, at)| access.as_ref() == Some(issued) && at.elapsed() < SOON);
        if !self.is_persons() {
            if was_just_issued {
                return Err(self
                    .account
                    .exchange("the server refuses the token just issued"));
            }
            let challenge = waiting.challenge.as_deref();
            return self.by_credentials(&mut busy, challenge).await;
        }
        let renewed = if !was_just_issued {
            self.renew(&mut busy, access.as_deref(), "it refuses the token")
                .await
        } else if self.adopt_newer().await? {
            Ok(())
        } else {
            Err(self.account.login_required("refuses its token"))
        };
        match renewed {
            Ok(()) => Ok(()),
            Err(error) => {
                let scopes = Vec::new();
                self.by_person(&mut busy, &waiting, scopes, error).await
            }
        }
    }

    /// Widens the scope after a 403 with `insufficient_scope`, which names these scopes.
    async fn widen(&self, waiting: Waiting, wanted: Vec<String>) -> Result<(), AuthError> {
        let mut busy = self.busy.lock().await;
        if self.has_other_than(waiting.sent.as_ref()) {
            return Ok(());
        }
        let narrow = self.insufficient_scope(&wanted);
        if self.is_persons() && self.adopt_newer().await? {
            return Ok(());
        }
        let login = self.login();
        let has = |scope| {
            login
                .as_ref()
                .is_some_and(|it| it.tokens.scopes.contains(scope))
        };
        // A scope that was granted and is refused all the same is not asked for again.
        if wanted.iter().all(has) {
            return Err(narrow);
        }
        self.by_person(&mut busy, &waiting, wanted, narrow).await
    }

    /// Replaces the token `refused` by one from another process, or by renewing it, which one
    /// process at a time does.
    async fn renew(
        &self,
        busy: &mut Busy,
        refused: Option<&str>,
        why: &str,
    ) -> Result<(), AuthError> {
        let account = &self.account;
        if !self.is_persons() {
            return self.by_credentials(busy, None).await;
        }
        let none = || account.login_required("wants a login, and there is none");
        // Nothing is written for a server at which no person ever logged in.
        if !account.store.exists() {
            self.adopt(None)?;
            return Err(none());
        }
        let _lock = account.store.lock().await?;
        let Some(mut login) = account.store.load().await? else {
            self.adopt(None)?;
            return Err(none());
        };
        let is_newer = Some(login.tokens.access_token.as_str()) != refused;
        self.adopt(Some(login.clone()))?;
        if is_newer && !login.tokens.is_stale() {
            return Ok(());
        }
        let Some(refresh_token) = login.tokens.refresh_token.clone() else {
            let reason = format!("needs a new login: {why}, and it cannot be renewed");
            return Err(account.login_required(&reason));
        };
        update_endpoints(account, &mut login.record).await?;
        let secret = account.secret_of(&login).await?;
        // A renewed token is for the scopes of the one before (RFC 6749, section 6).
        let grant = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &refresh_token),
        ];
        let (web, scopes) = (account.web().await?, &login.tokens.scopes);
        let issued = tokens::request(web, &login.record, secret.as_deref(), &grant, scopes).await;
        let ended = match issued {
            Ok(mut tokens) => {
                // A new refresh token is optional (RFC 6749, section 6).
                tokens.refresh_token = tokens.refresh_token.or(Some(refresh_token));
                tokens.client_secret = login.tokens.client_secret.take();
                busy.issued = Some((tokens.access_token.clone(), Instant::now()));
                login.tokens = tokens;
                None
            }
            Err(NoToken::InvalidGrant) => {
                login.tokens.refresh_token = None;
                let reason = format!("needs a new login: {why}, and it cannot be renewed");
                Some(account.login_required(&reason))
            }
            Err(NoToken::Other(reason)) => {
                let reason = account.redact.message(&reason);
                let server = &account.server;
                let problem = format!("the token of server `{server}` cannot be renewed: {reason}");
                let advice = format!("try again later, or run `{}`", account.login_command(&[]));
                let error = AuthError::new(server, problem);
                return Err(error.advise(Remedy::LoginCommand, &advice));
            }
        };
        if let Err(error) = account.store.put(&login).await {
            tracing::warn!(server = account.server, %error, "a renewed login is not saved");
        }
        self.adopt(Some(login))?;
        ended.map_or(Ok(()), Err)
    }

    /// Gets a token with the client's own credentials. It is not kept.
    async fn by_credentials(
        &self,
        busy: &mut Busy,
        challenge: Option<&str>,
    ) -> Result<(), AuthError> {
        let account = &self.account;
        let lacking = || {
            account.settings("the client credentials grant needs \"clientId\" and \"clientSecret\"")
        };
        let id = account.settings.client_id.as_ref().ok_or_else(lacking)?;
        let (mut record, mut scopes) = match self.login() {
            Some(login) => {
                // The next token is for the scopes of this one, and for those wanted now.
                let mut scopes = login.scopes_to_repeat();
                scopes.extend(challenge.map_or(Vec::new(), |it| Challenge::parse(it).scopes));
                (login.record.clone(), scopes)
            }
            None => {
                let found = discover(account, challenge).await?;
                let mut scopes = found.scopes.clone();
                // There is no refresh token to ask for.
                scopes.retain(|scope| scope != OFFLINE);
                let authentication = found.authentication(true);
                (found.record(account, id.clone(), authentication), scopes)
            }
        };
        let secret = account
            .client_secret(&record.issuer)
            .await?
            .ok_or_else(lacking)?;
        if !account.settings.scopes.is_empty() {
            scopes.clone_from(&account.settings.scopes);
        }
        dedup(&mut scopes);
        record.asked = scopes;
        let joined = record.asked.join(" ");
        let mut grant = vec![("grant_type", "client_credentials")];
        if !joined.is_empty() {
            grant.push(("scope", &joined));
        }
        let (web, secret) = (account.web().await?, Some(secret.as_str()));
        let issued = tokens::request(web, &record, secret, &grant, &record.asked).await;
        let tokens = issued.map_err(|refused| match refused {
            NoToken::InvalidGrant => account.exchange("the client's credentials were refused"),
            NoToken::Other(reason) => account.exchange(reason),
        })?;
        busy.issued = Some((tokens.access_token.clone(), Instant::now()));
        self.adopt(Some(Login { record, tokens }))
    }

    /// Has a person log in for these scopes; none for those that the server names.
    async fn by_person(
        &self,
        busy: &mut Busy,
        waiting: &Waiting,
        scopes: Vec<String>,
        otherwise: AuthError,
    ) -> Result<(), AuthError> {
        let browser = match &self.account.settings.browser {
            Some(browser)
                if self.is_persons()
                    && otherwise.remedy == Remedy::Login
                    && waiting.prompt == Prompt::Allowed =>
            {
                browser
            }
            _ => return Err(otherwise),
        };
        let file = self.account.store.file();
        *self.pending.lock() = Some(self.awaited(&scopes));
        let _pending = Pending(&self.pending);
        let _turn = browser.turn(&file).await;
        // If another page's login is for too little, the server says so once more.
        if self.adopt_newer().await.is_ok_and(|is_newer| is_newer) {
            busy.issued = None;
            return Ok(());
        }
        let used = self.login();
        let id = used.as_ref().map(|login| login.record.id.as_str());
        let shown = browser.check(&file, id, &scopes, waiting.since);
        shown.map_err(|not| match not {
            NotShown::Declined => self.declined(&scopes),
            NotShown::OfNoUse => otherwise,
            NotShown::Failed(error) => error,
        })?;
        let made = async {
            let challenge = match &waiting.challenge {
                Some(challenge) => Some(challenge.clone()),
                None => probe(&self.account, self.account.url.as_str()).await?,
            };
            let attempt = Attempt {
                scopes: scopes.clone(),
                challenge: challenge.as_deref(),
                patience: LOGIN_PATIENCE,
            };
            log_in(&self.account, browser.opener(), attempt).await
        };
        let made = made.await;
        let page = match &made {
            Ok(login) => Page::Granted(login.record.id.clone()),
            Err(none) if none.is_refused => Page::Declined,
            Err(none) => Page::Failed(none.error.clone()),
        };
        browser.note(&file, &scopes, page);
        let login = made.map_err(|none| none.error)?;
        busy.issued = None;
        self.adopt(Some(login))
    }

    /// The error about a token that does not have these scopes, or others that are not named.
    fn insufficient_scope(&self, wanted: &[String]) -> AuthError {
        let (account, server) = (&self.account, &self.account.server);
        let login = account.login_command(wanted);
        let (problem, login) = if wanted.is_empty() {
            let problem = "wants a scope that its token does not have and does not name it";
            (problem.to_owned(), format!("{login} --scope SCOPE"))
        } else {
            (format!("wants the scope {:?}", wanted.join(" ")), login)
        };
        let error = AuthError::new(server, format!("server `{server}` {problem}"));
        if self.is_persons() {
            return error.advise(Remedy::Login, &format!("run `{login}`"));
        }
        error.advise(
            Remedy::Repair,
            "write it in \"scopes\" of the server's \"oauth\", and see that the authorization \
             server grants it to the client",
        )
    }

    /// The error for a person who refused the page or did not come back.
    fn declined(&self, scopes: &[String]) -> AuthError {
        let (account, server) = (&self.account, &self.account.server);
        let wants = match scopes {
            [] => "a login".to_owned(),
            _ => format!("the scope {:?}", scopes.join(" ")),
        };
        let problem = format!(
            "server `{server}` wants {wants}; its page was shown, no login has come of it, and it \
             is not shown again"
        );
        let advice = format!("run `{}`", account.login_command(scopes));
        AuthError::new(server, problem).advise(Remedy::LoginCommand, &advice)
    }

    /// The error for a call whose time is over while the page is open.
    fn awaited(&self, scopes: &[String]) -> AuthError {
        let (account, server) = (&self.account, &self.account.server);
        let wants = match scopes {
            [] => "a login, which".to_owned(),
            _ => format!("the scope {:?}, and a login with it", scopes.join(" ")),
        };
        let problem = format!("server `{server}` wants {wants} has not come in time");
        let advice = format!(
            "log in on the page that was shown, or run `{}`, and try again",
            account.login_command(scopes)
        );
        AuthError::new(server, problem).advise(Remedy::OpenPage, &advice)
    }

    /// Uses the stored login if it has another token, and tells whether it has.
    async fn adopt_newer(&self) -> Result<bool, AuthError> {
        let stored = self.account.store.load().await?;
        let access = self.login().map(|login| login.tokens.access_token.clone());
        let is_newer = |login: &Login| Some(&login.tokens.access_token) != access.as_ref();
        match stored.filter(is_newer) {
            Some(login) => self.adopt(Some(login)).map(|()| true),
            None => Ok(false),
        }
    }

    /// Uses this login from now on, or none.
    fn adopt(&self, login: Option<Login>) -> Result<(), AuthError> {
        let current = match login {
            None => Current::None,
            Some(login) => {
                self.account.hide(&login);
                if let Some(reason) = self.account.unfit(&login) {
                    return Err(self.account.login_required(reason));
                }
                let header = login.tokens.header().ok_or_else(|| {
                    self.account
                        .login_required("has a token that no header can carry")
                })?;
                Current::Login(Arc::new(login), header)
            }
        };
        *self.current.lock() = current;
        Ok(())
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization")
    }
}
