//! Rules, labels and settings of tools that can decide nothing, or not what they say, so
//! that somebody hears of a slip of the pen: told when they are asked for, and logged when there
//! are others because a list of tools is another.
//!
//! What may be about a server whose tools are not known is not counted: it has not
//! been connected to yet, did not start, or is disabled, also in the configuration.

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

/// What there is to hold against the tools.
pub(crate) struct Oversight {
    pub(crate) rules: Arc<Rules>,
    pub(crate) flows: Arc<FlowRules>,
    pub(crate) settings: Arc<ToolSettings>,
    pub(crate) names: Arc<ServerNames>,
    /// What is consulted, as a tool is called.
    pub(crate) consults: Vec<&'static Tool>,
    pub(crate) told: Told,
}

/// What has been told, each by what stays the same of it. `None` before the host
/// could ask.
pub(crate) type Told = Mutex<Option<HashSet<String>>>;

/// One such thing.
struct Found {
    what: String,
    /// A warning for a person.
    warning: String,
}

impl Oversight {
    /// All of it, each in a sentence.
    pub(crate) fn find(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<String> {
        let found = self.all(catalog, servers).into_iter();
        found.map(|found| found.warning).collect()
    }

    /// From now on others are logged: the host can ask for these.
    pub(crate) fn begin(&self, catalog: &Catalog, servers: &[ServerState]) {
        let found = self.all(catalog, servers).into_iter();
        let told = found.map(|found| found.what).collect();
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    /// Logs what was not told before, once.
    pub(crate) fn log(&self, catalog: &Catalog, servers: &[ServerState]) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = &mut *told else {
            return;
        };
        for found in self.all(catalog, servers) {
            if told.insert(found.what) {
                let reason = found.warning;
                tracing::warn!(
                    reason,
                    "a list of tools is another, and something does not do what it says"
                );
            }
        }
    }

    fn all(&self, catalog: &Catalog, servers: &[ServerState]) -> Vec<Found> {
        let unknown: Vec<&ServerState> = servers.iter().filter(|it| !is_known(it)).collect();
        let mut found = self.of_rules(catalog, servers, &unknown);
        let plain = |warning: String| Found {
            what: warning.clone(),
            warning,
        };
        let unknown = self.unknown_tools(unknown.iter().copied());
        let of_flows = self.flows.unmatched(&self.sides(catalog), &unknown);
        found.extend(of_flows.into_iter().map(plain));
        let settings = self.settings.unmatched(catalog, |pattern| {
            let mut unknown = unknown.iter();
            unknown.any(|it| it.may_have(|beginning| pattern.may_match_with(beginning)))
        });
        found.extend(settings.into_iter().map(plain));
        found
    }

    /// What a dry run says of tools that there are not, by patterns and by names.
    pub(crate) fn of_dry_run(
        &self,
        dry_run: &DryRun,
        catalog: &Catalog,
        servers: &[ServerState],
    ) -> Vec<String> {
        let unknown = servers.iter().filter(|server| !is_known(server));
        let unknown = self.unknown_tools(unknown);
        let may_come =
            |fits: &dyn Fn(&str) -> bool| unknown.iter().any(|server| server.may_have(fits));
        let patterns = dry_run.patterns().iter().filter(|pattern| {
            !catalog
                .functions()
                .any(|function| pattern.matches(function))
                && !may_come(&|beginning| pattern.may_match_with(beginning))
        });
        let names = dry_run.functions().into_iter().filter(|function| {
            catalog.get(function).is_none()
                && !may_come(&|beginning| function.starts_with(beginning))
        });
        let patterns = patterns.map(|pattern| ("--reads", pattern.as_str()));
        let names = names.map(|name| ("--recorded", name));
        patterns
            .chain(names)
            .map(|(flag, name)| {
                let near = catalog.suggest(name);
                let near = near.map(|near| format!("; the nearest is {near:?}"));
                format!(
                    "{name:?} in {flag} matches no tool{}",
                    near.unwrap_or_default()
                )
            })
            .collect()
    }

    fn of_rules(
        &self,
        catalog: &Catalog,
        servers: &[ServerState],
        unknown: &[&ServerState],
    ) -> Vec<Found> {
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
        let mut unmatched = self.rules.unmatched(tools, Timestamp::now());
        unmatched.retain(|rule| {
            !unknown.iter().any(|server| {
                let beginning = self.names.beginning(&server.name);
                rule.may_be_about(&server.name, beginning, server.trusted)
            }) && !self.names.left_out().iter().any(|server| {
                let beginning = self.names.beginning(server);
                [true, false]
                    .iter()
                    .any(|trusted| rule.may_be_about(server, beginning, *trusted))
            })
        });
        let unmatched = unmatched.into_iter().map(|unmatched| Found {
            what: unmatched.rule.to_string(),
            warning: warning(&unmatched, catalog),
        });
        unmatched.collect()
    }

    fn sides(&self, catalog: &Catalog) -> Vec<Side> {
        let tools = catalog.tools().iter();
        let mut sides: Vec<Side> = tools
            .map(|tool| {
                let definition = &tool.definition;
                let side = Side::new(&tool.function, &definition.server, &definition.name);
                side.or_named(Some(&tool.other_names))
            })
            .collect();
        for model in [&*EXTRACTION, &*SEARCH] {
            sides.push(Side::new(&model.function, &model.server, &model.name));
        }
        sides
    }

    /// The servers whose tools are not known: these, and those that the configuration
    /// disables.
    fn unknown_tools<'a>(
        &'a self,
        unknown: impl Iterator<Item = &'a ServerState>,
    ) -> Vec<UnknownTools<'a>> {
        let unknown = unknown.map(|server| server.name.as_str());
        let left_out = self.names.left_out().iter().map(String::as_str);
        let all = unknown.chain(left_out).map(|server| UnknownTools {
            server,
            beginning: self.names.beginning(server),
        });
        all.collect()
    }
}

/// What a person is told of a rule.
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

/// Whether the tools of a server are those that there are.
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
