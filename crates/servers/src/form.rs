//! Checks a person's answer to a form against the form's schema. Nothing is added to it.
//!
//! A schema that is none is ignored.

use callgate_schema::{Declared, Fit};
use rmcp::model::ErrorData;
use serde_json::{Map, Value, json};

/// The caller's answer as the server gets it.
pub(crate) fn checked(
    mut result: Value,
    mode: &str,
    schema: Option<&Value>,
) -> Result<Value, ErrorData> {
    match result.get("action").and_then(Value::as_str) {
        Some("accept") if mode == "form" => {}
        // A page's content stays between the person and the page.
        Some(action @ ("accept" | "decline" | "cancel")) => {
            return Ok(json!({ "action": action }));
        }
        _ => return Ok(json!({ "action": "cancel" })),
    }
    let content = match result.get_mut("content").map(Value::take) {
        Some(Value::Object(content)) => content,
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err(unfit("the content is not an object")),
    };
    let schema = schema.unwrap_or(&Value::Null);
    if let Some(properties) = schema["properties"]
        .as_object()
        .filter(|all| !all.is_empty())
        && let Some(name) = content.keys().find(|name| !properties.contains_key(*name))
    {
        return Err(unfit(&format!("{name:?} is not in the form")));
    }
    let content = Value::Object(content);
    if let Fit::Wrong { problems } = Declared::new(schema.clone()).fit(&content.to_string()) {
        return Err(unfit(&problems.join("; ")));
    }
    Ok(json!({ "action": "accept", "content": content }))
}

fn unfit(reason: &str) -> ErrorData {
    let message = format!("the answer does not fit the form: {reason}");
    ErrorData::internal_error(message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_not_sent() {
        let string = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
        // Nothing is added: the caller fills in defaults.
        let properties = json!({ "a": string, "share": { "type": "boolean", "default": true } });
        let schema = json!({ "properties": properties, "required": ["a"] });
        let answer = json!({ "action": "accept", "content": { "a": "ééé" } });
        assert_eq!(checked(answer.clone(), "form", Some(&schema)), Ok(answer));
        for (content, expected) in [
            (json!({}), "\"a\" is a required property"),
            (json!({ "a": 1 }), "/a: value is not of type \"string\""),
            (
                json!({ "a": "x" }),
                "/a: value is shorter than 2 characters",
            ),
            (
                json!({ "a": "xxxx" }),
                "/a: value is longer than 3 characters",
            ),
            (json!({ "a": "xx", "b": 1 }), "\"b\" is not in the form"),
            (json!([]), "the content is not an object"),
        ] {
            let answer = json!({ "action": "accept", "content": content });
            let refused = checked(answer, "form", Some(&schema)).expect_err("it does not fit");
            assert!(refused.message.contains(expected), "{}", refused.message);
        }
    }

    #[test]
    fn only_an_accepted_form_has_content() {
        for (answer, mode, expected) in [
            (
                json!({ "action": "decline", "content": { "a": 1 } }),
                "form",
                r#"{"action":"decline"}"#,
            ),
            (
                json!({ "action": "accept", "content": { "a": 1 } }),
                "url",
                r#"{"action":"accept"}"#,
            ),
            (
                json!({ "action": "maybe" }),
                "form",
                r#"{"action":"cancel"}"#,
            ),
            (json!(7), "form", r#"{"action":"cancel"}"#),
            (
                json!({ "action": "accept" }),
                "form",
                r#"{"action":"accept","content":{}}"#,
            ),
        ] {
            let result = checked(answer, mode, None).map(|result| result.to_string());
            assert_eq!(result, Ok(expected.to_owned()));
        }
    }
}
