//! stub
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::project::Project;

#[derive(Args)]
pub(crate) struct Options {}

pub(crate) fn run(_project: &Project, _options: &Options) -> Result<ExitCode> {
    anyhow::bail!("later")
}
