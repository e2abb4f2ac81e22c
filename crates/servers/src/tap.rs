//! Reads the messages between the transport and rmcp.
//!
//! A request carries a [`Slot`] in its `Extensions`, which are never serialised. The tap
//! registers the request when it goes out. When the answer comes, its text goes into the slot
//! and rmcp gets an empty result, which settles the id. So results stay text, and an answer
//! with a known id always ends its request, readable or not.
//!
//! Notifications go to [`Notifications`] in their order, and rmcp does not see them. Requests of
//! the server go to rmcp as one custom method, [`ASK`], so that their parameters stay as they
//! were written.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{
    ClientJsonRpcMessage, CustomRequest, ErrorData, GetExtensions as _, GetMeta as _,
    InitializeResult, JsonObject, ListToolsResult, NumberOrString, ProgressToken, ProtocolVersion,
    RequestId, ServerCapabilities, ServerJsonRpcMessage, ServerNotification, ServerRequest,
    ServerResult, Tool,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::failure::{CallFailure, Reason};
use crate::json_rpc::{
    Envelope, MAX_VALUE_BYTES, bare, find_id, has_method, read_error, read_id, split,
};
use crate::server_log::fit;
use crate::slot::{CallContext, Slot};
use crate::watch::Notifications;

/// The method by which a server's request reaches the handler; see [`Asked`].
pub(crate) const ASK: &str = "callgate/ask";
/// The request that listens for changes (2026-07-28).
pub(crate) const LISTEN: &str = "subscriptions/listen";
pub(crate) const DISCOVER: &str = "server/discover";
pub(crate) const INITIALIZE: &str = "initialize";
/// The characters that are shown of a message that cannot be used.
const MAX_SHOWN: usize = 200;

/// A server's request as the handler gets it: the parameters of [`ASK`].
#[derive(Debug, serde::Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) bytes: usize,
    /// The request of ours on whose own stream it came.
    pub(crate) stream: Option<RequestId>,
}

