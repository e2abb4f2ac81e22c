//! A connection to a server: its calls, its tool list, its end.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CustomNotification, ErrorCode};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::ActiveCall;
use crate::caller::Caller;
use crate::child::Child;
use crate::clock::Clock;
use crate::current_list::CurrentList;
use crate::failure::{Audience, CallFailure, FailureKind, Reason};
use crate::in_flight::LISTEN;
use crate::request::Session;
use crate::stderr::excerpt;
use crate::tool_call::ToolCall;
use crate::tool_list::ToolList;

/// The wait for the exit status of a process that closed its output, for the error.
const EXIT_GRACE: Duration = Duration::from_millis(500);
/// The time to live of a list whose server neither names one nor notifies of changes.
const DEFAULT_LIST_TTL: Duration = Duration::from_secs(60);
/// The wait for the end of rmcp's service, which ends HTTP sessions.
const CLOSE_PATIENCE: Duration = Duration::from_secs(4);

/// A connected server. Dropping it ends the connection and the process.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) session: Arc<Session>,
    pub(crate) child: Option<Child>,
    /// Ends rmcp's service.
    pub(crate) stop: CancellationToken,
    pub(crate) _stop: DropGuard,
    /// Cancelled when rmcp's service has ended.
    pub(crate) stopped: CancellationToken,
}

impl Connection {
    /// Makes a call and returns the `result` of its last answer.
    pub(crate) async fn call(
        &self,
        call: &ToolCall<'_>,
        caller: &Arc<dyn Caller>,
        list: &CurrentList,
        clock: &mut Clock,
    ) -> Result<Box<RawValue>, CallFailure> {
        let mut active = ActiveCall {
            session: &self.session,
            call,
            caller,
            list,
            taken: false,
        };
        let mut failure = match active.run(clock).await {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        self.session.close_if_lost(&failure).await;
        match &failure.kind {
            // Repeating a call of several rounds would ask the person again.
            FailureKind::Refused(error)
                if active.taken && error.code == ErrorCode::HEADER_MISMATCH =>
            {
                return Err(CallFailure::input(error.message.clone().into_owned()));
            }
            FailureKind::Lost(_) => {}
            _ => return Err(failure),
        }
        // An earlier request of the call reached the server, even if this one did not.
        failure.sent |= active.taken;
        if failure.is_closed() {
            let when = if failure.sent { "during" } else { "before" };
            let when = format!(" {when} the call");
            let reason = failure.reason.to(Audience::Operator);
            *failure.reason = self.describe_end(reason, &when).await;
            if failure.sent {
                failure.reason.push_for_caller(
                    "; it is not known whether this call took effect; the next call starts the \
                     server again",
                );
            }
        }
        Err(failure)
    }

    /// The time after which the list is requested again without a notification. `None` before
    /// 2026-07-28, where servers always notify of changes.
    pub(crate) fn list_ttl(&self, list: &ToolList) -> Option<Duration> {
        let session = &self.session;
        let acknowledged = session.tap.acknowledged();
        let is_notified = acknowledged.is_some_and(|id| session.tap.has(&id, LISTEN));
        let default = (!is_notified).then_some(DEFAULT_LIST_TTL);
        list.ttl.or(default).filter(|_| session.is_stateless())
    }

    /// Notifies the server of changed folders, if folders were offered to it.
    pub(crate) fn roots_changed(&self) {
        if self.session.is_stateless() || !self.session.questions.offers.roots {
            return;
        }
        let peer = self.session.peer.clone();
        // Without parameters rmcp would send `null`, which the official servers ignore.
        let method = "notifications/roots/list_changed";
        let changed = CustomNotification::new(method, Some(json!({})));
        tokio::spawn(async move {
            let _ = peer.send_notification(changed.into()).await;
        });
    }

    /// True if it can take calls.
    pub(crate) fn is_open(&self) -> bool {
        self.session.tap.closed().is_none()
    }

    /// Why a process that started cannot be used: its exit, or a closed output.
    pub(crate) async fn end_of_process(&self) -> Reason {
        let ended = match &self.child {
            Some(child) => child.ended(EXIT_GRACE).await,
            None => None,
        };
        match ended {
            Some(status) => {
                let ended = format!("it ended with {status}");
                Reason::advise(&ended, "run its command by hand to see why")
            }
            None => "it closed its standard output; an MCP server speaks there".into(),
        }
    }

    /// The last lines of stderr, without secrets, and with an error first.
    pub(crate) fn stderr(&self) -> String {
        let tail = self.child.as_ref().map(Child::stderr_tail);
        // A secret of several lines is replaced while they are in order.
        excerpt(&self.session.tap.redact.redact(&tail.unwrap_or_default()))
    }

    /// Waits for the end of the connection, which ends with its process.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        self.session.tap.ended()
    }

    /// Why the connection ended, without secrets.
    pub(crate) async fn exit_reason(&self) -> Reason {
        let lost = self.session.tap.lost().borrow().clone();
        let lost = lost.unwrap_or_else(|| "the server closed the connection".to_owned());
        self.describe_end(&lost, "").await
    }

    /// Describes the end of the connection, with the exit status of the process, and for the
    /// operator its stderr.
    async fn describe_end(&self, reason: &str, when: &str) -> Reason {
        let Some(child) = &self.child else {
            return format!("{}{when}", self.session.tap.redact.redact(reason)).into();
        };
        let ended = match child.ended(EXIT_GRACE).await {
            Some(status) => format!("the server ended with {status}{when}"),
            None => format!("{reason}{when}"),
        };
        let mut ended = Reason::from(ended);
        let stderr = self.stderr();
        if !stderr.is_empty() {
            ended.push_for_operator(&format!("; its last words on stderr: {stderr}"));
        }
        ended
    }

    /// Ends the connection and the process.
    pub(crate) async fn shut_down(&self) {
        self.session.tap.end("the connection was closed");
        self.stop.cancel();
        let stopped = timeout(CLOSE_PATIENCE, self.stopped.cancelled());
        if stopped.await.is_err() {
            let server = &self.session.tap.server;
            tracing::debug!(%server, "the connection did not close in time");
        }
        if let Some(child) = &self.child {
            child.shut_down().await;
        }
    }
}
