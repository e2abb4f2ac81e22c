//! The authorization of requests to one server: reads its token when first needed, renews it before
//! it ends, and replaces it when the server refuses it.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;
use parking_lot::Mutex;
use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

use crate::account::{Account, covers};
use crate::browser::{Browser, PageResult};
use crate::discovery::{challenged_scopes, discover, probe};
use crate::error::{AuthError, Remedy};
use crate::login::{LoginRequest, OFFLINE, dedup, log_in};
use crate::record::Login;
use crate::redact::Redact;
use crate::settings::{Endpoint, Grant};
use crate::token_endpoint;

/// The authorization of requests to one server. Clones share their state. Default: only the
/// configured headers.
#[derive(Clone, Default)]
pub struct Authorization(Option<Arc<SharedAuthorization>>);

struct SharedAuthorization {
    account: Account,
    /// The login for requests, if any; the outer `None` until the store was read. Requests read it
    /// without waiting for `busy`.
    current: Mutex<Option<Option<Arc<Login>>>>,
    /// Held while tokens are read, renewed or requested.
    busy: tokio::sync::Mutex<()>,
    /// The error for a caller that cannot wait for the open page.
    pending: Mutex<Option<AuthError>>,
}

/// Permission of a request to show a login page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// A call or a start waits for the request.
    Allowed,
    /// A background request.
    Never,
}

/// A request that the server refused.
#[derive(Debug)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// The values of the `WWW-Authenticate` header.
    pub challenge: Option<String>,
    /// The `Authorization` header of the request.
    pub sent: Option<HeaderValue>,
    /// True if the request was refused before, with a different header.
    pub is_again: bool,
}

/// A request that waits for a token.
struct Waiting {
    since: Instant,
    prompt: Prompt,
    refused: Option<Refused>,
}

