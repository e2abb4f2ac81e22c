//! `cargo xtask clients`: runs real MCP clients from npm with `callgate serve` as their server and a
//! scripted model.

use std::process::Command;

use anyhow::Result;

use crate::project::Project;
use crate::{demo, pinned, process, say, setup};

/// The pinned clients, and the program that drives them.
const FOLDER: &str = "fixtures/clients";

/// Runs them with these options of `drive.mjs`.
pub(crate) fn run(project: &Project, options: &[String]) -> Result<()> {
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
    process::run(drive.arg(project.built("")).args(options))
}
