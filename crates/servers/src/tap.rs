//! Reads the JSON-RPC envelope of messages between the transport and rmcp.
//!
//! A request carries a [`Slot`] in its `Extensions`, which are never serialised. The tap
//! registers the request when it goes out. When the answer comes, its text goes into the slot
//! and rmcp gets an empty result, which settles the id. So results stay text, and an answer
//! with a known id always ends its request, readable or not.
//!
//! Notifications go to [`Notifications`] in their order, and rmcp does not see them. Requests of
//! the server go to rmcp as one custom method, [`ASK`], so that their parameters stay as they
//! were written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, CustomRequest, ErrorCode, ErrorData, GetExtensions,
    GetMeta, InitializeResult, JsonObject, ListToolsResult, NumberOrString, ProgressToken,
    ProtocolVersion, RequestId, ServerCapabilities, ServerJsonRpcMessage, ServerNotification,
    ServerRequest, ServerResult, Tool,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::failure::{CallFailure, Reason};
use crate::server_log::fit;
use crate::watch::Notifications;

/// The method by which a server's request reaches the handler; see [`Asked`].
pub(crate) const ASK: &str = "callgate/ask";
/// The request that listens for changes (2026-07-28).
pub(crate) const LISTEN: &str = "subscriptions/listen";
pub(crate) const DISCOVER: &str = "server/discover";
pub(crate) const INITIALIZE: &str = "initialize";
/// The longest parameters, error data and greeting that become JSON values, in bytes.
pub(crate) const MAX_VALUE_BYTES: usize = 1 << 20;
/// The characters that are shown of a message that cannot be used.
const MAX_SHOWN: usize = 200;
/// The bytes kept of each end of a message over the limit.
pub(crate) const END_BYTES: usize = 512;

/// The caller and the tool of a request.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) caller: Arc<dyn Caller>,
    pub(crate) tool: Arc<str>,
}

/// A server's request as the handler gets it: the parameters of [`ASK`].
#[derive(Debug, serde::Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) bytes: usize,
    /// The request of ours on whose own stream it came.
    pub(crate) stream: Option<RequestId>,
}

/// The result of one request as text, or its failure.
pub(crate) type Answer = Result<Box<RawValue>, CallFailure>;

/// The place for the answer of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot(Arc<SlotState>);

#[derive(Debug, Default)]
struct SlotState {
    answer: Mutex<Option<Answer>>,
    who: Option<Who>,
    /// The last progress that was reported.
    progress: Mutex<Option<f64>>,
    unused: Mutex<Unused>,
    is_waiting: AtomicBool,
    signs: Notify,
    over: CancellationToken,
    flight: OnceLock<(Weak<Tap>, RequestId)>,
}

impl Slot {
    pub(crate) fn new(who: Option<Who>) -> Self {
        Self(Arc::new(SlotState {
            who,
            ..SlotState::default()
        }))
    }

