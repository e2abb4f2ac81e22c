//! The schema that a script gives: what is taken, and how long it may work.
//!
//! A script is hostile, and a schema is a small program. So nothing is fetched
//! for it, it refers to nothing but its own parts and never to itself, its
//! patterns cannot run long, and what it is with all references in place is
//! bounded.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// The most bytes of a schema.
const MAX_BYTES: usize = 64 << 10;
/// How deeply it may be nested, references in place.
const MAX_DEPTH: usize = 64;
/// How many values it may have, references in place.
const MAX_NODES: u64 = 20_000;
/// How many errors there may be at the very most where more than the first is
/// told.
const MAX_ERRORS: u64 = 1_000_000;
/// The most characters of one problem.
const MAX_PROBLEM: usize = 200;
/// The most bytes that a pattern may be compiled to.
const MAX_PATTERN: usize = 256 << 10;

/// A schema, and what it is as a validator. Clones are the same.
#[derive(Clone)]
pub(super) struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    text: String,
    validator: Validator,
    nodes: u64,
}

impl Schema {
    /// Reads a JSON Schema, or a TypeScript type in a JSON string.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            let bytes = text.len();
            return Err(format!(
                "the schema has {bytes} bytes, over the limit of {MAX_BYTES}"
            ));
        }
        let value: Value =
            serde_json::from_str(text).map_err(|_| "the schema is nested too deep".to_owned())?;
        let value = match value {
            Value::String(ty) => {
                callgate_script::json_schema(&ty).map_err(|error| error.to_string())?
            }
            Value::Object(_) => value,
            _ => {
                return Err(
                    "the schema must be a JSON Schema object, or a TypeScript type as text"
                        .to_owned(),
                );
            }
        };
        let draft = value.get("$schema").and_then(Value::as_str);
        if draft.is_some_and(|draft| draft.contains("draft-04")) {
            // There, any `id` moves what references are to.
            return Err("the schema is of draft 4; write one of 2020-12".to_owned());
        }
        let nodes = Size {
            root: &value,
            known: HashMap::new(),
            open: Vec::new(),
        }
        .of(&value, 0)?;
        if nodes > MAX_NODES {
            return Err(format!(
                "the schema has more than {MAX_NODES} parts with all references in place"
            ));
        }
        let patterns = PatternOptions::regex()
            .size_limit(MAX_PATTERN)
            .dfa_size_limit(MAX_PATTERN);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(&value)
            .map_err(|error| {
                let place = error.instance_path().to_string();
                let shown: String = error.masked().to_string().chars().take(200).collect();
                format!("the schema is no JSON Schema, at {place:?}: {shown}")
            })?;
        let text = value.to_string();
        Ok(Self(Arc::new(Inner {
            value,
            text,
            validator,
            nodes,
        })))
    }

    pub(super) fn value(&self) -> &Value {
        &self.0.value
    }

    pub(super) fn text(&self) -> &str {
        &self.0.text
    }

    /// What is wrong with a value that came as `bytes` bytes of JSON: nothing if
    /// it fits, and at most so many problems.
    pub(super) fn problems(&self, value: &Value, bytes: usize, most: usize) -> Vec<String> {
        let shown = |error: &ValidationError<'_>| {
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { "the value" } else { &path };
            let problem = format!("{place}: {error}");
            problem.chars().take(MAX_PROBLEM).collect()
        };
        let validator = &self.0.validator;
        let Err(first) = validator.validate(value) else {
            return Vec::new();
        };
        // All errors are made before the first is seen, and each part of the
        // schema may have one of each part of the value.
        if self.0.nodes.saturating_mul(bytes as u64) > MAX_ERRORS {
            return vec![shown(&first)];
        }
        let errors = validator.iter_errors(value).take(most);
        errors.map(|error| shown(&error)).collect()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// Counts the values of a schema as if each reference was what it refers to.
/// Every object in it is taken for a schema, though it may be an example: what
/// is refused too much here is nothing that a schema for extraction needs.
struct Size<'a> {
    root: &'a Value,
    /// Of what is referred to.
    known: HashMap<&'a str, u64>,
    /// The references that are being followed.
    open: Vec<&'a str>,
}

