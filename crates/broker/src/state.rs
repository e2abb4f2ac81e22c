//! Whether there is a connection to a server, and the one place where that
//! changes.
//!
//! The task that keeps a server up changes it step by step; enabling, disabling
//! and closing change it from outside, and begin a new *turn*: a step that was
//! begun in an older one changes nothing any more.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::{Backoff, Failures};
use crate::connection::Connection;
use crate::spec::Connect;
use crate::usage::Usage;

/// Whether there is a connection.
#[derive(Debug)]
pub(crate) enum State {
    /// There is.
    Up(Arc<Connection>),
    /// It is being started, after it was idle or disabled.
    Starting,
    /// There is none until somebody wants it.
    Idle,
    /// It ended or did not start, and is to be started again.
    Down(Down),
    /// It is not in use.
    Disabled,
    /// It was ended from this side, for good.
    Closed,
}

/// A server that is to be started again.
#[derive(Debug, Clone)]
pub(crate) struct Down {
    /// How it ended, or why it did not start, without secrets.
    pub(crate) reason: String,
    failures: Failures,
    pub(crate) retry_at: Instant,
    /// Whether it is not started again before a call wants it.
    pub(crate) awaits_call: bool,
}

/// The state, and how it came to it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) state: State,
    /// How often it was changed from outside.
    pub(crate) turn: u64,
    /// Whether the folders that it may ask for have changed since it began to be started,
    /// and it has yet to be told.
    roots_changed: bool,
}

/// The standing of one server, for those who change it and those who wait.
#[derive(Debug)]
pub(crate) struct Stand(watch::Sender<Standing>);

impl Stand {
    pub(crate) fn new(state: State) -> Self {
        Self(watch::Sender::new(Standing {
            state,
            turn: 0,
            roots_changed: false,
        }))
    }

    /// What it is, for as long as the answer is held; it must not be held long.
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

    /// Takes a step in a turn. One of an older turn is not taken; whether it was.
    pub(crate) fn step(&self, turn: u64, next: State) -> bool {
        self.0.send_if_modified(move |standing| {
            let current = standing.turn == turn;
            if current {
                standing.state = next;
                standing.tell_of_roots();
            }
            current
        })
    }

    /// It begins to be started: what it asks for from now on is what there is.
    pub(crate) fn starts(&self) {
        self.0.send_if_modified(|standing| {
            standing.roots_changed = false;
            false
        });
    }

    /// The folders that it may ask for are others now. It is told at once, or as soon as
    /// there is the connection that is being made: it may have asked already.
    pub(crate) fn roots_changed(&self) {
        self.0.send_if_modified(|standing| {
            standing.roots_changed = true;
            standing.tell_of_roots();
            false
        });
    }

    /// Makes a server idle that nobody uses, and hands out its connection to be
    /// ended. A call that begins now sees that it is idle; one that has begun
    /// keeps it up.
    pub(crate) fn rest(&self, turn: u64, usage: &Usage) -> Option<Arc<Connection>> {
        let mut ended = None;
        self.0.send_if_modified(|standing| {
            if standing.turn != turn || usage.is_wanted() {
                return false;
            }
            ended = standing.replace_up(State::Idle);
            ended.is_some()
        });
        ended
    }

    /// Has a server that is not up started at once, whatever became of it
    /// before; `false` for one that is closed.
    pub(crate) fn turn_on(&self) -> bool {
        let mut open = true;
        self.0.send_if_modified(|standing| match standing.state {
            State::Up(_) | State::Starting => false,
            State::Idle | State::Down(_) | State::Disabled => {
                standing.turn += 1;
                standing.state = State::Starting;
                true
            }
            State::Closed => {
                open = false;
                false
            }
        });
        open
    }

    /// Takes a server out of use, and hands out its connection to be ended.
    pub(crate) fn turn_off(&self) -> Option<Arc<Connection>> {
        self.end(State::Disabled)
    }

    /// Ends everything for good, and hands out the connection to be ended.
    pub(crate) fn close(&self) -> Option<Arc<Connection>> {
        self.end(State::Closed)
    }

    fn end(&self, last: State) -> Option<Arc<Connection>> {
        let mut ended = None;
        self.0.send_if_modified(|standing| {
            let is_closed = matches!(standing.state, State::Closed);
            if is_closed {
                return false;
            }
            standing.turn += 1;
            if let State::Up(connection) = std::mem::replace(&mut standing.state, last) {
                ended = Some(connection);
            }
            true
        });
        ended
    }
}

impl Standing {
    /// Tells a server that is connected to that the folders it may ask for have changed, if
    /// it has yet to be told.
    fn tell_of_roots(&mut self) {
        if let State::Up(connection) = &self.state
            && std::mem::take(&mut self.roots_changed)
        {
            connection.session().roots_changed();
        }
    }

    /// Puts another state in place of a connection, if there is one.
    fn replace_up(&mut self, next: State) -> Option<Arc<Connection>> {
        let State::Up(connection) = &self.state else {
            return None;
        };
        let connection = Arc::clone(connection);
        self.state = next;
        Some(connection)
    }
}

impl Down {
    /// One that has just failed. Whether it is left to a call depends on how it is
    /// to be connected to, and on whether its tools are `known`: else none can come.
    pub(crate) fn new(reason: String, backoff: &Backoff, connect: Connect, known: bool) -> Self {
        let failures = backoff.failures();
        let is_patient = failures.are_many() || connect != Connect::Always;
        Self {
            reason,
            failures,
            retry_at: Instant::now() + backoff.wait(known),
            awaits_call: is_patient && known,
        }
    }
}

impl Down {
    /// Whether it is down because it did not start.
    pub(crate) fn is_of_starts(&self) -> bool {
        self.failures.are_of_starts()
    }
}

impl std::fmt::Display for Down {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What ends with lines of stderr is not to look as if it went on in them.
        let after = if self.reason.contains('\n') {
            "\n"
        } else {
            "; "
        };
        write!(f, "{}{after}", self.reason)?;
        let again = match self.failures.are_of_starts() {
            true => "tried again",
            false => "started again",
        };
        let wait = self.retry_at.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            return write!(f, "it is being {again}");
        }
        match self.failures.are_many() {
            true => write!(f, "{}, and is {again} ", self.failures)?,
            false => write!(f, "it is {again} ")?,
        }
        let wait = wait.as_millis();
        match self.awaits_call {
            true => write!(f, "by a call that waits {wait} ms"),
            false => write!(f, "in {wait} ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_down_says_what_starts_it_again() {
        let check = |connect, known, failures, expected: &str| {
            let mut backoff = Backoff::default();
            for _ in 0..failures {
                backoff.ended_after(Duration::ZERO);
            }
            let down = Down::new("it ended".to_owned(), &backoff, connect, known);
            let shown = down.to_string();
            let shown = shown
                .rsplit_once(" ms")
                .map_or(shown.as_str(), |(said, _)| {
                    said.trim_end_matches(|c: char| c.is_ascii_digit())
                });
            assert_eq!(shown, expected);
        };
        let in_time = "it ended; it is started again in ";
        let for_call = "it ended; it is started again by a call that waits ";
        let many = "it ended; it ended 5 times in a row, and is started again";
        check(Connect::Always, true, 4, in_time);
        check(
            Connect::Always,
            true,
            5,
            &format!("{many} by a call that waits "),
        );
        check(Connect::Lazy, true, 1, for_call);
        check(Connect::Manual, true, 1, for_call);
        // Of what nobody knows the tools, nobody can call one.
        check(Connect::Lazy, false, 1, in_time);
        check(Connect::Always, false, 5, &format!("{many} in "));
    }
}
