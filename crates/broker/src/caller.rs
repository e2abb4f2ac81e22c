//! What the host can do for servers while they work on a call: answer their
//! questions, run a model for them, name folders, and hear how far they are.

use std::fmt;
use std::str::FromStr;

use futures::future::BoxFuture;
use serde_json::{Value, json};

/// Whoever stands behind the calls: a person at a terminal, an MCP client, a
/// program.
///
/// What a caller [offers](Caller::offers) is announced to servers as
/// capabilities, and nothing else is: a request for what it does not offer is
/// declined without asking it. Servers are not trusted: what they ask comes
/// from them alone, and whoever shows it to a person says which server asks.
pub trait Caller: Send + Sync {
    /// What this caller can do. Asked once when a connection of an older
    /// revision is made, and with each call of the newest.
    fn offers(&self) -> Offers;

    /// Asks a person for something. The answer is an `ElicitResult`:
    /// `{ "action": "accept" | "decline" | "cancel", "content"?: { … } }`. A form's fields
    /// begin with their `default`, which whoever shows it fills in: no member is added to the
    /// content afterwards.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] is told to the server in the protocol's own way.
    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let _ = request;
        Box::pin(std::future::ready(Err(Refusal::Unsupported)))
    }

    /// Hears that the person has agreed to open a page, which the server knows by
    /// this id. What is returned is called once, should the server say on the same
    /// connection that what is done there is done
    /// (`notifications/elicitation/complete`), and dropped otherwise. Called while
    /// messages are read, it must not block. Default: nobody hears of it.
    fn page_opened(&self, server: &str, id: &str) -> Option<PageDone> {
        let _ = (server, id);
        None
    }

    /// Waits until the person says that they are done at pages that a call needs, after they
    /// have agreed to open them: in the newest revision with an answer that the server wants,
    /// before with error -32042. The call is made again then, or, before, as soon as the server
    /// says so; this is dropped in that case. It is given up after 15 minutes. Default: where
    /// the server says so, waits for that, and else not at all.
    ///
    /// # Errors
    ///
    /// With a [`Refusal`] the call is given up.
    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        match opened.is_told {
            true => Box::pin(std::future::pending()),
            false => Box::pin(std::future::ready(Ok(()))),
        }
    }

    /// Asks a model. The answer is a `CreateMessageResult`.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] is told to the server as a JSON-RPC error.
    fn sample<'a>(&'a self, request: Sample<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let _ = request;
        Box::pin(std::future::ready(Err(Refusal::Unsupported)))
    }

    /// The folders servers may work in, if roots are offered.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] is told to the server as a JSON-RPC error.
    fn roots<'a>(&'a self, request: ListRoots<'a>) -> BoxFuture<'a, Result<Vec<Root>, Refusal>> {
        let _ = request;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Answers all that one call wants before it goes on (2026-07-28), in the same
    /// order: folders as a `ListRootsResult`, all else as [`elicit`](Self::elicit)
    /// and [`sample`](Self::sample) do. Unless a caller does it in another way, it
    /// is asked for one after another.
    fn inputs<'a>(&'a self, wanted: Vec<Wanted<'a>>) -> BoxFuture<'a, Vec<Result<Value, Refusal>>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(wanted.len());
            for one in wanted {
                answers.push(one.of(self).await);
            }
            answers
        })
    }

    /// The least important log messages of servers that this caller hears, if it
    /// hears any. Asked with each call.
    fn logs(&self) -> Option<LogLevel> {
        None
    }

    /// Hears a log message of a server on a call, or while the server works on calls
    /// of nobody else. Called while messages are read, so it must not block.
    fn log(&self, log: Log<'_>) {
        let _ = log;
    }

    /// Hears that a server has answered a call of this tool with a task, which it
    /// works on for longer than one waits for an answer. Must not block.
    fn is_task(&self, server: &str, tool: &str) {
        let _ = (server, tool);
    }

    /// Hears how far a call is. Called while messages are read, so it must not
    /// block; at most as often as the server says so.
    fn progress(&self, progress: Progress<'_>) {
        let _ = progress;
    }
}

impl fmt::Debug for dyn Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&self.offers()).finish()
    }
}

/// What a caller can do. Default: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Offers {
    /// Forms for a person to fill in (`elicitation.form`).
    pub form: bool,
    /// Pages for a person to open (`elicitation.url`, since 2025-11-25).
    pub url: bool,
    /// Messages from a model (`sampling`).
    pub sampling: bool,
    /// Messages from a model that may use tools of the server's
    /// (`sampling.tools`, since 2025-11-25). Counts only with `sampling`.
    pub sampling_tools: bool,
    /// Folders (`roots`).
    pub roots: bool,
}

