//! Finds a server's authorization server, and checks whether a login may use it.
//!
//! rmcp reads the documents (RFC 9728, RFC 8414, OpenID Connect) and compares resource and
//! issuer. This module adds checks: the configured issuer is chosen from a list of several; the URL
//! of a metadata document must belong to its issuer; endpoints must be safe to use; and PKCE with
//! S256 must be announced.

use std::sync::Arc;

use futures::FutureExt as _;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Method, Request, StatusCode};
use parking_lot::Mutex;
use rmcp::transport::auth::{
    AuthError as RmcpError, AuthorizationManager, AuthorizationMetadata,
    AuthorizationMetadataSource, OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest,
    WWWAuthenticateParams,
};
use serde_json::{Map, Value};
use url::Url;

use crate::account::{Account, covers, is_same_issuer};
use crate::error::AuthError;
use crate::http::Web;
use crate::record::{ClientAuthentication, Record, is_scope};
use crate::settings::Grant;
use crate::token_endpoint::{MAX_SCOPES, error_code, scopes_in};

/// Authorization servers of a resource that are tried.
const MAX_AUTHORITIES: usize = 8;

/// An authorization server that a login may use.
pub(crate) struct Found {
    pub(crate) manager: AuthorizationManager,
    pub(crate) metadata: AuthorizationMetadata,
    pub(crate) issuer: String,
    /// The resource of the tokens.
    pub(crate) resource: String,
    /// The scopes of the server's challenge, or else of its metadata.
    pub(crate) scopes: Vec<String>,
    seen: Arc<Mutex<Seen>>,
}

/// Members of documents that rmcp reads and does not return.
#[derive(Default)]
struct Seen {
    /// The `token_endpoint_auth_method` of the client's registration.
    method: Option<String>,
    /// The `resource` of the resource's metadata.
    resource: Option<String>,
}

impl Found {
    /// The authentication of a newly registered client with a secret.
    pub(crate) fn registered_authentication(&self) -> ClientAuthentication {
        let seen = self.seen.lock();
        match seen.method.as_deref() {
            Some("client_secret_basic") => ClientAuthentication::Basic,
            Some("client_secret_post") => ClientAuthentication::Post,
            Some("none") => ClientAuthentication::None,
            _ => self.authentication(true),
        }
    }

    /// The authentication that the authorization server supports.
    pub(crate) fn authentication(&self, has_secret: bool) -> ClientAuthentication {
        let members = &self.metadata.additional_fields;
        let methods = members.get("token_endpoint_auth_methods_supported");
        let methods = methods.and_then(Value::as_array);
        let supports = |method: &str| {
            methods.is_some_and(|methods| methods.iter().any(|one| one.as_str() == Some(method)))
        };
        if !has_secret {
            ClientAuthentication::None
        } else if supports("client_secret_post") && !supports("client_secret_basic") {
            ClientAuthentication::Post
        } else {
            ClientAuthentication::Basic
        }
    }

    /// True if a member of the metadata is `true`.
    pub(crate) fn supports(&self, name: &str) -> bool {
        self.metadata.additional_fields.get(name) == Some(&Value::Bool(true))
    }

    /// The record of a login by this client, still without an identifier.
    pub(crate) fn record(
        &self,
        account: &Account,
        client_id: String,
        client: ClientAuthentication,
    ) -> Record {
        let revocation_endpoint = self.metadata.additional_fields.get("revocation_endpoint");
        Record {
            server: account.server.clone(),
            url: account.url.to_string(),
            resource: self.resource.clone(),
            issuer: self.issuer.clone(),
            token_endpoint: self.metadata.token_endpoint.clone(),
            revocation_endpoint: revocation_endpoint
                .and_then(Value::as_str)
                .map(str::to_owned),
            id: String::new(),
            client,
            client_id,
            asked: Vec::new(),
            approved: None,
            in_keyring: false,
            ended: false,
        }
    }
}

/// The HTTP client for rmcp, which also reads and corrects the documents.
struct RmcpClient {
    web: Web,
    /// The configured issuer.
    issuer: Option<String>,
    seen: Arc<Mutex<Seen>>,
}

impl OAuthHttpClient for RmcpClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        async move {
            let is_document = request.request.method() == Method::GET;
            let mut answer = self.web.send(request.request).await?;
            let Ok(mut body) = serde_json::from_slice::<Map<String, Value>>(answer.body()) else {
                return Ok(answer);
            };
            let text = |name: &str| body.get(name)?.as_str().map(str::to_owned);
            let mut seen = self.seen.lock();
            seen.method = text("token_endpoint_auth_method").or(seen.method.take());
            let is_of_resource = is_document && !body.contains_key("token_endpoint");
            if let Some(resource) = text("resource").filter(|_| is_of_resource) {
                seen.resource = Some(resource);
            }
            drop(seen);
            if is_of_resource
                && answer.status() == StatusCode::OK
                && let Some(member) = mistyped_member(&body)
            {
                return Err(format!("its {member:?} has the wrong type (RFC 9728)").into());
            }
            let names = ["authorization_servers", "authorization_server"];
            if names.iter().any(|name| body.contains_key(*name)) {
                narrow(&mut body, self.issuer.as_deref());
                *answer.body_mut() = serde_json::to_vec(&body)?;
            }
            Ok(answer)
        }
        .boxed()
    }
}

