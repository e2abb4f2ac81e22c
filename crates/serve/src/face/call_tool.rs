//! Calls of servers' tools without a script.

use callgate::{CallError, CallRequest, Called, Gate, code};
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, JsonObject, ResultType};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::own_tools::{self, CALL_TOOL};

/// The code of a server that needs a capability which the client lacks.
const MISSING_CAPABILITY: i64 = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0 as i64;

/// The arguments of `call_tool`.
#[derive(Deserialize)]
pub(crate) struct CallArguments {
    pub(crate) name: String,
    pub(crate) args: Option<JsonObject>,
}

impl CallArguments {
    /// Reads the arguments, and looks the tool up.
    pub(crate) async fn read(gate: &Gate, given: Option<&JsonObject>) -> Result<Self, String> {
        let given: Self = own_tools::read(CALL_TOOL, given)?;
        if gate.finds_tool(&given.name).await {
            return Ok(given);
        }
        Err(match gate.unavailable_server_of(&given.name) {
            Some(server) => server.reason.clone(),
            None => gate.unknown_tool_message(&given.name),
        })
    }

    /// The call, and the function with its arguments as one text.
    pub(crate) fn into_call(self) -> serde_json::Result<(CallRequest, String)> {
        let args = to_raw_value(&self.args.unwrap_or_default())?;
        let described = format!("{} {args}", self.name);
        Ok((CallRequest::new(self.name, args).whole(), described))
    }
}

/// The client's answer. `any_result`: the client's revision knows structured results that are no
/// objects (2026-07-28).
pub(crate) fn answer(called: Called, any_result: bool) -> Result<CallToolResult, ErrorData> {
    match called.result {
        Ok(result) => Ok(server_result(&result, any_result)),
        Err(CallError::Protocol {
            code,
            message,
            data,
            ..
        }) if any_result && code == MISSING_CAPABILITY => {
            let code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY;
            let data = data.and_then(|data| serde_json::to_value(data).ok());
            Err(ErrorData::new(code, message, data))
        }
        Err(error) => {
            let mut blocks = vec![ContentBlock::text(error.to_string())];
            blocks.extend(mismatched_result(&error));
            Ok(CallToolResult::error(blocks))
        }
    }
}

/// The result of a tool that does not fit the tool's output schema. The call was made, so the
/// model sees the result, but not as a structured value.
fn mismatched_result(error: &CallError) -> Vec<ContentBlock> {
    #[derive(Deserialize)]
    struct Mismatch<'a> {
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
    let Ok(Mismatch { result }) = serde_json::from_str(data.get()) else {
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

/// A server's own result, rewritten only where a client could not read it.
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
    shown.structured_content = members.remove("structuredContent");
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
    fn unreadable_content_becomes_text() {
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let unknown = json!({ "content": [{ "type": "hologram", "data": 7 }] });
        check(&unknown, true, text("{\"type\":\"hologram\",\"data\":7}"));
        check(&json!({ "structuredContent": [1] }), false, text("[1]"));
        check(&json!({}), false, json!({ "content": [] }));
        let mut both = text("1");
        both["structuredContent"] = json!(1);
        check(&both, false, text("1"));
    }
}