impl<'a> Size<'a> {
    fn of(&mut self, value: &'a Value, depth: usize) -> Result<u64, String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "the schema is nested deeper than {MAX_DEPTH} levels"
            ));
        }
        let mut nodes = 1_u64;
        match value {
            Value::Array(items) => {
                for item in items {
                    nodes = nodes.saturating_add(self.of(item, depth + 1)?);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let more = match (key.as_str(), member) {
                        ("$ref", Value::String(to)) => self.of_reference(to, depth + 1)?,
                        ("$dynamicRef" | "$recursiveRef" | "$id", Value::String(_)) => {
                            return Err(format!("the schema has {key:?}; leave it out"));
                        }
                        _ => self.of(member, depth + 1)?,
                    };
                    nodes = nodes.saturating_add(more);
                }
            }
            _ => {}
        }
        Ok(nodes)
    }

    fn of_reference(&mut self, to: &'a str, depth: usize) -> Result<u64, String> {
        let shown: String = to.chars().take(80).collect();
        if self.open.contains(&to) || to == "#" {
            return Err(format!(
                "the schema refers to itself with {shown:?}; write its levels out"
            ));
        }
        if let Some(nodes) = self.known.get(to) {
            return Ok(*nodes);
        }
        let part = to.strip_prefix('#').and_then(|to| self.root.pointer(to));
        let Some(part) = part else {
            return Err(format!(
                "the schema refers to {shown:?}, which is no part of it; write \"#/$defs/NAME\""
            ));
        };
        self.open.push(to);
        let nodes = self.of(part, depth)?;
        self.open.pop();
        self.known.insert(to, nodes);
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, expected: Expect) {
        let shown = match Schema::read(&schema.to_string()) {
            Ok(schema) => schema.text().to_owned(),
            Err(message) => message,
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn schemas_and_types() {
        check(
            &json!({ "type": "array", "items": { "$ref": "#/$defs/a" }, "$defs": { "a": {} } }),
            expect![[r##"{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{}}}"##]],
        );
        check(
            &json!("{ id: number }"),
            expect![[
                r#"{"type":"object","properties":{"id":{"type":"number"}},"required":["id"],"additionalProperties":false}"#
            ]],
        );
        check(
            &json!({ "properties": { "$ref": { "type": "string" } } }),
            expect![[r#"{"properties":{"$ref":{"type":"string"}}}"#]],
        );
    }

    #[test]
    fn what_is_no_schema() {
        check(
            &json!(5),
            expect!["the schema must be a JSON Schema object, or a TypeScript type as text"],
        );
        check(
            &json!("Date"),
            expect![[
                r#"the type "Date" cannot be a JSON Schema: JSON has no dates; write string"#
            ]],
        );
        check(
            &json!({ "type": "text" }),
            expect![[
                r#"the schema is no JSON Schema, at "/type": value is not valid under any of the schemas listed in the 'anyOf' keyword"#
            ]],
        );
        check(
            &json!({ "pattern": "(" }),
            expect![[r#"the schema is no JSON Schema, at "/pattern": value is not a "regex""#]],
        );
        check(
            &json!({ "pattern": "(a{1000}){1000}" }),
            expect![[r#"the schema is no JSON Schema, at "/pattern": value is not a "regex""#]],
        );
        check(
            &json!({ "$ref": "https://example.com/schema.json" }),
            expect![[
                r##"the schema refers to "https://example.com/schema.json", which is no part of it; write "#/$defs/NAME""##
            ]],
        );
        check(
            &json!({ "$ref": "file:///etc/passwd" }),
            expect![[
                r##"the schema refers to "file:///etc/passwd", which is no part of it; write "#/$defs/NAME""##
            ]],
        );
        check(
            &json!({ "$ref": "#/$defs/none" }),
            expect![[
                r##"the schema refers to "#/$defs/none", which is no part of it; write "#/$defs/NAME""##
            ]],
        );
        check(
            &json!({ "$schema": "https://example.com/own" }),
            expect![[
                r#"the schema is no JSON Schema, at "": Unknown meta-schema: 'https://example.com/own'. Custom meta-schemas must be registered in the registry before use"#
            ]],
        );
        check(
            &json!({ "$schema": "http://json-schema.org/draft-04/schema#" }),
            expect!["the schema is of draft 4; write one of 2020-12"],
        );
        check(
            &json!({ "$id": "https://example.com/" }),
            expect![[r#"the schema has "$id"; leave it out"#]],
        );
        check(
            &json!({ "$dynamicRef": "#x" }),
            expect![[r#"the schema has "$dynamicRef"; leave it out"#]],
        );
        check(
            &json!({ "description": "x".repeat(70_000) }),
            expect!["the schema has 70018 bytes, over the limit of 65536"],
        );
    }

    #[test]
    fn references_that_would_work_for_ever() {
        check(
            &json!({ "anyOf": [{ "$ref": "#" }] }),
            expect![[r##"the schema refers to itself with "#"; write its levels out"##]],
        );
        let pair = json!({
            "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/b" }] }, "b": { "$ref": "#/$defs/a" } },
            "$ref": "#/$defs/a",
        });
        check(
            &pair,
            expect![[r##"the schema refers to itself with "#/$defs/b"; write its levels out"##]],
        );
        // The same part under two names.
        let names = json!({ "$defs": { "a": { "$ref": "#/%24defs/a" } }, "$ref": "#/$defs/a" });
        check(
            &names,
            expect![[
                r##"the schema refers to "#/%24defs/a", which is no part of it; write "#/$defs/NAME""##
            ]],
        );
        // Each part has the next one twice.
        let doubled = |levels: usize| {
            let mut parts = serde_json::Map::new();
            for level in 0..levels {
                let next = json!({ "$ref": format!("#/$defs/p{}", level + 1) });
                parts.insert(format!("p{level}"), json!({ "allOf": [next, next] }));
            }
            parts.insert(format!("p{levels}"), json!({}));
            json!({ "$defs": parts, "$ref": "#/$defs/p0" })
        };
        assert!(Schema::read(&doubled(5).to_string()).is_ok());
        check(
            &doubled(15),
            expect!["the schema has more than 20000 parts with all references in place"],
        );
        check(
            &doubled(2_000),
            expect!["the schema has 136718 bytes, over the limit of 65536"],
        );
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "not": deep });
        }
        check(&deep, expect!["the schema is nested deeper than 64 levels"]);
    }
}
