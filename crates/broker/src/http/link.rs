//! The link: one POST for each message, and what their answers bring.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::Response;
use rmcp::model::{ErrorData, ProtocolVersion};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::body::{self, BodyError, Content};
use super::endpoint::{Endpoint, Exchange};
use super::mirror;
use super::posts::{self, Posts};
use super::reading::Reading;
use super::streams::{Listening, is_for_good};
use crate::calls::CALL;
use crate::failure::Failure;
use crate::flight::LISTEN;
use crate::handshake::is_left;
use crate::inbox::{Inbox, nameless_error};
use crate::link::{Link, LinkError, LinkErrorKind, Outgoing};
use callgate_auth::{AuthError, Prompt};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The server's error for headers that are not what its list asks for.
const HEADER_MISMATCH: i32 = -32020;
/// The longest id of a session that is taken, in bytes.
const MAX_SESSION_BYTES: usize = 4_096;
/// The longest body of an answer to a notification that is read, in bytes, so
/// that the connection can be used again.
const MAX_ACCEPTED_BYTES: usize = 4 << 10;
/// How long a server has to take the last messages, and then to end its session.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// A way to one HTTP endpoint.
#[derive(Debug)]
pub(crate) struct HttpLink {
    shared: Arc<Shared>,
    /// Ends the tasks that read streams.
    _end: DropGuard,
}

/// What the tasks that read streams need, too.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) server: Arc<str>,
    pub(super) endpoint: Endpoint,
    pub(super) inbox: Arc<Inbox>,
    agreement: Mutex<Agreement>,
    pub(super) reading: Reading,
    pub(super) listening: Listening,
    pub(super) posts: Posts,
    pub(super) ended: CancellationToken,
    /// Where messages are sent from that are handed over outside of it.
    pub(super) runtime: Handle,
}

#[derive(Debug, Default)]
struct Agreement {
    version: Option<ProtocolVersion>,
    session: Option<HeaderValue>,
    /// What the last request went with, once there was one.
    login: Option<Option<Arc<str>>>,
}

impl HttpLink {
    /// A link over which nothing has been sent. Must be called within a runtime.
    pub(crate) fn new(server: Arc<str>, endpoint: Endpoint, inbox: Arc<Inbox>) -> Self {
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        Self {
            shared: Arc::new(Shared {
                server,
                endpoint,
                inbox,
                agreement: Mutex::default(),
                reading: Reading::default(),
                listening: Listening::default(),
                posts: Posts::default(),
                ended,
                runtime: Handle::current(),
            }),
            _end: end,
        }
    }
}

impl Link for HttpLink {
    fn send<'a>(&'a self, message: Outgoing<'a>) -> BoxFuture<'a, Result<(), LinkError>> {
        Box::pin(async move {
            // A server may answer a request by a question on the session's own
            // stream, so that stream has to be there first.
            if message.id.is_some() && self.shared.speaks() == Era::Sessions {
                self.shared.listen().await;
            }
            let headers = self.shared.headers_of(&message);
            let body = Bytes::copy_from_slice(message.text.as_bytes());
            // Since 2026-07-28 the session's own stream is asked for by a request.
            let waits = match message.method {
                LISTEN => Prompt::Never,
                _ => Prompt::Allowed,
            };
            // From here on the server may have it, long before it says a word.
            if message.id.is_some_and(|id| !self.shared.inbox.sent(id)) {
                return Ok(());
            }
            let exchange = Exchange {
                id: message.id,
                decided: message.decided.zip(message.name),
                ..Exchange::new(Method::POST, headers, body, waits)
            };
            let response = self.shared.endpoint.exchange(exchange).await;
            // Before the answer: who goes on by it sees that there is something to wait for.
            self.shared.notice_login();
            let response = response?;
            match message.id {
                Some(id) => self.shared.answered(id, message.method, response).await,
                None => self.shared.accepted(response).await,
            }
        })
    }

    fn post(&self, method: &str, name: Option<&str>, message: String) {
        self.shared.send_off(method, name, message);
    }

