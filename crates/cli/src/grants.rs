//! Grants before a script runs: for the run, or for good.

use anyhow::{Context as _, bail};
use callgate::config::{Config, takes_rules};
use callgate::{
    CancellationToken, CheckMode, Gate, Grant, Preview, PreviewedTool, RunReport, RunRequest,
};

use crate::ask;
use crate::print;

/// Refuses `--grant` without a terminal; `instead` is the advice.
pub fn need_terminal(instead: &str) -> anyhow::Result<()> {
    if !crate::terminal::is_attended() {
        bail!("--grant asks at a terminal, and there is none; run it in one, or {instead}");
    }
    Ok(())
}

/// Refuses `--grant` if the configuration file cannot be written.
pub fn need_file(config: Option<&Config>) -> anyhow::Result<()> {
    if let Some(config) = config
        && let Err(error) = takes_rules(&config.path)
    {
        bail!(
            "--grant cannot write what you allow: {error}; to allow it in one run alone, \
             `callgate run --grant`"
        );
    }
    Ok(())
}

/// The request with the grants that a person gives for its run, or the report of a script that
/// cannot run. After a cancel there are no grants.
pub async fn for_run(
    gate: &Gate,
    cancel: &CancellationToken,
    request: RunRequest,
) -> anyhow::Result<Result<RunRequest, Box<RunReport>>> {
    // The run itself checks the types.
    let preview = match gate.preview(request.clone().check(CheckMode::Off)).await {
        Ok(preview) => preview,
        Err(report) => return Ok(Err(report)),
    };
    let granted = chosen(cancel, &preview, "allow them in this run").await?;
    let granted = granted.into_iter().flatten();
    Ok(Ok(granted.fold(request, RunRequest::grant)))
}

/// Writes what a person allows for good into the configuration file. False after a cancel.
pub async fn for_good(
    gate: &Gate,
    cancel: &CancellationToken,
    preview: &Preview,
) -> anyhow::Result<bool> {
    let Some(place) = gate.keeps_in() else {
        bail!("there is no configuration file to write to; create a callgate.json");
    };
    let granting = format!("allow them for good, in {place}");
    let Some(granted) = chosen(cancel, preview, &granting).await? else {
        return Ok(false);
    };
    if granted.is_empty() {
        return Ok(true);
    }
    gate.keep(&granted).await.map_err(anyhow::Error::msg)?;
    let count = match granted.len() {
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    };
    print::err(&format!("wrote {count} to permissions.allow of {place}\n"));
    Ok(true)
}

/// The grants for the tools that a person chooses; `None` after a cancel.
async fn chosen(
    cancel: &CancellationToken,
    preview: &Preview,
    granting: &str,
) -> anyhow::Result<Option<Vec<Grant>>> {
    let asking = preview.tools.iter().filter(|tool| tool.lacks_leave());
    let asking: Vec<PreviewedTool> = asking.cloned().collect();
    if asking.is_empty() {
        print::err("no tool that the script names would be asked about\n");
        return Ok(Some(Vec::new()));
    }
    let chosen = tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(None),
        chosen = ask::choose(&asking, granting) => chosen,
    };
    let chosen = chosen.context("could not ask at the terminal")?;
    Ok(Some(chosen.iter().map(PreviewedTool::grant).collect()))
}
