//! Finding a server's authorization server, and whether it can be trusted with
//! a login.
//!
//! rmcp reads the documents (RFC 9728, RFC 8414, OpenID Connect), binds the
//! resource to the server's URL and the issuer to the place it was found at,
//! where it knows the form of that place's URL; so the issuer's own word counts
//! here (see [`published`]). Of several authorization servers it takes the first
//! one that it can; it is shown the configured one alone. What else it lets pass
//! is refused here: endpoints that no login may go to, and an authorization
//! server that does not say that it checks PKCE by S256.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use http::{Request, header};
use rmcp::transport::auth::{
    AuthError as RmcpError, AuthorizationManager, AuthorizationMetadata,
    AuthorizationMetadataSource, OAuthClientConfig, OAuthHttpClient, OAuthHttpClientFuture,
    OAuthHttpRequest,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::account::Account;
use super::challenge::{Challenge, is_scope};
use super::error::{AuthError, AuthErrorKind};
use super::http::Web;
use super::issuer::{is_same, published};
use super::settings::Grant;
use super::store::{ClientAuthentication, Record};
use super::tokens::{code, covers, refusal};

/// An authorization server that a login may use.
pub(super) struct Found {
    pub(super) manager: AuthorizationManager,
    pub(super) metadata: AuthorizationMetadata,
    pub(super) issuer: String,
    /// What tokens will be for.
    pub(super) resource: String,
    /// The scopes that the server names, by its challenge before its metadata.
    pub(super) scopes: Vec<String>,
    heard: Arc<Heard>,
}

impl Found {
    /// How a client that was registered just now is to show who it is, if the authorization
    /// server has said so and it is a way that a client has here.
    pub(super) fn registered_authentication(&self) -> Option<ClientAuthentication> {
        let method = self.heard.0.lock();
        match method.unwrap_or_else(PoisonError::into_inner).as_deref()? {
            "client_secret_basic" => Some(ClientAuthentication::Basic),
            "client_secret_post" => Some(ClientAuthentication::Post),
            "none" => Some(ClientAuthentication::None),
            _ => None,
        }
    }
}

/// The `token_endpoint_auth_method` of the last answer: rmcp gives no more of a registration
/// than the client's identifier and secret.
#[derive(Default)]
struct Heard(Mutex<Option<String>>);

/// The client that rmcp has.
struct Listening {
    web: Web,
    /// The issuer that is configured.
    issuer: Option<String>,
    heard: Arc<Heard>,
}

impl OAuthHttpClient for Listening {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        #[derive(Deserialize)]
        struct Registered {
            token_endpoint_auth_method: Option<String>,
        }
        async move {
            let mut answer = self.web.send(request.request).await?;
            let read = serde_json::from_slice::<Registered>(answer.body()).ok();
            let method = read.and_then(|read| read.token_endpoint_auth_method);
            let mut heard = self.heard.0.lock().unwrap_or_else(PoisonError::into_inner);
            *heard = method;
            drop(heard);
            let issuer = self.issuer.as_deref();
            if let Some(body) = issuer.and_then(|issuer| narrowed(answer.body(), issuer)) {
                *answer.body_mut() = body;
            }
            Ok(answer)
        }
        .boxed()
    }
}

/// The metadata of a resource with this authorization server alone, if it is one of those
/// that they name.
fn narrowed(body: &[u8], issuer: &str) -> Option<Vec<u8>> {
    const NAMES: &str = "authorization_servers";
    let mut metadata: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let mut named = metadata.get(NAMES)?.as_array()?.iter();
    let is_it = |named: &&Value| named.as_str().is_some_and(|named| is_same(named, issuer));
    let only = vec![named.find(is_it)?.clone()];
    metadata.insert(NAMES.to_owned(), only.into());
    // A draft's, of which rmcp would take it first.
    metadata.remove("authorization_server");
    serde_json::to_vec(&metadata).ok()
}

