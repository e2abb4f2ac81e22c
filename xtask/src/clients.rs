//! `cargo xtask clients`: runs real MCP clients from npm with `callgate serve` as their server and a
//! scripted model.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::project::Project;
use crate::{demo, pinned, process, say, setup};

/// The pinned clients, and the program that drives them.
const FOLDER: &str = "fixtures/clients";

#[derive(Args)]
pub(crate) struct Options {
    /// Names of clients (`claude-code`, `codex`, `gemini`, `opencode`, `qwen`) and of scenarios
    /// (`run`, `structured`, `error`, `question`, `long`, `cancel`, `interrupt`), if not all;
    /// `--healthy` (without a server that hangs), `--keep` (the folders of the runs).
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    setup::for_build(project)?;
    say::step("build (the first time: about five minutes on two cores)");
    demo::build(project, "dev")?;

    say::step("clients (six minutes)");
    let pins = project.root.join(FOLDER);
    let folder = project.target_dir.join("clients");
    let what = "five clients and a Node.js for them, 1.6 GB (a minute with a near registry)";
    pinned::npm_of_platform(&pins, &folder, what)?;
    let modules = folder.join("node_modules");
    let mut drive = Command::new(modules.join(".bin/node"));
    drive.arg(pins.join("drive.mjs")).arg(&modules);
    drive.arg(project.built("")).args(&options.options);
    process::run(&mut drive)?;
    Ok(ExitCode::SUCCESS)
}
