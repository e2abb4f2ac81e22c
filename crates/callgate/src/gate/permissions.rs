//! What a gate's runs may do: rules, grants, whoever is asked, and what is kept.

use std::borrow::Borrow;
use std::sync::Arc;

use callgate_broker::{Asker, Caller, RunSetup, ServerState};
use callgate_catalog::CatalogTool;
use callgate_policy::{CallFacts, Decision, Grant, Hints, Rules, SessionGrants, Verdict};
use jiff::Timestamp;

use super::Gate;
use crate::RunRequest;
use crate::model_tools::EXTRACTION;
use crate::roots::with_roots;

impl Gate {
    /// What is granted for the session, in all runs that bring no session of
    /// their own. A grant of it ends with the gate, or when it is taken back.
    pub fn session(&self) -> &Arc<SessionGrants> {
        &self.session
    }

    /// Where an answer "always" is kept; `None` where there is no such place,
    /// so that it lasts for the session.
    pub fn keeps_in(&self) -> Option<String> {
        self.keep.as_ref().map(|keep| keep.place())
    }

    /// Keeps grants for good, and lets them count in this session from now on.
    ///
    /// # Errors
    ///
    /// Why they could not be kept, as a sentence; they do not count then.
    pub async fn keep(&self, grants: &[Grant]) -> Result<(), String> {
        let Some(keep) = &self.keep else {
            return Err("there is no place to keep grants in; name a configuration".to_owned());
        };
        keep.keep(grants).await?;
        if let Some(definitions) = self.definitions() {
            let granted = grants
                .iter()
                .filter_map(|grant| grant.definition.as_deref());
            granted.for_each(|definition| definitions.keep(definition));
        }
        for grant in grants {
            self.session.add(grant.clone());
        }
        Ok(())
    }

    /// What the host can do for a run: as the run says, or the gate.
    pub(crate) fn caller_of<'a>(&'a self, request: &'a RunRequest) -> Option<&'a Arc<dyn Caller>> {
        request.caller.as_ref().or(self.caller.as_ref())
    }

    /// A run with the gate's own settings, but for these.
    pub(crate) fn setup(
        &self,
        rules: Option<&Arc<Rules>>,
        asker: Option<&Arc<dyn Asker>>,
    ) -> RunSetup {
        let rules = Arc::clone(rules.unwrap_or(&self.rules));
        let asker = Arc::clone(asker.unwrap_or(&self.asker));
        let mut setup = RunSetup::new(rules, asker);
        setup.session = Arc::clone(&self.session);
        setup.keep = self.keep.clone();
        setup.definitions = self.definitions();
        let live = Arc::clone(&self.live);
        setup.renew = Some(Arc::new(move |function| {
            let (live, function) = (Arc::clone(&live), function.to_owned());
            Box::pin(async move {
                live.update().await;
                live.target(&function).await.1
            })
        }));
        setup.journal = self.journal.clone();
        setup.flows = Arc::clone(&self.flows);
        setup.reviewers.clone_from(&self.reviewers);
        setup.consults = self.models.has_small()
            || self.models.has_embeddings()
            || self
                .caller
                .as_ref()
                .is_some_and(|caller| caller.offers().sampling);
        setup
    }

    /// Whether scripts can have a model put values into a form (`mcp.extract`):
    /// there is one, here or as the caller of a run offers it, and the rules do
    /// not deny it whatever it is given.
    pub fn extracts(&self, caller_has_model: bool) -> bool {
        self.extraction(caller_has_model)
            .is_some_and(|decision| decision.verdict != Verdict::Deny)
    }

    /// What the rules say of an extraction before anything is known of what it is given;
    /// `None` where there is no model for it.
    pub(crate) fn extraction(&self, caller_has_model: bool) -> Option<Decision> {
        if !(caller_has_model || self.models.has_small()) {
            return None;
        }
        let model = &*EXTRACTION;
        Some(self.rules.decide(&CallFacts {
            function: &model.function,
            other_names: None,
            server: &model.server,
            tool: &model.tool,
            hints: Hints {
                read_only: Some(true),
                ..Hints::default()
            },
            trusted: true,
            definition: Some(model.definition.hash()),
            arguments: None,
            now: Timestamp::now(),
        }))
    }

    /// The run of a request.
    pub(super) fn setup_of(&self, request: &RunRequest) -> RunSetup {
        let mut setup = self.setup(request.rules.as_ref(), request.asker.as_ref());
        setup.grants.clone_from(&request.grants);
        setup.dry_run.clone_from(&request.dry_run);
        if let Some(caller) = &request.caller {
            setup.consults |= caller.offers().sampling;
            setup.caller = Some(with_roots(&self.roots, Arc::clone(caller)));
        }
        if let Some(session) = &request.session {
            setup.session = Arc::clone(session);
        }
        let source = Arc::clone(&request.source);
        setup.script = Some(Arc::clone(&source));
        setup.lines = Some(Arc::new(move |line| {
            callgate_script::line(&source, line).map(str::to_owned)
        }));
        setup
    }

    /// The rules over data between servers.
    pub(crate) fn flow_rules(&self) -> &callgate_policy::flow::FlowRules {
        &self.flows
    }

    /// What the rules say of a tool, before anything is known of a call's
    /// arguments; `None` for a name that is no tool.
    pub(crate) fn decision(&self, function: &str) -> Option<Decision> {
        let catalog = self.catalog();
        let tool = catalog.get(function)?;
        let foresight = Foresight::new(Arc::clone(&self.rules), self.broker.servers());
        Some(foresight.decision(tool))
    }
}

/// What rules say of tools before anything is known of a call's arguments.
pub(crate) struct Foresight {
    rules: Arc<Rules>,
    /// The names of the servers whose word is believed.
    trusted: Vec<String>,
    now: Timestamp,
}

impl Foresight {
    pub(crate) fn new(
        rules: Arc<Rules>,
        servers: impl IntoIterator<Item = impl Borrow<ServerState>>,
    ) -> Self {
        let trusted = servers.into_iter().filter_map(|server| {
            let server = server.borrow();
            server.trusted.then(|| server.name.clone())
        });
        Self {
            rules,
            trusted: trusted.collect(),
            now: Timestamp::now(),
        }
    }

    fn decision(&self, tool: &CatalogTool) -> Decision {
        let CatalogTool {
            function,
            other_names,
            definition,
            ..
        } = tool;
        self.rules.decide(&CallFacts {
            function,
            other_names: Some(other_names),
            server: &definition.server,
            tool: &definition.name,
            hints: super::hints(definition),
            trusted: self.trusted.contains(&definition.server),
            definition: Some(definition.identity.hash()),
            arguments: None,
            now: self.now,
        })
    }

    /// Whether they deny every call of the tool.
    pub(crate) fn denies(&self, tool: &CatalogTool) -> bool {
        self.decision(tool).verdict == Verdict::Deny
    }
}
