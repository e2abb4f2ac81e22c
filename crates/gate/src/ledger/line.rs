//! An event as a line of a ledger file.

use serde_json::{Map, Value, json};

use super::chain::{Chain, digest};
use super::events::{CallEvent, LedgerEvent};
use super::file::LedgerOptions;

/// The first bytes of every line. Quotation marks in texts are escaped, so no text has them.
pub(super) const START: &str = r#"{"v":1,"event":""#;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// The run began.
    RunStarted,
    /// The call is about to be sent.
    Before,
    /// The call ended.
    After,
    /// The call was not sent.
    NotSent,
    /// The run ended.
    RunEnded,
}

impl LineKind {
    /// The value of the line's `event`.
    fn name(self) -> &'static str {
        match self {
            Self::RunStarted => "runStarted",
            Self::Before => "before",
            Self::After => "after",
            Self::NotSent => "notSent",
            Self::RunEnded => "runEnded",
        }
    }

    /// True if the line is about the run itself, and so in its writer's chain, too.
    pub(super) fn is_of_run(self) -> bool {
        matches!(self, Self::RunStarted | Self::RunEnded)
    }
}

/// A line whose place in its chains is open until it is written.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) kind: LineKind,
    pub(super) run: String,
    pub(super) time: String,
    /// The other members, as JSON without the first brace.
    pub(super) rest: String,
}

impl Line {
    /// The line of an event.
    pub(super) fn of(event: &LedgerEvent<'_>, options: &LedgerOptions) -> Self {
        let (kind, run, time, mut parts) = match event {
            LedgerEvent::RunStarted {
                run,
                time,
                script,
                client,
                rules,
                flows,
            } => {
                // In the order in which they are written.
                let rules = json!([rules.to_json(), flows.to_json()]);
                let members = json!({
                    "script": script.map(|script| {
                        body(script.len(), &digest(script), Some(script), options)
                    }),
                    "client": client,
                    "program": env!("CARGO_PKG_VERSION"),
                    "rules": digest(&rules.to_string()),
                });
                (LineKind::RunStarted, *run, time, vec![members])
            }
            LedgerEvent::CallDecided(call) => {
                let parts = call_parts(LineKind::Before, call, options);
                (LineKind::Before, call.run, &call.time, parts)
            }
            LedgerEvent::CallEnded(call) => {
                let kind = if call.was_sent {
                    LineKind::After
                } else {
                    LineKind::NotSent
                };
                (kind, call.run, &call.time, call_parts(kind, call, options))
            }
            LedgerEvent::RunEnded {
                run,
                time,
                status,
                total_ms,
                script_ms,
                calls,
                denied,
                failed,
            } => {
                let members = json!({
                    "status": status,
                    "totalMs": total_ms,
                    "scriptMs": script_ms,
                    "calls": calls,
                    "denied": denied,
                    "failed": failed,
                });
                (LineKind::RunEnded, *run, time, vec![members])
            }
        };
        parts.push(json!({ "user": options.user }));
        let parts = parts.into_iter().filter_map(|part| match part {
            Value::Object(members) => Some(members),
            _ => None,
        });
        let mut members: Map<String, Value> = parts.flatten().collect();
        members.retain(|_, member| !member.is_null());
        let text = Value::Object(members).to_string();
        Self {
            kind,
            run: run.to_owned(),
            time: format!("{time:.3}"),
            rest: text.strip_prefix('{').unwrap_or(&text).to_owned(),
        }
    }

    /// The text of the line, without its line feed, as the next one of its run and, if it is
    /// about the run itself, of its writer.
    pub(super) fn text(&self, of_run: &Chain, writer: &str, of_writer: &Chain) -> String {
        let (event, run) = (self.kind.name(), Value::from(self.run.as_str()));
        let mut text = format!(r#"{START}{event}","run":{run},{}"#, of_run.next());
        if self.kind.is_of_run() {
            text += &format!(r#","writer":{{"id":"{writer}",{}}}"#, of_writer.next());
        }
        text + &format!(r#","time":"{}",{}"#, self.time, self.rest)
    }
}

/// The size and the hash of a text, and the text itself if the ledger has bodies.
fn body(bytes: usize, sha256: &str, text: Option<&str>, options: &LedgerOptions) -> Value {
    let mut body = json!({ "bytes": bytes, "sha256": sha256 });
    if let Some(text) = text.filter(|_| options.bodies) {
        body["text"] = text.into();
    }
    body
}

/// The members of a call's line, in parts.
fn call_parts(kind: LineKind, call: &CallEvent<'_>, options: &LedgerOptions) -> Vec<Value> {
    let of = call.line;
    let hashed = |bytes: usize, sha256: &Option<String>, text: Option<&str>| {
        Some(body(bytes, sha256.as_deref()?, text, options))
    };
    let head = json!({
        "call": of.ordinal,
        "function": of.function,
        "server": of.server,
        "tool": of.tool,
    });
    let decided = json!({
        "decision": Some(&of.decision).filter(|text| !text.is_empty()),
        "answer": of.answer,
        "answeredBy": of.answered_by,
        "answeredVia": of.answered_via,
        "answerReason": of.answer_reason,
        "edited": Some(true).filter(|_| of.edited),
        "rule": call.rule.map(|rule| rule.to_json().to_string()),
        "flows": Some(&of.flows).filter(|flows| !flows.is_empty()),
        "moreFlows": Some(of.more_flows).filter(|more| *more > 0),
        "arguments": hashed(of.argument_bytes, &of.argument_sha256, call.arguments),
    });
    let mut outcome = json!(of.outcome);
    if !options.bodies {
        // It quotes the server.
        outcome["message"] = Value::Null;
    }
    let end = json!({
        "tookMs": of.took_ms,
        "result": hashed(of.result_bytes.unwrap_or_default(), &of.result_sha256, call.result),
    });
    // The line before the call has the decision and the arguments already.
    match kind {
        LineKind::Before => vec![head, decided, end],
        LineKind::NotSent => vec![head, decided, outcome, end],
        _ => vec![head, outcome, end],
    }
}
