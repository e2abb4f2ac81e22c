//! `cargo xtask corpus`: the tools of other people's MCP servers, to measure the
//! search on. `cargo xtask search-quality`: the measurement, by words and, where a
//! model of embeddings is installed, by meaning.
//!
//! The servers are pinned in `fixtures/tool-corpus/`. Each is started with
//! credentials that are none, asked for its tools, and ended; no tool is called.
//! What they list is theirs, and stays below the target directory.

mod list;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::Value;

use crate::project::Project;
use crate::stamp::Stamp;
use crate::{embeddings, npm, process, real_servers, say, setup, test, tools};

/// Names the folder with the lists to the tests.
const VARIABLE: &str = "CALLGATE_TOOL_CORPUS";

#[derive(Args)]
pub(crate) struct Options {
    /// List the tools again, even where nothing has changed.
    #[arg(long)]
    again: bool,
}

/// A server to list the tools of.
struct Server {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    let folder = lists(project, options)?;
    say::result(folder.display());
    Ok(ExitCode::SUCCESS)
}

/// Measures how well labelled queries find their tools.
pub(crate) fn quality(project: &Project, options: &Options) -> Result<ExitCode> {
    let folder = lists(project, options)?;
    say::step("queries, by words");
    let mut test = project.cargo();
    test.args(["test", "--locked", "--workspace", "--test", "quality", "--"])
        .args(["--nocapture", "--test-threads", "1"])
        .env(VARIABLE, &folder);
    process::run(&mut test)?;
    say::step("queries, by words and by meaning");
    match embeddings::serve(project)? {
        Some(model) => {
            setup::for_build(project)?;
            test::build(project)?;
            let mut measured = Command::new(project.built("examples/search_quality"));
            process::run(measured.arg(folder).arg(&model.url))?;
        }
        None => say::detail("passed over: `cargo xtask setup --models` installs a model"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder with a list for each server, made if it is not there.
pub(crate) fn folder(project: &Project) -> Result<PathBuf> {
    lists(project, &Options { again: false })
}

fn lists(project: &Project, options: &Options) -> Result<PathBuf> {
    tools::check(tools::Purpose::Tests)?;
    let pins = project.root.join("fixtures/tool-corpus");
    let installed = project.target_dir.join("tool-corpus-servers");
    say::step("MCP servers to list the tools of");
    let what = "seventeen servers and their dependencies (some 400 MB)";
    npm::install(&pins, &installed.join("node"), what).context("cannot install the npm servers")?;
    let what = "six servers and their dependencies (some 400 MB)";
    real_servers::pip(&pins, &installed.join("venv"), what, &[])
        .context("cannot install the Python servers")?;
    let folder = project.target_dir.join("tool-corpus");
    let inputs = ["servers.json", "package-lock.json", "requirements.txt"];
    let inputs: Vec<String> = inputs
        .iter()
        .map(|name| npm::read(&pins.join(name)))
        .collect::<Result<_>>()?;
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let stamp = Stamp::new(&folder, &inputs);
    say::step("tools");
    if stamp.is_current() && !options.again {
        say::detail(format_args!("listed, in {}", folder.display()));
        return Ok(folder);
    }
    npm::empty(&folder)?;
    let home = installed.join("home");
    npm::empty(&home)?;
    for server in servers(&pins, &installed)? {
        let tools = list::tools(&server, &home)
            .with_context(|| format!("cannot list the tools of {:?}", server.name))?;
        say::detail(format_args!("{}: {} tools", server.name, tools.len()));
        let file = folder.join(format!("{}.json", server.name));
        fs::write(file, serde_json::json!({ "tools": tools }).to_string())?;
    }
    // The tools of a server that is no package, kept beside the checkout.
    let github = "../shared/corpus/github-mcp-server.tools.json";
    let github = project.root.join(github);
    if github.exists() {
        fs::copy(&github, folder.join("github.json"))?;
    }
    stamp.set()?;
    Ok(folder)
}

fn servers(pins: &Path, installed: &Path) -> Result<Vec<Server>> {
    let text = npm::read(&pins.join("servers.json"))?;
    let listed: Value = serde_json::from_str(&text).context("servers.json is not JSON")?;
    let listed = listed
        .as_array()
        .context("servers.json is not a list")?
        .iter();
    let servers = listed.map(|entry| {
        server(entry, installed).with_context(|| format!("servers.json: {entry} is not a server"))
    });
    servers.collect()
}

fn server(entry: &Value, installed: &Path) -> Option<Server> {
    let programs = match entry.get("from")?.as_str()? {
        "npm" => installed.join("node/node_modules/.bin"),
        "pypi" if cfg!(windows) => installed.join("venv/Scripts"),
        "pypi" => installed.join("venv/bin"),
        _ => return None,
    };
    let arguments = entry.get("args").and_then(Value::as_array);
    let arguments = arguments.into_iter().flatten();
    let environment = entry.get("env").and_then(Value::as_object);
    let environment = environment.into_iter().flatten();
    Some(Server {
        name: entry.get("name")?.as_str()?.to_owned(),
        program: programs.join(entry.get("program")?.as_str()?),
        arguments: arguments
            .map(|argument| argument.as_str().map(str::to_owned))
            .collect::<Option<_>>()?,
        environment: environment
            .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_is_pinned_and_has_a_name_of_its_own() {
        let pins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tool-corpus");
        let servers = servers(&pins, Path::new("/installed")).unwrap();
        assert!(servers.len() >= 12);
        let mut names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), servers.len());
        for pins in [pins.clone(), pins.with_file_name("real-servers")] {
            let requirements = npm::read(&pins.join("requirements.txt")).unwrap();
            for line in requirements.lines().filter(|line| !line.starts_with('#')) {
                let pinned = line.contains("==") || line.trim_start().starts_with("--hash=sha256:");
                assert!(pinned, "neither a pin nor a hash: {line}");
            }
        }
    }
}
