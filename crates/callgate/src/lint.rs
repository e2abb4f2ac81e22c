//! Rules, labels and settings that match no tool or never decide anything.
//!
//! One that may be about a server without a known list of tools is not counted.

use std::collections::HashSet;
use std::sync::Arc;

use callgate_catalog::{Catalog, Tool, ToolDefinition};
use callgate_gate::DryRun;
use callgate_policy::flow::{FlowRules, Side, UnknownTools};
use callgate_policy::{Finding, KnownTool, Rule, Rules, Unmatched, Why};
use callgate_servers::{Phase, ServerState, Status};
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::config::ToolSettings;
use crate::model_tools::{EXTRACTION, SEARCH};
use crate::names::ServerNames;

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
    pub(crate) told: Mutex<Option<HashSet<String>>>,
    /// Rules that should forbid something, and have not matched a tool yet.
    pub(crate) pending: Mutex<HashSet<String>>,
}

impl Lint {
    /// The warnings, each a sentence.
    pub(crate) fn find(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        messages(self.findings(catalog, servers, is_known))
    }

    /// Takes the current warnings as told: the host asks for them. Returns those about what should
    /// forbid something, and matches nothing.
    pub(crate) fn begin(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        let told = self.find(catalog, servers).into_iter().collect();
        *self.told.lock() = Some(told);
        // Also while no tool is known yet.
        let mut pending = self.findings(catalog, servers, |_| true);
        pending.retain(|finding| finding.forbids);
        *self.pending.lock() = pending.into_iter().map(|finding| finding.what).collect();
        self.void_messages(catalog, servers)
    }

    /// The messages about what should forbid something, and matches nothing.
    pub(crate) fn void_messages(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        messages(self.void(catalog, servers, has_listed))
    }

    /// Why no call is made: something that should forbid calls matches nothing, which is known
    /// once a server has listed its tools. A rule that has matched before is no reason.
    pub(crate) fn refusal(&self, catalog: &Catalog, servers: &[ServerState]) -> Option<String> {
        let mut pending = self.pending.lock();
        if pending.is_empty() {
            return None;
        }
        let still = self.void(catalog, servers, |_| true).into_iter();
        let still: HashSet<String> = still.map(|finding| finding.what).collect();
        pending.retain(|what| still.contains(what));
        let void = self.void(catalog, servers, has_listed).into_iter();
        let mut void = void.filter(|finding| pending.contains(&finding.what));
        let message = void.next()?.message;
        Some(format!(
            "{message}; nothing is called before the configuration of Callgate is corrected"
        ))
    }

    /// Rules that should forbid something, and match nothing.
    fn void(
        &self,
        catalog: &Catalog,
        servers: &[ServerState],
        is_known: fn(&ServerState) -> bool,
    ) -> Vec<Finding> {
        let mut found = self.findings(catalog, servers, is_known);
        // Without tools there is nothing to forbid.
        found.retain(|finding| finding.forbids && !catalog.tools().is_empty());
        found
    }

    /// Rules that decide nothing, judged by the servers for which `is_known` holds.
    fn findings(
        &self,
        catalog: &Catalog,
        servers: &[ServerState],
        is_known: fn(&ServerState) -> bool,
    ) -> Vec<Finding> {
        let unknown = self.unknown_tools(servers, is_known);
        let mut findings = self.of_rules(catalog, servers, &unknown);
        let tools = catalog.tools().iter().chain([&*EXTRACTION, &*SEARCH]);
        let sides: Vec<Side> = tools.map(Tool::side).collect();
        findings.extend(self.flows.unmatched(&sides, &unknown));
        findings.extend(self.settings.unmatched(catalog, |pattern| {
            let mut unknown = unknown.iter();
            unknown.any(|it| it.may_have(|prefix| pattern.may_match_with(prefix)))
        }));
        findings
    }

    /// Logs the warnings that are new.
    pub(crate) fn log(&self, catalog: &Catalog, servers: &[ServerState]) {
        let mut told = self.told.lock();
        let Some(told) = &mut *told else { return };
        for reason in self.find(catalog, servers) {
            if !told.contains(&reason) {
                tracing::warn!(
                    reason,
                    "a tool list changed, so a rule or setting no longer has any effect"
                );
                told.insert(reason);
            }
        }
    }

    /// The patterns and names of a dry run that match no tool.
    pub(crate) fn of_dry_run(
        &self,
        dry_run: &DryRun,
        catalog: &Catalog,
        servers: &[ServerState],
    ) -> Vec<String> {
        let unknown = self.unknown_tools(servers, is_known);
        let may_come =
            |fits: &dyn Fn(&str) -> bool| unknown.iter().any(|server| server.may_have(fits));
        let patterns = dry_run.reads.iter().filter(|pattern| {
            !catalog
                .with_hidden()
                .any(|it| pattern.means(&it.function, Some(&it.other_names)))
                && !may_come(&|prefix| pattern.may_match_with(prefix))
        });
        let names = dry_run
            .recorded
            .keys()
            .map(String::as_str)
            .filter(|function| {
                catalog.get(function).is_none() && !may_come(&|prefix| function.starts_with(prefix))
            });
        let patterns = patterns.map(|pattern| ("--reads", pattern.as_str()));
        let all = patterns.chain(names.map(|name| ("--recorded", name)));
        all.map(|(flag, name)| {
            let near = catalog.suggest(name);
            let near = near.map(|near| format!("; the nearest is {near:?}"));
            let near = near.unwrap_or_default();
            format!("{name:?} in {flag} matches no tool{near}")
        })
        .collect()
    }

