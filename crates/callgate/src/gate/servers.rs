//! The servers of a gate, and which of them are in use.

use std::collections::HashMap;

use callgate_broker::{Phase, Ready, Status};
use serde::Serialize;

use crate::Gate;
use crate::harmless::one_line;
use crate::report::Unavailable;

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

pub(crate) fn nearest(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default()
}

impl Gate {
    /// The servers, in the order of the configuration.
    pub fn servers(&self) -> Vec<Server> {
        let catalog = self.catalog();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for tool in catalog.tools() {
            *counts.entry(&tool.definition.server).or_default() += 1;
        }
        let servers = self.broker.servers().map(|server| {
            let counted = counts.get(server.name.as_str()).copied();
            Server::of(server, counted.unwrap_or_default())
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
        self.server(name)?;
        let enabled = self.broker.enable(name).await;
        self.live.update().await;
        match enabled {
            Ok(()) => self.server(name),
            Err(reason) => Err(ServerError::Down {
                name: name.to_owned(),
                reason,
            }),
        }
    }

    /// Takes a server out of use: its connection ends, calls in flight fail, and
    /// its tools are gone until it is enabled. Nothing happens to one that is not
    /// in use.
    ///
    /// # Errors
    ///
    /// [`ServerError::Unknown`] for a name that no server has.
    pub async fn disable(&self, name: &str) -> Result<Server, ServerError> {
        self.server(name)?;
        // It is there: it was just looked up, and none ever goes.
        let _known = self.broker.disable(name).await;
        self.live.update().await;
        self.server(name)
    }

    /// Tells servers that the folders they may ask for outside of calls are others now: for a
    /// host whose [`GateBuilder::caller`](crate::GateBuilder::caller) names others than before.
    /// It is told to servers of 2025-11-25 and before, which ask that caller again if they
    /// care, and calls made right after this wait up to 50 ms for that. A server of 2026-07-28
    /// asks within each call, and is told nothing.
    pub fn roots_changed(&self) {
        self.broker.roots_changed();
    }

    /// Servers in use that have not been connected to though they should be, and
    /// why. They are tried again.
    pub fn unavailable(&self) -> Vec<Unavailable> {
        let servers = self.broker.servers();
        servers.filter_map(|server| unavailable(&server)).collect()
    }

    /// The server that could not be connected to and to which this name belongs,
    /// or would if its tools were known.
    pub fn unavailable_server_of(&self, function: &str) -> Option<Unavailable> {
        let catalog = self.catalog();
        let tool = catalog.get(function);
        let owns = |name: &str| match tool {
            Some(tool) => tool.definition.server == name,
            None => self.oversight.would_own(name, function),
        };
        let mut servers = self.broker.servers().filter(|server| owns(&server.name));
        servers.find_map(|server| unavailable(&server))
    }

    /// The server that is not in use and to which this name would belong.
    pub fn disabled_server_of(&self, function: &str) -> Option<String> {
        self.live.disabled_server_of(function)
    }

    /// The server of this name.
    ///
    /// # Errors
    ///
    /// [`ServerError::Unknown`], with the nearest name there is.
    pub fn server(&self, name: &str) -> Result<Server, ServerError> {
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

impl Server {
    fn of(state: callgate_broker::ServerState, counted: usize) -> Self {
        let ready = match &state.status {
            Status::Ready(ready) => Some(ready),
            _ => None,
        };
        let is_disabled = state.phase == Phase::Disabled;
        Self {
            description: description(&state),
            tools: match ready {
                // It is in no catalog, and may be of interest all the same.
                Some(ready) if is_disabled => ready.tools.len(),
                _ => counted,
            },
            stale: ready.is_some() && state.stale,
            state: match state.phase {
                Phase::Up => ServerState::Connected,
                Phase::Idle | Phase::Starting => ServerState::Idle,
                Phase::Down(reason) => ServerState::Down { reason },
                Phase::Disabled => ServerState::Disabled,
                _ => ServerState::Down {
                    reason: "it was shut down".to_owned(),
                },
            },
            name: state.name,
        }
    }
}

/// What a server is for, in one line: from the configuration, else from itself.
pub(crate) fn description(state: &callgate_broker::ServerState) -> Option<String> {
    let ready = match &state.status {
        Status::Ready(ready) => Some(ready),
        _ => None,
    };
    let own = || own_words(ready?);
    state.description.clone().or_else(own)
}

/// The longest description that is taken from a server, in characters.
const MAX_DESCRIPTION: usize = 200;

/// What a server says of itself, as one line that can be shown.
fn own_words(ready: &Ready) -> Option<String> {
    let instructions = ready.instructions.as_deref().unwrap_or_default();
    let mut lines = instructions.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty());
    let title = || ready.server_info.as_ref()?.title.as_deref();
    Some(one_line(first.or_else(title)?, MAX_DESCRIPTION))
}

/// What to say of a server that should be connected to and never was.
fn unavailable(server: &callgate_broker::ServerState) -> Option<Unavailable> {
    if server.phase == Phase::Disabled {
        return None;
    }
    let mut reason = server.failed.as_ref()?.to_string();
    if matches!(server.status, Status::Ready(_)) {
        reason.push_str("\n  its tools are listed as they were ");
        match server.age {
            Some(age) => reason.push_str(&match age.as_secs() / 60 {
                0 => "less than a minute ago".to_owned(),
                1 => "a minute ago".to_owned(),
                minutes => format!("{minutes} minutes ago"),
            }),
            None => reason.push_str("at an earlier time"),
        }
    }
    Some(Unavailable {
        server: server.name.clone(),
        reason,
    })
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
