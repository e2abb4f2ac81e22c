//! A person's login: the authorization code grant with PKCE, in a browser.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::auth::{
    AuthError as RmcpError, InMemoryStateStore, OAuthClientConfig, StateStore as _,
};
use url::Url;
use uuid::Uuid;

use crate::account::{Account, is_same_issuer};
use crate::browser::{LoginPage, OpenUrl};
use crate::discovery::{Found, describe, discover};
use crate::error::{AuthError, Remedy, auth_command};
use crate::record::{ClientAuthentication, Login, is_scope};
use crate::redirect::{Callback, Redirect};
use crate::token_endpoint::{self, shown_code, unfit};

/// The client's name in a registration.
const CLIENT_NAME: &str = "Callgate";
/// The person's time limit.
const PATIENCE: Duration = Duration::from_secs(300);
/// Bytes of a client's identifier from a registration.
const MAX_CLIENT_ID: usize = 2_048;
/// The scope that some authorization servers require for a refresh token.
pub(crate) const OFFLINE: &str = "offline_access";

/// A login to make.
#[derive(Clone)]
#[non_exhaustive]
pub struct LoginRequest {
    /// Scopes to request, in addition to the configured ones and those of the current login.
    /// Default: none; if none are configured either, those that the server names.
    pub scopes: Vec<String>,
    /// Shows the login's page to the person.
    pub browser: Arc<dyn OpenUrl>,
}

impl LoginRequest {
    /// A login for the scopes that the server names.
    pub fn new(browser: Arc<dyn OpenUrl>) -> Self {
        Self {
            scopes: Vec::new(),
            browser,
        }
    }
}

/// Lets a person log in, and stores the login.
pub(crate) async fn log_in(
    account: &Account,
    request: &LoginRequest,
    challenge: Option<&str>,
) -> Result<Login, AuthError> {
    account.store.check_folder().await?;
    let mut found = discover(account, challenge).await?;
    let redirect = Redirect::listen(account.settings.redirect_port).await;
    let redirect = redirect.map_err(|error| {
        account.exchange(format!("no port on 127.0.0.1 to come back to: {error}"))
    })?;
    let redirect_uri = redirect.uri();
    let before = scopes_before(account).await;
    let asked = scopes(account, &found, &request.scopes, before)?;
    let client = client(account, &mut found, &redirect_uri, &asked).await?;
    let started = start(account, &mut found, &asked).await?;
    let page = LoginPage {
        server: account.server.clone(),
        url: started.url,
        issuer: found.issuer.clone(),
    };
    // With a second `redirect_uri`, a code of a different issuer could come back with any `iss`.
    if has_repeated_parameter(&page.url) {
        return Err(account.exchange("the URL of its page has a parameter twice"));
    }
    let bond = bond(account, &found, request, &page).await?;
    let callback = callback(account, request, redirect, &page, &started.state).await?;
    let code = code(account, &page, &bond, callback)?;
    account.redact.learn("authorization code", &code).await;

    let mut record = found.record(account, client.id, client.authentication);
    record.id = Uuid::new_v4().simple().to_string();
    record.asked = asked;
    if bond == Bond::Approved {
        record.approved = Some(page.url.origin().ascii_serialization());
    }
    let grant = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect_uri),
        ("code_verifier", &started.verifier),
    ];
    let (web, secret) = (account.web().await?, client.secret.as_deref());
    let issued = token_endpoint::request(web, &record, secret, &grant, &record.asked).await;
    let mut tokens = issued.map_err(|refused| account.exchange(refused.reason))?;
    tokens.client_secret = client.secret.filter(|_| client.is_new);
    let mut login = Login { record, tokens };
    account.hide(&login).await;
    let _lock = account.store.lock().await?;
    account.store.create(&mut login).await?;
    Ok(login)
}

/// A login whose page was not shown yet.
struct Started {
    url: Url,
    state: String,
    /// The verifier of PKCE.
    verifier: String,
}

async fn start(
    account: &Account,
    found: &mut Found,
    scopes: &[String],
) -> Result<Started, AuthError> {
    let states = InMemoryStateStore::new();
    found.manager.set_state_store(states.clone());
    let words: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let url = found.manager.get_authorization_url(&words).await;
    let url = url.map_err(|error| account.exchange(describe(&error)))?;
    let url = Url::parse(&url).map_err(|error| account.exchange(error.to_string()))?;
    let mut parameters = url.query_pairs();
    let state = parameters.find(|(name, _)| name == "state");
    let state = state.map_or(String::new(), |(_, state)| state.into_owned());
    let stored = states.load(&state).await.ok().flatten();
    let stored = stored.ok_or_else(|| account.exchange("there is no state"))?;
    Ok(Started {
        url,
        state,
        verifier: stored.pkce_verifier,
    })
}

