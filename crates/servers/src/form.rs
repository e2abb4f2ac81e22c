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
    use expect_test::{Expect, expect};

    use super::*;

    fn check(content: Value, properties: Value, required: Value, expected: Expect) {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        let answer = json!({ "action": "accept", "content": content });
        let shown = match checked(answer, "form", Some(&schema)) {
            Ok(result) => result.to_string(),
            Err(error) => error.message.into_owned(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn what_a_person_left_out_stays_out() {
        let properties = json!({
            "name": { "type": "string", "default": "Ada" },
            "share": { "type": "boolean", "default": true },
            "hidden": { "type": "object", "default": { "consent": true } },
        });
        check(
            json!({ "name": "" }),
            properties.clone(),
            json!(["name"]),
            expect![[r#"{"action":"accept","content":{"name":""}}"#]],
        );
        check(
            json!({}),
            properties,
            json!(["name"]),
            expect![[
                r#"the answer does not fit the form: the value: "name" is a required property"#
            ]],
        );
    }

    #[test]
    fn what_does_not_fit_is_not_sent() {
        let string = json!({ "type": "string", "minLength": 2, "maxLength": 3 });
        let schema = json!({ "properties": { "a": string }, "required": ["a"] });
        for (content, expected) in [
            (json!({ "a": "ééé" }), None),
            (json!({}), Some("\"a\" is a required property")),
            (
                json!({ "a": 1 }),
                Some("/a: value is not of type \"string\""),
            ),
            (
                json!({ "a": "x" }),
                Some("/a: value is shorter than 2 characters"),
            ),
            (
                json!({ "a": "xxxx" }),
                Some("/a: value is longer than 3 characters"),
            ),
            (
                json!({ "a": "xx", "b": 1 }),
                Some("\"b\" is not in the form"),
            ),
            (json!([]), Some("the content is not an object")),
        ] {
            let answer = json!({ "action": "accept", "content": content });
            let refused = checked(answer, "form", Some(&schema)).err();
            let message = refused.map(|error| error.message.into_owned());
            let is_told = expected.is_none_or(|part| {
                message
                    .as_ref()
                    .is_some_and(|message| message.contains(part))
            });
            assert_eq!(
                (message.is_some(), is_told),
                (expected.is_some(), true),
                "{message:?}"
            );
        }
    }

    #[test]
    fn every_form_of_a_choice() {
        let one = json!({ "type": "string", "oneOf": [{ "const": "r", "title": "Red" }] });
        let many = json!({
            "type": "array",
            "minItems": 1,
            "items": { "anyOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "G" }] },
        });
        let plain = json!({ "type": "array", "items": { "type": "string", "enum": ["r"] } });
        for (value, property, expected) in [
            (
                json!("r"),
                &one,
                expect![[r#"{"action":"accept","content":{"a":"r"}}"#]],
            ),
            (
                json!("Red"),
                &one,
                expect![
                    "the answer does not fit the form: /a: value is not valid under any of the schemas listed in the 'oneOf' keyword"
                ],
            ),
            (
                json!(["g", "r"]),
                &many,
                expect![[r#"{"action":"accept","content":{"a":["g","r"]}}"#]],
            ),
            (
                json!([]),
                &many,
                expect!["the answer does not fit the form: /a: value has less than 1 item"],
            ),
            (
                json!(["b"]),
                &plain,
                expect![[r#"the answer does not fit the form: /a/0: value is not one of "r""#]],
            ),
        ] {
            check(
                json!({ "a": value }),
                json!({ "a": property }),
                json!([]),
                expected,
            );
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
