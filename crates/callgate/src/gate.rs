//! The gate: connections, names, rules and workers, and what can be asked of
//! them.

mod authority;
mod call;
mod review;

pub use call::{CallRequest, Called};

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use callgate_broker::{
    Asker, Broker, CallError, Caller, Journal, JournalError, JournalOptions, Keep, NobodyToAsk,
    Reviewer, Root, ServerSpec, ServerState, Status, Transport,
};
use callgate_catalog::{Catalog, Detail, ToolDefinition};
use callgate_policy::flow::FlowRules;
use callgate_policy::{Hints, KnownTool, Rules, SessionGrants, Verdict};
use callgate_rust_types::RustTypes;
use callgate_sandbox::{Job, Launcher, LauncherOptions, Stretch, WorkerProgram};
use callgate_script::{Prepared, ScriptError};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::auth::{Browser, OpenUrl};
use crate::calls::{self, Calls};
use crate::check::{Check, CheckMode, CheckStatus, Places, TypeCheck};
use crate::config::Config;
use crate::keep::KeepInFile;
use crate::live::{Live, Reading};
use crate::report::{self, RunReport, Unavailable};
use crate::roots::with_roots;
use crate::{Limits, RunRequest};

/// Connections to MCP servers and the rules over their tools; runs scripts.
///
/// It is made once and used for many runs, side by side if need be. Each run
/// has a worker process, grants and a ledger of its own.
pub struct Gate {
    broker: Broker,
    live: Arc<Live>,
    launcher: Launcher,
    rules: Arc<Rules>,
    limits: Limits,
    roots: Vec<Root>,
    asker: Arc<dyn Asker>,
    flows: Arc<FlowRules>,
    reviewers: Vec<Arc<dyn Reviewer>>,
    session: Arc<SessionGrants>,
    keep: Option<Arc<dyn Keep>>,
    journal: Option<Arc<Journal>>,
    check: Check,
    unavailable: Vec<Unavailable>,
    /// What the names of their tools would begin with, in the same order.
    unavailable_prefixes: Vec<Option<String>>,
    unmatched_rules: Vec<String>,
}

/// Why a gate could not be built. A server that does not start is no reason:
/// see [`Gate::unavailable`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two servers have one name, so their tools could not be told apart.
    #[error("two servers are named {0:?}; give one of them another name")]
    DuplicateServer(String),
    /// The ledger's file cannot be written to, so no call could be made.
    #[error(transparent)]
    Ledger(#[from] JournalError),
}

/// What a [`Gate`] is made of.
#[must_use]
pub struct GateBuilder {
    servers: Vec<ServerSpec>,
    rules: Rules,
    limits: Limits,
    asker: Arc<dyn Asker>,
    caller: Option<Arc<dyn Caller>>,
    flows: FlowRules,
    reviewers: Vec<Arc<dyn Reviewer>>,
    keep: Option<Arc<dyn Keep>>,
    browser: Option<Browser>,
    ledger: Option<(PathBuf, JournalOptions)>,
    worker: WorkerProgram,
    spares: usize,
    check: CheckMode,
    typescript: Places,
    roots: Vec<Root>,
}

impl Default for GateBuilder {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            rules: Rules::default(),
            limits: Limits::default(),
            asker: Arc::new(NobodyToAsk),
            caller: None,
            flows: FlowRules::default(),
            reviewers: Vec::new(),
            keep: None,
            browser: None,
            ledger: None,
            worker: WorkerProgram::CurrentExe,
            spares: 1,
            check: CheckMode::default(),
            typescript: Places::default(),
            roots: Vec::new(),
        }
    }
}

impl GateBuilder {
    /// Takes servers, rules and limits from a configuration file.
    pub fn config(mut self, config: &Config) -> Self {
        for server in &config.servers {
            let mut server = server.clone();
            if let Some(result) = config.limits.result {
                server.max_message_bytes = usize::try_from(result).unwrap_or(usize::MAX);
            }
            self.servers.push(server);
        }
        self.rules = config.permissions.clone();
        self.flows = config.flows.clone();
        self.keep = Some(Arc::new(KeepInFile::new(config.path.clone())));
        self.ledger = config.ledger.file();
        self.limits = config.limits.over_defaults();
        self.roots.clone_from(&config.roots);
        self.check = config.check.mode.unwrap_or_default();
        self.typescript = Places {
            named: config.check.typescript.clone(),
            project: Some(config.folder.clone()),
        };
        self
    }

    /// Adds a server.
    pub fn server(mut self, server: ServerSpec) -> Self {
        self.servers.push(server);
        self
    }

    /// The rules over tool calls. Default: none, so every call that is not
    /// read-only on a trusted server asks.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The limits of each run. Default: [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What can be done for all servers while they work, in place of what each
    /// server's own [`ServerSpec::caller`] says. It is announced to them when
    /// they are connected to, so a run whose [`RunRequest::caller`] can do more
    /// does that for servers of the newest revision only.
    pub fn caller(mut self, caller: Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Who is asked where the rules say ask. Default: nobody, and that denies.
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = asker;
        self
    }

