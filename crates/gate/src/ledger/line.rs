//! A call event as a line of a ledger file.

use std::borrow::Cow;

use callgate_policy::flow::FlowRecord;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::events::CallEvent;
use super::file::LedgerOptions;
use super::outcome::Outcome;

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

/// The members of a line, in their order. A reader finds a line by the first two behind one that
/// was cut off: quotation marks within texts are escaped.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    v: u8,
    event: Event,
    run: &'a str,
    call: usize,
    time: String,
    function: &'a str,
    server: &'a str,
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'a str>,
    /// JSON within a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    flows: &'a [FlowRecord],
    #[serde(skip_serializing_if = "super::call_line::is_zero")]
    more_flows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Body<'a>>,
    #[serde(flatten)]
    outcome: Option<Cow<'a, Outcome>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Body<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
}

/// Arguments or a result.
#[derive(Serialize)]
struct Body<'a> {
    bytes: usize,
    sha256: &'a str,
    /// The JSON, as a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

/// The line of an event, with its line feed.
pub(super) fn line(
    event: Event,
    call: &CallEvent<'_>,
    options: &LedgerOptions,
) -> serde_json::Result<Vec<u8>> {
    let of = call.line;
    let text = |body| Option::filter(body, |_: &&str| options.bodies);
    // The line before the call has the decision and the arguments already.
    let is_first = event != Event::After;
    let line = Line {
        v: 1,
        event,
        run: call.run,
        call: of.ordinal,
        time: format!("{:.3}", call.time),
        function: &of.function,
        server: &of.server,
        tool: &of.tool,
        decision: Some(of.decision.as_str()).filter(|text| is_first && !text.is_empty()),
        rule: call
            .rule
            .filter(|_| is_first)
            .map(|rule| rule.to_json().to_string()),
        flows: if is_first { &of.flows } else { &[] },
        more_flows: if is_first { of.more_flows } else { 0 },
        arguments: of
            .argument_sha256
            .as_deref()
            .filter(|_| is_first)
            .map(|sha256| Body {
                bytes: of.argument_bytes,
                sha256,
                text: text(call.arguments),
            }),
        outcome: match event {
            Event::Before => None,
            _ if options.bodies => Some(Cow::Borrowed(&of.outcome)),
            _ => Some(Cow::Owned(of.outcome.without_message())),
        },
        took_ms: of.took_ms,
        result: of.result_sha256.as_deref().map(|sha256| Body {
            bytes: of.result_bytes.unwrap_or_default(),
            sha256,
            text: text(call.result),
        }),
        user: options.user.as_deref(),
    };
    let mut line = serde_json::to_vec(&line)?;
    line.push(b'\n');
    Ok(line)
}

/// SHA-256 in hexadecimal.
pub(super) fn digest(text: &str) -> String {
    let hash = Sha256::digest(text);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
