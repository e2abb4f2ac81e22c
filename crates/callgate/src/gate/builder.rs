//! Building a gate.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callgate_auth::{Browser, OpenUrl};
use callgate_gate::{
    Asker, Definitions, GrantStore, LedgerFile, LedgerOptions, LedgerSink, People, Records,
    Reviewer, RunOptions, RunRules, Setup,
};
use callgate_policy::Rules;
use callgate_policy::flow::FlowRules;
use callgate_sandbox::{JailOptions, Limits, WorkerProgram};
use callgate_servers::{
    Audience, Caller, Connect, Phase, ServerSpec, ServerState, Servers, Status, Transport,
};
use callgate_text::nearest;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::Gate;
use crate::cache::Cache;
use crate::choices::CheckMode;
use crate::config::{CacheConfig, CheckConfig, Config, ModelsConfig};
use crate::error::{GateError, GateErrorKind};
use crate::keep_in_file::KeepInFile;
use crate::lint::Lint;
use crate::live_catalog::{Awaiting, LiveCatalog};
use crate::model_tools::{EXTRACTION, SEARCH};
use crate::models::Models;
use crate::names::{ServerNames, did_you_mean, with_prefix};
use crate::record::StoreSink;
use crate::roots::with_roots;
use crate::search::Searcher;
use crate::search::vectors::Vectors;
use crate::setters::setters;
use crate::type_check::TypeChecker;
use crate::workers::{Workers, default_program};

/// The parts of a [`Gate`].
#[derive(Default)]
#[must_use]
pub struct GateBuilder {
    config: Config,
    cache: Option<CacheConfig>,
    cache_scope: Option<String>,
    asker: Option<Arc<dyn Asker>>,
    caller: Option<Arc<dyn Caller>>,
    audience: Audience,
    reviewers: Vec<Arc<dyn Reviewer>>,
    keep: Option<Arc<dyn GrantStore>>,
    sinks: Vec<Arc<dyn LedgerSink>>,
    store: Option<Arc<StoreSink>>,
    browser: Option<Browser>,
    worker: Option<WorkerProgram>,
    spares: Option<usize>,
    workers: Option<Workers>,
    patience: Option<Duration>,
    awaiting: Option<Awaiting>,
}

impl Gate {
    /// A builder without servers or rules.
    pub fn builder() -> GateBuilder {
        GateBuilder::default()
    }
}

impl GateBuilder {
    /// Takes all settings from a configuration.
    pub fn config(mut self, config: &Config) -> Self {
        let before = std::mem::replace(&mut self.config, config.clone());
        self.config.servers.splice(0..0, before.servers);
        self.config.skills.splice(0..0, before.skills);
        self.keep = Some(Arc::new(KeepInFile(config.path.clone())));
        self.cache = Some(config.cache.clone());
        self
    }

    setters! {
        /// Adds a server.
        server(self, server: ServerSpec) { self.config.servers.push(server); }

        /// Sets the rules. Default: none, so only read-only calls on trusted servers do not ask.
        rules(self, rules: Rules) { self.config.permissions = rules; }

        /// Sets whether rules that deny, and other settings that forbid, may match nothing. Default:
        /// false, and then the gate is not built if no server that lists its tools has such a tool.
        /// Where a server lists its tools later, or with [`GateBuilder::patience`], the gate is
        /// built, and its runs and calls are refused from then on.
        allow_unmatched(self, allow: bool) { self.config.allow_unmatched = allow; }

        /// Sets the limits of each run.
        limits(self, limits: Limits) { self.config.limits = limits; }

        /// Sets the model endpoints for searches by meaning and for `mcp.extract`. Default: none.
        #[doc(hidden)]
        models(self, models: ModelsConfig) { self.config.models = models; }

        /// Sets the caller that all servers can ask, in place of each [`ServerSpec::caller`].
        /// Servers learn its abilities when they are connected to; if the caller of a run offers
        /// more, only servers of the newest revision can use that.
        #[doc(hidden)]
        caller(self, caller: Arc<dyn Caller>) { self.caller = Some(caller); }

        /// Sets the audience of errors, reports and reasons. Default: [`Audience::Operator`].
        audience(self, audience: Audience) { self.audience = audience; }

        /// Sets the asker for rules that ask. Default: none, and such calls are denied.
        asker(self, asker: Arc<dyn Asker>) { self.asker = Some(asker); }

        /// Sets the rules over data between servers. Default: none, so flows are recorded and pass.
        #[doc(hidden)]
        flow_rules(self, rules: FlowRules) { self.config.flows = rules; }

        /// Adds a reviewer of arguments and results.
        reviewer(self, reviewer: Arc<dyn Reviewer>) { self.reviewers.push(reviewer); }

        /// Sets the place where an answer "always" is kept. Default: the configuration's file,
        /// else the session.
        keep(self, keep: Arc<dyn GrantStore>) { self.keep = Some(keep); }
    }

