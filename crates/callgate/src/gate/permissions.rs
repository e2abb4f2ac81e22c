//! The permissions of runs: rules, session, askers, and kept grants.

use std::sync::Arc;

use callgate_gate::Setup;
use callgate_policy::{Decision, SessionGrants};
use callgate_servers::Caller;
use jiff::Timestamp;

use super::Gate;
use crate::model_tools::EXTRACTION;
use crate::roots::with_roots;
use crate::run_request::CallSettings;

impl Gate {
    /// The grants of the session, for all runs that bring no session of their own.
    pub fn session(&self) -> &Arc<SessionGrants> {
        &self.setup.rules.session
    }

    /// The decision about `mcp.extract`, whatever its input; `None` without a model.
    pub(super) fn extraction(&self, caller_has_model: bool) -> Option<Decision> {
        let has_model = caller_has_model || self.models.has_small();
        let facts = EXTRACTION.facts(true, Timestamp::now());
        has_model.then(|| self.setup.rules.calls.decide(&facts))
    }

    /// The decision about a tool, whatever its arguments; `None` for a name that is not a tool.
    pub(super) fn decision(&self, function: &str) -> Option<Decision> {
        let catalog = self.live.catalog();
        Some(
            self.live
                .decision(&self.setup.rules.calls, catalog.get(function)?),
        )
    }

    /// The caller of a run.
    pub(super) fn caller_of<'a>(
        &'a self,
        settings: &'a CallSettings,
    ) -> Option<&'a Arc<dyn Caller>> {
        settings.caller.as_ref().or(self.caller.as_ref())
    }

    /// The setup of a run or call with these settings.
    pub(super) fn setup(&self, settings: &CallSettings) -> Setup {
        let mut setup = self.setup.clone();
        if let Some(rules) = &settings.rules {
            setup.rules.calls = Arc::clone(rules);
        }
        if let Some(session) = &settings.session {
            setup.rules.session = Arc::clone(session);
        }
        setup.rules.grants.clone_from(&settings.grants);
        setup.people.asker = settings.asker.clone().or(setup.people.asker);
        let caller = settings.caller.clone();
        setup.people.caller = caller.map(|caller| with_roots(&self.roots, caller));
        setup.options.id.clone_from(&settings.id);
        setup.options.client.clone_from(&settings.client);
        setup.options.dry_run.clone_from(&settings.dry_run);
        let models = &self.models;
        setup.options.consults =
            models.has_embeddings() || models.can_ask(self.caller_of(settings));
        setup
    }
}
