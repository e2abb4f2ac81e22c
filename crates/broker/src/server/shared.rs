//! What calls of a server and the task that keeps it up have in common.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::broker::{Phase, Ready, ServerState, Status};
use crate::connection::Connection;
use crate::ends::Ends;
use crate::listed::{Covered, Listed};
use crate::spec::{Connect, ServerSpec};
use crate::start::Admission;
use crate::state::{Stand, State};
use crate::usage::Usage;

/// One server's part of it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) spec: ServerSpec,
    pub(crate) stand: Stand,
    pub(crate) ends: Ends,
    pub(crate) usage: Usage,
    pub(crate) admission: Admission,
    pub(crate) listed: Arc<Listed>,
    /// How often somebody wished for a new list.
    pub(crate) wishes: watch::Sender<u64>,
    /// The broker's.
    pub(super) changes: Arc<watch::Sender<u64>>,
}

impl Shared {
    /// Takes a list that covers these reasons.
    pub(crate) fn listed(&self, ready: Ready, covered: Covered) {
        self.listed.take(ready, covered);
        self.changed();
    }

    /// There is no list for these reasons: nobody is to wait for it.
    pub(crate) fn not_listed(&self, covered: Covered) {
        self.listed.miss(covered);
        self.changed();
    }

    /// Takes a step in a turn, if that still lasts.
    pub(crate) fn step(&self, turn: u64, next: State) -> bool {
        let taken = self.stand.step(turn, next);
        if taken {
            self.changed();
        }
        taken
    }

    /// Tells those who watch the broker.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The reasons for a list that there are now.
    pub(crate) fn reasons(&self, connection: &Connection) -> Covered {
        Covered {
            told: connection.list_changes(),
            wishes: *self.wishes.borrow(),
        }
    }

    /// Whether the last list covers all the reasons there are for one.
    pub(crate) fn is_settled(&self) -> bool {
        match self.stand.connection() {
            Some(connection) => self.reasons(&connection) == self.listed.covered(),
            // Its tools are what they were; a new connection lists them anew.
            None => true,
        }
    }

    /// Whether the server has said that its list is another than the last one.
    pub(crate) fn is_told_of_changes(&self) -> bool {
        let connection = self.stand.connection();
        connection.is_some_and(|it| it.list_changes() != self.listed.covered().told)
    }

    /// How long nobody uses it before it is disconnected; `None` for ever.
    pub(crate) fn rests_after(&self) -> Option<Duration> {
        match self.spec.connect {
            Connect::Always => None,
            Connect::Lazy | Connect::Manual => self.spec.idle,
        }
    }

    pub(super) fn state(&self) -> ServerState {
        let freshness = self.listed.freshness();
        let status = self.listed.status();
        let (phase, is_down) = match &self.stand.now().state {
            State::Up(_) => (Phase::Up, false),
            State::Starting => (Phase::Starting, false),
            State::Idle => (Phase::Idle, false),
            State::Down(down) => (Phase::Down(down.reason.clone()), true),
            State::Disabled => (Phase::Disabled, false),
            State::Closed => (Phase::Closed, false),
        };
        let is_over = match &status {
            Status::Ready(ready) if phase != Phase::Up => {
                let holds = self.spec.lists_hold(ready);
                freshness.age.is_none_or(|age| age >= holds)
            }
            _ => false,
        };
        ServerState {
            name: self.spec.name.clone(),
            description: self.spec.description.clone(),
            trusted: self.spec.trusted,
            failed: self.listed.failed(),
            status,
            phase,
            heard: freshness.heard,
            changed: freshness.changed,
            age: freshness.age,
            stale: is_down || is_over || freshness.missed,
        }
    }
}