    /// Makes an answer "always" last for the session only.
    pub fn keep_nothing(mut self) -> Self {
        self.keep = None;
        self
    }

    setters! {
        /// Sets the browser for logins that calls wait for. Default: none, and such a call fails
        /// with the login that it needs.
        ///
        /// A login has five minutes, within the call's time limit. A page that a person refused is
        /// not shown again; calls fail until another login.
        #[doc(hidden)]
        browser(self, browser: Arc<dyn OpenUrl>) { self.browser = Some(Browser::new(browser)); }

        /// Sets the ledger's file. A call that cannot be written to it is not sent.
        ledger(self, file: impl Into<PathBuf>) {
            self.config.ledger = Some((file.into(), LedgerOptions::default()));
        }

        /// Sets the ledger's file and its options, or takes it away.
        #[doc(hidden)]
        ledger_file(self, file: Option<(PathBuf, LedgerOptions)>) { self.config.ledger = file; }

        /// Adds a receiver of the ledger's events, beside its file. A call whose event it fails to
        /// record is not sent.
        ledger_sink(self, sink: Arc<dyn LedgerSink>) { self.sinks.push(sink); }

        /// Sets the record of the gate's runs. Default: none.
        #[doc(hidden)]
        store(self, sink: Arc<StoreSink>) { self.store = Some(sink); }

        /// Sets the worker program. Default: this executable if it has called
        /// `worker_main_if_requested`, else `callgate-worker` beside it.
        worker_binary(self, program: impl Into<PathBuf>) {
            self.worker = Some(WorkerProgram::Path(program.into()));
        }

        /// Sets the number of workers that wait for a script. Default: 1. More wait while runs
        /// come faster than workers start: up to twice the number of processors.
        spare_workers(self, spares: usize) { self.spares = Some(spares); }

        /// Sets shared workers, in place of the gate's own.
        #[doc(hidden)]
        workers(self, workers: Workers) { self.workers = Some(workers); }

        /// Sets the mode of the type check. Default: [`CheckMode::On`].
        check(self, mode: CheckMode) { self.config.check.mode = Some(mode); }

        /// Sets the native TypeScript 7: its program, `lib/tsc` in its package, or a folder it is
        /// installed in. Default: the one in `typescript` beside this executable or one folder
        /// above, else the nearest `node_modules` at or above the configuration's folder.
        typescript(self, path: impl Into<PathBuf>) {
            self.config.check.typescript = Some(path.into());
        }

        /// Sets how long [`GateBuilder::build`] waits for servers whose tools are not known, and that
        /// it does not wait for others. Default: it waits for every server that starts. Those that
        /// are late are connected to all the same, and their tools come in.
        #[doc(hidden)]
        patience(self, patience: Duration) { self.patience = Some(patience); }

        /// Sets a listener that hears which servers are still waited for, whenever that changes.
        #[doc(hidden)]
        on_waiting(self, awaiting: impl Fn(&[String]) + Send + Sync + 'static) {
            self.awaiting = Some(Arc::new(awaiting));
        }

        /// Sets the cache for servers' lists and tools' vectors; `None` for no cache. If the folder
        /// cannot be used, [`Gate::warnings`] says so.
        #[doc(hidden)]
        cache(self, cache: Option<CacheConfig>) { self.cache = cache; }

        /// Sets the cache's scope: gates of different scopes share nothing in one folder.
        #[doc(hidden)]
        cache_scope(self, scope: impl Into<String>) { self.cache_scope = Some(scope.into()); }
    }

