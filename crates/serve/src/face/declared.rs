//! The functions in a description: as much of them as fits the budget.

use callgate::{Detail, Gate, Server, ToolInfo};

use super::sample::Sample;
use super::texts;

/// Bytes of a token, roughly, in declarations.
const TOKEN_BYTES: usize = 4;
/// The part of the budget that names may take. They cost in each turn, and each function is looked
/// up all the same.
const NAMES_PART: usize = 4;

/// The detail in which a description shows each function, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Nothing but its server.
    Servers,
    /// Its name.
    Names,
    /// Its signature in one line.
    Signatures,
    /// Its declaration with comments.
    Full,
}

/// The functions in a description.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) level: Level,
    /// The functions at this level.
    pub(crate) text: String,
    /// The declarations of those that are always on, at a lower level than the full one.
    pub(crate) always_on: String,
    /// The functions that are not known yet, as a clause.
    pub(crate) late: Option<String>,
    /// The number of functions, denied ones included.
    pub(crate) all: usize,
    /// The number of servers.
    pub(crate) servers: usize,
    pub(crate) denied: Vec<String>,
    /// A call of one of them.
    pub(crate) sample: Option<Sample>,
}

impl Declared {
    /// The richest level, up to `max`, that fits into so many tokens; names fit into a quarter of
    /// them.
    pub(crate) fn new(gate: &Gate, servers: &[Server], max: Level, tokens: usize) -> Self {
        let known = gate.tools();
        let all = known.len();
        let (denied, callable): (Vec<ToolInfo>, Vec<ToolInfo>) = known
            .into_iter()
            .partition(|tool| gate.denies(&tool.function));
        let functions: Vec<&str> = callable.iter().map(|it| it.function.as_str()).collect();
        let mut declared = Self {
            level: Level::Full,
            text: String::new(),
            always_on: String::new(),
            late: None,
            all,
            servers: servers.len(),
            denied: denied.into_iter().map(|tool| tool.function).collect(),
            sample: Sample::of(gate, &functions),
        };
        for level in [Level::Full, Level::Signatures, Level::Names] {
            if level > max {
                continue;
            }
            declared.level = level;
            declared.text = match level {
                Level::Full => gate.declarations_of(Detail::Full, &functions),
                Level::Signatures => gate.declarations_of(Detail::Signature, &functions),
                _ => texts::servers_with_names(servers, &callable),
            };
            let bytes = declared.text.len() + declared.always_on.len();
            tracing::info!(
                tools = all,
                ?level,
                bytes,
                budget = tokens,
                "tools in a description"
            );
            let is_short = level > Level::Names || fits(&declared.text, tokens / NAMES_PART);
            if is_short && bytes <= tokens.saturating_mul(TOKEN_BYTES) {
                return declared;
            }
            if level == Level::Full {
                declared.always_on = always_on(gate, &functions, tokens);
            }
        }
        (declared.level, declared.text) = (Level::Servers, texts::servers(servers));
        declared
    }
}

/// The declarations of the functions that are always on, as many as fit.
fn always_on(gate: &Gate, functions: &[&str], tokens: usize) -> String {
    let mut always_on = functions.to_vec();
    always_on.retain(|function| gate.always_on(function));
    let declare = |functions: &[&str]| gate.declarations_of(Detail::Full, functions);
    let (text, shown) = first_that_fit(&always_on, tokens, declare);
    if shown < always_on.len() {
        let always_on = always_on.len();
        tracing::warn!(
            shown,
            always_on,
            budget = tokens,
            "tools that are always on do not fit"
        );
    }
    text
}

fn fits(text: &str, tokens: usize) -> bool {
    text.len() <= tokens.saturating_mul(TOKEN_BYTES)
}

/// The text of the first names, as many as fit into so many tokens, and their number.
pub(crate) fn first_that_fit(
    names: &[&str],
    max: usize,
    text: impl Fn(&[&str]) -> String,
) -> (String, usize) {
    let first = |count: usize| text(names.get(..count).unwrap_or(names));
    // A text of thousands of names is made few times.
    let counts: Vec<usize> = (1..=names.len()).collect();
    let count = counts.partition_point(|count| fits(&first(*count), max));
    if count == 0 {
        return (String::new(), 0);
    }
    (first(count), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_fitting_prefix_is_declared() {
        let names = ["aaaa", "bbbb", "cccc", "dddd", "eeee"];
        for max in 0..=6 {
            let (text, count) = first_that_fit(&names, max, |names| names.concat());
            assert_eq!((text, count), (names[..max.min(5)].concat(), max.min(5)));
        }
        let long = first_that_fit(&names, 1, |names| "x".repeat(100 + names.len()));
        assert_eq!(long, (String::new(), 0));
    }
}
