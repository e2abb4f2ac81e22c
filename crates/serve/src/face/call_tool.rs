//! Calls of servers' tools without a script, and their results for the client.

use callgate::faces::WrongArguments;
use callgate::{CallError, CallErrorKind, CallOutcome, CallRequest, Gate};
use callgate_schema::{TokenKind, tokens};
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, JsonObject, ResultType};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::own_tools::{self, CALL_TOOL};
use super::search::unknown_tool;

/// The error code of a server that needs a capability that the client lacks.
const MISSING_CAPABILITY: i64 = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0 as i64;

/// A call of a server's tool.
pub(crate) struct ToolCall {
    pub(crate) function: String,
    pub(crate) arguments: JsonObject,
    /// True if the client's revision allows structured results that are not objects (2026-07-28).
    pub(crate) any_result: bool,
    /// True for a call with `call_tool`: then the answer is text for a model, the structured result
    /// if there is one, because its type is declared, and compact JSON.
    pub(crate) is_for_model: bool,
}

/// The arguments of `call_tool`.
#[derive(Deserialize)]
struct CallArguments {
    name: String,
    args: Option<JsonObject>,
    arguments: Option<JsonObject>,
}

impl ToolCall {
    /// Reads the arguments of `call_tool`, and finds the tool.
    pub(crate) async fn read(
        gate: &Gate,
        given: Option<&JsonObject>,
        any_result: bool,
    ) -> Result<Self, String> {
        let given: CallArguments = own_tools::read(CALL_TOOL, given)?;
        if given.args.is_some() && given.arguments.is_some() {
            return Err(format!(
                "{CALL_TOOL} was not called: args and arguments mean the same; give one of them"
            ));
        }
        let function = given.name;
        if gate.view().finds_tool(&function).await {
            return Ok(Self {
                function,
                arguments: given.args.or(given.arguments).unwrap_or_default(),
                any_result,
                is_for_model: true,
            });
        }
        Err(match gate.view().unavailable_server_of(&function) {
            Some(server) => server.reason.clone(),
            None => unknown_tool(gate, &function),
        })
    }

    /// Checks the arguments against the tool's schema. The error is for the caller.
    pub(crate) async fn check(&self, gate: &Gate) -> Result<(), WrongArguments> {
        let arguments = self.arguments.clone();
        gate.view().check_arguments(&self.function, arguments).await
    }

    /// The request, and the function with its arguments as one text.
    pub(crate) fn request(&self) -> (CallRequest, String) {
        let arguments = to_raw_value(&self.arguments).unwrap_or_default();
        let described = format!("{} {arguments}", self.function);
        let request = CallRequest::new(self.function.as_str(), arguments).whole();
        (request, described)
    }

    /// The result for the client. `limit`: the limit of its texts, in bytes.
    pub(crate) fn answer(
        &self,
        called: CallOutcome,
        limit: u64,
    ) -> Result<CallToolResult, ErrorData> {
        match called.result {
            Ok(result) => {
                let mut shown = server_result(&result, self.any_result);
                if self.is_for_model {
                    shown.content = for_model(&shown, &result);
                    if result.get().len() as u64 > limit {
                        // The texts say the same, and are cut.
                        shown.structured_content = None;
                    }
                }
                Ok(shown)
            }
            Err(CallError {
                kind:
                    CallErrorKind::Protocol {
                        code: MISSING_CAPABILITY,
                        message,
                        data,
                        ..
                    },
                ..
            }) if self.any_result => {
                let code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
                let data = data.and_then(|data| serde_json::to_value(data).ok());
                Err(ErrorData::new(code, message, data))
            }
            Err(error) => {
                let mut blocks = vec![ContentBlock::text(error.to_string())];
                // The call was made, so the model sees the result, but not as a structured value.
                if let Some(result) = error.mismatched_result() {
                    blocks.extend(for_model(&server_result(result, true), result));
                }
                Ok(CallToolResult::error(blocks))
            }
        }
    }
}

