//! The time in which all open calls of a run wait for approval.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Measures the time in which a run has open calls, and all of them wait for approval.
#[derive(Default)]
pub(crate) struct ApprovalClock(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    open: usize,
    asking: usize,
    /// The start of the present wait.
    since: Option<Instant>,
    /// The sum of the waits before.
    sum: Duration,
}

/// Counts a call until it is dropped.
pub(crate) struct Counted<'a>(&'a ApprovalClock, Count);

type Count = fn(&mut Counts) -> &mut usize;

impl ApprovalClock {
    /// Counts an open call.
    pub(crate) fn open(&self) -> Counted<'_> {
        self.count(|counts| &mut counts.open)
    }

    /// Counts a call that waits for approval.
    pub(crate) fn ask(&self) -> Counted<'_> {
        self.count(|counts| &mut counts.asking)
    }

    pub(crate) fn time(&self) -> Duration {
        self.0.lock().time()
    }

    fn count(&self, of: Count) -> Counted<'_> {
        self.change(|counts| *of(counts) += 1);
        Counted(self, of)
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.0.lock();
        counts.sum = counts.time();
        change(&mut counts);
        let is_waiting = counts.asking > 0 && counts.asking >= counts.open;
        counts.since = is_waiting.then(Instant::now);
    }
}

impl Counts {
    fn time(&self) -> Duration {
        self.sum + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.change(|counts| *(self.1)(counts) -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grows(clock: &ApprovalClock) -> bool {
        let before = clock.time();
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(10) {}
        clock.time() > before
    }

    #[test]
    fn time_counts_while_each_open_call_waits() {
        let clock = ApprovalClock::default();
        assert!(!grows(&clock));
        let first = clock.open();
        assert!(!grows(&clock));
        let asking = clock.ask();
        assert!(grows(&clock));
        let other = clock.open();
        assert!(!grows(&clock));
        let other_asking = clock.ask();
        assert!(grows(&clock));
        drop((asking, first));
        assert!(grows(&clock));
        drop(other_asking);
        assert!(!grows(&clock));
        drop(other);
        assert!(!grows(&clock) && clock.time() > Duration::ZERO);
    }
}
