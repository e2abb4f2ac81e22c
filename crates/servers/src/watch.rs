//! Notifications of a server: changes of its tool list, log messages, progress.

use std::sync::Arc;

use callgate_auth::Redact;
use parking_lot::Mutex;
use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};

use crate::caller::{Log, Progress};
use crate::json_rpc::{read_id, unquoted};
use crate::questions::page_id;
use crate::server_log::{self, FloodGate, Message, fit};
use crate::tap::Tap;

/// The longest progress message that is passed on, in characters.
const MAX_PROGRESS_MESSAGE: usize = 1_000;

/// Hears the notifications of one connection.
#[derive(Debug)]
pub(crate) struct Notifications {
    server: Arc<str>,
    pub(crate) redact: Redact,
    flood: FloodGate,
    pages: broadcast::Sender<String>,
    /// Generation of the tool list.
    generation: Arc<watch::Sender<u64>>,
    /// The last subscription that the server acknowledged.
    acknowledged: Mutex<Option<RequestId>>,
}

impl Notifications {
    pub(crate) fn new(
        server: Arc<str>,
        redact: Redact,
        pages: broadcast::Sender<String>,
        generation: Arc<watch::Sender<u64>>,
    ) -> Self {
        Self {
            flood: FloodGate::new(Arc::clone(&server)),
            server,
            redact,
            pages,
            generation,
            acknowledged: Mutex::default(),
        }
    }

    /// The last subscription that the server acknowledged.
    pub(crate) fn acknowledged(&self) -> Option<RequestId> {
        self.acknowledged.lock().clone()
    }

    /// Asks for the tool list again.
    pub(crate) fn list_changed(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    fn log(&self, tap: &Tap, params: &str, stream: Option<&RequestId>) {
        let Some(message) = Message::read(&self.server, params, &self.redact) else {
            return;
        };
        let caller = tap.caller(stream).0.map(|who| who.caller);
        let hears = |min: Option<_>| min.is_some_and(|min| message.level >= min);
        let caller = caller.filter(|caller| hears(caller.logs()));
        let is_logged = hears(server_log::level());
        if !(is_logged || caller.is_some()) || !self.flood.admit() {
            return;
        }
        message.log(&self.server);
        if let Some(caller) = caller {
            caller.log(Log {
                server: &self.server,
                level: message.level,
                logger: message.logger.as_deref(),
                data: &message.data,
            });
        }
    }

    /// Reads the acknowledgement of a subscription.
    fn acknowledge(&self, tap: &Tap, params: &str) {
        let Some(id) = subscription(params).filter(|id| tap.is_listening(id)) else {
            return;
        };
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        if params["notifications"]["toolsListChanged"] == true {
            *self.acknowledged.lock() = Some(id);
            // Earlier changes were not told.
            self.list_changed();
        }
    }

    /// Hears a notification; `stream` is the request on whose own stream it came, if any. Called
    /// while messages are read: must not block.
    pub(crate) fn notification(
        &self,
        tap: &Tap,
        method: &str,
        params: &str,
        stream: Option<&RequestId>,
    ) {
        match method {
            "notifications/progress" => self.progress(tap, params),
            "notifications/message" => self.log(tap, params, stream),
            "notifications/tools/list_changed" => {
                // In the newest revision it names the subscription that it is for.
                let is_subscribed = !tap.is_stateless()
                    || subscription(params).is_some_and(|id| tap.is_listening(&id));
                if is_subscribed {
                    self.list_changed();
                }
            }
            "notifications/elicitation/complete" => {
                let params: Value = serde_json::from_str(params).unwrap_or_default();
                if let Some(id) = page_id(&params) {
                    let _ = self.pages.send(id.to_owned());
                }
            }
            "notifications/subscriptions/acknowledged" => self.acknowledge(tap, params),
            _ => tracing::trace!(server = %self.server, "an unknown notification"),
        }
    }

    /// Hears the progress of a request.
    fn progress(&self, tap: &Tap, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            progress_token: &'a RawValue,
            #[serde(borrow)]
            progress: &'a RawValue,
            #[serde(default)]
            total: Value,
            #[serde(default)]
            message: Value,
        }
        let read: Option<Params<'_>> = serde_json::from_str(params).ok();
        let heard = read.and_then(|read| {
            let slot = tap.of_progress(read_id(read.progress_token)?)?;
            Some((slot, unquoted(read.progress).parse().ok()?, read))
        });
        let Some((slot, progress, read)) = heard else {
            return tap.note_unused(params);
        };
        slot.progress_events().notify_one();
        if let Some(of) = slot.who() {
            let message = read.message.as_str();
            let message = message.map(|text| fit(text, MAX_PROGRESS_MESSAGE, &self.redact));
            of.caller.progress(Progress {
                server: &self.server,
                tool: &of.tool,
                progress,
                total: read.total.as_f64(),
                message: message.as_deref(),
            });
        }
    }
}

/// The subscription that a notification is for.
fn subscription(params: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Meta<'a>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
        id: &'a RawValue,
    }
    let params: Params<'_> = serde_json::from_str(params).ok()?;
    read_id(params.meta.id)
}
