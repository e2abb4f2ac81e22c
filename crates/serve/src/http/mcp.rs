//! `/mcp`: MCP's streamable HTTP, of both eras.

use std::str::FromStr as _;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use callgate::config::ToolMode;
use futures::StreamExt as _;
use rmcp::model::InitializeRequestParams;
use serde::Deserialize;
use serde_json::Value;

use super::body;
use super::door::{Admitted, Door};
use super::refusal::Refusal;
use super::users::User;
use crate::envelope::{Envelope, Malformed, NOT_ITS_FORM, envelope};
use crate::face;

const MODE_HEADER: &str = "x-mcp-tool-mode";
const MODE_QUERY: &str = "tool_mode";
const SESSION_HEADER: &str = "mcp-session-id";
/// From this revision on there are no sessions.
const STATELESS: &str = "2026-07-28";
/// The most of rmcp's own refusal that is read.
const MAX_REFUSAL: usize = 4096;

/// Answers one request.
pub(crate) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(Admitted(lease)): Extension<Admitted>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let user = &lease.user;
    match handle(&door, user, parts, body).await {
        Ok(response) => response,
        Err(refused) => refused.response(),
    }
}

async fn handle(door: &Door, user: &User, parts: Parts, body: Body) -> Result<Response, Refusal> {
    let session = known_mode(&parts).and_then(|()| session(&parts));
    let mut id = Value::Null;
    let mut asked = None;
    let body = match parts.method {
        Method::POST => {
            body::json_wanted(&parts.headers)?;
            let bytes = body::read(
                &parts.headers,
                body,
                door.config.max_body,
                door.config.request_time,
            )
            .await?;
            let envelope = envelope(body::BODY, &bytes)?;
            id = envelope.id.clone().unwrap_or_default();
            let session = session.map_err(|refused| refused.to(id.clone()))?;
            if !is_stateless(&parts) && envelope.method.as_deref() == Some("initialize") {
                begins(&bytes).map_err(|misfit| Refusal::from(misfit).to(id.clone()))?;
            }
            fitting(user, &envelope, session).map_err(|refused| refused.to(id.clone()))?;
            if let (Some(session), Some(id), Some(_)) = (session, &envelope.id, &envelope.method) {
                asked = Some(user.sessions.unanswered.ask(session, id)?);
            }
            if is_stateless(&parts) && envelope.method.as_deref() == Some("tools/call") {
                // What a tool has mirrored in headers is looked up at once.
                let made = user.made_gate().await;
                made.map_err(|refused| refused.to(id.clone()))?;
            }
            Body::from(bytes)
        }
        _ => {
            let session = session?;
            if parts.method == Method::DELETE && session.is_some_and(|it| !user.sessions.has(it)) {
                return Err(no_session());
            }
            Body::empty()
        }
    };
    let answered = user.mcp.handle(Request::from_parts(parts, body));
    let response = tokio::select! {
        response = answered => response.map(Body::new),
        () = user.ended() => return Err(user.gone().to(id)),
    };
    // A stream of a session begins before there is an answer.
    if user.failed() {
        return Err(user.gone().to(id));
    }
    let response = in_our_words(response, id).await?;
    Ok(match asked {
        None => response,
        Some(asked) => response.map(|body| {
            Body::from_stream(body.into_data_stream().map(move |chunk| {
                let _until_then = &asked;
                chunk
            }))
        }),
    })
}

/// Refuses a word that is no mode before anything is begun for it.
fn known_mode(parts: &Parts) -> Result<(), Refusal> {
    let mut words = Vec::new();
    for value in parts.headers.get_all(MODE_HEADER) {
        words.push(value.to_str().unwrap_or("?").to_owned());
    }
    if words.len() > 1 {
        return Err(Refusal::bad("the request has two X-MCP-Tool-Mode headers"));
    }
    let query = parts.uri.query().unwrap_or_default();
    let query = url::form_urlencoded::parse(query.as_bytes());
    let query: Vec<String> = query
        .filter(|(name, _)| name == MODE_QUERY)
        .map(|(_, value)| value.into_owned())
        .collect();
    if query.len() > 1 {
        return Err(Refusal::bad("the request has tool_mode twice"));
    }
    words.extend(query);
    for word in words {
        ToolMode::from_str(&word).map_err(|unknown| Refusal::bad(unknown.to_string()))?;
    }
    Ok(())
}

/// Whether a request is of a revision without sessions.
fn is_stateless(parts: &Parts) -> bool {
    let version = parts.headers.get("mcp-protocol-version");
    version
        .and_then(|value| value.to_str().ok())
        .is_some_and(|version| version >= STATELESS)
}

/// The session that a request names, if it is of a revision that has sessions.
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

/// Refuses what would begin a session if it had the form of that: the transport takes
/// it for a request of a session that there is not.
fn begins(bytes: &[u8]) -> Result<(), Malformed> {
    #[derive(Deserialize)]
    struct Message {
        params: Option<Value>,
    }
    let Message { params } =
        serde_json::from_slice(bytes).map_err(|_unread| Malformed::new(NOT_ITS_FORM))?;
    let reads = InitializeRequestParams::deserialize(params.as_ref().unwrap_or(&Value::Null));
    match face::misfit("initialize", params.as_ref()) {
        Some(misfit) if reads.is_err() => Err(Malformed::unfit(misfit)),
        _ => Ok(()),
    }
}

/// Whether there is a session for the message, or room for a new one.
fn fitting(user: &User, envelope: &Envelope, session: Option<&str>) -> Result<(), Refusal> {
    match session {
        Some(session) if !user.sessions.has(session) => Err(no_session()),
        None if envelope.method.as_deref() == Some("initialize") && !user.sessions.has_room() => {
            Err(Refusal::unavailable(
                "there are as many sessions as there may be; end one, or come again later",
                30,
            ))
        }
        _ => Ok(()),
    }
}

fn no_session() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "there is no such session, or it has ended; begin one with initialize",
    )
}

/// The transport's own refusals, as JSON-RPC errors; what went wrong inside is
/// for the log.
async fn in_our_words(response: Response, id: Value) -> Result<Response, Refusal> {
    let status = response.status();
    let is_json = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return Ok(response);
    }
    let allow = response.headers().get(ALLOW).cloned();
    let text = to_bytes(response.into_body(), MAX_REFUSAL)
        .await
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let refused = match status {
        StatusCode::NOT_FOUND => no_session(),
        // The Content-Type was looked at before.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Refusal::bad(NOT_ITS_FORM),
        status if status.is_server_error() => {
            tracing::error!(
                status = status.as_u16(),
                text,
                "a request could not be answered"
            );
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
