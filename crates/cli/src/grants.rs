//! `--grant`: permissions that a person gives before a script runs.

use anyhow::{Context as _, bail};
use callgate::config::{Config, takes_rules};
use callgate::dry_run::{Preview, PreviewedTool};
use callgate::question::Grant;
use callgate::settings::CheckMode;
use callgate::{CancellationToken, Gate, RunReport, RunRequest};

use crate::doctor::count;
use crate::{ask, print};

/// Refuses `--grant` without a terminal; `alternative` is the advice.
pub fn need_terminal(alternative: &str) -> anyhow::Result<()> {
    if !crate::terminal::is_attended() {
        bail!("--grant needs a terminal to ask at; run the command in one, or {alternative}");
    }
    Ok(())
}

/// Refuses `--grant` if the configuration file cannot be written.
pub fn need_file(config: Option<&Config>) -> anyhow::Result<()> {
    if let Some(config) = config
        && let Err(error) = takes_rules(&config.path)
    {
        bail!(
            "--grant cannot write your answers: {error}; to allow tools in one run only, use \
             `callgate run --grant`"
        );
    }
    Ok(())
}

/// Adds the grants that a person gives for this run to its request; without grants after a cancel.
/// A script that cannot run gets its report.
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
    let granted = chosen(cancel, &preview, "in this run").await?;
    let granted = granted.into_iter().flatten();
    Ok(Ok(granted.fold(request, RunRequest::grant)))
}

/// Writes the tools that a person allows always to the configuration file. False after a cancel.
pub async fn for_good(
    gate: &Gate,
    cancel: &CancellationToken,
    preview: &Preview,
) -> anyhow::Result<bool> {
    let Some(place) = gate.view().keeps_in() else {
        bail!("there is no configuration file to write to; create a callgate.json");
    };
    let time = format!("always, in {place}");
    let Some(granted) = chosen(cancel, preview, &time).await? else {
        return Ok(false);
    };
    if granted.is_empty() {
        return Ok(true);
    }
    gate.view()
        .keep(&granted)
        .await
        .map_err(anyhow::Error::msg)?;
    let count = count(granted.len(), "rule");
    print::err(&format!("wrote {count} to permissions.allow of {place}\n"));
    Ok(true)
}

/// Grants for the tools that a person allows for the `time`; `None` after a cancel.
async fn chosen(
    cancel: &CancellationToken,
    preview: &Preview,
    time: &str,
) -> anyhow::Result<Option<Vec<Grant>>> {
    let asking = preview.tools.iter().filter(|tool| tool.needs_grant());
    let asking: Vec<PreviewedTool> = asking.cloned().collect();
    if asking.is_empty() {
        print::err("no tool that the script names needs approval\n");
        return Ok(Some(Vec::new()));
    }
    let chosen = tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(None),
        chosen = ask::choose(&asking, time) => chosen,
    };
    let chosen = chosen.context("could not ask at the terminal")?;
    Ok(Some(chosen.iter().map(PreviewedTool::grant).collect()))
}
