//! A request to run a script, and the events of a run.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use callgate_gate::{Asker, DryRun};
use callgate_policy::{Grant, Rules, SessionGrants};
use callgate_sandbox::{Limits, ReadyWorker, ScriptInput};
use callgate_script::Prepared;
use callgate_servers::{Audience, Caller};
use callgate_text::one_line;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::choices::CheckMode;
use crate::report::LimitHit;
use crate::scope::Scope;
use crate::setters::{call_setters, setters};

/// Maximum number of arguments of a script.
const MAX_ARGS: usize = 10_000;
/// Maximum bytes of all arguments of a script.
const MAX_ARG_BYTES: usize = 1 << 20;
/// Maximum bytes of a script's standard input.
pub const MAX_STDIN: usize = 16 << 20;

/// A script to run, and the settings that differ from the gate's.
///
/// A string is a request with the gate's own settings: `gate.run("return 1 + 1")`.
#[derive(Clone)]
#[must_use]
pub struct RunRequest {
    pub(crate) source: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) input: Arc<ScriptInput>,
    pub(crate) limits: Option<Limits>,
    pub(crate) settings: CallSettings,
    pub(crate) observer: Option<Observer>,
    pub(crate) check: Option<CheckMode>,
    pub(crate) scope: Scope,
    /// The script, if it was read before the run.
    pub(crate) read_ahead: Arc<Mutex<Option<ReadScript>>>,
    /// The gate's audience.
    pub(crate) audience: Audience,
}

/// The settings of a run or of a single call that differ from the gate's.
#[derive(Clone, Default)]
pub(crate) struct CallSettings {
    pub(crate) id: Option<String>,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) rules: Option<Arc<Rules>>,
    pub(crate) asker: Option<Arc<dyn Asker>>,
    pub(crate) caller: Option<Arc<dyn Caller>>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) session: Option<Arc<SessionGrants>>,
    pub(crate) dry_run: Option<Arc<DryRun>>,
    pub(crate) cancel: CancellationToken,
}

pub(crate) type Observer = Arc<dyn Fn(Event<'_>) + Send + Sync>;

/// An event of a run, for its observer.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The script calls a tool, which is decided on next.
    CallStarted {
        /// The call's number in the run, from 0.
        call: u64,
        /// The tool's generated name.
        function: &'a str,
        /// The server's name.
        server: &'a str,
        /// The tool's own name.
        tool: &'a str,
    },
    /// The script printed something. After the head of the output, only the part that is
    /// [kept in whole](Limits::whole_bytes) is reported.
    Printed {
        /// The messages, or the start of a message that is cut.
        text: &'a str,
        /// True for messages that a program would write to standard error, such as those of
        /// `console.error` and `console.warn`.
        is_error: bool,
    },
    /// A call has its outcome.
    CallEnded {
        /// The call's number, as in `CallStarted`.
        call: u64,
        /// The tool's generated name.
        function: &'a str,
        /// The outcome.
        end: CallEnd,
    },
}

/// The outcome of a call, for the run's observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallEnd {
    /// The script got a result.
    Ok,
    /// The call was denied, and nothing was sent.
    Denied,
    /// A dry run did not make the call, and the script got an error.
    Withheld,
    /// The script got any other error, or cancelled the call.
    Failed,
}

impl RunRequest {
    /// A request to run `source`, named `script.ts` in messages.
    pub fn new(source: impl Into<Arc<str>>) -> Self {
        Self {
            source: source.into(),
            name: "script.ts".into(),
            input: Arc::default(),
            limits: None,
            settings: CallSettings::default(),
            observer: None,
            check: None,
            scope: Scope::default(),
            read_ahead: Arc::default(),
            audience: Audience::default(),
        }
    }

    /// True if the script reads `mcp.stdin`, as far as its text says. Known after
    /// [`RunRequest::rejected`].
    #[doc(hidden)]
    pub fn names_stdin(&self) -> bool {
        let read = self.read_ahead.lock();
        let prepared = read.as_ref().map(|read| &read.prepared);
        prepared.is_some_and(|prepared| prepared.mentions.stdin)
    }

    /// The limit that `mcp.args` or `mcp.stdin` exceeds.
    pub(crate) fn input_over_limit(&self) -> Option<LimitHit> {
        let ScriptInput { args, stdin } = &*self.input;
        let arg_bytes: usize = args.iter().map(String::len).sum();
        let all = [
            ("args", args.len(), MAX_ARGS, "arguments"),
            ("args", arg_bytes, MAX_ARG_BYTES, "bytes"),
            ("stdin", stdin.len(), MAX_STDIN, "bytes"),
        ];
        let mut over = all.into_iter().filter(|(_, size, max, _)| size > max);
        over.next().map(|(which, size, max, unit)| LimitHit {
            which: which.to_owned(),
            limit: max as u64,
            observed: size as u64,
            unit: unit.to_owned(),
        })
    }

    /// The request with the code that was read from its text, which positions refer to.
    pub(crate) fn as_read(&self, prepared: &Prepared) -> Cow<'_, Self> {
        let rewritten = || callgate_script::rewritten(&self.source);
        match prepared.is_rewritten.then(rewritten).flatten() {
            Some(code) => Cow::Owned(Self {
                source: code.into(),
                ..self.clone()
            }),
            None => Cow::Borrowed(self),
        }
    }

    call_setters!();

    setters! {
        /// Sets the script's name in messages and stack traces, made one line.
        name(self, name: impl Into<Arc<str>>) {
            self.name = one_line(&name.into(), usize::MAX).into();
        }

        /// Sets the script's arguments, `mcp.args`: at most 10,000, and 1 MiB in all. Default: none.
        args(self, args: Vec<String>) { Arc::make_mut(&mut self.input).args = args; }

        /// Sets the script's standard input, `mcp.stdin`: at most 16 MiB. Default: the empty text.
        stdin(self, stdin: impl Into<String>) {
            Arc::make_mut(&mut self.input).stdin = stdin.into();
        }

        /// Sets the limits of this run.
        limits(self, limits: Limits) { self.limits = Some(limits); }

        /// Sets the mode of the type check in this run.
        check(self, mode: CheckMode) { self.check = Some(mode); }

        /// Restricts this run to the tools of these servers, by their names in the configuration.
        /// The type check knows no other tools; a call of one throws `McpDeniedError` and has a
        /// ledger line. Names of no server are ignored. Default: all servers.
        servers(self, servers: Vec<String>) { self.scope = Scope::of(servers); }

        /// Sets the observer, which is called for each [`Event`] from the tasks that run the
        /// script: it must be quick and must not block.
        on_event(self, observer: impl Fn(Event<'_>) + Send + Sync + 'static) {
            self.observer = Some(Arc::new(observer));
        }
    }
}

impl From<&str> for RunRequest {
    fn from(source: &str) -> Self {
        Self::new(source)
    }
}

impl From<String> for RunRequest {
    fn from(source: String) -> Self {
        Self::new(source)
    }
}

/// A script that was read, and its waiting worker.
pub(crate) struct ReadScript {
    pub(crate) prepared: Prepared,
    pub(crate) worker: ReadyWorker,
    /// Wall time that reading took.
    pub(crate) took: Duration,
}
