//! What a request goes through: names, whose it is, how many there are, and
//! then the protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::{Body, HttpBody as _};
use axum::extract::{Extension, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use callgate::config::HttpConfig;
use futures::StreamExt as _;

use super::MAX_HEAD;
use super::auth::Auth;
use super::guard::Guard;
use super::limits::{Rates, Sender};
use super::mcp;
use super::oauth::METADATA_PATH;
use super::refusal::Refusal;
use super::users::{Lease, Users};
use crate::rest;

/// What headers begin with in which arguments are mirrored (MCP 2026-07-28, "Custom
/// Headers from Tool Parameters").
const MIRRORED: &str = "mcp-param-";

/// What all requests have in common.
pub(crate) struct Door {
    pub(crate) guard: Guard,
    pub(crate) auth: Auth,
    pub(crate) rates: Rates,
    pub(crate) users: Arc<Users>,
    pub(crate) config: HttpConfig,
    /// Whether nobody is let in any more.
    pub(crate) closing: AtomicBool,
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The user of a request, in the extensions of every request that was let in.
/// It is to be held for as long as the request is answered.
#[derive(Clone)]
pub(crate) struct Admitted(pub(crate) Arc<Lease>);

/// The routes. Whatever is added to `behind` is for those who are let in, and
/// finds their [`Admitted`] in the request.
pub(crate) fn router(door: Arc<Door>) -> Router {
    let behind = Router::new()
        .route("/mcp", any(mcp::answer))
        .merge(rest::routes())
        .layer(from_fn_with_state(Arc::clone(&door), admit));
    Router::new()
        .route(METADATA_PATH, get(metadata))
        .route(&format!("{METADATA_PATH}/{{*path}}"), get(metadata))
        .merge(behind)
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(&door), guard))
        .with_state(door)
}

/// Lets nothing through that names other hosts or origins than it may.
async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let checked = fits(&parts).and_then(|()| door.guard.check(&parts));
    let mut response = match checked {
        Err(refused) => refused.at(parts.uri.path()),
        Ok(_) if door.closing.load(Ordering::Acquire) => {
            let close = HeaderValue::from_static("close");
            Refusal::unavailable("this server is about to end", 5)
                .with(CONNECTION, close)
                .at(parts.uri.path())
        }
        Ok(origin) => {
            // What a browser asks before it sends something, without a token.
            let mut response = match (&origin, &parts.method) {
                (Some(_), &Method::OPTIONS) => preflight(&parts.headers),
                _ => next.run(Request::from_parts(parts, body)).await,
            };
            if let Some(origin) = origin {
                let headers = response.headers_mut();
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                headers.append(VARY, HeaderValue::from_static("Origin"));
                let exposed = "Mcp-Session-Id, WWW-Authenticate, ETag, Retry-After";
                headers.insert(
                    ACCESS_CONTROL_EXPOSE_HEADERS,
                    HeaderValue::from_static(exposed),
                );
            }
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // What a user is told is nothing for a cache on the way.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Refuses a head that is over the limit: one that comes all at once has come to its
/// end before the transport looks how much there is.
fn fits(parts: &Parts) -> Result<(), Refusal> {
    let line = parts.method.as_str().len() + parts.uri.to_string().len() + "  HTTP/1.1\r\n".len();
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let bytes = line + headers.sum::<usize>() + "\r\n".len();
    match bytes > MAX_HEAD {
        true => Err(Refusal::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            format!("the head of the request has more than {MAX_HEAD} bytes"),
        )),
        false => Ok(()),
    }
}

/// What a page may send: the headers of the protocol, and of those that it asks for
/// the ones in which arguments are mirrored, which have names of tools' own.
fn preflight(asked: &HeaderMap) -> Response {
    let mut allowed = "Authorization, Content-Type, Accept, Last-Event-ID, If-None-Match, \
                       Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, X-MCP-Tool-Mode"
        .to_owned();
    let asked = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = asked.flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    let names = names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok());
    for name in names.filter(|name| name.as_str().starts_with(MIRRORED)) {
        allowed.push_str(", ");
        allowed.push_str(name.as_str());
    }
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, &allowed),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets in whoever may, not too often, and holds their place until they have
/// their answer.
async fn admit(
    State(door): State<Arc<Door>>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let lease = match enter(&door, peer, request.headers()).await {
        Ok(lease) => lease,
        Err(refused) => return refused.at(request.uri().path()),
    };
    // Nobody further on needs it, and so nobody can pass it on.
    for secret in [AUTHORIZATION, COOKIE] {
        request.headers_mut().remove(secret);
    }
    // A stream that waits for news of a session is nothing to wait for at the end.
    let answering = (request.method() != Method::GET).then(|| door.users.answering().token());
    let lease = Arc::new(lease);
    request
        .extensions_mut()
        .insert(Admitted(Arc::clone(&lease)));
    let response = next.run(request).await;
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        let held = (lease, answering);
        Body::from_stream(body.into_data_stream().map(move |chunk| {
            let _held = &held;
            chunk
        }))
    })
}

async fn enter(door: &Door, peer: SocketAddr, headers: &HeaderMap) -> Result<Lease, Refusal> {
    let identity = match door.auth.identify(headers).await {
        Ok(identity) => identity,
        Err(refused) => {
            // Only failures count for an address: there may be a proxy before
            // us, with everybody behind it.
            door.rates.count(&Sender::Address(peer.ip()))?;
            return Err(refused);
        }
    };
    let sender = identity
        .user
        .clone()
        .map_or(Sender::Address(peer.ip()), Sender::User);
    door.rates.count(&sender)?;
    door.users.lease(&identity)
}

/// The metadata of the protected resource (RFC 9728), for everybody.
async fn metadata(State(door): State<Arc<Door>>, request: Request) -> Response {
    match door.auth.resource() {
        Some(resource)
            if resource.metadata_url().ends_with(request.uri().path())
                || request.uri().path() == METADATA_PATH =>
        {
            Json(resource.metadata()).into_response()
        }
        _ => nowhere(request.uri().clone()).await,
    }
}

async fn nowhere(uri: Uri) -> Response {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "there is nothing at this path; MCP is at /mcp, and /v1/openapi.json says what is at /v1",
    )
    .at(uri.path())
}

async fn wrong_method(uri: Uri) -> Response {
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path does not take this method; the Allow header has those that it takes",
    )
    .at(uri.path())
}
