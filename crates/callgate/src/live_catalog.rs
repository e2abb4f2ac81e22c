//! What is known of the servers' tools, kept up with the servers: the catalog is
//! made anew when a list has changed, and swapped as a whole.
//!
//! A run sees tools that come and go while it lasts. Names stay: a function that
//! stood for one tool never comes to stand for another as long as the gate lives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use callgate_broker::{Broker, CallError, CallOptions, Phase, Ready, ServerState, Status, Target};
use callgate_catalog::search::SearchIndex;
use callgate_catalog::{Catalog, ToolDefinition};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::cache::Cache;
use crate::scope::Scope;
use crate::search::Indexes;
use crate::unmatched::Oversight;
use crate::{model_tools, script_calls};

/// How long something waits for lists that are being asked for anew, at most;
/// after that, what is known serves.
const PATIENCE: Duration = Duration::from_secs(2);

/// The current catalog.
pub(crate) struct LiveCatalog {
    broker: Broker,
    shared: Arc<Shared>,
    follower: JoinHandle<()>,
}

impl LiveCatalog {
    /// Reads what the servers list, and follows their changes from now on.
    /// `reading` has what was read of them while others still started.
    pub(crate) async fn follow(
        broker: Broker,
        reading: Reading,
        oversight: Arc<Oversight>,
        cache: Option<Arc<Cache>>,
    ) -> Self {
        let reserving = Catalog::reserving(model_tools::FUNCTIONS, oversight.servers());
        let shared = Arc::new(Shared {
            reading,
            indexes: Arc::new(Indexes::new(Arc::clone(&oversight.settings))),
            oversight,
            cache,
            known: RwLock::new(Arc::new(Known {
                catalog: Arc::new(reserving),
                ..Known::default()
            })),
            updating: Mutex::default(),
        });
        let mut changes = broker.watch();
        changes.mark_unchanged();
        shared.update(&broker).await;
        let follower = tokio::spawn({
            // The broker ends when the gate is dropped, and this with it.
            let (shared, broker) = (Arc::clone(&shared), broker.downgrade());
            async move {
                while changes.changed().await.is_ok() {
                    let Some(broker) = broker.upgrade() else {
                        return;
                    };
                    shared.update(&broker).await;
                }
            }
        });
        Self {
            broker,
            shared,
            follower,
        }
    }

