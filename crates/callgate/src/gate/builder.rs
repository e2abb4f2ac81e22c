//! What a gate is made of, and making it.

use std::path::PathBuf;
use std::sync::Arc;

use callgate_broker::{
    Asker, Broker, Caller, Consultant, Journal, JournalError, JournalOptions, Keep, NobodyToAsk,
    Reviewer, Root, ServerSpec, Transport,
};
use callgate_policy::Rules;
use callgate_policy::flow::FlowRules;
use callgate_sandbox::{JailOptions, WorkerProgram};

use super::Gate;
use crate::auth::{Browser, OpenUrl};
use crate::config::{CacheConfig, Config, ModelsConfig};
use crate::host_functions::extract::ExtractLimits;
use crate::keep_in_file::KeepInFile;
use crate::live_catalog::{LiveCatalog, Reading};
use crate::model_tools::{EXTRACTION, SEARCH};
use crate::models::Models;
use crate::roots::with_roots;
use crate::search::vectors::Vectors;
use crate::search::{SearchBy, Searcher};
use crate::type_check::{Check, CheckMode, Places};
use crate::unmatched::{Oversight, Told};
use crate::workers::Workers;
use crate::{Limits, Skill, ToolSettings};

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
    /// Two skills have one name, so they could not be told apart.
    #[error("two skills are named {0:?}; give one of them another name")]
    DuplicateSkill(String),
    /// A skill names a server that there is not.
    #[error(
        "skill {skill:?} names the server {server:?}, and none has this name{}",
        crate::gate::servers::nearest(near.as_deref())
    )]
    SkillServer {
        /// The skill's name.
        skill: String,
        /// The server's name.
        server: String,
        /// The nearest that is one.
        near: Option<String>,
    },
}

/// What a [`Gate`] is made of.
#[must_use]
pub struct GateBuilder {
    pub(super) servers: Vec<ServerSpec>,
    /// The servers that the configuration disables, by name.
    pub(super) left_out: Vec<String>,
    pub(super) rules: Rules,
    pub(super) limits: Limits,
    pub(super) models: ModelsConfig,
    pub(super) extract: ExtractLimits,
    pub(super) search: SearchBy,
    pub(super) asker: Arc<dyn Asker>,
    pub(super) caller: Option<Arc<dyn Caller>>,
    pub(super) flows: FlowRules,
    pub(super) reviewers: Vec<Arc<dyn Reviewer>>,
    pub(super) keep: Option<Arc<dyn Keep>>,
    pub(super) browser: Option<Browser>,
    pub(super) ledger: Option<(PathBuf, JournalOptions)>,
    pub(super) worker: WorkerProgram,
    pub(super) spares: usize,
    pub(super) workers: Option<Workers>,
    pub(super) jail: JailOptions,
    pub(super) check: CheckMode,
    pub(super) typescript: Places,
    pub(super) roots: Vec<Root>,
    pub(super) tool_settings: ToolSettings,
    pub(super) cache: Option<CacheConfig>,
    pub(super) cache_scope: Option<String>,
    pub(super) skills: Vec<Skill>,
}

impl Default for GateBuilder {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            left_out: Vec::new(),
            rules: Rules::default(),
            limits: Limits::default(),
            models: ModelsConfig::default(),
            extract: ExtractLimits::default(),
            search: SearchBy::default(),
            asker: Arc::new(NobodyToAsk),
            caller: None,
            flows: FlowRules::default(),
            reviewers: Vec::new(),
            keep: None,
            browser: None,
            ledger: None,
            worker: WorkerProgram::CurrentExe,
            spares: 1,
            workers: None,
            jail: JailOptions::default(),
            check: CheckMode::default(),
            typescript: Places::default(),
            roots: Vec::new(),
            tool_settings: ToolSettings::default(),
            cache: None,
            cache_scope: None,
            skills: Vec::new(),
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
        self.left_out.clone_from(&config.disabled);
        self.rules = config.permissions.clone();
        self.flows = config.flows.clone();
        self.keep = Some(Arc::new(KeepInFile::new(config.path.clone())));
        self.ledger = config.ledger.file();
        self.limits = config.limits.over_defaults();
        self.jail = config.jail.clone();
        self.models = config.models.clone();
        self.extract = config.extract;
        self.search = config.search;
        self.roots.clone_from(&config.roots);
        self.tool_settings = config.tools.clone();
        self.cache = Some(config.cache.clone());
        self.skills.extend_from_slice(&config.skills);
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

    /// The endpoints of models: for searches by what is meant, and for
    /// `mcp.extract`. Default: none.
    pub fn models(mut self, models: ModelsConfig) -> Self {
        self.models = models;
        self
    }

    /// How tools are looked for where a request leaves it open. Default:
    /// [`SearchBy::Auto`], which is by words and by what is meant where there is
    /// an endpoint of embeddings, and by words where there is none.
    pub fn search_by(mut self, by: SearchBy) -> Self {
        self.search = by;
        self
    }

    /// The limits of `mcp.extract` in each run. Default:
    /// [`ExtractLimits::default`].
    pub fn extract_limits(mut self, limits: ExtractLimits) -> Self {
        self.extract = limits;
        self
    }

