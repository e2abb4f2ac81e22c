//! The state of a server, and the one place where it changes.
//!
//! The supervising task changes it step by step. Enabling, disabling and closing change it from
//! outside and begin a new *turn*: a step of an older turn changes nothing any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::failure::{Reason, StartError};
use crate::spec::Connect;
use crate::tool_list::ToolList;

/// The state of a server at one time.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// The server's name.
    pub name: String,
    /// Its purpose, by the host's configuration.
    pub description: Option<String>,
    /// Whether its hints count in decisions.
    pub trusted: bool,
    /// Its tool list.
    pub status: Status,
    /// Why it did not start, as long as it never has. A tool list is then of an earlier time.
    pub failed: Option<StartError>,
    /// Its connection.
    pub phase: Phase,
    /// Whether this process asked for the tool list.
    pub heard: bool,
    /// The age of the tool list; `None` without a list, or if the age is not known.
    pub age: Option<Duration>,
    /// Whether the list may be out of date: the server is down, the list is older than it holds, or
    /// the last attempt at a new one failed.
    pub stale: bool,
}

/// The tool list of a server.
#[derive(Debug, Clone)]
pub enum Status {
    /// The list, of now or of an earlier time. Another list is another [`ToolList`].
    Ready(Arc<ToolList>),
    /// There is none: the server did not start.
    Failed(StartError),
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
    /// How it ended, or why it did not start, without secrets.
    pub(crate) reason: Reason,
    pub(crate) backoff: Backoff,
    pub(crate) retry_at: Instant,
    /// Whether it is started again only for a call.
    pub(crate) awaits_call: bool,
}

/// The state and its uses.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) state: State,
    /// The number of changes from outside.
    pub(crate) turn: u64,
    uses: usize,
    last_use: Instant,
    /// Whether a new tool list is wanted of a server that is idle.
    errand: bool,
}

/// The standing of one server.
#[derive(Debug)]
pub(crate) struct Stand(watch::Sender<Standing>);

/// One use of a server. It is not disconnected meanwhile.
#[derive(Debug)]
pub(crate) struct Use<'a>(&'a Stand);

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.0.send_if_modified(|standing| {
            standing.uses = standing.uses.saturating_sub(1);
            standing.last_use = Instant::now();
            false
        });
    }
}

impl Stand {
    pub(crate) fn new(state: State) -> Self {
        Self(watch::Sender::new(Standing {
            state,
            turn: 0,
            uses: 0,
            last_use: Instant::now(),
            errand: false,
        }))
    }

    /// The standing now. The guard must not be held long.
    pub(crate) fn now(&self) -> watch::Ref<'_, Standing> {
        self.0.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Standing> {
        self.0.subscribe()
    }

    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        match &self.now().state {
            State::Up(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Begins a use, which starts a server that is idle.
    pub(crate) fn begin_use(&self) -> Use<'_> {
        self.0.send_if_modified(|standing| {
            standing.uses += 1;
            !matches!(standing.state, State::Up(_))
        });
        Use(self)
    }

    /// Has an idle server started for its tool list.
    pub(crate) fn send_for(&self) {
        self.0
            .send_if_modified(|standing| !std::mem::replace(&mut standing.errand, true));
    }

    /// Takes a step in a turn. A step of an older turn is not taken.
    pub(crate) fn step(&self, turn: u64, next: State) {
        self.0.send_if_modified(move |standing| {
            let is_current = standing.turn == turn;
            if is_current {
                standing.state = next;
                standing.errand = false;
                standing.last_use = Instant::now();
            }
            is_current
        });
    }

    /// Makes an unused server idle, and hands out its connection to be ended.
    pub(crate) fn rest(&self, turn: u64, unused: Duration) -> Option<Arc<Connection>> {
        let mut ended = None;
        self.0.send_if_modified(|standing| {
            let is_unused = standing.uses == 0 && standing.last_use.elapsed() >= unused;
            if standing.turn == turn && is_unused && matches!(standing.state, State::Up(_)) {
                ended = standing.replace(State::Idle);
            }
            ended.is_some()
        });
        ended
    }

    /// Has a server that is not connected started at once.
    pub(crate) fn turn_on(&self) {
        self.0.send_if_modified(|standing| {
            use State::{Disabled, Down, Idle};
            let is_off = matches!(standing.state, Idle | Down(_) | Disabled);
            if is_off {
                standing.turn += 1;
                standing.state = State::Starting;
            }
            is_off
        });
    }

    /// Ends everything and hands out the connection to be ended. `last` is `Disabled` or `Closed`.
    pub(crate) fn end(&self, last: State) -> Option<Arc<Connection>> {
        let mut ended = None;
        self.0.send_if_modified(|standing| {
            let is_open = !matches!(standing.state, State::Closed);
            if is_open {
                standing.turn += 1;
                ended = standing.replace(last);
            }
            is_open
        });
        ended
    }
}

impl Standing {
    /// Whether the server is used, or sent for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.uses > 0 || self.errand
    }

    pub(crate) fn unused(&self) -> Duration {
        if self.uses > 0 {
            Duration::ZERO
        } else {
            self.last_use.elapsed()
        }
    }

    /// Puts another state in the place of this one, and hands out the connection.
    fn replace(&mut self, next: State) -> Option<Arc<Connection>> {
        match std::mem::replace(&mut self.state, next) {
            State::Up(connection) => Some(connection),
            _ => None,
        }
    }
}

impl Down {
    pub(crate) fn new(reason: Reason, backoff: Backoff, connect: Connect, known: bool) -> Self {
        let is_patient = backoff.has_many() || connect != Connect::Always;
        Self {
            reason,
            backoff,
            retry_at: Instant::now() + backoff.wait(known),
            awaits_call: is_patient && known,
        }
    }
}

impl Down {
    /// The reason, and when the server is started again.
    pub(crate) fn whole_reason(&self) -> Reason {
        let again = if self.backoff.never_started() {
            "tried again"
        } else {
            "started again"
        };
        let by = if self.awaits_call { " by a call" } else { "" };
        let wait = self.retry_at.saturating_duration_since(Instant::now());
        let next = if wait.is_zero() {
            format!("it is being {again}")
        } else if self.backoff.has_many() {
            let times = &self.backoff;
            format!("{times}, and is {again}{by} in {} ms", wait.as_millis())
        } else {
            format!("it is {again}{by} in {} ms", wait.as_millis())
        };
        self.reason.clone().map(|reason| {
            // The reason may end with lines of stderr.
            let after = if reason.contains('\n') { "\n" } else { "; " };
            format!("{reason}{after}{next}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_down_says_when_it_is_started_again() {
        let check = |connect, known, failures, expected: &str| {
            let mut backoff = Backoff::default();
            for _ in 0..failures {
                backoff.ended_after(Duration::ZERO);
            }
            let down = Down::new("it ended".into(), backoff, connect, known);
            let down = down.whole_reason().to_string();
            assert!(down.starts_with(expected), "{down}");
        };
        let for_call = "it ended; it is started again by a call in ";
        let many = "it ended; it failed 5 times in a row, and is started again";
        check(
            Connect::Always,
            true,
            4,
            "it ended; it is started again in ",
        );
        check(Connect::Always, true, 5, &format!("{many} by a call in "));
        check(Connect::Lazy, true, 1, for_call);
        check(Connect::Manual, true, 1, for_call);
        check(Connect::Lazy, false, 1, "it ended; it is started again in ");
        check(Connect::Always, false, 5, &format!("{many} in "));
    }
}
