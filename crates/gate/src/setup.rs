//! The settings of one run, and of one call in it.

use std::sync::Arc;
use std::time::Duration;

use callgate_policy::flow::FlowRules;
use callgate_policy::{Grant, Rules, SessionGrants};
use callgate_servers::{Audience, Caller};

use crate::ask::Asker;
use crate::dry_run::DryRun;
use crate::grant_store::{Definitions, GrantStore};
use crate::ledger::LedgerSink;
use crate::review::Reviewer;

/// The settings of one run. The defaults set nothing.
#[derive(Clone, Default)]
pub struct Setup {
    pub rules: RunRules,
    pub people: People,
    pub records: Records,
    pub options: RunOptions,
}

/// The rules and grants of a run.
#[derive(Clone, Default)]
pub struct RunRules {
    /// The rules for calls.
    pub calls: Arc<Rules>,
    /// The rules for data that goes from one server to another.
    pub flows: Arc<FlowRules>,
    /// The grants of this run alone.
    pub grants: Vec<Grant>,
    /// The grants of all runs of the session. Default: a session of its own.
    pub session: Arc<SessionGrants>,
}

/// The people and programs that decide about a run's calls or take part in them.
#[derive(Clone, Default)]
pub struct People {
    /// Answers the questions of rules that ask.
    pub asker: Option<Arc<dyn Asker>>,
    /// The host's own checks of arguments and results.
    pub reviewers: Vec<Arc<dyn Reviewer>>,
    /// Serves servers while they work on calls. Default: as
    /// [`ServerSpec::caller`](callgate_servers::ServerSpec::caller) says.
    pub caller: Option<Arc<dyn Caller>>,
    /// The readers of the errors of calls. Default: the operator.
    pub audience: Audience,
}

/// The places where a run's decisions and calls are recorded.
#[derive(Clone, Default)]
pub struct Records {
    /// Keeps the grants of "always". Default: they last for the session.
    pub keep: Option<Arc<dyn GrantStore>>,
    /// The definitions of tools that were allowed for good earlier.
    pub definitions: Option<Arc<dyn Definitions>>,
    /// Receive the events of the ledger, besides the report.
    pub sinks: Vec<Arc<dyn LedgerSink>>,
}

/// The kind of a run.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// The run's id. Default: a new one.
    pub id: Option<String>,
    /// The name and the version of the MCP client that started the run.
    pub client: Option<Arc<str>>,
    /// The script: its text is not a server's data, and the asker sees its lines.
    pub script: Option<Arc<str>>,
    /// The text in which the script was found, for the ledger. Default: the script.
    pub given: Option<Arc<str>>,
    /// True if it is one call without a script. The uses that rules count are then counted over
    /// all such runs of the session.
    pub one_call: bool,
    /// A dry run sends only calls that read.
    pub dry_run: Option<Arc<DryRun>>,
    /// True if data may go to a model of the host besides servers; see
    /// [`Dispatcher::consult`](crate::Dispatcher::consult).
    pub consults: bool,
}

/// The settings of one call. The defaults set nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallOptions {
    /// The call's time limit, after which it ends as
    /// [`CallErrorKind::Timeout`](crate::CallErrorKind::Timeout). It does not extend the server's
    /// own limits, which are the default.
    pub timeout: Option<Duration>,
    /// The part of `timeout` that passed before the call, while the server was connected.
    pub waited: Duration,
    /// The script's line, from 1, for the asker. The script's worker says it, so it is only a
    /// hint for a person.
    pub line: Option<u32>,
    /// True if the result is the server's whole answer, even if `isError` is set; reviewers see
    /// the whole answer, too. Default: [`Dispatcher::call`](crate::Dispatcher::call) describes
    /// the result.
    pub whole: bool,
}
