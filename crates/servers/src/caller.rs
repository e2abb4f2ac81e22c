//! The host's side of a call: it answers the server's requests and receives progress and log
//! messages.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// The party behind a call: a person at a terminal, an MCP client, a program. Servers are not
/// trusted, so a question that is shown to a person must name the server.
pub trait Caller: Send + Sync {
    /// The abilities of this caller.
    fn offers(&self) -> Offers;

    /// Answers a server's request with an `ElicitResult`, a `CreateMessageResult` or a
    /// `ListRootsResult`. The implementation fills in the defaults of a form's fields. Default: an
    /// empty list of folders, and a refusal of anything else.
    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match wanted.kind {
            WantedKind::Roots => Ok(Root::list(&[])),
            WantedKind::Elicit | WantedKind::Sample => Err(Refusal::Unsupported),
        };
        Box::pin(std::future::ready(answer))
    }

    /// Answers all requests that a call needs to go on (2026-07-28), in the same order. Default: one
    /// after another.
    fn answers<'a>(
        &'a self,
        wanted: Vec<Wanted<'a>>,
    ) -> BoxFuture<'a, Vec<Result<Value, Refusal>>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(wanted.len());
            for one in wanted {
                answers.push(self.answer(one).await);
            }
            answers
        })
    }

    /// Called when the person agreed to open a page; `id` is the server's id of the page. The result
    /// is called when the page is finished. Called while messages are read: must not block.
    fn page_opened(&self, server: &str, id: &str) -> Option<PageDone> {
        let _ = (server, id);
        None
    }

    /// Waits until the person has finished the pages that a call needs. Default: leaves that to the
    /// server where it reports it, and does not wait otherwise.
    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        if opened.is_reported {
            Box::pin(std::future::pending())
        } else {
            Box::pin(std::future::ready(Ok(())))
        }
    }

    /// The lowest level of log messages that this caller wants; `None` for no messages. Queried for
    /// each call.
    fn logs(&self) -> Option<LogLevel> {
        None
    }

    /// Called for a log message of a server about a call of this caller, or while only this caller
    /// has calls at the server. Called while messages are read: must not block.
    fn log(&self, log: Log<'_>) {
        let _ = log;
    }

    /// Called when a server answers a call with a task, which may take long. Must not block.
    fn is_task(&self, server: &str, tool: &str) {
        let _ = (server, tool);
    }

    /// Called for the progress of a call, while messages are read: must not block.
    fn progress(&self, progress: Progress<'_>) {
        let _ = progress;
    }
}

impl fmt::Debug for dyn Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.offers()).finish()
    }
}

/// The abilities of a caller. Default: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Offers {
    /// Forms for a person to fill in (`elicitation.form`).
    pub form: bool,
    /// Pages for a person to open (`elicitation.url`, since 2025-11-25).
    pub url: bool,
    /// Messages from a model (`sampling`).
    pub sampling: bool,
    /// Messages from a model that may use tools of the server (`sampling.tools`, since 2025-11-25).
    pub sampling_tools: bool,
    /// Folders (`roots`).
    pub roots: bool,
}

impl Offers {
    /// The common abilities of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            form: self.form && other.form,
            url: self.url && other.url,
            sampling: self.sampling && other.sampling,
            sampling_tools: self.sampling_tools && other.sampling_tools,
            roots: self.roots && other.roots,
        }
    }
}

/// A server's request to the caller.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Wanted<'a> {
    /// The kind of request.
    pub kind: WantedKind,
    /// The server that sent the request.
    pub server: &'a str,
    /// The tool of the call that the request belongs to, if known.
    pub tool: Option<&'a str>,
    /// The server's key of a request in a result (2026-07-28).
    pub key: Option<&'a str>,
    /// The request's `params` as the server wrote them. For an elicitation: `mode` (`form` if
    /// absent), `message`, and `requestedSchema` or `url`.
    pub params: &'a Value,
}

/// The kinds of requests of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedKind {
    /// A person's answer (`elicitation/create`).
    Elicit,
    /// A model's message (`sampling/createMessage`).
    Sample,
    /// The folders that servers may work in (`roots/list`).
    Roots,
}

impl WantedKind {
    /// The method in the protocol.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation/create",
            Self::Sample => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }
}

impl<'a> Wanted<'a> {
    /// A request outside of a result. Hosts may also make requests of their own.
    pub fn new(
        kind: WantedKind,
        server: &'a str,
        tool: Option<&'a str>,
        params: &'a Value,
    ) -> Self {
        Self {
            kind,
            server,
            tool,
            key: None,
            params,
        }
    }
}

/// Called when a page is finished.
pub type PageDone = Box<dyn FnOnce() + Send>;

/// Pages that a person agreed to open for a call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Opened<'a> {
    /// The server of the pages.
    pub server: &'a str,
    /// The tool that is called.
    pub tool: &'a str,
    /// The number of pages.
    pub pages: usize,
    /// True if the server reports when they are finished; false in the newest revision.
    pub is_reported: bool,
}

/// A folder that servers may work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// A `file:` URL.
    pub uri: String,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Root {
    /// A `ListRootsResult` of these folders.
    pub fn list(roots: &[Self]) -> Value {
        json!({ "roots": roots })
    }
}

/// The progress of a call (`notifications/progress`).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The server of the call.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// The finished amount, in a unit of the server.
    pub progress: f64,
    /// The whole amount, if known.
    pub total: Option<f64>,
    /// The server's text: at most 1,000 characters, with control characters escaped and secrets of
    /// the server's configuration replaced by their names.
    pub message: Option<&'a str>,
}

/// Importance of a log message, by the levels of syslog; lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// A server's log message (`notifications/message`).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Log<'a> {
    /// The server.
    pub server: &'a str,
    /// The importance.
    pub level: LogLevel,
    /// The part of the server that logs, if it is named: at most 100 characters.
    pub logger: Option<&'a str>,
    /// Text or JSON of at most 4,000 characters, with secrets of the server's configuration
    /// replaced by their names.
    pub data: &'a Value,
}

/// Why a caller does not answer a server's request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The caller does not support this.
    #[error("the client cannot do this")]
    Unsupported,
    /// The person said no.
    #[error("the user declined")]
    Declined,
    /// The person gave no answer.
    #[error("the user gave no answer")]
    Cancelled,
    /// Answering failed, for this reason.
    #[error("{0}")]
    Failed(String),
}

/// A caller without abilities.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCaller;

impl Caller for NoCaller {
    fn offers(&self) -> Offers {
        Offers::default()
    }
}
