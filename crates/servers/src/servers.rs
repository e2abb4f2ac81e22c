//! The servers of one host: started in parallel, called, ended together.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::failure::{CallFailure, Reason};
use crate::spec::ServerSpec;
use crate::state::{Phase, ServerState};
use crate::supervise::{Server, Supervised};
use crate::tool_call::ToolCall;

/// Connections to MCP servers.
#[derive(Debug, Clone)]
pub struct Servers {
    servers: Arc<[Supervised]>,
    changes: Arc<watch::Sender<u64>>,
}

impl Servers {
    /// Starts, in parallel, all servers that are connected at the start, and returns when each is
    /// ready or has failed. Dropping the future ends the started servers.
    pub async fn connect(specs: Vec<ServerSpec>) -> Self {
        let servers = Self::start(specs);
        let is_starting = |server: &ServerState| server.phase == Phase::Starting;
        servers.wait_while(is_starting, |_| {}).await;
        servers
    }

    /// Begins to start, in parallel, all servers that are connected at the start.
    pub fn start(specs: Vec<ServerSpec>) -> Self {
        let changes = Arc::new(watch::Sender::default());
        let mut names = HashSet::new();
        let servers = specs.into_iter().map(|spec| {
            let is_unique = names.insert(spec.name.clone());
            Supervised::start(spec, is_unique, &changes)
        });
        let servers = servers.collect();
        Self { servers, changes }
    }

    /// Waits while a server is in an awaited state. `waiting` gets the names of these servers, now
    /// and after each change.
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

    /// The state of each server, in the order of the configuration.
    pub fn list(&self) -> impl ExactSizeIterator<Item = ServerState> {
        self.servers.iter().map(|server| server.state())
    }

    /// Changes whenever [`Servers::list`] changes.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Calls a tool and returns the `result` of the server's answer as text. Dropping the future
    /// cancels the call.
    pub async fn call(&self, call: ToolCall<'_>) -> Result<Box<RawValue>, CallFailure> {
        let server = self.known(call.server);
        let server = server.map_err(|reason| CallFailure::closed(reason, false))?;
        server.call(&call).await
    }

    /// The entry of a tool in its server's current list.
    pub fn listed_tool(&self, server: &str, tool: &str) -> Option<Value> {
        let list = self.find(server)?.list.list()?;
        list.tools
            .iter()
            .find(|entry| entry["name"] == tool)
            .cloned()
    }

    /// True if the hints of this server count in decisions.
    pub fn is_trusted(&self, server: &str) -> bool {
        self.find(server).is_some_and(|server| server.spec.trusted)
    }

    /// Refreshes the tool lists whose TTL has expired.
    pub fn refresh_stale(&self) {
        self.servers.iter().for_each(|it| it.refresh_if_stale());
    }

    /// True if no newer tool list is known to exist.
    pub fn is_settled(&self) -> bool {
        self.servers.iter().all(|server| server.is_settled())
    }

    /// Waits for the tool lists of all changes so far, but no longer than `within`.
    pub async fn settle(&self, within: Duration) {
        let servers = self.servers.iter();
        let listed = join_all(servers.map(|server| server.listed(server.generation())));
        let _ = timeout(within, listed).await;
    }

    /// True if a call of this server has to wait for the connection.
    pub fn needs_connect(&self, server: &str) -> bool {
        self.find(server).is_some_and(Server::needs_connect)
    }

    /// Connects to an enabled server within its time limit, unless it is connected.
    pub async fn connect_to(&self, server: &str) -> Result<(), Reason> {
        self.known(server)?.connect().await
    }

    /// Enables a server and connects to it within its time limit.
    pub async fn enable(&self, server: &str) -> Result<(), Reason> {
        self.known(server)?.enable().await
    }

    /// Disables a server, and ends its connection.
    pub async fn disable(&self, server: &str) -> Result<(), Reason> {
        self.known(server)?.disable().await;
        Ok(())
    }

    /// Notifies servers of 2025-11-25 and before that the folders of their own callers
    /// ([`ServerSpec::caller`]) have changed.
    pub fn roots_changed(&self) {
        self.servers.iter().for_each(|it| it.roots_changed());
    }

    /// Ends all servers in parallel: closes their input, sends SIGTERM after a second, and SIGKILL a
    /// second later.
    pub async fn shut_down(&self) {
        join_all(self.servers.iter().map(Supervised::shut_down)).await;
    }

    fn known(&self, name: &str) -> Result<&Server, Reason> {
        let found = self.find(name);
        found.ok_or_else(|| format!("there is no server `{name}`").into())
    }

    fn find(&self, name: &str) -> Option<&Server> {
        let mut servers = self.servers.iter();
        let found = servers.find(|server| server.spec.name == name);
        found.map(Deref::deref)
    }
}