    /// What can be done for all servers while they work, in place of what each
    /// server's own [`ServerSpec::caller`] says. It is announced to them when
    /// they are connected to, so a run whose [`RunRequest::caller`](crate::RunRequest::caller) can do more
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

    /// Has an answer "always" last for the session only, whatever the
    /// configuration: for gates of users who may not write into its file.
    pub fn keep_nothing(mut self) -> Self {
        self.keep = None;
        self
    }

    /// Who shows a person the page of a login that a call waits for. Default:
    /// nobody, and such a call fails and says which login to make. The login
    /// has five minutes, within the time limit of the call. A page that a person
    /// has refused is not shown again for the same scopes of that server by the
    /// same gate, unless there was another login since; calls fail with
    /// [`AuthErrorKind::Declined`](crate::auth::AuthErrorKind::Declined).
    pub fn browser(mut self, browser: Arc<dyn OpenUrl>) -> Self {
        self.browser = Some(Browser::new(browser));
        self
    }

    /// The file that every call is written to, before it is sent and when it is
    /// over. A call whose line nothing takes is not sent. Default: that of
    /// the configuration; else none, so that calls are in the report of their
    /// run alone.
    pub fn ledger(mut self, file: Option<(PathBuf, JournalOptions)>) -> Self {
        self.ledger = file;
        self
    }

    /// The worker program, or its path. Default: this executable started again,
    /// which needs [`worker_main_if_requested`](crate::worker_main_if_requested)
    /// first thing in its `main`.
    pub fn worker_binary(mut self, program: impl Into<WorkerProgram>) -> Self {
        self.worker = program.into();
        self
    }

    /// The kernel layers around workers of the gate's own. Default: that of the
    /// configuration; else all that the kernel has, and a worker without Landlock
    /// or seccomp runs no script.
    pub fn jail(mut self, jail: JailOptions) -> Self {
        self.jail = jail;
        self
    }

    /// How many workers wait, started, for a script. Default: 1. Each costs
    /// an idle process; without any, a run waits for its worker to start. While
    /// runs come faster than workers start, more wait: up to twice as many as
    /// there are processors.
    pub fn spare_workers(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// Takes workers from these, in place of ones of the gate's own. Default:
    /// its own.
    pub fn workers(mut self, workers: Workers) -> Self {
        self.workers = Some(workers);
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
        self.follow_skills()?;
        let journal = match self.ledger.take() {
            Some((path, options)) => Some(Arc::new(Journal::open(&path, options)?)),
            None => None,
        };
        // Before the servers, so that workers start while servers do.
        let launcher = match self.workers.take() {
            Some(workers) => workers,
            None => Workers::new(self.worker.clone(), self.spares, &self.limits, &self.jail),
        };
        let launcher = launcher.launcher;
        let mut places = self.typescript.clone();
        if places.project.is_none() {
            places.project = std::env::current_dir().ok();
        }
        let check = Check::new(self.check, places, &self.jail);
        check.start();
        let (cache, uncached) = self.recall().await;
        let tool_settings = Arc::new(self.tool_settings);
        let reading = Reading::default();
        let noted = reading.clone();
        let broker = Broker::start_noting(self.servers, move |state| noted.begin(state)).await;
        let servers = broker.servers().map(|server| server.name);
        let names = servers.chain(self.left_out.iter().cloned());
        let prefixes = names.map(|name| {
            let beginning = callgate_typegen::names::beginning(&name);
            (name, beginning)
        });
        let prefixes = prefixes.collect();
        let oversight = Arc::new(Oversight {
            rules: Arc::new(self.rules),
            flows: Arc::new(self.flows),
            settings: Arc::clone(&tool_settings),
            prefixes,
            left_out: self.left_out,
            consults: consulted(&self.models),
            told: Told::default(),
        });
        let watch = Arc::clone(&oversight);
        let live = LiveCatalog::follow(broker.clone(), reading, watch, cache.clone()).await;
        let catalog = live.catalog();
        oversight.begin(&catalog, &live.servers());
        let live = Arc::new(live);
        let models = Arc::new(Models::new(self.models));
        let kept = cache.as_ref().map(|cache| cache.vectors());
        let vectors = Arc::new(Vectors::new(Arc::clone(&models), kept));
        let searcher = Searcher::new(
            Arc::clone(&live),
            &broker,
            Arc::clone(&models),
            vectors,
            self.search,
        );
        let gate = Gate {
            broker,
            searcher: Arc::new(searcher),
            live,
            launcher,
            rules: Arc::clone(&oversight.rules),
            limits: self.limits,
            models,
            extract: self.extract,
            caller: self.caller,
            roots: self.roots,
            asker: self.asker,
            flows: Arc::clone(&oversight.flows),
            reviewers: self.reviewers,
            session: Arc::default(),
            keep: self.keep,
            journal,
            check,
            oversight,
            tool_settings,
            skills: self.skills,
            cache,
            uncached,
        };
        gate.keep_at_start(catalog);
        Ok(gate)
    }
}

/// What the models of a configuration are for.
fn consulted(models: &ModelsConfig) -> Vec<&'static Consultant> {
    let (small, embeddings) = (models.small.is_some(), models.embeddings.is_some());
    let extraction = small.then_some(&*EXTRACTION);
    let search = (small || embeddings).then_some(&*SEARCH);
    extraction.into_iter().chain(search).collect()
}