    /// Where an answer "always" is kept. Default: the configuration's file, if
    /// there is one; else nowhere, so that it lasts for the session.
    pub fn keep(mut self, keep: Arc<dyn Keep>) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Who shows a person the page of a login that a call waits for. Default:
    /// nobody, and such a call fails and says which login to make. The login
    /// has five minutes, within the time limit of the call.
    pub fn browser(mut self, browser: Arc<dyn OpenUrl>) -> Self {
        self.browser = Some(Browser(browser));
        self
    }

    /// The file that every call is written to, before it is sent and when it is
    /// over. A call that the file does not take is not sent. Default: that of
    /// the configuration; else none, so that calls are in the report of their
    /// run alone.
    pub fn ledger(mut self, file: Option<(PathBuf, JournalOptions)>) -> Self {
        self.ledger = file;
        self
    }

    /// The worker binary. Default: this executable started again, which needs
    /// [`worker_main_if_requested`](crate::worker_main_if_requested) first
    /// thing in its `main`.
    pub fn worker_binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.worker = WorkerProgram::Path(path.into());
        self
    }

    /// How many workers wait, started, for a script. Default: 1. Each costs
    /// an idle process; without any, a run waits for its worker to start.
    pub fn spare_workers(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// What the type check of a script decides. Default: [`CheckMode::On`].
    pub fn check(mut self, mode: CheckMode) -> Self {
        self.check = mode;
        self
    }

    /// The native TypeScript 7 that checks scripts: its program, `lib/tsc` in its
    /// package, or a folder it was installed in. Default: the one in
    /// `typescript` beside this executable or one folder above it, else the one
    /// in `node_modules` of the configuration's folder or the nearest above.
    pub fn typescript(mut self, path: impl Into<PathBuf>) -> Self {
        self.typescript.named = Some(path.into());
        self
    }

    /// Connects to the servers, side by side, and asks for their tools.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for settings that cannot work. Servers that do not start
    /// are not an error: the others go on, and [`Gate::unavailable`] says
    /// which and why.
    pub async fn build(mut self) -> Result<Gate, BuildError> {
        for server in &mut self.servers {
            let caller = self.caller.as_ref().unwrap_or(&server.caller);
            server.caller = with_roots(&self.roots, Arc::clone(caller));
            if let Transport::Http(http) = &mut server.transport
                && let Some(oauth) = &mut http.oauth
            {
                oauth.browser = oauth.browser.take().or_else(|| self.browser.clone());
            }
        }
        let mut names: Vec<&str> = self
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BuildError::DuplicateServer(pair[0].to_owned()));
        }
        let journal = match self.ledger {
            Some((path, options)) => Some(Arc::new(Journal::open(&path, options)?)),
            None => None,
        };
        // Before the servers, so that workers start while servers do.
        let mut options = LauncherOptions::default();
        options.spares = self.spares;
        options.heap_bytes = self.limits.heap_bytes;
        options.jit = self.limits.jit;
        let launcher = Launcher::new(self.worker, options);
        let mut places = self.typescript;
        if places.project.is_none() {
            places.project = std::env::current_dir().ok();
        }
        let check = Check::new(self.check, places);
        check.start();
        let reading = Reading::default();
        let noted = reading.clone();
        let broker = Broker::start_noting(self.servers, move |state| noted.begin(state)).await;
        let unavailable = unavailable(&broker);
        let live = Live::follow(broker.clone(), reading).await;
        let catalog = live.catalog();
        let trusted: HashSet<String> = broker
            .servers()
            .filter(|server| server.trusted)
            .map(|server| server.name)
            .collect();
        let known = catalog.tools().iter().map(|tool| KnownTool {
            function: &tool.function,
            server: &tool.definition.server,
            hints: hints(&tool.definition),
            trusted: trusted.contains(&tool.definition.server),
            definition: Some(tool.definition.identity.hash()),
            input_schema: Some(&tool.definition.input_schema),
        });
        let unmatched = self.rules.unmatched(known, Timestamp::now());
        let mut unmatched_rules: Vec<String> = unmatched.iter().map(ToString::to_string).collect();
        unmatched_rules.extend(review::unmatched(&self.flows, &catalog));
        Ok(Gate {
            broker,
            live: Arc::new(live),
            launcher,
            rules: Arc::new(self.rules),
            limits: self.limits,
            roots: self.roots,
            asker: self.asker,
            flows: Arc::new(self.flows),
            reviewers: self.reviewers,
            session: Arc::default(),
            keep: self.keep,
            journal,
            check,
            unavailable_prefixes: unavailable
                .iter()
                .map(|server| function_prefix(&server.server))
                .collect(),
            unavailable,
            unmatched_rules,
        })
    }
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
        let started = Instant::now();
        let mut report = self.run_inner(&request).await;
        report.total_ms = started.elapsed().as_millis() as u64;
        report
    }

    /// Calls one tool without a script, through the same rules and ledger.
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
        calls::unknown_tool_message(function, self.catalog().suggest(function))
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
                output: tool.definition.output_schema.as_ref(),
            })
            .collect();
        callgate_rust_types::generate(&tools)
    }

    /// Servers that did not start, and why.
    pub fn unavailable(&self) -> &[Unavailable] {
        &self.unavailable
    }

    /// The server that did not start and to which this name would belong.
    pub fn unavailable_server_of(&self, function: &str) -> Option<&Unavailable> {
        if self.has_tool(function) {
            return None;
        }
        let mut servers = self.unavailable.iter().zip(&self.unavailable_prefixes);
        let belongs = |prefix: &str| function.starts_with(prefix);
        let found = servers.find(|(_, prefix)| prefix.as_deref().is_some_and(belongs));
        found.map(|(server, _)| server)
    }

    /// What is wrong with servers, tools and schemas without stopping anything.
    pub fn warnings(&self) -> Vec<String> {
        self.live.warnings()
    }

    /// The rules that can decide nothing about the tools there are, and why.
    pub fn unmatched_rules(&self) -> &[String] {
        &self.unmatched_rules
    }

    /// The limits of a run that brings none of its own.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Ends the connections, the servers and the checker that were started.
    pub async fn shutdown(&self) {
        self.broker.shutdown().await;
        self.check.shut_down().await;
    }

    /// The tools there are at the moment.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.live.catalog()
    }

    /// The tools there are, after lists that are out of date have been asked for.
    pub(crate) async fn fresh_catalog(&self) -> Arc<Catalog> {
        self.live.fresh().await
    }

    /// Why a name in a script that is no tool looks as if it should be one;
    /// `None` if it does not.
    pub(crate) fn why_unknown(&self, name: &str) -> Option<String> {
        if let Some(server) = self.unavailable_server_of(name) {
            return Some(format!("{name} is not available: {}", server.reason));
        }
        let catalog = self.catalog();
        if catalog.tools().is_empty() && name.contains('_') {
            return Some(format!(
                "{name} is no tool, and there are none: no server is configured or available"
            ));
        }
        let near = catalog.suggest(name)?;
        Some(calls::unknown_tool_message(name, Some(near)))
    }

    async fn run_inner(&self, request: &RunRequest) -> RunReport {
        let prepared = match prepare(Arc::clone(&request.source)).await {
            Ok(prepared) => prepared,
            Err(error) => return report::rejected(request, &error),
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
            report.unavailable = self.unavailable.clone();
            return report;
        }
        let checked = match self.type_check(request, &prepared, &catalog).await {
            Ok(checked) => checked,
            Err(report) => return *report,
        };
        let mut functions: Vec<String> = mentions
            .iter()
            .filter(|mention| catalog.get(&mention.name).is_some())
            .map(|mention| mention.name.clone())
            .collect();
        functions.sort_unstable();
        functions.dedup();
        let limits = request.limits.as_ref().unwrap_or(&self.limits);
        let run = Arc::new(self.broker.run_with(self.setup_of(request)));
        let calls = Arc::new(Calls {
            catalog,
            live: Arc::clone(&self.live),
            run: Arc::clone(&run),
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
        let ended = self.launcher.run(job, calls, request.cancel.clone()).await;
        let withheld = request.dry_run.is_some().then(|| run.withheld());
        let mut report = report::ended(request, limits, ended, run.ledger(), withheld, self);
        report.run = Some(run.id().to_owned());
        report.check = checked;
        report.unavailable = self.unavailable.clone();
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
        let checking = self
            .check
            .run(&request.source, &prepared.checkable, catalog);
        let checked = tokio::select! {
            checked = checking => checked,
            () = request.cancel.cancelled() => return Err(Box::new(report::cancelled(request))),
        };
        let stops = match checked.status {
            CheckStatus::Passed => false,
            CheckStatus::Failed => mode != CheckMode::Warn,
            CheckStatus::Unchecked => mode == CheckMode::Require,
        };
        if !stops {
            return Ok(Some(checked));
        }
        let mut report = report::unfit(request, checked);
        report.unavailable = self.unavailable.clone();
        Err(Box::new(report))
    }
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

/// Parsing is bounded, but not so tightly that it may hold up other runs.
pub(crate) async fn prepare(source: Arc<str>) -> Result<Prepared, ScriptError> {
    match tokio::task::spawn_blocking(move || callgate_script::prepare(&source)).await {
        Ok(parsed) => parsed,
        // `prepare` does not panic, so the runtime is shutting down, and this
        // task with it.
        Err(_) => std::future::pending().await,
    }
}

/// What the generated names of a server's tools begin with, though none of its
/// tools is known.
fn function_prefix(server: &str) -> Option<String> {
    let names = callgate_typegen::names::assign([(server, "x")]);
    names
        .function(server, "x")?
        .strip_suffix('x')
        .map(str::to_owned)
}

/// The servers that did not start.
fn unavailable(broker: &Broker) -> Vec<Unavailable> {
    let reason = |server: ServerState| match server.status {
        Status::Failed(error) => Some(Unavailable {
            server: server.name,
            reason: error.to_string(),
        }),
        _ => None,
    };
    broker.servers().filter_map(reason).collect()
}
