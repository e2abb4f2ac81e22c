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

/// The settings of one run.
#[derive(Clone, Default)]
pub struct Setup {
    /// The rules for its calls.
    pub rules: Arc<Rules>,
    /// Answers the questions of rules that ask. Default: no asker.
    pub asker: Option<Arc<dyn Asker>>,
    /// The grants of the run. Default: none.
    pub grants: Vec<Grant>,
    /// The grants of all runs of its session. Default: a session of its own.
    pub session: Arc<SessionGrants>,
    /// True if it is one call without a script. The uses that rules count are then counted over
    /// all such runs of the session. Default: no.
    pub one_call: bool,
    /// Where an answer "always" is kept. Default: nowhere, and it lasts for the session.
    pub keep: Option<Arc<dyn GrantStore>>,
    /// The definitions of tools that were allowed for good earlier. Default: none are known.
    pub definitions: Option<Arc<dyn Definitions>>,
    /// Receive the events of its ledger. Default: none, and the ledger is in the report alone.
    pub sinks: Vec<Arc<dyn LedgerSink>>,
    /// The script: its text is not a server's data, and the asker sees its lines. Default: none.
    pub script: Option<Arc<str>>,
    /// The rules for data that goes from one server to another. Default: none.
    pub flows: Arc<FlowRules>,
    /// The host's own checks of arguments and results. Default: none.
    pub reviewers: Vec<Arc<dyn Reviewer>>,
    /// A dry run sends only calls that read. Default: no dry run.
    pub dry_run: Option<Arc<DryRun>>,
    /// Serves servers while they work on its calls. Default: as
    /// [`ServerSpec::caller`](callgate_servers::ServerSpec::caller) says.
    pub caller: Option<Arc<dyn Caller>>,
    /// The audience of the errors of its calls. Default: the operator.
    pub audience: Audience,
    /// True if data may go to a model of the host besides servers; see
    /// [`Dispatcher::consult`](crate::Dispatcher::consult). Default: no.
    pub consults: bool,
}

/// The settings of one call. The defaults set nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallOptions {
    /// The call's time limit, after which it ends as
    /// [`CallErrorKind::Timeout`](crate::CallErrorKind::Timeout). Default: the server's own
    /// limits, which a longer one does not lift.
    pub timeout: Option<Duration>,
    /// The part of `timeout` that passed before the call, as the server was connected to.
    pub waited: Duration,
    /// The script's line, from 1, for the asker. Default: not known. It comes from the script's
    /// worker: a hint for a person and nothing more.
    pub line: Option<u32>,
    /// True if the result is the server's whole answer, even if `isError` is set; reviewers see
    /// it so, too. Default: [`Dispatcher::call`](crate::Dispatcher::call) describes the result.
    pub whole: bool,
}
