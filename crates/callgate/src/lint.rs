//! Rules, labels and settings without effect: those that match no tool or never decide a call.

use std::collections::HashSet;
use std::sync::Arc;

use callgate_catalog::{Catalog, Tool, ToolDefinition};
use callgate_policy::flow::FlowRules;
use callgate_policy::{KnownTool, KnownTools, Rules, UnlistedServer, Unmatched};
use callgate_servers::{Phase, ServerState, Status};
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::config::ToolSettings;
use crate::model_tools::{EXTRACTION, SEARCH};
use crate::names::{ServerNames, did_you_mean};

/// Compares rules, labels and settings with the tools.
pub(crate) struct Lint {
    pub(crate) rules: Arc<Rules>,
    pub(crate) flows: Arc<FlowRules>,
    pub(crate) settings: ToolSettings,
    pub(crate) names: ServerNames,
    /// Servers of the configuration that this gate does not have, with the prefixes of their
    /// functions.
    pub(crate) withheld: Vec<(String, String)>,
    /// Models that are consulted like tools.
    pub(crate) consults: Vec<&'static Tool>,
    /// The warnings so far; `None` before the gate is built.
    pub(crate) reported: Mutex<Option<HashSet<String>>>,
    /// Rules that should forbid calls, and have not matched a tool yet.
    pub(crate) pending: Mutex<HashSet<String>>,
}

impl Lint {
    /// The rules, labels and settings without effect. What may be about a tool of a server for which
    /// `is_known` is false is left out.
    fn unmatched(
        &self,
        catalog: &Catalog,
        servers: &[ServerState],
        is_known: fn(&ServerState) -> bool,
    ) -> Vec<Unmatched> {
        let advice = |pattern: &str| advice(catalog, pattern);
        let hidden = catalog.with_hidden().skip(catalog.tools().len());
        let uncallable = hidden.chain(catalog.not_for_models());
        let mut known = KnownTools {
            tools: self.known_tools(catalog, servers),
            uncallable: uncallable.map(Tool::name).collect(),
            unlisted: self.unlisted(servers, is_known),
            advice: &advice,
            now: Timestamp::now(),
        };
        let mut unmatched = self.rules.unmatched(&known);
        // Flow rules may name the models, also those that are not in use.
        let models = [&*EXTRACTION, &*SEARCH].into_iter();
        known
            .tools
            .extend(models.map(|model| known_tool(model, true)));
        unmatched.extend(self.flows.unmatched(&known));
        unmatched.extend(self.settings.unmatched(catalog, &known));
        unmatched
    }

    /// Warnings about them, each a sentence.
    pub(crate) fn warnings(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        messages(self.unmatched(catalog, servers, is_known))
    }

    /// Warnings about those that should forbid calls, judged by the servers that have listed their
    /// tools.
    pub(crate) fn forbidding(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        messages(self.unmatched_forbidding(catalog, servers, has_listed))
    }

    /// Counts the current warnings as reported, since the host asks for them. Returns
    /// [`Lint::forbidding`].
    pub(crate) fn begin(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        let reported = self.warnings(catalog, servers).into_iter().collect();
        *self.reported.lock() = Some(reported);
        // Also while no tool is known yet.
        let pending = self.unmatched(catalog, servers, |_| true).into_iter();
        let pending = pending.filter(|unmatched| unmatched.forbids);
        *self.pending.lock() = pending.map(|unmatched| unmatched.what).collect();
        self.forbidding(catalog, servers)
    }

    /// Why no call is made: something that should forbid calls matches no tool, which is known
    /// once a server has listed its tools. A rule that has matched before is no reason.
    pub(crate) fn refusal(&self, catalog: &Catalog, servers: &[ServerState]) -> Option<String> {
        let mut pending = self.pending.lock();
        if pending.is_empty() {
            return None;
        }
        let still = self.unmatched_forbidding(catalog, servers, |_| true);
        pending.retain(|what| still.iter().any(|unmatched| unmatched.what == *what));
        let listed = self.unmatched_forbidding(catalog, servers, has_listed);
        let mut listed = listed.into_iter();
        let unmatched = listed.find(|unmatched| pending.contains(&unmatched.what))?;
        Some(format!(
            "{}; nothing is called before the configuration of Callgate is corrected",
            unmatched.message
        ))
    }

    fn unmatched_forbidding(
        &self,
        catalog: &Catalog,
        servers: &[ServerState],
        is_known: fn(&ServerState) -> bool,
    ) -> Vec<Unmatched> {
        let mut unmatched = self.unmatched(catalog, servers, is_known);
        // Without tools there is nothing to forbid.
        unmatched.retain(|unmatched| unmatched.forbids && !catalog.tools().is_empty());
        unmatched
    }

    /// Logs the warnings that are new.
    pub(crate) fn log(&self, catalog: &Catalog, servers: &[ServerState]) {
        let mut reported = self.reported.lock();
        let Some(reported) = &mut *reported else {
            return;
        };
        for reason in self.warnings(catalog, servers) {
            if reported.insert(reason.clone()) {
                tracing::warn!(
                    reason,
                    "a tool list changed, so a rule or setting no longer has any effect"
                );
            }
        }
    }

