//! Dry runs: the calls that are sent, and the answers to all others.

use std::collections::BTreeMap;

use callgate_catalog::Tool;
use callgate_policy::{Pattern, RuleError};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::pending_call::PendingCall;

/// The limit of the arguments that are kept of one call that was not sent, in bytes.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// The same limit for all calls together.
const MAX_ALL_ARGUMENTS: usize = 16 * 1024 * 1024;

/// A dry run sends calls that only read, under the usual rules, and answers every other call in
/// its tool's place: with a recorded result, else with a small made-up one that fits the tool's
/// `outputSchema`, else with an error.
///
/// A call reads if its tool says so (`readOnlyHint`) and its server is marked trusted, or if its
/// function matches a pattern of `reads`.
#[derive(Debug, Clone, Default)]
pub struct DryRun {
    /// Functions that are treated as ones that only read.
    #[doc(hidden)]
    pub reads: Vec<Pattern>,
    /// Answers of calls that are not sent, by function.
    pub recorded: BTreeMap<String, Box<RawValue>>,
}

impl DryRun {
    /// Treats functions that match a pattern, such as `crm_get_*`, as ones that only read.
    ///
    /// # Errors
    ///
    /// [`RuleError`] for a pattern that could never match.
    pub fn read(mut self, pattern: &str) -> Result<Self, RuleError> {
        self.reads.push(pattern.parse()?);
        Ok(self)
    }

    pub(crate) fn sends(&self, tool: &Tool, is_trusted: bool) -> bool {
        let is_hinted = is_trusted && tool.definition.hints.read_only == Some(true);
        let mut patterns = self.reads.iter();
        is_hinted || patterns.any(|pattern| pattern.matches(tool.name(), true))
    }
}

/// A made-up result of a tool: a value that fits its `outputSchema`, or without one an empty text.
/// `None` if no such value is found.
pub(crate) fn made_up(tool: &Tool) -> Option<Box<RawValue>> {
    let value = match &tool.definition.output_schema {
        Some(declared) => declared.stand_in()?,
        None => Value::String(String::new()),
    };
    to_raw_value(&value).ok()
}

/// A call that a dry run did not send.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Withheld {
    /// Its number in the ledger, from 1.
    pub ordinal: usize,
    /// The generated function name.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The script's line, from 1, where it is known.
    pub line: Option<u32>,
    /// The arguments; `None` if they are over 64 KiB, or those of all calls together over 16 MiB.
    pub arguments: Option<Box<RawValue>>,
    /// The size of the arguments, in bytes of JSON.
    pub argument_bytes: usize,
    /// The decision of the rules, in words.
    pub decision: String,
    /// True if a recorded result answered it.
    pub recorded: bool,
    /// True if a made-up result answered it. If neither did, it was an error.
    pub made_up: bool,
}

/// The calls that a dry run did not send, in order.
#[derive(Default)]
pub(crate) struct WithheldCalls {
    pub(crate) calls: Vec<Withheld>,
    bytes: usize,
}

impl WithheldCalls {
    /// Adds a call that a result answers, recorded or made up, or an error.
    pub(crate) fn add(
        &mut self,
        call: &PendingCall<'_>,
        decision: &str,
        is_recorded: bool,
        is_made_up: bool,
    ) {
        let (tool, text) = (call.tool, call.arguments.text());
        let fits = text.len() <= MAX_ARGUMENTS && self.bytes + text.len() <= MAX_ALL_ARGUMENTS;
        let shown = fits
            .then(|| RawValue::from_string(text.to_string()).ok())
            .flatten();
        if shown.is_some() {
            self.bytes += text.len();
        }
        self.calls.push(Withheld {
            ordinal: call.ordinal,
            function: tool.function.clone(),
            server: tool.definition.server.clone(),
            tool: tool.definition.name.clone(),
            line: call.line,
            arguments: shown,
            argument_bytes: text.len(),
            decision: decision.to_owned(),
            recorded: is_recorded,
            made_up: is_made_up,
        });
    }
}
