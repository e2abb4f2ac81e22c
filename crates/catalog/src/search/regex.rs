//! Search by regular expression.

use regex::{Regex, RegexBuilder};

use super::document::{Document, MAX_DESCRIPTION, start_of};

/// Bytes of an expression.
const MAX_PATTERN: usize = 1_000;
/// Bytes that an expression may take once it is compiled, and as many again for
/// what is kept while it runs.
const MAX_COMPILED: usize = 256 * 1024;
/// Groups in groups.
const MAX_NESTING: u32 = 50;

/// Scores by the place where an expression fits.
const IN_NAME: f64 = 3.0;
const IN_TITLE: f64 = 2.0;
const IN_DESCRIPTION: f64 = 1.0;

/// Why a text is not used as an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// It is too long.
    #[error("it has {bytes} bytes; the limit is {limit}")]
    TooLong {
        /// Its length, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// It would take too much memory: large counts, or many classes.
    #[error("it is too large once compiled; use smaller counts")]
    TooLarge,
    /// It does not parse.
    #[error("{0}")]
    Syntax(String),
}

/// Compiles an expression that ignores case.
pub(super) fn compile(pattern: &str) -> Result<Regex, PatternFault> {
    if pattern.len() > MAX_PATTERN {
        return Err(PatternFault::TooLong {
            bytes: pattern.len(),
            limit: MAX_PATTERN,
        });
    }
    let mut builder = RegexBuilder::new(pattern);
    builder
        .case_insensitive(true)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(MAX_NESTING);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternFault::TooLarge,
        // It draws the place on lines of its own; the last one says what is wrong.
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            PatternFault::Syntax(last.trim_start_matches("error: ").to_owned())
        }
    })
}

/// The score of a tool that the expression fits.
pub(super) fn score(regex: &Regex, document: &Document) -> Option<f64> {
    let definition = &document.definition;
    if regex.is_match(&document.function) || regex.is_match(&definition.name) {
        return Some(IN_NAME);
    }
    let fits = |text: Option<&str>| {
        text.is_some_and(|text| regex.is_match(start_of(text, MAX_DESCRIPTION)))
    };
    if fits(definition.shown_title()) {
        return Some(IN_TITLE);
    }
    fits(definition.description.as_deref()).then_some(IN_DESCRIPTION)
}
