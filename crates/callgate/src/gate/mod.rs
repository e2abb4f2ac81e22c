//! The gate: connections, names, rules and workers, and what can be asked of
//! them.

mod builder;
mod call;
pub(crate) mod export;
mod kept;
mod permissions;
pub(crate) mod preview;
mod review;
pub(crate) mod servers;
mod tools;

pub use builder::{BuildError, GateBuilder};
pub use call::{CallRequest, Called};
pub(crate) use permissions::Foresight;
pub use tools::CatalogStamp;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use callgate_broker::{Asker, Broker, CallError, Caller, DryRun, Journal, Keep, Reviewer, Root};
use callgate_catalog::{Catalog, Detail, ToolDefinition};
use callgate_policy::flow::FlowRules;
use callgate_policy::{Hints, Rules, SessionGrants, Verdict};
use callgate_rust_types::RustTypes;
use callgate_sandbox::{Job, Launcher, Stretch};
use callgate_schema::Declared;
use callgate_script::{Named, Prepared};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cache::Cache;
use crate::host_functions::extract::{ExtractLimits, Extractor, TypeReader};
use crate::host_functions::lookup::Lookups;
use crate::live_catalog::LiveCatalog;
use crate::models::Models;
use crate::read_script::{self, Read};
use crate::report::{self, RunReport};
use crate::scope::Scope;
use crate::script_calls::{self, ScriptCalls};
use crate::search::Searcher;
use crate::type_check::{Check, CheckMode, TypeCheck};
use crate::unmatched::{self, Oversight};
use crate::{Limits, RunRequest, Skill, ToolSettings};

/// Connections to MCP servers and the rules over their tools; runs scripts.
///
/// It is made once and used for many runs, side by side if need be. Each run
/// has a worker process, grants and a ledger of its own.
pub struct Gate {
    pub(crate) broker: Broker,
    pub(crate) live: Arc<LiveCatalog>,
    pub(crate) searcher: Arc<Searcher>,
    pub(crate) launcher: Launcher,
    pub(crate) rules: Arc<Rules>,
    limits: Limits,
    models: Arc<Models>,
    extract: ExtractLimits,
    /// What the host can do for runs that bring no caller of their own.
    caller: Option<Arc<dyn Caller>>,
    roots: Vec<Root>,
    asker: Arc<dyn Asker>,
    flows: Arc<FlowRules>,
    reviewers: Vec<Arc<dyn Reviewer>>,
    session: Arc<SessionGrants>,
    keep: Option<Arc<dyn Keep>>,
    journal: Option<Arc<Journal>>,
    check: Check,
    pub(crate) oversight: Arc<Oversight>,
    tool_settings: Arc<ToolSettings>,
    skills: Vec<Skill>,
    cache: Option<Arc<Cache>>,
    /// Why nothing is cached, where something should be.
    uncached: Option<String>,
}

/// A tool as a list shows it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name of its function in a script.
    pub function: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The first sentence or line of its description.
    pub summary: Option<String>,
}

impl Gate {
    /// A builder without servers or rules.
    pub fn builder() -> GateBuilder {
        GateBuilder::default()
    }

    /// Runs a script and reports, however it ends.
    pub async fn run(&self, request: impl Into<RunRequest>) -> RunReport {
        let request = request.into();
        let read_ahead = request.read_ahead.took();
        let started = Instant::now();
        let mut report = self.run_inner(&request).await;
        report.total_ms = report::millis(read_ahead + started.elapsed());
        report
    }

    /// ScriptCalls one tool without a script, through the same rules and ledger.
    ///
    /// # Errors
    ///
    /// [`CallError`] as a script would have caught it; for a name that is no
    /// tool, [`CallError::Protocol`].
    pub async fn call(
        &self,
        function: &str,
        arguments: Box<RawValue>,
    ) -> Result<Box<RawValue>, CallError> {
        let request = CallRequest::new(function, arguments);
        self.call_with(request).await.result
    }

    /// The tools, grouped by server in the order of the configuration.
    pub fn tools(&self) -> Vec<Tool> {
        let catalog = self.catalog();
        let by_server = catalog.by_server();
        let tools = by_server
            .iter()
            .flat_map(|(_, tools)| tools)
            .map(|tool| Tool {
                function: tool.function.clone(),
                server: tool.definition.server.clone(),
                tool: tool.definition.name.clone(),
                summary: catalog.summary(&tool.function).map(str::to_owned),
            });
        tools.collect()
    }

    /// Whether a tool has this generated name.
    pub fn has_tool(&self, function: &str) -> bool {
        self.catalog().get(function).is_some()
    }

