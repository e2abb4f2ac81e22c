//! Questions of `callgate serve` and of the command, beyond the public API.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callgate_catalog::Detail;
use callgate_gate::GrantStoreError;
use callgate_policy::{Because, Effect, Grant, Pattern, Verdict};
use callgate_rust_types::RustTypes;
use callgate_schema::Declared;
use callgate_servers::{Audience, Phase, Status};
use callgate_text::{is_invisible, label};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::Gate;
use super::export::{ExportFormat, Exported, exported};
use super::servers::unavailable;
use crate::arguments::{WrongArguments, check_call};
use crate::choices::SearchBy;
use crate::config::Visibility;
use crate::error::{GateError, GateErrorKind};
use crate::host_functions::lookup::without_nulls;
use crate::lint;
use crate::names::{NameProblem, did_you_mean};
use crate::report::Unavailable;
use crate::scope::Scope;
use crate::skill::Skill;

/// A gate as `callgate serve` and the command see it.
#[derive(Clone, Copy)]
pub struct GateView<'a>(&'a Gate);

impl Gate {
    /// The view of `callgate serve` and of the command.
    #[doc(hidden)]
    pub fn view(&self) -> GateView<'_> {
        GateView(self)
    }
}

impl<'a> GateView<'a> {
    /// True if a tool has this generated name.
    pub fn has_tool(&self, function: &str) -> bool {
        self.0.live.catalog().get(function).is_some()
    }

    /// True if a pattern matches this function's tool.
    pub fn matches(&self, pattern: &Pattern, function: &str) -> bool {
        let catalog = self.0.live.catalog();
        let tool = catalog.get(function);
        tool.is_some_and(|tool| pattern.matches(tool.name(), true))
    }

    /// True if a tool has this generated name. Waits for lists of tools only if none has.
    pub async fn finds_tool(&self, function: &str) -> bool {
        self.0.live.having([function]).await.get(function).is_some()
    }

    /// The visibility of this function's tool.
    pub fn visibility(&self, function: &str) -> Visibility {
        let catalog = self.0.live.catalog();
        let tool = catalog.get(function);
        let settings = &self.0.live.lint.settings;
        tool.map_or(Visibility::Hidden, |tool| settings.visibility(tool.name()))
    }

    /// True if this function's tool is shown even where not all can be.
    pub fn always_on(&self, function: &str) -> bool {
        let catalog = self.0.live.catalog();
        let tool = catalog.get(function);
        tool.is_some_and(|tool| self.0.live.lint.settings.always_on(tool.name()))
    }

    /// True if there is what this way of searching needs, here or at a caller with a model.
    pub fn can_search(&self, by: SearchBy, caller_has_model: bool) -> bool {
        match by {
            SearchBy::Vectors | SearchBy::Hybrid => self.0.models.has_embeddings(),
            SearchBy::Model => caller_has_model || self.0.models.has_small(),
            SearchBy::Auto | SearchBy::Words | SearchBy::Regex => true,
        }
    }

    /// The way of searching that [`SearchBy::Auto`] stands for here; any other as it is.
    pub fn search_way(&self, by: SearchBy) -> SearchBy {
        self.0.searcher.way(by)
    }

    /// The message for a name that is not a tool, with the nearest tool.
    pub fn unknown_tool_message(&self, function: &str) -> String {
        let problem = self.0.live.explain(function, &Scope::default(), true);
        let problem = problem.unwrap_or(NameProblem::Unknown { near: None });
        problem.message(function)
    }

    /// The message for a pattern that matches no tool, with the right spelling.
    pub fn unmatched_message(&self, pattern: &str) -> String {
        match self.0.live.explain(pattern, &Scope::default(), false) {
            None | Some(NameProblem::Unknown { .. }) => {
                let near = self.0.live.catalog().suggest_pattern(pattern);
                format!(
                    "no tool matches {pattern:?}{}",
                    did_you_mean(near.as_deref())
                )
            }
            Some(problem) => problem.message(pattern),
        }
    }

    /// Why no tool has this name, if its server hides it from models. For people only: models do
    /// not learn of such tools.
    pub fn kept_from_models(&self, function: &str) -> Option<String> {
        let catalog = self.0.live.catalog();
        let mut kept = catalog.not_for_models().iter();
        kept.any(|kept| kept.function == function)
            .then(|| lint::not_for_models(function))
    }

