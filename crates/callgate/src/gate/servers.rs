//! The servers of a gate: state, enabling and disabling.

use callgate_servers::{Audience, Phase, Status};
use serde::Serialize;

use super::Gate;
use crate::error::{GateError, GateErrorKind};
use crate::names::{no_server, server_description};
use crate::report::Unavailable;

/// A server in a list.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Server {
    /// Its name in the configuration.
    pub name: String,
    /// Its purpose in one line: from the configuration, else from the server.
    pub description: Option<String>,
    /// Its state.
    pub state: ServerState,
    /// The number of its tools.
    pub tools: usize,
    /// The number of those that the rules deny.
    pub denied: usize,
    /// True if the list of tools is from an earlier time.
    pub stale: bool,
    /// The protocol revision agreed on; `None` without a list of tools.
    pub revision: Option<String>,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "is")]
#[non_exhaustive]
pub enum ServerState {
    /// Connected.
    Connected,
    /// Connected to when a tool is called.
    Idle,
    /// Being connected to. Its tools are known if it has listed them at an earlier time.
    Starting,
    /// Not available at the moment.
    Down {
        /// The reason, without secrets.
        reason: String,
    },
    /// Not in use until it is enabled.
    Disabled,
}

impl Gate {
    /// The servers, in the order of the configuration.
    pub fn servers(&self) -> Vec<Server> {
        let catalog = self.live.catalog();
        let rules = &self.setup.rules.calls;
        let servers = self.live.connections.list().map(|server| {
            let tools = catalog.tools().iter();
            let tools = tools.filter(|tool| tool.definition.server == server.name);
            let denied = tools.clone();
            let denied = denied.filter(|tool| self.live.denial(rules, tool).is_some());
            let counts = [tools.count(), denied.count()];
            Server::new(server, counts, self.setup.people.audience)
        });
        servers.collect()
    }

    /// The server of this name.
    ///
    /// # Errors
    ///
    /// [`GateError`], with the nearest name.
    pub fn server(&self, name: &str) -> Result<Server, GateError> {
        let servers = self.servers();
        let found = servers.iter().find(|server| server.name == name).cloned();
        found.ok_or_else(|| {
            let known: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            GateError::new(GateErrorKind::NotFound, no_server(name, &known))
        })
    }

    /// Enables a server and connects to it. A server in use that is idle or down is connected
    /// to. The server's tools are known afterwards.
    ///
    /// # Errors
    ///
    /// [`GateError`] for an unknown name, and for a server that does not start; that one is
    /// enabled all the same, and tried again.
    pub async fn enable(&self, name: &str) -> Result<Server, GateError> {
        self.server(name)?;
        let enabled = self.live.connections.enable(name).await;
        self.live.update().await;
        enabled.map_err(|reason| {
            let reason = reason.to(self.setup.people.audience);
            let message = if reason.contains(&format!("server `{name}`")) {
                reason.to_owned()
            } else {
                format!("server {name:?} does not start: {reason}")
            };
            GateError::new(GateErrorKind::NotStarted, message)
        })?;
        self.server(name)
    }

    /// Disables a server: its connection ends, calls in flight fail, and its tools are gone
    /// until it is enabled.
    ///
    /// # Errors
    ///
    /// [`GateError`] for a name of no server.
    pub async fn disable(&self, name: &str) -> Result<Server, GateError> {
        self.server(name)?;
        // The only error is an unknown name.
        let _ = self.live.connections.disable(name).await;
        self.live.update().await;
        self.server(name)
    }

    /// Servers in use that could not be connected to, with reasons. They are tried again.
    pub fn unavailable(&self) -> Vec<Unavailable> {
        self.view().unavailable_for(self.setup.people.audience)
    }
}

impl Server {
    /// True if the server is in use, and its tools are not known yet.
    pub fn is_awaited(&self) -> bool {
        self.revision.is_none() && matches!(self.state, ServerState::Idle | ServerState::Starting)
    }

    fn new(
        server: callgate_servers::ServerState,
        [catalog_tools, denied]: [usize; 2],
        audience: Audience,
    ) -> Self {
        let description = server_description(&server);
        let list = match &server.status {
            Status::Ready(list) => Some(list),
            _ => None,
        };
        let mut tools = catalog_tools;
        let state = match server.phase {
            Phase::Up => ServerState::Connected,
            Phase::Idle => ServerState::Idle,
            Phase::Starting => ServerState::Starting,
            Phase::Down(reason) => ServerState::Down {
                reason: reason.to(audience).to_owned(),
            },
            Phase::Disabled => {
                // No catalog has its tools.
                tools = list.map_or(0, |list| list.tools.len());
                ServerState::Disabled
            }
            _ => ServerState::Down {
                reason: "it was shut down".to_owned(),
            },
        };
        Self {
            name: server.name,
            description,
            state,
            tools,
            denied,
            stale: list.is_some() && server.stale,
            revision: list.map(|list| list.protocol_version.clone()),
        }
    }
}

/// Why a server in use is not connected to, if it never was.
pub(super) fn unavailable(
    server: &callgate_servers::ServerState,
    audience: Audience,
) -> Option<Unavailable> {
    if server.phase == Phase::Disabled {
        return None;
    }
    let mut reason = server.failed.as_ref()?.to(audience).to_owned();
    if matches!(server.status, Status::Ready(_)) {
        let age = match server.age.map(|age| age.as_secs() / 60) {
            None => "at an earlier time".to_owned(),
            Some(0) => "less than a minute ago".to_owned(),
            Some(1) => "a minute ago".to_owned(),
            Some(minutes) => format!("{minutes} minutes ago"),
        };
        reason += &format!("\n  its tools are listed as they were {age}");
    }
    Some(Unavailable {
        server: server.name.clone(),
        reason,
    })
}
