//! One request to run a script: the text, and what is different in this run.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use callgate_broker::{Asker, Caller, DryRun};
use callgate_policy::{Grant, Rules, SessionGrants};
use tokio_util::sync::CancellationToken;

use crate::read_script::{self, ReadAhead};
use crate::report::{self, RunReport};
use crate::scope::Scope;
use crate::{CheckMode, Limits, Workers};

/// A script to run, and what is different in this run.
///
/// A string is a request with the gate's own settings:
/// `gate.run("return 1 + 1")`.
#[derive(Clone)]
pub struct RunRequest {
    pub(crate) source: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) limits: Option<Limits>,
    pub(crate) rules: Option<Arc<Rules>>,
    pub(crate) asker: Option<Arc<dyn Asker>>,
    pub(crate) caller: Option<Arc<dyn Caller>>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) session: Option<Arc<SessionGrants>>,
    pub(crate) dry_run: Option<Arc<DryRun>>,
    pub(crate) observer: Option<Observer>,
    pub(crate) check: Option<CheckMode>,
    pub(crate) scope: Scope,
    pub(crate) cancel: CancellationToken,
    pub(crate) read_ahead: ReadAhead,
}

pub(crate) type Observer = Arc<dyn Fn(Event<'_>) + Send + Sync>;

/// Something that happened in a run, for those who watch it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A call was asked for; a decision, perhaps a person's, comes next.
    CallStarted {
        /// Counts the calls of this run from 0; the same in `CallEnded`.
        call: u64,
        /// The tool's generated name.
        function: &'a str,
        /// The server's name.
        server: &'a str,
        /// The tool's own name.
        tool: &'a str,
    },
    /// The script printed something. What is beyond the head of its output is
    /// told only as far as it is [kept in whole](Limits::whole_bytes).
    Printed {
        /// The messages, or the beginning of one that is cut.
        text: &'a str,
    },
    /// A call has its outcome.
    CallEnded {
        /// As in `CallStarted`.
        call: u64,
        /// The tool's generated name.
        function: &'a str,
        /// What came of it.
        end: CallEnd,
    },
}

/// What came of a call, for those who watch the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallEnd {
    /// The script got a result.
    Ok,
    /// It was denied, and nothing was sent.
    Denied,
    /// It was not made in a dry run, and the script got an error in its place.
    Withheld,
    /// The script got any other error, or gave it up.
    Failed,
}

impl RunRequest {
    /// A request to run `source`, named `script.ts` in messages.
    pub fn new(source: impl Into<Arc<str>>) -> Self {
        Self {
            source: source.into(),
            name: "script.ts".into(),
            limits: None,
            rules: None,
            asker: None,
            caller: None,
            grants: Vec::new(),
            session: None,
            dry_run: None,
            observer: None,
            check: None,
            scope: Scope::default(),
            cancel: CancellationToken::new(),
            read_ahead: ReadAhead::default(),
        }
    }

    /// The report of this request if its text is no acceptable script, whatever
    /// servers there are: to know before they are started. The script is read in one of
    /// these workers, which the next run of the request or of a clone is then in, if the limits
    /// of that run are theirs; a [`preview`](crate::Gate::preview) hands it on. Until then the
    /// process waits, as long as the request or a clone of it lives.
    pub async fn rejected(&self, workers: &Workers) -> Option<RunReport> {
        let started = Instant::now();
        match read_script::read(&workers.launcher, &workers.limits, self).await {
            Ok(read) => {
                self.read_ahead.keep(read);
                None
            }
            Err(mut report) => {
                report.total_ms = report::millis(started.elapsed());
                Some(*report)
            }
        }
    }

    /// The report of this request if it is given up before there is a gate to run
    /// it: a run ends in a report then, too.
    pub fn cancelled(&self) -> RunReport {
        report::cancelled(self)
    }

    /// The name that messages and stack traces give the script.
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Limits of this run in place of the gate's.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Rules of this run in place of the gate's.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = Some(Arc::new(rules));
        self
    }

    /// Who answers the questions of this run in place of the gate's asker.
    #[must_use]
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// What can be done for servers while they work on this run's calls, in
    /// place of the gate's caller.
    #[must_use]
    pub fn caller(mut self, caller: Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Grants something for this run before it begins, such as what
    /// [`Preview`](crate::Preview) says that it will need. It lets calls
    /// through that a rule would ask about, and none that a rule denies. May be
    /// called more than once.
    #[must_use]
    pub fn grant(mut self, grant: Grant) -> Self {
        self.grants.push(grant);
        self
    }

    /// The session of this run in place of the gate's: what is granted for a
    /// session in one run counts in every other run of it. For a host with
    /// several callers, each of which answers for itself.
    #[must_use]
    pub fn session(mut self, session: Arc<SessionGrants>) -> Self {
        self.session = Some(session);
        self
    }

    /// Makes this a dry run: only calls that read are made. See [`DryRun`].
    #[must_use]
    pub fn dry_run(mut self, dry_run: DryRun) -> Self {
        self.dry_run = Some(Arc::new(dry_run));
        self
    }

    /// What the type check decides in this run, in place of the gate's mode.
    #[must_use]
    pub fn check(mut self, mode: CheckMode) -> Self {
        self.check = Some(mode);
        self
    }

    /// Restricts this run to the tools of these servers, by their names in the
    /// configuration: the type check knows no others, and a call of another one
    /// throws `McpDeniedError` and is in the ledger as denied. A name that no server has is
    /// nothing. Default: all servers.
    #[must_use]
    pub fn servers(mut self, servers: Vec<String>) -> Self {
        self.scope = Scope::of(servers);
        self
    }

    /// Called for each [`Event`] of the run, from the tasks that run it: it
    /// must be quick and must not block.
    #[must_use]
    pub fn on_event(mut self, observer: impl Fn(Event<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Cancelling `token` ends the run with
    /// [`Status::Cancelled`](crate::Status::Cancelled).
    #[must_use]
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
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

impl fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRequest")
            .field("name", &self.name)
            .field("bytes", &self.source.len())
            .field("limits", &self.limits)
            .field("rules", &self.rules)
            .field("grants", &self.grants)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}
