//! The timers of the script. `32_web.js` has their callbacks.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::task::Context;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use callgate_sandbox::wire::LeftTimer;

/// Maximum delay of a timer, as in browsers and Node.js; a longer delay counts as 1 ms.
const MAX_DELAY_MS: f64 = 2_147_483_647.0;

/// A timer that is not reported: a signal's time limit. The same numbers are in `32_web.js`.
const QUIET: u32 = 0;
/// A timer of `setInterval`, which does not keep a script running after its return.
const REPEATS: u32 = 1;

/// Number of timers that are searched for those to report.
const SEARCHED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Timers {
    due: RefCell<Due>,
    /// Wakes the event loop for the first timer.
    sleep: RefCell<Option<Pin<Box<Sleep>>>>,
}

#[derive(Debug, Default)]
struct Due {
    /// The timers by due time, then by the order in which they were set.
    timers: BTreeMap<(Instant, u64), Timer>,
    moments: HashMap<u64, (Instant, u64)>,
    set: u64,
    /// Number of timers that are not `QUIET`.
    keep_alive: usize,
    /// Number of those that do not repeat.
    once: usize,
    /// Number of those that were set after the script had returned.
    late: usize,
}

#[derive(Debug, Clone, Copy)]
struct Timer {
    id: u64,
    kind: u32,
    line: u32,
    is_late: bool,
}

impl Timer {
    fn keeps_alive(self) -> bool {
        self.kind != QUIET
    }

    fn is_once(self) -> bool {
        self.kind > REPEATS
    }
}

impl Timers {
    /// Sets a timer. A delay below a millisecond counts as one. `is_late`: the script has returned.
    pub(super) fn set(&self, id: u64, after_ms: f64, kind: u32, line: u32, is_late: bool) {
        let after_ms = match after_ms {
            1.0..=MAX_DELAY_MS => after_ms.trunc(),
            _ => 1.0,
        };
        let at = Instant::now() + Duration::from_secs_f64(after_ms / 1000.0);
        self.clear(id);
        let mut due = self.due.borrow_mut();
        due.set += 1;
        let key = (at, due.set);
        let timer = Timer {
            id,
            kind,
            line,
            is_late: is_late && kind > REPEATS,
        };
        due.timers.insert(key, timer);
        due.moments.insert(id, key);
        due.keep_alive += usize::from(timer.keeps_alive());
        due.once += usize::from(timer.is_once());
        due.late += usize::from(timer.is_late);
    }

    /// Drops a timer, if it is there.
    pub(super) fn clear(&self, id: u64) {
        let mut due = self.due.borrow_mut();
        if let Some(key) = due.moments.remove(&id)
            && let Some(timer) = due.timers.remove(&key)
        {
            due.keep_alive -= usize::from(timer.keeps_alive());
            due.once -= usize::from(timer.is_once());
            due.late -= usize::from(timer.is_late);
        }
    }

    /// True if a timer keeps the script running.
    pub(super) fn keep_alive(&self) -> bool {
        self.due.borrow().keep_alive > 0
    }

    /// True if a timer keeps a script running that has returned: one that does not repeat, and fires
    /// by this moment or was set after the return.
    pub(super) fn keep_returned_alive(&self, moment: Instant) -> bool {
        let due = self.due.borrow();
        if due.late > 0 {
            return true;
        }
        let mut first = due.timers.iter().filter(|(_, timer)| timer.is_once());
        due.once > 0 && first.next().is_some_and(|((at, _), _)| *at <= moment)
    }

    /// The timers to report: those that are not quiet, once for each line.
    pub(super) fn left(&self) -> Vec<LeftTimer> {
        let due = self.due.borrow();
        let set = due.timers.values().take(SEARCHED);
        let mut left: Vec<LeftTimer> = Vec::new();
        for timer in set.filter(|timer| timer.keeps_alive()) {
            let timer = LeftTimer {
                repeats: !timer.is_once(),
                line: timer.line,
            };
            if left.len() < LeftTimer::MAX && !left.contains(&timer) {
                left.push(timer);
            }
        }
        left
    }

    /// Takes out the first timer that is due at this moment.
    pub(super) fn take(&self, now: Instant) -> Option<u64> {
        let (at, id) = self.first()?;
        if at > now {
            return None;
        }
        self.clear(id);
        Some(id)
    }

    /// Wakes the task when the first timer is due.
    pub(super) fn wake_when_due(&self, context: &mut Context<'_>) {
        let Some((at, _id)) = self.first() else {
            return;
        };
        let mut sleep = self.sleep.borrow_mut();
        let sleep = sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at.into())));
        if sleep.deadline().into_std() != at {
            sleep.as_mut().reset(at.into());
        }
        if sleep.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
    }

    fn first(&self) -> Option<(Instant, u64)> {
        let due = self.due.borrow();
        let ((at, _), timer) = due.timers.first_key_value()?;
        Some((*at, timer.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The timers that are due a minute from now, in the order they fire.
    fn due(timers: &Timers) -> Vec<u64> {
        let now = Instant::now() + Duration::from_secs(60);
        std::iter::from_fn(|| timers.take(now)).collect()
    }

    #[test]
    fn timers_fire_in_the_order_they_are_due() {
        let timers = Timers::default();
        timers.set(1, 40_000.0, 2, 1, false);
        timers.set(2, 20_000.0, 2, 2, false);
        timers.set(3, f64::NAN, QUIET, 3, false);
        timers.set(4, 1e300, REPEATS, 4, true);
        timers.set(5, 90_000.0, QUIET, 5, true);
        timers.set(6, 30_000.0, 2, 6, true);
        timers.set(2, 45_000.0, 2, 2, false);
        timers.clear(6);
        timers.clear(6);
        assert_eq!(timers.take(Instant::now() - Duration::from_secs(1)), None);
        assert!(timers.keep_alive());
        let in_seconds = |seconds| Instant::now() + Duration::from_secs(seconds);
        let keeps = |seconds| timers.keep_returned_alive(in_seconds(seconds));
        assert!(!keeps(30) && keeps(50));
        let left: Vec<_> = timers
            .left()
            .iter()
            .map(|it| (it.line, it.repeats))
            .collect();
        assert_eq!(left, [(4, true), (1, false), (2, false)]);
        assert_eq!(due(&timers), [3, 4, 1, 2]);
        assert!(!keeps(90));
        timers.set(7, 90_000.0, 2, 7, true);
        assert!(keeps(30));
        timers.clear(7);
        assert!(!timers.keep_alive());
    }
}