/// Finds the authorization server, beginning with the server's challenge if
/// there is one.
pub(super) async fn discover(
    account: &Account,
    challenge: Option<&str>,
) -> Result<Found, AuthError> {
    let unfit = |reason: String| {
        account.error(AuthErrorKind::Discovery {
            reason: account.secrets.message(&reason),
        })
    };
    let web = account.web().await?;
    web.check(&account.url)
        .map_err(|error| unfit(error.to_string()))?;
    let heard = Arc::<Heard>::default();
    let listening = Listening {
        web: web.clone(),
        issuer: account.settings.issuer.clone(),
        heard: Arc::clone(&heard),
    };
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(account.url.clone(), Arc::new(listening))
            .await
            .map_err(|error| unfit(describe(&error)))?;
    let resolved = manager.resolve_metadata_from_challenge(challenge).await;
    let resolved = resolved.map_err(|error| unfit(describe(&error)))?;
    if resolved.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        return Err(unfit(
            "it publishes no metadata of an authorization server (RFC 9728, RFC 8414)".to_owned(),
        ));
    }
    let Some(issuer) = resolved.metadata.issuer else {
        return Err(unfit("its authorization server names no issuer".to_owned()));
    };
    account.check_issuer(&issuer)?;
    let metadata = published(web, &issuer).await.map_err(unfit)?;
    let person = account.settings.grant == Grant::AuthorizationCode;
    let methods = metadata.code_challenge_methods_supported.as_deref();
    if person && !methods.is_some_and(|methods| methods.iter().any(|method| method == "S256")) {
        return Err(unfit(
            "its authorization server does not say that it checks PKCE by S256".to_owned(),
        ));
    }
    let mut endpoints = vec![&metadata.token_endpoint];
    if person {
        endpoints.push(&metadata.authorization_endpoint);
        endpoints.extend(&metadata.registration_endpoint);
    }
    for endpoint in endpoints {
        check(web, endpoint).map_err(unfit)?;
    }
    let resource = resource(&mut manager, &metadata)
        .await
        .ok_or_else(|| unfit("it does not say what its tokens are for".to_owned()))?;
    if !covers(&resource, account.url.as_str()) {
        return Err(unfit("its metadata is for another resource".to_owned()));
    }
    manager.set_metadata(metadata.clone());
    let challenge = challenge.and_then(Challenge::bearer);
    let mut scopes = challenge.map_or(Vec::new(), |challenge| challenge.scopes());
    // rmcp finds one of a challenge wherever it stands in it, in a description, say.
    if scopes.is_empty() {
        scopes = manager.select_initial_scopes(&[]).await;
        scopes.retain(|scope| is_scope(scope));
    }
    Ok(Found {
        manager,
        metadata,
        issuer,
        resource,
        scopes,
        heard,
    })
}

/// Has a login's endpoints be those that its issuer publishes.
pub(super) async fn settle(account: &Account, record: &mut Record) -> Result<(), AuthError> {
    if record.published {
        return Ok(());
    }
    let unfit = |reason: String| {
        account.error(AuthErrorKind::Discovery {
            reason: account.secrets.message(&reason),
        })
    };
    account.check_issuer(&record.issuer)?;
    let web = account.web().await?;
    let metadata = published(web, &record.issuer).await.map_err(unfit)?;
    check(web, &metadata.token_endpoint).map_err(unfit)?;
    record.revocation_endpoint = revocation(&metadata);
    record.token_endpoint = metadata.token_endpoint;
    record.published = true;
    Ok(())
}

/// Refuses an endpoint that no login may go to.
fn check(web: &Web, endpoint: &str) -> Result<(), String> {
    let checked = Url::parse(endpoint)
        .map_err(|error| error.to_string())
        .and_then(|url| web.check(&url).map_err(|error| error.to_string()));
    checked.map_err(|reason| format!("an endpoint cannot be used: {reason}"))
}

/// Where the authorization server takes tokens back, if it does.
pub(super) fn revocation(metadata: &AuthorizationMetadata) -> Option<String> {
    let url = metadata.additional_fields.get("revocation_endpoint")?;
    url.as_str().map(str::to_owned)
}

