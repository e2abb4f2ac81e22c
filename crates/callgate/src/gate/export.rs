//! Tools in the form of a provider's interface, for hosts that give tools to a model
//! themselves and make its calls with [`Gate::call`].

mod name;
mod schema;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use callgate_catalog::{Catalog, Tool};
use serde_json::{Value, json};

use schema::Fitted;

/// The most characters of a description for OpenAI.
const MAX_DESCRIPTION: usize = 1024;

/// The provider's interface.
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
    /// Functions with another name in the array, by that name: the provider does not take
    /// their own.
    pub renamed: BTreeMap<String, String>,
    /// Tools, and parts of tools, that the array leaves out; sentences.
    pub notes: Vec<String>,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// True if the provider can load tools when its model searches for them.
    pub fn defers(self) -> bool {
        self != Self::Gemini
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        })
    }
}

impl FromStr for ExportFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        let named = all.find(|format| format.to_string() == name);
        named.ok_or_else(|| {
            format!("no format is named {name:?}; there are anthropic, openai and gemini")
        })
    }
}

pub(super) fn exported(
    catalog: &Catalog,
    format: ExportFormat,
    choose: impl Fn(&str) -> bool,
    defer: impl Fn(&str) -> bool,
) -> Exported {
    let mut exported = Exported {
        tools: Value::Null,
        renamed: BTreeMap::new(),
        notes: Vec::new(),
    };
    let (mut loaded, mut deferred) = (Vec::new(), Vec::new());
    // A catalog has the tools of a server in a row.
    let are_of_one = |a: &Tool, b: &Tool| a.definition.server == b.definition.server;
    for tools in catalog.tools().chunk_by(are_of_one) {
        let mut later = Vec::new();
        for tool in tools.iter().filter(|tool| choose(&tool.function)) {
            let function = &tool.function;
            // The provider would refuse the whole request.
            let schema = match schema::fit(format, &tool.definition.input_schema) {
                Ok(schema) => schema,
                Err(why) => {
                    exported.notes.push(format!(
                        "{function} is left out, for the provider would refuse it: {why}"
                    ));
                    continue;
                }
            };
            let name = name::fit(format, function);
            let mut entry = entry(format, tool, &name, schema, &mut exported.notes);
            if name != tool.function {
                exported.renamed.insert(name, tool.function.clone());
            }
            if format.defers() && defer(&tool.function) {
                entry["defer_loading"] = true.into();
                later.push(entry);
            } else {
                loaded.push(entry);
            }
        }
        if let Some(first) = tools.first()
            && !later.is_empty()
        {
            deferred.push((first.definition.server.as_str(), later));
        }
    }
    exported.tools = array(format, loaded, deferred);
    exported
}

fn entry(
    format: ExportFormat,
    tool: &Tool,
    name: &str,
    Fitted { schema, lost }: Fitted,
    notes: &mut Vec<String>,
) -> Value {
    let definition = &tool.definition;
    for keyword in lost {
        notes.push(format!(
            "{name}: the provider takes no {keyword} at the root of a schema, so it is left \
             out; the server still minds it"
        ));
    }
    let mut entry = match format {
        ExportFormat::OpenAi => json!({ "type": "function", "name": name }),
        ExportFormat::Anthropic | ExportFormat::Gemini => json!({ "name": name }),
    };
    let described = definition.description.as_deref();
    if let Some(description) = described.or(definition.shown_title()) {
        let cut = description.char_indices().nth(MAX_DESCRIPTION);
        let cut = cut.filter(|_| format == ExportFormat::OpenAi);
        if cut.is_some() {
            notes.push(format!(
                "{name}: its description is cut to the {MAX_DESCRIPTION} characters that the \
                 provider takes"
            ));
        }
        let end = cut.map_or(description.len(), |(end, _)| end);
        entry["description"] = description[..end].into();
    }
    match format {
        ExportFormat::Anthropic => entry["input_schema"] = schema,
        ExportFormat::OpenAi => {
            entry["parameters"] = schema;
            // The strict mode takes few schemas; servers check their arguments themselves.
            entry["strict"] = false.into();
        }
        ExportFormat::Gemini => entry["parametersJsonSchema"] = schema,
    }
    entry
}

/// The array of loaded tools and, by server, deferred ones.
fn array(format: ExportFormat, mut loaded: Vec<Value>, deferred: Vec<(&str, Vec<Value>)>) -> Value {
    match format {
        ExportFormat::Anthropic => {
            if !deferred.is_empty() {
                let search = "tool_search_tool_bm25";
                let search = json!({ "type": format!("{search}_20251119"), "name": search });
                loaded.insert(0, search);
            }
            // The mark caches all before it; a deferred tool cannot carry it.
            if let Some(last) = loaded.last_mut() {
                last["cache_control"] = json!({ "type": "ephemeral" });
            }
            loaded.extend(deferred.into_iter().flat_map(|(_, tools)| tools));
            Value::Array(loaded)
        }
        ExportFormat::OpenAi => {
            if !deferred.is_empty() {
                loaded.insert(0, json!({ "type": "tool_search" }));
            }
            loaded.extend(deferred.into_iter().map(|(server, tools)| {
                json!({
                    "type": "namespace",
                    "name": name::fit(format, server),
                    "description": format!("tools of the server {server} ({})", tools.len()),
                    "tools": tools,
                })
            }));
            Value::Array(loaded)
        }
        ExportFormat::Gemini if loaded.is_empty() => json!([]),
        ExportFormat::Gemini => json!([{ "functionDeclarations": loaded }]),
    }
}

#[cfg(test)]
mod tests;
