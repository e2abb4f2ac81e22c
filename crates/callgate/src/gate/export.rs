//! The tools as the array that a provider's interface takes, for hosts that give
//! tools to a model themselves and make its calls by [`Gate::call`].

mod name;
mod schema;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;

use callgate_catalog::{Catalog, CatalogTool};
use serde_json::{Map, Value, json};

use super::Gate;

/// Whose interface the array is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExportFormat {
    /// `tools` of Anthropic's Messages API.
    Anthropic,
    /// `tools` of OpenAI's Responses API.
    OpenAi,
    /// `tools` of the Gemini API.
    Gemini,
}

/// Tools in a provider's form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Exported {
    /// The array, for the request's `tools`.
    pub tools: Value,
    /// The functions whose names the provider does not take, by the names they
    /// have in the array.
    pub renamed: BTreeMap<String, String>,
    /// What the array does not say though the catalog does; sentences.
    pub notes: Vec<String>,
}

impl ExportFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// Whether the provider can load tools when its model looks for them.
    #[must_use]
    pub fn defers(self) -> bool {
        self != Self::Gemini
    }

    fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no format's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no format is named {0:?}; there are anthropic, openai and gemini")]
pub struct UnknownFormat(String);

impl FromStr for ExportFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|format| format.name() == name);
        named.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

impl Gate {
    /// The chosen tools in a provider's form. Those that `defer` says are left
    /// for the provider's own search to load, where it has one; the point up to
    /// which a prompt is worth caching is marked where it has such a mark.
    ///
    /// Tools that the rules deny whatever the arguments are not in it.
    pub fn export(
        &self,
        format: ExportFormat,
        choose: impl Fn(&str) -> bool,
        defer: impl Fn(&str) -> bool,
    ) -> Exported {
        let chosen = |function: &str| choose(function) && !self.denies(function);
        exported(&self.live.catalog(), format, chosen, defer)
    }
}

fn exported(
    catalog: &Catalog,
    format: ExportFormat,
    choose: impl Fn(&str) -> bool,
    defer: impl Fn(&str) -> bool,
) -> Exported {
    let mut export = Export::new(format);
    let mut loaded = Vec::new();
    let mut deferred = Vec::new();
    for (server, tools) in catalog.by_server() {
        let mut later = Vec::new();
        for tool in tools.into_iter().filter(|tool| choose(&tool.function)) {
            if format.defers() && defer(&tool.function) {
                later.push(export.entry(tool, true));
            } else {
                loaded.push(export.entry(tool, false));
            }
        }
        if !later.is_empty() {
            deferred.push((server, later));
        }
    }
    Exported {
        tools: array(format, loaded, deferred),
        renamed: export.renamed,
        notes: export.notes,
    }
}

/// An array in the making.
struct Export {
    format: ExportFormat,
    taken: HashSet<String>,
    renamed: BTreeMap<String, String>,
    notes: Vec<String>,
}

impl Export {
    fn new(format: ExportFormat) -> Self {
        Self {
            format,
            taken: HashSet::new(),
            renamed: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// One tool.
    fn entry(&mut self, tool: &CatalogTool, defer: bool) -> Value {
        let name = self.name(&tool.function);
        let definition = &tool.definition;
        let (schema, left_out) = schema::fit(self.format, &definition.input_schema);
        for keyword in left_out {
            self.notes.push(format!(
                "{name}: the provider takes no {keyword} at the root of a schema, so it is left \
                 out; the server still minds it"
            ));
        }
        let mut entry = Map::new();
        if self.format == ExportFormat::OpenAi {
            entry.insert("type".to_owned(), json!("function"));
        }
        entry.insert("name".to_owned(), json!(name));
        let title = definition
            .title
            .as_ref()
            .or(definition.annotations.title.as_ref());
        if let Some(description) = definition.description.as_ref().or(title) {
            entry.insert("description".to_owned(), json!(description));
        }
        match self.format {
            ExportFormat::Anthropic => {
                entry.insert("input_schema".to_owned(), schema);
            }
            ExportFormat::OpenAi => {
                entry.insert("parameters".to_owned(), schema);
                // The provider's strict mode takes few schemas; servers check
                // their arguments themselves.
                entry.insert("strict".to_owned(), json!(false));
            }
            ExportFormat::Gemini => {
                entry.insert("parametersJsonSchema".to_owned(), schema);
            }
        }
        if defer {
            entry.insert("defer_loading".to_owned(), json!(true));
        }
        Value::Object(entry)
    }

    /// The name that a tool has in the array.
    fn name(&mut self, function: &str) -> String {
        let name = name::fit(self.format, function, &self.taken);
        self.taken.insert(name.clone());
        if name != function {
            self.renamed.insert(name.clone(), function.to_owned());
        }
        name
    }
}

/// Puts what is loaded at once and what is not together.
fn array(format: ExportFormat, mut loaded: Vec<Value>, deferred: Vec<(&str, Vec<Value>)>) -> Value {
    match format {
        ExportFormat::Anthropic => {
            if !deferred.is_empty() {
                loaded.insert(
                    0,
                    json!({
                        "type": "tool_search_tool_bm25_20251119",
                        "name": "tool_search_tool_bm25",
                    }),
                );
            }
            // One mark caches all before it; a tool that is loaded later cannot
            // carry one.
            if let Some(Value::Object(last)) = loaded.last_mut() {
                last.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
            }
            loaded.extend(deferred.into_iter().flat_map(|(_, tools)| tools));
            Value::Array(loaded)
        }
        ExportFormat::OpenAi => {
            if !deferred.is_empty() {
                loaded.insert(0, json!({ "type": "tool_search" }));
            }
            let mut taken = HashSet::new();
            for (server, tools) in deferred {
                let name = name::fit(format, server, &taken);
                taken.insert(name.clone());
                loaded.push(json!({
                    "type": "namespace",
                    "name": name,
                    "description": format!("tools of the server {server} ({})", tools.len()),
                    "tools": tools,
                }));
            }
            Value::Array(loaded)
        }
        ExportFormat::Gemini if loaded.is_empty() => json!([]),
        ExportFormat::Gemini => json!([{ "functionDeclarations": loaded }]),
    }
}

#[cfg(test)]
mod tests;
