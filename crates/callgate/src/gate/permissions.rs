//! The permissions of runs: rules, session, askers, and kept grants.

use std::sync::Arc;

use callgate_gate::Setup;
use callgate_policy::{Decision, Grant, SessionGrants, Verdict};
use callgate_servers::Caller;
use jiff::Timestamp;

use super::Gate;
use crate::model_tools::EXTRACTION;
use crate::roots::with_roots;
use crate::run_request::CallSettings;

impl Gate {
    /// The grants of the session, for all runs that bring no session of their own.
    pub fn session(&self) -> &Arc<SessionGrants> {
        &self.setup.session
    }

    /// The place where an answer "always" is kept; `None` if it lasts for the session only.
    pub fn keeps_in(&self) -> Option<String> {
        self.setup.keep.as_ref().map(|keep| keep.place())
    }

    /// Keeps grants for good, and adds them to this session.
    ///
    /// # Errors
    ///
    /// Why they could not be kept, as a sentence; they do not count then.
    pub async fn keep(&self, grants: &[Grant]) -> Result<(), String> {
        let Some(keep) = &self.setup.keep else {
            return Err("there is no place to keep grants in; name a configuration".to_owned());
        };
        keep.keep(grants).await?;
        let definitions = &self.setup.definitions;
        for grant in grants {
            if let (Some(definitions), Some(definition)) = (definitions, &grant.definition) {
                definitions.keep(definition);
            }
            self.setup.session.add(grant.clone());
        }
        Ok(())
    }

    /// True if the rules deny every call of this tool.
    pub fn denies(&self, function: &str) -> bool {
        self.denial(function).is_some()
    }

    /// The rule that denies every call of this tool, such as `permissions.deny: "git_reset"`.
    pub fn denial(&self, function: &str) -> Option<String> {
        let catalog = self.live.catalog();
        self.live.denial(&self.setup.rules, catalog.get(function)?)
    }

    /// True if scripts can use `mcp.extract`: there is a model for it, here or at the caller,
    /// and the rules do not deny it.
    pub fn extracts(&self, caller_has_model: bool) -> bool {
        self.extraction(caller_has_model)
            .is_some_and(|decision| decision.verdict != Verdict::Deny)
    }

    /// The decision about `mcp.extract`, whatever its input; `None` without a model.
    pub(super) fn extraction(&self, caller_has_model: bool) -> Option<Decision> {
        let has_model = caller_has_model || self.models.has_small();
        let facts = EXTRACTION.facts(true, Timestamp::now());
        has_model.then(|| self.setup.rules.decide(&facts))
    }

    /// The decision about a tool, whatever its arguments; `None` for a name that is not a tool.
    pub(super) fn decision(&self, function: &str) -> Option<Decision> {
        let catalog = self.live.catalog();
        Some(
            self.live
                .decision(&self.setup.rules, catalog.get(function)?),
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
            setup.rules = Arc::clone(rules);
        }
        if let Some(session) = &settings.session {
            setup.session = Arc::clone(session);
        }
        setup.asker = settings.asker.clone().or(setup.asker);
        setup.grants.clone_from(&settings.grants);
        setup.dry_run.clone_from(&settings.dry_run);
        let caller = settings.caller.clone();
        setup.caller = caller.map(|caller| with_roots(&self.roots, caller));
        let models = &self.models;
        setup.consults = models.has_embeddings() || models.can_ask(self.caller_of(settings));
        setup
    }
}
