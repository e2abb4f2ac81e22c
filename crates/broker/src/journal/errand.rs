//! Lines on their way to a journal's file while calls go on: one `write` that another thread
//! makes.
//!
//! A `write` of 64 KiB takes as long as three to five of the calls that are under way together.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::state::{Loan, State};
use crate::elsewhere::Elsewhere;

/// What a journal shares with those who move its lines.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Lines that were lent are back.
    returned: Condvar,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            returned: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else does anything with the file.
    pub(super) fn lock_unlent(&self) -> MutexGuard<'_, State> {
        self.unlent(self.lock())
    }

    /// [`Self::lock_unlent`] of one that is locked.
    fn unlent<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while state.is_lent() {
            state = self.wait(state);
        }
        state
    }

    /// Notes a line beside the file if somebody else has that, as soon as there is room. False if
    /// nobody has it.
    pub(super) fn note_if_lent<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        line: &[u8],
        bounded: bool,
    ) -> (MutexGuard<'a, State>, bool) {
        while state.is_lent() {
            if state.note(line, bounded) {
                return (state, true);
            }
            state = self.wait(state);
        }
        (state, false)
    }

    /// Says that lines are back.
    pub(super) fn tell(&self) {
        self.returned.notify_all();
    }

    /// Waits until lines come back, or without a reason.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // Whoever waits is not overtaken by the next loan.
        state.wanted += 1;
        let waited = self.returned.wait(state);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.wanted -= 1;
        state
    }
}

/// Lines that a file is to take. It does when this is dropped, wherever that is.
#[derive(Debug)]
pub(super) struct Errand {
    shared: Arc<Shared>,
    /// Taken when it is dropped.
    loan: Option<Loan>,
}

impl Errand {
    pub(super) fn new(shared: &Arc<Shared>, loan: Loan) -> Self {
        Self {
            shared: Arc::clone(shared),
            loan: Some(loan),
        }
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        let Some(loan) = self.loan.take() else {
            return;
        };
        let taken = loan.write();
        // Also if a host's log panics about an error.
        let _told = Told(&self.shared);
        self.shared.lock().take_back(loan, taken);
    }
}

/// [`Shared::tell`], when it is dropped.
struct Told<'a>(&'a Shared);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.tell();
    }
}

/// Who does a journal's errands: a thread that is there as long as there are some.
#[derive(Debug)]
pub(super) struct Errands(Elsewhere<Errand>);

impl Default for Errands {
    fn default() -> Self {
        // Lines are lent to one at a time.
        Self(Elsewhere::new("ledger-writer", 1, drop))
    }
}

impl Errands {
    /// Has the thread do an errand. Where there is none that takes it, it is done here.
    pub(super) fn send(&self, errand: Errand) {
        drop(self.0.give(errand));
    }
}
