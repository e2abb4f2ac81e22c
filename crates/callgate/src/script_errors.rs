//! What a script catches of a call that failed: the broker's error, as the sandbox throws it.

use callgate_broker::{CallError, Ruling};
use callgate_sandbox::{ErrorClass, Thrown};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The error as it is thrown. Class and fields say which tool it was, so the
/// message is what happened, without the tool's name where it can be.
pub(crate) fn thrown(function: &str, error: CallError) -> Thrown {
    let shown = error.to_string();
    let (class, message, fields) = match error {
        CallError::Tool {
            server,
            content,
            structured_content,
            retryable,
            message,
            ..
        } => (
            ErrorClass::Tool,
            message,
            text(&ToolFields {
                tool: function,
                server: &server,
                content: &content,
                structured_content: structured_content.as_deref(),
                retryable,
            }),
        ),
        CallError::Protocol {
            server,
            code,
            message,
            data,
            retryable,
            ..
        } => (
            ErrorClass::Protocol,
            message,
            text(&ProtocolFields {
                tool: function,
                server: &server,
                code,
                data: data.as_deref(),
                retryable,
            }),
        ),
        CallError::Timeout {
            server,
            limit,
            retryable,
            ..
        } => (
            ErrorClass::Timeout,
            format!("{function} gave no answer within {} ms", limit.as_millis()),
            text(&json!({ "tool": function, "server": server, "retryable": retryable })),
        ),
        CallError::Denied {
            server,
            ruling,
            function: ruled,
            ..
        } => {
            // What rules know it by, which `mcp.extract` is not.
            let by = Some((&*ruling, ruled.as_str()));
            let fields = denied(function, &server, ruling.to_string(), by);
            (ErrorClass::Denied, shown, text(&fields))
        }
        CallError::Kept { server, reason, .. } => (
            ErrorClass::Denied,
            shown,
            text(&denied(function, &server, reason, None)),
        ),
        CallError::DryRun {
            server, decision, ..
        } => (
            ErrorClass::DryRun,
            shown,
            text(&json!({ "tool": function, "server": server, "decision": decision })),
        ),
        // A kind that is added later must not pass for a result.
        _ => {
            let fields = json!({ "tool": function });
            (ErrorClass::Protocol, shown, text(&fields))
        }
    };
    Thrown {
        class,
        message: message.into(),
        fields: fields.into(),
    }
}

/// The fields of an `McpToolError`. What a server sent stays text: it may be
/// nested deeper than anything here reads.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolFields<'a> {
    tool: &'a str,
    server: &'a str,
    content: &'a RawValue,
    structured_content: Option<&'a RawValue>,
    retryable: bool,
}

/// The fields of an `McpProtocolError`.
#[derive(Serialize)]
struct ProtocolFields<'a> {
    tool: &'a str,
    server: &'a str,
    code: i64,
    data: Option<&'a RawValue>,
    retryable: bool,
}

fn text(fields: &impl Serialize) -> String {
    // There is nothing in them that could not be written.
    serde_json::to_string(fields).unwrap_or_else(|_| "{}".to_owned())
}

/// What a script gets to know of a denial: the rule as it is written, and where.
fn denied(function: &str, server: &str, because: String, ruling: Option<(&Ruling, &str)>) -> Value {
    let (rule, written_in) = ruling.and_then(|(ruling, _)| ruling.written_rule()).unzip();
    json!({
        "tool": function,
        "server": server,
        "because": because,
        "rule": rule,
        "writtenIn": written_in,
        "advice": ruling.and_then(|(ruling, ruled)| ruling.advice(ruled)),
    })
}
