//! Notifications of a server: changes of its tool list, log messages, progress of calls.

use std::sync::Arc;

use callgate_auth::Redact;
use parking_lot::Mutex;
use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{broadcast, watch};

use crate::caller::{Log, Progress};
use crate::in_flight::{InFlight, LISTEN};
use crate::json_rpc::{bounded_value, read_id, unquoted};
use crate::questions::page_id;
use crate::server_log::{self, FloodGate, LogMessage, fit};

/// Characters of a progress message.
const MAX_PROGRESS_MESSAGE: usize = 1_000;

/// Handles the notifications of one connection.
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

    fn log(&self, in_flight: &InFlight, params: &str, stream: Option<&RequestId>) {
        let Some(message) = LogMessage::read(&self.server, params, &self.redact) else {
            return;
        };
        let caller = in_flight.context(stream).0.map(|context| context.caller);
        let is_wanted = |min: Option<_>| min.is_some_and(|min| message.level >= min);
        let caller = caller.filter(|caller| is_wanted(caller.logs()));
        let is_logged = is_wanted(server_log::level());
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

    fn acknowledge(&self, in_flight: &InFlight, params: &str) {
        let Some(id) = subscription(params).filter(|id| in_flight.has(id, LISTEN)) else {
            return;
        };
        if bounded_value(params)["notifications"]["toolsListChanged"] == true {
            *self.acknowledged.lock() = Some(id);
            // Earlier changes were not reported.
            self.list_changed();
        }
    }

    /// Handles a notification; `stream` is the request on whose own stream it came, if any. Called
    /// while messages are read: must not block.
    pub(crate) fn notification(
        &self,
        in_flight: &InFlight,
        method: &str,
        params: &str,
        stream: Option<&RequestId>,
    ) {
        match method {
            "notifications/progress" => self.progress(in_flight, params),
            "notifications/message" => self.log(in_flight, params, stream),
            "notifications/tools/list_changed" => {
                // In the newest revision it names its subscription.
                let is_subscribed = !in_flight.is_stateless()
                    || subscription(params).is_some_and(|id| in_flight.has(&id, LISTEN));
                if is_subscribed {
                    self.list_changed();
                }
            }
            "notifications/elicitation/complete" => {
                if let Some(id) = page_id(&bounded_value(params)) {
                    let _ = self.pages.send(id.to_owned());
                }
            }
            "notifications/subscriptions/acknowledged" => self.acknowledge(in_flight, params),
            _ => tracing::trace!(server = %self.server, "an unknown notification"),
        }
    }

    fn progress(&self, in_flight: &InFlight, params: &str) {
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
        let matched = read.and_then(|read| {
            let slot = in_flight.by_progress_token(read_id(read.progress_token.get())?)?;
            Some((slot, unquoted(read.progress.get()).parse().ok()?, read))
        });
        let Some((slot, progress, read)) = matched else {
            return in_flight.note_unused(params);
        };
        slot.progress_events.notify_one();
        if let Some(context) = &slot.context {
            let message = read.message.as_str();
            let message = message.map(|text| fit(text, MAX_PROGRESS_MESSAGE, &self.redact));
            context.caller.progress(Progress {
                server: &self.server,
                tool: &context.tool,
                progress,
                total: read.total.as_f64(),
                message: message.as_deref(),
            });
        }
    }
}

/// The subscription that a notification belongs to.
fn subscription(params: &str) -> Option<RequestId> {
    let params = bounded_value(params);
    read_id(&params["_meta"]["io.modelcontextprotocol/subscriptionId"].to_string())
}
