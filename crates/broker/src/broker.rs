//! The servers of one host: started side by side, asked, and ended together.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use callgate_policy::DefinitionHash;
use futures::future::join_all;
use rmcp::model::{ErrorCode, ErrorData};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

use crate::caller::Caller;
use crate::calls::Call;
use crate::error::{CallFailure, StartError};
use crate::failure::Failure;
use crate::patience::{Patience, later, soon};
use crate::server::Server;
use crate::spec::ServerSpec;

/// How long processes that have not been started yet are waited for, before what has
/// been heard of the others is made use of.
const LAUNCHED: Duration = Duration::from_millis(250);

/// How long a call waits for a list that is on its way.
const LIST_PATIENCE: Duration = Duration::from_secs(2);

/// One call of a tool.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "arguments are in no log")]
pub struct ToolCall<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// The definition that was decided on.
    pub definition: &'a DefinitionHash,
    /// A JSON object.
    pub arguments: &'a str,
    /// Serves the server while it works on the call. Default: that of the server's
    /// specification.
    pub caller: Option<Arc<dyn Caller>>,
    /// The call's time limit. The server's own limits hold all the same.
    pub limit: Option<Duration>,
}

fn call_failure(failure: Failure, said: String) -> CallFailure {
    let sent = failure.was_sent();
    match failure {
        Failure::Refused(error) => CallFailure::Refused(error),
        Failure::Timeout(limit) => CallFailure::Timeout(limit),
        Failure::Unfit(reason) => {
            CallFailure::Refused(ErrorData::new(ErrorCode::INVALID_PARAMS, reason, None))
        }
        Failure::Changed { .. } => CallFailure::ToolChanged { reason: said, sent },
        Failure::TooLarge(_) => CallFailure::TooLarge(said),
        Failure::Malformed(_) => CallFailure::Malformed(said),
        Failure::Input(_) => CallFailure::Input(said),
        _ => CallFailure::Lost { reason: said, sent },
    }
}

/// Connections to MCP servers. Clones are the same broker; when the last one
/// and every run is gone, so are the servers' processes.
#[derive(Debug, Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

/// A [`Broker`] that does not keep the servers up.
#[derive(Debug, Clone)]
pub struct WeakBroker {
    inner: Weak<Inner>,
}

#[derive(Debug)]
struct Inner {
    servers: Vec<Server>,
    changes: Arc<watch::Sender<u64>>,
}

/// What there is of a server at one time.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// The server's name.
    pub name: String,
    /// What it is for, as the host says it.
    pub description: Option<String>,
    /// Whether its hints count in decisions.
    pub trusted: bool,
    /// What is known of its tools.
    pub status: Status,
    /// Why it did not start, as long as it never has; what is known of its tools
    /// is then from an earlier time.
    pub failed: Option<StartError>,
    /// Whether there is a connection.
    pub phase: Phase,
    /// Whether the list of its tools is one that this broker asked for.
    pub heard: bool,
    /// Whether the server said that its list has changed, and there is no new one
    /// yet.
    pub changed: bool,
    /// How old the list of its tools is; `None` if there is none, or for longer
    /// than can be said.
    pub age: Option<Duration>,
    /// Whether the list may not be what the server would say now: it is down, the
    /// list is older than it holds, or the last attempt at a new one failed.
    pub stale: bool,
}

/// What is known of a server's tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Status {
    /// It listed them, now or at an earlier time. Another list is another
    /// [`Ready`].
    Ready(Arc<Ready>),
    /// Nothing: it did not start.
    Failed(StartError),
    /// Nothing: it was never connected to.
    Unknown,
}

