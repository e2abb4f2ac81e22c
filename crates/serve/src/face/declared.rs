//! The functions in a tool's description, in as much detail as the budget allows.

use callgate::settings::Detail;
use callgate::{Gate, Server, ToolInfo};

use super::sample::Sample;
use super::texts;

/// Bytes of a token, roughly, in declarations.
const TOKEN_BYTES: usize = 4;
/// Names may take one part in four of the budget: they cost tokens in each turn, and a model looks
/// up each function anyway.
const NAMES_PART: usize = 4;

/// The detail in which a description shows each function, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DetailLevel {
    /// Its server only.
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
pub(crate) struct DeclaredFunctions {
    pub(crate) level: DetailLevel,
    pub(crate) text: String,
    /// The declarations of the functions that are always on, if the level is not the full one.
    pub(crate) always_on: String,
    /// A clause about functions that are not known yet.
    pub(crate) late: Option<String>,
    /// The number of functions, denied ones included.
    pub(crate) all: usize,
    pub(crate) servers: usize,
    pub(crate) denied: Vec<String>,
    /// A call of one of the functions.
    pub(crate) sample: Option<Sample>,
}

impl DeclaredFunctions {
    /// The functions at the highest level up to `max` that fits into this number of tokens.
    pub(crate) fn new(gate: &Gate, servers: &[Server], max: DetailLevel, tokens: usize) -> Self {
        let known = gate.tools();
        let all = known.len();
        let (denied, callable): (Vec<ToolInfo>, Vec<ToolInfo>) = known
            .into_iter()
            .partition(|tool| gate.view().denies(&tool.function));
        let functions: Vec<&str> = callable.iter().map(|it| it.function.as_str()).collect();
        let mut declared = Self {
            level: DetailLevel::Full,
            text: String::new(),
            always_on: String::new(),
            late: None,
            all,
            servers: servers.len(),
            denied: denied.into_iter().map(|tool| tool.function).collect(),
            sample: Sample::of(gate, &functions),
        };
        for level in [
            DetailLevel::Full,
            DetailLevel::Signatures,
            DetailLevel::Names,
        ] {
            if level > max {
                continue;
            }
            declared.level = level;
            declared.text = match level {
                DetailLevel::Full => gate.view().declarations_of(Detail::Full, &functions),
                DetailLevel::Signatures => {
                    gate.view().declarations_of(Detail::Signature, &functions)
                }
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
            let is_short = level > DetailLevel::Names || fits(&declared.text, tokens / NAMES_PART);
            if is_short && bytes <= tokens.saturating_mul(TOKEN_BYTES) {
                return declared;
            }
            if level == DetailLevel::Full {
                declared.always_on = always_on(gate, &functions, tokens);
            }
        }
        (declared.level, declared.text) = (DetailLevel::Servers, texts::servers(servers));
        declared
    }
}

/// The declarations of the functions that are always on, up to the budget.
fn always_on(gate: &Gate, functions: &[&str], tokens: usize) -> String {
    let mut always_on = functions.to_vec();
    always_on.retain(|function| gate.view().always_on(function));
    let declare = |functions: &[&str]| gate.view().declarations_of(Detail::Full, functions);
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

/// The text of the longest prefix of the names that fits into `max` tokens, and its number of
/// names.
pub(crate) fn first_that_fit(
    names: &[&str],
    max: usize,
    text: impl Fn(&[&str]) -> String,
) -> (String, usize) {
    let first = |count: usize| text(names.get(..count).unwrap_or(names));
    // A binary search, because a text of thousands of names takes long.
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
