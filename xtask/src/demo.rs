//! `cargo xtask demo`: runs a script against two demo MCP servers, and prints the sizes of the data.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::project::Project;
use crate::{files, process, say, setup};

pub(crate) const SCRIPT: &str = "fixtures/scripts/file-tickets.ts";
/// The demo's servers.
pub(crate) const SERVERS: [&str; 2] = ["callgate-demo-logging", "callgate-demo-ticketing"];
/// The programs of a package: Callgate, and the process of its scripts.
pub(crate) const PROGRAMS: [&str; 2] = ["callgate", "callgate-worker"];

pub(crate) fn run(project: &Project) -> Result<()> {
    setup::for_build(project)?;
    say::step("build (the first time: about five minutes on two cores)");
    build(project, "dev")?;

    say::step("run");
    let config = project.target_dir.join("demo/callgate.json");
    let folder = project.built("");
    files::write(&config, &configuration(&folder))?;
    let mut callgate = Command::new(project.built("callgate"));
    callgate.current_dir(&project.root);
    callgate.arg("--config").arg(&config).args(["run", SCRIPT]);
    let by_hand = format!("{callgate:?}");
    let started = Instant::now();
    let report = process::output(callgate.arg("--json"))?;
    let took = started.elapsed().as_millis();
    let report = serde_json::from_str(&report).context("`callgate run` printed no report")?;

    let script = files::read(&project.root.join(SCRIPT))?;
    for line in figures(&report, script.len()) {
        say::result(line);
    }
    say::result(format_args!(
        "time        {took} ms, the start of both servers included (debug build)"
    ));
    say::step("the same by hand");
    say::detail(by_hand);
    Ok(())
}

/// Builds only [`PROGRAMS`] and [`SERVERS`]. `--workspace` gives dependencies the features that the
/// tests use, so that a later `cargo xtask test` compiles little again.
pub(crate) fn build(project: &Project, profile: &str) -> Result<()> {
    let mut cargo = project.cargo();
    cargo.args(["build", "--locked", "--workspace", "--profile", profile]);
    process::run(cargo.args(PROGRAMS.iter().chain(&SERVERS).flat_map(|it| ["--bin", it])))
}

/// A configuration with both servers, whose programs are in `folder`.
pub(crate) fn configuration(folder: &Path) -> String {
    let [logging, ticketing] = SERVERS.map(|it| json!({ "command": folder.join(it) }));
    let config = json!({
        "mcpServers": { "logging": logging, "ticketing": ticketing },
        "permissions": { "allow": ["logging_getLogs", "ticketing_createIssue"] },
    });
    format!("{config:#}\n")
}

/// The figures of one run, in bytes of UTF-8 text.
fn figures(report: &Value, script: usize) -> [String; 6] {
    let calls = report["calls"].as_array().map_or(&[][..], Vec::as_slice);
    // A call without a result has no bytes to count.
    let sum = |field: &str| -> u64 { calls.iter().filter_map(|call| call[field].as_u64()).sum() };
    let texts = [&report["output"]["text"], &report["value"]["text"]];
    let text: String = texts.iter().filter_map(|text| text.as_str()).collect();
    let (arguments, results) = (sum("argumentBytes"), sum("resultBytes"));
    let returned = text.len() as u64;
    [
        format!("script      {script} bytes"),
        format!("calls       {}", calls.len()),
        format!("in          {arguments} bytes of arguments went to the servers"),
        format!("kept        {results} bytes of tool results stayed in the sandbox"),
        format!(
            "out         {returned} bytes came back: {}",
            text.trim_end()
        ),
        format!("ratio       {} : 1", results / returned.max(1)),
    ]
}
