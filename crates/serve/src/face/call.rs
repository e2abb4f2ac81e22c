//! Calls of servers' tools without a script: what is asked for, and what comes
//! back of it, as unchanged as it can.

use callgate::{CallError, CallRequest, Called, Gate, code};
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, JsonObject, ResultType};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::own::CALL_TOOL;
use crate::arguments::Arguments;
use crate::runs::Direct;

/// The code of a server's answer that its client lacks a capability.
const LACKING: i64 = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0 as i64;

/// What `call_tool` asks for: a tool's name, and its arguments.
///
/// # Errors
///
/// What is wrong with the arguments, for the model to mend.
pub(crate) async fn asked(
    gate: &Gate,
    given: Option<&JsonObject>,
) -> Result<(String, Option<JsonObject>), String> {
    let mut arguments = Arguments::of(CALL_TOOL, given);
    let name = arguments.text("name", "the name of a tool");
    let args = arguments.object("args", "the tool's arguments").cloned();
    arguments.check()?;
    if gate.finds_tool(name).await {
        return Ok((name.to_owned(), args));
    }
    Err(match gate.unavailable_server_of(name) {
        Some(server) => server.reason.clone(),
        None => gate.unknown_tool_message(name),
    })
}

/// The call of a server's tool. `is_newest` says whether the client's revision is
/// 2026-07-28 or later, which knows structured results that are no objects.
///
/// # Errors
///
/// Why the arguments cannot be sent.
pub(crate) fn direct(
    function: String,
    args: Option<&JsonObject>,
    is_newest: bool,
) -> Result<Direct, String> {
    let args = serde_json::to_string(&args.unwrap_or(&JsonObject::new()));
    let args = args.map_err(|error| error.to_string())?;
    let told_by = format!("{function} {args}");
    let args = RawValue::from_string(args).map_err(|error| error.to_string())?;
    Ok(Direct {
        request: CallRequest::new(function.as_str(), args).whole(),
        told_by,
        answer: Box::new(move |called| result(called, is_newest)),
    })
}

/// What the client gets of a call.
///
/// # Errors
///
/// That the client lacks a capability which the server needs: that is told to
/// clients, not to models (MCP 2026-07-28, "Capability Negotiation").
fn result(called: Called, is_newest: bool) -> Result<CallToolResult, ErrorData> {
    match called.result {
        Ok(result) => Ok(server_result(&result, is_newest)),
        Err(CallError::Protocol {
            code,
            message,
            data,
            ..
        }) if is_newest && code == LACKING => {
            let code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
            let data = data.and_then(|data| serde_json::to_value(data).ok());
            Err(ErrorData::new(code, message, data))
        }
        // The model can do something about most of these, so it is told.
        Err(error) => {
            let mut blocks = vec![ContentBlock::text(error.to_string())];
            blocks.extend(misfit(&error));
            Ok(CallToolResult::error(blocks))
        }
    }
}

/// What the tool answered, where that is not what it declares: the call was made,
/// and cannot be taken back. No client takes it for a value of the declared type.
fn misfit(error: &CallError) -> Vec<ContentBlock> {
    #[derive(Deserialize)]
    struct Misfit<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    let CallError::Protocol {
        code: code::RESULT_MISMATCH,
        data: Some(data),
        ..
    } = error
    else {
        return Vec::new();
    };
    let Ok(Misfit { result }) = serde_json::from_str(data.get()) else {
        return Vec::new();
    };
    let mut answered = server_result(result, true);
    if let Some(value) = answered.structured_content.take()
        && answered.content.is_empty()
    {
        answered.content.push(ContentBlock::text(value.to_string()));
    }
    answered.content
}

/// A server's own result. What a client could not read is put in another way.
fn server_result(result: &RawValue, any_result: bool) -> CallToolResult {
    let Ok(Value::Object(mut members)) = serde_json::from_str(result.get()) else {
        return CallToolResult::success(vec![ContentBlock::text(result.get())]);
    };
    let mut shown = CallToolResult::success(Vec::new());
    shown.result_type = Some(ResultType::COMPLETE);
    shown.is_error = match members.remove("isError") {
        Some(Value::Bool(is_error)) => Some(is_error),
        _ => None,
    };
    if let Some(Value::Array(blocks)) = members.remove("content") {
        shown.content = blocks.into_iter().map(block).collect();
    }
    shown.meta = members
        .remove("_meta")
        .and_then(|meta| serde_json::from_value(meta).ok());
    shown.structured_content = members.remove("structuredContent");
    if !any_result
        && let Some(value) = shown.structured_content.take_if(|value| !value.is_object())
        && shown.content.is_empty()
    {
        shown.content.push(ContentBlock::text(value.to_string()));
    }
    shown
}

/// A block of content; one of a kind that nobody knows is shown as its text.
fn block(block: Value) -> ContentBlock {
    let text = || ContentBlock::text(block.to_string());
    serde_json::from_value(block.clone()).unwrap_or_else(|_unknown| text())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn check(result: Value, any_result: bool, expected: Expect) {
        let result = to_raw_value(&result).expect("JSON");
        let shown = server_result(&result, any_result);
        expected.assert_eq(&serde_json::to_string(&shown).expect("JSON"));
    }

    #[test]
    fn what_clients_know_stays() {
        let content = json!([
            { "type": "text", "text": "a", "annotations": { "audience": ["user"] } },
            { "type": "image", "data": "AA==", "mimeType": "image/png" },
            { "type": "audio", "data": "AA==", "mimeType": "audio/wav", "_meta": { "k": 1 } },
            { "type": "resource", "resource": { "uri": "x:y", "text": "t" } },
            { "type": "resource_link", "uri": "x:y", "name": "n" },
        ]);
        check(
            json!({ "content": content, "structuredContent": { "a": 1 }, "_meta": { "m": 2 } }),
            false,
            expect![[
                r#"{"resultType":"complete","content":[{"type":"text","text":"a","annotations":{"audience":["user"]}},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav","_meta":{"k":1}},{"type":"resource","resource":{"uri":"x:y","text":"t"}},{"type":"resource_link","uri":"x:y","name":"n"}],"structuredContent":{"a":1},"_meta":{"m":2}}"#
            ]],
        );
        check(
            json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }),
            false,
            expect![[
                r#"{"resultType":"complete","content":[{"type":"text","text":"no"}],"isError":true}"#
            ]],
        );
        check(
            json!({ "content": [], "structuredContent": [1], "isError": false }),
            true,
            expect![[
                r#"{"resultType":"complete","content":[],"structuredContent":[1],"isError":false}"#
            ]],
        );
    }

    #[test]
    fn what_they_do_not_is_put_in_another_way() {
        check(
            json!({ "content": [{ "type": "hologram", "data": 7 }, 8] }),
            true,
            expect![[
                r#"{"resultType":"complete","content":[{"type":"text","text":"{\"type\":\"hologram\",\"data\":7}"},{"type":"text","text":"8"}]}"#
            ]],
        );
        check(
            json!({ "structuredContent": [1] }),
            false,
            expect![[r#"{"resultType":"complete","content":[{"type":"text","text":"[1]"}]}"#]],
        );
        check(
            json!({ "content": [{ "type": "text", "text": "1" }], "structuredContent": 1 }),
            false,
            expect![[r#"{"resultType":"complete","content":[{"type":"text","text":"1"}]}"#]],
        );
        check(
            json!({}),
            false,
            expect![[r#"{"resultType":"complete","content":[]}"#]],
        );
        check(
            json!(7),
            false,
            expect![[
                r#"{"resultType":"complete","content":[{"type":"text","text":"7"}],"isError":false}"#
            ]],
        );
    }
}