/// The first member of a resource's metadata with a wrong type. rmcp would ignore the whole
/// document, as if the resource had none.
fn mistyped_member(metadata: &Map<String, Value>) -> Option<&'static str> {
    let is_wrong = |name: &&str| match (metadata.get(*name), *name) {
        (None, _) => false,
        (Some(resource), "resource") => !resource.is_string(),
        (Some(Value::Null), _) => false,
        (Some(Value::Array(texts)), "scopes_supported") => !texts.iter().all(Value::is_string),
        (Some(list), _) => !list.is_array(),
    };
    let names = ["resource", "authorization_servers", "scopes_supported"];
    names.into_iter().find(is_wrong)
}

/// Reduces a resource's metadata to usable authorization servers: those with metadata that rmcp
/// compares with the URL, and of these only the configured issuer, if it is listed.
fn narrow(metadata: &mut Map<String, Value>, issuer: Option<&str>) {
    // rmcp prefers this member of a draft.
    let mut all: Vec<Value> = metadata
        .remove("authorization_server")
        .into_iter()
        .collect();
    if let Some(Value::Array(more)) = metadata.remove("authorization_servers") {
        all.extend(more);
    }
    all.retain(|server| server.as_str().is_some_and(has_known_issuer));
    if let Some(issuer) = issuer
        && let Some(at) = all.iter().position(|server| {
            server
                .as_str()
                .is_some_and(|server| is_same_issuer(server, issuer))
        })
    {
        all = vec![all.swap_remove(at)];
    }
    all.truncate(MAX_AUTHORITIES);
    metadata.insert("authorization_servers".to_owned(), all.into());
}

/// True if rmcp can derive the required issuer from this URL of an authorization server. For any
/// other URL it would accept every issuer, and a server could have the code of a different issuer's
/// login sent to its own token endpoint.
fn has_known_issuer(server: &str) -> bool {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    // rmcp resolves a relative URL against the URL of the resource's metadata.
    let path = Url::parse(server).map_or_else(|_| server.to_owned(), |url| url.path().to_owned());
    let is_below = |place: &str| {
        let rest = path.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !path.contains("/.well-known") || is_below(OAUTH) || is_below(OPENID) || path.ends_with(OPENID)
}

/// Finds the authorization server, from the server's challenge if any.
pub(crate) async fn discover(
    account: &Account,
    challenge: Option<&str>,
) -> Result<Found, AuthError> {
    let unusable = |reason: &str| Err(account.discovery(reason));
    let failed = |error| account.discovery(describe(&error));
    let web = account.web().await?;
    web.check(&account.url)
        .map_err(|error| account.discovery(error))?;
    let seen = Arc::<Mutex<Seen>>::default();
    let client = Arc::new(RmcpClient {
        web: web.clone(),
        issuer: account.settings.issuer.clone(),
        seen: Arc::clone(&seen),
    });
    let url = account.url.clone();
    let manager = AuthorizationManager::new_with_oauth_http_client(url, client).await;
    let mut manager = manager.map_err(failed)?;
    let resolved = manager
        .resolve_metadata_from_challenge(challenge)
        .await
        .map_err(failed)?;
    if resolved.source == AuthorizationMetadataSource::LegacyEndpointFallback {
        return unusable(
            "it publishes no metadata of an authorization server (RFC 9728, RFC 8414)",
        );
    }
    let metadata = resolved.metadata;
    let Some(issuer) = metadata.issuer.clone() else {
        return unusable("its authorization server names no issuer");
    };
    account.check_issuer(&issuer)?;
    let is_persons = account.settings.grant == Grant::AuthorizationCode;
    let methods = metadata.code_challenge_methods_supported.iter().flatten();
    if is_persons && !methods.into_iter().any(|method| method == "S256") {
        return unusable("its authorization server does not say that it checks PKCE by S256");
    }
    check_endpoints(account, web, &metadata)?;
    // rmcp has compared the resource with the URL. Without metadata, the URL is the resource.
    let published = seen.lock().resource.take();
    let resource = published.unwrap_or_else(|| account.url.to_string());
    if !covers(&resource, account.url.as_str()) {
        return unusable("its metadata is for a different resource");
    }
    manager.set_metadata(metadata.clone());
    let mut scopes = challenged_scopes(account, challenge);
    if scopes.is_empty() {
        scopes = manager.select_initial_scopes(&[]).await;
        scopes.retain(|scope| is_scope(scope));
        scopes.truncate(MAX_SCOPES);
    }
    Ok(Found {
        manager,
        metadata,
        issuer,
        resource,
        scopes,
        seen,
    })
}

/// Refuses endpoints that a login must not use.
fn check_endpoints(
    account: &Account,
    web: &Web,
    metadata: &AuthorizationMetadata,
) -> Result<(), AuthError> {
    let mut endpoints = vec![&metadata.token_endpoint];
    if account.settings.grant == Grant::AuthorizationCode {
        endpoints.push(&metadata.authorization_endpoint);
        endpoints.extend(&metadata.registration_endpoint);
    }
    for endpoint in endpoints {
        let url = Url::parse(endpoint).map_err(|error| error.to_string());
        let failed =
            |reason: String| account.discovery(format!("an endpoint cannot be used: {reason}"));
        url.and_then(|url| web.check(&url)).map_err(failed)?;
    }
    Ok(())
}

/// Requests the server's challenge, without a token. A POST, because some servers allow other
/// requests without a token.
pub(crate) async fn probe(account: &Account, url: &str) -> Result<Option<String>, AuthError> {
    let body = br#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"callgate","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = Request::post(url)
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "server/discover")
        .body(body.to_vec());
    let Ok(request) = request else {
        return Ok(None);
    };
    let response = account.web().await?.open(request).await;
    let response = response.map_err(|error| account.discovery(error))?;
    if response.status() != StatusCode::UNAUTHORIZED {
        return Ok(None);
    }
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let values: Vec<_> = values.filter_map(|value| value.to_str().ok()).collect();
    Ok((!values.is_empty()).then(|| values.join(", ")))
}

