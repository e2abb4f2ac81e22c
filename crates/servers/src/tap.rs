//! Reads the messages between the transport and rmcp.
//!
//! A request carries a [`Slot`](crate::slot::Slot) in its `Extensions`, which are never
//! serialised. The tap registers the request when it goes out. When the answer comes, its text
//! goes into the slot and rmcp gets an empty result, which settles the id. So results stay text,
//! and an answer with a known id always ends its request, readable or not.
//!
//! Notifications are handled in their order, and rmcp does not see them. Requests of the server go
//! to rmcp as one custom method, [`FORWARD`], so that their parameters stay as they were written.

mod notifications;

use std::ops::Deref;
use std::sync::Arc;

use callgate_auth::Redact;
use parking_lot::Mutex;
use rmcp::model::{
    CustomRequest, InitializeResult, JsonObject, ListToolsResult, RequestId, ServerCapabilities,
    ServerJsonRpcMessage, ServerNotification, ServerRequest, ServerResult, Tool,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};

use crate::failure::{CallFailure, Reason};
use crate::in_flight::{InFlight, LISTEN, SentRequest, failed};
use crate::json_rpc::{
    Envelope, MAX_VALUE_BYTES, bare, bounded_value, find_id, has_method, read_error, read_id, split,
};
use crate::questions::{FORWARD, ForwardedRequest};
use crate::server_log::FloodGate;

pub(crate) const DISCOVER: &str = "server/discover";
pub(crate) const INITIALIZE: &str = "initialize";
/// Ids of finished pages that wait to be read.
const MAX_DONE: usize = 64;

/// Reads the messages of one connection.
#[derive(Debug)]
pub(crate) struct Tap {
    in_flight: InFlight,
    pub(crate) server: Arc<str>,
    flood: FloodGate,
    /// Sends the ids of pages that the server reports as finished.
    pub(crate) pages: broadcast::Sender<String>,
    /// Generation of the tool list.
    generation: Arc<watch::Sender<u64>>,
    /// The last subscription that the server acknowledged.
    acknowledged: Mutex<Option<RequestId>>,
}

impl Deref for Tap {
    type Target = InFlight;

    fn deref(&self) -> &InFlight {
        &self.in_flight
    }
}

