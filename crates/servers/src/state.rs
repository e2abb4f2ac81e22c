//! The state of a server, and the only code that changes it.
//!
//! The supervising task changes it step by step. Enabling, disabling and closing change it from
//! outside and begin a new *epoch*; steps of an older epoch are ignored.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::failure::Reason;
use crate::tool_list::ToolList;

/// The state of a server at one time.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// The server's name.
    pub name: String,
    /// The server's purpose, from the host's configuration.
    pub description: Option<String>,
    /// True if the server's hints count in decisions.
    pub trusted: bool,
    /// The tool list.
    pub status: Status,
    /// Why the server did not start, as long as it never has. A tool list is then a remembered one.
    pub failed: Option<Reason>,
    /// The connection.
    pub phase: Phase,
    /// True if this process received the tool list from the server.
    pub received: bool,
    /// The age of the tool list; `None` without a list, or if the age is not known.
    pub age: Option<Duration>,
    /// True if the list may be out of date: the server is down, the list's time to live is over, or
    /// the last request for a new list failed.
    pub stale: bool,
}

/// The tool list of a server.
#[derive(Debug, Clone)]
pub enum Status {
    /// The current or remembered list. A changed list is a new allocation.
    Ready(Arc<ToolList>),
    /// No list, because the server did not start.
    Failed(Reason),
    /// No list, because the server was never connected.
    Unknown,
}

/// The connection of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Connected.
    Up,
    /// Being connected.
    Starting,
    /// Connected by the next call.
    Idle,
    /// Ended or not started, and to be started again; the reason, without secrets.
    Down(Reason),
    /// Out of use: calls fail until the server is enabled.
    Disabled,
    /// The servers were shut down.
    Closed,
}

/// A [`Phase`] with the data that belongs to it.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    Up(Arc<Connection>),
    Starting,
    Idle,
    Down(Down),
    Disabled,
    Closed,
}

/// A server that is to be started again.
#[derive(Debug, Clone)]
pub(crate) struct Down {
    /// Why it ended or did not start, without secrets.
    pub(crate) reason: Reason,
    pub(crate) did_not_start: bool,
    pub(crate) retry_at: Instant,
    /// True if only a call starts it again.
    pub(crate) awaits_call: bool,
}

/// The stage of a server, and its uses.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    pub(crate) stage: Stage,
    /// Incremented by each change from outside.
    pub(crate) epoch: u64,
    pub(crate) uses: usize,
    last_use: Instant,
}

/// The watched lifecycle of one server.
#[derive(Debug)]
pub(crate) struct StatusCell {
    lifecycle: watch::Sender<Lifecycle>,
    /// Counts the changes of all servers.
    pub(crate) changes: Arc<watch::Sender<u64>>,
}

/// A use of a server, which keeps it connected.
#[derive(Debug)]
pub(crate) struct Use<'a>(&'a StatusCell);

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.lifecycle.send_if_modified(|lifecycle| {
            lifecycle.uses = lifecycle.uses.saturating_sub(1);
            lifecycle.last_use = Instant::now();
            false
        });
    }
}

impl StatusCell {
    pub(crate) fn new(stage: Stage, changes: Arc<watch::Sender<u64>>) -> Self {
        let lifecycle = Lifecycle {
            stage,
            epoch: 0,
            uses: 0,
            last_use: Instant::now(),
        };
        Self {
            lifecycle: watch::Sender::new(lifecycle),
            changes,
        }
    }

    /// The current lifecycle. The guard must not be held long.
    pub(crate) fn now(&self) -> watch::Ref<'_, Lifecycle> {
        self.lifecycle.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Lifecycle> {
        self.lifecycle.subscribe()
    }

    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        match &self.now().stage {
            Stage::Up(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Begins a use, which starts a server that is idle.
    pub(crate) fn begin_use(&self) -> Use<'_> {
        self.lifecycle.send_if_modified(|lifecycle| {
            lifecycle.uses += 1;
            !matches!(lifecycle.stage, Stage::Up(_))
        });
        Use(self)
    }

    /// Starts an idle server for its tool list.
    pub(crate) fn wake(&self) {
        self.change(|lifecycle| {
            let is_idle = matches!(lifecycle.stage, Stage::Idle);
            is_idle.then(|| lifecycle.stage = Stage::Starting)
        });
    }

    /// Takes a step, unless its epoch is over.
    pub(crate) fn step(&self, epoch: u64, next: Stage) {
        self.change(|lifecycle| {
            (lifecycle.epoch == epoch).then(|| {
                lifecycle.stage = next;
                lifecycle.last_use = Instant::now();
            })
        });
    }

    /// Makes an unused server idle, and returns the connection to be ended.
    pub(crate) fn make_idle(&self, epoch: u64, unused: Duration) -> Option<Arc<Connection>> {
        self.change(|lifecycle| {
            let is_unused = lifecycle.uses == 0 && lifecycle.last_use.elapsed() >= unused;
            let is_up = lifecycle.epoch == epoch && matches!(lifecycle.stage, Stage::Up(_));
            (is_unused && is_up).then(|| lifecycle.replace(Stage::Idle))
        })?
    }

    /// Starts a server now, unless it is connected, starting or closed.
    pub(crate) fn start_now(&self) {
        self.change(|lifecycle| {
            use Stage::{Disabled, Down, Idle};
            let is_off = matches!(lifecycle.stage, Idle | Down(_) | Disabled);
            is_off.then(|| {
                lifecycle.epoch += 1;
                lifecycle.stage = Stage::Starting;
            })
        });
    }

    /// Disables or closes a server, and returns the connection to be ended.
    pub(crate) fn end(&self, last: Stage) -> Option<Arc<Connection>> {
        self.change(|lifecycle| {
            let is_open = !matches!(lifecycle.stage, Stage::Closed);
            is_open.then(|| {
                lifecycle.epoch += 1;
                lifecycle.replace(last)
            })
        })?
    }

    /// Notifies the watchers of the servers.
    pub(crate) fn notify(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Changes the lifecycle, and notifies watchers unless nothing changed.
    fn change<T>(&self, change: impl FnOnce(&mut Lifecycle) -> Option<T>) -> Option<T> {
        let mut changed = None;
        self.lifecycle.send_if_modified(|lifecycle| {
            changed = change(lifecycle);
            changed.is_some()
        });
        changed.inspect(|_| self.notify())
    }
}

impl Lifecycle {
    /// Changes the stage, and returns the connection of the stage before.
    fn replace(&mut self, next: Stage) -> Option<Arc<Connection>> {
        match std::mem::replace(&mut self.stage, next) {
            Stage::Up(connection) => Some(connection),
            _ => None,
        }
    }
}

impl Down {
    /// The reason, and when the server is started again.
    pub(crate) fn whole_reason(&self) -> Reason {
        let wait = self.retry_at.saturating_duration_since(Instant::now());
        let next = if wait.is_zero() {
            "it is being started again".to_owned()
        } else {
            format!("it is started again in {} ms", wait.as_millis())
        };
        self.reason.clone().map(|reason| {
            // The reason may end with lines of stderr.
            let after = if reason.contains('\n') { "\n" } else { "; " };
            format!("{reason}{after}{next}")
        })
    }
}