/// The evidence that a login's page belongs to its issuer. A server could name its own issuer and
/// the page of an honest one, to have the code of that login sent to itself.
#[derive(PartialEq, Eq)]
enum Bond {
    /// Both have the same origin, or the configuration names the issuer.
    Known,
    /// A person has approved the two.
    Approved,
    /// The browser must come back with the issuer's name.
    Named,
}

async fn bond(
    account: &Account,
    found: &Found,
    request: &LoginRequest,
    page: &LoginPage,
) -> Result<Bond, AuthError> {
    if found.supports("authorization_response_iss_parameter_supported") {
        return Ok(Bond::Named);
    }
    if page.is_at_issuer() || account.settings.issuer.is_some() {
        return Ok(Bond::Known);
    }
    let origin = page.url.origin().ascii_serialization();
    let before = account.store.record().await;
    if before.is_some_and(|before| {
        before.approved == Some(origin) && is_same_issuer(&before.issuer, &page.issuer)
    }) {
        return Ok(Bond::Approved);
    }
    let approved = request.browser.approve(page).await;
    let failed = |error| account.exchange(format!("its page cannot be shown: {error}"));
    match approved.map_err(failed)? {
        Some(true) => Ok(Bond::Approved),
        Some(false) => Err(account
            .exchange(format!("{}, and that was not approved", apart(page)))
            .with(Remedy::Declined)),
        None => Ok(Bond::Named),
    }
}

fn has_repeated_parameter(url: &Url) -> bool {
    let mut names = HashSet::new();
    !url.query_pairs().all(|(name, _)| names.insert(name))
}

/// Says that a page is not at its issuer.
fn apart(page: &LoginPage) -> String {
    let (host, issuer) = (page.url.authority(), &page.issuer);
    format!("its page is at {host:?} and its issuer is {issuer:?}")
}

