//! The message of a tool that failed, for a model: found in the result, and cut.

use callgate_schema::{json_fault, read};
use callgate_text::cut_message;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The members in which tools say why they failed, the most specific first.
const MEMBERS: [&str; 9] = [
    "text",
    "message",
    "error",
    "detail",
    "msg",
    "reason",
    "description",
    "errors",
    "resource",
];

/// The tool's own words for its failure, wherever they are in the result, cut to the limit of
/// messages.
pub(crate) fn failure_message(result: &RawValue) -> Result<String, String> {
    let all: Value = read(result.get()).map_err(|error| json_fault(&error))?;
    let content = all.get("content").and_then(words);
    let value = all
        .get("structuredContent")
        .or_else(|| all.get("toolResult"));
    let is_empty =
        |value: &Value| value.is_null() || [json!({}), json!([]), json!("")].contains(value);
    let mut message = content
        .or_else(|| value.and_then(words))
        .or_else(|| Some(value.filter(|value| !is_empty(value))?.to_string()))
        .or_else(|| words(&all))
        .unwrap_or_else(|| "the tool failed and did not say why".to_owned());
    cut_message(&mut message);
    Ok(message)
}

/// The words in a value: a text, the words of a list's elements, or those of an object's first
/// member of [`MEMBERS`] that has any.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.trim().is_empty()).then(|| text.clone()),
        Value::Array(list) => {
            let all: Vec<String> = list.iter().filter_map(words).collect();
            (!all.is_empty()).then(|| all.join("\n"))
        }
        Value::Object(object) => MEMBERS.iter().find_map(|name| words(object.get(*name)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use callgate_text::MAX_MESSAGE_BYTES;

    use super::*;
    use crate::server_answer::ServerAnswer;

    fn answer(result: String) -> ServerAnswer {
        let result = RawValue::from_string(result).expect("JSON");
        ServerAnswer::of(&result, None)
    }

    #[test]
    fn tool_error_text_becomes_the_failure_message() {
        for (result, expected) in [
            (
                json!({ "content": [{ "type": "text", "text": "no" }], "structuredContent": { "message": "a" } }),
                "no",
            ),
            (
                json!({ "content": [{ "type": "error", "text": "amount must be a number" }] }),
                "amount must be a number",
            ),
            (
                json!({ "content": [{ "type": "error", "error": { "message": "a" } }, { "type": "text", "text": "b" }] }),
                "a\nb",
            ),
            (
                json!({ "content": [{ "type": "resource", "resource": { "uri": "a:b", "text": "log" } }] }),
                "log",
            ),
            (json!({ "content": "not found" }), "not found"),
            (
                json!({ "content": [], "structuredContent": { "message": "quota used up" } }),
                "quota used up",
            ),
            (
                json!({ "content": [{ "type": "text", "text": " \n" }], "structuredContent": { "error": { "code": 1, "message": "a" } } }),
                "a",
            ),
            (
                json!({ "structuredContent": { "detail": [{ "loc": ["n"], "msg": "required" }, { "msg": "late" }] } }),
                "required\nlate",
            ),
            (
                json!({ "structuredContent": { "code": 7 } }),
                r#"{"code":7}"#,
            ),
            (json!({ "structuredContent": ["a", "b"] }), "a\nb"),
            (json!({ "toolResult": "no room" }), "no room"),
            (json!({ "error": "gone" }), "gone"),
            (
                json!({ "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }], "structuredContent": {} }),
                "the tool failed and did not say why",
            ),
            (json!({}), "the tool failed and did not say why"),
        ] {
            let mut failed = result.clone();
            failed["isError"] = true.into();
            match answer(failed.to_string()) {
                ServerAnswer::Failed {
                    message, content, ..
                } => {
                    assert_eq!(message, expected, "{result}");
                    assert!(content.get().starts_with('['), "{content}");
                }
                other => panic!("{result}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_long_failure_is_cut_between_characters() {
        let text = "é".repeat(MAX_MESSAGE_BYTES);
        let result = r#"{"isError":true,"content":[{"type":"text","text":"a"#.to_owned() + &text;
        match answer(result + r#""}]}"#) {
            ServerAnswer::Failed { message, .. } => {
                assert_eq!(message.len(), MAX_MESSAGE_BYTES - 1 + "…".len());
            }
            other => panic!("{other:?}"),
        }
    }
}