/// The requests in flight on one connection.
#[derive(Debug)]
pub(crate) struct Tap {
    state: Mutex<State>,
    listener: Arc<Notifications>,
    lost: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct State {
    flights: HashMap<RequestId, Flight>,
    /// The id of the latest request.
    latest: Option<i64>,
    /// True in 2026-07-28, where servers send no requests.
    is_stateless: bool,
    /// Messages that were read and could not be used, and the first of them as it is shown.
    unused: usize,
    first_unused: String,
    /// Why no more requests are sent, though answers to earlier ones may come.
    closing: Option<String>,
}

#[derive(Debug)]
struct Flight {
    method: String,
    token: Option<ProgressToken>,
    slot: Slot,
    /// True if the server may have read it.
    sent: bool,
}

impl Tap {
    pub(crate) fn new(listener: Arc<Notifications>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            listener,
            lost: watch::Sender::default(),
        })
    }

    /// Drops the server's requests from now on: 2026-07-28 has none.
    pub(crate) fn set_stateless(&self) {
        self.state().is_stateless = true;
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.state().is_stateless
    }

    /// Messages that were read and could not be used, as a clause; empty if there are none.
    pub(crate) fn unused(&self) -> String {
        let state = self.state();
        let first = &state.first_unused;
        match state.unused {
            0 => String::new(),
            1 => format!("; the server wrote a message that could not be used: {first}"),
            count => format!(
                "; the server wrote {count} messages that could not be used, the first: {first}"
            ),
        }
    }

    /// The same, for the last time.
    pub(crate) fn take_unused(&self) -> String {
        let unused = self.unused();
        self.state().unused = 0;
        unused
    }

    /// Notes a message that cannot be used.
    pub(crate) fn note_unused(&self, text: &str) {
        let mut state = self.state();
        state.unused += 1;
        if state.unused == 1 {
            state.first_unused = format!("\"{}\"", fit(text, MAX_SHOWN, &self.listener.redact));
        }
    }

    /// The reason for which the connection is gone, once it is.
    pub(crate) fn lost(&self) -> watch::Receiver<Option<String>> {
        self.lost.subscribe()
    }

    /// Waits until the connection is gone.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut lost = self.lost();
        async move {
            let _ = lost.wait_for(Option::is_some).await;
        }
    }

    /// Registers a message that goes out.
    pub(crate) fn outgoing(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(sent) = message else {
            return;
        };
        let request = &sent.request;
        let Some(slot) = request.extensions().get::<Slot>().cloned() else {
            return;
        };
        let mut state = self.state();
        // The end of the connection takes the requests that are registered by then.
        if let Some(reason) = self.lost.borrow().as_ref().or(state.closing.as_ref()) {
            return slot.fill(Err(CallFailure::closed(reason.as_str(), false)));
        }
        // A request may be given up before it is sent.
        if slot.over().is_cancelled() {
            return;
        }
        let flight = Flight {
            method: request.method().to_owned(),
            token: request.get_meta().get_progress_token(),
            slot,
            sent: false,
        };
        state.flights.insert(sent.id.clone(), flight);
        if let NumberOrString::Number(id) = sent.id {
            state.latest = state.latest.max(Some(id));
        }
    }

    /// Notes that the server may read a request.
    pub(crate) fn sent(&self, id: &RequestId) {
        if let Some(flight) = self.state().flights.get_mut(id) {
            flight.sent = true;
        }
    }

    /// Forgets a request for which nothing waits any more. rmcp does not always tell its transport.
    pub(crate) fn leave(&self, slot: &Slot) {
        slot.over().cancel();
        self.state()
            .flights
            .retain(|_, flight| flight.slot != *slot);
        self.end_if_closed();
    }

    /// Sends no more requests. The connection ends when those in flight have been answered.
    pub(crate) fn close(&self, reason: &str) {
        self.state()
            .closing
            .get_or_insert_with(|| reason.to_owned());
        self.end_if_closed();
    }

    /// The reason for which no more requests are sent, if there is one.
    pub(crate) fn closed(&self) -> Option<String> {
        let lost = self.lost.borrow().clone();
        lost.or_else(|| self.state().closing.clone())
    }

    fn end_if_closed(&self) {
        let state = self.state();
        let is_idle = |state: &State| {
            let mut flights = state.flights.values();
            flights.all(|flight| flight.method == LISTEN)
        };
        if let Some(reason) = state.closing.clone().filter(|_| is_idle(&state)) {
            drop(state);
            self.end(&reason);
        }
    }

    /// Ends the connection: every request fails, each by its id.
    pub(crate) fn end(&self, reason: &str) -> Vec<ServerJsonRpcMessage> {
        self.lost.send_if_modified(|known| {
            let is_news = known.is_none();
            known.get_or_insert_with(|| reason.to_owned());
            is_news
        });
        let ended = std::mem::take(&mut self.state().flights);
        let failed = ended.into_iter().map(|(id, flight)| {
            let failure = CallFailure::closed(reason, flight.sent);
            failed(id, &flight.slot, failure)
        });
        failed.collect()
    }

    /// Ends one request with a failure, if it still waits.
    pub(crate) fn fail(
        &self,
        id: &RequestId,
        failure: CallFailure,
    ) -> Option<ServerJsonRpcMessage> {
        let flight = self.state().flights.remove(id)?;
        let message = failed(id.clone(), &flight.slot, failure);
        self.end_if_closed();
        Some(message)
    }

    /// Ends the request that a message over the limit answers; all of them, if it does not tell.
    pub(crate) fn too_long(&self, ends: &[u8], limit: usize) -> Vec<ServerJsonRpcMessage> {
        if has_method(ends) {
            self.note_unused(&String::from_utf8_lossy(ends));
            return Vec::new();
        }
        let all = || self.state().flights.keys().cloned().collect();
        let ids = find_id(ends).map_or_else(all, |id| vec![id]);
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
        let messages = split(text).unwrap_or_else(|| vec![text]);
        let read = messages
            .into_iter()
            .filter_map(|one| match Envelope::read(one) {
                Some(envelope) => self.one(&envelope, one, stream),
                None => self.unreadable(one),
            });
        read.collect()
    }

    fn one(
        &self,
        envelope: &Envelope<'_>,
        text: &str,
        stream: Option<&RequestId>,
    ) -> Option<ServerJsonRpcMessage> {
        let params = envelope.params.map_or("{}", RawValue::get);
        if let Some(method) = &envelope.method {
            // It is answered with its id as the server wrote it.
            let own = |id: &RawValue| serde_json::from_str(id.get()).ok().or_else(|| read_id(id));
            return match envelope.id.and_then(own) {
                Some(id) => self.request(method, params, id, stream),
                None => self.notification(method, params, stream),
            };
        }
        let is_answer = envelope.result.is_some() || envelope.error.is_some();
        // A server does not know the id of a request that it could not read.
        let of_stream = stream.filter(|_| is_answer);
        let id = envelope.id.and_then(read_id).or_else(|| of_stream.cloned());
        let flight = id.as_ref().and_then(|id| self.state().flights.remove(id));
        if let (Some(id), Some(flight)) = (&id, flight) {
            return Some(self.answered(id.clone(), &flight, envelope));
        }
        // A late answer says nothing about the others.
        let latest = self.state().latest;
        if !matches!(id, Some(NumberOrString::Number(id)) if Some(id) <= latest) {
            self.note_unused(text);
        }
        None
    }

    /// A message that is not JSON-RPC: if it has the id of a request, it ends the request.
    fn unreadable(&self, text: &str) -> Option<ServerJsonRpcMessage> {
        let is_object = text.starts_with('{');
        let id = is_object.then(|| find_id(text.as_bytes())).flatten();
        let failure = CallFailure::malformed("it is not a JSON-RPC message");
        let ended = id.and_then(|id| self.fail(&id, failure));
        if ended.is_none() {
            self.note_unused(text);
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
            .state()
            .flights
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
        if method == "notifications/cancelled" {
            return self.cancelled(params);
        }
        self.listener.notification(self, method, params, stream);
        None
    }

    /// The request that a progress notification is for.
    pub(crate) fn of_progress(&self, token: RequestId) -> Option<Slot> {
        let (state, token) = (self.state(), Some(ProgressToken(token)));
        let found = state.flights.values().find(|flight| flight.token == token);
        found.map(|flight| flight.slot.clone())
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
        flight: &Flight,
        envelope: &Envelope<'_>,
    ) -> ServerJsonRpcMessage {
        let result = match (envelope.result, envelope.error) {
            (_, Some(error)) if error.get() != "null" => {
                return failed(id, &flight.slot, CallFailure::refused(read_error(error)));
            }
            (Some(result), _) => result,
            _ => {
                let failure = CallFailure::malformed("its result is missing, or null");
                return failed(id, &flight.slot, failure);
            }
        };
        // The request leaves when its answer has been taken.
        flight.slot.fill(Ok(result.to_owned()));
        let seen = match flight.method.as_str() {
            // rmcp takes the headers of later calls from it.
            "tools/list" if self.is_stateless() => usable_tools(result),
            // And those of its session from this one.
            INITIALIZE => agreed(result),
            _ => ServerResult::empty(()),
        };
        ServerJsonRpcMessage::response(seen, id)
    }

    pub(crate) fn is_listening(&self, id: &RequestId) -> bool {
        let state = self.state();
        let flight = state.flights.get(id);
        flight.is_some_and(|flight| flight.method == LISTEN)
    }

    /// The caller that a message of the server is for: of the request whose stream it came on;
    /// without one, of all requests in flight, if it is the same for all.
    pub(crate) fn caller(
        &self,
        stream: Option<&RequestId>,
    ) -> (Option<CallContext>, Vec<CancellationToken>) {
        let flights = &self.state().flights;
        let of_stream = stream.and_then(|id| Some(&flights.get(id)?.slot));
        let all = flights.values().map(|flight| &flight.slot);
        let slots: Vec<&Slot> = of_stream.map_or_else(|| all.collect(), |slot| vec![slot]);
        let mut found: Option<CallContext> = None;
        let mut tokens = Vec::new();
        for slot in slots {
            let Some(who) = slot.who() else { continue };
            tokens.push(slot.over().clone());
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Fills a request's slot with a failure, and returns the message that settles its id in rmcp.
fn failed(id: RequestId, slot: &Slot, failure: CallFailure) -> ServerJsonRpcMessage {
    slot.fill(Err(failure));
    let error = ErrorData::internal_error("see the slot", None);
    ServerJsonRpcMessage::error(error, Some(id))
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

#[cfg(test)]
mod tests;
