//! A run that changes nothing: which calls go, and what answers the others.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use callgate_policy::{Pattern, PatternError};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::judge::Case;
use crate::target::Target;

/// Bytes of arguments that are kept of the calls not made, for one call.
const KEPT_OF_ONE: usize = 64 * 1024;

/// Bytes of arguments that are kept of them in all.
const KEPT_IN_ALL: usize = 16 * 1024 * 1024;

/// How a dry run goes: calls that only read are made, under the same rules as
/// ever; every other call is answered in its tool's place.
///
/// A call reads if its tool says so (`readOnlyHint`) and its server is marked
/// trusted, or if its function matches a pattern of [`DryRun::reads`]. The word
/// of a server that is not trusted counts for nothing.
#[derive(Clone, Default)]
pub struct DryRun {
    reads: Vec<Pattern>,
    recorded: HashMap<String, Arc<RawValue>>,
}

impl DryRun {
    /// A dry run without anything recorded: a call that is not made throws.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the functions that match for ones that only read, by the word of
    /// whoever runs the script.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for a pattern that could never match.
    pub fn reads(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.reads.push(Pattern::new(pattern)?);
        Ok(self)
    }

    /// Answers the calls of a function that are not made with this value.
    #[must_use]
    pub fn recorded(mut self, function: impl Into<String>, value: Box<RawValue>) -> Self {
        self.recorded.insert(function.into(), value.into());
        self
    }

    /// The patterns of functions that are taken for ones that only read.
    #[must_use]
    pub fn patterns(&self) -> &[Pattern] {
        &self.reads
    }

    /// The functions that something is recorded for, in the order of their names.
    #[must_use]
    pub fn functions(&self) -> Vec<&str> {
        let mut functions: Vec<&str> = self.recorded.keys().map(String::as_str).collect();
        functions.sort_unstable();
        functions
    }

    /// Whether a call is made.
    pub(crate) fn makes(&self, target: &Target, trusted: bool) -> bool {
        let said = trusted && target.hints.read_only == Some(true);
        said || self
            .reads
            .iter()
            .any(|pattern| pattern.matches(&target.function))
    }

    /// What answers a call that is not made, if something is recorded for it.
    pub(crate) fn answer(&self, function: &str) -> Option<Box<RawValue>> {
        self.recorded
            .get(function)
            .map(|value| value.as_ref().to_owned())
    }
}

impl fmt::Debug for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DryRun")
            .field("reads", &self.reads)
            .field("recorded", &self.recorded.keys())
            .finish()
    }
}

/// A call that a dry run did not make.
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
    /// What the rules say of it, in words.
    pub decision: String,
    /// Whether a recorded result answered it; an error did if not.
    pub recorded: bool,
}

/// The calls that a dry run did not make, in the order they were asked for.
#[derive(Default)]
pub(crate) struct WithheldCalls {
    calls: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    calls: Vec<Withheld>,
    bytes: usize,
}

impl WithheldCalls {
    pub(crate) fn add(&self, ordinal: usize, case: &Case<'_>, decision: &str, recorded: bool) {
        let (target, arguments) = (case.target, case.text);
        let mut kept = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = arguments.len() <= KEPT_OF_ONE && kept.bytes + arguments.len() <= KEPT_IN_ALL;
        let text = fits
            .then(|| RawValue::from_string(arguments.to_owned()).ok())
            .flatten();
        if text.is_some() {
            kept.bytes += arguments.len();
        }
        kept.calls.push(Withheld {
            ordinal,
            function: target.function.clone(),
            server: target.server.clone(),
            tool: target.tool.clone(),
            line: case.place.map(|place| place.line),
            arguments: text,
            argument_bytes: arguments.len(),
            decision: decision.to_owned(),
            recorded,
        });
    }

    pub(crate) fn snapshot(&self) -> Vec<Withheld> {
        let kept = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        kept.calls.clone()
    }
}
