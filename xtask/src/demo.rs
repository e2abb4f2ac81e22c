//! `cargo xtask demo`: a script against two MCP servers of our own, and what
//! went in and came out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::project::Project;
use crate::{say, setup, test};

const SCRIPT: &str = "fixtures/scripts/file-tickets.ts";

#[derive(Args)]
pub(crate) struct Options {}

pub(crate) fn run(project: &Project, _options: &Options) -> Result<ExitCode> {
    setup::for_build(project)?;
    say::step("build (the first time: about ten minutes on two cores)");
    // The whole workspace, as for the tests: a part of it would choose other
    // features for its dependencies and compile them again.
    test::build(project)?;

    say::step("run");
    let config = write_config(project)?;
    let mut callgate = Command::new(project.built("callgate"));
    callgate.current_dir(&project.root);
    callgate
        .arg("--config")
        .arg(&config)
        .args(["run", SCRIPT, "--json"]);
    let started = Instant::now();
    let report = report(&mut callgate)?;
    let took = started.elapsed();

    let script = fs::read_to_string(project.root.join(SCRIPT))?;
    let summary = Summary::of(&report, script.len() as u64)?;
    for line in summary.lines() {
        say::result(line);
    }
    say::result(format_args!(
        "time        {} ms, the start of both servers included (debug build)",
        took.as_millis()
    ));
    say::step("the same by hand");
    say::detail(format_args!(
        "{} --config {} run {SCRIPT}",
        project.built("callgate").display(),
        config.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// A configuration with both servers by their absolute paths.
fn write_config(project: &Project) -> Result<PathBuf> {
    let server = |program| json!({ "command": project.built(program) });
    let config = json!({
        "mcpServers": {
            "logging": server("callgate-demo-logging"),
            "ticketing": server("callgate-demo-ticketing"),
        },
        "permissions": { "allow": ["logging_getLogs", "ticketing_createIssue"] },
    });
    let folder = project.target_dir.join("demo");
    fs::create_dir_all(&folder)?;
    let file = folder.join("callgate.json");
    fs::write(&file, format!("{config:#}\n"))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// Runs `callgate run --json`. A failed run has a report too, which says more than its exit code.
fn report(callgate: &mut Command) -> Result<Value> {
    let output = callgate.output().with_context(|| {
        format!(
            "cannot start {}",
            Path::new(callgate.get_program()).display()
        )
    })?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "`callgate run` printed no report ({}): {}",
            output.status,
            stderr.trim()
        )
    })?;
    if !output.status.success() {
        bail!(
            "the demo script failed ({}): {:#}",
            output.status,
            report["error"]
        );
    }
    Ok(report)
}

/// The figures of one run. All are bytes of UTF-8 text.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    script: u64,
    calls: BTreeMap<String, u64>,
    arguments: u64,
    results: u64,
    /// What the script printed and returned: all that a model gets to see.
    returned: u64,
    text: String,
}

impl Summary {
    fn of(report: &Value, script: u64) -> Result<Self> {
        let calls = report["calls"]
            .as_array()
            .context("the report has no list `calls`")?;
        let mut summary = Self {
            script,
            calls: BTreeMap::new(),
            arguments: 0,
            results: 0,
            returned: 0,
            text: String::new(),
        };
        for call in calls {
            let function = call["function"]
                .as_str()
                .context("a call has no `function`")?;
            *summary.calls.entry(function.to_owned()).or_default() += 1;
            summary.arguments += count(call, "argumentBytes")?;
            summary.results += count(call, "resultBytes")?;
        }
        for text in [&report["output"]["text"], &report["value"]["text"]] {
            summary.text.push_str(text.as_str().unwrap_or_default());
        }
        summary.returned = summary.text.len() as u64;
        Ok(summary)
    }

    fn lines(&self) -> Vec<String> {
        let calls: u64 = self.calls.values().sum();
        let each: Vec<_> = self
            .calls
            .iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        let ratio = self.results / self.returned.max(1);
        vec![
            format!("script      {} bytes", grouped(self.script)),
            format!("calls       {} ({})", grouped(calls), each.join(", ")),
            format!(
                "in          {} bytes of arguments went to the servers",
                grouped(self.arguments)
            ),
            format!(
                "kept        {} bytes of tool results stayed in the sandbox",
                grouped(self.results)
            ),
            format!(
                "out         {} bytes came back: {}",
                grouped(self.returned),
                self.text.trim_end()
            ),
            format!("ratio       {} : 1", grouped(ratio)),
        ]
    }
}

fn count(call: &Value, field: &str) -> Result<u64> {
    // A call that never got a result has none to count.
    match &call[field] {
        Value::Null => Ok(0),
        value => value
            .as_u64()
            .with_context(|| format!("a call's `{field}` is no byte count")),
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let check = |number, expected| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(999, "999");
        check(1_000, "1,000");
        check(12_345_678, "12,345,678");
    }

    #[test]
    fn a_report_becomes_its_figures() {
        let report = json!({
            "calls": [
                { "function": "logging_getLogs", "argumentBytes": 40, "resultBytes": 250_000 },
                { "function": "ticketing_createIssue", "argumentBytes": 90, "resultBytes": 30 },
                { "function": "ticketing_createIssue", "argumentBytes": 80, "resultBytes": null },
            ],
            "output": { "text": "filed 2 tickets\n", "bytes": 16, "cutBytes": 0 },
            "value": null,
        });
        let summary = Summary::of(&report, 1_006).unwrap();
        assert_eq!(
            summary.lines(),
            [
                "script      1,006 bytes",
                "calls       3 (1 logging_getLogs, 2 ticketing_createIssue)",
                "in          210 bytes of arguments went to the servers",
                "kept        250,030 bytes of tool results stayed in the sandbox",
                "out         16 bytes came back: filed 2 tickets",
                "ratio       15,626 : 1",
            ]
        );
    }

    #[test]
    fn a_report_of_another_shape_is_named() {
        let check = |report: Value, expected: &str| {
            assert_eq!(Summary::of(&report, 0).unwrap_err().to_string(), expected);
        };
        check(json!({}), "the report has no list `calls`");
        check(json!({ "calls": [{}] }), "a call has no `function`");
        check(
            json!({ "calls": [{ "function": "a_b", "argumentBytes": "1" }] }),
            "a call's `argumentBytes` is no byte count",
        );
    }
}
