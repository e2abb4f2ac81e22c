//! The error that a script catches when a call fails.

use callgate_gate::{CallError, Ruling};
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
        } => {
            let fields = ToolFields {
                tool: function,
                server: &server,
                content: &content,
                structured_content: structured_content.as_deref(),
                retryable,
            };
            (ErrorClass::Tool, message, text(&fields))
        }
        CallError::Protocol {
            server,
            code,
            message,
            data,
            retryable,
            ..
        } => {
            let fields = ProtocolFields {
                tool: function,
                server: &server,
                code,
                data: data.as_deref(),
                retryable,
            };
            (ErrorClass::Protocol, message, text(&fields))
        }
        CallError::Timeout {
            server,
            limit,
            unused,
            retryable,
            ..
        } => {
            let within = limit.as_millis();
            let message = format!("{function} gave no answer within {within} ms{unused}");
            let fields = json!({ "tool": function, "server": server, "retryable": retryable });
            (ErrorClass::Timeout, message, text(&fields))
        }
        CallError::Denied {
            server,
            ruling,
            function: ruled,
            ..
        } => {
            // The name that rules know: not `mcp.extract`.
            let advice = ruling.advice(&ruled);
            let because = ruling.to_string();
            let fields = denied(function, &server, &because, Some(&ruling), &advice);
            (ErrorClass::Denied, shown, text(&fields))
        }
        CallError::Kept { server, reason, .. } => {
            let advice = "the call was made, and only the operator can change the check that keeps \
                          its result";
            let fields = denied(function, &server, &reason, None, advice);
            (ErrorClass::Denied, shown, text(&fields))
        }
        CallError::DryRun {
            server, decision, ..
        } => {
            let fields = json!({ "tool": function, "server": server, "decision": decision });
            (ErrorClass::DryRun, shown, text(&fields))
        }
        // A new kind of error must not pass for a result.
        _ => (
            ErrorClass::Protocol,
            shown,
            text(&json!({ "tool": function })),
        ),
    };
    Thrown {
        class,
        message,
        fields,
    }
}

/// An error of one of the host's own functions.
pub(crate) fn own_error(class: ErrorClass, message: String, fields: &Value) -> Thrown {
    Thrown {
        class,
        message,
        fields: fields.to_string(),
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
    // Strings, numbers and JSON always serialize.
    serde_json::to_string(fields).unwrap_or_else(|_| "{}".to_owned())
}

/// The fields of a denial, with the rule as written and its place.
fn denied(
    function: &str,
    server: &str,
    because: &str,
    ruling: Option<&Ruling>,
    advice: &str,
) -> Value {
    let (rule, written_in) = ruling.and_then(Ruling::written_rule).unzip();
    json!({
        "tool": function,
        "server": server,
        "because": because,
        "rule": rule,
        "writtenIn": written_in,
        "advice": advice,
    })
}
