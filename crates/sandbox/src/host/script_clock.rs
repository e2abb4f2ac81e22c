//! The clock of script time.

use std::time::{Duration, Instant};

use super::worker_process::Worker;

/// Counts script time: wall time while no call is under way, the worker's work time while one is.
/// All readings are the host's.
#[derive(Debug)]
pub(super) struct ScriptClock {
    spent: Duration,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// No call is under way, since this moment.
    Running(Instant),
    /// Calls are under way, since the worker had done this much.
    Waiting(Work),
}

/// Work of a worker so far, measured by the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Processor time of all its threads.
    processor: Duration,
    /// Time that its main thread, which runs the script, had work: it ran, or it waited for a
    /// processor. Zero where the kernel does not tell.
    main_thread: Duration,
}

impl Work {
    /// Work time since `before`. On a busy machine, a script that never waits is charged wall time.
    fn since(self, before: Self) -> Duration {
        let processor = self.processor.saturating_sub(before.processor);
        let main_thread = self.main_thread.saturating_sub(before.main_thread);
        processor.max(main_thread)
    }
}

impl ScriptClock {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            spent: Duration::ZERO,
            phase: Phase::Running(now),
        }
    }

    /// Script time so far.
    pub(super) fn spent(&self, now: Instant, work: Work) -> Duration {
        self.spent
            + match self.phase {
                Phase::Running(since) => now.saturating_duration_since(since),
                Phase::Waiting(since) => work.since(since),
            }
    }

    /// Switches between wall time and work time.
    pub(super) fn set_waiting(&mut self, waiting: bool, now: Instant, work: Work) {
        if waiting == matches!(self.phase, Phase::Waiting(_)) {
            return;
        }
        self.spent = self.spent(now, work);
        self.phase = if waiting {
            Phase::Waiting(work)
        } else {
            Phase::Running(now)
        };
    }

    /// The moment to check `limit` again: when it will be reached, or, while work time counts, a moment
    /// before it can be.
    pub(super) fn look_again(&self, limit: Duration, now: Instant, work: Work) -> Instant {
        let left = limit.saturating_sub(self.spent(now, work));
        match self.phase {
            Phase::Running(_) => now + left,
            // Several threads of the worker can be busy at once.
            Phase::Waiting(_) => {
                now + (left / 4).clamp(Duration::from_millis(5), Duration::from_secs(1))
            }
        }
    }
}

/// The worker's work, read at most once each time the run loop wakes up.
#[derive(Debug, Default)]
pub(super) struct WorkRead {
    last: Work,
    is_new: bool,
}

impl WorkRead {
    pub(super) fn get(&mut self, worker: &Worker) -> Work {
        if !self.is_new {
            self.last = Work {
                processor: worker.cpu_time().unwrap_or(self.last.processor),
                main_thread: worker.main_thread_time().unwrap_or(self.last.main_thread),
            };
            self.is_new = true;
        }
        self.last
    }

    /// Makes the next reading a new one.
    pub(super) fn expire(&mut self) {
        self.is_new = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const fn work(processor: u64, main_thread: u64) -> Work {
        Work {
            processor: ms(processor),
            main_thread: ms(main_thread),
        }
    }

    #[test]
    fn waiting_counts_only_worker_cpu_time() {
        let start = Instant::now();
        let mut clock = ScriptClock::new(start);
        assert_eq!(clock.spent(start + ms(10), work(3, 4)), ms(10));
        clock.set_waiting(true, start + ms(10), work(3, 4));
        assert_eq!(clock.spent(start + ms(5000), work(5, 4)), ms(12));
        // Other processes had the processor.
        assert_eq!(clock.spent(start + ms(5000), work(5, 9)), ms(15));
        clock.set_waiting(true, start + ms(5000), work(5, 4));
        clock.set_waiting(false, start + ms(5000), work(6, 5));
        assert_eq!(clock.spent(start + ms(5020), work(6, 5)), ms(33));
    }

    #[test]
    fn next_clock_check_follows_the_remaining_time() {
        let start = Instant::now();
        let mut clock = ScriptClock::new(start);
        let none = Work::default();
        assert_eq!(
            clock.look_again(ms(100), start + ms(40), none),
            start + ms(100)
        );
        clock.set_waiting(true, start, none);
        let again = |done| clock.look_again(ms(100), start, done);
        assert_eq!(again(work(20, 0)), start + ms(20));
        assert_eq!(again(work(0, 100)), start + ms(5));
    }
}
