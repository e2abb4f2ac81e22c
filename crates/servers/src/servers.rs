//! The servers of one host: started side by side, called, ended together.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::call::ToolCall;
use crate::failure::{CallFailure, Reason};
use crate::spec::ServerSpec;
use crate::state::{Phase, ServerState};
use crate::supervise::{Server, Supervised};

/// Connections to MCP servers.
#[derive(Debug, Clone)]
pub struct Servers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    servers: Vec<Supervised>,
    changes: Arc<watch::Sender<u64>>,
}

impl Servers {
    /// Starts all servers that are to be connected to at the start, side by side, and returns when
    /// each is ready or has failed. Dropping the future ends what has been started.
    pub async fn connect(specs: Vec<ServerSpec>) -> Self {
        let servers = Self::start(specs);
        let is_starting = |server: &ServerState| server.phase == Phase::Starting;
        servers.wait_while(is_starting, |_| {}).await;
        servers
    }

    /// Begins to start all servers that are to be connected to at the start, side by side.
    pub fn start(specs: Vec<ServerSpec>) -> Self {
        let changes = Arc::new(watch::Sender::default());
        let mut names = HashSet::new();
        let servers = specs.into_iter().map(|spec| {
            let is_unique = names.insert(spec.name.clone());
            Supervised::start(spec, is_unique, &changes)
        });
        let servers = servers.collect();
        Self(Arc::new(Inner { servers, changes }))
    }

    /// Waits while a server is in such a state. `waiting` hears the names of those that are, at
    /// first and after each change.
    pub async fn wait_while(
        &self,
        is_awaited: impl Fn(&ServerState) -> bool,
        waiting: impl Fn(&[String]),
    ) {
        let mut changes = self.watch();
        loop {
            let awaited = self.list().filter(&is_awaited).map(|server| server.name);
            let awaited: Vec<String> = awaited.collect();
            if awaited.is_empty() {
                return;
            }
            waiting(&awaited);
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// The state of each server, in the order in which they were given.
    pub fn list(&self) -> impl ExactSizeIterator<Item = ServerState> {
        self.0.servers.iter().map(|server| server.state())
    }

    /// Changes whenever [`Servers::list`] changes.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Calls a tool and returns the `result` of the server's answer as text. Dropping the future
    /// cancels the call.
    pub async fn call(&self, call: ToolCall<'_>) -> Result<Box<RawValue>, CallFailure> {
        match self.find(call.server) {
            Some(server) => server.call(&call).await,
            None => {
                let reason = format!("there is no server `{}`", call.server);
                Err(CallFailure::closed(reason, false))
            }
        }
    }

    /// True if the hints of this server count in decisions.
    pub fn is_trusted(&self, server: &str) -> bool {
        self.find(server).is_some_and(|server| server.spec.trusted)
    }

    /// Refreshes the tool lists whose TTL has expired.
    pub fn refresh_stale(&self) {
        self.0
            .servers
            .iter()
            .for_each(|server| server.refresh_if_stale());
    }

    /// True if the tool lists are the newest that are known of.
    pub fn is_settled(&self) -> bool {
        self.0.servers.iter().all(|server| server.is_settled())
    }

    /// Waits until the tool lists are the newest that are known of now, and no longer than `within`.
    pub async fn settle(&self, within: Duration) {
        let servers = self.0.servers.iter();
        let listed = join_all(servers.map(|server| server.listed(server.generation())));
        let _ = timeout(within, listed).await;
    }

    /// True if a call of this server has to wait until it is connected to.
    pub fn needs_connect(&self, server: &str) -> bool {
        self.find(server).is_some_and(Server::needs_connect)
    }

    /// Connects to a server in use, unless it is connected, within its time limit.
    pub async fn connect_to(&self, server: &str) -> Result<(), Reason> {
        self.known(server)?.connect().await
    }

    /// Takes a server into use and connects to it, within its time limit.
    pub async fn enable(&self, server: &str) -> Result<(), Reason> {
        self.known(server)?.enable().await
    }

    /// Takes a server out of use.
    pub async fn disable(&self, server: &str) -> Result<(), String> {
        self.known(server)?.disable().await;
        Ok(())
    }

    /// Tells servers of 2025-11-25 and before that the folders of their own callers
    /// ([`ServerSpec::caller`]) have changed.
    pub fn roots_changed(&self) {
        self.0
            .servers
            .iter()
            .for_each(|server| server.roots_changed());
    }

    /// Ends all servers side by side: their input is closed, then they get SIGTERM after a second,
    /// and SIGKILL a second later.
    pub async fn shut_down(&self) {
        join_all(self.0.servers.iter().map(Supervised::shut_down)).await;
    }

    fn known(&self, name: &str) -> Result<&Server, String> {
        let found = self.find(name);
        found.ok_or_else(|| format!("there is no server `{name}`"))
    }

    fn find(&self, name: &str) -> Option<&Server> {
        let mut servers = self.0.servers.iter();
        let found = servers.find(|server| server.spec.name == name);
        found.map(Deref::deref)
    }
}