/// The content of a result for a model: its structured value instead of its texts, or its texts;
/// JSON without white space. The texts of an error are kept, and a text that is all of the
/// structured value.
fn for_model(shown: &CallToolResult, result: &RawValue) -> Vec<ContentBlock> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Structured<'a> {
        #[serde(borrow, alias = "toolResult")]
        structured_content: Option<&'a RawValue>,
    }
    let mut content = shown.content.clone();
    let is_error = shown.is_error == Some(true) && !content.is_empty();
    // As text, which keeps all digits of numbers.
    let structured = serde_json::from_str(result.get()).ok();
    if let Some(value) = structured.and_then(|it: Structured<'_>| it.structured_content)
        && !is_error
    {
        if says_only_its_text(shown) {
            return content;
        }
        content.retain(|block| block.as_text().is_none());
        let text = compact(value.get()).unwrap_or_else(|| value.get().to_owned());
        content.insert(0, ContentBlock::text(text));
        return content;
    }
    for block in &mut content {
        if let ContentBlock::Text(block) = block
            && let Some(text) = compact(&block.text)
        {
            block.text = text;
        }
    }
    content
}

/// True if the structured value is an object with one member, which is the result's one text.
fn says_only_its_text(result: &CallToolResult) -> bool {
    let mut texts = result.content.iter().filter_map(ContentBlock::as_text);
    let (Some(text), None) = (texts.next(), texts.next()) else {
        return false;
    };
    let value = result.structured_content.as_ref();
    let members = value.and_then(Value::as_object);
    members.is_some_and(|members| {
        members.len() == 1 && members.values().all(|member| *member == *text.text)
    })
}

/// A JSON object or array without white space between its tokens.
fn compact(json: &str) -> Option<String> {
    if !json.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str::<IgnoredAny>(json).ok()?;
    let kept = tokens(json).filter(|token| token.kind != TokenKind::Space);
    Some(kept.map(|token| token.text).collect())
}

/// A server's own result, changed only if a client could not read it.
fn server_result(result: &RawValue, any_result: bool) -> CallToolResult {
    let Ok(Value::Object(mut members)) = serde_json::from_str(result.get()) else {
        return CallToolResult::success(vec![ContentBlock::text(result.get())]);
    };
    let mut shown = CallToolResult::success(Vec::new());
    shown.result_type = Some(ResultType::COMPLETE);
    shown.is_error = members.remove("isError").as_ref().and_then(Value::as_bool);
    if let Some(Value::Array(blocks)) = members.remove("content") {
        shown.content = blocks.into_iter().map(block).collect();
    }
    shown.meta = members
        .remove("_meta")
        .and_then(|meta| serde_json::from_value(meta).ok());
    // `toolResult` is of MCP 2024-10-07.
    let value = members.remove("structuredContent");
    shown.structured_content = value.or_else(|| members.remove("toolResult"));
    if !any_result
        && let Some(value) = shown.structured_content.take_if(|value| !value.is_object())
        && shown.content.is_empty()
    {
        shown.content.push(ContentBlock::text(value.to_string()));
    }
    shown
}

/// A block of content. One of an unknown kind becomes its JSON text.
fn block(block: Value) -> ContentBlock {
    let text = || ContentBlock::text(block.to_string());
    serde_json::from_value(block.clone()).unwrap_or_else(|_unknown| text())
}

