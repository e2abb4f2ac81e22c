//! The arguments of `callgate call`: a JSON object, or pairs of a name and a value.

use std::collections::HashSet;

use anyhow::{Context as _, anyhow, bail};
use callgate::Gate;
use callgate::faces::quoted;
use callgate_schema::{Declared, Fit, json_fault, without_lone_surrogates};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::setup::read_up_to;

/// Maximum bytes of a call's arguments.
const MAX_ARGUMENTS: usize = 16 << 20;

/// The parts of a schema that say something of a single member.
const OF_MEMBERS: [&str; 7] = [
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "properties",
    "patternProperties",
    "additionalProperties",
];

/// The arguments as they were typed.
pub enum CallArguments {
    Object(Box<RawValue>),
    Pairs(Vec<(String, PairValue)>),
}

/// The value of a pair.
pub enum PairValue {
    /// `name=text`: text, or JSON where the schema takes no text.
    Text(String),
    /// `name:=JSON`.
    Json(Box<RawValue>),
}

impl CallArguments {
    /// Reads the words after the tool: none, a JSON object, `-` for standard input, or pairs.
    pub fn read(words: &[String]) -> anyhow::Result<Self> {
        match words {
            [] => object("{}".to_owned()),
            [word] if word == "-" => {
                let text = read_up_to(std::io::stdin().lock(), MAX_ARGUMENTS);
                let text = text.context("could not read standard input")?;
                check_size(text.len())?;
                object(String::from_utf8(text).context("the arguments are not UTF-8 text")?)
            }
            [word] if word.trim_start().starts_with('{') => object(word.clone()),
            words => {
                let pairs = words.iter().map(|word| pair(word));
                let pairs: Vec<_> = pairs.collect::<anyhow::Result<_>>()?;
                let mut names = HashSet::new();
                let mut all = pairs.iter().map(|(name, _)| name);
                if let Some(name) = all.find(|name| !names.insert(*name)) {
                    bail!(
                        "{} is given twice; for a list, write its JSON: {name}:='[1, 2]'",
                        quoted(name)
                    );
                }
                Ok(Self::Pairs(pairs))
            }
        }
    }

    /// The JSON object for this tool, checked against its schema.
    pub async fn for_tool(self, gate: &Gate, function: &str) -> anyhow::Result<Box<RawValue>> {
        let object = match self {
            Self::Object(object) => object,
            Self::Pairs(pairs) => {
                let entry = gate.view().tool_entry(function).unwrap_or_default();
                joined(pairs, entry.get("inputSchema").unwrap_or(&Value::Null))?
            }
        };
        check_size(object.get().len())?;
        let object = without_lone_surrogates(object);
        let members: Map<String, Value> = serde_json::from_str(object.get())
            .map_err(|error| anyhow!("the arguments cannot be used: {}", json_fault(&error)))?;
        gate.view().check_arguments(function, members).await?;
        Ok(object)
    }
}

fn check_size(bytes: usize) -> anyhow::Result<()> {
    if bytes > MAX_ARGUMENTS {
        bail!("the arguments are longer than 16 MiB, the limit of a call's arguments");
    }
    Ok(())
}

fn object(text: String) -> anyhow::Result<CallArguments> {
    let object = RawValue::from_string(text).context("the arguments are not JSON")?;
    if !object.get().starts_with('{') {
        bail!("the arguments must be a JSON object, such as '{{\"path\": \"README.md\"}}'");
    }
    Ok(CallArguments::Object(object))
}

/// Reads `name=text` or `name:=JSON`.
fn pair(word: &str) -> anyhow::Result<(String, PairValue)> {
    let split = word.split_once('=');
    let Some((name, value)) = split.filter(|_| !word.trim_start().starts_with('{')) else {
        bail!(
            "the arguments must be a JSON object, such as '{{\"path\": \"README.md\"}}', or \
             pairs, such as path=README.md lines:='[1, 2]'; {} is no pair",
            quoted(word)
        );
    };
    let (name, value) = match name.strip_suffix(':') {
        Some(name) => {
            let json = RawValue::from_string(value.to_owned());
            let advice = || format!("{name}:= takes JSON; for a text, write {name}=TEXT");
            (name, PairValue::Json(json.with_context(advice)?))
        }
        None => (name, PairValue::Text(value.to_owned())),
    };
    if name.is_empty() {
        bail!("{} has no name before the \"=\"", quoted(word));
    }
    Ok((name.to_owned(), value))
}

