//! The host's part for servers: it answers their questions, runs a model, names folders, hears
//! progress and log messages.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// The party behind a call: a person at a terminal, an MCP client, a program. Servers are not
/// trusted, so a question that is shown to a person must name the server.
pub trait Caller: Send + Sync {
    /// The abilities of this caller.
    fn offers(&self) -> Offers;

    /// Answers a server's request, in the protocol's form: with an `ElicitResult`, to whose content
    /// nothing is added (the caller fills in the defaults of a form's fields), a
    /// `CreateMessageResult`, or a `ListRootsResult`. Default: no folders, and nothing else.
    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match wanted.kind {
            WantedKind::Roots => Ok(Root::list(&[])),
            WantedKind::Elicit | WantedKind::Sample => Err(Refusal::Unsupported),
        };
        Box::pin(std::future::ready(answer))
    }

    /// Answers everything that one call needs before it goes on (2026-07-28), in the same order.
    /// Default: one after another.
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

    /// Hears that the person agreed to open a page, which the server knows by this id. Called while
    /// messages are read: must not block.
    fn page_opened(&self, server: &str, id: &str) -> Option<PageDone> {
        let _ = (server, id);
        None
    }

    /// Waits until the person is done at pages that a call needs. Default: waits for the server's
    /// word where it gives one, and not at all otherwise.
    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        if opened.is_told {
            Box::pin(std::future::pending())
        } else {
            Box::pin(std::future::ready(Ok(())))
        }
    }

    /// The least important log messages that this caller hears, if any. Asked with each call.
    fn logs(&self) -> Option<LogLevel> {
        None
    }

    /// Hears a log message of a server about a call of this caller, or while only this caller has
    /// calls at the server. Called while messages are read: must not block.
    fn log(&self, log: Log<'_>) {
        let _ = log;
    }

    /// Hears that a server answered a call with a task, which takes longer than one waits for an
    /// answer. Must not block.
    fn is_task(&self, server: &str, tool: &str) {
        let _ = (server, tool);
    }

    /// Hears the progress of a call. Called while messages are read: must not block.
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
    /// The abilities that both have.
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
    /// The thing that it asks for.
    pub kind: WantedKind,
    /// The server that asks.
    pub server: &'a str,
    /// The tool whose call it asks for, where that is known.
    pub tool: Option<&'a str>,
    /// The server's own key for it, where it asks in a result (2026-07-28).
    pub key: Option<&'a str>,
    /// The request's `params` as the server wrote them. For an elicitation `mode` (`form` if
    /// absent), `message`, and `requestedSchema` or `url`.
    pub params: &'a Value,
}

/// The things that servers ask for.
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
    /// Its method in the protocol.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicit => "elicitation/create",
            Self::Sample => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }
}

impl<'a> Wanted<'a> {
    /// A request outside of a result. The host may make one of its own, in a server's place.
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

/// Called when a page is done.
pub type PageDone = Box<dyn FnOnce() + Send>;

/// Pages that a person agreed to open for a call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Opened<'a> {
    /// The server whose pages they are.
    pub server: &'a str,
    /// The tool that is called.
    pub tool: &'a str,
    /// The number of pages.
    pub pages: usize,
    /// True if the server says when they are done; it does not in the newest revision.
    pub is_told: bool,
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
    /// The server that works on it.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// The amount that is done, in a unit of the server's.
    pub progress: f64,
    /// The whole amount, if that is known.
    pub total: Option<f64>,
    /// The server's text: at most 1,000 characters, control characters escaped, secrets of the
    /// server's configuration replaced by their names.
    pub message: Option<&'a str>,
}

/// Importance of a log message, by the levels of syslog; the least important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
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
    /// Its importance.
    pub level: LogLevel,
    /// The part of the server that logs, if it tells: at most 100 characters.
    pub logger: Option<&'a str>,
    /// At most 4,000 characters of text, or JSON of as many; secrets of the server's configuration
    /// are replaced by their names.
    pub data: &'a Value,
}

/// Why a caller does not do what a server asks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The caller cannot do this.
    #[error("the client cannot do this")]
    Unsupported,
    /// The person said no.
    #[error("the user declined")]
    Declined,
    /// The person gave no answer.
    #[error("the user gave no answer")]
    Cancelled,
    /// It failed, for this reason.
    #[error("{0}")]
    Failed(String),
}

/// A caller that offers nothing and hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCaller;

impl Caller for NoCaller {
    fn offers(&self) -> Offers {
        Offers::default()
    }
}
