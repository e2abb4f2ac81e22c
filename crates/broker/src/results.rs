//! Results of requests in flight, kept as the JSON text the server sent.
//!
//! rmcp parses a result into the first of its types that fits. One malformed
//! tool then turns a whole list into an unknown value, and a large result is
//! parsed into a tree only to be printed again. So both transports take the
//! results of `tools/list` and `tools/call` out of the stream before rmcp sees
//! them, leave them here, and hand rmcp an empty result with the same id, which
//! wakes the caller.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// What a server answered to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The `result` member.
    Result(Box<RawValue>),
    /// The message was over this limit, in bytes, and is lost.
    TooLarge(usize),
    /// Neither a result nor an error that JSON-RPC knows.
    Malformed(String),
}

/// The requests in flight on one connection, and the answers not yet fetched.
#[derive(Debug, Default)]
pub(crate) struct Results {
    slots: Mutex<HashMap<RequestId, Option<Answer>>>,
}

impl Results {
    /// Notes the request if its result is to be kept. Called with each message
    /// as it is sent.
    pub(crate) fn expect(&self, message: &ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Request(request) = message
            && matches!(
                request.request,
                ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_)
            )
        {
            self.slots().entry(request.id.clone()).or_insert(None);
        }
    }

    /// Whether an answer to this id is still wanted.
    pub(crate) fn expects(&self, id: &RequestId) -> bool {
        matches!(self.slots().get(id), Some(None))
    }

    /// Keeps an answer. `false` if nobody wants it (any more).
    pub(crate) fn arrived(&self, id: &RequestId, answer: Answer) -> bool {
        match self.slots().get_mut(id) {
            Some(slot @ None) => {
                *slot = Some(answer);
                true
            }
            _ => false,
        }
    }

    /// Takes the answer and forgets the request.
    pub(crate) fn take(&self, id: &RequestId) -> Option<Answer> {
        self.slots().remove(id).flatten()
    }

    /// The requests still without an answer.
    pub(crate) fn unanswered(&self) -> Vec<RequestId> {
        let slots = self.slots();
        slots
            .iter()
            .filter(|(_, slot)| slot.is_none())
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<RequestId, Option<Answer>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A JSON-RPC message, looked at no deeper than needed to see what it is.
#[derive(Debug, Deserialize)]
pub(crate) struct Frame<'a> {
    #[serde(default)]
    pub(crate) id: Option<RequestId>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

/// Keeps `null` apart from an absent member.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
