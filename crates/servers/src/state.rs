//! The state of a server, and the one place where it changes.
//!
//! The supervising task changes it step by step. Enabling, disabling and closing change it from
//! outside and begin a new *epoch*: a step of an older epoch changes nothing any more.

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
    /// Its purpose, by the host's configuration.
    pub description: Option<String>,
    /// True if its hints count in decisions.
    pub trusted: bool,
    /// Its tool list.
    pub status: Status,
    /// Why it did not start, as long as it never has. A tool list is then of an earlier time.
    pub failed: Option<Reason>,
    /// Its connection.
    pub phase: Phase,
    /// True if this process asked for the tool list.
    pub heard: bool,
    /// The age of the tool list; `None` without a list, or if the age is not known.
    pub age: Option<Duration>,
    /// True if the list may be out of date: the server is down, the list is older than it holds, or
    /// the last attempt at a new one failed.
    pub stale: bool,
}

/// The tool list of a server.
#[derive(Debug, Clone)]
pub enum Status {
    /// The list, of now or of an earlier time. Another list is another [`ToolList`].
    Ready(Arc<ToolList>),
    /// There is none: the server did not start.
    Failed(Reason),
    /// There is none: the server was never connected to.
    Unknown,
}

/// The connection of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It is connected.
    Up,
    /// It is being connected to.
    Starting,
    /// It is connected to when it is called.
    Idle,
    /// It ended or did not start, and is started again; the reason, without secrets.
    Down(Reason),
    /// It is not in use: calls fail until it is enabled.
    Disabled,
    /// The servers were shut down.
    Closed,
}

/// The connection of a server, with what belongs to it.
#[derive(Debug, Clone)]
pub(crate) enum State {
    Up(Arc<Connection>),
    /// It is being started, after it was idle or disabled.
    Starting,
    Idle,
    Down(Down),
    Disabled,
    Closed,
}

/// A server that is to be started again.
#[derive(Debug, Clone)]
pub(crate) struct Down {
    /// The way it ended, or why it did not start, without secrets.
    pub(crate) reason: Reason,
    pub(crate) did_not_start: bool,
    pub(crate) retry_at: Instant,
    /// True if it is started again only for a call.
    pub(crate) awaits_call: bool,
}

/// The state of a server and its uses.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    pub(crate) state: State,
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

/// One use of a server. It is not disconnected meanwhile.
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
    pub(crate) fn new(state: State, changes: Arc<watch::Sender<u64>>) -> Self {
        let lifecycle = Lifecycle {
            state,
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
        match &self.now().state {
            State::Up(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Begins a use, which starts a server that is idle.
    pub(crate) fn begin_use(&self) -> Use<'_> {
        self.lifecycle.send_if_modified(|lifecycle| {
            lifecycle.uses += 1;
            !matches!(lifecycle.state, State::Up(_))
        });
        Use(self)
    }

    /// Has an idle server started for its tool list.
    pub(crate) fn wake(&self) {
        self.change(|lifecycle| {
            let is_idle = matches!(lifecycle.state, State::Idle);
            is_idle.then(|| lifecycle.state = State::Starting)
        });
    }

    /// Takes a step in an epoch. A step of an older epoch is not taken.
    pub(crate) fn step(&self, epoch: u64, next: State) {
        self.change(|lifecycle| {
            (lifecycle.epoch == epoch).then(|| {
                lifecycle.state = next;
                lifecycle.last_use = Instant::now();
            })
        });
    }

    /// Makes an unused server idle, and hands out its connection to be ended.
    pub(crate) fn make_idle(&self, epoch: u64, unused: Duration) -> Option<Arc<Connection>> {
        self.change(|lifecycle| {
            let is_unused = lifecycle.uses == 0 && lifecycle.last_use.elapsed() >= unused;
            let is_up = lifecycle.epoch == epoch && matches!(lifecycle.state, State::Up(_));
            (is_unused && is_up).then(|| lifecycle.replace(State::Idle))
        })?
    }

    /// Has a server that is not connected started at once.
    pub(crate) fn start_now(&self) {
        self.change(|lifecycle| {
            use State::{Disabled, Down, Idle};
            let is_off = matches!(lifecycle.state, Idle | Down(_) | Disabled);
            is_off.then(|| {
                lifecycle.epoch += 1;
                lifecycle.state = State::Starting;
            })
        });
    }

    /// Ends everything and hands out the connection to be ended. `last` is `Disabled` or `Closed`.
    pub(crate) fn end(&self, last: State) -> Option<Arc<Connection>> {
        self.change(|lifecycle| {
            let is_open = !matches!(lifecycle.state, State::Closed);
            is_open.then(|| {
                lifecycle.epoch += 1;
                lifecycle.replace(last)
            })
        })?
    }

    /// Notifies those who watch the servers.
    pub(crate) fn tell(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Changes the lifecycle, and notifies watchers unless nothing changed.
    fn change<T>(&self, change: impl FnOnce(&mut Lifecycle) -> Option<T>) -> Option<T> {
        let mut changed = None;
        self.lifecycle.send_if_modified(|lifecycle| {
            changed = change(lifecycle);
            changed.is_some()
        });
        changed.inspect(|_| self.tell())
    }
}

impl Lifecycle {
    /// Puts another state in the place of this one, and hands out the connection.
    fn replace(&mut self, next: State) -> Option<Arc<Connection>> {
        match std::mem::replace(&mut self.state, next) {
            State::Up(connection) => Some(connection),
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
