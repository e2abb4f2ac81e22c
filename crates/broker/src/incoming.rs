//! What a server says of its own accord: requests, and notifications.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::caller::{Log, Progress};
use crate::failure::Failure;
use crate::link::LinkError;
use crate::logging;
use crate::object::{Object, object};
use crate::session::Session;
use crate::tasks;

/// The longest progress message that is passed on, in characters.
const MAX_PROGRESS_MESSAGE: usize = 1_000;

/// The request of ours that a stream answers, if it answers one alone: what else
/// comes on it is about that request.
pub(crate) type Stream = Option<u64>;

/// Who hears what is no answer, and on which stream it came. Called while the link
/// reads: it must not block.
pub(crate) trait Incoming: fmt::Debug + Send + Sync {
    /// A request of the server's, to be answered with `id` as it is.
    fn request(&self, id: &RawValue, method: &str, params: Option<&RawValue>, stream: Stream);

    /// A notification.
    fn notification(&self, method: &str, params: Option<&RawValue>, stream: Stream);

    /// Requests go with another login than before.
    fn login_changed(&self);

    /// The connection is gone: nothing can be answered any more.
    fn lost(&self);
}

impl Incoming for Session {
    fn request(&self, id: &RawValue, method: &str, params: Option<&RawValue>, stream: Stream) {
        self.asked.request(id, method, params, stream);
    }

    fn notification(&self, method: &str, params: Option<&RawValue>, stream: Stream) {
        let params = params.map_or("{}", RawValue::get);
        match method {
            "notifications/progress" => self.on_progress(params),
            "notifications/message" => self.on_message(params, stream),
            "notifications/cancelled" => self.on_cancelled(params),
            "notifications/tools/list_changed" => {
                if self.is_subscribed(params) {
                    self.changes.send_modify(|changes| changes.tools += 1);
                }
            }
            "notifications/elicitation/complete" => self.on_page_done(params),
            "notifications/subscriptions/acknowledged" => self.on_acknowledged(params),
            _ => tracing::trace!(server = %self.server, "a notification that nobody hears"),
        }
    }

    fn login_changed(&self) {
        self.changes.send_modify(|changes| {
            changes.logins += 1;
            // It may be somebody else's, who sees other tools, or one for more of them.
            changes.tools += 1;
        });
    }

    fn lost(&self) {
        self.asked.end();
    }
}

impl Session {
    fn on_progress(&self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: u64,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let Ok(params) = object::<Params>(params) else {
            return;
        };
        let Some(who) = self
            .inbox
            .progressed(params.progress_token, params.progress)
        else {
            return;
        };
        let message = params
            .message
            .map(|message| logging::fit(&message, MAX_PROGRESS_MESSAGE, &self.secrets));
        who.caller.progress(Progress {
            server: &self.server,
            tool: &who.tool,
            progress: params.progress,
            total: params.total,
            message: message.as_deref(),
        });
    }

    fn on_message(&self, params: &str, stream: Stream) {
        let Some(message) = logging::message(&self.server, params, &self.secrets) else {
            return;
        };
        // It says itself for which call it is only if that is a task.
        let task = tasks::related(params);
        let (caller, _) = self.inbox.caller(task.as_deref(), stream);
        let caller =
            caller.filter(|caller| caller.logs().is_some_and(|least| message.level >= least));
        let is_logged = logging::level().is_some_and(|least| message.level >= least);
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

    fn on_cancelled(&self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let Ok(Params { request_id }) = object(params) else {
            return;
        };
        if !self.is_stateless() {
            return self.asked.cancelled(request_id);
        }
        // There it ends a subscription, and is allowed for nothing else.
        if let Ok(Some(id)) = serde_json::from_str(request_id.get()).map(Id::number)
            && self.inbox.is_listening(id)
        {
            let reason = "the server ended the subscription";
            self.inbox
                .failed(id, Failure::Lost(LinkError::closed(reason, true)));
        }
    }

    fn on_page_done(&self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            elicitation_id: Cow<'a, str>,
        }
        if let Ok(Params { elicitation_id }) = object(params) {
            self.pages.complete(&elicitation_id);
        }
    }

    fn on_acknowledged(&self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            notifications: Object<Filter>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Filter {
            #[serde(default)]
            tools_list_changed: bool,
        }
        let Some(id) = subscription(params).filter(|id| self.inbox.is_listening(*id)) else {
            return;
        };
        let agreed_to =
            object::<Params>(params).is_ok_and(|params| params.notifications.0.tools_list_changed);
        if agreed_to {
            self.changes.send_modify(|changes| {
                changes.acknowledged = Some(id);
                // What changed before this was told to nobody.
                changes.tools += 1;
            });
        }
    }

    /// Whether a notification is one that was asked for: in the newest revision,
    /// it names the subscription that it is for.
    fn is_subscribed(&self, params: &str) -> bool {
        !self.is_stateless() || subscription(params).is_some_and(|id| self.inbox.is_listening(id))
    }
}

fn subscription(params: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Object<Meta>,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        id: Id,
    }
    object::<Params>(params).ok()?.meta.0.id.number()
}

/// The id of a request of ours. Some servers write every id as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
}

impl Id {
    fn number(self) -> Option<u64> {
        match self {
            Self::Number(id) => Some(id),
            Self::Text(id) => id.parse().ok(),
        }
    }
}
