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

/// Why a text is not used as an expression: it is too long, too large once compiled, or does not
/// parse. Its `Display` is a clause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternFault(String);

/// Compiles an expression that ignores case.
pub(super) fn compile(pattern: &str) -> Result<Regex, PatternFault> {
    if pattern.len() > MAX_PATTERN {
        let bytes = pattern.len();
        let fault = format!("it has {bytes} bytes; the limit is {MAX_PATTERN}");
        return Err(PatternFault(fault));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder
        .case_insensitive(true)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(MAX_NESTING);
    builder.build().map_err(|error| {
        let text = error.to_string();
        PatternFault(match error {
            regex::Error::CompiledTooBig(_) => {
                "it is too large once compiled; use smaller counts".to_owned()
            }
            // It draws the place on lines of its own; the last one has the mistake.
            _ => {
                let last = text.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
        })
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