    /// Connects to the servers, side by side, and asks for their tools.
    ///
    /// # Errors
    ///
    /// [`GateError`] for invalid settings. Servers that do not start are no error: see
    /// [`Gate::unavailable`].
    pub async fn build(mut self) -> Result<Gate, GateError> {
        self.check_names()?;
        self.apply_skills()?;
        self.complete_servers();
        let sinks = self.open_sinks()?;
        // Workers and TypeScript start while the servers do.
        let workers = self.take_workers();
        let config = self.config;
        let checker = start_checker(config.check, config.folder, &config.jail);
        let mut servers = config.servers;
        let scope = self.cache_scope.as_deref();
        let opened = open_cache(self.cache.as_ref(), scope, &mut servers);
        let uncached = opened.as_ref().err().cloned();
        let cache = opened.unwrap_or_default();
        let connections = Servers::start(servers);
        wait_for_lists(&connections, self.patience, self.awaiting.as_ref()).await;
        let in_use = connections.list().map(|server| server.name);
        let models = Arc::new(Models::new(config.models));
        let extraction = models.has_small().then_some(&*EXTRACTION);
        let search = (models.has_small() || models.has_embeddings()).then_some(&*SEARCH);
        let left_out = config.left_out.into_iter();
        let reasons = left_out.map(|it| (it.server, it.problem.to_string()));
        let lint = Lint {
            rules: Arc::new(config.permissions),
            flows: Arc::new(config.flows),
            settings: config.tools,
            names: ServerNames::new(in_use, config.disabled, reasons.collect()),
            withheld: config.withheld.into_iter().map(with_prefix).collect(),
            consults: extraction.into_iter().chain(search).collect(),
            reported: Mutex::default(),
            pending: Mutex::default(),
        };
        let live = LiveCatalog::follow(connections, lint, cache.clone(), self.awaiting).await;
        if let Err(error) = check_rules(&live, config.allow_unmatched, self.patience) {
            live.connections.shut_down().await;
            checker.shut_down().await;
            return Err(error);
        }
        let lint = &live.lint;
        if let Some(cache) = cache.clone() {
            tidy(cache, &live);
        }
        let folder = cache.as_ref().map(|cache| cache.vectors());
        let vectors = Arc::new(Vectors::new(Arc::clone(&models), folder));
        let searcher = Searcher::new(Arc::clone(&live), vectors, config.search, self.audience);
        let setup = Setup {
            rules: RunRules {
                calls: Arc::clone(&lint.rules),
                flows: Arc::clone(&lint.flows),
                ..RunRules::default()
            },
            people: People {
                asker: self.asker,
                reviewers: self.reviewers,
                caller: None,
                audience: self.audience,
            },
            records: Records {
                keep: self.keep,
                definitions: cache.map(|cache| cache as Arc<dyn Definitions>),
                sinks,
            },
            options: RunOptions::default(),
        };
        Ok(Gate {
            setup,
            live,
            searcher: Arc::new(searcher),
            launcher: workers.launcher,
            limits: config.limits,
            models,
            extract: config.extract,
            caller: self.caller,
            roots: config.roots,
            checker,
            skills: config.skills,
            store: self.store,
            uncached,
        })
    }

    /// The host's sinks, the file and the store.
    fn open_sinks(&mut self) -> Result<Vec<Arc<dyn LedgerSink>>, GateError> {
        let mut sinks = std::mem::take(&mut self.sinks);
        if let Some((path, options)) = self.config.ledger.take() {
            sinks.push(Arc::new(LedgerFile::open(&path, options)?));
        }
        let store = self.store.iter();
        sinks.extend(store.map(|store| Arc::clone(store) as Arc<dyn LedgerSink>));
        Ok(sinks)
    }

    /// The host's workers, or those of this gate alone.
    fn take_workers(&mut self) -> Workers {
        self.workers.take().unwrap_or_else(|| {
            let program = self.worker.take().unwrap_or_else(default_program);
            let (limits, jail) = (&self.config.limits, &self.config.jail);
            Workers::new(program, self.spares.unwrap_or(1), limits, jail)
        })
    }

    fn check_names(&self) -> Result<(), GateError> {
        let servers = self.config.servers.iter().map(|server| &server.name);
        let skills = self.config.skills.iter().map(|skill| &skill.name);
        let twice = match (twice(servers), twice(skills)) {
            (Some(name), _) => format!("two servers are named {name:?}"),
            (_, Some(name)) => format!("two skills are named {name:?}"),
            (None, None) => return Ok(()),
        };
        let message = format!("{twice}; give one of them another name");
        Err(GateError::new(GateErrorKind::DuplicateName, message))
    }