impl Tap {
    pub(crate) fn new(
        server: Arc<str>,
        redact: Redact,
        generation: Arc<watch::Sender<u64>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            in_flight: InFlight::new(redact),
            flood: FloodGate::new(Arc::clone(&server)),
            server,
            pages: broadcast::channel(MAX_DONE).0,
            generation,
            acknowledged: Mutex::default(),
        })
    }

    /// Ends the request that a message over the limit answers, or all of them if the id is not
    /// found. `ends` are the first and the last bytes of the message.
    pub(crate) fn too_long(&self, ends: &[u8], limit: usize) -> Vec<ServerJsonRpcMessage> {
        if has_method(ends) {
            self.note_unused(&String::from_utf8_lossy(ends));
            return Vec::new();
        }
        let ids = find_id(ends).map_or_else(|| self.ids(), |id| vec![id]);
        let failed = ids
            .iter()
            .filter_map(|id| self.fail(id, CallFailure::too_large(limit)));
        failed.collect()
    }

    /// Reads one message, or a batch of them, and returns the messages for rmcp. `stream` is the
    /// request on whose own stream they came.
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
                Some(envelope) => self.message(&envelope, one, stream),
                None => self.unreadable(one),
            });
        read.collect()
    }

    fn message(
        &self,
        envelope: &Envelope<'_>,
        text: &str,
        stream: Option<&RequestId>,
    ) -> Option<ServerJsonRpcMessage> {
        let params = envelope.params.map_or("{}", RawValue::get);
        if let Some(method) = &envelope.method {
            // The request is answered with its id as the server wrote it.
            let own = |id: &str| serde_json::from_str(id).ok().or_else(|| read_id(id));
            return match envelope.id.and_then(|id| own(id.get())) {
                Some(id) => self.request(method, params, id, stream),
                None => self.notification(method, params, stream),
            };
        }
        let is_answer = envelope.result.is_some() || envelope.error.is_some();
        // A server does not know the id of a request that it could not read.
        let of_stream = stream.filter(|_| is_answer);
        let id = envelope.id.and_then(|id| read_id(id.get()));
        let id = id.or_else(|| of_stream.cloned());
        if let Some(id) = &id
            && let Some(request) = self.take(id)
        {
            return Some(self.answered(id.clone(), &request, envelope));
        }
        // A late answer says nothing about the requests in flight.
        if !id.is_some_and(|id| self.is_over(&id)) {
            self.note_unused(text);
        }
        None
    }

    /// Handles a message that is not JSON-RPC. If it has the id of a request, the request ends.
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
        if matches!(method, DISCOVER | INITIALIZE) && self.has(&id, method) {
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
        let forwarded = ForwardedRequest {
            method: method.to_owned(),
            params: bounded_value(params),
            bytes: params.len(),
            stream: stream.cloned(),
        };
        let forwarded = CustomRequest::new(FORWARD, serde_json::to_value(forwarded).ok());
        Some(ServerJsonRpcMessage::request(
            ServerRequest::CustomRequest(forwarded),
            id,
        ))
    }

    /// Handles the cancellation of a request of the server, or of a subscription (2026-07-28).
    fn cancelled(&self, params: &str) -> Option<ServerJsonRpcMessage> {
        if self.is_stateless() {
            let id = read_id(&bounded_value(params)["requestId"].to_string())?;
            let is_listening = self.has(&id, LISTEN);
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
        request: &SentRequest,
        envelope: &Envelope<'_>,
    ) -> ServerJsonRpcMessage {
        let result = match (envelope.result, envelope.error) {
            (_, Some(error)) if error.get() != "null" => {
                return failed(id, &request.slot, CallFailure::refused(read_error(error)));
            }
            (Some(result), _) => result,
            _ => {
                let failure = CallFailure::malformed("its result is missing, or null");
                return failed(id, &request.slot, failure);
            }
        };
        // The request is forgotten when its answer has been taken.
        request.slot.fill(Ok(result.to_owned()));
        let seen = match request.method.as_str() {
            // rmcp takes the headers of later calls from it.
            "tools/list" if self.is_stateless() => usable_tools(result),
            // And those of its session from this one.
            INITIALIZE => agreed(result),
            _ => ServerResult::empty(()),
        };
        ServerJsonRpcMessage::response(seen, id)
    }
}

/// The greeting for rmcp: only the revision that the server agrees on.
fn agreed(result: &RawValue) -> ServerResult {
    let version = bounded_value(result.get())["protocolVersion"].clone();
    serde_json::from_value(version).map_or(ServerResult::empty(()), |version| {
        let result = InitializeResult::new(ServerCapabilities::default());
        ServerResult::InitializeResult(result.with_protocol_version(version))
    })
}

/// The tool list for rmcp: the names and input schemas that it can read.
fn usable_tools(result: &RawValue) -> ServerResult {
    #[derive(Deserialize)]
    struct Entries<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        name: String,
        input_schema: JsonObject,
    }
    let entries = serde_json::from_str::<Entries<'_>>(result.get());
    let tools = entries.map(|entries| entries.tools).unwrap_or_default();
    let entries = tools
        .into_iter()
        .filter(|tool| tool.get().len() <= MAX_VALUE_BYTES);
    let entries = entries.filter_map(|tool| serde_json::from_str::<Entry>(tool.get()).ok());
    let tools = entries.map(|entry| Tool::new(entry.name, "", entry.input_schema));
    ServerResult::ListToolsResult(ListToolsResult::with_all_items(tools.collect()))
}

#[cfg(test)]
mod tests;