/// The challenge that the server answers a request without a token with, if it
/// does. Servers that guard their POSTs only are not seen by a GET.
pub(super) async fn probe(account: &Account, url: &str) -> Result<Option<String>, AuthError> {
    let body = br#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"callgate","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = Request::post(url)
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header(header::CONTENT_TYPE, "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "server/discover")
        .body(body.to_vec());
    let Ok(request) = request else {
        return Ok(None);
    };
    let answered = account.web().await?.challenge(request).await;
    answered.map_err(|error| {
        account.error(AuthErrorKind::Discovery {
            reason: error.to_string(),
        })
    })
}

/// How the client shows who it is, by what the authorization server takes.
pub(super) fn authentication(
    metadata: &AuthorizationMetadata,
    has_secret: bool,
) -> ClientAuthentication {
    if !has_secret {
        return ClientAuthentication::None;
    }
    let methods = metadata
        .additional_fields
        .get("token_endpoint_auth_methods_supported")
        .and_then(Value::as_array);
    let takes = |method: &str| {
        methods.is_some_and(|methods| methods.iter().any(|one| one.as_str() == Some(method)))
    };
    if takes("client_secret_post") && !takes("client_secret_basic") {
        ClientAuthentication::Post
    } else {
        ClientAuthentication::Basic
    }
}

/// Whether the metadata says so.
pub(super) fn says(metadata: &AuthorizationMetadata, what: &str) -> bool {
    metadata.additional_fields.get(what) == Some(&Value::Bool(true))
}

/// What rmcp found the resource to be. It tells only in an authorization URL,
/// so one is made that goes nowhere.
async fn resource(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
) -> Option<String> {
    let mut plain = metadata.clone();
    plain.response_types_supported = None;
    plain.code_challenge_methods_supported = None;
    plain.authorization_endpoint = plain.token_endpoint.clone();
    manager.set_metadata(plain);
    let unused = OAuthClientConfig::new("unused", "http://127.0.0.1/");
    manager.configure_client(unused).ok()?;
    let url = manager.get_authorization_url(&[]).await.ok()?;
    parameter(&url, "resource")
}

/// A parameter of a URL's query.
pub(super) fn parameter(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let mut pairs = url.query_pairs();
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// What rmcp says of a failure, in words that hold nothing of an answer's body
/// but names of servers, which cannot pass for lines of ours.
pub(super) fn describe(error: &RmcpError) -> String {
    let said = told(error);
    let mut described = String::with_capacity(said.len());
    for character in said.chars() {
        match character.is_control() {
            true => described.extend(character.escape_default()),
            false => described.push(character),
        }
    }
    described
}

fn told(error: &RmcpError) -> String {
    let origin = |url: &Url| url.origin().ascii_serialization();
    match error {
        RmcpError::DiscoveryRequestFailed { url, source } => {
            format!("the metadata at {} cannot be had: {source}", origin(url))
        }
        RmcpError::ProtectedResourceMetadataInvalid { url, reason } => {
            format!("the metadata at {} cannot be used: {reason}", origin(url))
        }
        RmcpError::AuthorizationServerMismatch {
            expected_issuer,
            received_issuer,
        } => format!("the issuer is {received_issuer:?}, and it should be {expected_issuer:?}"),
        RmcpError::AuthorizationServerMissingIssuer { expected_issuer } => {
            format!("the issuer {expected_issuer:?} is not named where it has to be")
        }
        RmcpError::AuthorizationServersUnavailable {
            authorization_servers,
            ..
        } => format!(
            "none of its authorization servers publishes metadata that can be used: {}",
            authorization_servers.join(", ")
        ),
        // The answer's body follows the status (RFC 7591, section 3.2.2).
        RmcpError::RegistrationFailed(text) => match text.split_once(": ") {
            Some((status, body)) if status.starts_with("HTTP ") && !status.contains("error") => {
                let error = refusal(body.as_bytes());
                let error = error.map_or(String::new(), |error| format!(", {}", code(&error)));
                format!("the client could not be registered: {status}{error}")
            }
            _ => "the client could not be registered".to_owned(),
        },
        RmcpError::UrlError(error) => format!("a URL is not valid: {error}"),
        RmcpError::PkceUnsupported => {
            "its authorization server does not check PKCE by S256".to_owned()
        }
        RmcpError::NoAuthorizationSupport => "it has no authorization server".to_owned(),
        _ => "its metadata cannot be used".to_owned(),
    }
}