    /// Whether the rules deny every call of this tool.
    pub fn denies(&self, function: &str) -> bool {
        self.decision(function)
            .is_some_and(|decision| decision.verdict == Verdict::Deny)
    }

    /// A message for a name that is no tool, with the nearest that is.
    pub fn unknown_tool_message(&self, function: &str) -> String {
        let disabled = self.live.disabled_message(function, &Scope::default());
        disabled.unwrap_or_else(|| {
            script_calls::unknown_tool_message(function, self.catalog().suggest(function))
        })
    }

    /// A message for a pattern that matches no tool, with the tool that is nearest to it.
    pub fn unmatched_message(&self, pattern: &str) -> String {
        let disabled = self.live.disabled_message(pattern, &Scope::default());
        disabled.unwrap_or_else(|| {
            script_calls::unmatched_message(pattern, self.catalog().suggest(pattern))
        })
    }

    /// Why no tool has this name, if its server keeps it from models. For people:
    /// models do not learn that there might be one.
    pub fn kept_from_models(&self, function: &str) -> Option<String> {
        let catalog = self.catalog();
        let mut kept = catalog.not_for_models();
        kept.any(|kept| kept == function)
            .then(|| unmatched::not_for_models(function))
    }

    /// What `detail` says of the chosen tools: lines of names, or TypeScript
    /// declarations of them and of the types they use. What a script has besides
    /// them is in [`ambient_declarations`](crate::ambient_declarations).
    pub fn declarations(&self, detail: Detail, choose: impl Fn(&str) -> bool) -> String {
        self.catalog().declarations(detail, choose)
    }

    /// Rust types of the chosen tools' arguments and results, for a host that
    /// calls the tools of a pinned catalog itself. A schema of which none can be
    /// made is a JSON value there, and named among the problems.
    pub fn rust_types(&self, choose: impl Fn(&str) -> bool) -> RustTypes {
        let catalog = self.catalog();
        let chosen = catalog.tools().iter();
        let tools: Vec<callgate_rust_types::Tool<'_>> = chosen
            .filter(|tool| choose(&tool.function))
            .map(|tool| callgate_rust_types::Tool {
                function: &tool.function,
                server: &tool.definition.server,
                tool: &tool.definition.name,
                input: &tool.definition.input_schema,
                output: tool.definition.output_schema.as_ref().map(Declared::value),
            })
            .collect();
        callgate_rust_types::generate(&tools)
    }