    /// The tools there are.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.known().catalog)
    }

    /// The servers, in the order of the configuration.
    pub(crate) fn servers(&self) -> Vec<ServerState> {
        self.broker.servers().collect()
    }

    /// The index of this catalog, which is one that was current. `servers` are
    /// those that it is of.
    pub(crate) async fn index(
        &self,
        catalog: Arc<Catalog>,
        servers: Vec<ServerState>,
    ) -> Arc<SearchIndex> {
        self.shared.indexes.of(catalog, servers).await
    }

    /// What is wrong with servers, tools and schemas without stopping anything.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let known = self.known();
        let of_tools = known.catalog.warnings();
        let of_tools = of_tools.iter().map(ToString::to_string);
        known.warnings.iter().cloned().chain(of_tools).collect()
    }

    /// The tools there are, after lists that are out of date, or known to have
    /// changed, have been asked for.
    pub(crate) async fn fresh(&self) -> Arc<Catalog> {
        self.broker.refresh_stale();
        self.settled().await
    }

    /// [`LiveCatalog::fresh`] as far as one function goes.
    pub(crate) async fn fresh_for(&self, function: &str) -> Arc<Catalog> {
        self.broker.refresh_stale();
        self.settled_for(function).await
    }

    /// The tools there are, after lists that are known to have changed have been
    /// asked for.
    pub(crate) async fn settled(&self) -> Arc<Catalog> {
        self.settled_of(None).await
    }

    /// The same, where only the list of the server counts that has this function now; all of
    /// them, if none has.
    async fn settled_for(&self, function: &str) -> Arc<Catalog> {
        if self.broker.is_settled() {
            return self.catalog();
        }
        let target = script_calls::target(&self.catalog(), function);
        let server = target.map(|target| target.server);
        self.settled_of(server.as_deref()).await
    }

    async fn settled_of(&self, server: Option<&str>) -> Arc<Catalog> {
        if !self.broker.is_settled() {
            // What does not come in time comes later.
            self.broker.settle(server, PATIENCE).await;
            self.shared.update(&self.broker).await;
        }
        self.catalog()
    }

    /// The tool that a call of this function means, on a server that is connected
    /// to if it can be: one that is idle may have other tools by now. And the
    /// tools there are then.
    pub(crate) async fn target(&self, function: &str) -> (Arc<Catalog>, Option<Target>) {
        let catalog = self.settled_for(function).await;
        let target = script_calls::target(&catalog, function);
        match target {
            Some(target) if self.is_resting(&target) => {
                // Where it does not start, the call says why.
                let _failed = self.broker.connect(&target.server).await;
                self.update().await;
                let catalog = self.catalog();
                let target = script_calls::target(&catalog, function);
                (catalog, target)
            }
            target => (catalog, target),
        }
    }

    /// [`LiveCatalog::target`] for a call, whose time goes with it.
    ///
    /// # Errors
    ///
    /// The time is over: there is no call.
    pub(crate) async fn target_in_time(
        &self,
        function: &str,
        options: &mut CallOptions,
    ) -> Result<(Arc<Catalog>, Option<Target>), CallError> {
        let began = Instant::now();
        let target = self.target(function);
        let found = match options.timeout {
            None => target.await,
            Some(limit) => timeout(limit, target).await.map_err(|_late| {
                let target = script_calls::target(&self.catalog(), function).unwrap_or_default();
                CallError::Timeout {
                    server: target.server,
                    function: function.to_owned(),
                    limit,
                    retryable: true,
                }
            })?,
        };
        options.waited = began.elapsed();
        Ok(found)
    }

    /// Whether a call has to wait for its server to be connected to.
    pub(crate) fn is_resting(&self, target: &Target) -> bool {
        self.broker.is_resting(&target.server)
    }

    /// Whether its server is connected to, and its tools are the newest that are known of.
    pub(crate) fn is_settled_for(&self, target: &Target) -> bool {
        self.broker.is_settled_at(&target.server) && !self.is_resting(target)
    }

    /// Whether a server is not in use.
    pub(crate) fn is_disabled(&self, server: &str) -> bool {
        let mut servers = self.broker.servers();
        servers.any(|state| state.name == server && state.phase == Phase::Disabled)
    }

    /// The server that is not in use and to which this name would belong.
    pub(crate) fn disabled_server_of(&self, function: &str) -> Option<String> {
        let oversight = &self.shared.oversight;
        let mut servers = self.broker.servers();
        let found = servers.find(|server| {
            server.phase == Phase::Disabled && oversight.would_own(&server.name, function)
        });
        found.map(|server| server.name)
    }

    /// The server in scope that did not start, so that its tools are not known, and to which this name would belong.
    pub(crate) fn unlisted_server_of(&self, function: &str, scope: &Scope) -> Option<String> {
        let oversight = &self.shared.oversight;
        let mut servers = self.broker.servers();
        let found = servers.find(|server| {
            matches!(server.status, Status::Failed(_))
                && oversight.would_own(&server.name, function)
                && scope.has(&server.name)
        });
        found.map(|server| server.name)
    }

    /// Why a name is no tool, where it would belong to a server that is not in use, now or
    /// by the configuration. Of a server that is out of scope nothing is said.
    pub(crate) fn disabled_message(&self, function: &str, scope: &Scope) -> Option<String> {
        let oversight = &self.shared.oversight;
        match self.disabled_server_of(function) {
            Some(server) => scope
                .has(&server)
                .then(|| script_calls::disabled_message(function, &server)),
            None => {
                let server = oversight.left_out_server_of(function)?;
                let message = script_calls::disabled_message(function, server);
                scope
                    .has(server)
                    .then(|| format!("{message} in the configuration"))
            }
        }
    }

    /// Brings the catalog up to what the servers list now.
    pub(crate) async fn update(&self) {
        self.shared.update(&self.broker).await;
    }

    /// Has what servers list now written down, where that is to be kept.
    pub(crate) async fn keep(&self) {
        let states: Vec<ServerState> = self.broker.servers().collect();
        if let Some(keeping) = self.shared.keep(states) {
            let _ended = keeping.await;
        }
    }

    fn known(&self) -> Arc<Known> {
        self.shared.known()
    }
}

impl Drop for LiveCatalog {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

/// What is known at one time.
#[derive(Default)]
struct Known {
    catalog: Arc<Catalog>,
    /// What servers did that was odd, and entries that are no tools.
    warnings: Vec<String>,
    /// The lists that the catalog was made of, in their order.
    lists: Vec<Arc<Ready>>,
}

struct Shared {
    reading: Reading,
    indexes: Arc<Indexes>,
    oversight: Arc<Oversight>,
    cache: Option<Arc<Cache>>,
    known: RwLock<Arc<Known>>,
    updating: Mutex<()>,
}

impl Shared {
    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the catalog of what the servers list now, if that is another than
    /// before.
    async fn update(self: &Arc<Self>, broker: &Broker) {
        let (shared, broker) = (Arc::clone(self), broker.clone());
        let updated = tokio::task::spawn_blocking(move || shared.update_from(&broker));
        if let Err(error) = updated.await {
            tracing::warn!(%error, "the list of tools stays as it was");
        }
    }