/// Shows the page, and waits until the browser comes back.
async fn callback(
    account: &Account,
    request: &LoginRequest,
    redirect: Redirect,
    page: &LoginPage,
    state: &str,
) -> Result<Callback, AuthError> {
    let opened = async {
        match request.browser.open(page).await {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    };
    tokio::select! {
        callback = redirect.callback(state) => Ok(callback),
        error = opened => {
            let reason = format!("its page cannot be shown: {error}");
            Err(account.exchange(reason))
        }
        () = tokio::time::sleep(PATIENCE) => {
            let seconds = PATIENCE.as_secs();
            let reason = format!("the browser did not come back within {seconds} s");
            Err(account.exchange(reason).with(Remedy::Declined))
        }
    }
}

struct Client {
    id: String,
    authentication: ClientAuthentication,
    secret: Option<String>,
    /// True for a client that was registered by this login.
    is_new: bool,
}

/// The client for a login, in the order of MCP: a configured one, a metadata document, a
/// registration.
async fn client(
    account: &Account,
    found: &mut Found,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<Client, AuthError> {
    let Some((id, secret)) = known_client(account, found).await? else {
        return register(account, found, redirect_uri, scopes).await;
    };
    let config = OAuthClientConfig::new(&id, redirect_uri);
    let configured = found.manager.configure_client(config);
    configured.map_err(|error| account.exchange(describe(&error)))?;
    Ok(Client {
        id,
        authentication: found.authentication(secret.is_some()),
        secret,
        is_new: false,
    })
}

/// The identifier and the secret of a configured client, or the URL of a metadata document.
async fn known_client(
    account: &Account,
    found: &Found,
) -> Result<Option<(String, Option<String>)>, AuthError> {
    let settings = &account.settings;
    match (&settings.client_id, &settings.client_metadata_url) {
        (Some(id), _) => {
            account.check_client(id, &found.issuer).await?;
            let secret = account.client_secret(&found.issuer).await?;
            Ok(Some((id.clone(), secret)))
        }
        (None, Some(url)) if found.supports("client_id_metadata_document_supported") => {
            Ok(Some((url.clone(), None)))
        }
        _ => Ok(None),
    }
}

async fn register(
    account: &Account,
    found: &mut Found,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<Client, AuthError> {
    if found.metadata.registration_endpoint.is_none() {
        return Err(account.settings(
            "the authorization server registers no clients by itself; register one there and \
             write its \"clientId\" (and \"clientSecret\")",
        ));
    }
    let words: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let manager = &mut found.manager;
    let mut registered = manager
        .register_client(CLIENT_NAME, redirect_uri, &words)
        .await;
    // Some authorization servers register no client for the scopes of a resource (RFC 7591,
    // section 2). The login requests the scopes anyway.
    let is_bad_request = |error: &RmcpError| matches!(error, RmcpError::RegistrationFailed(text) if text.starts_with("HTTP 400 "));
    if !scopes.is_empty() && registered.as_ref().is_err_and(is_bad_request) {
        registered = manager
            .register_client(CLIENT_NAME, redirect_uri, &[])
            .await;
    }
    let registered = registered.map_err(|error| account.exchange(describe(&error)))?;
    // RFC 6749, appendix A.1, and a reasonable length.
    let is_fit = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let id = registered.client_id;
    if id.is_empty() || id.len() > MAX_CLIENT_ID || !id.bytes().all(is_fit) {
        return Err(account.exchange("the client was registered without an id that can be used"));
    }
    let secret = registered.client_secret;
    if let Some(fault) = secret.as_deref().and_then(unfit) {
        return Err(account.exchange(format!("the client was registered with a secret {fault}")));
    }
    let authentication = match &secret {
        Some(_) => found.registered_authentication(),
        None => ClientAuthentication::None,
    };
    Ok(Client {
        id,
        authentication,
        secret,
        is_new: true,
    })
}

/// The scopes of the current login, which a new login repeats so that it is not narrower.
async fn scopes_before(account: &Account) -> Vec<String> {
    match account.fitting().await {
        Ok(Some(login)) => {
            account.hide(&login).await;
            login.scopes_to_repeat()
        }
        // A login that cannot be read does not prevent a new one.
        Ok(None) | Err(_) => Vec::new(),
    }
}

/// The scopes to request. `before` are those of the current login.
fn scopes(
    account: &Account,
    found: &Found,
    wanted: &[String],
    before: Vec<String>,
) -> Result<Vec<String>, AuthError> {
    let mut asked = [wanted, &account.settings.scopes].concat();
    if let Some(unfit) = asked.iter().find(|scope| !is_scope(scope)) {
        return Err(account.settings(format!("{unfit:?} is not a scope")));
    }
    if asked.is_empty() {
        asked.clone_from(&found.scopes);
    }
    if !(asked.is_empty() && before.is_empty()) {
        let supported = found.metadata.scopes_supported.iter().flatten();
        asked.extend(supported.filter(|scope| *scope == OFFLINE).cloned());
    }
    asked.extend(before);
    dedup(&mut asked);
    Ok(asked)
}

/// Removes duplicates, without changing the order.
pub(crate) fn dedup(scopes: &mut Vec<String>) {
    let mut seen = HashSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
}

/// The code of a callback from the right issuer. Errors from other issuers are not trusted either
/// (RFC 9207, section 2.4).
fn code(
    account: &Account,
    page: &LoginPage,
    bond: &Bond,
    callback: Callback,
) -> Result<String, AuthError> {
    match callback.issuer {
        Some(issuer) if issuer != page.issuer => {
            return Err(account.exchange("the browser came back from another issuer"));
        }
        None if *bond == Bond::Named => {
            let mut reason = "the browser came back without the issuer's name".to_owned();
            if !page.is_at_issuer() {
                let login = account.login_command(&[]);
                reason += &format!(
                    ", and {}; if both belong together, write that \"issuer\" in the server's \
                     \"oauth\", or run `{login}` in a terminal",
                    apart(page)
                );
            }
            return Err(account.exchange(reason));
        }
        _ => {}
    }
    let error = match callback.outcome {
        Ok(code) => {
            let Some(fault) = unfit(&code) else {
                return Ok(code);
            };
            return Err(account.exchange(format!("the browser came back with a code {fault}")));
        }
        Err(error) => error,
    };
    let code = shown_code(&error);
    let mut reason = format!("the authorization server refused it with {code}");
    // A scope of the current login may no longer exist.
    if error == "invalid_scope" {
        let logout = auth_command("logout", &account.server, &account.settings.login_flags);
        reason +=
            &format!("; to log in without the scopes of an earlier login, run `{logout}` first");
    }
    Err(match error.as_str() {
        // RFC 6749, section 4.1.2.1: failures of the authorization server.
        "server_error" | "temporarily_unavailable" => account.exchange(reason),
        _ => account.exchange(reason).with(Remedy::Declined),
    })
}
