//! Arguments that are sent as headers too: `x-mcp-header` in a tool's
//! `inputSchema` (2026-07-28, Streamable HTTP, "Custom Headers from Tool
//! Parameters").

mod argument;

use std::collections::BTreeSet;
use std::sync::Arc;

use argument::{Argument, Wanted};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The annotation.
const ANNOTATION: &str = "x-mcp-header";
/// The most annotations of one tool: a request has room for so many headers only.
const MAX_PARAMETERS: usize = 256;
/// The integers that JavaScript tells apart end here, and those in headers.
const MAX_SAFE: u128 = (1 << 53) - 1;
/// Keywords whose values are data: an annotation's name in them is none.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Keywords whose members are schemas under names of the author's choice.
const NAMED: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Which of a tool's arguments are mirrored, and under which names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Mirror {
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    /// The names of the properties that lead to it. They are shared: long ones would take
    /// much for each that they lead to.
    path: Vec<Arc<str>>,
    /// The whole name of the header.
    header: String,
}

impl Mirror {
    /// Reads the annotations of a tool's `inputSchema`.
    ///
    /// # Errors
    ///
    /// Why the tool must not be offered over HTTP: one of its annotations is
    /// not what the specification allows.
    pub(crate) fn of(schema: &Value) -> Result<Self, String> {
        Self::read(schema).map_err(|reason| format!("of its {ANNOTATION}, {reason}"))
    }

    /// The headers for these arguments, which are a JSON object: names and encoded values.
    /// An argument that is absent, null, or not what its schema says has none: the server
    /// has the say on such arguments.
    ///
    /// # Errors
    ///
    /// An argument is an integer that no header may have.
    pub(crate) fn headers(&self, arguments: &str) -> Result<Vec<(String, String)>, String> {
        if self.parameters.is_empty() {
            return Ok(Vec::new());
        }
        let mut wanted = Wanted::default();
        for (number, parameter) in self.parameters.iter().enumerate() {
            wanted.add(number, parameter.path.iter().map(|name| &**name));
        }
        let found = wanted.read(arguments, self.parameters.len());
        let with_value = self.parameters.iter().zip(found);
        let with_value = with_value.filter_map(|(parameter, argument)| {
            let text = match argument? {
                Argument::Text(text) => text,
                Argument::Truth(truth) => truth.to_string(),
                Argument::Integer(integer) if integer.unsigned_abs() <= MAX_SAFE => {
                    integer.to_string()
                }
                Argument::Integer(_) => return Some(Err(unsafe_integer(parameter))),
            };
            Some(Ok((parameter.header.clone(), encode(&text))))
        });
        with_value.collect()
    }

    fn read(schema: &Value) -> Result<Self, String> {
        let mut mirror = Self::default();
        mirror.walk(schema, Some(&mut Vec::new()))?;
        let mut names = BTreeSet::new();
        for parameter in &mirror.parameters {
            if !names.insert(parameter.header.to_ascii_lowercase()) {
                return Err(format!("{} is the name of two", parameter.header));
            }
        }
        Ok(mirror)
    }

    /// `path` is the way from the root, while it leads through `properties` alone.
    fn walk(&mut self, schema: &Value, mut path: Option<&mut Vec<Arc<str>>>) -> Result<(), String> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(items) => {
                return items.iter().try_for_each(|item| self.walk(item, None));
            }
            _ => return Ok(()),
        };
        for (key, value) in members {
            match (key.as_str(), &mut path, value) {
                (ANNOTATION, path, value) => {
                    if self.parameters.len() == MAX_PARAMETERS {
                        return Err(format!("there are more than {MAX_PARAMETERS}"));
                    }
                    let path = path.as_deref().map_or(&[][..], Vec::as_slice);
                    self.parameters.push(parameter(members, path, value)?);
                }
                ("properties", Some(path), Value::Object(properties)) => {
                    for (name, property) in properties {
                        path.push(name.as_str().into());
                        self.walk(property, Some(path))?;
                        path.pop();
                    }
                }
                (key, _, Value::Object(schemas)) if NAMED.contains(&key) => {
                    let mut schemas = schemas.values();
                    schemas.try_for_each(|schema| self.walk(schema, None))?;
                }
                (key, ..) if DATA.contains(&key) => {}
                (_, _, value) => self.walk(value, None)?,
            }
        }
        Ok(())
    }
}

/// A value as a header can carry it: as it is if that is unambiguous, else
/// Base64 between `=?base64?` and `?=`.
pub(crate) fn encode(value: &str) -> String {
    let visible = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let padded = value.starts_with(' ') || value.ends_with(' ');
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if visible && !padded && !looks_encoded {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(value))
    }
}

