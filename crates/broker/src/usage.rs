//! Who uses a server, and for how long nobody has.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// The uses of one server.
///
/// What counts a use and then looks at the state, and what looks for uses while
/// it changes the state, see each other: [`crate::state::Stand::rest`].
#[derive(Debug)]
pub(crate) struct Usage {
    count: AtomicUsize,
    /// Somebody wants to know its tools, and waits for nothing.
    errand: AtomicBool,
    /// When the last use ended.
    last: Mutex<Instant>,
    came: Notify,
}

/// One use, until it is dropped.
#[derive(Debug)]
pub(crate) struct Use<'a>(&'a Usage);

impl Default for Usage {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            errand: AtomicBool::new(false),
            last: Mutex::new(Instant::now()),
            came: Notify::new(),
        }
    }
}

impl Usage {
    /// Begins a use. Whoever then finds the server without a connection calls
    /// [`Usage::want`].
    pub(crate) fn begin(&self) -> Use<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        Use(self)
    }

    /// Wakes whoever starts the server when it is wanted.
    pub(crate) fn want(&self) {
        self.came.notify_waiters();
    }

    /// Has it started though nobody waits for it.
    pub(crate) fn send_for(&self) {
        self.errand.store(true, Ordering::SeqCst);
        self.want();
    }

    /// Whether somebody uses it now.
    pub(crate) fn is_wanted(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Waits until somebody does.
    pub(crate) async fn wanted(&self) {
        let mut came = std::pin::pin!(self.came.notified());
        loop {
            // From here on nobody's coming is missed.
            came.as_mut().enable();
            if self.errand.swap(false, Ordering::SeqCst) || self.is_wanted() {
                return;
            }
            came.as_mut().await;
            came.set(self.came.notified());
        }
    }

    /// When the last use ended, or this began; now, while there is one.
    pub(crate) fn last(&self) -> Instant {
        match self.is_wanted() {
            true => Instant::now(),
            false => *self.ended(),
        }
    }

    /// Counts from now on, as if a use had just ended.
    pub(crate) fn touch(&self) {
        *self.ended() = Instant::now();
    }

    fn ended(&self) -> MutexGuard<'_, Instant> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}
