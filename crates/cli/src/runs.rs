//! `callgate runs`: lists and shows recorded runs, and removes them.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use callgate::config::StoreConfig;
use callgate::faces::store::{
    Access, Body, CallRecord, RunFilter, RunRecord, RunStatus, SqliteStore, Store, StoreError,
    StoreErrorKind, open_store,
};
use callgate_text::{indented, one_line, shown_duration, shown_size, text_width};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::{RunListArgs, RunsArgs, RunsCommand};
use crate::print;
use crate::setup::{self, Sources};
use crate::trust::NotAccepted;

/// Runs or calls that are read at a time.
const PAGE: usize = 500;
/// Characters of a foreign text in a list.
const SHOWN: usize = 60;

const TO_KEEP_TEXTS: &str =
    "\"store\": { \"bodies\": \"all\" } in the configuration keeps the texts of later runs";

/// Runs the command, and returns its exit code.
pub async fn execute(sources: &Sources, args: RunsArgs) -> anyhow::Result<u8> {
    // Not clap's: that would refuse `--config` there, too.
    if args.command.is_some() && args.list.is_given() {
        bail!(
            "`callgate runs` takes no filters before a subcommand; write the filters after the \
             subcommand, as in `callgate runs list --status failed`"
        );
    }
    let loaded = match setup::load(sources).await {
        // The file may name any folder.
        Err(error) if error.is::<NotAccepted>() => None,
        loaded => loaded?,
    };
    let settings = match loaded {
        Some(loaded) => loaded.config.store,
        None => Some(StoreConfig::default()),
    };
    let settings =
        settings.context("the configuration turns the record of runs off (\"store\": false)")?;
    let command = args.command.unwrap_or(RunsCommand::List(args.list));
    // Nothing is made where nothing was recorded.
    if !settings.folder().is_some_and(|folder| folder.is_dir()) {
        let RunsCommand::List(args) = &command else {
            bail!("no run is recorded yet");
        };
        return if args.json {
            print::json(&json!([])).map(|()| 0)
        } else {
            print::note("no run is recorded yet");
            Ok(0)
        };
    }
    let store = open_store(&settings)?;
    if let Err(error) = store.close_lost(Timestamp::now()) {
        print::warning(&format!("a killed run may be listed as running: {error}"));
    }
    for warning in store.warnings() {
        print::warning(&warning.to_string());
    }
    let done = execute_on(&store, command);
    let failed = done.as_ref().err();
    let failed = failed.and_then(|error| error.downcast_ref::<StoreError>());
    if let Some(error) = failed.filter(|error| is_about_run(error)) {
        print::error(&error.to_string());
        return Ok(1);
    }
    done
}

/// True if a run is missing, or its state does not permit the operation.
fn is_about_run(error: &StoreError) -> bool {
    let kind = error.kind();
    matches!(kind, StoreErrorKind::NotFound | StoreErrorKind::Conflict)
}

fn execute_on(store: &dyn Store, command: RunsCommand) -> anyhow::Result<u8> {
    match command {
        RunsCommand::List(args) => list(store, args),
        RunsCommand::Show { run, json } => {
            let run = store.run(Access::All, &run)?;
            if json {
                print::json(&run)?;
            } else {
                print::out(&shown(&run))?;
            }
            Ok(0)
        }
        RunsCommand::Output { run } => {
            let run = store.run(Access::All, &run)?;
            text(store, &run.id, "output", run.output.as_ref())
        }
        RunsCommand::Script { run } => {
            let run = store.run(Access::All, &run)?;
            text(store, &run.id, "script", run.script.as_ref())
        }
        RunsCommand::Calls { run, json } => {
            let calls = calls(store, &run)?;
            if json {
                print::json(&calls)?;
            } else {
                print::out(&aligned(&calls.iter().map(call_row).collect::<Vec<_>>()))?;
            }
            Ok(0)
        }
        RunsCommand::Rm { runs, before } => {
            let is_named = before.is_none();
            let runs = match before {
                Some(before) => ended_before(store, before)?,
                None => runs,
            };
            remove(store, &runs, is_named)
        }
    }
}

