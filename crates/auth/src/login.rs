//! A login: the authorization code grant with PKCE, by a person's browser.

use std::collections::HashSet;
use std::time::Duration;

use rmcp::transport::auth::{
    AuthError as RmcpError, InMemoryStateStore, OAuthClientConfig, StateStore as _,
};
use url::Url;

use super::account::Account;
use super::browser::OpenUrl;
use super::challenge::is_scope;
use super::discovery::{Found, authentication, describe, discover, parameter, revocation, says};
use super::error::{AuthError, AuthErrorKind, auth_command};
use super::redirect::{Callback, Redirect};
use super::store::{ClientAuthentication, Kept, Login, Record};
use super::tokens::{self, Ask, Refused, code};

/// What the client calls itself where it registers.
const CLIENT_NAME: &str = "Callgate";
/// The longest identifier that a registration may give, in bytes.
const MAX_CLIENT_ID: usize = 2_048;
/// A refresh token, where the authorization server makes it depend on a scope.
pub(super) const OFFLINE: &str = "offline_access";

/// What to log in for.
pub(super) struct Wish<'a> {
    /// The scopes to ask for, besides those that the login before has; empty for
    /// those that are configured, or else those that the server names.
    pub(super) scopes: Vec<String>,
    /// The login that requests are made with until then, if there is one.
    pub(super) used: Option<&'a Login>,
    /// The server's challenge, if there is one.
    pub(super) challenge: Option<&'a str>,
    /// How long the person has.
    pub(super) patience: Duration,
}

/// Why no login came of it.
pub(super) enum NoLogin {
    /// A person does not want it, or the authorization server does not let them.
    Refused(AuthError),
    /// Something failed, which says nothing of another time.
    Failed(AuthError),
}

impl From<AuthError> for NoLogin {
    fn from(error: AuthError) -> Self {
        Self::Failed(error)
    }
}

impl From<NoLogin> for AuthError {
    fn from(none: NoLogin) -> Self {
        match none {
            NoLogin::Refused(error) | NoLogin::Failed(error) => error,
        }
    }
}