    /// Disables the servers that no skill names, if skills name any.
    fn apply_skills(&mut self) -> Result<(), GateError> {
        let servers = self.config.servers.iter().map(|it| &it.name);
        let left_out = self.config.left_out.iter().map(|it| &it.server);
        let known: Vec<&str> = servers.chain(left_out).map(String::as_str).collect();
        let mut named = HashSet::new();
        for skill in &self.config.skills {
            for server in skill.servers.iter().flatten() {
                if !known.contains(&server.as_str()) {
                    let message = format!(
                        "skill {:?} names the server {server:?}, and none has this name{}",
                        skill.name,
                        did_you_mean(nearest(server, known.iter().copied()))
                    );
                    return Err(GateError::new(GateErrorKind::NotFound, message));
                }
                named.insert(server.as_str());
            }
        }
        let mut skills = self.config.skills.iter();
        if skills.all(|skill| skill.servers.is_none()) {
            return Ok(());
        }
        for server in &mut self.config.servers {
            if !named.contains(server.name.as_str()) {
                server.connect = Connect::Manual;
            } else if server.connect == Connect::Manual {
                server.connect = Connect::Lazy;
            }
        }
        Ok(())
    }

    /// Gives the servers the gate's caller, folders and browser.
    fn complete_servers(&mut self) {
        for server in &mut self.config.servers {
            let caller = self.caller.as_ref().unwrap_or(&server.caller);
            server.caller = with_roots(&self.config.roots, Arc::clone(caller));
            if let Transport::Http(http) = &mut server.transport
                && let Some(oauth) = &mut http.oauth
            {
                oauth.browser = oauth.browser.take().or_else(|| self.browser.clone());
            }
        }
    }
}

/// Starts the type checker. Without a configuration, the folder's author has no say over programs
/// that run.
fn start_checker(check: CheckConfig, folder: PathBuf, jail: &JailOptions) -> TypeChecker {
    let project = Some(folder).filter(|folder| folder.is_absolute());
    let mode = check.mode.unwrap_or_default();
    let checker = TypeChecker::new(mode, check.typescript, project, jail);
    checker.start();
    checker
}

/// Keeps the definitions of granted tools, and removes old files of the cache, beside other work.
fn tidy(cache: Arc<Cache>, live: &LiveCatalog) {
    let (rules, catalog) = (Arc::clone(&live.lint.rules), live.catalog());
    drop(tokio::task::spawn_blocking(move || {
        cache.keep_granted(&rules, &catalog);
        cache.tidy();
    }));
}

/// Waits for the servers that start; with a patience, for those without a list, and no longer.
async fn wait_for_lists(
    servers: &Servers,
    patience: Option<Duration>,
    awaiting: Option<&Awaiting>,
) {
    let is_awaited = |server: &ServerState| {
        let is_listed = matches!(server.status, Status::Ready(_));
        server.phase == Phase::Starting && !(is_listed && patience.is_some())
    };
    let all_there = servers.wait_while(is_awaited, |names| {
        if let Some(awaiting) = awaiting {
            awaiting(names);
        }
    });
    match patience {
        Some(patience) => drop(timeout(patience, all_there).await),
        None => all_there.await,
    }
}

/// Opens the cache, and gives the servers their lists from it.
/// The error: why there is no cache, though there should be one.
fn open_cache(
    config: Option<&CacheConfig>,
    scope: Option<&str>,
    servers: &mut [ServerSpec],
) -> Result<Option<Arc<Cache>>, String> {
    let Some(config) = config else {
        return Ok(None);
    };
    let opened = Cache::open(config, scope);
    let cache = opened.map_err(|reason| format!("nothing is cached: {reason}"))?;
    if let Some(cache) = &cache {
        servers.iter_mut().for_each(|server| cache.recall(server));
    }
    Ok(cache.map(Arc::new))
}

/// A name that comes twice.
fn twice<'a>(mut names: impl Iterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
}

/// Refuses rules that should forbid something and match nothing, unless they are permitted.
/// With a patience, it depends on chance which lists are there, so runs and calls are refused.
fn check_rules(
    live: &LiveCatalog,
    allow_unmatched: bool,
    patience: Option<Duration>,
) -> Result<(), GateError> {
    let void = live.lint.begin(&live.catalog(), &live.servers());
    if allow_unmatched {
        live.lint.pending.lock().clear();
    } else if !void.is_empty() && patience.is_none() {
        let message = format!(
            "{}; correct that, or make it a warning with --allow-unmatched-rules or \
             \"allowUnmatched\": true in \"permissions\"",
            void.join("\n")
        );
        return Err(GateError::new(GateErrorKind::UnmatchedRule, message));
    }
    Ok(())
}
