//! The error that a script catches when a call fails.

use callgate_gate::{CallError, CallErrorKind};
use callgate_sandbox::{ErrorClass, Thrown};
use serde::Serialize;
use serde_json::{Value, json};

/// The error as the sandbox throws it. Its fields name the tool, so the message does so only
/// where the error has no other words.
pub(crate) fn thrown(function: &str, error: CallError) -> Thrown {
    let shown = error.to_string();
    // The name that rules know: not `mcp.extract`.
    let ruled = error.function.as_str();
    let (class, message, fields) = match &error.kind {
        CallErrorKind::Tool { message, .. } => (ErrorClass::Tool, message.clone(), None),
        CallErrorKind::Protocol { message, .. } => (ErrorClass::Protocol, message.clone(), None),
        CallErrorKind::Timeout { limit, unused, .. } => {
            let within = limit.as_millis();
            let message = format!("{function} gave no answer within {within} ms{unused}");
            (ErrorClass::Timeout, message, None)
        }
        CallErrorKind::Denied(ruling) => {
            let (rule, written_in) = ruling.written_rule().unzip();
            let fields = json!({
                "because": ruling.to_string(),
                "rule": rule,
                "writtenIn": written_in,
                "advice": ruling.advice(ruled),
            });
            (ErrorClass::Denied, shown, Some(fields))
        }
        CallErrorKind::Kept { reason } => {
            let advice = "the call was made, and only the operator can change the check that keeps \
                          its result";
            let fields =
                json!({ "because": reason, "rule": null, "writtenIn": null, "advice": advice });
            (ErrorClass::Denied, shown, Some(fields))
        }
        CallErrorKind::DryRun { .. } => (ErrorClass::DryRun, shown, None),
        // A new kind of error must not pass for a result.
        _ => (ErrorClass::Protocol, shown, None),
    };
    let (tool, server) = (function, error.server.as_str());
    let fields = match fields {
        Some(own) => text(&Fields { tool, server, own }),
        // Content of a server stays text: it may be nested deeper than a parser here reads.
        None => text(&Fields {
            tool,
            server,
            own: &error.kind,
        }),
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

/// The fields of an error: those of every kind, and its own.
#[derive(Serialize)]
struct Fields<'a, T> {
    tool: &'a str,
    server: &'a str,
    #[serde(flatten)]
    own: T,
}

fn text(fields: &impl Serialize) -> String {
    // Strings, numbers and JSON always serialize.
    serde_json::to_string(fields).unwrap_or_else(|_| "{}".to_owned())
}
