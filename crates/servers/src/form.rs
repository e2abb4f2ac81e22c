//! Checks a person's answer to a form against the form's schema, without adding to it.
//!
//! An invalid schema is ignored.

use callgate_schema::{Declared, Fit};
use rmcp::model::ErrorData;
use serde_json::{Map, Value, json};

/// Checks the caller's answer, and returns it in the form for the server.
pub(crate) fn checked(
    mut result: Value,
    mode: &str,
    schema: Option<&Value>,
) -> Result<Value, ErrorData> {
    match result.get("action").and_then(Value::as_str) {
        Some("accept") if mode == "form" => {}
        // What the person entered on a page is not for the server.
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
    fn answer_is_checked_against_its_form() {
        let string = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
        let properties = json!({ "a": string, "share": { "type": "boolean", "default": true } });
        let schema = json!({ "properties": properties, "required": ["a"] });
        for (content, expected) in [
            // The caller fills in defaults, so none is added here.
            (
                json!({ "a": "ééé" }),
                r#"{"action":"accept","content":{"a":"ééé"}}"#,
            ),
            (json!({}), "\"a\" is a required property"),
            (json!({ "a": 1 }), "/a: value is not of type \"string\""),
            (
                json!({ "a": "x" }),
                "/a: value is shorter than 2 characters",
            ),
            (json!({ "a": "xx", "b": 1 }), "\"b\" is not in the form"),
            (json!([]), "the content is not an object"),
        ] {
            let answer = json!({ "action": "accept", "content": content });
            let checked = checked(answer, "form", Some(&schema));
            let said = checked.map_or_else(|error| error.message.into(), |it| it.to_string());
            assert!(said.ends_with(expected), "{said}");
        }
    }

    #[test]
    fn only_an_accepted_form_has_content() {
        let content = json!({ "a": 1 });
        for (action, mode, expected) in [
            ("decline", "form", json!({ "action": "decline" })),
            ("accept", "url", json!({ "action": "accept" })),
            ("maybe", "form", json!({ "action": "cancel" })),
            (
                "accept",
                "form",
                json!({ "action": "accept", "content": content }),
            ),
        ] {
            let answer = json!({ "action": action, "content": content });
            assert_eq!(checked(answer, mode, None), Ok(expected));
        }
        assert_eq!(
            checked(json!(7), "form", None),
            Ok(json!({ "action": "cancel" }))
        );
    }
}
