//! `/mcp`: MCP's streamable HTTP, in sessions and in stateless requests.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use rmcp::model::InitializeRequestParams;
use serde::Deserialize;
use serde_json::Value;

use super::body;
use super::door::{Admitted, Door};
use super::refusal::Refusal;
use super::users::User;
use crate::face;
use crate::message::{Malformed, NOT_ITS_FORM, envelope};

const SESSION_HEADER: &str = "mcp-session-id";
/// From this revision on there are no sessions.
const STATELESS: &str = "2026-07-28";
/// The most bytes of rmcp's own refusal that are read.
const MAX_REFUSAL: usize = 4096;

/// Answers one request.
pub(crate) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(Admitted(lease)): Extension<Admitted>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let answered = handle(&door, &lease.user, parts, body).await;
    answered.unwrap_or_else(Refusal::response)
}

async fn handle(door: &Door, user: &User, parts: Parts, body: Body) -> Result<Response, Refusal> {
    let mode = face::mode_of_request(&parts).map_err(Refusal::bad);
    let session = mode.and_then(|_| session(&parts));
    let (id, bytes) = if parts.method == Method::POST {
        body::expect_json(&parts.headers)?;
        let (most, time) = (door.config.max_body, door.config.request_time);
        let bytes = body::read(&parts.headers, body, most, time).await?;
        (check(user, &parts, session, &bytes).await?, bytes)
    } else {
        let session = session?;
        if parts.method == Method::DELETE && session.is_some_and(|it| !user.sessions.has(it)) {
            return Err(no_session());
        }
        (Value::Null, Bytes::new())
    };
    let answered = user
        .mcp
        .handle(Request::from_parts(parts, Body::from(bytes)));
    let response = tokio::select! {
        response = answered => response.map(Body::new),
        () = user.ended() => return Err(user.gone().to(id)),
    };
    // A session's stream begins before there is an answer.
    if user.failed() {
        return Err(user.gone().to(id));
    }
    reworded(response, id).await
}

/// Checks a message, and that there is a session for it, or room for a new one. Returns its `id`.
async fn check(
    user: &User,
    parts: &Parts,
    session: Result<Option<&str>, Refusal>,
    bytes: &[u8],
) -> Result<Value, Refusal> {
    let envelope = envelope(body::BODY, bytes)?;
    let id = envelope.id.unwrap_or_default();
    let with_id = |refused: Refusal| refused.to(id.clone());
    let session = session.map_err(with_id)?;
    let method = envelope.method.as_deref();
    let is_initialize = method == Some("initialize");
    if is_initialize && !is_stateless(parts) {
        check_initialize(bytes).map_err(|unfit| with_id(unfit.into()))?;
    }
    match session {
        Some(session) if !user.sessions.has(session) => return Err(with_id(no_session())),
        None if is_initialize && !user.sessions.has_room() => {
            let full = "the limit on sessions is reached; end one, or come again later";
            return Err(with_id(Refusal::unavailable(full, 30)));
        }
        _ => {}
    }
    if method == Some("tools/call") && is_stateless(parts) {
        // rmcp looks the tool up at once, for arguments that are repeated in headers.
        user.made_gate().await.map_err(with_id)?;
    }
    Ok(id)
}

/// True if a request is of a revision without sessions.
fn is_stateless(parts: &Parts) -> bool {
    let version = parts.headers.get("mcp-protocol-version");
    let version = version.and_then(|value| value.to_str().ok());
    version.is_some_and(|version| version >= STATELESS)
}

/// The session that a request names, if its revision has sessions.
fn session(parts: &Parts) -> Result<Option<&str>, Refusal> {
    if is_stateless(parts) {
        return Ok(None);
    }
    let mut named = parts.headers.get_all(SESSION_HEADER).iter();
    let session = named.next().map(|value| value.to_str().ok());
    match (session, named.next()) {
        (None, _) => Ok(None),
        (Some(Some(session)), None) => Ok(Some(session)),
        _ => Err(Refusal::bad(
            "the Mcp-Session-Id header is not one session's id",
        )),
    }
}

/// Refuses an `initialize` of the wrong form: rmcp would look for its session.
fn check_initialize(bytes: &[u8]) -> Result<(), Malformed> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(rename = "params")]
        _params: InitializeRequestParams,
    }
    let read = serde_json::from_slice::<Message>(bytes);
    read.map(drop)
        .map_err(|_unfit| Malformed::unfit(NOT_ITS_FORM))
}

fn no_session() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "there is no such session, or it has ended; begin one with initialize",
    )
}

/// Turns rmcp's own refusals into JSON-RPC errors. Internal errors are logged.
async fn reworded(response: Response, id: Value) -> Result<Response, Refusal> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return Ok(response);
    }
    let allow = response.headers().get(ALLOW).cloned();
    let text = to_bytes(response.into_body(), MAX_REFUSAL).await;
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
    let refused = match status {
        StatusCode::NOT_FOUND => no_session(),
        // The Content-Type is JSON, as was checked.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Refusal::bad(NOT_ITS_FORM),
        status if status.is_server_error() => {
            let code = status.as_u16();
            tracing::error!(status = code, text, "a request could not be answered");
            Refusal::new(status, "this server could not answer")
        }
        status => Refusal::new(status, text),
    };
    let refused = refused.to(id);
    Err(match allow {
        Some(allow) => refused.with(ALLOW, allow),
        None => refused,
    })
}
