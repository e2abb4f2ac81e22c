//! The current catalog, rebuilt when a server's list of tools changes.
//!
//! A run sees tools come and go. Names are stable: a function name never comes to mean
//! another tool while the gate lives.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callgate_catalog::{Catalog, Tool};
use callgate_gate::{CallError, CallErrorKind, CallOptions, code};
use callgate_policy::{Because, Decision, Rules, Verdict};
use callgate_script::Mentions;
use callgate_servers::{Phase, ServerState, Servers, Shared, Status, ToolList};
use callgate_text::one_line;
use futures::future::join_all;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::cache::Cache;
use crate::lint::Lint;
use crate::model_tools;
use crate::names::NameProblem;
use crate::read_list::ReadList;
use crate::scope::Scope;

/// The time that fresh lists are waited for; after that, the known lists serve.
const PATIENCE: Duration = Duration::from_secs(2);
/// The characters of a message about an incomplete list.
const MAX_GAPS: usize = 500;

/// The catalogs of all gates: those of the users of a host are mostly the same.
static CATALOGS: Shared<Catalog> = Shared::empty();

/// Hears the names of the servers that are still waited for.
pub(crate) type Awaiting = Arc<dyn Fn(&[String]) + Send + Sync>;

/// The current catalog.
pub(crate) struct LiveCatalog {
    pub(crate) connections: Servers,
    pub(crate) lint: Lint,
    pub(crate) cache: Option<Arc<Cache>>,
    awaiting: Option<Awaiting>,
    known: RwLock<Arc<Known>>,
    updating: Mutex<()>,
}

/// One state of the catalog.
struct Known {
    catalog: Arc<Catalog>,
    /// The lists that the catalog was built from, in order.
    lists: Vec<ReadList>,
}

