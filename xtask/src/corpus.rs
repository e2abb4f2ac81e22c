//! `cargo xtask corpus`: lists the tools of third-party MCP servers, as data for the search.
//! `cargo xtask search-quality`: measures the search by words and, if a model of embeddings is
//! installed, by meaning.
//!
//! The servers are pinned in `fixtures/tool-corpus/`. Each is started with placeholder credentials,
//! asked for its tools, and ended; no tool is called. The lists belong to the servers' authors, and
//! stay below the target directory.

mod list;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::project::Project;
use crate::stamp::fill;
use crate::{embeddings, files, pinned, process, say, setup, test, tools};

pub(crate) fn run(project: &Project) -> Result<()> {
    say::result(lists(project)?.display());
    Ok(())
}

/// Measures whether labelled queries find their tools.
pub(crate) fn quality(project: &Project) -> Result<()> {
    let folder = lists(project)?;
    setup::for_build(project)?;
    test::build(project)?;
    say::step("queries");
    let mut measure = Command::new(project.built("examples/search_quality"));
    measure.arg(folder);
    let model = embeddings::serve(project)?;
    match &model {
        Some(model) => drop(measure.arg(&model.url)),
        None => say::detail("by words alone: `cargo xtask setup --models` installs a model"),
    }
    process::run(&mut measure)
}

/// The folder with a list for each server, created on first use.
pub(crate) fn lists(project: &Project) -> Result<PathBuf> {
    tools::check(&[tools::TESTS])?;
    let pins = project.root.join("fixtures/tool-corpus");
    let installed = project.target_dir.join("tool-corpus-servers");
    say::step("MCP servers to list the tools of");
    let what = "seventeen servers and their dependencies (some 400 MB)";
    pinned::npm(&pins, &installed.join("node"), what)?;
    let what = "six servers and their dependencies (some 400 MB)";
    pinned::pip(&pins, &installed.join("venv"), what, &[])?;
    say::step("tools");
    let folder = project.target_dir.join("tool-corpus");
    let inputs = ["servers.json", "package-lock.json", "requirements.txt"];
    let [servers, node, python] = inputs.map(|name| files::read(&pins.join(name)));
    let servers = servers?;
    fill(&folder, &[&servers, &node?, &python?], "lists", || {
        let home = installed.join("home");
        files::empty(&home)?;
        for server in read(&servers)? {
            let name = &server["name"].as_str().unwrap_or_default();
            let tools = list::tools(&server, &installed, &home)
                .with_context(|| format!("cannot list the tools of {name:?}"))?;
            say::detail(format_args!("{name}: {} tools", tools.len()));
            let file = folder.join(format!("{name}.json"));
            files::write(&file, &json!({ "tools": tools }).to_string())?;
        }
        // The tools of a server that is not a package, kept beside the checkout.
        let github = "../shared/corpus/github-mcp-server.tools.json";
        let github = project.root.join(github);
        if github.exists() {
            files::copy(&github, &folder.join("github.json"))?;
        }
        Ok(())
    })?;
    Ok(folder)
}

/// The servers: objects with `name`, `from` (a registry), `program`, `args` and `env`.
fn read(servers: &str) -> Result<Vec<Value>> {
    serde_json::from_str(servers).context("servers.json is not a list")
}

/// The file of a server's program.
fn program(server: &Value, installed: &Path) -> PathBuf {
    let programs = match server["from"].as_str() {
        Some("npm") => "node/node_modules/.bin",
        _ => "venv/bin",
    };
    let program = server["program"].as_str().unwrap_or_default();
    installed.join(programs).join(program)
}
