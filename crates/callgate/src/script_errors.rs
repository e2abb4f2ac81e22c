//! The error that a script catches when a call fails.

use callgate_broker::{CallError, Ruling};
use callgate_sandbox::{ErrorClass, Thrown};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The error as the sandbox throws it. Its fields name the tool, so the message does so only
/// where the error has no other words.
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
            // The name that rules know: not `mcp.extract`.
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
        // A new kind of error must not pass for a result.
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

/// The fields of an `McpToolError`. Content of a server stays text: it may be nested deeper
/// than a parser here reads.
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
    // The fields are strings, numbers and JSON: they serialize.
    serde_json::to_string(fields).unwrap_or_else(|_| "{}".to_owned())
}

/// The fields of a denial: the rule as written, and its place.
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
