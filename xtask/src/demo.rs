//! `cargo xtask demo`: a script against two MCP servers of our own, and what went in and came out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::project::Project;
use crate::{process, say, setup};

const SCRIPT: &str = "fixtures/scripts/file-tickets.ts";
/// The programs that the demo starts.
const PROGRAMS: &[&str] = &[
    "callgate",
    "callgate-demo-logging",
    "callgate-demo-ticketing",
];

#[derive(Args)]
pub(crate) struct Options {}

pub(crate) fn run(project: &Project, _options: &Options) -> Result<ExitCode> {
    setup::for_build(project)?;
    say::step("build (the first time: about nine minutes on two cores)");
    build(project)?;

    say::step("run");
    let config = write_config(project)?;
    let mut callgate = Command::new(project.built("callgate"));
    callgate
        .current_dir(&project.root)
        .arg("--config")
        .arg(&config);
    callgate.args(["run", SCRIPT, "--json"]);
    let started = Instant::now();
    let report = report(&mut callgate)?;
    let took = started.elapsed();

    let script = fs::read_to_string(project.root.join(SCRIPT))?;
    for line in figures(&report, script.len() as u64) {
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

/// Builds [`PROGRAMS`] alone. `--workspace` keeps the dependencies' features those of the tests,
/// so that a later `cargo xtask test` compiles next to nothing again.
fn build(project: &Project) -> Result<()> {
    let mut cargo = project.cargo();
    cargo.args(["build", "--locked", "--workspace"]);
    for program in PROGRAMS {
        cargo.args(["--bin", program]);
    }
    process::run(&mut cargo)
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
    let output = callgate.output().context("cannot start callgate")?;
    let status = output.status;
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!(
            "`callgate run` printed no report ({status}): {}",
            stderr.trim()
        )
    })?;
    if !status.success() {
        bail!("the demo script failed ({status}): {:#}", report["error"]);
    }
    Ok(report)
}

/// The figures of one run, in bytes of UTF-8 text.
fn figures(report: &Value, script: u64) -> Vec<String> {
    let calls = report["calls"].as_array().map_or(&[][..], Vec::as_slice);
    // A call without a result has no bytes to count.
    let sum = |field: &str| -> u64 { calls.iter().filter_map(|call| call[field].as_u64()).sum() };
    let mut by_function: BTreeMap<&str, u64> = BTreeMap::new();
    for call in calls {
        let function = call["function"].as_str().unwrap_or_default();
        *by_function.entry(function).or_default() += 1;
    }
    let functions = by_function
        .iter()
        .map(|(name, count)| format!("{count} {name}"));
    let functions: Vec<String> = functions.collect();
    let texts = [&report["output"]["text"], &report["value"]["text"]];
    let text: String = texts.iter().filter_map(|text| text.as_str()).collect();
    let (arguments, results) = (sum("argumentBytes"), sum("resultBytes"));
    let returned = text.len() as u64;
    vec![
        format!("script      {script} bytes"),
        format!("calls       {} ({})", calls.len(), functions.join(", ")),
        format!("in          {arguments} bytes of arguments went to the servers"),
        format!("kept        {results} bytes of tool results stayed in the sandbox"),
        format!(
            "out         {returned} bytes came back: {}",
            text.trim_end()
        ),
        format!("ratio       {} : 1", results / returned.max(1)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let expected = [
            "script      1006 bytes",
            "calls       3 (1 logging_getLogs, 2 ticketing_createIssue)",
            "in          210 bytes of arguments went to the servers",
            "kept        250030 bytes of tool results stayed in the sandbox",
            "out         16 bytes came back: filed 2 tickets",
            "ratio       15626 : 1",
        ];
        assert_eq!(figures(&report, 1_006), expected);
    }
}