impl Authorization {
    /// The authorization at this server. `redact` hides the tokens in messages.
    pub fn new(endpoint: &Endpoint, redact: &Redact) -> Self {
        match Account::new(endpoint, redact) {
            Ok(account) => Self(Some(Arc::new(SharedAuthorization {
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

    /// The `Authorization` value for the next request; `None` to send only the configured headers.
    /// A person may have to log in first. The error: [`AuthError`] if there is no token. Then the
    /// request must not be sent.
    pub async fn header(&self, prompt: Prompt) -> Result<Option<HeaderValue>, AuthError> {
        let Some(inner) = &self.0 else {
            return Ok(None);
        };
        let current = inner.current.lock().clone();
        if let Some(login) = current
            && login.as_ref().is_none_or(|it| !it.tokens.is_stale())
        {
            return Ok(login.and_then(|it| it.tokens.header()));
        }
        in_task(inner, prompt, None).await
    }

    /// Reports a 401 or 403. True to send the request again with a new [`Authorization::header`]. A
    /// request is sent three times at most: a server may refuse the token first and its scope then.
    /// The error: [`AuthError`] if a person has to act first.
    pub async fn refused(&self, refused: Refused, prompt: Prompt) -> Result<bool, AuthError> {
        let Some(inner) = &self.0 else {
            return Ok(false);
        };
        let challenge = refused.challenge.as_deref().unwrap_or_default();
        let challenge = WWWAuthenticateParams::parse(challenge, &inner.account.url);
        if refused.status != 401 && !(refused.status == 403 && challenge.is_insufficient_scope()) {
            return Ok(false);
        }
        in_task(inner, prompt, Some(refused)).await.map(|_| true)
    }

    /// Reports that the server accepted a request with this header.
    pub fn accepted(&self, sent: &HeaderValue) {
        let Some(inner) = &self.0 else { return };
        if let (Some(browser), Some(login)) = (&inner.account.settings.browser, inner.login())
            && login.tokens.header().as_ref() == Some(sent)
        {
            browser.accepted(&inner.account.store.file(), &login.record.id);
        }
    }

    /// The error for a caller that times out while [`Authorization::header`] or
    /// [`Authorization::refused`] waits for a person; `None` if no page is open.
    pub fn pending(&self) -> Option<AuthError> {
        self.0.as_ref()?.pending.lock().clone()
    }

    /// True if a request keeps its header when it is redirected to this URL of the same origin.
    pub fn may_follow(&self, url: &Url) -> bool {
        let login = self.0.as_ref().and_then(|inner| inner.login());
        login.is_none_or(|login| covers(&login.record.resource, url.as_str()))
    }

    /// The unique identifier of the person's login in use, which is no secret.
    pub fn login_id(&self) -> Option<Arc<str>> {
        let inner = self.0.as_ref().filter(|inner| inner.is_persons())?;
        Some(inner.login()?.record.id.as_str().into())
    }
}

/// Gets the header in a separate task, because a cancelled call must not cancel a renewal: the old
/// refresh token could be used up and the new one not stored.
async fn in_task(
    inner: &Arc<SharedAuthorization>,
    prompt: Prompt,
    refused: Option<Refused>,
) -> Result<Option<HeaderValue>, AuthError> {
    let waiting = Waiting {
        since: Instant::now(),
        prompt,
        refused,
    };
    let shared = Arc::clone(inner);
    let task = tokio::spawn(async move { shared.authorize(waiting).await });
    let ended = |_| Err(inner.account.exchange("its task has ended"));
    task.await.unwrap_or_else(ended)
}

impl SharedAuthorization {
    fn login(&self) -> Option<Arc<Login>> {
        self.current.lock().clone().flatten()
    }

    fn header(&self) -> Option<HeaderValue> {
        self.login()?.tokens.header()
    }

    /// True if a request that was sent with this header would be sent with a different one now.
    fn differs_from(&self, sent: Option<&HeaderValue>) -> bool {
        self.header().is_some_and(|header| Some(&header) != sent)
    }

    fn is_persons(&self) -> bool {
        self.account.settings.grant == Grant::AuthorizationCode
    }

    /// The header for the next request, with a current token that was not refused.
    async fn authorize(&self, waiting: Waiting) -> Result<Option<HeaderValue>, AuthError> {
        let _busy = self.busy.lock().await;
        let mut scopes = Vec::new();
        let done = match &waiting.refused {
            None => self.refresh().await,
            Some(refused) if self.differs_from(refused.sent.as_ref()) => Ok(()),
            Some(refused) if refused.status == 401 => self.replace(refused).await,
            Some(refused) => {
                scopes = challenged_scopes(&self.account, refused.challenge.as_deref());
                self.widen(&scopes).await
            }
        };
        if let Err(error) = done {
            self.by_person(&waiting, scopes, error).await?;
        }
        Ok(self.header())
    }

    /// Reads the store once, and renews a token that is about to end. A token that cannot be renewed
    /// is used until its end.
    async fn refresh(&self) -> Result<(), AuthError> {
        if self.current.lock().is_none() {
            let stored = if self.is_persons() {
                self.account.store.load().await?
            } else {
                None
            };
            self.adopt(stored).await?;
        }
        if !self.login().is_some_and(|login| login.tokens.is_stale()) {
            return Ok(());
        }
        match self.renew("the token has ended").await {
            Err(error) if self.login().is_some_and(|login| !login.tokens.has_ended()) => {
                tracing::warn!(server = self.account.server, %error, "a token is used until its end");
                Ok(())
            }
            renewed => renewed,
        }
    }

    /// Replaces the token after a 401.
    async fn replace(&self, refused: &Refused) -> Result<(), AuthError> {
        let account = &self.account;
        match (self.is_persons(), refused.is_again) {
            (true, false) => self.renew("it refuses the token").await,
            (true, true) if self.adopt_newer().await? => Ok(()),
            (true, true) => Err(account.login_required("refuses its token")),
            (false, false) => self.by_credentials(refused.challenge.as_deref()).await,
            (false, true) => Err(account.exchange("the server refuses the token just issued")),
        }
    }

    /// Handles a 403 with `insufficient_scope`. Succeeds if a different process has stored a newer
    /// login.
    async fn widen(&self, wanted: &[String]) -> Result<(), AuthError> {
        if self.is_persons() && self.adopt_newer().await? {
            return Ok(());
        }
        let login = self.login();
        let granted = login.map_or(Vec::new(), |login| login.tokens.scopes.clone());
        let error = self.insufficient_scope(wanted);
        // A new login with the same scope would be refused, too.
        let is_granted = wanted.iter().all(|scope| granted.contains(scope));
        Err(match error.remedy {
            Remedy::Login if is_granted => error.with(Remedy::LoginCommand),
            _ => error,
        })
    }

    /// Renews the token, or takes a newer one from a different process. Only one process renews at a
    /// time.
    async fn renew(&self, why: &str) -> Result<(), AuthError> {
        let account = &self.account;
        if !self.is_persons() {
            return self.by_credentials(None).await;
        }
        let _lock = account.store.lock_existing().await?;
        let Some(mut login) = account.store.load().await? else {
            self.adopt(None).await?;
            return Err(account.login_required("wants a login, and there is none"));
        };
        if self.adopt(Some(login.clone())).await? && !login.tokens.is_stale() {
            return Ok(());
        }
        let ended = || {
            let reason = format!("needs a new login: {why}, and it cannot be renewed");
            account.login_required(&reason)
        };
        let Some(refresh_token) = login.tokens.refresh_token.take() else {
            // By its time it is good, so the server has refused it.
            if !login.tokens.is_stale() && !login.record.ended {
                login.record.ended = true;
                self.save(&login).await;
            }
            return Err(ended());
        };
        let secret = account.secret_of(&login).await?;
        // A renewed token has the scopes of the token before (RFC 6749, section 6).
        let grant = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &refresh_token),
        ];
        let (web, scopes) = (account.web().await?, &login.tokens.scopes);
        let secret = secret.as_deref();
        let issued = token_endpoint::request(web, &login.record, secret, &grant, scopes).await;
        let renewed = match issued {
            Ok(mut tokens) => {
                // A new refresh token is optional (RFC 6749, section 6).
                tokens.refresh_token = tokens.refresh_token.or(Some(refresh_token));
                tokens.client_secret = login.tokens.client_secret.take();
                login.tokens = tokens;
                login.record.ended = false;
                Ok(())
            }
            Err(refused) if refused.is_invalid_grant => {
                login.record.ended = true;
                Err(ended())
            }
            Err(refused) => {
                let reason = account.redact.message(&refused.reason);
                let server = &account.server;
                let problem = format!("the token of server `{server}` cannot be renewed: {reason}");
                let advice = format!("try again later, or run `{}`", account.login_command(&[]));
                let error = AuthError::new(server, problem);
                return Err(error.advise(Remedy::LoginCommand, &advice));
            }
        };
        self.save(&login).await;
        self.adopt(Some(login)).await?;
        renewed
    }

    async fn save(&self, login: &Login) {
        let account = &self.account;
        if let Err(error) = account.store.put(login).await {
            tracing::warn!(server = account.server, %error, "a login is not saved");
        }
    }

    /// Gets a token with the client's own credentials. It is not stored.
    async fn by_credentials(&self, challenge: Option<&str>) -> Result<(), AuthError> {
        let account = &self.account;
        let lacking = || {
            account.settings("the client credentials grant needs \"clientId\" and \"clientSecret\"")
        };
        let id = account.settings.client_id.as_ref().ok_or_else(lacking)?;
        let (mut record, mut scopes) = match self.login() {
            Some(login) => {
                // The next token has the scopes of this one, and those of the challenge.
                let mut scopes = login.scopes_to_repeat();
                scopes.extend(challenged_scopes(account, challenge));
                (login.record.clone(), scopes)
            }
            None => {
                let found = discover(account, challenge).await?;
                let mut scopes = found.scopes.clone();
                // This grant has no refresh token.
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
        let issued = token_endpoint::request(web, &record, secret, &grant, &record.asked).await;
        let tokens = issued.map_err(|refused| account.exchange(refused.reason))?;
        let login = Login { record, tokens };
        self.adopt(Some(login)).await.map(drop)
    }

    /// Lets a person log in for these scopes, or without any for those that the server names. The
    /// error is `otherwise` if no page can help.
    async fn by_person(
        &self,
        waiting: &Waiting,
        scopes: Vec<String>,
        otherwise: AuthError,
    ) -> Result<(), AuthError> {
        let may_ask = self.is_persons()
            && otherwise.remedy == Remedy::Login
            && waiting.prompt == Prompt::Allowed;
        let Some(browser) = self.account.settings.browser.as_ref().filter(|_| may_ask) else {
            return Err(otherwise);
        };
        *self.pending.lock() = Some(self.awaited(&scopes));
        let done = self.by_page(browser, waiting, scopes, otherwise).await;
        *self.pending.lock() = None;
        done
    }

    async fn by_page(
        &self,
        browser: &Browser,
        waiting: &Waiting,
        scopes: Vec<String>,
        otherwise: AuthError,
    ) -> Result<(), AuthError> {
        let file = self.account.store.file();
        let _turn = browser.turn(&file).await;
        // If the login of an earlier page lacks a scope, the server will refuse it again.
        if self.adopt_newer().await.is_ok_and(|is_newer| is_newer) {
            return Ok(());
        }
        let used = self.login();
        let id = used.as_ref().map(|login| login.record.id.as_str());
        browser.check(&file, id, &scopes, waiting.since, otherwise)?;
        let made = async {
            let challenge = waiting.refused.as_ref().and_then(|it| it.challenge.clone());
            let challenge = match challenge {
                Some(challenge) => Some(challenge),
                None => probe(&self.account, self.account.url.as_str()).await?,
            };
            let mut request = LoginRequest::new(Arc::clone(&browser.opener));
            request.scopes.clone_from(&scopes);
            log_in(&self.account, &request, challenge.as_deref()).await
        };
        let made = made.await;
        let page = match &made {
            Ok(login) => PageResult::Granted(login.record.id.clone()),
            Err(error) if error.remedy == Remedy::Declined => {
                PageResult::Declined(self.declined(&scopes))
            }
            Err(error) => PageResult::Failed(error.clone()),
        };
        browser.record(&file, &scopes, page);
        self.adopt(Some(made?)).await.map(drop)
    }

    /// The error about a token without these scopes, or without scopes that the server does not
    /// name.
    fn insufficient_scope(&self, wanted: &[String]) -> AuthError {
        let server = &self.account.server;
        let mut problem = self.wants(wanted);
        let mut login = self.account.login_command(wanted);
        if wanted.is_empty() {
            problem = format!(
                "server `{server}` wants a scope that its token does not have and does not name it"
            );
            login += " --scope SCOPE";
        }
        let error = AuthError::new(server, problem);
        if self.is_persons() {
            return error.advise(Remedy::Login, &format!("run `{login}`"));
        }
        error.advise(
            Remedy::Repair,
            "write it in \"scopes\" of the server's \"oauth\", and see that the authorization \
             server grants it to the client",
        )
    }

    /// The error after a person refused the page or did not come back.
    fn declined(&self, scopes: &[String]) -> AuthError {
        let account = &self.account;
        let problem = format!(
            "{}; its page was shown without success, and is not shown again",
            self.wants(scopes)
        );
        let advice = format!("run `{}`", account.login_command(scopes));
        AuthError::new(&account.server, problem).advise(Remedy::LoginCommand, &advice)
    }

    /// The error for a call that times out while the page is open.
    fn awaited(&self, scopes: &[String]) -> AuthError {
        let account = &self.account;
        let problem = format!("{}, and the login has not come in time", self.wants(scopes));
        let advice = format!(
            "log in on the page that was shown, or run `{}`, and try again",
            account.login_command(scopes)
        );
        AuthError::new(&account.server, problem).advise(Remedy::OpenPage, &advice)
    }

    fn wants(&self, scopes: &[String]) -> String {
        let server = &self.account.server;
        match scopes {
            [] => format!("server `{server}` wants a login"),
            _ => format!("server `{server}` wants the scope {:?}", scopes.join(" ")),
        }
    }

    /// Uses the stored login from now on. True if it has a different token.
    async fn adopt_newer(&self) -> Result<bool, AuthError> {
        match self.account.store.load().await? {
            Some(login) => self.adopt(Some(login)).await,
            None => Ok(false),
        }
    }

    /// Uses this login from now on. True if it has a different token than the one before.
    async fn adopt(&self, login: Option<Login>) -> Result<bool, AuthError> {
        let before = self.header();
        if let Some(login) = &login {
            self.account.hide(login).await;
            let unfit = self.account.unfit(login);
            let is_sendable = login.tokens.header().is_some();
            let unsendable = (!is_sendable).then_some("has a token that does not fit in a header");
            if let Some(reason) = unfit.or(unsendable) {
                return Err(self.account.login_required(reason));
            }
        }
        *self.current.lock() = Some(login.map(Arc::new));
        Ok(self.differs_from(before.as_ref()))
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization")
    }
}
