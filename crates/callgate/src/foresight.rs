//! Decisions of the rules before the arguments of a call are known.

use std::sync::Arc;

use callgate_catalog::{CatalogTool, Tool, ToolDefinition};
use callgate_policy::{Because, CallFacts, Decision, Hints, Rules, Verdict};
use callgate_servers::ServerState;
use jiff::Timestamp;

/// The rules, and the servers whose hints count.
pub(crate) struct Foresight {
    rules: Arc<Rules>,
    trusted: Vec<String>,
    now: Timestamp,
}

impl Foresight {
    pub(crate) fn new(rules: Arc<Rules>, servers: impl IntoIterator<Item = ServerState>) -> Self {
        let trusted = servers.into_iter().filter(|server| server.trusted);
        Self {
            rules,
            trusted: trusted.map(|server| server.name).collect(),
            now: Timestamp::now(),
        }
    }

    /// The decision about a tool, whatever its arguments.
    pub(crate) fn decision(&self, tool: &CatalogTool) -> Decision {
        let definition = &tool.definition;
        self.rules.decide(&CallFacts {
            function: &tool.function,
            other_names: Some(&tool.other_names),
            server: &definition.server,
            tool: &definition.name,
            hints: hints(definition),
            trusted: self.trusted.contains(&definition.server),
            definition: Some(definition.identity.hash()),
            arguments: None,
            now: self.now,
        })
    }

    /// The rule that denies every call of the tool, such as `permissions.deny: "git_reset"`.
    pub(crate) fn denial(&self, tool: &CatalogTool) -> Option<String> {
        match self.decision(tool) {
            Decision {
                verdict: Verdict::Deny,
                because: Because::Rule(rule),
                ..
            } => Some(format!("{}: \"{}\"", rule.written_in, rule.pattern)),
            decision => (decision.verdict == Verdict::Deny).then(|| decision.to_string()),
        }
    }

    /// The mark of a tool that the rules deny, for lists and declarations.
    pub(crate) fn mark(&self, tool: &CatalogTool) -> Option<String> {
        Some(format!("DENIED ({})", self.denial(tool)?))
    }
}

/// The decision about giving data to one of the host's models, whatever the data.
pub(crate) fn model_decision(rules: &Rules, model: &Tool) -> Decision {
    rules.decide(&CallFacts {
        function: &model.function,
        other_names: None,
        server: &model.server,
        tool: &model.name,
        hints: Hints {
            read_only: Some(true),
            ..Hints::default()
        },
        trusted: true,
        definition: Some(model.definition.hash()),
        arguments: None,
        now: Timestamp::now(),
    })
}

/// The hints of a tool, in its server's words.
pub(crate) fn hints(tool: &ToolDefinition) -> Hints {
    let annotations = &tool.annotations;
    Hints {
        read_only: annotations.read_only_hint,
        destructive: annotations.destructive_hint,
        idempotent: annotations.idempotent_hint,
        open_world: annotations.open_world_hint,
    }
}
