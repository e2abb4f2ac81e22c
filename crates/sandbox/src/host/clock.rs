//! The clock of script time, and the processor time that it goes by.

use std::time::{Duration, Instant};

use super::process::Worker;

/// Counts the time that is the script's own: wall time while no call is under way, the worker's
/// processor time while one is. All readings are the host's.
#[derive(Debug)]
pub(super) struct Clock {
    spent: Duration,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// No call is under way, since this moment.
    Running(Instant),
    /// Calls are under way, since the worker had used this much.
    Waiting(Duration),
}

impl Clock {
    /// A clock that starts now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            spent: Duration::ZERO,
            phase: Phase::Running(now),
        }
    }

    /// Script time so far.
    pub(super) fn spent(&self, now: Instant, cpu: Duration) -> Duration {
        self.spent
            + match self.phase {
                Phase::Running(since) => now.saturating_duration_since(since),
                Phase::Waiting(since) => cpu.saturating_sub(since),
            }
    }

    /// Takes note of whether calls are under way now.
    pub(super) fn set_waiting(&mut self, waiting: bool, now: Instant, cpu: Duration) {
        if waiting == matches!(self.phase, Phase::Waiting(_)) {
            return;
        }
        self.spent = self.spent(now, cpu);
        self.phase = if waiting {
            Phase::Waiting(cpu)
        } else {
            Phase::Running(now)
        };
    }

    /// When to look again whether `limit` has been reached: the moment it will be, or, while the
    /// processor is what counts, a moment before it can be.
    pub(super) fn look_again(&self, limit: Duration, now: Instant, cpu: Duration) -> Instant {
        let left = limit.saturating_sub(self.spent(now, cpu));
        match self.phase {
            Phase::Running(_) => now + left,
            // Several threads of the worker can be busy at once.
            Phase::Waiting(_) => {
                now + (left / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
            }
        }
    }
}

/// The worker's processor time, read at most once each time the run wakes up.
#[derive(Debug, Default)]
pub(super) struct CpuTime {
    last: Duration,
    is_new: bool,
}

impl CpuTime {
    pub(super) fn time(&mut self, worker: &Worker) -> Duration {
        if !self.is_new {
            self.last = worker.cpu_time().unwrap_or(self.last);
            self.is_new = true;
        }
        self.last
    }

    /// The run has slept: the next reading is a new one.
    pub(super) fn is_old(&mut self) {
        self.is_new = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn waiting_costs_processor_time_only() {
        let start = Instant::now();
        let mut clock = Clock::new(start);
        assert_eq!(clock.spent(start + ms(10), ms(3)), ms(10));
        clock.set_waiting(true, start + ms(10), ms(3));
        assert_eq!(clock.spent(start + ms(5000), ms(5)), ms(12));
        clock.set_waiting(true, start + ms(5000), ms(5));
        clock.set_waiting(false, start + ms(5000), ms(6));
        assert_eq!(clock.spent(start + ms(5020), ms(6)), ms(33));
    }

    #[test]
    fn looks_again_in_time() {
        let start = Instant::now();
        let mut clock = Clock::new(start);
        assert_eq!(
            clock.look_again(ms(100), start + ms(40), ms(0)),
            start + ms(100)
        );
        clock.set_waiting(true, start, ms(0));
        assert_eq!(clock.look_again(ms(100), start, ms(20)), start + ms(20));
        assert_eq!(clock.look_again(ms(100), start, ms(100)), start + ms(5));
    }
}