    fn read(&self, _flight: u64, _cx: &mut Context<'_>) {}

    fn left(&self, flight: u64) {
        self.shared.reading.left(flight);
    }

    fn cancel(&self, id: u64, notification: Option<String>) {
        self.shared.reading.end(id);
        // Since 2026-07-28 closing the stream says it, and nothing else may.
        if let Some(notification) = notification
            && self.shared.speaks() == Era::Sessions
        {
            self.post("notifications/cancelled", None, notification);
        }
    }

    fn agreed(&self, version: &ProtocolVersion) {
        self.shared.agreement().version = Some(version.clone());
    }

    fn login(&self) -> Option<Arc<str>> {
        self.shared.endpoint.login()
    }

    fn is_congested(&self) -> bool {
        self.shared.posts.is_congested()
    }

    fn held_up(&self, id: u64) -> Option<AuthError> {
        self.shared.endpoint.held_up(id)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let closed = LinkError::closed("the connection was closed", true);
            self.shared.inbox.lost(closed);
            // Among them may be what tells the server to give work up.
            let posted = self.shared.posts.done();
            if timeout(CLOSE_PATIENCE, posted).await.is_err() {
                tracing::debug!(server = %self.shared.server, "messages were not taken in time");
            }
            self.shared.ended.cancel();
            let session = self.shared.agreement().session.take();
            let Some(session) = session.filter(|_| self.shared.speaks() == Era::Sessions) else {
                return;
            };
            let mut headers = self.shared.headers();
            headers.insert(SESSION, session);
            let delete = Exchange::new(Method::DELETE, headers, Bytes::new(), Prompt::Never);
            let deleted = self.shared.endpoint.exchange(delete);
            // Servers may refuse it; the session ends in its own time then.
            match timeout(CLOSE_PATIENCE, deleted).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    tracing::debug!(server = %self.shared.server, %error, "its session stays");
                }
                Err(_) => tracing::debug!(server = %self.shared.server, "its session stays"),
            }
        })
    }
}

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Not known yet.
    Unknown,
    /// `initialize`, and sessions.
    Sessions,
    /// 2026-07-28: each request for itself.
    Stateless,
}

impl Shared {
    pub(super) fn speaks(&self) -> Era {
        match &self.agreement().version {
            None => Era::Unknown,
            Some(version) if version.has_initialize() => Era::Sessions,
            Some(_) => Era::Stateless,
        }
    }

    /// Headers that every request has once there is an agreement.
    pub(super) fn headers(&self) -> HeaderMap {
        let agreement = self.agreement();
        let mut headers = HeaderMap::new();
        if let Some(version) = &agreement.version
            && let Ok(version) = HeaderValue::from_str(version.as_str())
        {
            headers.insert(VERSION, version);
        }
        if let Some(session) = &agreement.session {
            headers.insert(SESSION, session.clone());
        }
        headers
    }

    /// Tells of it when requests go with another login than before.
    fn notice_login(&self) {
        let login = self.endpoint.login();
        let before = self.agreement().login.replace(login.clone());
        if before.is_some_and(|before| before != login) {
            self.inbox.login_changed();
        }
    }

    /// A 404 for a request of a session means that there is no such session
    /// any more: everything that is in flight is lost.
    pub(super) fn session_ended(&self, response: &Response) -> Option<LinkError> {
        let is_end = response.status() == StatusCode::NOT_FOUND
            && self.speaks() == Era::Sessions
            && self.agreement().session.is_some();
        is_end.then(|| {
            let error = LinkError::closed("the server has ended the session", false);
            self.inbox.lost(error.clone());
            error
        })
    }

    pub(super) fn headers_of(&self, message: &Outgoing<'_>) -> HeaderMap {
        let mut headers = self.headers();
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let discovers = message.method == "server/discover";
        if discovers
            && !headers.contains_key(VERSION)
            && let Ok(newest) = HeaderValue::from_str(ProtocolVersion::LATEST.as_str())
        {
            headers.insert(VERSION, newest);
        }
        if discovers || self.speaks() == Era::Stateless {
            let method = Some(message.method).filter(|method| !method.is_empty());
            let texts = [(METHOD, method), (NAME, message.name)];
            for (name, text) in texts {
                let value = text.map(|text| HeaderValue::from_str(&mirror::encode(text)));
                if let Some(Ok(value)) = value {
                    headers.insert(name, value);
                }
            }
            for (name, value) in message.parameters {
                let pair = (name.parse::<HeaderName>(), HeaderValue::from_str(value));
                if let (Ok(name), Ok(value)) = pair {
                    headers.insert(name, value);
                }
            }
        }
        headers
    }

    /// What became of a notification or an answer.
    pub(super) async fn accepted(&self, mut response: Response) -> Result<(), LinkError> {
        if let Some(error) = self.session_ended(&response) {
            return Err(error);
        }
        if !response.status().is_success() {
            return Err(no_success(&response));
        }
        // What it says does not matter, and it may never end.
        let body = body::read(&mut response, MAX_ACCEPTED_BYTES);
        let _body = timeout(posts::PATIENCE, body).await;
        Ok(())
    }

