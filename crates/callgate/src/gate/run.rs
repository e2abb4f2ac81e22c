//! One run, from the script's text to the report.

use std::sync::Arc;
use std::time::Instant;

use callgate_catalog::Catalog;
use callgate_gate::Dispatcher;
use callgate_sandbox::{Job, ScriptInput};
use callgate_script::{Mentions, Prepared};
use callgate_servers::Audience;

use super::Gate;
use crate::choices::CheckMode;
use crate::host_functions::extract::SchemaReader;
use crate::names::NameProblem;
use crate::read_script::read;
use crate::report::{RunReport, build};
use crate::run_request::{ReadScript, RunRequest};
use crate::scope::{Advice, Scope};
use crate::script_calls::{Counts, RunCalls, ScriptCalls};
use crate::type_check::TypeCheck;

impl Gate {
    /// Runs a script and reports, however it ends.
    pub async fn run(&self, request: impl Into<RunRequest>) -> RunReport {
        let mut request = request.into();
        request.audience = self.setup.people.audience;
        let read_ahead = request.read_ahead.lock().as_ref().map(|read| read.took);
        let started = Instant::now();
        let ended = self.run_to_end(&request).await;
        let (mut report, run) = match ended {
            Ok((report, run)) => (report, Some(run)),
            Err(report) => (*report, None),
        };
        report.total_ms = build::millis(read_ahead.unwrap_or_default() + started.elapsed());
        if let Some(store) = &self.store {
            store.reported(&report);
        }
        // The run's last event comes after its report.
        drop(run);
        report
    }

    /// The report of a run that began, or else of a request that was refused.
    async fn run_to_end(
        &self,
        request: &RunRequest,
    ) -> Result<(RunReport, Arc<Dispatcher>), Box<RunReport>> {
        let settings = &request.settings;
        let limits = request.limits.as_ref().unwrap_or(&self.limits);
        let ReadScript {
            prepared, worker, ..
        } = read(&self.launcher, limits, request).await?;
        let given = Arc::clone(&request.source);
        let request = &*request.as_read(&prepared);
        // The catalog of this run, whatever changes while it lasts.
        let mut catalog = tokio::select! {
            catalog = self.live.for_run(&prepared.mentions) => catalog,
            () = settings.cancel.cancelled() => return Err(Box::new(request.cancelled())),
        };
        if let Some(reason) = self.live.lint.refusal(&catalog, &self.live.servers()) {
            return Err(Box::new(build::refused(request, &reason)));
        }
        self.check_servers(request, &prepared.mentions)?;
        let mut checked = self.type_check(request, &prepared, &catalog).await;
        // A wrong name may be meant for a server whose tools are not known yet.
        if checked.is_err() && !settings.cancel.is_cancelled() && self.live.list_others().await {
            catalog = self.live.catalog();
            checked = self.type_check(request, &prepared, &catalog).await;
        }
        let checked = checked?;
        let functions = stubs(&prepared.mentions, &catalog, &request.scope);
        let mut setup = self.setup(settings);
        setup.options.script = Some(Arc::clone(&request.source));
        setup.options.given = Some(given);
        let rules = Arc::clone(&setup.rules.calls);
        let run = Arc::new(Dispatcher::new(self.live.connections.clone(), setup));
        let calls = ScriptCalls(Arc::new(RunCalls {
            catalog,
            live: Arc::clone(&self.live),
            searcher: Arc::clone(&self.searcher),
            models: Arc::clone(&self.models),
            rules,
            run: Arc::clone(&run),
            scope: request.scope.clone(),
            caller: self.caller_of(settings).cloned(),
            extract_limits: self.extract,
            // The run waits for these workers while it holds its own memory.
            schemas: SchemaReader::new(self.launcher.with_memory(None), limits.clone()),
            observer: request.observer.clone(),
            source: Arc::clone(&request.source),
            counts: Counts::default(),
        }));
        let job = Job {
            source_name: request.name.to_string(),
            code: prepared.code,
            source_map: prepared.source_map,
            functions,
            input: ScriptInput::clone(&request.input),
            limits: limits.clone(),
        };
        let handler = Arc::new(calls.clone());
        let ended = worker.run(job, handler, settings.cancel.clone()).await;
        let withheld = settings.dry_run.is_some().then(|| run.withheld());
        let hint = |name: &str| {
            let unknown = self.why_unknown(name, &request.scope);
            unknown.or_else(
                || match request.scope.advice(&self.live.catalog(), name, name)? {
                    Advice::Said(advice) | Advice::Meant(advice) | Advice::Near(advice) => {
                        Some(advice)
                    }
                },
            )
        };
        let mut report = build::ended(request, ended, run.lines(), withheld, hint);
        report.run = Some(run.id().to_owned());
        report.lookups = calls.0.lookups();
        report.check = checked;
        report.unavailable = self.unavailable();
        run.end(report.status.name(), Some(report.script_ms));
        Ok((report, run))
    }

