//! Messages to and from a streamable HTTP endpoint. rmcp's worker above it handles sessions,
//! streams, resumption and concurrency.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use callgate_auth::{AuthError, Prompt};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, stream};
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::Response;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, GetExtensions as _, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::time::timeout;

use crate::endpoint::HttpEndpoint;
use crate::failure::{CallFailure, Lost};
use crate::in_flight::LISTEN;
use crate::json_rpc;
use crate::slot::Slot;
use crate::tap::Tap;

/// The wait for the session's own stream before the first request: a server may send requests there.
const STREAM_PATIENCE: Duration = Duration::from_millis(500);
/// Concurrent POSTs.
const MAX_POSTS: usize = 1_024;
/// The maximum wait before a stream is resumed.
const MAX_RETRY_MS: u64 = 60_000;
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const EVENTS: &str = "text/event-stream";
const TOO_LONG: &str = "an event is over the limit";

/// The client of an endpoint. Clones share the endpoint.
#[derive(Clone)]
pub(crate) struct HttpClient(pub(crate) Arc<HttpEndpoint>);

/// An exchange without an answer. The details are in the slot of its request.
#[derive(Debug, thiserror::Error)]
#[error("the exchange failed")]
pub(crate) struct ExchangeFailed;

type Error = StreamableHttpError<ExchangeFailed>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

impl HttpClient {
    /// rmcp's worker over this endpoint.
    pub(crate) fn transport(&self) -> StreamableHttpClientTransport<Self> {
        // Exchanges use the endpoint's own URL, which may hold secrets.
        let mut config = StreamableHttpClientTransportConfig::with_uri("endpoint");
        config.max_concurrent_requests = MAX_POSTS;
        config.max_sse_event_size = self.0.limit;
        let mut resume = ExponentialBackoff::default();
        resume.max_delay = Some(Duration::from_millis(MAX_RETRY_MS));
        config.retry_config = Arc::new(resume);
        // A new session needs a new decision about the call, so rmcp must not repeat it there.
        config.reinit_on_expired_session = false;
        StreamableHttpClientTransport::with_client(self.clone(), config)
    }

    pub(crate) fn login(&self) -> Option<Arc<str>> {
        self.0.login.get().cloned().flatten()
    }

    /// Why a request is not sent yet, if it waits for authorization.
    pub(crate) fn held_up(&self, slot: &Slot) -> Option<AuthError> {
        let is_waiting = slot.is_waiting.load(Ordering::Relaxed);
        is_waiting.then(|| self.0.authorization.pending()).flatten()
    }

    /// Fails a request. rmcp gets a message that settles its id, or an error for a notification.
    fn fail(
        &self,
        id: Option<&RequestId>,
        failure: CallFailure,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let id = id.ok_or(StreamableHttpError::Client(ExchangeFailed))?;
        let settled = self.0.tap.fail(id, failure).unwrap_or_else(|| {
            let error = ErrorData::internal_error("the request is over", None);
            ServerJsonRpcMessage::error(error, Some(id.clone()))
        });
        Ok(StreamableHttpPostResponse::Json(settled, None))
    }

    /// The events of a response, with data that the tap has read. `id` is the request that the
    /// stream answers.
    fn tapped(&self, response: Response, id: Option<RequestId>) -> Events {
        let (tap, limit) = (Arc::clone(&self.0.tap), self.0.limit);
        let events = SseStream::from_bytes_stream(bounded(response.bytes_stream(), limit));
        events
            .flat_map(move |event| stream::iter(tapped_event(&tap, event, id.as_ref(), limit)))
            .boxed()
    }

