//! Patterns over the names of tools and servers: literal characters and `*`.

use std::fmt;
use std::str::FromStr;

use crate::error::RuleError;
use crate::tool_name::{ToolName, matches, pairs};

/// A pattern over the names of functions (`{server}_{tool}`), or with a `/` over pairs of a
/// server's name and a tool's own name (`server/tool`). `*` stands for any run of characters, the
/// empty one too; everything else stands for itself, and case matters. A pattern has to match the
/// whole name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// Checks `text` and keeps it as a pattern.
    /// The error: the text is empty, has a character that no function's name can have, or is half a
    /// pair, so that it could never match.
    pub fn new(text: &str) -> Result<Self, RuleError> {
        if text.is_empty() {
            return Err(RuleError(format!("empty pattern; {NAME_OR_STAR}")));
        }
        if text.contains('/') {
            if pairs(text).any(|(server, tool)| !server.is_empty() && !tool.is_empty()) {
                return Ok(Self(text.to_owned()));
            }
            let message = format!("pattern {text:?} can never match: {WHOLE_PAIR}");
            return Err(RuleError(message));
        }
        match text.chars().find(|c| !can_occur(*c)) {
            None => Ok(Self(text.to_owned())),
            Some(unfit) => Err(unfit_error(text, unfit)),
        }
    }

    /// The pattern that matches one function and no other.
    /// The error: no function can have this name.
    pub fn name(function: &str) -> Result<Self, RuleError> {
        match function.chars().find(|c| matches!(c, '*' | '/')) {
            None => Self::new(function),
            Some(unfit) => Err(unfit_error(function, unfit)),
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// [`ToolName::is_matched`] by this pattern.
    pub fn matches(&self, tool: ToolName<'_>, widens: bool) -> bool {
        tool.is_matched(&self.0, widens)
    }
}

/// A pattern over the names of servers in the configuration: as [`Pattern`], with every character.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerPattern(String);

impl ServerPattern {
    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if the pattern matches all of a server's name.
    pub fn matches(&self, server: &str) -> bool {
        matches(&self.0, server)
    }
}

impl FromStr for ServerPattern {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if text.is_empty() {
            let message = "empty pattern; write a server's name, or leave \"server\" out";
            return Err(RuleError(message.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ServerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// True if a function's name, or a pattern over such names, can have this character.
fn can_occur(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '*')
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Pattern {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Self::new(text)
    }
}

const NAME_OR_STAR: &str = "write a tool's generated name, or \"*\" for every tool";
const WHOLE_PAIR: &str = "write both names, as in \"server/tool\"";

/// The error about a pattern with a character that no function's name has.
fn unfit_error(pattern: &str, unfit: char) -> RuleError {
    if pattern.trim().is_empty() {
        return RuleError(format!(
            "pattern {pattern:?} is only white space; {NAME_OR_STAR}"
        ));
    }
    let meant = pattern.trim().replace(|c| !can_occur(c), "_");
    // Other clients write `mcp__server__tool`.
    let meant = match meant.strip_prefix("mcp__") {
        Some(rest) => rest.replacen("__", "_", 1),
        None => meant,
    };
    let why = if unfit.is_whitespace() {
        "no white space".to_owned()
    } else {
        format!("\"_\" in place of {:?}", unfit.to_string())
    };
    RuleError(format!(
        "pattern {pattern:?} can never match: generated names have {why}; did you mean {meant:?}?"
    ))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn matches_whole_names() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(matches(pattern, name), expected, "{pattern} over {name}");
        };
        check("git_commit", "git_commit", true);
        check("git_commit", "git_commits", false);
        check("git_commit", "Git_commit", false);
        check("git_*", "git_", true);
        check("git_*", "git_log", true);
        check("git_*", "git", false);
        check("*", "", true);
        check("*", "anything", true);
        check("**", "anything", true);
        check("*_get*", "logging_getLogs", true);
        check("*_get*", "logging_get", true);
        check("*_get*", "logging_list", false);
        check("a*a", "a", false);
        check("a*a", "aa", true);
        check("ab*bc", "abc", false);
        check("a*b*c", "a_b_b_c", true);
        check("a*b*c", "a_c_b", false);
        check("*delete*", "fs_delete$1", true);
    }

    #[test]
    fn many_stars_do_not_slow_matching() {
        let pattern = "*a".repeat(5_000);
        assert!(matches(&pattern, &"a".repeat(50_000)));
        assert!(!matches(&pattern, &"a".repeat(4_999)));
        let pattern = format!("{}b", "a*".repeat(5_000));
        assert!(!matches(&pattern, &"a".repeat(50_000)));
    }

    #[test]
    fn impossible_patterns_are_refused() {
        let said = [
            "",
            "  ",
            " git_log",
            "mcp__my-files__delete",
            "get-user.*",
            "日本_*",
            "/",
            "fs/",
        ]
        .map(|pattern| {
            let error = Pattern::new(pattern).expect_err(pattern);
            format!("{error}\n")
        });
        expect![[r#"
            empty pattern; write a tool's generated name, or "*" for every tool
            pattern "  " is only white space; write a tool's generated name, or "*" for every tool
            pattern " git_log" can never match: generated names have no white space; did you mean "git_log"?
            pattern "mcp__my-files__delete" can never match: generated names have "_" in place of "-"; did you mean "my_files_delete"?
            pattern "get-user.*" can never match: generated names have "_" in place of "-"; did you mean "get_user_*"?
            pattern "日本_*" can never match: generated names have "_" in place of "日"; did you mean "___*"?
            pattern "/" can never match: write both names, as in "server/tool"
            pattern "fs/" can never match: write both names, as in "server/tool"
        "#]]
        .assert_eq(&said.concat());
    }

    fn oracle(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|skip| oracle(rest, &name[skip..])),
            Some((c, rest)) => name.first() == Some(c) && oracle(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_obvious_matcher(pattern in "[ab*]{1,9}", name in "[ab]{0,12}") {
            let expected = oracle(pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(matches(&pattern, &name), expected);
        }
    }
}