    pub(crate) fn take(&self) -> Option<Answer> {
        self.0.answer.lock().take()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        self.0.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Messages that were read since the request was sent and not used; see [`Unused`].
    pub(crate) fn unused(&self) -> String {
        self.0.unused.lock().to_string()
    }

    /// Waits until nothing waits for the answer any more.
    pub(crate) async fn over(&self) {
        self.0.over.cancelled().await;
    }

    /// Notified for each progress notification.
    pub(crate) fn signs(&self) -> &Notify {
        &self.0.signs
    }

    /// Forgets the request. rmcp does not always tell its transport.
    pub(crate) fn leave(&self) {
        if let Some((tap, id)) = self.0.flight.get()
            && let Some(tap) = tap.upgrade()
        {
            tap.flights().remove(id);
            tap.end_if_closed();
        }
        self.0.over.cancel();
    }

    fn fill(&self, answer: Answer) {
        let mut place = self.0.answer.lock();
        *place = Some(answer);
    }

    /// Notes a progress; false if the server does not count up.
    fn goes_on(&self, progress: f64) -> bool {
        self.0.signs.notify_one();
        let mut last = self.0.progress.lock();
        let is_more = last.is_none_or(|last| progress > last);
        if is_more {
            *last = Some(progress);
        }
        is_more
    }
}

/// The members of a request's `params` as text, without `_meta`.
#[derive(Debug, Clone)]
pub(crate) struct Members(pub(crate) Arc<str>);

/// The text of a message that goes out.
pub(crate) fn text(message: &ClientJsonRpcMessage) -> Vec<u8> {
    if let ClientJsonRpcMessage::Request(sent) = message
        && let Some(Members(members)) = sent.request.extensions().get()
    {
        let id = sent.id.clone().into_json_value();
        let method = Value::from(sent.request.method());
        let meta = serde_json::to_string(sent.request.get_meta()).unwrap_or_default();
        let head =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{{"_meta":{meta},"#);
        return [head.as_bytes(), members.as_bytes(), b"}}"].concat();
    }
    serde_json::to_vec(message).unwrap_or_default()
}

/// The requests in flight on one connection.
#[derive(Debug)]
pub(crate) struct Tap {
    flights: Mutex<HashMap<RequestId, Flight>>,
    /// The id of the latest request.
    latest: AtomicI64,
    listener: Arc<Notifications>,
    /// Whether servers may send requests: not in 2026-07-28.
    is_stateless: AtomicBool,
    unused: Mutex<Unused>,
    lost: watch::Sender<Option<String>>,
    /// Why no more requests are sent, though answers to earlier ones may come.
    closing: OnceLock<String>,
}

#[derive(Debug)]
struct Flight {
    method: String,
    token: Option<ProgressToken>,
    slot: Slot,
    /// Whether the server may have read it.
    sent: bool,
    /// Whether rmcp makes headers of arguments, for which it needs the tool list.
    mirrors: bool,
}

/// Messages that were read and could not be used. The `Display` form is a clause, empty if there
/// are none.
#[derive(Debug, Default)]
struct Unused {
    count: usize,
    first: Option<Arc<str>>,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = &self.first else {
            return Ok(());
        };
        match self.count {
            1 => write!(
                f,
                "; the server wrote a message that could not be used: {first}"
            ),
            count => write!(
                f,
                "; the server wrote {count} messages that could not be used, the first: {first}"
            ),
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    fn read(text: &'a str) -> Option<Self> {
        // A struct can be read from an array, too.
        let is_object = text.starts_with('{');
        is_object.then(|| serde_json::from_str(text).ok()).flatten()
    }
}

impl Tap {
    pub(crate) fn new(listener: Arc<Notifications>) -> Arc<Self> {
        Arc::new(Self {
            flights: Mutex::default(),
            latest: AtomicI64::new(-1),
            listener,
            is_stateless: AtomicBool::new(false),
            unused: Mutex::default(),
            lost: watch::Sender::default(),
            closing: OnceLock::new(),
        })
    }

    /// Drops the server's requests from now on: 2026-07-28 has none.
    pub(crate) fn set_stateless(&self) {
        self.is_stateless.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.is_stateless.load(Ordering::Relaxed)
    }

    /// Messages that were read so far and not used; see [`Unused`].
    pub(crate) fn unused(&self) -> String {
        self.unused.lock().to_string()
    }

    /// Notes a message that cannot be used, for the requests that may wait for it.
    fn note_unused(&self, text: &str, stream: Option<&RequestId>) {
        let mut shown: Option<Arc<str>> = None;
        let mut note = |unused: &mut Unused| {
            unused.count += 1;
            let show = || format!("\"{}\"", fit(text, MAX_SHOWN, &self.listener.redact)).into();
            if unused.first.is_none() {
                unused.first = Some(Arc::clone(shown.get_or_insert_with(show)));
            }
        };
        note(&mut self.unused.lock());
        for (id, flight) in &*self.flights() {
            if stream.is_none_or(|stream| stream == id) {
                note(&mut flight.slot.0.unused.lock());
            }
        }
    }

    /// The reason for which the connection is gone, once it is.
    pub(crate) fn lost(&self) -> watch::Receiver<Option<String>> {
        self.lost.subscribe()
    }

    /// Registers a message that goes out. A cancelled request is forgotten.
    pub(crate) fn outgoing(self: &Arc<Self>, message: &ClientJsonRpcMessage) {
        let mut flights = self.flights();
        match message {
            ClientJsonRpcMessage::Request(sent) => {
                let request = &sent.request;
                let Some(slot) = request.extensions().get::<Slot>().cloned() else {
                    return;
                };
                let _ = slot.0.flight.set((Arc::downgrade(self), sent.id.clone()));
                if slot.0.over.is_cancelled() {
                    return;
                }
                if let Some(reason) = self.closed() {
                    return slot.fill(Err(CallFailure::closed(reason, false)));
                }
                let flight = Flight {
                    method: request.method().to_owned(),
                    token: request.get_meta().get_progress_token(),
                    slot,
                    sent: false,
                    mirrors: self.is_stateless(),
                };
                flights.insert(sent.id.clone(), flight);
                if let NumberOrString::Number(id) = sent.id {
                    self.latest.fetch_max(id, Ordering::Relaxed);
                }
            }
            ClientJsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    flights.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Notes that the server may read a request.
    pub(crate) fn sent(&self, id: &RequestId) {
        if let Some(flight) = self.flights().get_mut(id) {
            flight.sent = true;
        }
    }

    /// Sends no more requests. The connection ends when those in flight have been answered.
    pub(crate) fn close(&self, reason: &str) {
        let _ = self.closing.set(reason.to_owned());
        self.end_if_closed();
    }

    /// The reason for which no more requests are sent, if there is one.
    pub(crate) fn closed(&self) -> Option<String> {
        let lost = self.lost.borrow().clone();
        lost.or_else(|| self.closing.get().cloned())
    }

    fn end_if_closed(&self) {
        let Some(reason) = self.closing.get() else {
            return;
        };
        let is_idle = self
            .flights()
            .values()
            .all(|flight| flight.method == LISTEN);
        if is_idle {
            self.end(reason);
        }
    }

    /// Ends the connection: every request fails, each by its id.
    pub(crate) fn end(&self, reason: &str) -> Vec<ServerJsonRpcMessage> {
        self.lost.send_if_modified(|known| {
            let is_news = known.is_none();
            known.get_or_insert_with(|| reason.to_owned());
            is_news
        });
        let ended = std::mem::take(&mut *self.flights());
        let settled = ended.into_iter().map(|(id, flight)| {
            let failure = CallFailure::closed(reason, flight.sent);
            settle(id, flight, Err(failure))
        });
        settled.collect()
    }

    /// Ends one request with a failure, if it still waits.
    pub(crate) fn fail(
        &self,
        id: &RequestId,
        failure: CallFailure,
    ) -> Option<ServerJsonRpcMessage> {
        let flight = self.flights().remove(id)?;
        let settled = settle(id.clone(), flight, Err(failure));
        self.end_if_closed();
        Some(settled)
    }

    /// Ends the request that a message over the limit answers.
    pub(crate) fn too_long(&self, ends: &[u8], limit: usize) -> Vec<ServerJsonRpcMessage> {
        if has_method(ends) {
            self.note_unused(&String::from_utf8_lossy(ends), None);
            return Vec::new();
        }
        if let Some(id) = find_id(ends) {
            return self
                .fail(&id, CallFailure::too_large(limit))
                .into_iter()
                .collect();
        }
        let ids: Vec<_> = self.flights().keys().cloned().collect();
        let failed = ids
            .iter()
            .filter_map(|id| self.fail(id, CallFailure::too_large(limit)));
        failed.collect()
    }

    /// Reads one message, or a batch of them, and returns what rmcp is to see.
    pub(crate) fn incoming(
        &self,
        text: &[u8],
        stream: Option<&RequestId>,
    ) -> Vec<ServerJsonRpcMessage> {
        let text = String::from_utf8_lossy(text);
        let text = bare(&text);
        if text.is_empty() {
            return Vec::new();
        }
        if let Some(envelope) = Envelope::read(text) {
            return self.one(envelope, text, stream).into_iter().collect();
        }
        let is_message = |one: &&RawValue| one.get().starts_with('{');
        let several = split(text).filter(|several| several.iter().any(is_message));
        let Some(several) = several else {
            return self.unreadable(text, stream).into_iter().collect();
        };
        let read = several
            .into_iter()
            .filter_map(|one| match Envelope::read(one.get()) {
                Some(envelope) => self.one(envelope, one.get(), stream),
                None => self.unreadable(one.get(), stream),
            });
        read.collect()
    }

    fn one(
        &self,
        envelope: Envelope<'_>,
        text: &str,
        stream: Option<&RequestId>,
    ) -> Option<ServerJsonRpcMessage> {
        let params = envelope.params.map_or("{}", RawValue::get);
        if let Some(method) = envelope.method {
            return match envelope.id.and_then(foreign_id) {
                Some(id) => self.request(&method, params, id, stream),
                None => self.notification(&method, params, stream),
            };
        }
        let is_answer = envelope.result.is_some() || envelope.error.is_some();
        // A server does not know the id of a request that it could not read.
        let of_stream = stream.filter(|_| is_answer);
        let id = envelope.id.and_then(read_id).or_else(|| of_stream.cloned());
        let Some(flight) = id.as_ref().and_then(|id| self.flights().remove(id)) else {
            // A late answer says nothing about the others.
            let latest = self.latest.load(Ordering::Relaxed);
            if !matches!(id, Some(NumberOrString::Number(id)) if id <= latest) {
                self.note_unused(text, stream);
            }
            return None;
        };
        Some(self.answered(id?, flight, envelope.result, envelope.error))
    }

    /// A message that is not JSON-RPC: if it has the id of a request, it ends the request.
    fn unreadable(&self, text: &str, stream: Option<&RequestId>) -> Option<ServerJsonRpcMessage> {
        let is_object = text.starts_with('{');
        let id = is_object.then(|| find_id(text.as_bytes())).flatten();
        let reason = "it is not a JSON-RPC message";
        let ended = id.and_then(|id| self.fail(&id, CallFailure::malformed(reason)));
        if ended.is_none() {
            self.note_unused(text, stream);
        }
        ended
    }

    fn request(
        &self,
        method: &str,
        params: &str,
        id: RequestId,
        stream: Option<&RequestId>,
    ) -> Option<ServerJsonRpcMessage> {
        let is_own = self
            .flights()
            .get(&id)
            .is_some_and(|own| own.method == method);
        if is_own && matches!(method, DISCOVER | INITIALIZE) {
            let reason = Reason::advise(
                "it is our own request, sent back, which no MCP server does",
                "check what is configured for it",
            );
            return self.fail(&id, CallFailure::malformed(reason));
        }
        if self.is_stateless() {
            tracing::debug!(method, "a request that the protocol revision does not have");
            return None;
        }
        if method == "ping" {
            let ping = serde_json::from_value(json!({ "method": "ping" })).ok()?;
            return Some(ServerJsonRpcMessage::request(ping, id));
        }
        let bytes = params.len();
        let params = if bytes > MAX_VALUE_BYTES {
            Value::Null
        } else {
            serde_json::from_str(params).unwrap_or_default()
        };
        let asked = Asked {
            method: method.to_owned(),
            params,
            bytes,
            stream: stream.cloned(),
        };
        let asked = CustomRequest::new(ASK, serde_json::to_value(asked).ok());
        Some(ServerJsonRpcMessage::request(
            ServerRequest::CustomRequest(asked),
            id,
        ))
    }

    fn notification(
        &self,
        method: &str,
        params: &str,
        stream: Option<&RequestId>,
    ) -> Option<ServerJsonRpcMessage> {
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/cancelled" => return self.cancelled(params),
            _ => self.listener.notification(self, method, params, stream),
        }
        None
    }

    fn progress(&self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            progress_token: &'a RawValue,
            #[serde(borrow)]
            progress: &'a RawValue,
        }
        let read = serde_json::from_str::<Params<'_>>(params).ok();
        let token = read.as_ref().and_then(|read| read_id(read.progress_token));
        let slot = token.map(ProgressToken).and_then(|token| {
            let flights = self.flights();
            let found = flights
                .values()
                .find(|flight| flight.token.as_ref() == Some(&token));
            found.map(|flight| flight.slot.clone())
        });
        let progress = read.and_then(|read| unquoted(read.progress).parse().ok());
        match (slot, progress) {
            (Some(slot), Some(progress)) => {
                if slot.goes_on(progress)
                    && let Some(who) = &slot.0.who
                {
                    self.listener.progress(who, progress, params);
                }
            }
            _ => self.note_unused(params, None),
        }
    }

    /// The server gives up a request of its own, or ends a subscription (2026-07-28).
    fn cancelled(&self, params: &str) -> Option<ServerJsonRpcMessage> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        if self.is_stateless() {
            let id = read_id(serde_json::from_str::<Params<'_>>(params).ok()?.request_id)?;
            let is_listening = self.is_listening(&id);
            let ended = CallFailure::closed("the server ended the subscription", true);
            return is_listening.then(|| self.fail(&id, ended)).flatten();
        }
        let text = format!(r#"{{"method":"notifications/cancelled","params":{params}}}"#);
        let cancelled: ServerNotification = serde_json::from_str(&text).ok()?;
        Some(ServerJsonRpcMessage::notification(cancelled))
    }

    fn answered(
        &self,
        id: RequestId,
        flight: Flight,
        result: Option<&RawValue>,
        error: Option<&RawValue>,
    ) -> ServerJsonRpcMessage {
        let answer = match (result, error) {
            (_, Some(error)) if error.get() != "null" => {
                Err(CallFailure::refused(read_error(error)))
            }
            (Some(result), _) => Ok(result.to_owned()),
            _ => Err(CallFailure::malformed("its result is missing, or null")),
        };
        // The request leaves its slot when its answer has been taken.
        settle(id, flight, answer)
    }

    pub(crate) fn is_listening(&self, id: &RequestId) -> bool {
        let flights = self.flights();
        flights
            .get(id)
            .is_some_and(|flight| flight.method == LISTEN)
    }

    /// The caller that a message of the server is for: of the request whose stream it came on;
    /// without one, of all requests in flight, if it is the same for all.
    pub(crate) fn caller(
        &self,
        stream: Option<&RequestId>,
    ) -> (Option<Who>, Vec<CancellationToken>) {
        let flights = self.flights();
        let of_stream = stream.and_then(|id| Some(&flights.get(id)?.slot));
        let all = flights.values().map(|flight| &flight.slot);
        let slots: Vec<&Slot> = of_stream.map_or_else(|| all.collect(), |slot| vec![slot]);
        let mut found: Option<Who> = None;
        let mut tokens = Vec::new();
        for slot in slots {
            let Some(who) = &slot.0.who else { continue };
            tokens.push(slot.0.over.clone());
            match &mut found {
                None => found = Some(who.clone()),
                Some(other) if !Arc::ptr_eq(&other.caller, &who.caller) => {
                    return (None, Vec::new());
                }
                Some(other) if other.tool != who.tool => other.tool = "".into(),
                Some(_) => {}
            }
        }
        (found, tokens)
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<RequestId, Flight>> {
        self.flights.lock()
    }
}

/// Fills a request's slot, and returns the message that settles its id in rmcp.
fn settle(id: RequestId, flight: Flight, answer: Answer) -> ServerJsonRpcMessage {
    let message = match &answer {
        // rmcp takes the headers of later calls from it.
        Ok(result) if flight.method == "tools/list" && flight.mirrors => {
            ServerJsonRpcMessage::response(usable_tools(result), id)
        }
        // And those of its session from this one.
        Ok(result) if flight.method == INITIALIZE => {
            ServerJsonRpcMessage::response(agreed(result), id)
        }
        Ok(_) => ServerJsonRpcMessage::response(ServerResult::empty(()), id),
        Err(_) => {
            let error = ErrorData::internal_error("see the slot", None);
            ServerJsonRpcMessage::error(error, Some(id))
        }
    };
    flight.slot.fill(answer);
    message
}

/// The revision that a server agrees on.
fn agreed(result: &RawValue) -> ServerResult {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Said {
        protocol_version: ProtocolVersion,
    }
    let said = serde_json::from_str::<Said>(result.get());
    said.map_or(ServerResult::empty(()), |said| {
        let result = InitializeResult::new(ServerCapabilities::default());
        let result = result.with_protocol_version(said.protocol_version);
        ServerResult::InitializeResult(result)
    })
}

/// The names and input schemas of a tool list, as far as rmcp can read them.
fn usable_tools(result: &RawValue) -> ServerResult {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        name: String,
        input_schema: JsonObject,
    }
    let page = serde_json::from_str::<Page<'_>>(result.get());
    let tools = page.map(|page| page.tools).unwrap_or_default();
    let entries = tools
        .into_iter()
        .filter(|tool| tool.get().len() <= MAX_VALUE_BYTES);
    let entries = entries.filter_map(|tool| serde_json::from_str::<Entry>(tool.get()).ok());
    let tools = entries.map(|entry| Tool::new(entry.name, "", entry.input_schema));
    ServerResult::ListToolsResult(ListToolsResult::with_all_items(tools.collect()))
}

/// The name of the annotation of arguments that are headers, too.
pub(crate) const HEADER_MARK: &str = "x-mcp-header";

/// Reads a JSON-RPC error leniently: a server that fails should not fail twice.
pub(crate) fn read_error(error: &RawValue) -> ErrorData {
    #[derive(Deserialize, Default)]
    struct Lenient {
        #[serde(default)]
        code: Value,
        #[serde(default)]
        message: Value,
        #[serde(default)]
        data: Value,
    }
    let readable = Some(error.get()).filter(|text| text.len() <= MAX_VALUE_BYTES);
    let read = readable.and_then(|text| serde_json::from_str(text).ok());
    let text = || serde_json::from_str(error.get()).unwrap_or_default();
    let error: Lenient = read.unwrap_or_else(|| Lenient {
        message: text(),
        ..Lenient::default()
    });
    let code = error.code.as_i64().and_then(|code| code.try_into().ok());
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    let none = "the server gave an error without a message";
    let message = error.message.as_str().unwrap_or(none).to_owned();
    let data = Some(error.data).filter(|data| !data.is_null());
    ErrorData::new(code, message, data)
}

/// The revisions in the data of an unsupported-version error.
pub(crate) fn supported(error: &ErrorData) -> Vec<ProtocolVersion> {
    let supported = error.data.as_ref().and_then(|data| data.get("supported"));
    let supported = supported.and_then(|supported| serde_json::from_value(supported.clone()).ok());
    supported.unwrap_or_default()
}

/// An id as it was sent; a server may answer with it as a text, or as a decimal number.
pub(crate) fn read_id(id: &RawValue) -> Option<RequestId> {
    let number = unquoted(id);
    let whole = match number.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
        _ => number,
    };
    match whole.parse() {
        Ok(number) => Some(NumberOrString::Number(number)),
        Err(_) => serde_json::from_str(id.get()).ok(),
    }
}

/// The id of a server's own request, as the server wrote it.
fn foreign_id(id: &RawValue) -> Option<RequestId> {
    serde_json::from_str(id.get()).ok().or_else(|| read_id(id))
}

/// A number that may be written as a text.
fn unquoted(number: &RawValue) -> &str {
    number.get().trim_matches('"').trim()
}

/// A message without the byte order mark that some writers put before it.
pub(crate) fn bare(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}')
}

/// The messages of a batch, or of a line in which one follows the other.
fn split(text: &str) -> Option<Vec<&RawValue>> {
    let mut all = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let value = value.ok()?;
        if value.get().starts_with('[') {
            all.extend(serde_json::from_str::<Vec<&RawValue>>(value.get()).ok()?);
        } else {
            all.push(value);
        }
    }
    Some(all)
}

/// Whether a text that cannot be read is not an answer.
fn has_method(text: &[u8]) -> bool {
    memchr::memmem::find(text, br#""method":"#).is_some_and(|at| at < END_BYTES)
}

/// The id in a text that cannot be read: before its result or error, or else at its end.
fn find_id(text: &[u8]) -> Option<RequestId> {
    if has_method(text) {
        return None;
    }
    let find = |needle: &[u8]| memchr::memmem::find(text, needle);
    let body = [find(br#""result":"#), find(br#""error":"#)]
        .into_iter()
        .flatten()
        .min();
    let first = find(br#""id":"#).filter(|at| body.is_none_or(|body| *at < body));
    let at = first.or_else(|| memchr::memmem::rfind(text, br#""id":"#))?;
    let digits: String = text
        .get(at + 5..)?
        .iter()
        .map(|byte| char::from(*byte))
        .skip_while(|character| character.is_ascii_whitespace() || *character == '"')
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok().map(NumberOrString::Number)
}

#[cfg(test)]
mod tests {
    use callgate_auth::Redact;
    use expect_test::{Expect, expect};

    use super::*;

    fn new_tap() -> Arc<Tap> {
        let redact = Redact::default();
        let notifications = Notifications::new("s".into(), redact, Arc::default(), Arc::default());
        Tap::new(Arc::new(notifications))
    }

    /// Sends a request with this id, and returns its slot.
    fn send(tap: &Arc<Tap>, id: i64, method: &str) -> Slot {
        let slot = Slot::default();
        let mut request = CustomRequest::new(method, None);
        request.extensions.insert(slot.clone());
        let request = rmcp::model::ClientRequest::CustomRequest(request);
        let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(id));
        tap.outgoing(&message);
        tap.sent(&NumberOrString::Number(id));
        slot
    }

    /// The answer to request 5 when the server writes this; and to request 6, if any.
    fn answer(text: &[u8]) -> String {
        let tap = new_tap();
        let (slot, other) = (send(&tap, 5, "tools/call"), send(&tap, 6, "tools/call"));
        let settled = tap.incoming(text, None).len();
        let shown = |slot: &Slot| match slot.take() {
            Some(Ok(result)) => result.get().to_owned(),
            Some(Err(failure)) => failure.to_string(),
            None => "-".to_owned(),
        };
        format!("{}; {}; {settled}", shown(&slot), shown(&other))
    }

    #[test]
    fn an_answer_with_a_known_id_ends_its_request() {
        let check = |text: &str, expected: Expect| expected.assert_eq(&answer(text.as_bytes()));
        let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":5,"result":{result}}}"#);
        check(&result(r#"{"n":1e400}"#), expect![[r#"{"n":1e400}; -; 1"#]]);
        check(
            &result(r#"{"t":"a\ud800b"}"#),
            expect![[r#"{"t":"a\ud800b"}; -; 1"#]],
        );
        check(
            &result("[12345678901234567890123,0.1000000000000000055511151231257827]"),
            expect!["[12345678901234567890123,0.1000000000000000055511151231257827]; -; 1"],
        );
        for odd in [
            "7",
            "{}",
            r#"{"content":7}"#,
            r#"{"content":[{"type":"hologram"}]}"#,
        ] {
            assert_eq!(answer(result(odd).as_bytes()), format!("{odd}; -; 1"));
        }
        check(r#"{"id":5,"result":{}}"#, expect!["{}; -; 1"]);
        check(
            r#"{"jsonrpc":"2.0","id":"5","result":{}}"#,
            expect!["{}; -; 1"],
        );
        check(
            r#"[{"jsonrpc":"2.0","id":6,"result":1},{"jsonrpc":"2.0","id":5,"result":2}]"#,
            expect!["2; 1; 2"],
        );
        let error = |error: &str| format!(r#"{{"jsonrpc":"2.0","id":5,"error":{error}}}"#);
        check(&error(r#""boom""#), expect!["boom (code -32603); -; 1"]);
        check(
            &error(r#"{"code":3000000000,"message":"m"}"#),
            expect!["m (code -32603); -; 1"],
        );
        check(
            &error(r#"{"code":-1}"#),
            expect!["the server gave an error without a message (code -1); -; 1"],
        );
        check(
            r#"{"id":5,"result":{},"error":{"code":-1,"message":"m"}}"#,
            expect!["m (code -1); -; 1"],
        );
        check(r#"{"id":5,"result":{},"error":null}"#, expect!["{}; -; 1"]);
        check(
            r#"{"id":5}"#,
            expect!["the answer is malformed: its result is missing, or null; -; 1"],
        );
        check(
            r#"{"jsonrpc":"2.0","id":5,"result":{"a":}}"#,
            expect!["the answer is malformed: it is not a JSON-RPC message; -; 1"],
        );
        check(r#"{"id":99,"result":{}}"#, expect!["-; -; 0"]);
        check("DEBUG got 5", expect!["-; -; 0"]);
        check("[1, 2]", expect!["-; -; 0"]);
        let invalid = b"{\"id\":5,\"result\":\"a\xffb\"}";
        assert_eq!(answer(invalid), "\"a\u{fffd}b\"; -; 1");
    }

    #[test]
    fn progress_is_heard_by_any_spelling_of_its_token() {
        for (params, is_heard) in [
            (r#"{"progressToken":7,"progress":1}"#, true),
            (r#"{"progressToken":"7","progress":1}"#, true),
            (
                r#"{"progressToken":7.0,"progress":"0.5","total":"x"}"#,
                true,
            ),
            (r#"{"progressToken":"8","progress":1}"#, false),
            (r#"{"progressToken":7}"#, false),
        ] {
            let tap = new_tap();
            let slot = send(&tap, 5, "tools/call");
            let token = ProgressToken(NumberOrString::Number(7));
            tap.flights()
                .values_mut()
                .for_each(|it| it.token = Some(token.clone()));
            let text = format!(r#"{{"method":"notifications/progress","params":{params}}}"#);
            tap.incoming(text.as_bytes(), None);
            let is_known = slot.0.progress.lock().is_some();
            assert_eq!(
                (is_known, slot.unused().is_empty()),
                (is_heard, is_heard),
                "{params}"
            );
        }
    }

    /// A server's request is answered with its id as the server wrote it.
    #[test]
    fn ids_of_the_server_are_kept() {
        let tap = new_tap();
        for id in ["7", r#""7""#, r#""a""#] {
            let text = format!(r#"{{"id":{id},"method":"ping"}}"#);
            let read = tap.incoming(text.as_bytes(), None);
            let sent = serde_json::to_value(read.first()).expect("JSON");
            assert_eq!(sent["id"].to_string(), id);
        }
    }

    #[test]
    fn an_answer_over_the_limit_ends_its_request() {
        let check = |ends: &str, five: bool, six: bool| {
            let tap = new_tap();
            let (slot, other) = (send(&tap, 5, "tools/call"), send(&tap, 6, "tools/call"));
            tap.too_long(ends.as_bytes(), 7);
            assert_eq!(
                (slot.take().is_some(), other.take().is_some()),
                (five, six),
                "{ends}"
            );
        };
        check(r#"{"jsonrpc":"2.0","id":5,"result":{"id":6"#, true, false);
        check(r#"{"result":{"id":6,"x":"…"},"id":5}"#, true, false);
        check(r#"{"id": "6", "result":"#, false, true);
        check(r#"{"result":"…"#, true, true);
        let notification = r#"{"jsonrpc":"2.0","method":"m","params":{"id":5"#;
        check(notification, false, false);
    }

    #[test]
    fn the_end_of_a_connection_ends_its_requests() {
        let tap = new_tap();
        let slot = send(&tap, 5, "tools/call");
        assert_eq!(tap.end("it ended").len(), 1);
        let failure = slot.take().expect("an answer").expect_err("a failure");
        assert_eq!(
            (failure.to_string(), failure.sent),
            ("it ended".to_owned(), true)
        );
        // One that comes later is not sent.
        let slot = send(&tap, 6, "tools/call");
        let failure = slot.take().expect("an answer").expect_err("a failure");
        assert!(!failure.sent);
    }

    #[test]
    fn arguments_are_sent_as_they_are() {
        let mut request = CustomRequest::new("tools/call", Some(json!({ "name": "t" })));
        let members = r#""name":"t","arguments":{"n":1e400}"#;
        request.extensions.insert(Members(members.into()));
        let request = rmcp::model::ClientRequest::CustomRequest(request);
        let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(5));
        let sent = String::from_utf8(text(&message)).expect("UTF-8");
        expect![[r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{},"name":"t","arguments":{"n":1e400}}}"#]]
            .assert_eq(&sent);
    }
}