/// Has a person log in and gives what came of it, not kept yet.
pub(super) async fn log_in(
    account: &Account,
    browser: &dyn OpenUrl,
    wish: Wish<'_>,
) -> Result<Login, NoLogin> {
    let mut found = discover(account, wish.challenge).await?;
    let redirect = Redirect::listen(account.settings.redirect_port).await;
    let redirect = redirect.map_err(|error| {
        account.exchange(format!("no port on 127.0.0.1 to come back to: {error}"))
    })?;
    let before = account.repeated(wish.used).await;
    let Scopes { asked, repeated } = scopes(account, &found, wish.scopes, before)?;
    let redirect_uri = redirect.uri();
    let client = client(account, &mut found, &redirect_uri, &asked).await?;
    let states = InMemoryStateStore::new();
    found.manager.set_state_store(states.clone());
    let words: Vec<&str> = asked.iter().map(String::as_str).collect();
    let url = found.manager.get_authorization_url(&words).await;
    let url = url.map_err(|error| account.exchange(describe(&error)))?;
    let state = parameter(&url, "state").ok_or_else(|| account.exchange("there is no state"))?;

    let opened = async {
        match browser.open(&url).await {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    };
    let callback = tokio::select! {
        callback = redirect.callback(&state) => callback,
        error = opened => {
            let reason = format!("its page cannot be shown: {error}");
            return Err(NoLogin::Failed(account.exchange(reason)));
        }
        () = tokio::time::sleep(wish.patience) => {
            let seconds = wish.patience.as_secs();
            let reason = format!("nobody came back from the browser within {seconds} s");
            return Err(NoLogin::Refused(account.exchange(reason)));
        }
    };
    drop(redirect);
    let code = checked(account, &found, callback, &repeated)?;
    // A server must not be told of it in a message.
    account.secrets.learn("authorization code", &code);
    // rmcp has made the request, and knows the secret half of its challenge.
    let begun = states.load(&state).await.ok().flatten();
    let begun = begun.ok_or_else(|| account.exchange("what it began with is gone"))?;

    let record = Record {
        server: account.server.clone(),
        url: account.url.to_string(),
        resource: found.resource,
        issuer: found.issuer,
        token_endpoint: found.metadata.token_endpoint.clone(),
        revocation_endpoint: revocation(&found.metadata),
        published: true,
        made: tokens::now(),
        id: unique_id(),
        client: client.authentication,
        client_id: client.id,
        asked,
        kept: Kept::File,
        left_in_keyring: false,
    };
    let ask = Ask::Code {
        code: &code,
        redirect_uri: &redirect_uri,
        verifier: &begun.pkce_verifier,
        scopes: &record.asked,
    };
    let web = account.web().await?;
    let answer = tokens::request(web, &record, client.secret.as_deref(), ask).await;
    let mut tokens = answer.map_err(|refused| {
        account.exchange(match refused {
            Refused::Other(reason) => reason,
            Refused::InvalidGrant => "the authorization server refuses its own code".to_owned(),
        })
    })?;
    tokens.client_secret = client.secret.filter(|_| client.is_new);
    let login = Login { record, tokens };
    account.hide(&login);
    Ok(login)
}

struct Client {
    id: String,
    authentication: ClientAuthentication,
    secret: Option<String>,
    /// Whether it was registered just now, its secret with it.
    is_new: bool,
}

/// The client's identifier, in the order that MCP sets: one that is registered
/// already, a metadata document, a registration made now.
async fn client(
    account: &Account,
    found: &mut Found,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<Client, AuthError> {
    let settings = &account.settings;
    let failed = |error| account.exchange(describe(&error));
    if let Some(id) = &settings.client_id {
        account.check_client(id, &found.issuer).await?;
        let secret = account.client_secret(&found.issuer).await?;
        let mut config = OAuthClientConfig::new(id, redirect_uri);
        let authentication = authentication(&found.metadata, secret.is_some());
        if let Some(secret) = &secret {
            config = config.with_client_secret(secret);
        }
        found.manager.configure_client(config).map_err(failed)?;
        return Ok(Client {
            id: id.clone(),
            authentication,
            secret,
            is_new: false,
        });
    }
    if let Some(url) = &settings.client_metadata_url
        && says(&found.metadata, "client_id_metadata_document_supported")
    {
        let usable = Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.path() != "/");
        if !usable {
            return Err(account.error(AuthErrorKind::Settings {
                reason: "\"clientMetadataUrl\" must be an https URL with a path".to_owned(),
            }));
        }
        let config = OAuthClientConfig::new(url, redirect_uri);
        found.manager.configure_client(config).map_err(failed)?;
        return Ok(Client {
            id: url.clone(),
            authentication: ClientAuthentication::None,
            secret: None,
            is_new: false,
        });
    }
    if found.metadata.registration_endpoint.is_none() {
        return Err(account.error(AuthErrorKind::Settings {
            reason: "the authorization server registers no clients by itself; register one there \
                     and write its \"clientId\" (and \"clientSecret\")"
                .to_owned(),
        }));
    }
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let manager = &mut found.manager;
    let mut registered = manager
        .register_client(CLIENT_NAME, redirect_uri, &scopes)
        .await;
    // To some authorization servers the scopes of a resource are none that a client can be
    // registered for (RFC 7591, section 2); they are asked for all the same.
    if !scopes.is_empty() && registered.as_ref().is_err_and(is_bad_request) {
        registered = manager
            .register_client(CLIENT_NAME, redirect_uri, &[])
            .await;
    }
    let registered = registered.map_err(failed)?;
    if !is_client_id(&registered.client_id) {
        return Err(account.exchange("the client was registered without an id that can be used"));
    }
    let secret = registered.client_secret;
    let by_metadata = || authentication(&found.metadata, secret.is_some());
    let registered_as = found.registered_authentication();
    Ok(Client {
        id: registered.client_id,
        authentication: registered_as
            .filter(|_| secret.is_some())
            .unwrap_or_else(by_metadata),
        secret,
        is_new: true,
    })
}

/// Whether a registration was refused for what it says (RFC 7591, section 3.2.2).
fn is_bad_request(error: &RmcpError) -> bool {
    matches!(error, RmcpError::RegistrationFailed(text) if text.starts_with("HTTP 400 "))
}

/// RFC 6749, appendix A.1, and not endlessly long.
fn is_client_id(id: &str) -> bool {
    let fit = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    !id.is_empty() && id.len() <= MAX_CLIENT_ID && id.bytes().all(fit)
}

/// The scopes to ask for.
struct Scopes {
    asked: Vec<String>,
    /// Those of them that are asked for only because the login before has them.
    repeated: Vec<String>,
}

/// The scopes to ask for, in place of a login that has those of `before`.
fn scopes(
    account: &Account,
    found: &Found,
    wished: Vec<String>,
    before: Vec<String>,
) -> Result<Scopes, AuthError> {
    let mut scopes = wished;
    scopes.extend(account.settings.scopes.iter().cloned());
    if let Some(unfit) = scopes.iter().find(|scope| !is_scope(scope)) {
        return Err(account.error(AuthErrorKind::Settings {
            reason: format!("{unfit:?} is no scope"),
        }));
    }
    if scopes.is_empty() {
        scopes.clone_from(&found.scopes);
    }
    if !(scopes.is_empty() && before.is_empty()) {
        let supported = found.metadata.scopes_supported.iter().flatten();
        scopes.extend(supported.filter(|scope| *scope == OFFLINE).cloned());
    }
    let only_before = |scope: &String| !scopes.contains(scope);
    let repeated: Vec<String> = before.into_iter().filter(only_before).collect();
    scopes.extend(repeated.iter().cloned());
    let mut seen = HashSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    Ok(Scopes {
        asked: scopes,
        repeated,
    })
}

/// The code, from the right issuer. An error from another issuer than the
/// expected one says nothing either (RFC 9207, section 2.4).
fn checked(
    account: &Account,
    found: &Found,
    callback: Callback,
    repeated: &[String],
) -> Result<String, NoLogin> {
    let issuer = callback.issuer.as_deref();
    let announced = says(
        &found.metadata,
        "authorization_response_iss_parameter_supported",
    );
    match issuer {
        Some(issuer) if issuer != found.issuer => {
            let error = account.exchange("the browser came back from another issuer");
            return Err(NoLogin::Failed(error));
        }
        None if announced => {
            let error = account.exchange("the browser came back without the issuer's name");
            return Err(NoLogin::Failed(error));
        }
        _ => {}
    }
    match callback.outcome {
        Ok(code) => Ok(code),
        Err(said) => {
            let mut reason = format!("the authorization server refused it with {}", code(&said));
            // It may have given one up since.
            if said == "invalid_scope" && !repeated.is_empty() {
                reason += &format!(
                    "; it was asked for {:?}, too, because the login before has that; to log in \
                     without it, run `{}` first",
                    repeated.join(" "),
                    auth_command("logout", &account.server, &account.settings.login_flags)
                );
            }
            let error = account.exchange(reason);
            // RFC 6749, section 4.1.2.1: these say that it is not well.
            Err(match said.as_str() {
                "server_error" | "temporarily_unavailable" => NoLogin::Failed(error),
                _ => NoLogin::Refused(error),
            })
        }
    }
}

/// 128 random bits in hexadecimal. An identifier and no secret, so the random state of hash
/// tables is enough.
fn unique_id() -> String {
    use std::hash::{BuildHasher as _, RandomState};

    let half = || RandomState::new().hash_one(tokens::now());
    format!("{:016x}{:016x}", half(), half())
}
