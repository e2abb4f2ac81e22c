//! `/mcp`: MCP's streamable HTTP, in sessions and in stateless requests.

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use rmcp::model::{InitializeRequest, RequestId};
use rmcp::transport::streamable_http_server::session::SessionManager as _;

use super::accept::Form;
use super::body;
use super::door::Door;
use super::refusal::HttpRefusal;
use super::users::{Lease, User};
use crate::face;
use crate::message::{SESSION_HEADER, envelope, wrong_params_of};

/// From this revision on there are no sessions.
const STATELESS: &[u8] = b"2026-07-28";
/// The limit of rmcp's own refusals, in bytes.
const MAX_REFUSAL: usize = 4096;

pub(crate) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(lease): Extension<Arc<Lease>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let answered = handle(&door, &lease, parts, body).await;
    answered.unwrap_or_else(HttpRefusal::json_rpc)
}

async fn handle(
    door: &Door,
    lease: &Lease,
    mut parts: Parts,
    body: Body,
) -> Result<Response, HttpRefusal> {
    let (user, mut id, mut method, mut ending) = (&*lease.user, None, None, None);
    let mut bytes = Bytes::new();
    if parts.method == Method::POST {
        let read = body::read(&door.config, &user.memory, &parts.headers, body).await?;
        // rmcp holds the memory with the message.
        parts.extensions.insert(Arc::new(read.1));
        bytes = read.0;
        let envelope = envelope(body::BODY, &bytes)?;
        (id, method) = (envelope.id, envelope.method);
        let checked = check(door, user, &parts, method.as_deref(), &bytes).await;
        checked.map_err(|refused| refused.to(id.clone()))?;
    } else if parts.method == Method::DELETE
        && let Some(session) = parts.headers.get(SESSION_HEADER)
    {
        // rmcp confirms the end of sessions that do not exist.
        let session = session.to_str().unwrap_or_default().into();
        if !user.sessions.has_session(&session).await.unwrap_or(false) {
            return Err(no_session());
        }
        ending = Some(session);
    }
    let form = Form::choose(&mut parts, method.as_deref());
    let form = form.map_err(|refused| refused.to(id.clone()))?;
    let answered = user
        .mcp
        .handle(Request::from_parts(parts, Body::from(bytes.clone())));
    let response = tokio::select! {
        response = answered => response.map(Body::new),
        () = user.ended() => return Err(user.gone().to(id)),
    };
    // A session's stream begins before there is an answer.
    if user.failed() {
        return Err(user.gone().to(id));
    }
    let wrong_params = || wrong_params_of(method.as_deref().unwrap_or("the message"), &bytes);
    let mut response = reworded(response, id.clone(), wrong_params).await?;
    if let Some(session) = ending
        && response.status() == StatusCode::ACCEPTED
    {
        // No client of the session will fetch their results.
        user.service.runs.end_session(&session);
        // Clients treat 202 as a failure, and the session has ended already.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    form.convert(response).await.map_err(|lost| lost.to(id))
}

/// Checks a message, and that there is room for a session that it starts.
async fn check(
    door: &Door,
    user: &User,
    parts: &Parts,
    method: Option<&str>,
    bytes: &[u8],
) -> Result<(), HttpRefusal> {
    face::mode_of_request(parts, &user.service.options).map_err(HttpRefusal::bad)?;
    let version = parts.headers.get("mcp-protocol-version");
    match method {
        Some("initialize") if version.is_none_or(|it| it.as_bytes() < STATELESS) => {
            // If the params are wrong, rmcp would look for a session.
            if serde_json::from_slice::<InitializeRequest>(bytes).is_err() {
                return Err(HttpRefusal::bad(wrong_params_of("initialize", bytes)));
            }
            let is_new = !parts.headers.contains_key(SESSION_HEADER);
            if is_new && !door.users.has_session_room(user).await {
                let full = "the limit of sessions is reached; end one, or retry later";
                return Err(HttpRefusal::unavailable(full, 30));
            }
        }
        Some("tools/call") => {
            // rmcp looks up the tool immediately, for arguments that are repeated in headers.
            user.made_gate().await?;
        }
        _ => {}
    }
    Ok(())
}

fn no_session() -> HttpRefusal {
    HttpRefusal::new(
        StatusCode::NOT_FOUND,
        "there is no such session, or it has ended; start one with initialize",
    )
}

/// Turns rmcp's own refusals into JSON-RPC errors. Internal errors are logged.
async fn reworded(
    response: Response,
    id: Option<RequestId>,
    wrong_params: impl FnOnce() -> String,
) -> Result<Response, HttpRefusal> {
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
        // The Content-Type was checked, so rmcp refuses the params.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => HttpRefusal::bad(wrong_params()),
        status if status.is_server_error() => {
            let code = status.as_u16();
            tracing::error!(status = code, text, "a request could not be answered");
            HttpRefusal::new(status, "this server could not answer")
        }
        status => HttpRefusal::new(status, text),
    };
    let refused = refused.to(id);
    Err(match allow {
        Some(allow) => refused.with(ALLOW, allow),
        None => refused,
    })
}
