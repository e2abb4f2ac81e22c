//! What a server tells of its own accord: changes of its tool list, log messages, progress.

use std::sync::Arc;
use std::time::Duration;

use callgate_auth::Redact;
use parking_lot::Mutex;
use rmcp::model::{ErrorCode, RequestId};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::backoff::spread;
use crate::caller::{Log, Progress};
use crate::failure::{CallFailure, LostKind};
use crate::pages::Pages;
use crate::request::{Request, Session};
use crate::server_log::{self, FloodGate, Message, fit};
use crate::tap::{LISTEN, Listener, Tap, Who};

/// The longest progress message that is passed on, in characters.
const MAX_PROGRESS_MESSAGE: usize = 1_000;
/// The wait before a server is listened to again; it doubles up to the longest.
const AGAIN: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// Hears the notifications of one connection.
#[derive(Debug)]
pub(crate) struct Notifications {
    server: Arc<str>,
    redact: Redact,
    flood: FloodGate,
    pages: Arc<Pages>,
    /// Counts the reasons for a new tool list.
    reasons: Arc<watch::Sender<u64>>,
    /// The last subscription that the server acknowledged.
    acknowledged: Mutex<Option<RequestId>>,
}

impl Notifications {
    pub(crate) fn new(
        server: Arc<str>,
        redact: Redact,
        pages: Arc<Pages>,
        reasons: Arc<watch::Sender<u64>>,
    ) -> Self {
        Self {
            flood: FloodGate::new(Arc::clone(&server)),
            server,
            redact,
            pages,
            reasons,
            acknowledged: Mutex::default(),
        }
    }

    /// The last subscription that the server acknowledged.
    pub(crate) fn acknowledged(&self) -> Option<RequestId> {
        self.acknowledged.lock().clone()
    }

    /// Asks for the tool list again.
    fn list_changed(&self) {
        self.reasons.send_modify(|reasons| *reasons += 1);
    }

    fn log(&self, tap: &Tap, params: &str, stream: Option<&RequestId>) {
        let Some(message) = Message::read(&self.server, params, &self.redact) else {
            return;
        };
        let caller = tap.caller(stream).0.map(|who| who.caller);
        let hears = |least: Option<_>| least.is_some_and(|least| message.level >= least);
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
}

impl Listener for Notifications {
    fn notification(&self, tap: &Tap, method: &str, params: &str, stream: Option<&RequestId>) {
        match method {
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
                if let Some(id) = params["elicitationId"].as_str() {
                    self.pages.complete(id);
                }
            }
            "notifications/subscriptions/acknowledged" => self.acknowledge(tap, params),
            _ => tracing::trace!(server = %self.server, "an unknown notification"),
        }
    }

    fn progress(&self, of: &Who, progress: f64, params: &str) {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Params {
            total: Option<f64>,
            message: Option<String>,
        }
        let Params { total, message } = serde_json::from_str(params).unwrap_or_default();
        let message = message.map(|text| fit(&text, MAX_PROGRESS_MESSAGE, &self.redact));
        of.caller.progress(Progress {
            server: &self.server,
            tool: &of.tool,
            progress,
            total,
            message: message.as_deref(),
        });
    }
}

/// Listens for changes where servers tell of them in a subscription (2026-07-28).
pub(crate) async fn listen(session: &Session, notifications: &Notifications) {
    if !(session.is_stateless() && session.agreed.tools_changes) {
        return std::future::pending().await;
    }
    let mut wait = AGAIN;
    loop {
        let before = notifications.acknowledged();
        let params = json!({ "notifications": { "toolsListChanged": true } });
        let ended = session.send(Request::new(LISTEN, params), None).await;
        let acknowledged = notifications.acknowledged();
        if let Err(failure) = &ended {
            tracing::debug!(server = %session.server, %failure, "a subscription ended");
            if acknowledged.is_none() && is_refusal(failure) {
                return std::future::pending().await;
            }
        }
        if acknowledged != before {
            wait = AGAIN;
        }
        sleep(spread(wait)).await;
        wait = wait.saturating_mul(2).min(LONGEST);
        if acknowledged != before {
            notifications.list_changed();
        }
    }
}

/// Whether a server will refuse to be listened to however often it is asked.
fn is_refusal(failure: &CallFailure) -> bool {
    match failure {
        CallFailure::Refused(error) => matches!(
            error.code,
            ErrorCode::METHOD_NOT_FOUND | ErrorCode::INVALID_PARAMS
        ),
        // The others mean "later": a time-out, a conflict, too early, too many.
        CallFailure::Lost(lost) => matches!(lost.kind, LostKind::Status(status @ 300..=499)
            if !matches!(status, 408 | 409 | 425 | 429)),
        _ => false,
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
        id: &'a serde_json::value::RawValue,
    }
    let params: Params<'_> = serde_json::from_str(params).ok()?;
    crate::tap::read_id(params.meta.id)
}
