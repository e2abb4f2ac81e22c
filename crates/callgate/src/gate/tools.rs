//! Questions about tools.

use callgate_catalog::Detail;
use callgate_rust_types::RustTypes;
use callgate_schema::Declared;
use callgate_typegen::is_invisible;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Gate;
use crate::config::Visibility;
use crate::error::GateError;
use crate::lint;
use crate::names;
use crate::quoted::label;
use crate::scope::Scope;
use crate::search::request::{SearchRequest, SearchResults};
use crate::settings::SearchBy;

/// A tool in a list.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name of its function in a script.
    pub function: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The first sentence or line of its description.
    pub summary: Option<String>,
}

impl Gate {
    /// The tools, grouped by server in the order of the configuration.
    pub fn tools(&self) -> Vec<ToolInfo> {
        let catalog = self.live.catalog();
        let by_server = catalog.by_server();
        let tools = by_server.iter().flat_map(|(_, tools)| tools);
        tools
            .map(|tool| ToolInfo {
                function: tool.function.clone(),
                server: tool.definition.server.clone(),
                tool: tool.definition.name.clone(),
                summary: catalog.summary(&tool.function).map(str::to_owned),
            })
            .collect()
    }

    /// True if a tool has this generated name.
    pub fn has_tool(&self, function: &str) -> bool {
        self.live.catalog().get(function).is_some()
    }

    /// True if a tool has this generated name. Waits for lists of tools only if none has.
    pub async fn finds_tool(&self, function: &str) -> bool {
        self.live.having([function]).await.get(function).is_some()
    }

    /// Asks servers for lists of tools that are out of date, and waits up to two seconds.
    pub async fn refresh(&self) {
        let _ = self.live.fresh().await;
    }

    /// The visibility of this function's tool.
    pub fn visibility(&self, function: &str) -> Visibility {
        let catalog = self.live.catalog();
        let names = catalog.get(function).map(|tool| &tool.other_names);
        self.live.lint.settings.visibility(function, names)
    }

    /// True if this function's tool is shown even where not all can be.
    pub fn always_on(&self, function: &str) -> bool {
        let catalog = self.live.catalog();
        let names = catalog.get(function).map(|tool| &tool.other_names);
        self.live.lint.settings.always_on(function, names)
    }

    /// Searches the current tools.
    ///
    /// # Errors
    ///
    /// [`GateError`] for an unknown server or an invalid expression.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchResults, GateError> {
        self.searcher.search(request, &self.setup.rules, None).await
    }

    /// True if there is what this way of searching needs, here or at a caller with a model.
    pub fn can_search(&self, by: SearchBy, caller_has_model: bool) -> bool {
        match by {
            SearchBy::Vectors | SearchBy::Hybrid => self.models.has_embeddings(),
            SearchBy::Model => caller_has_model || self.models.has_small(),
            SearchBy::Auto | SearchBy::Words | SearchBy::Regex => true,
        }
    }

    /// The way of searching that [`SearchBy::Auto`] stands for here; any other as it is.
    pub fn search_way(&self, by: SearchBy) -> SearchBy {
        self.searcher.way(by)
    }

    /// The message for a name that is not a tool, with the nearest tool.
    pub fn unknown_tool_message(&self, function: &str) -> String {
        self.no_tool_message(function, names::unknown_tool_message)
    }

    /// The message for a pattern that matches no tool, with the nearest tool.
    pub fn unmatched_message(&self, pattern: &str) -> String {
        self.no_tool_message(pattern, names::unmatched_message)
    }

    fn no_tool_message(&self, name: &str, message: fn(&str, Option<&str>) -> String) -> String {
        let catalog = self.live.catalog();
        let near = catalog.suggest(name);
        let why = self.live.why_missing(name, near, &Scope::default());
        why.unwrap_or_else(|| message(name, near))
    }

    /// Why no tool has this name, if its server hides it from models. For people: models do
    /// not learn of such tools.
    pub fn kept_from_models(&self, function: &str) -> Option<String> {
        let catalog = self.live.catalog();
        let mut kept = catalog.not_for_models();
        kept.any(|kept| kept == function)
            .then(|| lint::not_for_models(function))
    }

    /// The chosen tools at this level of detail: names, or TypeScript declarations with the
    /// types they use. [`ambient_declarations`](crate::export::ambient_declarations) has the rest of
    /// a script's globals.
    pub fn declarations(&self, detail: Detail, choose: impl Fn(&str) -> bool) -> String {
        let catalog = self.live.catalog();
        let functions = catalog.tools().iter().map(|tool| tool.function.as_str());
        let chosen: Vec<&str> = functions.filter(|function| choose(function)).collect();
        self.declarations_of(detail, &chosen)
    }

    /// As [`Gate::declarations`], of these functions in this order, without unknown names. Tools
    /// that the rules deny are marked `DENIED`, with the rule.
    pub fn declarations_of(&self, detail: Detail, functions: &[&str]) -> String {
        let catalog = self.live.catalog();
        catalog.declarations_of(detail, functions, |tool| {
            self.live.mark(&self.setup.rules, tool)
        })
    }

    /// Rust types of the chosen tools' arguments and results, for a host that calls the tools
    /// itself. A schema without a Rust type becomes a JSON value, and is named as a problem.
    pub fn rust_types(&self, choose: impl Fn(&str) -> bool) -> RustTypes {
        let catalog = self.live.catalog();
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
        let catalog = self.live.catalog();
        let tool = catalog.get(function)?;
        let definition = &tool.definition;
        let is_trusted = self.live.connections.is_trusted(&definition.server);
        let hints = &definition.hints;
        let safer = |hint: Option<bool>, safe: bool| hint.filter(|it| is_trusted || *it != safe);
        let title = |title: &Option<String>| Some(label(title.as_deref()?, usize::MAX));
        let is_seen = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c));
        let described = |text: &String| text.chars().filter(is_seen).collect::<String>();
        let mut annotations = json!({
            "title": title(&definition.older_title),
            "readOnlyHint": safer(hints.read_only, true),
            "destructiveHint": safer(hints.destructive, false),
            "idempotentHint": safer(hints.idempotent, true),
            "openWorldHint": safer(hints.open_world, false),
        });
        let annotations = annotations.as_object_mut()?;
        annotations.retain(|_, hint| !hint.is_null());
        let entry = json!({
            "name": tool.function,
            "title": title(&definition.title),
            "description": definition.description.as_ref().map(described),
            "inputSchema": definition.input_schema,
            "outputSchema": definition.output_schema.as_ref().map(Declared::value),
            "annotations": (!annotations.is_empty()).then_some(annotations),
            "_meta": definition.meta,
        });
        let Value::Object(mut entry) = entry else {
            return None;
        };
        entry.retain(|_, member| !member.is_null());
        Some(entry)
    }
}
