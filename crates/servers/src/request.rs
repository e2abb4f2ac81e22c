//! Requests to a server: cancellation, and answers as text.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientRequest, CustomRequest, ErrorData, GetExtensions as _,
    Implementation, ProtocolVersion, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::caller::{Caller, LogLevel, Offers};
use crate::clock::Clock;
use crate::failure::{CallFailure, FailureKind, Lost};
use crate::http::{HttpClient, is_about_session};
use crate::json_rpc::Members;
use crate::questions::Questions;
use crate::server_log;
use crate::slot::{CallContext, Slot};
use crate::tap::{DISCOVER, INITIALIZE, Tap};

/// The extension by which a server may answer a call with a task (2026-07-28).
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The time limit of a ping that checks a session.
const PING_TIME: Duration = Duration::from_secs(5);

/// The key of a request's log level (2026-07-28).
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A connection to a server after the handshake.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) tap: Arc<Tap>,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) agreed: Agreed,
    pub(crate) questions: Arc<Questions>,
    pub(crate) http: Option<HttpClient>,
    /// The lowest log level that was set at a server of an older revision.
    pub(crate) logs: AtomicU8,
}

/// The result of the handshake.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agreed {
    pub(crate) version: ProtocolVersion,
    pub(crate) title: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) tools: bool,
    /// True if it notifies of changes of its tool list.
    pub(crate) tools_changes: bool,
    pub(crate) logging: bool,
}

/// A request to send.
#[derive(Debug)]
pub(crate) struct Request {
    /// The request as rmcp sees it. With `members`, it holds only the values that become headers.
    pub(crate) sent: ClientRequest,
    /// The members of `params` as text, sent instead of the values.
    pub(crate) members: Option<String>,
    /// The call that it belongs to.
    pub(crate) context: Option<CallContext>,
}

impl Request {
    pub(crate) fn new(method: &'static str, params: Value) -> Self {
        let params = Some(params).filter(|params| !params.is_null());
        Self::of(ClientRequest::CustomRequest(CustomRequest::new(
            method, params,
        )))
    }

    pub(crate) fn of(sent: ClientRequest) -> Self {
        Self {
            sent,
            members: None,
            context: None,
        }
    }
}

/// Cancels a request on drop, if it is still in flight.
struct CancelGuard {
    handle: Option<RequestHandle<RoleClient>>,
    slot: Arc<Slot>,
    tap: Arc<Tap>,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.tap.cancel(&self.slot);
        if let Some(handle) = self.handle.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // Dropping the handle would not cancel the request.
            runtime.spawn(handle.cancel(Some("the caller gave it up".to_owned())));
        }
    }
}

impl Session {
    /// True if every request describes the client (2026-07-28).
    pub(crate) fn is_stateless(&self) -> bool {
        !self.agreed.version.has_initialize()
    }

    /// True if some arguments may have to be sent as headers, too.
    pub(crate) fn mirrors_arguments(&self) -> bool {
        self.http.is_some() && self.is_stateless()
    }

    /// Sends a request and awaits its answer within this time.
    pub(crate) async fn request(
        &self,
        request: Request,
        limit: Duration,
    ) -> Result<Box<RawValue>, CallFailure> {
        let mut clock = Clock::new(limit, limit, &self.questions.asking);
        Ok(self.send(request, Some(&mut clock)).await?.0)
    }

    /// Sends a request and awaits its answer within the clock's limits: the text, and the result
    /// that rmcp read from it. Without a clock there is no time limit.
    pub(crate) async fn send(
        &self,
        request: Request,
        clock: Option<&mut Clock>,
    ) -> Result<(Box<RawValue>, Option<ServerResult>), CallFailure> {
        let slot = Slot::new(request.context.clone());
        let answer = pin!(self.exchange(request, Arc::clone(&slot)));
        let answer = match clock {
            Some(clock) => clock.limit(&slot.progress_events, answer).await,
            None => answer.await,
        };
        answer.map_err(|failure| self.explain(&slot, failure))
    }

    async fn exchange(
        &self,
        request: Request,
        slot: Arc<Slot>,
    ) -> Result<(Box<RawValue>, Option<ServerResult>), CallFailure> {
        let mut options = PeerRequestOptions::no_options();
        options.meta = self.meta(request.context.as_ref());
        let mut sent = request.sent;
        let is_greeting = matches!(sent.method(), DISCOVER | INITIALIZE);
        let extensions = sent.extensions_mut();
        extensions.insert(Arc::clone(&slot));
        if let Some(members) = request.members {
            extensions.insert(Members(members.into()));
        }
        let mut guard = CancelGuard {
            handle: None,
            slot: Arc::clone(&slot),
            tap: Arc::clone(&self.tap),
        };
        let answer = match self.peer.send_request_with_option(sent, options).await {
            // Greetings cannot be cancelled.
            Ok(handle) if is_greeting => handle.rx.await.ok(),
            Ok(handle) => (&mut guard.handle.insert(handle).rx).await.ok(),
            Err(_) => None,
        };
        // An answered request need not be cancelled.
        guard.handle = None;
        let result = answer.and_then(Result::ok);
        match slot.take() {
            Some(answer) => answer.map(|text| (text, result)),
            None => Err(self.unanswered()),
        }
    }