    fn keep(&self, states: Vec<ServerState>) -> Option<JoinHandle<()>> {
        let cache = self.cache.clone()?;
        Some(tokio::task::spawn_blocking(move || cache.follow(&states)))
    }

    fn update_from(&self, broker: &Broker) {
        // One at a time, each from what is then there: the last one is right.
        let _updating = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        let states: Vec<ServerState> = broker.servers().collect();
        // Nobody waits for the disk.
        let _keeping = self.keep(states.clone());
        let lists: Vec<Arc<Ready>> = states.iter().filter_map(ready).cloned().collect();
        let before = self.known();
        let same = |(a, b): (&Arc<Ready>, &Arc<Ready>)| Arc::ptr_eq(a, b);
        if lists.len() == before.lists.len() && lists.iter().zip(&before.lists).all(same) {
            return;
        }
        let mut definitions = Vec::new();
        let mut warnings = Vec::new();
        for state in &states {
            if let Some(ready) = ready(state) {
                let read = self.reading.of(state, ready);
                definitions.extend(read.definitions.iter().cloned());
                warnings.extend(read.warnings.iter().cloned());
            }
        }
        let catalog = Arc::new(Catalog::build_without(
            before.catalog.names(),
            definitions,
            |function, other_names| self.oversight.settings.hides(function, other_names),
        ));
        let known = Known {
            catalog: Arc::clone(&catalog),
            warnings,
            lists,
        };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
        self.oversight.log(&catalog, &states);
        // Nobody waits for them yet, and the first who does need not make them.
        let indexes = Arc::clone(&self.indexes);
        let _making = tokio::task::spawn_blocking(move || {
            catalog.declare();
            indexes.renew(&catalog, &states);
        });
    }
}

fn ready(state: &ServerState) -> Option<&Arc<Ready>> {
    match &state.status {
        Status::Ready(ready) if state.phase != Phase::Disabled => Some(ready),
        // It has no tools.
        _ => None,
    }
}

/// The definitions of each server's list, read when it comes and kept until
/// there is another: while the slowest server starts, the lists of the others
/// are read. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Reading {
    lists: Arc<Mutex<HashMap<String, Arc<List>>>>,
}

struct List {
    ready: Arc<Ready>,
    read: OnceLock<Arc<Read>>,
}

struct Read {
    definitions: Vec<Arc<ToolDefinition>>,
    warnings: Vec<String>,
}

impl Reading {
    /// Reads the list of a server that has started, on a thread for such work.
    pub(crate) fn begin(&self, state: &ServerState) {
        if let Some(ready) = ready(state) {
            let list = self.list(&state.name, ready);
            let (name, heard) = (state.name.clone(), state.heard);
            let _reading = tokio::task::spawn_blocking(move || {
                list.read(&name, heard);
            });
        }
    }

    /// What the list says; waits for another thread that reads it.
    fn of(&self, state: &ServerState, ready: &Arc<Ready>) -> Arc<Read> {
        let list = self.list(&state.name, ready);
        Arc::clone(list.read(&state.name, state.heard))
    }

    fn list(&self, name: &str, ready: &Arc<Ready>) -> Arc<List> {
        let mut lists = self.lists();
        if let Some(list) = lists.get(name)
            && Arc::ptr_eq(&list.ready, ready)
        {
            return Arc::clone(list);
        }
        let list = Arc::new(List {
            ready: Arc::clone(ready),
            read: OnceLock::new(),
        });
        lists.insert(name.to_owned(), Arc::clone(&list));
        list
    }

    fn lists(&self) -> MutexGuard<'_, HashMap<String, Arc<List>>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    /// `heard` is whether it comes from the server and not from an earlier time.
    fn read(&self, name: &str, heard: bool) -> &Arc<Read> {
        self.read.get_or_init(|| {
            let ready = &self.ready;
            let (revision, tools) = (&ready.protocol_version, ready.tools.len());
            match heard {
                true => tracing::info!(server = name, revision, tools, "server is ready"),
                false => tracing::info!(
                    server = name,
                    revision,
                    tools,
                    "the tools of a server are known from an earlier time"
                ),
            }
            let mut read = Read {
                definitions: Vec::with_capacity(ready.tools.len()),
                warnings: Vec::new(),
            };
            for warning in &ready.warnings {
                read.warnings.push(format!("server {name:?}: {warning}"));
            }
            for raw in &ready.tools {
                match ToolDefinition::parse(name, raw) {
                    Ok(definition) => read.definitions.push(Arc::new(definition)),
                    Err(malformed) => read.warnings.push(malformed.to_string()),
                }
            }
            Arc::new(read)
        })
    }
}
