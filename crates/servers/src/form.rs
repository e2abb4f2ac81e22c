//! Checks a person's answer to a form against the form's schema. Nothing is added to it.
//!
//! The schema is the restricted one of elicitation: a flat object of texts, numbers, booleans
//! and choices. Everything else in it is ignored.

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
        Some(_) => return Err(unfit("the content is no object")),
    };
    let none = Map::new();
    let schema = schema.unwrap_or(&Value::Null);
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !content.contains_key(name) {
            return Err(unfit(&format!("{name:?} is missing")));
        }
    }
    for (name, value) in &content {
        let property = match properties.get(name) {
            Some(property) => property,
            None if properties.is_empty() => continue,
            None => return Err(unfit(&format!("{name:?} is not in the form"))),
        };
        if let Some(reason) = misfit(value, property) {
            return Err(unfit(&format!("{name:?} {reason}")));
        }
    }
    Ok(json!({ "action": "accept", "content": content }))
}

fn unfit(reason: &str) -> ErrorData {
    let message = format!("the answer does not fit the form: {reason}");
    ErrorData::internal_error(message, None)
}

/// Why a value is not what the form asks for.
fn misfit(value: &Value, property: &Value) -> Option<String> {
    let kind = property.get("type").and_then(Value::as_str);
    let fits = match kind {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("array") => value.is_array(),
        _ => true,
    };
    if !fits {
        return Some(format!("is no {}", kind.unwrap_or_default()));
    }
    let bound = |name: &str| property.get(name).and_then(Value::as_f64);
    let (size, lowest, highest) = match value {
        Value::String(text) => (length(text.chars().count()), "minLength", "maxLength"),
        Value::Array(items) => (length(items.len()), "minItems", "maxItems"),
        Value::Number(number) => (number.as_f64().unwrap_or(f64::NAN), "minimum", "maximum"),
        _ => (0.0, "", ""),
    };
    if let Some(least) = bound(lowest).filter(|least| size < *least) {
        return Some(format!("is below {lowest} {least}"));
    }
    if let Some(most) = bound(highest).filter(|most| size > *most) {
        return Some(format!("is above {highest} {most}"));
    }
    let chosen: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    };
    let place = match value {
        Value::Array(_) => property.get("items")?,
        _ => property,
    };
    let choices = choices(place)?;
    chosen
        .iter()
        .any(|value| !choices.contains(value))
        .then(|| "is none of the choices".to_owned())
}

/// The choices of an enum, in any of its forms.
fn choices(place: &Value) -> Option<Vec<&Value>> {
    if let Some(choices) = place.get("enum").and_then(Value::as_array) {
        return Some(choices.iter().collect());
    }
    let titled = place.get("oneOf").or_else(|| place.get("anyOf"))?;
    let titled = titled.as_array()?;
    titled.iter().map(|choice| choice.get("const")).collect()
}

#[expect(clippy::cast_precision_loss, reason = "no text is that long")]
fn length(count: usize) -> f64 {
    count as f64
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
            expect![[r#"the answer does not fit the form: "name" is missing"#]],
        );
    }

    #[test]
    fn what_does_not_fit_is_not_sent() {
        let string = json!({ "a": { "type": "string", "minLength": 2, "maxLength": 3 } });
        let fits = |content| (content, string.clone(), json!(["a"]));
        for (content, expected) in [
            (
                json!({ "a": "ééé" }),
                expect![[r#"{"action":"accept","content":{"a":"ééé"}}"#]],
            ),
            (
                json!({}),
                expect![[r#"the answer does not fit the form: "a" is missing"#]],
            ),
            (
                json!({ "a": 1 }),
                expect![[r#"the answer does not fit the form: "a" is no string"#]],
            ),
            (
                json!({ "a": "x" }),
                expect![[r#"the answer does not fit the form: "a" is below minLength 2"#]],
            ),
            (
                json!({ "a": "xxxx" }),
                expect![[r#"the answer does not fit the form: "a" is above maxLength 3"#]],
            ),
            (
                json!({ "a": "xx", "b": 1 }),
                expect![[r#"the answer does not fit the form: "b" is not in the form"#]],
            ),
            (
                json!([]),
                expect!["the answer does not fit the form: the content is no object"],
            ),
        ] {
            let (content, properties, required) = fits(content);
            check(content, properties, required, expected);
        }
        check(
            json!({ "a": 1.5 }),
            json!({ "a": { "type": "integer" } }),
            json!([]),
            expect![[r#"the answer does not fit the form: "a" is no integer"#]],
        );
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
                expect![[r#"the answer does not fit the form: "a" is none of the choices"#]],
            ),
            (
                json!(["g", "r"]),
                &many,
                expect![[r#"{"action":"accept","content":{"a":["g","r"]}}"#]],
            ),
            (
                json!([]),
                &many,
                expect![[r#"the answer does not fit the form: "a" is below minItems 1"#]],
            ),
            (
                json!(["b"]),
                &plain,
                expect![[r#"the answer does not fit the form: "a" is none of the choices"#]],
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
