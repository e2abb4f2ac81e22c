//! Decisions of the rules before the arguments of a call are known.

use std::sync::Arc;

use callgate_catalog::Tool;
use callgate_policy::{Because, Decision, Rules, Verdict};
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
    pub(crate) fn decision(&self, tool: &Tool) -> Decision {
        let trusted = self.trusted.contains(&tool.definition.server);
        self.rules.decide(&tool.facts(trusted, self.now))
    }

    /// The rule that denies every call of the tool, such as `permissions.deny: "git_reset"`.
    pub(crate) fn denial(&self, tool: &Tool) -> Option<String> {
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
    pub(crate) fn mark(&self, tool: &Tool) -> Option<String> {
        Some(format!("DENIED ({})", self.denial(tool)?))
    }
}