fn parameter(
    schema: &Map<String, Value>,
    path: &[Arc<str>],
    annotation: &Value,
) -> Result<Parameter, String> {
    let Some(name) = annotation.as_str() else {
        return Err("it is no string".to_owned());
    };
    if name.is_empty() {
        return Err("it is empty".to_owned());
    }
    if !name.bytes().all(is_token) {
        return Err(format!("{name:?} cannot be in a header's name"));
    }
    if path.is_empty() {
        return Err(format!(
            "{name} is not on a property that has a fixed place"
        ));
    }
    if !is_primitive(schema.get("type")) {
        return Err(format!(
            "{name} is not on a string, an integer or a boolean"
        ));
    }
    Ok(Parameter {
        path: path.to_vec(),
        header: format!("Mcp-Param-{name}"),
    })
}

/// `null` beside another type says that the argument may be left out.
fn is_primitive(types: Option<&Value>) -> bool {
    let mirrored = |value: &Value| {
        let name = value.as_str();
        name.is_some_and(|name| matches!(name, "string" | "integer" | "boolean"))
    };
    match types {
        Some(Value::Array(types)) => {
            types.iter().any(mirrored)
                && types
                    .iter()
                    .all(|one| mirrored(one) || one.as_str() == Some("null"))
        }
        Some(one) => mirrored(one),
        None => false,
    }
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn unsafe_integer(parameter: &Parameter) -> String {
    let (name, header) = (parameter.path.join("."), &parameter.header);
    format!(
        "the argument `{name}` goes into the header {header}, too, where an integer has to be \
         from -{MAX_SAFE} to {MAX_SAFE}; give a smaller one"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(schema: Value, arguments: Value, expected: Expect) {
        let shown = match Mirror::of(&schema) {
            Ok(mirror) => {
                let line = |(name, value)| format!("{name}: {value}\n");
                match mirror.headers(&arguments.to_string()) {
                    Ok(headers) => headers.into_iter().map(line).collect(),
                    Err(reason) => format!("refused: {reason}\n"),
                }
            }
            Err(reason) => format!("excluded: {reason}\n"),
        };
        expected.assert_eq(&shown);
    }

    fn one(property: Value) -> Value {
        json!({ "type": "object", "properties": { "a": property } })
    }

    #[test]
    fn what_is_there_is_mirrored_at_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" },
                "count": { "type": "integer", "x-mcp-header": "Count" },
                "whole": { "type": "integer", "x-mcp-header": "Whole" },
                "part": { "type": "integer", "x-mcp-header": "Part" },
                "dry": { "type": ["boolean", "null"], "x-mcp-header": "Dry" },
                "none": { "type": ["string", "null"], "x-mcp-header": "None" },
                "absent": { "type": "string", "x-mcp-header": "Absent" },
                "object": { "type": "string", "x-mcp-header": "Object" },
                "query": { "type": "string" },
                "deep": { "properties": {
                    "er": { "properties": { "é": { "type": "string", "x-mcp-header": "Deep" } } }
                } },
            },
        });
        let arguments = json!({
            "region": "us-west1", "count": -7, "whole": 42.0, "part": 1.5, "dry": false,
            "none": null, "object": { "x": 1 }, "query": "SELECT", "deep": { "er": { "é": "ü" } },
        });
        check(
            schema,
            arguments,
            expect![[r#"
                Mcp-Param-Region: us-west1
                Mcp-Param-Count: -7
                Mcp-Param-Whole: 42
                Mcp-Param-Dry: false
                Mcp-Param-Deep: =?base64?w7w=?=
            "#]],
        );
    }

    #[test]
    fn integers_have_to_be_safe() {
        let refused = || {
            expect![[r#"
                refused: the argument `a.b` goes into the header Mcp-Param-Id, too, where an integer has to be from -9007199254740991 to 9007199254740991; give a smaller one
            "#]]
        };
        let id = json!({ "type": "integer", "x-mcp-header": "Id" });
        let schema = one(json!({ "properties": { "b": id } }));
        let check_one = |id: Value, expected: Expect| {
            check(schema.clone(), json!({ "a": { "b": id } }), expected);
        };
        check_one(
            json!(9_007_199_254_740_991_u64),
            expect![[r#"
                Mcp-Param-Id: 9007199254740991
            "#]],
        );
        check_one(
            json!(-9_007_199_254_740_991.0),
            expect![[r#"
                Mcp-Param-Id: -9007199254740991
            "#]],
        );
        for beyond in [
            json!(9_007_199_254_740_992_u64),
            json!(-9_007_199_254_740_992_i64),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(9_007_199_254_740_992.0),
            json!(1e300),
            json!(-1e300),
        ] {
            check_one(beyond, refused());
        }
    }

    #[test]
    fn annotations_that_are_not_allowed() {
        let cases = [
            one(json!({ "type": "string", "x-mcp-header": "" })),
            one(json!({ "type": "string", "x-mcp-header": 1 })),
            one(json!({ "type": "string", "x-mcp-header": "a b" })),
            one(json!({ "type": "string", "x-mcp-header": "a\r\nHost: b" })),
            one(json!({ "type": "string", "x-mcp-header": "é" })),
            one(json!({ "type": "number", "x-mcp-header": "N" })),
            one(json!({ "type": "object", "x-mcp-header": "O" })),
            one(json!({ "type": "null", "x-mcp-header": "N" })),
            one(json!({ "type": ["string", "object"], "x-mcp-header": "M" })),
            one(json!({ "x-mcp-header": "Untyped" })),
            one(json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "I" } })),
            one(json!({ "anyOf": [{ "type": "string", "x-mcp-header": "Any" }] })),
            json!({ "type": "string", "x-mcp-header": "Root" }),
            json!({ "$defs": { "d": one(json!({ "type": "string", "x-mcp-header": "Def" })) } }),
            json!({ "properties": {
                "a": { "type": "string", "x-mcp-header": "Same" },
                "b": { "type": "string", "x-mcp-header": "sAME" },
            } }),
        ];
        let reasons = cases.map(|schema| match Mirror::of(&schema) {
            Ok(mirror) => panic!("{schema} is taken: {mirror:?}"),
            Err(reason) => reason + "\n",
        });
        expect![[r#"
            of its x-mcp-header, it is empty
            of its x-mcp-header, it is no string
            of its x-mcp-header, "a b" cannot be in a header's name
            of its x-mcp-header, "a\r\nHost: b" cannot be in a header's name
            of its x-mcp-header, "é" cannot be in a header's name
            of its x-mcp-header, N is not on a string, an integer or a boolean
            of its x-mcp-header, O is not on a string, an integer or a boolean
            of its x-mcp-header, N is not on a string, an integer or a boolean
            of its x-mcp-header, M is not on a string, an integer or a boolean
            of its x-mcp-header, Untyped is not on a string, an integer or a boolean
            of its x-mcp-header, I is not on a property that has a fixed place
            of its x-mcp-header, Any is not on a property that has a fixed place
            of its x-mcp-header, Root is not on a property that has a fixed place
            of its x-mcp-header, Def is not on a property that has a fixed place
            of its x-mcp-header, Mcp-Param-sAME is the name of two
        "#]]
        .assert_eq(&reasons.concat());
    }

    #[test]
    fn annotations_are_not_endless() {
        let tool = |count: usize| {
            let named = |n| {
                let property = json!({ "type": "string", "x-mcp-header": format!("H{n}") });
                (format!("p{n}"), property)
            };
            json!({ "properties": (0..count).map(named).collect::<Map<_, _>>() })
        };
        assert!(Mirror::of(&tool(MAX_PARAMETERS)).is_ok());
        assert_eq!(
            Mirror::of(&tool(MAX_PARAMETERS + 1)),
            Err("of its x-mcp-header, there are more than 256".to_owned())
        );
    }

    #[test]
    fn what_leads_to_many_is_there_once() {
        let leaf = |name: &str| json!({ "type": "string", "x-mcp-header": name });
        let schema = one(json!({ "properties": { "b": leaf("B"), "c": leaf("C") } }));
        let mirror = Mirror::of(&schema).expect("it is allowed");
        let [b, c] = &mirror.parameters[..] else {
            panic!("{mirror:?}");
        };
        assert!(Arc::ptr_eq(&b.path[0], &c.path[0]));
    }

    #[test]
    fn what_only_looks_like_an_annotation() {
        let schema = json!({ "properties": {
            "x-mcp-header": { "type": "object" },
            "a": { "default": { "x-mcp-header": "" }, "enum": [{ "x-mcp-header": "" }] },
        } });
        let arguments = json!({ "x-mcp-header": "v", "a": { "x-mcp-header": "v" } });
        check(schema, arguments, expect![""]);
        for schema in [
            json!(null),
            json!(true),
            json!([]),
            json!({ "properties": 1 }),
        ] {
            check(schema, json!({}), expect![""]);
        }
    }

    #[test]
    fn values_are_encoded_where_they_must_be() {
        let cases = [
            "",
            "us-west1",
            "us west 1",
            "~",
            " padded ",
            "a ",
            "\ta",
            "a\tb",
            "line1\nline2",
            "Hello, 世界",
            "=?base64?literal?=",
            "=?base64?",
            "\u{7f}",
        ];
        let encoded = cases.map(|value| format!("{value:?} {}\n", encode(value)));
        expect![[r#"
            "" 
            "us-west1" us-west1
            "us west 1" us west 1
            "~" ~
            " padded " =?base64?IHBhZGRlZCA=?=
            "a " =?base64?YSA=?=
            "\ta" =?base64?CWE=?=
            "a\tb" =?base64?YQli?=
            "line1\nline2" =?base64?bGluZTEKbGluZTI=?=
            "Hello, 世界" =?base64?SGVsbG8sIOS4lueVjA==?=
            "=?base64?literal?=" =?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=
            "=?base64?" =?base64?
            "\u{7f}" =?base64?fw==?=
        "#]]
        .assert_eq(&encoded.concat());
    }
}
