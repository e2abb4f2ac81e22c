//! What a run is begun with.

use std::fmt;
use std::sync::Arc;

use callgate_policy::flow::FlowRules;
use callgate_policy::{Grant, Rules, SessionGrants};
use futures::future::BoxFuture;

use crate::ask::Asker;
use crate::caller::Caller;
use crate::dry_run::DryRun;
use crate::journal::Journal;
use crate::keep::{Definitions, Keep};
use crate::review::Reviewer;
use crate::target::Target;

/// The text of a script's line by its number, counted from 1.
pub type LineText = Arc<dyn Fn(u32) -> Option<String> + Send + Sync>;

/// The tool that a function's name stands for by the newest lists, if it stands for one.
pub type Renew = Arc<dyn Fn(&str) -> BoxFuture<'static, Option<Target>> + Send + Sync>;

/// What a run is begun with. Begins with [`RunSetup::new`]; the rest has
/// defaults.
#[derive(Clone)]
#[non_exhaustive]
pub struct RunSetup {
    /// The rules over its calls.
    pub rules: Arc<Rules>,
    /// Who is asked where they say so.
    pub asker: Arc<dyn Asker>,
    /// What is granted before it begins. Default: nothing.
    pub grants: Vec<Grant>,
    /// What is granted to all runs of its session. Default: a session of its
    /// own.
    pub session: Arc<SessionGrants>,
    /// Whether it is one call without a script, so that what rules count they count over all
    /// such runs of the session. Default: no.
    pub one_call: bool,
    /// Where an answer "always" is kept. Default: nowhere, so that it lasts for
    /// the session.
    pub keep: Option<Arc<dyn Keep>>,
    /// What tools were that were allowed for good at an earlier time. Default:
    /// nothing is known of that.
    pub definitions: Option<Arc<dyn Definitions>>,
    /// The script's lines, for whoever is asked. Default: not known.
    pub lines: Option<LineText>,
    /// Where a tool is looked up again that was another by the time its call was decided
    /// about, so that it is decided about anew. Default: nowhere, and such a call fails.
    pub renew: Option<Renew>,
    /// Where its ledger is written to, line by line. Default: nowhere, so that
    /// it is in the report alone.
    pub journal: Option<Arc<Journal>>,
    /// The script itself: what it says is no server's data. Default: not known.
    pub script: Option<Arc<str>>,
    /// The rules over data that goes from one server to another. Default: none.
    pub flows: Arc<FlowRules>,
    /// Who looks at arguments and results besides. Default: nobody.
    pub reviewers: Vec<Arc<dyn Reviewer>>,
    /// That only calls which read are made. Default: every call is.
    pub dry_run: Option<Arc<DryRun>>,
    /// What can be done for servers while they work on its calls. Default:
    /// whatever [`crate::ServerSpec::caller`] says.
    pub caller: Option<Arc<dyn Caller>>,
    /// Whether data may be handed to something of the host's own, besides
    /// servers; see [`crate::Run::consult`]. Default: no.
    pub consults: bool,
}

impl RunSetup {
    /// A run under these rules, with nothing else set.
    pub fn new(rules: Arc<Rules>, asker: Arc<dyn Asker>) -> Self {
        Self {
            rules,
            asker,
            grants: Vec::new(),
            session: Arc::default(),
            one_call: false,
            keep: None,
            definitions: None,
            lines: None,
            renew: None,
            journal: None,
            script: None,
            flows: Arc::default(),
            reviewers: Vec::new(),
            dry_run: None,
            caller: None,
            consults: false,
        }
    }
}

impl fmt::Debug for RunSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSetup")
            .field("rules", &self.rules)
            .field("grants", &self.grants)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}