/// Removes runs; returns 1 if one of them cannot be removed. `is_named` is false for listed runs,
/// which a different process may remove meanwhile.
fn remove(store: &dyn Store, runs: &[String], is_named: bool) -> anyhow::Result<u8> {
    let (mut removed, mut code) = (0, 0);
    for run in runs {
        match store.remove_run(Access::All, run) {
            Ok(()) => removed += 1,
            Err(error) if !is_about_run(&error) => return Err(error.into()),
            Err(error) if is_named => {
                print::error(&error.to_string());
                code = 1;
            }
            Err(_) => {}
        }
    }
    let removed = crate::doctor::count(removed, "run");
    print::out(&format!("removed {removed}\n"))?;
    Ok(code)
}

fn list(store: &dyn Store, args: RunListArgs) -> anyhow::Result<u8> {
    let limit = args.limit.get();
    let searches_text = args.text.is_some();
    let filter = RunFilter {
        since: args.since,
        status: args.status,
        tool: args.tool,
        text: args.text,
        ..RunFilter::default()
    };
    let access = args.user.as_deref().map_or(Access::All, Access::User);
    let runs = runs(store, access, filter, limit)?;
    if args.json {
        print::json(&runs)?;
        return Ok(0);
    }
    print::out(&aligned(&runs.iter().map(run_row).collect::<Vec<_>>()))?;
    if runs.is_empty() {
        print::note("no run matches");
    }
    if runs.is_empty() && searches_text {
        print::note(&format!("only kept scripts are searched; {TO_KEEP_TEXTS}"));
    }
    Ok(0)
}

/// The first runs of a filter, up to a limit.
fn runs(
    store: &dyn Store,
    access: Access<'_>,
    mut filter: RunFilter,
    limit: usize,
) -> Result<Vec<RunRecord>, StoreError> {
    let mut runs = Vec::new();
    filter.limit = limit.min(PAGE);
    loop {
        let page = store.runs(access, &filter)?;
        runs.extend(page.items);
        filter.after = page.next;
        if filter.after.is_none() || runs.len() >= limit {
            runs.truncate(limit);
            return Ok(runs);
        }
    }
}

/// The ids of the runs that started before a time and have ended.
fn ended_before(store: &dyn Store, before: Timestamp) -> Result<Vec<String>, StoreError> {
    let filter = RunFilter {
        until: Some(before),
        ..RunFilter::default()
    };
    let runs = runs(store, Access::All, filter, usize::MAX)?.into_iter();
    let ended = runs.filter(|run| run.status != RunStatus::Running);
    Ok(ended.map(|run| run.id).collect())
}

fn calls(store: &dyn Store, run: &str) -> Result<Vec<CallRecord>, StoreError> {
    let mut calls: Vec<CallRecord> = Vec::new();
    loop {
        let after = calls.last().map_or(0, |call| call.ordinal);
        let page = store.calls(Access::All, run, after, PAGE)?;
        let is_last = page.len() < PAGE;
        calls.extend(page);
        if is_last {
            return Ok(calls);
        }
    }
}

/// Prints a text of a run; returns 1 if it is not kept.
fn text(store: &dyn Store, run: &str, name: &str, body: Option<&Body>) -> anyhow::Result<u8> {
    let problem = match body {
        None => format!("run `{run}` has no {name}"),
        Some(Body {
            blob: Some(hash), ..
        }) => {
            let bytes = store.blob(Access::All, hash)?;
            print::out(&String::from_utf8_lossy(&bytes))?;
            return Ok(0);
        }
        // There is nothing to keep.
        Some(Body { bytes: 0, .. }) => return Ok(0),
        Some(body) => format!(
            "the {name} of run `{run}` is not kept, only its size and hash: {}; {TO_KEEP_TEXTS}",
            in_short(body)
        ),
    };
    print::error(&problem);
    Ok(1)
}

/// One line of the list: id, start, status, duration, face, script, and user or client.
fn run_row(run: &RunRecord) -> Vec<String> {
    let script = run.script.as_ref().map(|script| script.sha256.chars());
    let who = [Some(run.user.as_str()), run.client.as_deref()];
    let mut who = who.into_iter().flatten().filter(|who| !who.is_empty());
    vec![
        run.id.clone(),
        second(run.started),
        word(run.status),
        took(run).unwrap_or_default(),
        one_line(&run.face, SHOWN),
        script.into_iter().flatten().take(8).collect(),
        one_line(who.next().unwrap_or_default(), SHOWN),
    ]
}