/// The object of these pairs.
fn joined(pairs: Vec<(String, PairValue)>, schema: &Value) -> anyhow::Result<Box<RawValue>> {
    let mut of_members = schema.clone();
    if let Value::Object(parts) = &mut of_members {
        parts.retain(|keyword, _| OF_MEMBERS.contains(&keyword.as_str()));
    }
    let of_members = Declared::new(of_members);
    let members = pairs.into_iter().map(|(name, value)| {
        let json = match value {
            PairValue::Json(json) => json.get().to_owned(),
            PairValue::Text(text) => {
                let kind = &schema["properties"][&name]["type"];
                json_of(text, &name, kind, &of_members)
            }
        };
        format!("{}:{json}", Value::from(name))
    });
    let members: Vec<String> = members.collect();
    let object = RawValue::from_string(format!("{{{}}}", members.join(",")));
    object.context("the arguments are not JSON")
}

/// The JSON of a typed value: text where the schema takes text there, else JSON if it is JSON.
fn json_of(text: String, name: &str, kind: &Value, schema: &Declared) -> String {
    let as_text = Value::from(text.as_str()).to_string();
    let member = format!("{{{}:{as_text}}}", Value::from(name));
    // A text that is only too long stays text, so that the error says so.
    if kind == "string" || !matches!(schema.fit(&member), Fit::Wrong { .. }) {
        return as_text;
    }
    let json = RawValue::from_string(text);
    json.map_or(as_text, |json| json.get().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(words: &[&str]) -> anyhow::Result<CallArguments> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        CallArguments::read(&words)
    }

    /// The object of these pairs, as text.
    fn object_of(words: &[&str], schema: &Value) -> String {
        match read(words).expect("pairs") {
            CallArguments::Pairs(pairs) => joined(pairs, schema).expect("JSON").get().to_owned(),
            CallArguments::Object(object) => object.get().to_owned(),
        }
    }

    #[test]
    fn pair_values_follow_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "zip": { "type": "string", "maxLength": 4 },
                "count": { "type": "integer", "maximum": 9 },
                "ratio": { "anyOf": [{ "type": "number" }, { "type": "null" }] },
                "dry": { "$ref": "#/$defs/Flag" },
                "level": { "enum": [1, 2, "high"] },
                "labels": { "type": "array", "items": { "type": "string" } },
                "either": { "type": ["string", "number"] },
            },
            "$defs": { "Flag": { "type": "boolean" } },
            "required": ["zip", "count"],
            "additionalProperties": false,
        });
        for (word, expected) in [
            ("zip=0815", r#"{"zip":"0815"}"#),
            ("zip=08151", r#"{"zip":"08151"}"#),
            ("zip=", r#"{"zip":""}"#),
            ("count=-3", r#"{"count":-3}"#),
            ("count=12", r#"{"count":12}"#),
            ("count=many", r#"{"count":"many"}"#),
            ("ratio=1.50", r#"{"ratio":1.50}"#),
            ("ratio=null", r#"{"ratio":null}"#),
            ("dry=true", r#"{"dry":true}"#),
            ("level=2", r#"{"level":2}"#),
            ("level=high", r#"{"level":"high"}"#),
            (r#"labels=["a", "b=c"]"#, r#"{"labels":["a", "b=c"]}"#),
            ("either=5", r#"{"either":"5"}"#),
            ("either:=5", r#"{"either":5}"#),
            ("unknown=a=b", r#"{"unknown":"a=b"}"#),
            (
                "id:=123456789012345678901",
                r#"{"id":123456789012345678901}"#,
            ),
        ] {
            assert_eq!(object_of(&[word], &schema), expected, "{word}");
        }
        let both = object_of(&["zip=a", "count=1"], &Value::Null);
        assert_eq!(both, r#"{"zip":"a","count":"1"}"#);
    }

    #[test]
    fn malformed_call_arguments_are_refused() {
        for (words, expected) in [
            (&["[7]"][..], "must be a JSON object"),
            (&["a=1", "b"], "\"b\" is no pair"),
            (&["{\"a\":\"=\"}", "b=1"], "is no pair"),
            (&["=1"], "has no name"),
            (&[":=1"], "has no name"),
            (&["a=1", "a:=2"], "\"a\" is given twice"),
            (
                &["when:=today"],
                "when:= takes JSON; for a text, write when=TEXT",
            ),
            (&["{\"a\":}"], "the arguments are not JSON"),
        ] {
            let error = read(words).err().expect("an error");
            assert!(error.to_string().contains(expected), "{words:?}: {error}");
        }
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ARGUMENTS));
        assert!(check_size(long.len()).is_err());
        assert_eq!(object_of(&[], &Value::Null), "{}");
    }
}
