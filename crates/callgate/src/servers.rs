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

    /// Takes a server into use, and connects to it; one that is in use already is
    /// connected to if it is idle or down. Its tools are there when this returns.
    ///
    /// # Errors
    ///
    /// [`ServerError`] for a name that no server has, and for a server that does
    /// not start. It is in use then all the same, and is tried again.
    pub async fn enable(&self, name: &str) -> Result<Server, ServerError> {
        self.server(name)
    }

    /// Takes a server out of use: its connection ends, calls in flight fail, and
    /// its tools are gone until it is enabled. Nothing happens to one that is not
    /// in use.
    ///
    /// # Errors
    ///
    /// [`ServerError::Unknown`] for a name that no server has.
    pub async fn disable(&self, name: &str) -> Result<Server, ServerError> {
        self.server(name)
    }

    fn server(&self, name: &str) -> Result<Server, ServerError> {
        let mut servers = self.servers();
        match servers.iter().position(|server| server.name == name) {
            Some(at) => Ok(servers.swap_remove(at)),
            None => Err(ServerError::Unknown {
                name: name.to_owned(),
                near: closest(name, servers.iter().map(|server| server.name.as_str())),
            }),
        }
    }
}

/// How alike a name must be to be suggested: 1 is equal, 0 is nothing alike.
const MIN_LIKENESS: f64 = 0.6;
/// Bytes of a name for which the nearest is looked for.
const MAX_ASKED: usize = 300;

/// The name that was probably meant.
pub(crate) fn closest<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    if asked.len() > MAX_ASKED {
        return None;
    }
    let asked = asked.to_lowercase();
    let likeness =
        |name: &str| strsim::normalized_damerau_levenshtein(&asked, &name.to_lowercase());
    names
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness >= MIN_LIKENESS)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name.to_owned())
}