    /// Ends a run whose script names a tool of a server that did not start.
    fn check_servers(&self, request: &RunRequest, named: &Mentions) -> Result<(), Box<RunReport>> {
        let mut mentions = named.tools.iter();
        let missing =
            mentions.find_map(|it| Some((it, self.view().unavailable_server_of(&it.name)?)));
        let Some((mention, server)) = missing else {
            return Ok(());
        };
        let (line, column) = (mention.line, mention.column);
        let mut report = build::missing_server(request, &mention.name, line, column, &server);
        report.unavailable = self.unavailable();
        if !report.unavailable.contains(&server) {
            report.unavailable.push(server);
        }
        Err(Box::new(report))
    }

    /// The type check of a script, unless it is off.
    /// The error: the report of a run that the check ends.
    pub(super) async fn type_check(
        &self,
        request: &RunRequest,
        prepared: &Prepared,
        catalog: &Catalog,
    ) -> Result<Option<TypeCheck>, Box<RunReport>> {
        let mode = request.check.unwrap_or(self.checker.mode);
        if mode == CheckMode::Off {
            return Ok(None);
        }
        let limits = request.limits.as_ref().unwrap_or(&self.limits);
        let why_missing = |name: &str| {
            let problem = self.live.explain(name, &request.scope, true)?;
            // The check gives advice about unknown names itself.
            let is_unknown = matches!(problem, NameProblem::Unknown { .. });
            (!is_unknown).then(|| problem.message(name))
        };
        let checkable = &prepared.checkable;
        let checking =
            self.checker
                .check(request, checkable, catalog, limits.script_time, why_missing);
        let mut checked = tokio::select! {
            checked = checking => checked,
            () = request.settings.cancel.cancelled() => return Err(Box::new(request.cancelled())),
        };
        if self.setup.people.audience == Audience::Caller && checked.is_unavailable() {
            checked.reason = Some("TypeScript is not available here".to_owned());
        }
        if !checked.stops(mode) {
            return Ok(Some(checked));
        }
        let mut report = build::stopped_by_check(request, checked);
        report.unavailable = self.unavailable();
        Err(Box::new(report))
    }

    /// A hint about a name in a script that is not a tool, if a tool was probably meant.
    pub(super) fn why_unknown(&self, name: &str, scope: &Scope) -> Option<String> {
        if let Some(server) = self.view().unavailable_server_of(name) {
            return Some(format!("{name} is not available: {}", server.reason));
        }
        let problem = self.live.explain(name, scope, true)?;
        match &problem {
            // The script deleted the function.
            NameProblem::OutOfScope(_) => None,
            NameProblem::Unknown { .. }
                if self.live.catalog().tools().is_empty() && name.contains('_') =>
            {
                let why = if self.live.connections.list().len() == 0 {
                    "no server is configured, or all are disabled"
                } else {
                    "no server that is in use offers one"
                };
                Some(format!("{name} is not a tool, and no tool is known: {why}"))
            }
            NameProblem::Unknown { near: None } => None,
            _ => Some(problem.message(name)),
        }
    }
}

/// The functions that a script gets: the tools it names, or all in scope if it uses the global
/// object as a value.
fn stubs(named: &Mentions, catalog: &Catalog, scope: &Scope) -> Vec<String> {
    let tools = catalog.tools().iter();
    let all = tools.filter(|tool| named.global && scope.has(&tool.definition.server));
    let mentioned = named.tools.iter().map(|mention| mention.name.as_str());
    let mut functions: Vec<String> = mentioned
        .filter(|name| catalog.get(name).is_some())
        .chain(all.map(|tool| tool.function.as_str()))
        .map(str::to_owned)
        .collect();
    functions.sort_unstable();
    functions.dedup();
    functions
}