/// A server's question to a person (`elicitation/create`).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Elicit<'a> {
    /// The server that asks.
    pub server: &'a str,
    /// The tool whose call it asks for, where that is known.
    pub tool: Option<&'a str>,
    /// The server's own key for it, where it asks in a result (2026-07-28).
    pub key: Option<&'a str>,
    /// The request's `params` as the server wrote them: `mode` (`form` if
    /// absent), `message`, and `requestedSchema` or `url`. Text in it is the
    /// server's and may hold anything.
    pub params: &'a Value,
}

/// What is called when a page is done with.
pub type PageDone = Box<dyn FnOnce() + Send>;

/// Pages that a person has agreed to open for a call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Opened<'a> {
    /// The server that wants them opened.
    pub server: &'a str,
    /// The tool that is called.
    pub tool: &'a str,
    /// How many.
    pub pages: usize,
    /// Whether the server says when they are done with, which it does not in the newest
    /// revision.
    pub is_told: bool,
}

/// A server's request for a model's message (`sampling/createMessage`).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The server that asks.
    pub server: &'a str,
    /// The tool whose call it asks for, where that is known.
    pub tool: Option<&'a str>,
    /// The server's own key for it, where it asks in a result (2026-07-28).
    pub key: Option<&'a str>,
    /// The request's `params` as the server wrote them.
    pub params: &'a Value,
}

impl<'a> Sample<'a> {
    /// A request of the host's own, in a server's place.
    pub fn new(server: &'a str, tool: Option<&'a str>, params: &'a Value) -> Self {
        Self {
            server,
            tool,
            key: None,
            params,
        }
    }
}

/// A server's request for folders (`roots/list`).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ListRoots<'a> {
    /// The server that asks.
    pub server: &'a str,
    /// The tool whose call it asks for, where that is known.
    pub tool: Option<&'a str>,
    /// The server's own key for it, where it asks in a result (2026-07-28).
    pub key: Option<&'a str>,
}

impl<'a> ListRoots<'a> {
    /// A request of the host's own, in a server's place.
    pub fn new(server: &'a str, tool: Option<&'a str>) -> Self {
        Self {
            server,
            tool,
            key: None,
        }
    }

    /// The answer to one, as the protocol has it.
    pub fn result(roots: &[Root]) -> Value {
        let root = |root: &Root| match &root.name {
            Some(name) => json!({ "uri": root.uri, "name": name }),
            None => json!({ "uri": root.uri }),
        };
        json!({ "roots": roots.iter().map(root).collect::<Vec<_>>() })
    }
}

/// One thing of all that a call wants before it goes on.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Wanted<'a> {
    /// A person's answer.
    Elicit(Elicit<'a>),
    /// A model's message.
    Sample(Sample<'a>),
    /// Folders.
    Roots(ListRoots<'a>),
}

impl Wanted<'_> {
    /// What this caller answers, as the protocol has it.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub async fn of<C: Caller + ?Sized>(self, caller: &C) -> Result<Value, Refusal> {
        match self {
            Self::Elicit(request) => caller.elicit(request).await,
            Self::Sample(request) => caller.sample(request).await,
            Self::Roots(request) => {
                let roots = caller.roots(request).await?;
                Ok(ListRoots::result(&roots))
            }
        }
    }
}

/// A folder that servers may work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// A `file:` URL.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

/// How far a call is (`notifications/progress`).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The server that works on it.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// How much is done, in a unit of the server's.
    pub progress: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
    /// What is being done, as the server says it: at most 1,000 characters,
    /// control characters escaped, secrets of the server's configuration
    /// replaced by their names.
    pub message: Option<&'a str>,
}

/// How important a log message is, by the levels of syslog; the least important
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "they say themselves what they are")]
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

impl LogLevel {
    /// Every level.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Its name in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLogLevel> {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == name);
        found.ok_or(UnknownLogLevel(()))
    }
}

/// A name that is no [`LogLevel`]'s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no log level; they are debug, info, notice, warning, error, critical, alert and \
     emergency"
)]
pub struct UnknownLogLevel(());

/// What a server logs (`notifications/message`).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Log<'a> {
    /// The server.
    pub server: &'a str,
    /// How important it is.
    pub level: LogLevel,
    /// Which part of the server says it, if it tells: at most 100 characters.
    pub logger: Option<&'a str>,
    /// What it says: at most 4,000 characters of text, or JSON of as many; secrets
    /// of the server's configuration are replaced by their names.
    pub data: &'a Value,
}

/// Why a caller does not do what a server asks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It cannot do such a thing.
    #[error("the client cannot do this")]
    Unsupported,
    /// The person said no.
    #[error("the user declined")]
    Declined,
    /// The person did not say anything, or gave it up.
    #[error("the user gave no answer")]
    Cancelled,
    /// It did not work out, for this reason.
    #[error("{0}")]
    Failed(String),
}

/// The caller of hosts without one: offers nothing and hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCaller;

impl Caller for NoCaller {
    fn offers(&self) -> Offers {
        Offers::default()
    }
}