/// The scopes in a challenge.
pub(crate) fn challenged_scopes(account: &Account, challenge: Option<&str>) -> Vec<String> {
    let challenge = challenge.unwrap_or_default();
    let scope = WWWAuthenticateParams::parse(challenge, &account.url).scope;
    scopes_in(&scope.unwrap_or_default())
}

/// An error of rmcp in a form that is safe to show: it repeats only names of servers from an
/// answer's body, and has no control characters.
pub(crate) fn describe(error: &RmcpError) -> String {
    let text = match error {
        RmcpError::DiscoveryRequestFailed { url, source } => {
            let origin = url.origin().ascii_serialization();
            format!("the metadata at {origin} cannot be fetched: {source}")
        }
        // The answer's body follows the status (RFC 7591, section 3.2.2).
        RmcpError::RegistrationFailed(text) => match text.split_once(": ") {
            Some((status, body)) if status.starts_with("HTTP ") && !status.contains("error") => {
                let code = error_code(body.as_bytes());
                let code = code.map_or(String::new(), |code| format!(", {code}"));
                format!("the client could not be registered: {status}{code}")
            }
            _ => "the client could not be registered".to_owned(),
        },
        RmcpError::ProtectedResourceMetadataInvalid { .. }
        | RmcpError::AuthorizationServerMismatch { .. }
        | RmcpError::AuthorizationServerMissingIssuer { .. }
        | RmcpError::AuthorizationServersUnavailable { .. }
        | RmcpError::NoAuthorizationSupport => error.to_string(),
        _ => "its metadata cannot be used".to_owned(),
    };
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistyped_resource_metadata_is_detected() {
        for (metadata, expected) in [
            (
                json!({ "resource": "https://a", "authorization_servers": ["https://b", 7] }),
                None,
            ),
            (
                json!({ "authorization_servers": null, "scopes_supported": null }),
                None,
            ),
            (json!({ "resource": 7 }), Some("resource")),
            (json!({ "resource": null }), Some("resource")),
            (json!({ "resource": ["https://a"] }), Some("resource")),
            (
                json!({ "authorization_servers": "https://b" }),
                Some("authorization_servers"),
            ),
            (
                json!({ "resource": "https://a", "scopes_supported": ["a", 7] }),
                Some("scopes_supported"),
            ),
        ] {
            let members = metadata.as_object().expect("an object");
            assert_eq!(mistyped_member(members), expected, "{metadata}");
        }
    }

    #[test]
    fn unusable_authorization_servers_are_removed() {
        let check = |metadata: Value, issuer: Option<&str>, expected: &[&str]| {
            let mut metadata = metadata.as_object().expect("an object").clone();
            narrow(&mut metadata, issuer);
            assert_eq!(
                Value::Object(metadata),
                json!({ "authorization_servers": expected })
            );
        };
        let several = json!({ "authorization_server": "https://a", "authorization_servers": ["https://b/", 7] });
        check(several.clone(), None, &["https://a", "https://b/"]);
        check(several.clone(), Some("https://b"), &["https://b/"]);
        check(several, Some("https://c"), &["https://a", "https://b/"]);
        for bound in [
            "https://a/.well-known/oauth-authorization-server",
            "https://a/.well-known/openid-configuration/tenant",
            "https://a/tenant/.well-known/openid-configuration",
        ] {
            check(json!({ "authorization_servers": [bound] }), None, &[bound]);
        }
        for unbound in [
            "https://a/.well-known/impostor",
            "https://a/x/.well-known/oauth-authorization-server",
            "https://a/.well-known/oauth-authorization-serverx",
            "/.well-known/impostor",
        ] {
            check(json!({ "authorization_servers": [unbound] }), None, &[]);
        }
    }
}
