//! A connection to a server: its calls, its tool list, its end.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CustomNotification, ErrorCode};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::{Round, ToolCall};
use crate::caller::Caller;
use crate::child::Child;
use crate::clock::Clock;
use crate::failure::{Audience, CallFailure, FailureKind, Reason};
use crate::list::{CurrentList, USUALLY_FRESH};
use crate::request::Session;
use crate::tool_list::ToolList;
use crate::watch::Notifications;

/// The wait for the exit of a process that closed its output, for the message.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The wait for the end of rmcp's service; it ends HTTP sessions in that time.
const CLOSE_PATIENCE: Duration = Duration::from_secs(4);

/// A connected server. Dropping it ends the connection and the process.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) session: Arc<Session>,
    pub(crate) notifications: Arc<Notifications>,
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
        let mut round = Round {
            session: &self.session,
            call,
            caller,
            list,
            taken: false,
        };
        let mut failure = match round.run(clock).await {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        match &failure.kind {
            // Made once more, a call of several rounds would ask the person again.
            FailureKind::Refused(error)
                if round.taken && error.code == ErrorCode::HEADER_MISMATCH =>
            {
                return Err(CallFailure::input(error.message.clone().into_owned()));
            }
            FailureKind::Lost(_) => {}
            _ => return Err(failure),
        }
        // The call reached the server, whichever request of it did not.
        failure.sent |= round.taken;
        if failure.is_closed() {
            let when = if failure.sent { "during" } else { "before" };
            let when = format!(" {when} the call");
            let reason = failure.reason.to(Audience::Operator);
            *failure.reason = self.last_words(reason, &when).await.into();
        }
        Err(failure)
    }

    /// The time after which the list is asked for again although the server says nothing. Before
    /// 2026-07-28 servers tell of changes.
    pub(crate) fn list_holds(&self, list: &ToolList) -> Option<Duration> {
        let acknowledged = self.notifications.acknowledged();
        let is_told = acknowledged.is_some_and(|id| self.session.tap.is_listening(&id));
        let unsaid = || (!is_told).then_some(USUALLY_FRESH);
        let says = self.session.is_stateless();
        says.then(|| list.ttl.or_else(unsaid)).flatten()
    }

    /// Tells the server that the folders are others now, if it was offered folders.
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

    /// The end of a process that was expected to go on.
    pub(crate) async fn end_of_process(&self) -> Reason {
        let ended = match &self.child {
            Some(child) => child.ended(LAST_WORDS).await,
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

    /// The end of its stderr, without secrets.
    pub(crate) fn stderr(&self) -> String {
        let tail = self.child.as_ref().map(Child::stderr_tail);
        self.session.redact.redact(&tail.unwrap_or_default())
    }

    /// Waits for the end of the connection, which ends with its process.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        self.session.tap.ended()
    }

    /// The way it ended, without secrets.
    pub(crate) async fn exit_reason(&self) -> String {
        let lost = self.session.tap.lost().borrow().clone();
        let lost = lost.unwrap_or_else(|| "the server closed the connection".to_owned());
        self.last_words(&lost, "").await
    }

    async fn last_words(&self, reason: &str, when: &str) -> String {
        let Some(child) = &self.child else {
            return format!("{}{when}", self.session.redact.redact(reason));
        };
        let mut words = match child.ended(LAST_WORDS).await {
            Some(status) => format!("the server ended with {status}{when}"),
            None => format!("{reason}{when}"),
        };
        let stderr = self.stderr();
        if !stderr.is_empty() {
            words.push_str("; its last words on stderr: ");
            words.push_str(&stderr);
        }
        words
    }

    /// Ends the connection and the process.
    pub(crate) async fn shut_down(&self) {
        self.session.tap.end("the connection was closed");
        self.stop.cancel();
        let stopped = timeout(CLOSE_PATIENCE, self.stopped.cancelled());
        if stopped.await.is_err() {
            tracing::debug!(server = %self.session.server, "the connection did not close in time");
        }
        if let Some(child) = &self.child {
            child.shut_down().await;
        }
    }
}
