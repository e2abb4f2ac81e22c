//! What carries messages to one server and back: a child's streams, or HTTP.
//!
//! A link knows bytes and frames, not what they mean: what arrives goes to the
//! [`crate::inbox::Inbox`], and [`crate::session::Session`] decides what leaves.

use std::fmt;
use std::sync::Arc;
use std::task::Context;

use futures::future::BoxFuture;
use rmcp::model::ProtocolVersion;

use crate::listed::{Change, Decided};
use callgate_auth::AuthError;

/// A way to one server.
pub(crate) trait Link: fmt::Debug + Send + Sync {
    /// Hands one message over. Over stdio it is written, or waits in memory for
    /// the server to read. Over HTTP its POST has been answered with headers
    /// when this resolves; what the body brings goes to the inbox. Before the server
    /// may have a request, the inbox is told that it was sent. If that has an end of it
    /// already, such as that the connection is lost, nothing is sent.
    ///
    /// The future may be dropped at any time; [`Link::cancel`] follows then, if
    /// the message is a request.
    fn send<'a>(&'a self, message: Outgoing<'a>) -> BoxFuture<'a, Result<(), LinkError>>;

    /// Sends a notification, an answer to a request of the server's (`method` is
    /// empty then), or a request whose answer nobody waits for, and neither
    /// waits for it nor tells what became of it. `name` as in [`Outgoing`]. May be
    /// called from a `Drop`, and outside of the runtime.
    fn post(&self, method: &str, name: Option<&str>, message: String);

    /// Brings in what has arrived and delivers it to the inbox, and sees to it
    /// that `cx` is woken when more may have. Called with each poll of a flight
    /// without an answer, so it must be quick. A link that delivers from tasks
    /// of its own has nothing to do.
    fn read(&self, flight: u64, cx: &mut Context<'_>);

    /// The flight no longer waits. If it was the one to be woken for what
    /// arrives, another one must be now. What was there for its answer alone, such as a
    /// stream over HTTP, is not kept.
    fn left(&self, flight: u64);

    /// Nobody waits for the answer to this request any more. Over stdio the
    /// notification is written; over HTTP the request's stream is closed, and
    /// the notification sent where the revision wants it. There is none for
    /// requests that may not be cancelled. May be called from a `Drop`.
    fn cancel(&self, id: u64, notification: Option<String>);

    /// The revision that was agreed on: from now on every message is of it.
    fn agreed(&self, version: &ProtocolVersion);

    /// The name of the login that requests go with now, where there is one.
    fn login(&self) -> Option<Arc<str>> {
        None
    }

    /// Whether the server has stopped reading, so that answers to its requests
    /// would only pile up.
    fn is_congested(&self) -> bool {
        false
    }

    /// Why a request is not sent yet, if what it waits for is to be authorized.
    fn held_up(&self, _id: u64) -> Option<AuthError> {
        None
    }

    /// Ends the connection from this side. Flights still in the air are lost.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// One message on its way out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    /// The JSON-RPC message, without a line feed in it.
    pub(crate) text: &'a str,
    /// Its method (HTTP: `Mcp-Method`).
    pub(crate) method: &'a str,
    /// Its id, if it is a request.
    pub(crate) id: Option<u64>,
    /// The tool's name or the task's id (HTTP: `Mcp-Name`).
    pub(crate) name: Option<&'a str>,
    /// Arguments that are headers too, by header name (HTTP: `Mcp-Param-*`).
    pub(crate) parameters: &'a [(String, String)],
    /// What the tool of that name was decided about as, where it was: it is not sent any more
    /// if it is another one after a wait.
    pub(crate) decided: Option<&'a Decided>,
}

/// Why a message did not get to the server, or its answer not back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct LinkError {
    pub(crate) kind: LinkErrorKind,
    /// One clause for people, without secrets.
    pub(crate) reason: String,
    /// Whether the server may have read the message.
    pub(crate) sent: bool,
}

/// What sort of trouble it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkErrorKind {
    /// The connection has ended: the server's input or output is closed, or its
    /// session is gone.
    Closed,
    /// The server could not be reached, or reads nothing.
    Unreachable,
    /// An HTTP status that is no success, with no JSON-RPC answer in its body.
    Status(u16),
    /// The server wants authorization that it did not get.
    Unauthorized,
    /// There should be authorization, and there is none that will do.
    Authorization(AuthError),
    /// Something is not as it was when the message was decided about: it was not sent, or was
    /// refused.
    Changed(Change),
}

impl From<AuthError> for LinkError {
    /// The message is not sent, or was refused.
    fn from(error: AuthError) -> Self {
        Self {
            reason: error.to_string(),
            kind: LinkErrorKind::Authorization(error),
            sent: false,
        }
    }
}

impl LinkError {
    /// Something is not as it was decided about: nothing was done.
    pub(crate) fn changed(what: Change) -> Self {
        Self {
            kind: LinkErrorKind::Changed(what),
            reason: "it is not what was decided about by now".to_owned(),
            sent: false,
        }
    }

    /// Whether it is an answer by HTTP status only.
    pub(crate) fn is_status(&self) -> bool {
        matches!(self.kind, LinkErrorKind::Status(_))
    }

    /// Whether the server may have read the message, and has ended its answer before there
    /// was one, and not the connection.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.sent && self.kind == LinkErrorKind::Unreachable
    }

    /// The connection has ended.
    pub(crate) fn closed(reason: impl Into<String>, sent: bool) -> Self {
        Self {
            kind: LinkErrorKind::Closed,
            reason: reason.into(),
            sent,
        }
    }
}
