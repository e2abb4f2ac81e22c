//! The servers of a gate, and which of them are in use.

use callgate_broker::Status;
use serde::Serialize;

use crate::Gate;

/// A server as a list shows it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Server {
    /// Its name in the configuration.
    pub name: String,
    /// What it is for, in one line: from the configuration, else from the
    /// server itself.
    pub description: Option<String>,
    /// Whether it is there.
    pub state: ServerState,
    /// How many tools it offers.
    pub tools: usize,
    /// Whether those are from a list of an earlier time.
    pub stale: bool,
}

/// Whether a server is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "is")]
#[non_exhaustive]
pub enum ServerState {
    /// It is connected to.
    Connected,
    /// It is connected to when it is called.
    Idle,
    /// It cannot be had at the moment.
    Down {
        /// Why, without secrets.
        reason: String,
    },
    /// It is not in use until it is enabled.
    Disabled,
}

/// Why a server could not be enabled or disabled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No server has this name.
    #[error("no server is named {name:?}{}", nearest(near.as_deref()))]
    Unknown {
        /// The name.
        name: String,
        /// The nearest that is one.
        near: Option<String>,
    },
    /// It could not be connected to.
    #[error("server {name:?} does not start: {reason}")]
    Down {
        /// The name.
        name: String,
        /// Why, without secrets.
        reason: String,
    },
}

fn nearest(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default()
}

impl Gate {
    /// The servers, in the order of the configuration.
    pub fn servers(&self) -> Vec<Server> {
        let catalog = self.catalog();
        let count = |name: &str| {
            let of = |tool: &&callgate_catalog::CatalogTool| tool.definition.server == name;
            catalog.tools().iter().filter(of).count()
        };
        let servers = self.broker.servers().map(|server| Server {
            tools: count(&server.name),
            description: None,
            state: match server.status {
                Status::Failed(error) => ServerState::Down {
                    reason: error.to_string(),
                },
                _ => ServerState::Connected,
            },
            name: server.name,
            stale: false,
        });
        servers.collect()
    }
}