/// Whether there is a connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// There is.
    Up,
    /// It is being connected to.
    Starting,
    /// It is connected to when it is called.
    Idle,
    /// It ended or did not start, and is started again; why, without secrets.
    Down(String),
    /// It is not in use: calls of it fail until it is enabled.
    Disabled,
    /// The broker was shut down.
    Closed,
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
    /// How long the list of tools holds before it is to be asked for again;
    /// `None` if the server tells of changes, or does not say.
    pub fresh_for: Option<Duration>,
    /// How long the list holds by the server's own word (`ttlMs`), within 5 s and
    /// a day; `None` if it does not say.
    pub ttl: Option<Duration>,
    /// The name of the login that its tools were asked for with; `None` for no login.
    pub login: Option<Arc<str>>,
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
    /// Starts all servers that are to be connected to at the start, side by side,
    /// and returns when each is ready or has failed. Never fails as a whole: see [`Broker::servers`].
    ///
    /// Dropping the future ends what has been started.
    pub async fn start(specs: Vec<ServerSpec>) -> Self {
        Self::start_noting(specs, |_| {}).await
    }

    /// As [`Broker::start`]; `note` hears of each server as soon as it is ready
    /// or has failed, and the others' processes have been started. It must not block.
    pub async fn start_noting(specs: Vec<ServerSpec>, note: impl Fn(&ServerState)) -> Self {
        let changes = Arc::new(watch::Sender::default());
        let mut names = HashSet::new();
        let launches = watch::Sender::new(());
        let starting = specs.into_iter().map(|spec| {
            let unique = names.insert(spec.name.clone());
            let server = Server::start(spec, unique, &changes, launches.subscribe());
            let (note, launches) = (&note, &launches);
            async move {
                let server = server.await;
                // What is made of one's list takes the processor from those that
                // start, and the slowest of all may be among them.
                let _late = timeout(LAUNCHED, launches.closed()).await;
                note(&server.state());
                server
            }
        });
        let starting: Vec<_> = starting.collect();
        let servers = join_all(starting).await;
        Self {
            inner: Arc::new(Inner { servers, changes }),
        }
    }

    /// What there is of each server now, in the order they were given.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = ServerState> {
        self.inner.servers.iter().map(Server::state)
    }

    /// Changes whenever [`Broker::servers`] says something else than before.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Asks for the lists that are out of date by their servers' own word.
    pub fn refresh_stale(&self) {
        self.inner.servers.iter().for_each(Server::refresh_if_stale);
    }

    /// Whether every list of tools is the newest that is known of.
    pub fn is_settled(&self) -> bool {
        self.inner.servers.iter().all(Server::is_settled)
    }

    /// Whether the list of one server is; `true` for a name that no server has.
    pub fn is_settled_at(&self, server: &str) -> bool {
        self.find(server).is_none_or(Server::is_settled)
    }

    /// Waits until the lists of tools are the newest that are known of: all, or that of
    /// one server; for as long as this at most. No list is waited for longer than that by all
    /// who wait for it, until its server has answered with one or an error.
    pub async fn settle(&self, server: Option<&str>, patience: Duration) {
        let mut changes = self.watch();
        let end = soon(patience);
        loop {
            let servers = self.inner.servers.iter();
            let named = servers.filter(|it| server.is_none_or(|name| it.name() == name));
            let Some(last) = named.filter_map(Server::awaited_since).max() else {
                return;
            };
            let until = end.min(later(last, patience));
            if timeout_at(until, changes.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Whether a call of this server has to wait for it to be connected to, since
    /// it is idle or being started; `false` for a name that no server has.
    pub fn is_resting(&self, server: &str) -> bool {
        self.find(server).is_some_and(Server::is_resting)
    }

    /// Has a server in use connected to, unless it is, and waits for that within
    /// its time limit for starting.
    ///
    /// # Errors
    ///
    /// Why it is not, without secrets.
    pub async fn connect(&self, server: &str) -> Result<(), String> {
        self.known(server)?.connect().await
    }

    /// Takes a server into use, connects to it at once unless it is connected to,
    /// and waits for that within its time limit for starting.
    ///
    /// # Errors
    ///
    /// Why it does not start, without secrets. It is in use then all the same,
    /// and started again as any server is that fails.
    pub async fn enable(&self, server: &str) -> Result<(), String> {
        self.known(server)?.enable().await
    }

    /// Takes a server out of use. Its connection and its process are ended, and
    /// calls in flight fail.
    ///
    /// # Errors
    ///
    /// That no server has this name.
    pub async fn disable(&self, server: &str) -> Result<(), String> {
        self.known(server)?.disable().await;
        Ok(())
    }

    /// Tells servers that the folders they may ask for outside of calls are others now:
    /// what the callers of their specifications name. It is told to those of 2025-11-25 and
    /// before that were offered folders, over the connections there are; one that is
    /// connected to later asks anew. Calls made right after this wait up to 50 ms, so that a
    /// server can ask and take in the answer before it has them.
    pub fn roots_changed(&self) {
        for server in &self.inner.servers {
            server.shared.stand.roots_changed();
        }
    }

    /// The same broker, not kept alive.
    pub fn downgrade(&self) -> WeakBroker {
        WeakBroker {
            inner: Arc::downgrade(&self.inner),
        }
    }

    /// Whether a server is marked trusted; `false` for a name that no server has.
    pub fn is_trusted(&self, server: &str) -> bool {
        self.find(server).is_some_and(Server::trusted)
    }

    /// Calls a tool, if it still has the definition that was decided on.
    ///
    /// # Errors
    ///
    /// [`CallFailure`]. Nothing that was sent is sent again.
    pub async fn call(&self, call: ToolCall<'_>) -> Result<Box<RawValue>, CallFailure> {
        let server = self
            .known(call.server)
            .map_err(|reason| CallFailure::Lost {
                reason,
                sent: false,
            })?;
        // A list that is on its way may have another tool of this name.
        self.settle(Some(call.server), LIST_PATIENCE).await;
        let configured = server.patience();
        let limit = call.limit.unwrap_or(Duration::MAX);
        let timed = Call {
            tool: call.tool,
            arguments: call.arguments,
            caller: call.caller.unwrap_or_else(|| server.caller()),
            patience: Patience {
                most: configured.most.min(limit),
                ..configured
            },
            decided: Some(server.decided(*call.definition)),
        };
        server.call(&timed).await.map_err(|(failure, said)| {
            if !server.is_listed_by_login() {
                // So that a later call can be decided on.
                server.refresh();
            }
            call_failure(failure, said)
        })
    }

    /// Ends all servers side by side: their input is closed, and whoever does
    /// not exit within a second gets SIGTERM, and SIGKILL a second later. Calls
    /// still in flight fail. A later call fails too.
    pub async fn shutdown(&self) {
        join_all(self.inner.servers.iter().map(Server::shut_down)).await;
    }

    fn known(&self, name: &str) -> Result<&Server, String> {
        let found = self.find(name);
        found.ok_or_else(|| format!("there is no server `{name}`"))
    }

    /// The server of this name; the first, should there be two.
    pub(crate) fn find(&self, name: &str) -> Option<&Server> {
        let mut servers = self.inner.servers.iter();
        servers.find(|server| server.name() == name)
    }
}

impl WeakBroker {
    /// The broker, if it is still there.
    pub fn upgrade(&self) -> Option<Broker> {
        let inner = self.inner.upgrade()?;
        Some(Broker { inner })
    }
}