/// One line of the calls: number, line, function, outcome, duration, decision.
fn call_row(call: &CallRecord) -> Vec<String> {
    let outcome = call.outcome.as_ref().map(|outcome| &outcome["outcome"]);
    let line = call.line.map(|line| format!("line {line}"));
    let took = call.took_ms.map(Duration::from_millis).map(shown_duration);
    vec![
        call.ordinal.to_string(),
        line.unwrap_or_default(),
        one_line(&call.function, SHOWN),
        outcome
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        took.unwrap_or_default(),
        one_line(call.decision.as_deref().unwrap_or_default(), usize::MAX),
    ]
}

/// The fields of a run, one a line.
fn shown(run: &RunRecord) -> String {
    let report = run.report.as_ref().unwrap_or(&Value::Null);
    let counts = |key: &str| report["counts"][key].as_u64();
    let calls = counts("calls").map(|calls| {
        let [denied, failed] = ["denied", "failed"].map(|key| counts(key).unwrap_or_default());
        format!("{calls}, of which denied: {denied}, failed: {failed}")
    });
    let error = match &report["error"] {
        Value::Null => None,
        error => error["message"].as_str().or_else(|| error["kind"].as_str()),
    };
    let configuration = &run.configuration;
    let script = run.script.as_ref();
    let fields = [
        ("run", Some(run.id.clone())),
        ("status", Some(word(run.status))),
        ("started", Some(second(run.started))),
        ("took", took(run)),
        ("error", error.map(str::to_owned)),
        ("calls", calls),
        ("script", script.map(in_short)),
        ("output", run.output.as_ref().map(in_short)),
        ("face", Some(run.face.clone())),
        ("user", Some(run.user.clone())),
        ("client", run.client.clone()),
        ("file", configuration.path.clone()),
        ("sha256", configuration.sha256.clone()),
        ("folder", configuration.folder.clone()),
        ("program", Some(run.version.clone())),
    ];
    let mut text = String::new();
    for (name, value) in fields {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let _ = writeln!(text, "{name:8} {}", indented(&value));
        }
    }
    let is_kept = |body: &&Body| body.bytes == 0 || body.blob.is_some();
    if !script.iter().chain(&run.output.as_ref()).all(is_kept) {
        let _ = writeln!(text, "its texts are not kept; {TO_KEEP_TEXTS}");
    }
    text
}

/// A text's size and hash.
fn in_short(body: &Body) -> String {
    format!("{}, SHA-256 {}", shown_size(body.bytes), body.sha256)
}

/// A time in UTC, to the second.
fn second(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// A run's duration; `None` if the clock was set back, and for a lost run, which has the time of its
/// discovery for its end.
fn took(run: &RunRecord) -> Option<String> {
    let ended = run.ended.filter(|_| run.status != RunStatus::Lost)?;
    let ms = ended.duration_since(run.started).as_millis();
    Some(shown_duration(Duration::from_millis(ms.try_into().ok()?)))
}

/// The word of a status, as in JSON.
fn word(status: RunStatus) -> String {
    json!(status).as_str().unwrap_or_default().to_owned()
}

/// Rows in columns of the same width.
fn aligned(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = text_width(cell).max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let blanks = width.saturating_sub(text_width(cell));
            line += &format!("{cell}{:blanks$}  ", "");
        }
        text += &format!("{}\n", line.trim_end());
    }
    text
}

/// The place, the size and the number of runs of a store, and its warnings, for `doctor`.
pub fn summary(settings: &StoreConfig) -> Result<(String, Vec<String>), StoreError> {
    let store: SqliteStore = open_store(settings)?;
    let (runs, bytes) = store.usage()?;
    let runs = usize::try_from(runs).unwrap_or(usize::MAX);
    let warnings = store.warnings().iter().map(ToString::to_string).collect();
    let folder = settings.folder().unwrap_or_default();
    let says = format!(
        "{}: {}, {}",
        folder.display(),
        crate::doctor::count(runs, "run"),
        shown_size(bytes)
    );
    Ok((says, warnings))
}