impl LiveCatalog {
    /// Reads the servers' lists, and follows their changes from now on.
    pub(crate) async fn follow(
        connections: Servers,
        lint: Lint,
        cache: Option<Arc<Cache>>,
        awaiting: Option<Awaiting>,
    ) -> Arc<Self> {
        let mut changes = connections.watch();
        changes.mark_unchanged();
        let catalog = Catalog::reserving(
            model_tools::FUNCTIONS,
            lint.names.all().map(|(name, _)| name.as_str()),
        );
        let live = Arc::new(Self {
            connections,
            lint,
            cache,
            awaiting,
            known: RwLock::new(Arc::new(Known {
                catalog: Arc::new(catalog),
                lists: Vec::new(),
            })),
            updating: Mutex::default(),
        });
        live.update().await;
        // The servers end with the gate, and this task with them.
        let follower = Arc::downgrade(&live);
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(live) = follower.upgrade() else {
                    return;
                };
                live.update().await;
            }
        });
        live
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read())
    }

    /// The current tools.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.known().catalog)
    }

    /// The servers, in the order of the configuration.
    pub(crate) fn servers(&self) -> Vec<ServerState> {
        self.connections.list().collect()
    }

    /// Problems of servers, tools and schemas that stop nothing.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let known = self.known();
        let lists = known.lists.iter().flat_map(|list| list.warnings());
        lists.chain(known.catalog.warnings()).collect()
    }

    /// The tools, after asking for lists that are out of date or not known.
    pub(crate) async fn fresh(self: &Arc<Self>) -> Arc<Catalog> {
        self.connections.refresh_stale();
        self.list_others().await;
        self.settled().await
    }

    /// The tools, after waiting for lists that are known to have changed.
    pub(crate) async fn settled(self: &Arc<Self>) -> Arc<Catalog> {
        if !self.connections.is_settled() {
            // A list that does not come in time comes later.
            self.connections.settle(PATIENCE).await;
        }
        self.update().await;
        self.catalog()
    }

    /// Tools that have these names, if there are any. Lists that are out of date are asked for,
    /// and waited for only if a name is unknown. A server without a list that may have the name is
    /// connected to first.
    pub(crate) async fn having<'a>(
        self: &Arc<Self>,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Arc<Catalog> {
        self.connections.refresh_stale();
        let catalog = self.catalog();
        let mut unknown = names.into_iter().collect::<Vec<_>>();
        unknown.retain(|name| catalog.get(name).is_none());
        if unknown.is_empty() {
            return catalog;
        }
        self.connect_to(|server| {
            let mut unknown = unknown.iter();
            is_unlisted(server) && unknown.any(|it| self.lint.names.owns(&server.name, it))
        })
        .await;
        self.settled().await
    }

    /// Lists the tools of servers that were never connected to, in a short time. True if there are
    /// any. Those that are starting have been waited for already.
    pub(crate) async fn list_others(self: &Arc<Self>) -> bool {
        let is_other = |server: &ServerState| is_unlisted(server) && server.phase == Phase::Idle;
        if !self.connections.list().any(|server| is_other(&server)) {
            return false;
        }
        let _ = timeout(PATIENCE, self.connect_to(is_other)).await;
        self.update().await;
        true
    }

    /// Connects to these servers, side by side, each within its time limit. A server that does not
    /// start is not available afterwards.
    async fn connect_to(&self, is_wanted: impl Fn(&ServerState) -> bool) {
        let wanted = self
            .connections
            .list()
            .filter(is_wanted)
            .map(|server| server.name);
        let wanted: Vec<String> = wanted.collect();
        let left = &Mutex::new(wanted.clone());
        let connecting = wanted.iter().map(|server| async move {
            // A call says why the server does not start.
            let _ = self.connections.connect_to(server).await;
            let mut left = left.lock();
            left.retain(|it| it != server);
            self.tell_awaited(&left);
        });
        self.tell_awaited(&wanted);
        join_all(connecting).await;
    }

    fn tell_awaited(&self, servers: &[String]) {
        if let Some(awaiting) = &self.awaiting {
            awaiting(servers);
        }
    }

    /// The tools for a script.
    pub(crate) async fn for_script(self: &Arc<Self>, named: &Mentions) -> Arc<Catalog> {
        if named.global {
            // Any server may be meant.
            return self.fresh().await;
        }
        let mentions = named.tools.iter();
        // Globals of JavaScript have no underscore, and every function of a server has one.
        let tools = mentions.filter(|mention| mention.called || mention.name.contains('_'));
        self.having(tools.map(|mention| mention.name.as_str()))
            .await
    }

    /// [`LiveCatalog::for_script`], by the lists that the named servers have now.
    pub(crate) async fn for_run(self: &Arc<Self>, named: &Mentions) -> Arc<Catalog> {
        let catalog = self.for_script(named).await;
        let names = named.tools.iter().map(|mention| mention.name.as_str());
        self.connected(catalog, names).await
    }

    /// The tool that a call of this function means, by the list that its server has now.
    pub(crate) async fn tool(self: &Arc<Self>, function: &str) -> Option<Tool> {
        let catalog = self.having([function]).await;
        let catalog = self.connected(catalog, [function]).await;
        catalog.get(function).cloned()
    }

    /// The tools after a connection to each resting server that has one of these names: it may list
    /// other tools by now.
    async fn connected<'a>(
        self: &Arc<Self>,
        catalog: Arc<Catalog>,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Arc<Catalog> {
        let tools = names.into_iter().filter_map(|name| catalog.get(name));
        let servers = tools.map(|tool| tool.definition.server.as_str());
        let resting = servers.filter(|server| self.connections.needs_connect(server));
        let resting: HashSet<&str> = resting.collect();
        if !resting.is_empty() {
            self.connect_to(|server| resting.contains(server.name.as_str()))
                .await;
            self.update().await;
        }
        self.catalog()
    }

    /// As [`LiveCatalog::tool`], within the time of a call: the wait counts against it.
    /// The error: the time is over, or the configuration permits no calls, so none is made.
    pub(crate) async fn tool_in_time(
        self: &Arc<Self>,
        function: &str,
        options: &mut CallOptions,
    ) -> Result<Option<Tool>, CallError> {
        let began = Instant::now();
        let finding = self.tool(function);
        let tool = match options.timeout {
            None => finding.await,
            Some(limit) => timeout(limit, finding).await.map_err(|_| CallError {
                server: self.server_of(function),
                function: function.to_owned(),
                kind: CallErrorKind::Timeout {
                    limit,
                    unused: String::new(),
                    retryable: true,
                },
            })?,
        };
        if let Some(reason) = self.lint.refusal(&self.catalog(), &self.servers()) {
            let server = tool.as_ref().map(|tool| tool.definition.server.as_str());
            let server = server.unwrap_or_default();
            return Err(CallError::protocol(function, server, code::REFUSED, reason));
        }
        options.waited = began.elapsed();
        Ok(tool)
    }

    /// The server of this function's tool; empty for a name that is not a tool.
    pub(crate) fn server_of(&self, function: &str) -> String {
        let catalog = self.catalog();
        let tool = catalog.get(function);
        tool.map(|tool| tool.definition.server.clone())
            .unwrap_or_default()
    }

    /// The decision of the rules about a tool, whatever its arguments.
    pub(crate) fn decision(&self, rules: &Rules, tool: &Tool) -> Decision {
        let is_trusted = self.connections.is_trusted(&tool.definition.server);
        rules.decide(&tool.facts(is_trusted, Timestamp::now()))
    }

    /// The rule that denies every call of a tool, such as `permissions.deny: "git_reset"`.
    pub(crate) fn denial(&self, rules: &Rules, tool: &Tool) -> Option<String> {
        let decision = self.decision(rules, tool);
        (decision.verdict == Verdict::Deny).then(|| match &decision.because {
            Because::Rule(rule) => format!("{}: \"{}\"", rule.written_in, rule.pattern),
            _ => decision.to_string(),
        })
    }

    /// The mark of a tool that the rules deny, for lists and declarations.
    pub(crate) fn mark(&self, rules: &Rules, tool: &Tool) -> Option<String> {
        Some(format!("DENIED ({})", self.denial(rules, tool)?))
    }

    /// Why no tool in scope has this name; `None` if one has. `suggest` says whether to find the
    /// nearest name, for which the whole catalog is read.
    pub(crate) fn explain(&self, name: &str, scope: &Scope, suggest: bool) -> Option<NameProblem> {
        let known = self.known();
        if let Some(tool) = known.catalog.get(name) {
            let refusal = scope.refusal(name, &tool.definition.server);
            return refusal.map(NameProblem::OutOfScope);
        }
        let near = || {
            let near = suggest.then(|| scope.nearest(&known.catalog, name));
            near.flatten().map(str::to_owned)
        };
        let not_listed = |server| NameProblem::NotListed { server };
        let failed = self.owner(name, |server| {
            matches!(server.status, Status::Failed(_)) && scope.has(&server.name)
        });
        let problem = failed.map(not_listed);
        let problem = problem.or_else(|| self.explain_disabled(name, scope));
        let problem = problem.or_else(|| self.explain_gap(&known, name, scope, near));
        problem.or_else(|| Some(NameProblem::Unknown { near: near() }))
    }

    /// The first server of this kind that this name belongs to.
    fn owner(&self, function: &str, is_kind: impl Fn(&ServerState) -> bool) -> Option<String> {
        let names = &self.lint.names;
        let mut servers = self.connections.list();
        servers
            .find(|server| is_kind(server) && names.owns(&server.name, function))
            .map(|server| server.name)
    }

    fn explain_disabled(&self, name: &str, scope: &Scope) -> Option<NameProblem> {
        let disabled = self.owner(name, |server| server.phase == Phase::Disabled);
        let is_left_out = disabled.is_none();
        let left_out = || self.lint.names.disabled_owner(name).map(str::to_owned);
        let server = disabled.or_else(left_out)?;
        scope.has(&server).then_some(NameProblem::Disabled {
            server,
            is_left_out,
        })
    }

    /// The problem if several tools would have the name, its tool was dropped, or the list of its
    /// server is incomplete.
    fn explain_gap(
        &self,
        known: &Known,
        name: &str,
        scope: &Scope,
        near: impl Fn() -> Option<String>,
    ) -> Option<NameProblem> {
        let names = &self.lint.names;
        let is_owner =
            |list: &&ReadList| scope.has(&list.read.server) && names.owns(&list.read.server, name);
        let owners: Vec<_> = known.lists.iter().filter(is_owner).collect();
        let mut dropped = owners.iter().flat_map(|list| &list.read.dropped);
        let dropped = dropped.find(|dropped| dropped.is_named(name));
        let reason = known.catalog.collision(name);
        if let Some(reason) = reason.or_else(|| dropped.map(ToString::to_string)) {
            return Some(NameProblem::Dropped(one_line(&reason, MAX_GAPS)));
        }
        let broken = owners.iter().find(|list| !list.ready.gaps.is_empty())?;
        Some(NameProblem::Incomplete {
            server: broken.read.server.clone(),
            gaps: one_line(&broken.ready.gaps.join("; "), MAX_GAPS),
            near: near(),
        })
    }

    /// Writes the servers' lists to the cache, if there is one.
    pub(crate) async fn save(&self) {
        if let Some(saving) = self.start_saving(self.servers()) {
            let _ = saving.await;
        }
    }

    fn start_saving(&self, states: Vec<ServerState>) -> Option<JoinHandle<()>> {
        let cache = self.cache.clone()?;
        Some(tokio::task::spawn_blocking(move || cache.follow(&states)))
    }

    /// Rebuilds the catalog if a server lists something new.
    pub(crate) async fn update(self: &Arc<Self>) {
        let live = Arc::clone(self);
        let updated = tokio::task::spawn_blocking(move || live.update_now());
        if let Err(error) = updated.await {
            tracing::warn!(%error, "the list of tools stays as it was");
        }
    }

    fn update_now(&self) {
        // The lock makes the last update see the last lists.
        let _updating = self.updating.lock();
        let states = self.servers();
        // Runs do not wait for the disk.
        drop(self.start_saving(states.clone()));
        let before = self.known();
        let lists = states.iter().filter_map(|state| {
            let ready = ready(state)?;
            let mut known = before.lists.iter();
            let known = known.find(|list| Arc::ptr_eq(&list.ready, ready)).cloned();
            Some(known.unwrap_or_else(|| ReadList::read(state, ready)))
        });
        let lists: Vec<ReadList> = lists.collect();
        let place = |list: &ReadList| Arc::as_ptr(&list.ready);
        if lists.iter().map(place).eq(before.lists.iter().map(place)) {
            return;
        }
        let definitions = lists.iter().flat_map(|list| list.read.definitions.clone());
        let catalog = Arc::new(Catalog::build_without(
            before.catalog.names(),
            definitions.collect(),
            |name| self.lint.settings.hides(name),
        ));
        let catalog = CATALOGS.get(|known| known.is_same(&catalog), || Arc::clone(&catalog));
        let known = Arc::new(Known {
            catalog: Arc::clone(&catalog),
            lists,
        });
        *self.known.write() = known;
        self.lint.log(&catalog, &states);
        // Declarations of a large catalog take some milliseconds.
        drop(tokio::task::spawn_blocking(move || catalog.declare()));
    }
}

/// True for a server in use whose tools are not known and that has not failed.
fn is_unlisted(server: &ServerState) -> bool {
    let is_coming = matches!(server.phase, Phase::Idle | Phase::Starting);
    is_coming && matches!(server.status, Status::Unknown)
}

fn ready(state: &ServerState) -> Option<&Arc<ToolList>> {
    match &state.status {
        Status::Ready(ready) if state.phase != Phase::Disabled => Some(ready),
        _ => None,
    }
}
