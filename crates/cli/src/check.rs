//! `callgate check`: the problems of a script, and the tools that it names.

use callgate::dry_run::Preview;
use callgate::{RunRequest, Status};
use callgate_text::shell_word;

use crate::args::CheckArgs;
use crate::commands::print_report;
use crate::setup::{Flags, Sources, Start};
use crate::terminal::is_attended;
use crate::{grants, print, setup};

/// Runs the command, and returns the exit code.
pub async fn execute(config: &Sources, args: CheckArgs) -> anyhow::Result<u8> {
    let config = setup::configuration(config).await?;
    if args.grant {
        grants::need_terminal("write the tools into permissions.allow of the configuration")?;
        grants::need_file(config.as_ref())?;
    }
    let (source, name) = setup::script(&args.file)?;
    let cancel = setup::cancel_on_signal()?;
    let request = RunRequest::new(source.as_str())
        .name(name)
        .cancel_on(cancel.clone());
    let workers = setup::workers(0, config.as_ref(), None);
    if let Some(report) = request.rejected(&workers).await {
        return print_report(&report, args.json);
    }
    let flags = Flags {
        rules: Some(&args.rules),
        check: args.check.check,
        start: Start::for_lists(args.lists.refresh),
        ..Flags::default()
    };
    let builder = setup::builder(config.as_ref(), &flags)?.workers(workers);
    let Some(gate) = setup::connect(builder, &cancel).await? else {
        return print_report(&request.cancelled(), args.json);
    };
    setup::print_problems(&gate);
    let preview = match gate.preview(request).await {
        Ok(preview) => preview,
        Err(report) => {
            gate.shutdown().await;
            let code = print_report(&report, args.json);
            setup::note_missing_tools(config.as_ref(), &gate, &source, report.status);
            return code;
        }
    };
    print_preview(&preview, args.json)?;
    let status = if preview.unknown.is_empty() {
        preview.status()
    } else {
        Status::Failed
    };
    setup::note_missing_tools(config.as_ref(), &gate, &source, status);
    let granted = if args.grant {
        grants::for_good(&gate, &cancel, &preview).await
    } else {
        Ok(true)
    };
    gate.shutdown().await;
    if !granted? {
        return Ok(setup::cancelled(
            "--grant was cancelled; nothing was written",
        ));
    }
    // Without a terminal, a run has no asker.
    let status = if is_attended() {
        preview.status()
    } else {
        preview.unattended_status()
    };
    Ok(status.exit_code())
}

fn print_preview(preview: &Preview, json: bool) -> anyhow::Result<()> {
    print::err(&preview.warnings());
    if json {
        print::json(preview)
    } else {
        print::out(&preview_text(preview))
    }
}

fn preview_text(preview: &Preview) -> String {
    let mut text = String::new();
    if preview.tools.is_empty() && preview.missing.is_empty() && preview.unknown.is_empty() {
        text.push_str("names no tool\n");
    }
    for tool in &preview.tools {
        let (function, written) = (&tool.function, tool.script_name());
        let (line, because) = (tool.line, &tool.because);
        text += &if written == *function {
            format!("{function} (line {line}): {because}\n")
        } else {
            format!("{written} (line {line}, in rules {function}): {because}\n")
        };
    }
    let asking = preview.tools.iter().filter(|tool| tool.needs_grant());
    let allow = asking.map(|tool| format!(" --allow {}", shell_word(&tool.function)));
    let allow: String = allow.collect();
    if !allow.is_empty() {
        text += &format!("to run it unattended:{allow}\n");
    }
    for flow in &preview.flows {
        text += &format!("{flow}\n");
    }
    if preview.global {
        text.push_str("uses the global object as a value: it may call any tool\n");
    } else if preview.dynamic {
        text.push_str(
            "uses mcp as a value, or mcp.callTool with a computed name: it may call any tool\n",
        );
    }
    for unknown in preview.missing.iter().chain(&preview.unknown) {
        text += &format!("line {}: {}\n", unknown.line, unknown.message);
    }
    text
}
