//! The layers that a request passes: names, user, rate.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Extension, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, COOKIE, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use callgate_sandbox::MemoryShare;
use futures::StreamExt as _;

use super::auth::Auth;
use super::guard::Guard;
use super::newcomers::Newcomer;
use super::oauth::METADATA_PATH;
use super::refusal::HttpRefusal;
use super::users::{Lease, Users};
use crate::config::HttpConfig;
use crate::runs::Records;

/// The parts that all requests share.
pub(crate) struct Door {
    pub(crate) guard: Guard,
    pub(crate) auth: Auth,
    pub(crate) users: Arc<Users>,
    /// The records that operators reach.
    pub(crate) records: Records,
    /// Memory for the bodies of operators' requests.
    pub(crate) memory: MemoryShare,
    pub(crate) config: HttpConfig,
    /// True at the end, when requests are refused.
    pub(crate) closing: AtomicBool,
}

/// Refuses requests that name other hosts or origins than allowed.
pub(super) async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match door.guard.check(&parts) {
        Err(refused) => refused.at(parts.uri.path()),
        Ok(_) if door.closing.load(Ordering::Acquire) => {
            let close = HeaderValue::from_static("close");
            HttpRefusal::unavailable("the server is shutting down; retry later", 5)
                .with(CONNECTION, close)
                .at(parts.uri.path())
        }
        Ok(origin) => {
            // A browser sends this first, without a token.
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
    // An answer is for one user, so that shared caches must not keep it.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Allows the headers that a page of an allowed origin asks for.
fn preflight(asked: &HeaderMap) -> Response {
    let headers = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let allowed = [
        (
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, DELETE"),
        ),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            headers.unwrap_or(HeaderValue::from_static("")),
        ),
        (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
    ];
    (StatusCode::NO_CONTENT, allowed).into_response()
}

/// Admits a known user, within the rate. The request's extensions get a lease of the user, which
/// is held until the answer is sent.
pub(super) async fn admit(
    State(door): State<Arc<Door>>,
    Extension(newcomer): Extension<Arc<Newcomer>>,
    mut request: Request,
    next: Next,
) -> Response {
    let lease = match enter(&door, newcomer.address, request.headers()).await {
        Ok(lease) => lease,
        Err(refused) => return refused.at(request.uri().path()),
    };
    newcomer.settle();
    remove_secrets(request.headers_mut());
    // Streams of sessions (GET) do not delay the shutdown.
    let answering = (request.method() != Method::GET).then(|| door.users.answering.token());
    let lease = Arc::new(lease);
    request.extensions_mut().insert(Arc::clone(&lease));
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

/// Admits an operator, within the rate. The request's extensions get the operator.
pub(super) async fn admit_operator(
    State(door): State<Arc<Door>>,
    Extension(newcomer): Extension<Arc<Newcomer>>,
    mut request: Request,
    next: Next,
) -> Response {
    let operator = door.auth.operator(request.headers());
    let sender = match &operator {
        Ok(operator) => format!("operator {}", operator.name),
        Err(_) => format!("address {}", newcomer.address),
    };
    let admitted = door.users.rates.count(&sender).and(operator);
    let operator = match admitted {
        Ok(operator) => operator,
        Err(refused) => return refused.at(request.uri().path()),
    };
    newcomer.settle();
    remove_secrets(request.headers_mut());
    request.extensions_mut().insert(operator);
    let _answering = door.users.answering.token();
    next.run(request).await
}

/// Removes the secrets, which are not needed further and then cannot leak.
fn remove_secrets(headers: &mut HeaderMap) {
    for secret in [AUTHORIZATION, COOKIE] {
        headers.remove(secret);
    }
}

async fn enter(door: &Door, peer: IpAddr, headers: &HeaderMap) -> Result<Lease, HttpRefusal> {
    let identity = door.auth.identify(headers).await;
    // Only failures count for an address, because all users may come through one proxy.
    let user = identity.as_ref().ok().and_then(|it| it.user.clone());
    let sender = user.unwrap_or_else(|| format!("address {peer}"));
    door.users.rates.count(&sender)?;
    door.users.lease(&identity?)
}

/// Answers with the metadata of the protected resource (RFC 9728), without authentication.
pub(super) async fn metadata(State(door): State<Arc<Door>>, request: Request) -> Response {
    match &door.auth.resource {
        Some(resource)
            if resource.metadata_url.ends_with(request.uri().path())
                || request.uri().path() == METADATA_PATH =>
        {
            Json(resource.metadata()).into_response()
        }
        _ => nowhere(request.uri().clone()).await,
    }
}

pub(super) async fn nowhere(uri: Uri) -> Response {
    HttpRefusal::new(
        StatusCode::NOT_FOUND,
        "nothing is at this path; MCP is at /mcp, and /v1/openapi.json describes /v1",
    )
    .at(uri.path())
}

pub(super) async fn wrong_method(uri: Uri) -> Response {
    HttpRefusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this path does not support the method; the Allow header lists the supported ones",
    )
    .at(uri.path())
}