    /// The tools that rules decide about.
    fn known_tools<'a>(&self, catalog: &'a Catalog, servers: &[ServerState]) -> Vec<KnownTool<'a>> {
        let tools = catalog.tools().iter().map(|tool| {
            let mut servers = servers.iter();
            let server = servers.find(|server| server.name == tool.definition.server);
            known_tool(tool, server.is_some_and(|server| server.trusted))
        });
        let models = self.consults.iter().copied();
        let models = models.map(|model| known_tool(model, true));
        tools.chain(models).collect()
    }

    /// The servers whose tools are not known, and those that the configuration disables or
    /// that this gate does not have.
    fn unlisted<'a>(
        &'a self,
        servers: &'a [ServerState],
        is_known: fn(&ServerState) -> bool,
    ) -> Vec<UnlistedServer<'a>> {
        let unknown = servers.iter().filter(|server| !is_known(server));
        let unknown = unknown.map(|server| UnlistedServer {
            server: &server.name,
            prefix: self.names.prefix(&server.name),
        });
        let others = self.names.disabled.iter().chain(&self.withheld);
        let others = others.map(|(server, prefix)| UnlistedServer {
            server,
            prefix: Some(prefix),
        });
        unknown.chain(others).collect()
    }
}

fn known_tool(tool: &Tool, trusted: bool) -> KnownTool<'_> {
    KnownTool {
        facts: tool.facts(trusted, Timestamp::now()),
        input_schema: Some(&tool.definition.input_schema),
    }
}

fn messages(unmatched: Vec<Unmatched>) -> Vec<String> {
    let unmatched = unmatched.into_iter();
    unmatched.map(|unmatched| unmatched.message).collect()
}

/// Ends the sentence about a pattern that matches no tool: with the right spelling, or with why the
/// tool cannot be called.
fn advice(catalog: &Catalog, pattern: &str) -> String {
    let mut kept = catalog.not_for_models().iter();
    if let Some(tool) = kept.find(|tool| tool.name().is_matched(pattern, false)) {
        return format!("; {}", not_for_models(&tool.function));
    }
    match catalog.suggest_pattern(pattern) {
        Some(near) if pattern.contains('*') && !near.contains('*') => {
            format!("; the nearest is {near:?}")
        }
        near => did_you_mean(near.as_deref()),
    }
}

/// Why a tool cannot be called, for people only: models do not learn of such tools.
pub(crate) fn not_for_models(function: &str) -> String {
    format!("{function} cannot be called: its server keeps it from models (_meta.ui.visibility)")
}

fn is_known(server: &ServerState) -> bool {
    matches!(server.status, Status::Ready(_)) && server.phase != Phase::Disabled
}

/// True if the server has listed its tools to this process, and all of them can be read.
fn has_listed(server: &ServerState) -> bool {
    let Status::Ready(list) = &server.status else {
        return false;
    };
    let is_tool = |raw| ToolDefinition::parse(&server.name, raw).is_ok_and(|it| !it.task_only);
    is_known(server) && server.received && list.gaps.is_empty() && list.tools.iter().all(is_tool)
}

#[cfg(test)]
mod tests {
    use callgate_servers::ToolList;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn rule_for_app_only_tool_explains_no_match() {
        let raw = json!({
            "name": "draw",
            "inputSchema": { "type": "object" },
            "_meta": { "ui": { "visibility": ["app"] } },
        });
        let definition = ToolDefinition::parse("map", &raw).expect("a tool");
        let catalog = Catalog::build(vec![definition]);
        let why = "; map_draw cannot be called: its server keeps it from models \
                   (_meta.ui.visibility)";
        for (pattern, expected) in [("map_draw", why), ("map/draw", why), ("map_erase", "")] {
            assert_eq!(advice(&catalog, pattern), expected);
        }
    }

    #[test]
    fn incomplete_list_does_not_count_as_listed() {
        let state = |received: bool, gap: Option<&str>, tool: Value| ServerState {
            name: "files".to_owned(),
            description: None,
            trusted: false,
            status: Status::Ready(Arc::new(ToolList {
                tools: Arc::new(vec![tool]),
                gaps: gap.into_iter().map(str::to_owned).collect(),
                ..ToolList::default()
            })),
            failed: None,
            phase: Phase::Idle,
            received,
            age: None,
            stale: false,
        };
        let tool = || json!({ "name": "read", "inputSchema": { "type": "object" } });
        assert!(has_listed(&state(true, None, tool())));
        // From an earlier time, cut short, and with an entry that is dropped.
        assert!(!has_listed(&state(false, None, tool())));
        assert!(!has_listed(&state(true, Some("page 2 failed"), tool())));
        assert!(!has_listed(&state(true, None, json!({ "name": "x" }))));
        let mut task_only = tool();
        task_only["execution"] = json!({ "taskSupport": "required" });
        assert!(!has_listed(&state(true, None, task_only)));
    }
}