    /// What became of a request: its answer, or the beginning of a stream.
    async fn answered(
        self: &Arc<Self>,
        id: u64,
        method: &str,
        mut response: Response,
    ) -> Result<(), LinkError> {
        if let Some(error) = self.session_ended(&response) {
            return Err(error);
        }
        let status = response.status();
        if !status.is_success() {
            let lost = no_success(&response);
            if status != StatusCode::UNAUTHORIZED
                && !says_later(method, &lost.kind)
                && let Some(error) = body::rpc_error(&mut response).await
            {
                self.inbox.failed(id, self.refused(status, method, error));
                return Ok(());
            }
            return Err(lost);
        }
        if method == "initialize"
            && let Err(reason) = self.begin_session(&response)
        {
            self.inbox.failed(id, Failure::Malformed(reason));
            return Ok(());
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            // In a session the answer may come on a stream that is open.
            if self.speaks() != Era::Sessions {
                let reason = format!("HTTP status {status} is no answer to a request");
                self.inbox.failed(id, Failure::Malformed(reason));
            }
            return Ok(());
        }
        match Content::of(&response) {
            Content::Json => self.take_body(id, response).await,
            Content::Events => {
                self.read_on(id, response);
                Ok(())
            }
            Content::Other(what) => {
                let reason = format!("an HTTP response with {what} is no MCP message");
                self.inbox.failed(id, Failure::Malformed(reason));
                Ok(())
            }
        }
    }

    /// What an error says of a request. That the server has gone over to another revision, or
    /// finds a call's headers wrong, it says with 400, before it does anything (2026-07-28,
    /// basic/transports/streamable-http, "Protocol Version Header" and "Server Validation"); an
    /// error in any other answer may be of a call that was carried out.
    fn refused(&self, status: StatusCode, method: &str, error: ErrorData) -> Failure {
        let agreement = self.agreement();
        let agreed = agreement.version.as_ref();
        match (status, method) {
            (StatusCode::BAD_REQUEST, CALL) if error.code.0 == HEADER_MISMATCH => {
                Failure::Headers(error, Box::default())
            }
            // One that does not listen says nothing of the others.
            (StatusCode::BAD_REQUEST, method)
                if method != LISTEN && agreed.is_some_and(|agreed| is_left(agreed, &error)) =>
            {
                Failure::Left(error)
            }
            _ => Failure::Refused(error),
        }
    }

    async fn take_body(&self, id: u64, mut response: Response) -> Result<(), LinkError> {
        let limit = self.inbox.max_message_bytes();
        let body = match body::read(&mut response, limit).await {
            Ok(body) => body,
            Err(BodyError::TooLarge) => {
                self.inbox.failed(id, Failure::TooLarge(limit));
                return Ok(());
            }
            Err(BodyError::Broken(error)) => return Err(self.endpoint.broken(error, true)),
        };
        self.inbox.deliver_on(&body, Some(id));
        if self.inbox.waits(id) {
            // Of a request that it could not read a server does not know the id.
            let failure = match nameless_error(&body) {
                Some(error) => Failure::Refused(error),
                None => {
                    let reason = "the HTTP response to the request does not answer it";
                    Failure::Malformed(reason.to_owned())
                }
            };
            self.inbox.failed(id, failure);
        }
        Ok(())
    }

    fn begin_session(&self, response: &Response) -> Result<(), String> {
        let Some(session) = response.headers().get(SESSION) else {
            return Ok(());
        };
        if session.len() > MAX_SESSION_BYTES {
            return Err(format!(
                "the id of its session is over {MAX_SESSION_BYTES} bytes"
            ));
        }
        if session.is_empty() || !session.as_bytes().iter().all(u8::is_ascii_graphic) {
            return Err("the id of its session has characters that it must not have".to_owned());
        }
        let mut session = session.clone();
        session.set_sensitive(true);
        self.agreement().session = Some(session);
        Ok(())
    }

    fn agreement(&self) -> MutexGuard<'_, Agreement> {
        self.agreement
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a status says of a task no more than that it is to be asked for, or told, later,
/// whatever error comes with it. With 500 the error may be what the task has come to.
fn says_later(method: &str, kind: &LinkErrorKind) -> bool {
    let internal = LinkErrorKind::Status(StatusCode::INTERNAL_SERVER_ERROR.as_u16());
    match method {
        "tasks/get" | "tasks/update" => !is_for_good(kind),
        "tasks/result" => !is_for_good(kind) && *kind != internal,
        _ => false,
    }
}

/// A status that is no success. The body may hold anything and is not shown.
pub(super) fn no_success(response: &Response) -> LinkError {
    let status = response.status();
    let (kind, sent) = match status {
        StatusCode::UNAUTHORIZED => (LinkErrorKind::Unauthorized, false),
        status => (LinkErrorKind::Status(status.as_u16()), true),
    };
    LinkError {
        kind,
        reason: format!("it answers with HTTP status {status}"),
        sent,
    }
}