    /// What is wrong with servers, tools and schemas without stopping anything.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.live.warnings();
        warnings.extend(self.uncached.clone());
        if let Some(cache) = &self.cache {
            warnings.extend(cache.warnings());
        }
        warnings
    }

    /// The rules that can decide nothing about the tools there are now, and why; and those
    /// whose tests of arguments make no difference, with what they decide all the same: a
    /// deny rule that cannot judge what it looks at denies it. Those
    /// that may be about a server whose tools are not known are not among them: it has
    /// not been connected to yet, did not start, or is disabled. When lists of tools
    /// have changed, others are logged as warnings, each once.
    pub fn unmatched_rules(&self) -> Vec<String> {
        self.oversight.find(&self.catalog(), &self.live.servers())
    }

    /// The patterns and names of a dry run that fit none of the tools there are now,
    /// with the same exception.
    pub fn unmatched_in(&self, dry_run: &DryRun) -> Vec<String> {
        let servers = self.live.servers();
        self.oversight
            .of_dry_run(dry_run, &self.catalog(), &servers)
    }

    /// The limits of a run that brings none of its own.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Ends the connections, the servers and the checker that were started, and has the ledger's
    /// file take all lines.
    pub async fn shutdown(&self) {
        self.live.keep().await;
        self.broker.shutdown().await;
        self.check.shut_down().await;
        if let Some(journal) = &self.journal {
            journal.catch_up();
        }
    }

    /// The tools there are at the moment.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.live.catalog()
    }

    /// The tools there are, after lists that are out of date have been asked for.
    pub(crate) async fn fresh_catalog(&self) -> Arc<Catalog> {
        self.live.fresh().await
    }

    /// Why a name in a script that is no tool looks as if it should be one that the
    /// script may use; `None` if it does not.
    pub(crate) fn why_unknown(&self, name: &str, scope: &Scope) -> Option<String> {
        if let Some(server) = self.unavailable_server_of(name) {
            return Some(format!("{name} is not available: {}", server.reason));
        }
        if let Some(message) = self.live.disabled_message(name, scope) {
            return Some(message);
        }
        let catalog = self.catalog();
        // It is one, and the script took it away.
        if catalog.get(name).is_some() {
            return None;
        }
        if catalog.tools().is_empty() && name.contains('_') {
            let why = match self.broker.servers().next() {
                None => "no server is configured, or all are disabled",
                Some(_) => "no server that is in use offers one",
            };
            return Some(format!("{name} is no tool, and there are none: {why}"));
        }
        let near = scope.nearest(&catalog, name)?;
        Some(script_calls::unknown_tool_message(name, Some(near)))
    }

    async fn run_inner(&self, request: &RunRequest) -> RunReport {
        let limits = request.limits.as_ref().unwrap_or(&self.limits);
        let Read {
            prepared, worker, ..
        } = match read_script::read(&self.launcher, limits, request).await {
            Ok(read) => read,
            Err(report) => return *report,
        };
        // The run's own, whatever changes while it lasts.
        let catalog = self.fresh_catalog().await;
        let mentions = &prepared.named.tools;
        let missing = mentions
            .iter()
            .find(|m| self.unavailable_server_of(&m.name).is_some());
        if let Some(mention) = missing {
            let mut report =
                report::missing_server(request, &mention.name, mention.line, mention.column);
            report.unavailable = self.unavailable();
            return report;
        }
        let checked = match self.type_check(request, &prepared, &catalog).await {
            Ok(checked) => checked,
            Err(report) => return *report,
        };
        let functions = stubs(&prepared.named, &catalog, &request.scope);
        let run = Arc::new(self.broker.run_with(self.setup_of(request)));
        let caller = self.caller_of(request).cloned();
        let searcher = Arc::clone(&self.searcher);
        let lookups = Arc::new(Lookups::new(
            Arc::clone(&self.live),
            searcher,
            request.scope.clone(),
            Arc::clone(request.rules.as_ref().unwrap_or(&self.rules)),
            caller.clone(),
            Arc::clone(&run),
        ));
        let extractor = Arc::new(Extractor::new(
            Arc::clone(&self.models),
            caller,
            Arc::clone(&run),
            self.extract,
            TypeReader::new(self.launcher.clone(), limits.clone()),
        ));
        let calls = Arc::new(ScriptCalls {
            catalog,
            live: Arc::clone(&self.live),
            run: Arc::clone(&run),
            scope: request.scope.clone(),
            lookups: Arc::clone(&lookups),
            extractor,
            observer: request.observer.clone(),
            next: Arc::default(),
            unknown: Arc::default(),
            source: Arc::clone(&request.source),
            lines: OnceLock::new(),
        });
        let stretch = |stretch: callgate_script::Stretch| Stretch {
            line: stretch.line,
            column: stretch.column,
            author: stretch.author,
        };
        let job = Job {
            source_name: request.name.to_string(),
            code: prepared.code,
            stretches: prepared.stretches.into_iter().map(stretch).collect(),
            functions,
            limits: limits.clone(),
        };
        let ended = worker.run(job, calls, request.cancel.clone()).await;
        let withheld = request.dry_run.is_some().then(|| run.withheld());
        run.write_out();
        let mut report = report::ended(request, limits, ended, run.ledger(), withheld, self);
        report.run = Some(run.id().to_owned());
        report.lookups = lookups.count();
        report.check = checked;
        report.unavailable = self.unavailable();
        report
    }

    /// What the type check says of a script, if it is to be checked; the run's
    /// report if that ends the run.
    pub(crate) async fn type_check(
        &self,
        request: &RunRequest,
        prepared: &Prepared,
        catalog: &Catalog,
    ) -> Result<Option<TypeCheck>, Box<RunReport>> {
        let mode = request.check.unwrap_or(self.check.mode);
        if mode == CheckMode::Off {
            return Ok(None);
        }
        let checking = self.check.run(
            &request.source,
            &prepared.checkable,
            catalog,
            &request.scope,
            request.limits.as_ref().unwrap_or(&self.limits).script_time,
            |name| self.live.disabled_message(name, &request.scope),
        );
        let checked = tokio::select! {
            checked = checking => checked,
            () = request.cancel.cancelled() => return Err(Box::new(report::cancelled(request))),
        };
        if !checked.stops(mode) {
            return Ok(Some(checked));
        }
        let mut report = report::unfit(request, checked);
        report.unavailable = self.unavailable();
        Err(Box::new(report))
    }
}

/// The tools that are to be functions of a script: those it names, and where it may read
/// anything from the global object, all that it may use.
fn stubs(named: &Named, catalog: &Catalog, scope: &Scope) -> Vec<String> {
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

/// What a tool's server says that it does.
pub(crate) fn hints(tool: &ToolDefinition) -> Hints {
    let said = &tool.annotations;
    Hints {
        read_only: said.read_only_hint,
        destructive: said.destructive_hint,
        idempotent: said.idempotent_hint,
        open_world: said.open_world_hint,
    }
}
