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
    pub(super) fn unlent<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.returned.wait_while(state, |state| state.is_lent());
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines that a file is to take. It does when this is dropped, wherever that is.
#[derive(Debug)]
pub(super) struct Errand {
    shared: Arc<Shared>,
    loan: Loan,
}

impl Errand {
    pub(super) fn new(shared: &Arc<Shared>, loan: Loan) -> Self {
        let shared = Arc::clone(shared);
        Self { shared, loan }
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        let taken = self.loan.write();
        self.shared.lock().take_back(&self.loan.lines, taken);
        self.shared.returned.notify_all();
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
    /// Has the thread do an errand. Where it does not take it, it is done here.
    pub(super) fn send(&self, errand: Errand) {
        drop(self.0.give(errand));
    }
}
