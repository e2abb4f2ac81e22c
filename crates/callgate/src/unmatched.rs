//! Rules, labels and settings that match no tool or never decide anything.
//!
//! One that may be about a server without a known list of tools is not counted.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use callgate_catalog::{Catalog, Tool};
use callgate_gate::DryRun;
use callgate_policy::flow::{FlowRules, Side, UnknownTools};
use callgate_policy::{Hints, KnownTool, Rules, Unmatched, Why};
use callgate_servers::{Phase, ServerState, Status};
use jiff::Timestamp;

use crate::config::ToolSettings;
use crate::foresight::hints;
use crate::model_tools::{EXTRACTION, SEARCH};
use crate::names::ServerNames;

/// Compares rules, labels and settings with the tools.
pub(crate) struct Lint {
    pub(crate) rules: Arc<Rules>,
    pub(crate) flows: Arc<FlowRules>,
    pub(crate) settings: Arc<ToolSettings>,
    pub(crate) names: Arc<ServerNames>,
    /// Models that are consulted like tools.
    pub(crate) consults: Vec<&'static Tool>,
    /// The warnings so far; `None` before the gate is built.
    pub(crate) told: Mutex<Option<HashSet<String>>>,
}

impl Lint {
    /// The warnings, each a sentence.
    pub(crate) fn find(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        let unknown = self.unknown_tools(servers);
        let mut warnings = self.of_rules(catalog, servers);
        let tools = catalog.tools().iter().map(|tool| {
            let definition = &tool.definition;
            Side::new(&tool.function, &definition.server, &definition.name)
                .or_named(Some(&tool.other_names))
        });
        let models = [&*EXTRACTION, &*SEARCH];
        let models = models.map(|it| Side::new(&it.function, &it.server, &it.name));
        let sides: Vec<Side> = tools.chain(models).collect();
        warnings.extend(self.flows.unmatched(&sides, &unknown));
        warnings.extend(self.settings.unmatched(catalog, |pattern| {
            let mut unknown = unknown.iter();
            unknown.any(|it| it.may_have(|beginning| pattern.may_match_with(beginning)))
        }));
        warnings
    }

    /// Takes the current warnings as told: the host asks for them.
    pub(crate) fn begin(&self, catalog: &Catalog, servers: &[ServerState]) {
        let told = self.find(catalog, servers).into_iter().collect();
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    /// Logs the warnings that are new.
    pub(crate) fn log(&self, catalog: &Catalog, servers: &[ServerState]) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = &mut *told else { return };
        for reason in self.find(catalog, servers) {
            if !told.contains(&reason) {
                tracing::warn!(
                    reason,
                    "a list of tools is another, and something does not do what it says"
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
        let unknown = self.unknown_tools(servers);
        let may_come =
            |fits: &dyn Fn(&str) -> bool| unknown.iter().any(|server| server.may_have(fits));
        let patterns = dry_run.patterns().iter().filter(|pattern| {
            !catalog.functions().any(|it| pattern.matches(it))
                && !may_come(&|beginning| pattern.may_match_with(beginning))
        });
        let names = dry_run.functions().into_iter().filter(|function| {
            catalog.get(function).is_none()
                && !may_come(&|beginning| function.starts_with(beginning))
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

    fn of_rules(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        let trusted = servers.iter().filter(|server| server.trusted);
        let trusted: HashSet<&str> = trusted.map(|server| server.name.as_str()).collect();
        let tools = catalog.tools().iter().map(|tool| KnownTool {
            function: &tool.function,
            other_names: Some(&tool.other_names),
            server: &tool.definition.server,
            hints: hints(&tool.definition),
            trusted: trusted.contains(tool.definition.server.as_str()),
            definition: Some(tool.definition.identity.hash()),
            input_schema: Some(&tool.definition.input_schema),
        });
        let tools = tools.chain(self.consults.iter().map(|model| KnownTool {
            function: &model.function,
            other_names: None,
            server: &model.server,
            hints: Hints::default(),
            trusted: true,
            definition: Some(model.definition.hash()),
            input_schema: None,
        }));
        let may_match = |rule: &Unmatched| {
            let may = |server: &str, trusted| {
                rule.may_be_about(server, self.names.beginning(server), trusted)
            };
            let mut unknown = servers.iter().filter(|server| !is_known(server));
            let mut left_out = self.names.left_out().iter();
            unknown.any(|server| may(&server.name, server.trusted))
                || left_out.any(|server| may(server, true) || may(server, false))
        };
        let mut unmatched = self.rules.unmatched(tools, Timestamp::now());
        unmatched.retain(|rule| !may_match(rule));
        unmatched
            .iter()
            .map(|rule| warning(rule, catalog))
            .collect()
    }

    /// The servers whose tools are not known, and those that the configuration disables.
    fn unknown_tools<'a>(&'a self, servers: &'a [ServerState]) -> Vec<UnknownTools<'a>> {
        let unknown = servers.iter().filter(|server| !is_known(server));
        let unknown = unknown.map(|server| server.name.as_str());
        let left_out = self.names.left_out().iter().map(String::as_str);
        let all = unknown.chain(left_out).map(|server| UnknownTools {
            server,
            beginning: self.names.beginning(server),
        });
        all.collect()
    }
}

/// The warning about a rule.
fn warning(unmatched: &Unmatched, catalog: &Catalog) -> String {
    let rule = &unmatched.rule;
    let mut left_out = catalog.not_for_models();
    match left_out.find(|function| rule.pattern.matches(function)) {
        Some(function) if matches!(unmatched.why, Why::NoTool { .. }) => {
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

#[cfg(test)]
mod tests {
    use callgate_catalog::ToolDefinition;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_about_a_tool_that_is_not_for_models_says_why_it_matches_none() {
        let raw = json!({
            "name": "draw",
            "inputSchema": { "type": "object" },
            "_meta": { "ui": { "visibility": ["app"] } },
        });
        let definition = ToolDefinition::parse("map", &raw).expect("a tool");
        let catalog = Catalog::build(vec![definition]);
        let rules = Rules::new(["map_draw", "map_erase"], [], []).expect("patterns");
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
}
