//! An example call of a real tool for a description.

use callgate::Gate;
use callgate_typegen::deprecation;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// The limit of functions that are considered.
const MAX_CANDIDATES: usize = 100;
/// The limit of the arguments, in bytes.
const MAX_BYTES: usize = 120;

/// A call with the arguments that its tool requires.
#[derive(Debug, PartialEq)]
pub(crate) struct Sample {
    function: String,
    arguments: JsonObject,
}

impl Sample {
    /// A call of one of these functions, preferably one with a single argument.
    pub(crate) fn of(gate: &Gate, functions: &[&str]) -> Option<Self> {
        let candidates = functions
            .iter()
            .take(MAX_CANDIDATES)
            .filter_map(|function| {
                let tool = gate.view().tool_entry(function)?;
                let description = tool.get("description").and_then(Value::as_str);
                let is_deprecated = description.and_then(deprecation).is_some();
                let arguments = required(tool.get("inputSchema")?)?;
                if json!(arguments).to_string().len() > MAX_BYTES {
                    return None;
                }
                // The lowest rank is the best.
                let rank = (is_deprecated, arguments.len().abs_diff(1));
                let function = (*function).to_owned();
                Some((
                    rank,
                    Self {
                        function,
                        arguments,
                    },
                ))
            });
        Some(candidates.min_by_key(|(rank, _)| *rank)?.1)
    }

    /// The call in a script.
    pub(crate) fn in_script(&self) -> String {
        format!("await {}({})", self.function, json!(self.arguments))
    }

    /// The arguments of `call_tool` for the call.
    pub(crate) fn for_call_tool(&self) -> String {
        json!({ "name": self.function, "args": self.arguments }).to_string()
    }
}

/// Values for the required members of a schema; `None` if one of them is not plain.
fn required(schema: &Value) -> Option<JsonObject> {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let member = |name: &str| {
        let schema = schema.get("properties")?.get(name)?;
        Some((name.to_owned(), value(schema)?))
    };
    names.map(member).collect()
}

fn value(schema: &Value) -> Option<Value> {
    let first = |key: &str| schema.get(key)?.as_array()?.first();
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return Some(value.clone());
    }
    let name = first("type").or_else(|| schema.get("type"))?.as_str()?;
    Some(match name {
        "string" => "…".into(),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        "boolean" => true.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_contains_only_required_arguments() {
        for (properties, needed, expected) in [
            (
                json!({ "path": { "type": "string" }, "head": { "type": "number" } }),
                json!(["path"]),
                "{\"path\":\"…\"}",
            ),
            (json!({ "path": { "type": "string" } }), json!([]), "{}"),
            (
                json!({ "per-page": { "type": "integer", "minimum": 5 },
                    "n": { "type": "number" } }),
                json!(["per-page", "n"]),
                "{\"per-page\":5,\"n\":1}",
            ),
            (
                json!({ "kind": { "enum": ["a", "b"] }, "is": { "type": ["boolean", "null"] } }),
                json!(["kind", "is"]),
                "{\"kind\":\"a\",\"is\":true}",
            ),
        ] {
            let schema = json!({ "properties": properties, "required": needed });
            let sample = Sample {
                function: "f".to_owned(),
                arguments: required(&schema).expect("a plain schema"),
            };
            assert_eq!(sample.in_script(), format!("await f({expected})"));
        }
        for other in [json!({ "$ref": "#/x" }), json!({ "type": "array" })] {
            let schema = json!({ "properties": { "a": other }, "required": ["a"] });
            assert_eq!(required(&schema), None);
        }
    }
}
