//! The programs that the build and the tests require, with advice for each missing one.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;
use crate::say;

/// `$PYTHON`, else `python3`: the rule of the v8 crate.
pub(crate) fn python() -> OsString {
    env::var_os("PYTHON")
        .filter(|named| !named.is_empty())
        .unwrap_or_else(|| "python3".into())
}

/// Prints the versions of the tools; an error lists all missing ones.
pub(crate) fn check(tools: &[&[Tool]]) -> Result<()> {
    say::step("tools");
    let mut problems = Vec::new();
    for tool in tools.iter().copied().flatten() {
        let version = tool.version();
        match problem(tool, version.as_deref()) {
            None => {
                let version = first_line(version.as_deref().unwrap_or_default());
                say::detail(format_args!("{}: {version}", tool.name));
            }
            Some(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        bail!("the machine lacks tools:\n  - {}", problems.join("\n  - "));
    }
    Ok(())
}

pub(crate) struct Tool {
    name: &'static str,
    /// The lowest usable version.
    at_least: Option<(u32, u32, u32)>,
    /// Prints the version. `python3` is replaced by [`python`].
    command: &'static [&'static str],
    advice: &'static str,
}

impl Tool {
    fn version(&self) -> Option<String> {
        let (program, arguments) = self.command.split_first()?;
        let mut command = match *program {
            "python3" => Command::new(python()),
            program => Command::new(program),
        };
        process::version(command.args(arguments))
    }
}

/// The tools that build and run Callgate and its demo servers.
pub(crate) const BUILD: &[Tool] = &[Tool {
    name: "a C compiler (cc)",
    at_least: None,
    command: &["cc", "--version"],
    advice: "install one: `apt-get install build-essential`, `dnf install gcc`, \
             or `xcode-select --install`",
}];

/// The further tools of the tests with third-party MCP servers.
pub(crate) const TESTS: &[Tool] = &[
    Tool {
        name: "node",
        at_least: Some((20, 0, 0)),
        command: &["node", "--version"],
        advice: "install Node.js 20 or newer from https://nodejs.org or your distribution",
    },
    Tool {
        name: "npm",
        at_least: None,
        command: &["npm", "--version"],
        advice: "it comes with Node.js; Debian has it as the package `npm`",
    },
    Tool {
        name: "python3",
        at_least: Some((3, 10, 0)),
        command: &["python3", "--version"],
        advice: "install Python 3.10 or newer, or name one in PYTHON",
    },
    Tool {
        name: "python3's venv module",
        at_least: None,
        command: &[
            "python3",
            "-c",
            "import venv, ensurepip; print(ensurepip.version())",
        ],
        advice: "Debian has it in a separate package: `apt-get install python3-venv`",
    },
    Tool {
        name: "git",
        at_least: None,
        command: &["git", "--version"],
        advice: "the tests read commits with it: `apt-get install git`",
    },
];

fn problem(tool: &Tool, version: Option<&str>) -> Option<String> {
    let Some(version) = version else {
        return Some(format!("{} is missing: {}", tool.name, tool.advice));
    };
    let (major, minor, patch) = tool.at_least?;
    match numbers(version) {
        Some(found) if found >= (major, minor, patch) => None,
        _ => Some(format!(
            "{} must be {major}.{minor} or newer, but is `{}`: {}",
            tool.name,
            first_line(version),
            tool.advice
        )),
    }
}

/// The first dotted number in a version line.
pub(crate) fn numbers(version: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = version.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let dotted = numbers.find(|part| part.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = dotted.split('.').map(|part| part.parse().ok());
    let (major, minor, patch) = (parts.next()?, parts.next(), parts.next());
    Some((major?, minor.unwrap_or(Some(0))?, patch.unwrap_or(Some(0))?))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_versions_are_parsed_from_their_output() {
        let check = |text, expected| assert_eq!(numbers(text), expected, "{text}");
        check("node v20.20.2", Some((20, 20, 2)));
        check("Python 3.9.2+", Some((3, 9, 2)));
        check("v22", Some((22, 0, 0)));
        check(
            "cargo-nextest 0.9.143 (60fa45f63 2026-08-04)",
            Some((0, 9, 143)),
        );
        check("cargo-nextest 0.10.0-b.1", Some((0, 10, 0)));
        check("unknown", None);
        check("", None);
    }

    #[test]
    fn tool_problem_message_includes_advice() {
        let tool = |name| TESTS.iter().find(|tool| tool.name == name).unwrap();
        let check = |name, version, expected: Option<&str>| {
            assert_eq!(problem(tool(name), version).as_deref(), expected);
        };
        check("python3", Some("Python 3.12.1"), None);
        check(
            "python3",
            Some("Python 3.9.2"),
            Some(
                "python3 must be 3.10 or newer, but is `Python 3.9.2`: \
                 install Python 3.10 or newer, or name one in PYTHON",
            ),
        );
        let missing = "npm is missing: it comes with Node.js; Debian has it as the package `npm`";
        check("npm", None, Some(missing));
    }
}
