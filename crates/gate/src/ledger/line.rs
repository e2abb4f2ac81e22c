//! A call event as a line of a ledger file.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::events::CallEvent;
use super::file::LedgerOptions;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum LineKind {
    /// The call is about to be sent.
    Before,
    /// The call ended.
    After,
    /// The call was not sent.
    NotSent,
}

/// The line of an event, with its line feed. A reader that looks for the first two members finds a
/// line even after one that was cut off: quotation marks in texts are escaped.
pub(super) fn line(event: LineKind, call: &CallEvent<'_>, options: &LedgerOptions) -> Vec<u8> {
    let of = call.line;
    let body = |bytes: usize, sha256: &Option<String>, text: Option<&str>| {
        let mut body = json!({ "bytes": bytes, "sha256": sha256.as_deref()? });
        if let Some(text) = text.filter(|_| options.bodies) {
            body["text"] = text.into();
        }
        Some(body)
    };
    let head = json!({
        "v": 1,
        "event": event,
        "run": call.run,
        "call": of.ordinal,
        "time": format!("{:.3}", call.time),
        "function": of.function,
        "server": of.server,
        "tool": of.tool,
    });
    let decided = json!({
        "decision": Some(&of.decision).filter(|text| !text.is_empty()),
        "answer": of.answer,
        "rule": call.rule.map(|rule| rule.to_json().to_string()),
        "flows": Some(&of.flows).filter(|flows| !flows.is_empty()),
        "moreFlows": Some(of.more_flows).filter(|more| *more > 0),
        "arguments": body(of.argument_bytes, &of.argument_sha256, call.arguments),
    });
    let mut outcome = json!(of.outcome);
    if !options.bodies {
        // It quotes the server.
        outcome["message"] = Value::Null;
    }
    let end = json!({
        "tookMs": of.took_ms,
        "result": body(of.result_bytes.unwrap_or_default(), &of.result_sha256, call.result),
        "user": options.user,
    });
    // The line before the call has the decision and the arguments already.
    let parts = match event {
        LineKind::Before => vec![head, decided, end],
        LineKind::After => vec![head, outcome, end],
        LineKind::NotSent => vec![head, decided, outcome, end],
    };
    let parts = parts.into_iter().filter_map(|part| match part {
        Value::Object(members) => Some(members),
        _ => None,
    });
    let mut line: Map<String, Value> = parts.flatten().collect();
    line.retain(|_, member| !member.is_null());
    format!("{}\n", Value::Object(line)).into_bytes()
}

/// SHA-256 in hexadecimal.
pub(super) fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}
