//! Notifications of a server: changes of its tool list, log messages, progress of calls.

use rmcp::model::{RequestId, ServerJsonRpcMessage};

use super::Tap;
use crate::caller::{Log, Progress};
use crate::in_flight::LISTEN;
use crate::json_rpc::{bounded_value, read_id, unquoted};
use crate::questions::page_id;
use crate::server_log::{self, LogMessage, fit};

/// Characters of a progress message.
const MAX_PROGRESS_MESSAGE: usize = 1_000;

impl Tap {
    /// The last subscription that the server acknowledged.
    pub(crate) fn acknowledged(&self) -> Option<RequestId> {
        self.acknowledged.lock().clone()
    }

    /// Asks for the tool list again.
    pub(crate) fn list_changed(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    fn log(&self, params: &str, stream: Option<&RequestId>) {
        let Some(message) = LogMessage::read(&self.server, params, &self.redact) else {
            return;
        };
        let caller = self.context(stream).0.map(|context| context.caller);
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

    fn acknowledge(&self, params: &str) {
        let Some(id) = subscription(params).filter(|id| self.has(id, LISTEN)) else {
            return;
        };
        if bounded_value(params)["notifications"]["toolsListChanged"] == true {
            *self.acknowledged.lock() = Some(id);
            // Earlier changes were not reported.
            self.list_changed();
        }
    }

    /// Handles a notification; `stream` is the request on whose own stream it came, if any. Returns
    /// a message for rmcp. Called while messages are read: must not block.
    pub(super) fn notification(
        &self,
        method: &str,
        params: &str,
        stream: Option<&RequestId>,
    ) -> Option<ServerJsonRpcMessage> {
        match method {
            "notifications/cancelled" => return self.cancelled(params),
            "notifications/progress" => self.progress(params),
            "notifications/message" => self.log(params, stream),
            "notifications/tools/list_changed" => {
                // In the newest revision it names its subscription.
                let is_subscribed = !self.is_stateless()
                    || subscription(params).is_some_and(|id| self.has(&id, LISTEN));
                if is_subscribed {
                    self.list_changed();
                }
            }
            "notifications/elicitation/complete" => {
                if let Some(id) = page_id(&bounded_value(params)) {
                    let _ = self.pages.send(id.to_owned());
                }
            }
            "notifications/subscriptions/acknowledged" => self.acknowledge(params),
            _ => tracing::trace!(server = %self.server, "an unknown notification"),
        }
        None
    }

    fn progress(&self, params: &str) {
        let read = bounded_value(params);
        let token = read_id(&read["progressToken"].to_string());
        let slot = token.and_then(|token| self.by_progress_token(token));
        let progress = unquoted(&read["progress"].to_string()).parse::<f64>().ok();
        let Some((slot, progress)) = slot.zip(progress) else {
            return self.note_unused(params);
        };
        slot.progress_events.notify_one();
        if let Some(context) = &slot.context {
            let message = read["message"].as_str();
            let message = message.map(|text| fit(text, MAX_PROGRESS_MESSAGE, &self.redact));
            context.caller.progress(Progress {
                server: &self.server,
                tool: &context.tool,
                progress,
                total: read["total"].as_f64(),
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