    /// Reads the answer in a successful response.
    async fn answer(
        &self,
        response: Response,
        id: &RequestId,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let session = response.headers().get(SESSION);
        let session = session.and_then(|id| Some(id.to_str().ok()?.to_owned()));
        let status = response.status();
        if is_events(&response) {
            let events = self.tapped(response, Some(id.clone()));
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            // In a session, the answer may come on a different stream.
            if self.0.tap.is_stateless() {
                let reason = format!("HTTP status {status} is not an answer to a request");
                return self.fail(Some(id), CallFailure::malformed(reason));
            }
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        // The body is read as JSON, whatever its content type says.
        let kind: String = content_type(&response).chars().take(60).collect();
        let body = match self.0.read(response, self.0.limit).await {
            Ok(body) => body,
            Err(failure) => return self.fail(Some(id), failure),
        };
        // rmcp takes one message for each POST, so a batch cannot be passed on.
        let mut read = self.0.tap.incoming(&body, Some(id));
        match read.pop() {
            Some(message) if read.is_empty() => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ => {
                let reason = format!(
                    "the HTTP response to the request does not answer it (it has content type \
                     {kind:?})"
                );
                self.fail(Some(id), CallFailure::malformed(reason))
            }
        }
    }

    /// Reads the answer in a response with an error status.
    async fn refusal(
        &self,
        response: Response,
        id: Option<&RequestId>,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let status = response.status();
        let wants_login = response.headers().contains_key(WWW_AUTHENTICATE);
        let kind = match status {
            StatusCode::UNAUTHORIZED => Lost::Unauthorized,
            status => Lost::Status(status.as_u16()),
        };
        let reason = format!("it answers with HTTP status {status}");
        let lost = CallFailure::lost(kind, reason, status != StatusCode::UNAUTHORIZED);
        let mut error = None;
        if status != StatusCode::UNAUTHORIZED {
            error = self.0.rpc_error(response).await;
        }
        let is_answer = |(error, of): &(ErrorData, Option<RequestId>)| {
            id == of.as_ref() && !is_about_session(error)
        };
        let in_session = in_session && id.is_some() && !wants_login;
        if in_session && !error.as_ref().is_some_and(is_answer) && self.is_forgotten(status) {
            return self.fail(id, self.forgotten());
        }
        if let Some((error, _)) = error {
            return self.fail(id, CallFailure::refused(error));
        }
        self.fail(id, lost)
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = ExchangeFailed;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let request = match &message {
            ClientJsonRpcMessage::Request(sent) => Some(sent),
            _ => None,
        };
        let id = request.map(|sent| &sent.id);
        let method = request.map(|sent| sent.request.method());
        let slot = request.and_then(|sent| sent.request.extensions().get::<Arc<Slot>>());
        let slot = slot.map(|slot| &**slot);
        if session.is_some() && id.is_some() {
            self.await_stream().await;
        }
        self.0.tap.register(&message);
        if let Some(id) = id {
            self.0.tap.sent(id);
        }
        let accept = "application/json, text/event-stream";
        let mut headers = headers(custom, accept, session.as_deref());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let prompt = if method == Some(LISTEN) {
            Prompt::Never
        } else {
            Prompt::Allowed
        };
        let body = json_rpc::text(&message).into();
        let exchange = self.0.exchange(Method::POST, headers, body, prompt, slot);
        let cancelled = async {
            match slot {
                Some(slot) => slot.over.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let response = tokio::select! {
            exchanged = exchange => exchanged,
            // rmcp's worker does not cancel a greeting.
            () = cancelled => return self.fail(id, CallFailure::closed("it was cancelled", true)),
            () = self.0.tap.ended() => return Err(StreamableHttpError::TransportChannelClosed),
        };
        let response = match response {
            Err(lost) => return self.fail(id, lost),
            Ok(response) => response,
        };
        match (response.status().is_success(), id) {
            (false, _) => self.refusal(response, id, session.is_some()).await,
            (true, Some(id)) => {
                self.record_success(method);
                self.answer(response, id).await
            }
            // A notification has no answer, and the body may never end.
            (true, None) => Ok(StreamableHttpPostResponse::Accepted),
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _auth: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Error> {
        let mut headers = headers(custom, EVENTS, session.as_deref());
        if let Some(last) = last_event.and_then(|last| HeaderValue::from_str(&last).ok()) {
            headers.insert("last-event-id", last);
        }
        let response = tokio::select! {
            response = self.0.exchange(Method::GET, headers, Bytes::new(), Prompt::Never, None) => {
                response
            }
            () = self.0.tap.ended() => return Err(StreamableHttpError::TransportChannelClosed),
        };
        self.0.stream.send_replace(true);
        let response = response.map_err(|_| StreamableHttpError::Client(ExchangeFailed))?;
        let status = response.status();
        if status.is_success() && is_events(&response) {
            self.0.has_stream.store(true, Ordering::Relaxed);
            return Ok(self.tapped(response, None));
        }
        // Many servers without such a stream answer with 404, too.
        if status == StatusCode::NOT_FOUND && self.0.has_stream.load(Ordering::Relaxed) {
            self.forgotten();
        }
        if status.is_success() || status.is_client_error() {
            Err(StreamableHttpError::ServerDoesNotSupportSse)
        } else {
            Err(StreamableHttpError::Client(ExchangeFailed))
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session: Arc<str>,
        _auth: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let headers = headers(custom, "*/*", Some(&session));
        let deleted = self
            .0
            .exchange(Method::DELETE, headers, Bytes::new(), Prompt::Never, None);
        deleted
            .await
            .map(drop)
            .map_err(|_| StreamableHttpError::Client(ExchangeFailed))
    }
}

impl HttpClient {
    /// Records the login of the tool list, and that a call succeeded in this session.
    fn record_success(&self, method: Option<&str>) {
        match method {
            Some("tools/list") => {
                let login = || self.0.authorization.login_id();
                self.0.login.get_or_init(login);
            }
            Some("tools/call") => self.0.is_renewed.store(false, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Waits a little for the session's own stream, once.
    async fn await_stream(&self) {
        let mut stream = self.0.stream.subscribe();
        // The guard of the result holds the channel's lock.
        drop(timeout(STREAM_PATIENCE, stream.wait_for(|open| *open)).await);
        self.0.stream.send_replace(true);
    }

    /// True if a refusal with this status can mean that the server lost the session. After a
    /// restart, servers answer with various statuses of client errors. A second refusal in the new
    /// session, or one before the tools were listed, is an answer and not the loss of the session.
    fn is_forgotten(&self, status: StatusCode) -> bool {
        let is_other = matches!(status.as_u16(), 403 | 408 | 429);
        status.is_client_error()
            && !is_other
            && self.0.login.get().is_some()
            && (self.0.tap.closed().is_some()
                || !self.0.is_renewed.fetch_xor(true, Ordering::Relaxed))
    }

    /// Lets the connection end, so that the next one has a new session. Returns the failure of the
    /// request, which the server did not carry out.
    fn forgotten(&self) -> CallFailure {
        let reason = "the server has ended the session";
        self.0.tap.close(reason);
        CallFailure::closed(reason, false)
    }
}

/// The events for rmcp in place of one event.
fn tapped_event(
    tap: &Tap,
    event: Result<Sse, SseError>,
    id: Option<&RequestId>,
    limit: usize,
) -> Vec<Result<Sse, SseError>> {
    let mut event = match event {
        Ok(event) => event,
        Err(error) => {
            // An event over the limit counts as the answer.
            let id = id.filter(|_| error.to_string().contains(TOO_LONG));
            let settled = id.and_then(|id| tap.fail(id, CallFailure::too_large(limit)));
            let data = settled.and_then(|message| serde_json::to_string(&message).ok());
            return vec![data.map_or(Err(error), |data| Ok(Sse::default().data(data)))];
        }
    };
    event.retry = event.retry.map(|retry| retry.min(MAX_RETRY_MS));
    let Some(data) = event.data.take().filter(|data| !data.trim().is_empty()) else {
        return vec![Ok(event)];
    };
    let messages = tap.incoming(data.as_bytes(), id);
    let messages = messages.iter();
    let texts = messages.filter_map(|message| serde_json::to_string(message).ok());
    let mut events: Vec<_> = texts.map(|data| Ok(event.clone().data(data))).collect();
    if events.is_empty() {
        // rmcp still needs the event's id and retry time.
        events.push(Ok(event));
    }
    events
}

/// Ends a stream of events with an error if an event is longer than the limit.
fn bounded(
    stream: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    limit: usize,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    let mut event = 0_usize;
    stream.map(move |chunk| {
        let chunk = chunk.map_err(|error| std::io::Error::other(error.without_url()))?;
        let end = [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].into_iter();
        let end = end
            .filter_map(|end| memchr::memmem::rfind(&chunk, end))
            .max();
        // An end of an event that two chunks share is not found, which is harmless for a limit.
        event = match end {
            Some(at) => chunk.len() - at,
            None => event.saturating_add(chunk.len()),
        };
        if event > limit {
            return Err(std::io::Error::other(TOO_LONG));
        }
        Ok(chunk)
    })
}

/// True if an error with the id of a request may be about the session instead of the request.
pub(crate) fn is_about_session(error: &ErrorData) -> bool {
    matches!(
        error.code,
        ErrorCode(-32_000 | -32_001) | ErrorCode::INVALID_REQUEST
    )
}

/// True if a response is an uncompressed stream of events.
fn is_events(response: &Response) -> bool {
    let types = content_type(response).split(',');
    // Some servers and proxies repeat the type.
    let types = types.map(|one| one.split(';').next().unwrap_or_default().trim());
    let mut types = types.filter(|essence| essence.contains('/')).peekable();
    // Compressed content is not requested.
    let is_plain = !response.headers().contains_key(CONTENT_ENCODING);
    is_plain && types.peek().is_some() && types.all(|one| one.eq_ignore_ascii_case(EVENTS))
}

fn content_type(response: &Response) -> &str {
    let value = response.headers().get(CONTENT_TYPE);
    value.map_or("", |value| value.to_str().unwrap_or("?"))
}

/// The headers of a request.
fn headers(
    custom: HashMap<HeaderName, HeaderValue>,
    accept: &'static str,
    session: Option<&str>,
) -> HeaderMap {
    let mut headers: HeaderMap = custom.into_iter().collect();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    if let Some(mut session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
        session.set_sensitive(true);
        headers.insert(SESSION, session);
    }
    headers
}
