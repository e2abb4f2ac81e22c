//! Checks the arguments of a call against the schema of its tool.

use callgate_policy::listed_members;
use callgate_schema::{Declared, Fit};
use callgate_text::nearest;
use serde_json::{Map, Value};

/// The limit of problems in one answer.
const MAX_PROBLEMS: usize = 10;
/// The limit of members of a schema that a problem lists.
const MAX_LISTED: usize = 30;
/// The limit of a caller's text in an answer, in bytes.
const MAX_QUOTE: usize = 80;

/// Arguments that do not fit the schema of their tool. Its `Display` contains no value of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongArguments(String);

/// Checks a call's arguments against the schema of its tool. An unusable schema refuses nothing.
pub(crate) fn check_call(
    function: &str,
    mut schema: Value,
    mut given: Map<String, Value>,
) -> Result<(), WrongArguments> {
    let mut problems = Vec::new();
    if let Some(known) = listed_members(&schema).filter(|known| !known.is_empty()) {
        let mut is_listed = false;
        given.retain(|key, _| {
            if known.contains_key(key) {
                return true;
            }
            // Each unknown member costs a search among all known ones.
            if problems.len() < MAX_PROBLEMS {
                problems.push(unknown_member("", key, known, schema.get("required")));
                is_listed |= near(key, known).is_none();
            }
            false
        });
        if is_listed {
            // The list marks what is required.
            schema["required"] = Value::Array(Vec::new());
        }
    }
    let given = Value::Object(given).to_string();
    if let Fit::Wrong { problems: more } = Declared::new(schema).fit(&given) {
        problems.extend(more);
    }
    if problems.is_empty() {
        return Ok(());
    }
    problems.truncate(MAX_PROBLEMS);
    let problems = problems.join("; ");
    let message = format!("{function} was not called: {problems}");
    Err(WrongArguments(message))
}

/// The problem of an unknown member. The list marks `required` members.
pub fn unknown_member(
    place: &str,
    key: &str,
    known: &Map<String, Value>,
    required: Option<&Value>,
) -> String {
    let advice = match near(key, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None if known.is_empty() => "it takes no arguments".to_owned(),
        None => format!("there are {}", listed(known, required)),
    };
    let key = quoted(key);
    match place {
        "" => format!("there is no argument {key}; {advice}"),
        _ => format!("{place}: there is no member {key}; {advice}"),
    }
}

fn near<'k>(key: &str, known: &'k Map<String, Value>) -> Option<&'k str> {
    nearest(key, known.keys().map(String::as_str))
}

fn listed(known: &Map<String, Value>, required: Option<&Value>) -> String {
    let required = required.and_then(Value::as_array);
    let is_required = |key: &String| required.is_some_and(|all| all.iter().any(|it| it == key));
    let mark = |key: &String| if is_required(key) { " (required)" } else { "" };
    let is_plain = |key: &str| key.len() <= MAX_QUOTE && !key.contains(char::is_control);
    let word = |key: &String| {
        if is_plain(key) {
            key.clone()
        } else {
            quoted(key)
        }
    };
    let words = known.keys().map(|key| word(key) + mark(key));
    let mut words: Vec<String> = words.take(MAX_LISTED).collect();
    if known.len() > MAX_LISTED {
        words.push(format!("and {} more", known.len() - MAX_LISTED));
    }
    words.join(", ")
}

/// A foreign text in quotation marks, cut.
pub fn quoted(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_QUOTE);
    match text.get(..end) {
        Some(head) if end < text.len() => format!("{:?}", format!("{head}…")),
        _ => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn call_arguments_must_fit_the_tool_schema() {
        let properties = json!({
            "path": { "type": "string" }, "tail": { "type": "number" }, "head": { "type": "number" },
        });
        let file = json!({ "type": "object", "properties": properties, "required": ["path"] });
        let open = json!({ "type": "object", "properties": properties,
            "additionalProperties": { "type": "string" } });
        let one_of = json!({ "oneOf": [file, { "properties": { "file": {} } }] });
        let bad = json!({ "type": "no type" });
        for (schema, given, expected) in [
            (&file, json!({ "path": "a" }), None),
            (
                &file,
                json!({ "file": "a" }),
                Some(": there is no argument \"file\"; there are path (required), tail, head"),
            ),
            (
                &file,
                json!({ "path": "a", "lines": 3 }),
                Some(": there is no argument \"lines\"; there are path (required), tail, head"),
            ),
            (
                &file,
                json!({ "pth": "a", "tail": "secret" }),
                Some(
                    ": there is no argument \"pth\"; did you mean \"path\"?; \
                     the value: \"path\" is a required property; /tail: value is not of type \"number\"",
                ),
            ),
            (
                &file,
                json!({}),
                Some(": the value: \"path\" is a required property"),
            ),
            (
                &file,
                json!({ "path": null }),
                Some(": /path: value is not of type \"string\""),
            ),
            (&open, json!({ "file": "a" }), None),
            (
                &open,
                json!({ "file": 1 }),
                Some(": /file: value is not of type \"string\""),
            ),
            (&one_of, json!({ "file": 1 }), None),
            (&bad, json!({ "file": 1 }), None),
        ] {
            let given = given.as_object().expect("an object").clone();
            let expected = expected.map(|problems| format!("fs_read was not called{problems}"));
            let checked = check_call("fs_read", schema.clone(), given);
            assert_eq!(checked.err().map(|wrong| wrong.to_string()), expected);
        }
    }

    #[test]
    fn only_the_first_unknown_arguments_are_compared() {
        let named = |kind: &str| {
            let names = (0..3_000).map(|n| (format!("{kind}{n:0>200}"), json!({})));
            names.collect::<Map<String, Value>>()
        };
        let schema = json!({ "properties": named("a") });
        let error = check_call("f", schema, named("b")).expect_err("unknown");
        let error = error.to_string();
        assert_eq!(error.matches("there is no argument").count(), MAX_PROBLEMS);
    }
}