/// Adds empty structured content to a result whose text is JSON, for Gemini CLI: without it, the
/// client parses the first text as structured content, and fails if it is not an object, such as
/// the `42` of a script.
pub(super) fn protect_json_text(result: &mut CallToolResult) {
    let text = result.content.first().and_then(ContentBlock::as_text);
    let text = text.map_or("", |it| it.text.trim_start());
    let is_json = !text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_json && result.structured_content.is_none() {
        result.structured_content = Some(Value::Object(JsonObject::new()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(result: &Value, any_result: bool, mut expected: Value) {
        let result = to_raw_value(result).expect("JSON");
        expected["resultType"] = json!("complete");
        let shown = serde_json::to_value(server_result(&result, any_result)).expect("JSON");
        assert_eq!(shown, expected);
    }

    #[test]
    fn known_content_is_unchanged() {
        let content = json!([
            { "type": "text", "text": "a", "annotations": { "audience": ["user"] } },
            { "type": "image", "data": "AA==", "mimeType": "image/png" },
            { "type": "audio", "data": "AA==", "mimeType": "audio/wav", "_meta": { "k": 1 } },
            { "type": "resource", "resource": { "uri": "x:y", "text": "t" } },
            { "type": "resource_link", "uri": "x:y", "name": "n" },
        ]);
        for result in [
            json!({ "content": content, "structuredContent": { "a": 1 }, "_meta": { "m": 2 } }),
            json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }),
        ] {
            check(&result, false, result.clone());
        }
        let list = json!({ "content": [], "structuredContent": [1], "isError": false });
        check(&list, true, list.clone());
    }

    #[test]
    fn model_sees_structured_value_and_compact_json() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        for (result, expected) in [
            (
                r#"{ "content": [{ "type": "text", "text": "[ {} ]" }],
                     "structuredContent": { "id": 123456789012345678901234567890, "s": "a b" } }"#,
                json!([text(r#"{"id":123456789012345678901234567890,"s":"a b"}"#)]),
            ),
            (
                r#"{ "content": [{ "type": "text", "text": "two found" },
                                 { "type": "image", "data": "AA==", "mimeType": "image/png" }],
                     "structuredContent": [1, 2] }"#,
                json!([text("[1,2]"), image]),
            ),
            (
                r#"{ "content": [{ "type": "text", "text": "[\n \"x\" ]" }],
                     "structuredContent": { "content": "[\n \"x\" ]" } }"#,
                json!([text("[\n \"x\" ]")]),
            ),
            (
                r#"{ "content": [{ "type": "text", "text": "3 \"open\"" }],
                     "structuredContent": { "result": "3 \"open\"", "total": 3 } }"#,
                json!([text(r#"{"result":"3 \"open\"","total":3}"#)]),
            ),
            (
                r#"{ "isError": true, "content": [{ "type": "text", "text": "no" }],
                     "structuredContent": { "code": 7 } }"#,
                json!([text("no")]),
            ),
            (
                r#"{ "isError": true, "content": [], "structuredContent": { "code": 7 } }"#,
                json!([text(r#"{"code":7}"#)]),
            ),
            (
                r#"{ "content": [{ "type": "text", "text": "[\n { \"a \\\" b\": 1.0 }\n]" },
                                 { "type": "text", "text": "{ no JSON }" },
                                 { "type": "text", "text": " 1 " }] }"#,
                json!([
                    text(r#"[{"a \" b":1.0}]"#),
                    text("{ no JSON }"),
                    text(" 1 ")
                ]),
            ),
        ] {
            let result: &RawValue = serde_json::from_str(result).expect("JSON");
            let content = for_model(&server_result(result, true), result);
            assert_eq!(serde_json::to_value(content).expect("JSON"), expected);
        }
    }

    #[test]
    fn json_texts_get_structured_content() {
        for (text, expected) in [
            ("42\n", Some(json!({}))),
            (" [1]", Some(json!({}))),
            ("\"a\"", Some(json!({}))),
            ("{}", None),
            ("42\nwarning: no", None),
            ("", None),
        ] {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            protect_json_text(&mut result);
            assert_eq!(result.structured_content, expected, "{text:?}");
        }
    }

    #[test]
    fn unreadable_content_becomes_text() {
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let unknown = json!({ "content": [{ "type": "hologram", "data": 7 }] });
        check(&unknown, true, text("{\"type\":\"hologram\",\"data\":7}"));
        check(&json!({ "structuredContent": [1] }), false, text("[1]"));
        check(&json!({ "toolResult": [1] }), false, text("[1]"));
        check(&json!({}), false, json!({ "content": [] }));
        let mut both = text("1");
        both["structuredContent"] = json!(1);
        check(&both, false, text("1"));
    }
}