    fn of_rules(
        &self,
        catalog: &Catalog,
        servers: &[ServerState],
        unknown: &[UnknownTools<'_>],
    ) -> Vec<Finding> {
        let trusted = servers.iter().filter(|server| server.trusted);
        let trusted: HashSet<&str> = trusted.map(|server| server.name.as_str()).collect();
        let tools = catalog.tools().iter().map(|tool| {
            let server = tool.definition.server.as_str();
            (tool, trusted.contains(server))
        });
        let models = self.consults.iter().map(|model| (*model, true));
        let tools = tools.chain(models).map(|(tool, trusted)| KnownTool {
            function: &tool.function,
            other_names: Some(&tool.other_names),
            server: &tool.definition.server,
            hints: tool.definition.hints,
            trusted,
            definition: Some(tool.definition.identity.hash()),
            input_schema: Some(&tool.definition.input_schema),
        });
        let mut unmatched = self.rules.unmatched(tools, Timestamp::now());
        unmatched.retain(|rule| {
            let mut unknown = unknown.iter();
            !unknown.any(|it| rule.may_be_about(it.server, it.prefix))
        });
        let not_callable = |rule: &Rule| {
            let is_hidden = |it: &&Tool| catalog.get(&it.function).is_none();
            let mut hidden = catalog.with_hidden().filter(is_hidden);
            hidden.any(|it| rule.pattern.means(&it.function, Some(&it.other_names)))
                || catalog.not_for_models().any(|it| rule.pattern.matches(it))
        };
        let findings = unmatched.iter().map(|unmatched| Finding {
            what: unmatched.rule.to_string(),
            message: warning(unmatched, catalog),
            // A tool that cannot be called need not be forbidden.
            forbids: unmatched.forbids() && !not_callable(&unmatched.rule),
        });
        findings.collect()
    }

    /// The servers whose tools are not known, and those that the configuration disables or
    /// that this gate does not have.
    fn unknown_tools<'a>(
        &'a self,
        servers: &'a [ServerState],
        is_known: fn(&ServerState) -> bool,
    ) -> Vec<UnknownTools<'a>> {
        let unknown = servers.iter().filter(|server| !is_known(server));
        let unknown = unknown.map(|server| UnknownTools {
            server: &server.name,
            prefix: self.names.prefix(&server.name),
        });
        let others = self.names.left_out.iter().chain(&self.withheld);
        let others = others.map(|(server, prefix)| UnknownTools {
            server,
            prefix: Some(prefix),
        });
        unknown.chain(others).collect()
    }
}

fn messages(findings: Vec<Finding>) -> Vec<String> {
    let findings = findings.into_iter();
    findings.map(|finding| finding.message).collect()
}

/// The warning about a rule.
fn warning(unmatched: &Unmatched, catalog: &Catalog) -> String {
    let rule = &unmatched.rule;
    let mut left_out = catalog.not_for_models();
    match left_out.find(|function| rule.pattern.matches(function)) {
        Some(function) if unmatched.why == Why::NoTool => {
            format!("{rule} matches no tool; {}", not_for_models(function))
        }
        _ => unmatched.to_string(),
    }
}

/// Why there is no such tool, for people: models do not learn that there might be one.
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
    let is_tool = |raw| ToolDefinition::parse(&server.name, raw).is_ok();
    is_known(server) && server.heard && list.gaps.is_empty() && list.tools.iter().all(is_tool)
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
        let rules = Rules::builder()
            .allow("map_draw")
            .allow("map_erase")
            .build()
            .expect("patterns");
        let unmatched = rules.unmatched([], Timestamp::now());
        let warnings: Vec<String> = unmatched.iter().map(|it| warning(it, &catalog)).collect();
        assert_eq!(
            warnings,
            [
                "rule \"map_draw\" in permissions.allow matches no tool; map_draw cannot be \
                 called: its server keeps it from models (_meta.ui.visibility)",
                "rule \"map_erase\" in permissions.allow matches no tool",
            ]
        );
    }

    #[test]
    fn incomplete_list_does_not_count_as_listed() {
        let state = |heard: bool, gap: Option<&str>, tool: Value| ServerState {
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
            heard,
            age: None,
            stale: false,
        };
        let tool = || json!({ "name": "read", "inputSchema": { "type": "object" } });
        assert!(has_listed(&state(true, None, tool())));
        // From an earlier time, cut short, and with an entry that is dropped.
        assert!(!has_listed(&state(false, None, tool())));
        assert!(!has_listed(&state(true, Some("page 2 failed"), tool())));
        assert!(!has_listed(&state(true, None, json!({ "name": "x" }))));
    }
}
