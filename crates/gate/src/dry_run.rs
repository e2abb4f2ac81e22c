//! Dry runs: which calls are sent, and what answers the others.

use std::collections::BTreeMap;

use callgate_catalog::Tool;
use callgate_policy::Pattern;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::authority::PendingCall;

/// The most bytes of arguments that are kept of one call that was not sent.
const KEPT_OF_ONE: usize = 64 * 1024;

/// The most bytes of arguments that are kept of all of them.
const KEPT_IN_ALL: usize = 16 * 1024 * 1024;

/// A dry run sends calls that only read, under the usual rules, and answers every other call in
/// its tool's place.
///
/// A call reads if its tool says so (`readOnlyHint`) and its server is marked trusted, or if its
/// function matches a pattern of `reads`.
#[derive(Debug, Clone, Default)]
pub struct DryRun {
    /// Functions that are treated as ones that only read.
    pub reads: Vec<Pattern>,
    /// Answers of calls that are not sent, by function. Without one, such a call throws.
    pub recorded: BTreeMap<String, Box<RawValue>>,
}

impl DryRun {
    /// True if a call is sent.
    pub(crate) fn sends(&self, tool: &Tool, is_trusted: bool) -> bool {
        let is_hinted = is_trusted && tool.definition.hints.read_only == Some(true);
        let mut patterns = self.reads.iter();
        is_hinted || patterns.any(|pattern| pattern.means(&tool.function, Some(&tool.other_names)))
    }

    /// The recorded answer of a tool, if there is one.
    pub(crate) fn recorded_for(&self, tool: &Tool) -> Option<Box<RawValue>> {
        let long = || self.recorded.get(tool.other_names.long()?);
        let value = self.recorded.get(&tool.function).or_else(long)?;
        Some(value.clone())
    }
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
    /// The arguments; `None` if they are over 64 KiB, or those of all calls
    /// over 16 MiB.
    pub arguments: Option<Box<RawValue>>,
    /// The size of the arguments, in bytes of JSON.
    pub argument_bytes: usize,
    /// The decision of the rules, in words.
    pub decision: String,
    /// True if a recorded result answered it, and not an error.
    pub recorded: bool,
}

/// The calls that a dry run did not send, in the order they were asked for.
#[derive(Default)]
pub(crate) struct WithheldCalls {
    pub(crate) calls: Vec<Withheld>,
    bytes: usize,
}

impl WithheldCalls {
    pub(crate) fn add(
        &mut self,
        ordinal: usize,
        call: &PendingCall<'_>,
        decision: &str,
        recorded: bool,
    ) {
        let (tool, text) = (call.tool, call.arguments.text());
        let fits = text.len() <= KEPT_OF_ONE && self.bytes + text.len() <= KEPT_IN_ALL;
        let shown = fits
            .then(|| RawValue::from_string(text.to_string()).ok())
            .flatten();
        if shown.is_some() {
            self.bytes += text.len();
        }
        self.calls.push(Withheld {
            ordinal,
            function: tool.function.clone(),
            server: tool.definition.server.clone(),
            tool: tool.definition.name.clone(),
            line: call.line,
            arguments: shown,
            argument_bytes: text.len(),
            decision: decision.to_owned(),
            recorded,
        });
    }
}
