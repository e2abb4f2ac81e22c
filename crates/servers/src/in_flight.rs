//! The requests in flight on one connection, and the end of the connection.

use std::collections::HashMap;
use std::sync::Arc;

use callgate_auth::Redact;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, GetExtensions as _, GetMeta as _, NumberOrString,
    ProgressToken, RequestId, ServerJsonRpcMessage,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::failure::CallFailure;
use crate::server_log::fit;
use crate::slot::{CallContext, Slot};

/// The request that subscribes to changes (2026-07-28).
pub(crate) const LISTEN: &str = "subscriptions/listen";
/// Shown characters of a message that cannot be used.
const MAX_SHOWN: usize = 200;

/// The requests in flight on one connection.
#[derive(Debug)]
pub(crate) struct InFlight {
    table: Mutex<Table>,
    pub(crate) redact: Redact,
    /// Why the connection is gone, once it is.
    lost: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct Table {
    requests: HashMap<RequestId, SentRequest>,
    /// The id of the latest request.
    latest: Option<i64>,
    /// True in 2026-07-28, where servers send no requests.
    is_stateless: bool,
    /// The number of received messages that could not be used.
    unused: usize,
    /// The first of them, in the form that is shown.
    first_unused: String,
    /// Why no more requests are sent. Answers to earlier ones may still come.
    closing: Option<String>,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct SentRequest {
    pub(crate) method: String,
    pub(crate) slot: Arc<Slot>,
    token: Option<ProgressToken>,
    /// True if the server may have read it.
    sent: bool,
}

impl InFlight {
    /// An empty table. `redact` hides secrets in messages that are shown.
    pub(crate) fn new(redact: Redact) -> Self {
        Self {
            table: Mutex::default(),
            redact,
            lost: watch::Sender::default(),
        }
    }

    /// Drops the server's requests from now on: 2026-07-28 has none.
    pub(crate) fn set_stateless(&self) {
        self.table().is_stateless = true;
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.table().is_stateless
    }

    /// A clause about the unusable messages so far; empty without such messages.
    pub(crate) fn unused(&self) -> String {
        let table = self.table();
        let first = &table.first_unused;
        match table.unused {
            0 => String::new(),
            1 => format!("; the server wrote a message that could not be used: {first}"),
            count => format!(
                "; the server wrote {count} messages that could not be used, the first: {first}"
            ),
        }
    }

    /// As [`InFlight::unused`], and forgets them.
    pub(crate) fn take_unused(&self) -> String {
        let unused = self.unused();
        self.table().unused = 0;
        unused
    }

    /// Counts a message that cannot be used.
    pub(crate) fn note_unused(&self, text: &str) {
        let mut table = self.table();
        table.unused += 1;
        if table.unused == 1 {
            table.first_unused = format!("\"{}\"", fit(text, MAX_SHOWN, &self.redact));
        }
    }

    /// Why the connection is gone; `None` while it is there.
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

    /// Registers a request that is about to be sent.
    pub(crate) fn register(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(sent) = message else {
            return;
        };
        let request = &sent.request;
        let Some(slot) = request.extensions().get::<Arc<Slot>>().cloned() else {
            return;
        };
        let mut table = self.table();
        // The end of the connection fails only the requests that are registered by then.
        if let Some(reason) = self.lost.borrow().as_ref().or(table.closing.as_ref()) {
            return slot.fill(Err(CallFailure::closed(reason.as_str(), false)));
        }
        // A request may be cancelled before it is sent.
        if slot.over.is_cancelled() {
            return;
        }
        let registered = SentRequest {
            method: request.method().to_owned(),
            token: request.get_meta().get_progress_token(),
            slot,
            sent: false,
        };
        table.requests.insert(sent.id.clone(), registered);
        if let NumberOrString::Number(id) = sent.id {
            table.latest = table.latest.max(Some(id));
        }
    }

    /// Records that the server may read a request.
    pub(crate) fn sent(&self, id: &RequestId) {
        if let Some(request) = self.table().requests.get_mut(id) {
            request.sent = true;
        }
    }

    /// Removes a request, because its answer has come.
    pub(crate) fn take(&self, id: &RequestId) -> Option<SentRequest> {
        self.table().requests.remove(id)
    }

    /// True if a request with this id was sent, and has an answer or was cancelled.
    pub(crate) fn is_over(&self, id: &RequestId) -> bool {
        let table = self.table();
        matches!(id, NumberOrString::Number(id) if Some(*id) <= table.latest)
    }

    /// Forgets a cancelled request. rmcp does not always notify its transport.
    pub(crate) fn cancel(&self, slot: &Arc<Slot>) {
        slot.over.cancel();
        let mut table = self.table();
        let requests = &mut table.requests;
        requests.retain(|_, request| !Arc::ptr_eq(&request.slot, slot));
        drop(table);
        self.end_if_closed();
    }

    /// Sends no more requests. The connection ends when those in flight have been answered.
    pub(crate) fn close(&self, reason: &str) {
        let mut table = self.table();
        table.closing.get_or_insert_with(|| reason.to_owned());
        drop(table);
        self.end_if_closed();
    }

    /// Why no more requests are sent; `None` while they are.
    pub(crate) fn closed(&self) -> Option<String> {
        let lost = self.lost.borrow().clone();
        lost.or_else(|| self.table().closing.clone())
    }

    fn end_if_closed(&self) {
        let table = self.table();
        let mut requests = table.requests.values();
        let is_idle = requests.all(|request| request.method == LISTEN);
        if let Some(reason) = table.closing.clone().filter(|_| is_idle) {
            drop(table);
            self.end(&reason);
        }
    }

    /// Ends the connection: every request fails, each by its id.
    pub(crate) fn end(&self, reason: &str) -> Vec<ServerJsonRpcMessage> {
        self.lost.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert_with(|| reason.to_owned());
            is_first
        });
        let ended = std::mem::take(&mut self.table().requests);
        let failed = ended.into_iter().map(|(id, request)| {
            let failure = CallFailure::closed(reason, request.sent);
            failed(id, &request.slot, failure)
        });
        failed.collect()
    }

