//! The servers of one host: started side by side, asked, and ended together.

use std::collections::HashSet;
use std::sync::Arc;

use callgate_policy::Rules;
use futures::future::join_all;
use serde::Serialize;
use serde_json::Value;

use crate::ask::Asker;
use crate::caller::Caller;
use crate::connection::Connection;
use crate::error::{StartError, StartErrorKind};
use crate::patience::Patience;
use crate::run::Run;
use crate::setup::RunSetup;
use crate::spec::ServerSpec;
use crate::start::start;

/// Connections to MCP servers. Clones are the same broker; when the last one
/// and every run is gone, so are the servers' processes.
#[derive(Debug, Clone)]
pub struct Broker {
    servers: Arc<Vec<Server>>,
}

/// What became of a server at its start.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// The server's name.
    pub name: String,
    /// Whether its hints count in decisions.
    pub trusted: bool,
    /// Whether it is there.
    pub status: Status,
}

/// Whether a server is there.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Status {
    /// It is, or was at the end of its start.
    Ready(Ready),
    /// It is not.
    Failed(StartError),
}

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    /// The entries of its `tools/list`, from all pages, in order, as it wrote
    /// them. Nothing about them is checked but that they are JSON.
    pub tools: Vec<Value>,
    /// The protocol revision agreed on, such as `2026-07-28`.
    pub protocol_version: String,
    /// Its program's name and version.
    pub server_info: Option<ServerInfo>,
    /// Its hints for models, if it has any.
    pub instructions: Option<String>,
    /// What was odd and got over, as clauses about the server ("its list of
    /// tools repeats a cursor; …").
    pub warnings: Vec<String>,
}

/// A server's program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerInfo {
    /// For programs.
    pub name: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// In its own scheme.
    pub version: String,
}

impl Broker {
    /// Starts all servers side by side and returns when each is ready or has
    /// failed. Never fails as a whole: see [`Broker::servers`].
    ///
    /// Dropping the future ends what has been started.
    pub async fn start(specs: Vec<ServerSpec>) -> Self {
        let mut names = HashSet::new();
        let starting = specs.into_iter().map(|spec| {
            let unique = names.insert(spec.name.clone());
            Server::start(spec, unique)
        });
        let starting: Vec<_> = starting.collect();
        Self {
            servers: Arc::new(join_all(starting).await),
        }
    }

    /// What became of each server, in the order they were given.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &ServerState> {
        self.servers.iter().map(|server| &server.state)
    }

    /// Begins a run: a ledger and a set of grants of its own.
    pub fn run(&self, rules: Arc<Rules>, asker: Arc<dyn Asker>) -> Run {
        self.run_with(RunSetup::new(rules, asker))
    }

    /// As [`Broker::run`], with everything that a run can be begun with.
    pub fn run_with(&self, setup: RunSetup) -> Run {
        Run::new(self.clone(), setup)
    }

    /// Ends all servers side by side: their input is closed, and whoever does
    /// not exit within a second gets SIGTERM, and SIGKILL a second later. Calls
    /// still in flight fail. A later call fails too.
    pub async fn shutdown(&self) {
        let connections = self
            .servers
            .iter()
            .filter_map(|server| server.connection().ok());
        join_all(connections.map(Connection::shut_down)).await;
    }

    /// The server of this name; the first, should there be two.
    pub(crate) fn find(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.state.name == name)
    }
}

#[derive(Debug)]
pub(crate) struct Server {
    state: ServerState,
    connection: Result<Connection, StartError>,
    patience: Patience,
    caller: Arc<dyn Caller>,
}

impl Server {
    async fn start(spec: ServerSpec, unique: bool) -> Self {
        let started = if unique {
            start(&spec).await
        } else {
            Err(StartError {
                server: spec.name.clone(),
                kind: StartErrorKind::DuplicateName,
                stderr: String::new(),
            })
        };
        let (connection, status) = match started {
            Ok((connection, ready)) => (Ok(connection), Status::Ready(ready)),
            Err(error) => {
                tracing::debug!(server = spec.name, %error, "a server did not start");
                (Err(error.clone()), Status::Failed(error))
            }
        };
        let state = ServerState {
            name: spec.name,
            trusted: spec.trusted,
            status,
        };
        Self {
            state,
            connection,
            patience: Patience {
                idle: spec.call_timeout,
                most: spec.max_call_time,
            },
            caller: spec.caller,
        }
    }

    pub(crate) fn trusted(&self) -> bool {
        self.state.trusted
    }

    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    pub(crate) fn caller(&self) -> Arc<dyn Caller> {
        Arc::clone(&self.caller)
    }

    /// The connection, or why there is none.
    pub(crate) fn connection(&self) -> Result<&Connection, &StartError> {
        self.connection.as_ref()
    }
}