    /// The failure of a request for which the transport has no answer.
    fn unanswered(&self) -> CallFailure {
        match &*self.tap.lost().borrow() {
            Some(reason) => CallFailure::closed(reason.as_str(), true),
            None if self.peer.is_transport_closed() => {
                CallFailure::closed("the connection was closed", false)
            }
            None => {
                let reason = "the server ended its answer before there was one";
                CallFailure::lost(Lost::Unreachable, reason, true)
            }
        }
    }

    /// Closes the connection if the server has lost its session: a failed call can be a sign of
    /// it, and a ping that fails in such a way, too, confirms it. The server may have carried out
    /// the call, so that it is not repeated; the next call has a new session.
    pub(crate) async fn close_if_lost(&self, failure: &CallFailure) {
        if self.http.is_none() || self.is_stateless() || !is_sign_of_loss(failure) {
            return;
        }
        let ping = self.request(Request::new("ping", Value::Null), PING_TIME);
        if ping.await.is_err_and(|failure| is_sign_of_loss(&failure)) {
            self.tap.close("the server has ended the session");
        }
    }

    /// Removes secrets from a failure. A timeout while the request waited for a login becomes the
    /// login's error; other failures get the unusable messages of the server.
    fn explain(&self, slot: &Slot, mut failure: CallFailure) -> CallFailure {
        match failure.kind {
            FailureKind::Refused(error) => {
                return CallFailure::refused(self.redacted_error(*error));
            }
            FailureKind::Timeout(_) => {
                let held_up = self.http.as_ref().and_then(|http| http.held_up(slot));
                if let Some(error) = held_up {
                    return error.into();
                }
            }
            FailureKind::Malformed => {
                *failure.reason = failure.reason.map(|fault| self.tap.redact.message(fault));
            }
            FailureKind::Lost(_) => {}
            _ => return failure,
        }
        failure.unused = self.tap.unused().into();
        failure
    }

    pub(crate) fn redacted_error(&self, mut error: ErrorData) -> ErrorData {
        error.message = self.tap.redact.message(&error.message).into();
        if let Some(data) = &mut error.data {
            self.tap.redact.redact_value(data);
        }
        error
    }

    /// The description of the client that each request of the newest revision carries.
    fn meta(&self, context: Option<&CallContext>) -> Option<RequestMetaObject> {
        if !self.is_stateless() {
            return None;
        }
        let caller = context.map(|context| &*context.caller);
        let offers = caller.map_or(self.questions.offers, Caller::offers);
        let mut meta = RequestMetaObject::new();
        meta.set_protocol_version(self.agreed.version.clone());
        meta.set_client_info(program());
        meta.set_client_capabilities(capabilities(offers));
        if let Some(level) = self.log_level(caller) {
            meta.0.0.insert(LOG_LEVEL.to_owned(), json!(level));
        }
        Some(meta)
    }

    /// The lowest log level that the host's log or this caller wants, if the server logs at all.
    pub(crate) fn log_level(&self, caller: Option<&dyn Caller>) -> Option<LogLevel> {
        let levels = [server_log::level(), caller.and_then(Caller::logs)];
        let min = levels.into_iter().flatten().min();
        min.filter(|_| self.agreed.logging)
    }
}

/// True if a server that has lost its session may answer so.
fn is_sign_of_loss(failure: &CallFailure) -> bool {
    match &failure.kind {
        FailureKind::Refused(error) => is_about_session(error),
        FailureKind::Lost(Lost::Status(status)) => *status >= 500,
        _ => false,
    }
}

/// This program's name and version, for servers.
pub(crate) fn program() -> Implementation {
    Implementation::new("callgate", env!("CARGO_PKG_VERSION"))
}

/// A caller's offers as capabilities of the client.
pub(crate) fn capabilities(offers: Offers) -> ClientCapabilities {
    let mut all = json!({ "extensions": { TASKS_EXTENSION: {} } });
    if offers.form {
        all["elicitation"]["form"] = json!({});
    }
    if offers.url {
        all["elicitation"]["url"] = json!({});
    }
    if offers.sampling {
        all["sampling"] = json!({});
        if offers.sampling_tools {
            all["sampling"]["tools"] = json!({});
        }
    }
    if offers.roots {
        all["roots"] = json!({ "listChanged": true });
    }
    serde_json::from_value(all).unwrap_or_default()
}
