//! Checks of the arguments of our own tools and of servers' tools against the tools' schemas.

use callgate::faces::listed_members;
use callgate_schema::{Author, Declared, Fit, Schema};
use callgate_text::nearest;
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The limit of problems in one answer.
const MAX_PROBLEMS: usize = 10;
/// The limit of members of a schema that a problem lists.
const MAX_LISTED: usize = 30;
/// The limit of a model's text in an answer, in bytes.
const MAX_QUOTE: usize = 80;

/// Reads arguments by their schema. A null counts as absent, because many clients write it.
pub(crate) fn read<T: DeserializeOwned>(
    lead: &str,
    schema: &JsonObject,
    given: Option<&JsonObject>,
) -> Result<T, String> {
    let schema = Value::Object(schema.clone());
    let mut given = given.cloned().unwrap_or_default();
    let mut unknown = Vec::new();
    tidy(&schema, &mut given, "", &mut unknown);
    let given = Value::Object(given);
    let schema = Schema::new(schema, Author::Script).map_err(|error| error.to_string())?;
    let mut problems = schema.problems(&given, MAX_QUOTE, MAX_PROBLEMS);
    problems.append(&mut unknown);
    if problems.is_empty() {
        match serde_json::from_value(given) {
            Ok(read) => return Ok(read),
            Err(error) => problems.push(error.to_string()),
        }
    }
    Err(refusal(lead, &problems))
}

/// Checks a call's arguments against the schema of a server's tool. The error is for the caller,
/// and contains no value of the arguments. An unusable schema refuses nothing.
pub(crate) fn check_call(
    function: &str,
    schema: JsonObject,
    given: Option<&JsonObject>,
) -> Result<(), String> {
    let mut schema = Value::Object(schema);
    let mut given = given.cloned().unwrap_or_default();
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
    Err(format!(
        "{function} was not called: {}",
        problems.join("; ")
    ))
}

/// The answer that lists these problems.
pub(crate) fn refusal(lead: &str, problems: &[String]) -> String {
    let mut text = format!("{lead}:");
    for problem in problems.iter().take(MAX_PROBLEMS) {
        text += &format!("\n- {problem}");
    }
    if problems.len() > MAX_PROBLEMS {
        text += &format!("\n- and {} more", problems.len() - MAX_PROBLEMS);
    }
    text
}

/// Removes nulls and unknown members, and writes whole numbers without a fraction.
fn tidy(schema: &Value, given: &mut JsonObject, place: &str, unknown: &mut Vec<String>) {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    given.retain(|key, value| {
        let is_known = known.contains_key(key);
        if !is_known {
            // Of further ones, only the number is shown.
            let is_shown = unknown.len() < MAX_PROBLEMS;
            let problem = is_shown.then(|| unknown_member(place, key, known, None));
            unknown.push(problem.unwrap_or_default());
        }
        is_known && !value.is_null()
    });
    for (key, value) in given {
        let schema = known.get(key).unwrap_or(&Value::Null);
        if let Value::Object(members) = value {
            tidy(schema, members, &format!("{place}/{key}"), unknown);
        } else if let Some(number) = value.as_f64()
            && schema.get("type").and_then(Value::as_str) == Some("integer")
            && number.fract() == 0.0
            && (0.0..9.0e15).contains(&number)
        {
            *value = Value::from(number as u64);
        }
    }
}

/// The problem of an unknown member. The list marks `required` members.
fn unknown_member(place: &str, key: &str, known: &JsonObject, required: Option<&Value>) -> String {
    let advice = match near(key, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("there are {}", listed(known, required)),
    };
    let key = quoted(key);
    match place {
        "" => format!("there is no argument {key}; {advice}"),
        _ => format!("{place}: there is no member {key}; {advice}"),
    }
}

fn near<'k>(key: &str, known: &'k JsonObject) -> Option<&'k str> {
    nearest(key, known.keys().map(String::as_str))
}

fn listed(known: &JsonObject, required: Option<&Value>) -> String {
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

/// A model's text in quotation marks, cut.
pub(crate) fn quoted(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_QUOTE);
    match text.get(..end) {
        Some(head) if end < text.len() => format!("{:?}", format!("{head}…")),
        _ => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Given {
        query: String,
        limit: Option<u64>,
        more: Option<JsonObject>,
    }

    fn check(given: &Value) -> Result<Given, String> {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": { "type": "string" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 50 },
                "more": { "type": "object", "properties": { "time": { "type": "integer" } } }
            },
            "required": ["query"],
            "additionalProperties": false
        });
        read(
            "find was not called",
            schema.as_object().expect("one"),
            given.as_object(),
        )
    }

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
            let schema = schema.as_object().expect("an object").clone();
            let expected = expected.map(|problems| format!("fs_read was not called{problems}"));
            assert_eq!(
                check_call("fs_read", schema, given.as_object()).err(),
                expected
            );
        }
    }

    #[test]
    fn only_the_first_unknown_arguments_are_compared() {
        let named = |kind: &str| {
            let names = (0..3_000).map(|n| (format!("{kind}{n:0>200}"), json!({})));
            names.collect::<JsonObject>()
        };
        let schema = json!({ "properties": named("a") });
        let schema = schema.as_object().expect("an object").clone();
        let error = check_call("f", schema, Some(&named("b"))).expect_err("unknown");
        assert_eq!(error.matches("there is no argument").count(), MAX_PROBLEMS);
    }

    #[test]
    fn nulls_and_integral_floats_are_accepted() {
        let given = json!({ "query": "a", "limit": 10.0, "more": null });
        let expected = Given {
            query: "a".to_owned(),
            limit: Some(10),
            more: None,
        };
        assert_eq!(check(&given), Ok(expected));
    }

    #[test]
    fn all_problems_are_listed() {
        let wrong = json!({ "qeury": "a", "limit": 1.5, "more": { "tme": 1, "time": "x" } });
        assert_eq!(
            check(&wrong).expect_err("it is wrong"),
            "find was not called:\n\
             - /limit: 1.5 is not of type \"integer\"\n\
             - /more/time: \"x\" is not of type \"integer\"\n\
             - the value: \"query\" is a required property\n\
             - there is no argument \"qeury\"; did you mean \"query\"?\n\
             - /more: there is no member \"tme\"; did you mean \"time\"?"
        );
        let many = (0..100).map(|n| (format!("k{n}"), 1.into())).collect();
        let wrong = check(&Value::Object(many)).expect_err("it is wrong");
        assert!(wrong.ends_with("\n- and 91 more"), "{wrong}");
    }
}