    /// As [`Gate::declarations`], of these functions in this order, without unknown names. Tools
    /// that the rules deny are marked `DENIED`, with the rule.
    pub fn declarations_of(&self, detail: Detail, functions: &[&str]) -> String {
        let catalog = self.0.live.catalog();
        catalog.declarations_of(detail, functions, |tool| {
            self.0.live.mark(&self.0.setup.rules.calls, tool)
        })
    }

    /// Rust types of the chosen tools' arguments and results, for a host that calls the tools
    /// itself. A schema without a Rust type becomes a JSON value, and is named as a problem.
    pub fn rust_types(&self, choose: impl Fn(&str) -> bool) -> RustTypes {
        let catalog = self.0.live.catalog();
        let chosen = catalog.tools().iter();
        let tools: Vec<callgate_rust_types::Tool<'_>> = chosen
            .filter(|tool| choose(&tool.function))
            .map(|tool| callgate_rust_types::Tool {
                function: &tool.function,
                server: &tool.definition.server,
                tool: &tool.definition.name,
                input: &tool.definition.input_schema,
                output: tool.definition.output_schema.as_ref().map(Declared::value),
            })
            .collect();
        callgate_rust_types::generate(&tools)
    }

    /// A tool as its server lists it (MCP 2026-07-28, server/tools, "Tool"), under its
    /// generated name; `None` for a name that is not a tool.
    ///
    /// Hints of an untrusted server that make a tool look safer than the protocol's defaults
    /// are left out: a client could ask less because of them. Titles, which a client shows to a
    /// person, are one line each; of the description, characters that no audience sees are left out.
    pub fn tool_entry(&self, function: &str) -> Option<Map<String, Value>> {
        let catalog = self.0.live.catalog();
        let tool = catalog.get(function)?;
        let definition = &tool.definition;
        let is_trusted = self.0.live.connections.is_trusted(&definition.server);
        let hints = &definition.hints;
        let safer = |hint: Option<bool>, safe: bool| hint.filter(|it| is_trusted || *it != safe);
        let title = |title: &Option<String>| Some(label(title.as_deref()?, usize::MAX));
        let is_seen = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c));
        let described = |text: &String| text.chars().filter(is_seen).collect::<String>();
        let annotations = without_nulls(json!({
            "title": title(&definition.older_title),
            "readOnlyHint": safer(hints.read_only, true),
            "destructiveHint": safer(hints.destructive, false),
            "idempotentHint": safer(hints.idempotent, true),
            "openWorldHint": safer(hints.open_world, false),
        }));
        Some(without_nulls(json!({
            "name": tool.function,
            "title": title(&definition.title),
            "description": definition.description.as_ref().map(described),
            "inputSchema": definition.input_schema,
            "outputSchema": definition.output_schema.as_ref().map(Declared::value),
            "annotations": (!annotations.is_empty()).then_some(annotations),
            "_meta": definition.meta,
        })))
    }

    /// Tells servers that the folders of [`GateBuilder::caller`](crate::GateBuilder::caller)
    /// have changed. Servers up to 2025-11-25 may ask for them again. Servers of 2026-07-28 ask
    /// within each call and are not told.
    pub fn roots_changed(&self) {
        self.0.live.connections.roots_changed();
    }

    /// Waits until the tools of all servers that start are known, and no longer than this.
    pub async fn listed(&self, within: Duration) {
        let is_awaited = |server: &callgate_servers::ServerState| {
            server.phase == Phase::Starting && matches!(server.status, Status::Unknown)
        };
        let listing = self.0.live.connections.wait_while(is_awaited, |_| {});
        let _ = timeout(within, listing).await;
        self.0.live.update().await;
    }

    /// Connects to the server that has this function, or may have it if its tools are not known.
    pub async fn look_for(&self, function: &str) {
        self.0.live.tool(function).await;
    }

    /// Checks a call's arguments against the schema of its tool. An unusable schema, and a name that
    /// is not a tool, refuse nothing.
    ///
    /// # Errors
    ///
    /// [`WrongArguments`], for the caller.
    pub async fn check_arguments(
        &self,
        function: &str,
        arguments: Map<String, Value>,
    ) -> Result<(), WrongArguments> {
        let catalog = self.0.live.catalog();
        let Some(tool) = catalog.get(function) else {
            return Ok(());
        };
        let (function, definition) = (function.to_owned(), Arc::clone(&tool.definition));
        let check = move || check_call(&function, definition.input_schema.clone(), arguments);
        // A schema may be large.
        let checked = tokio::task::spawn_blocking(check).await;
        checked.unwrap_or(Ok(()))
    }

    /// [`Gate::unavailable`], in the words of this audience.
    pub fn unavailable_for(&self, audience: Audience) -> Vec<Unavailable> {
        let servers = self.0.live.connections.list();
        let reasons = servers.filter_map(|server| unavailable(&server, audience));
        reasons.collect()
    }

    /// The unavailable server that this function name belongs to. For the operator, also one that the
    /// configuration leaves out for an unset variable or a mistake.
    pub fn unavailable_server_of(&self, function: &str) -> Option<Unavailable> {
        let catalog = self.0.live.catalog();
        let tool = catalog.get(function);
        let owns = |server: &str| match tool {
            Some(tool) => tool.definition.server == server,
            None => self.0.live.lint.names.owns(server, function),
        };
        let mut servers = self
            .0
            .live
            .connections
            .list()
            .filter(|server| owns(&server.name));
        let found = servers.find_map(|server| unavailable(&server, self.0.setup.people.audience));
        // Only the operator can mend the configuration.
        let is_operator = self.0.setup.people.audience == Audience::Operator;
        found.or_else(|| {
            let names = &self.0.live.lint.names;
            let server = names.disabled_owner(function);
            let server = server.filter(|_| is_operator && tool.is_none())?;
            Some(Unavailable {
                server: server.to_owned(),
                reason: names.reason(server)?,
            })
        })
    }

    /// The disabled server that this function name belongs to.
    pub fn disabled_server_of(&self, function: &str) -> Option<String> {
        match self.0.live.explain(function, &Scope::default(), false)? {
            NameProblem::Disabled {
                server,
                is_left_out: false,
            } => Some(server),
            _ => None,
        }
    }

    /// The place where an answer "always" is kept; `None` if it lasts for the session only.
    pub fn keeps_in(&self) -> Option<String> {
        self.0.setup.records.keep.as_ref().map(|keep| keep.place())
    }

    /// Keeps grants for good, and adds them to this session.
    ///
    /// # Errors
    ///
    /// Why they could not be kept, as a sentence; they do not count then.
    pub async fn keep(&self, grants: &[Grant]) -> Result<(), GrantStoreError> {
        let Some(keep) = &self.0.setup.records.keep else {
            let reason = "there is no place to keep grants in; name a configuration";
            return Err(GrantStoreError::new(reason));
        };
        keep.keep(grants).await?;
        let definitions = &self.0.setup.records.definitions;
        for grant in grants {
            if let (Some(definitions), Some(definition)) = (definitions, &grant.definition) {
                definitions.keep(definition);
            }
            self.0.setup.rules.session.add(grant.clone());
        }
        Ok(())
    }

    /// True if the rules deny every call of this tool.
    pub fn denies(&self, function: &str) -> bool {
        self.denial(function).is_some()
    }

    /// The rule that denies every call of this tool, such as `permissions.deny: "git_reset"`.
    pub fn denial(&self, function: &str) -> Option<String> {
        let catalog = self.0.live.catalog();
        self.0
            .live
            .denial(&self.0.setup.rules.calls, catalog.get(function)?)
    }

    /// The rules' decision on a call of this tool, in one word: `allow`, `ask`, `deny`, or `allow*`
    /// if they allow it with some arguments.
    pub fn rule_in_short(&self, function: &str) -> Option<&'static str> {
        let decision = self.0.decision(function)?;
        Some(match (decision.verdict, decision.because) {
            (_, Because::Depends(_)) => "allow*",
            (Verdict::Allow, _) => "allow",
            (Verdict::Ask, _) => "ask",
            (Verdict::Deny, _) => "deny",
        })
    }

    /// True if the tool says that it only reads, and its server is marked trusted.
    pub fn is_read_only(&self, function: &str) -> bool {
        let catalog = self.0.live.catalog();
        catalog.get(function).is_some_and(|tool| {
            let definition = &tool.definition;
            let is_hinted = definition.hints.read_only == Some(true);
            is_hinted && self.0.live.connections.is_trusted(&definition.server)
        })
    }

    /// The purpose of a tool in one line, with a mark if it is deprecated; empty if its server gives
    /// none.
    pub fn purpose(&self, function: &str) -> String {
        let catalog = self.0.live.catalog();
        let line = catalog.declarations_of(Detail::Summary, &[function], |_| None);
        let line = line.trim_end();
        let purpose = line.strip_prefix(function).unwrap_or(line);
        purpose.trim_start_matches([':', ' ']).to_owned()
    }

    /// The servers that the configuration turns off or leaves out, with the reason for a mistake.
    pub fn servers_off(&self) -> Vec<(String, Option<String>)> {
        let names = &self.0.live.lint.names;
        let off = names.disabled.iter();
        off.map(|(server, _)| (server.clone(), names.reason(server)))
            .collect()
    }

    /// The arguments with which calls of this tool are allowed, such as `path /data/out/**`, if a
    /// person is asked before all its other calls.
    pub fn allowed_arguments(&self, function: &str) -> Option<String> {
        let Because::Depends(rule) = self.0.decision(function)?.because else {
            return None;
        };
        if !matches!(rule.effect, Effect::Allow | Effect::Grant) {
            return None;
        }
        let (rules, catalog) = (&self.0.setup.rules.calls, self.0.live.catalog());
        let tool = catalog.get(function)?;
        let is_trusted = self.0.live.connections.is_trusted(&tool.definition.server);
        let facts = tool.facts(is_trusted, Timestamp::now());
        Some(rules.allowed_arguments(&facts).join(" or "))
    }

    /// True if scripts can use `mcp.extract`: there is a model for it, here or at the caller,
    /// and the rules do not deny it.
    pub fn extracts(&self, caller_has_model: bool) -> bool {
        self.0
            .extraction(caller_has_model)
            .is_some_and(|decision| decision.verdict != Verdict::Deny)
    }

    /// Those of the warnings that are about a rule or setting that should forbid calls. Without
    /// [`GateBuilder::allow_unmatched`](crate::GateBuilder::allow_unmatched), they keep a gate from
    /// being built.
    pub fn unmatched_forbidding_rules(&self) -> Vec<String> {
        let servers = self.0.live.servers();
        self.0
            .live
            .lint
            .forbidding(&self.0.live.catalog(), &servers)
    }

    /// The native TypeScript that checks scripts, with its version.
    ///
    /// # Errors
    ///
    /// [`GateErrorKind::TypeCheck`] without TypeScript; its message says why, and what to do.
    pub fn typescript(&self) -> Result<String, GateError> {
        let program = self.0.checker.program();
        program.map_err(|why| GateError::new(GateErrorKind::TypeCheck, why))
    }

    /// The cache's folder; `None` if it is switched off.
    ///
    /// # Errors
    ///
    /// [`GateErrorKind::Cache`]: why there is no cache, though there should be one.
    pub fn cache_folder(&self) -> Result<Option<PathBuf>, GateError> {
        match &self.0.uncached {
            Some(reason) => Err(GateError::new(GateErrorKind::Cache, reason.clone())),
            None => Ok(self.0.live.cache.as_ref().map(|cache| cache.folder())),
        }
    }

    /// The skills that the gate was made for, in the order they were named.
    pub fn skills(&self) -> &'a [Skill] {
        &self.0.skills
    }

    /// The chosen tools in a provider's form, without tools that the rules deny. Tools that
    /// `defer` accepts are left for the provider's own search to load, if it has one. The end
    /// of the part worth caching is marked, if the provider has such a mark.
    pub fn export(
        &self,
        format: ExportFormat,
        choose: impl Fn(&str) -> bool,
        defer: impl Fn(&str) -> bool,
    ) -> Exported {
        let chosen = |function: &str| choose(function) && !self.denies(function);
        exported(&self.0.live.catalog(), format, chosen, defer)
    }
}
