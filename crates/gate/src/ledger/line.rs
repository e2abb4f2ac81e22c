//! A call event as a line of a ledger file.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::events::CallEvent;
use super::file::LedgerOptions;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Event {
    /// The call is about to be sent.
    Before,
    /// The call is over.
    After,
    /// The call was not sent.
    NotSent,
}

/// The line of an event, with its line feed. A reader finds a line by its first two members behind
/// one that was cut off: quotation marks within texts are escaped.
pub(super) fn line(event: Event, call: &CallEvent<'_>, options: &LedgerOptions) -> Vec<u8> {
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
        // The server's words.
        outcome["message"] = Value::Null;
    }
    let end = json!({
        "tookMs": of.took_ms,
        "result": body(of.result_bytes.unwrap_or_default(), &of.result_sha256, call.result),
        "user": options.user,
    });
    // The line before the call has the decision and the arguments already.
    let parts = match event {
        Event::Before => vec![head, decided, end],
        Event::After => vec![head, outcome, end],
        Event::NotSent => vec![head, decided, outcome, end],
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
    let hash = Sha256::digest(text);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