    /// Ends one request with a failure, if it still waits. Returns the message that settles its
    /// id in rmcp.
    pub(crate) fn fail(
        &self,
        id: &RequestId,
        failure: CallFailure,
    ) -> Option<ServerJsonRpcMessage> {
        let request = self.take(id)?;
        let message = failed(id.clone(), &request.slot, failure);
        self.end_if_closed();
        Some(message)
    }

    pub(crate) fn ids(&self) -> Vec<RequestId> {
        self.table().requests.keys().cloned().collect()
    }

    /// True if the request in flight with this id has this method.
    pub(crate) fn has(&self, id: &RequestId, method: &str) -> bool {
        let table = self.table();
        let request = table.requests.get(id);
        request.is_some_and(|request| request.method == method)
    }

    /// The slot of the request with this progress token.
    pub(crate) fn by_progress_token(&self, token: RequestId) -> Option<Arc<Slot>> {
        let (table, token) = (self.table(), Some(ProgressToken(token)));
        let mut requests = table.requests.values();
        let found = requests.find(|request| request.token == token);
        found.map(|request| Arc::clone(&request.slot))
    }

    /// The call that a message of the server is about: that of the request on whose stream it
    /// came. Without a stream, the caller that all requests in flight have in common, if any; its
    /// tool is empty if they differ in it. Also returns a token for each of the calls, which is
    /// cancelled at the call's end.
    pub(crate) fn context(
        &self,
        stream: Option<&RequestId>,
    ) -> (Option<CallContext>, Vec<CancellationToken>) {
        let requests = &self.table().requests;
        let of_stream = stream.and_then(|id| Some(&requests.get(id)?.slot));
        let all = requests.values().map(|request| &request.slot);
        let slots: Vec<&Arc<Slot>> = of_stream.map_or_else(|| all.collect(), |slot| vec![slot]);
        let mut found: Option<CallContext> = None;
        let mut tokens = Vec::new();
        for slot in slots {
            let Some(context) = &slot.context else {
                continue;
            };
            tokens.push(slot.over.clone());
            match &mut found {
                None => found = Some(context.clone()),
                Some(other) if !Arc::ptr_eq(&other.caller, &context.caller) => {
                    return (None, Vec::new());
                }
                Some(other) if other.tool != context.tool => other.tool = "".into(),
                Some(_) => {}
            }
        }
        (found, tokens)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    #[cfg(test)]
    pub(crate) fn set_progress_token(&self, token: RequestId) {
        for request in self.table().requests.values_mut() {
            request.token = Some(ProgressToken(token.clone()));
        }
    }
}

/// Fills a request's slot with a failure, and returns the message that settles its id in rmcp.
pub(crate) fn failed(id: RequestId, slot: &Slot, failure: CallFailure) -> ServerJsonRpcMessage {
    slot.fill(Err(failure));
    let error = ErrorData::internal_error("see the slot", None);
    ServerJsonRpcMessage::error(error, Some(id))
}
