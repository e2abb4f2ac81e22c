//! Checks of the arguments of our own tools against the tools' schemas.

pub(crate) use callgate::faces::quoted;
use callgate::faces::unknown_member;
use callgate_schema::{Author, Schema};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The limit of problems in one answer.
const MAX_PROBLEMS: usize = 10;
/// The limit of a model's text in an answer, in bytes.
const MAX_QUOTE: usize = 80;

/// Reads arguments by their schema. A null counts as absent, because many clients write it.
pub(crate) fn read<T: DeserializeOwned>(
    lead: &str,
    schema: &JsonObject,
    given: Option<&JsonObject>,
) -> Result<T, String> {
    let mut given = given.cloned().unwrap_or_default();
    let mut unknown = Vec::new();
    tidy(schema, &mut given, "", &mut unknown);
    let schema = Value::Object(schema.clone());
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
fn tidy(schema: &JsonObject, given: &mut JsonObject, place: &str, unknown: &mut Vec<String>) {
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
        let Some(schema) = known.get(key).and_then(Value::as_object) else {
            continue;
        };
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
    fn unknown_members_name_known_ones() {
        for (given, expected) in [
            (
                json!({ "query": "a", "colour": 1 }),
                "- there is no argument \"colour\"; there are query, limit, more",
            ),
            (
                json!({ "query": "a", "more": { "colour": 1 } }),
                "- /more: there is no member \"colour\"; there are time",
            ),
        ] {
            let expected = format!("find was not called:\n{expected}");
            assert_eq!(check(&given), Err(expected));
        }
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
