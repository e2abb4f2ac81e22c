//! The clock of script time.

use std::time::{Duration, Instant};

use super::worker_process::Worker;

/// Counts script time: the time that the worker's main thread runs or waits for a processor, or
/// half the processor time of all threads, if that is more. Where the kernel does not tell, wall
/// time counts while no call is under way. The host takes all readings.
#[derive(Debug)]
pub(super) struct ScriptClock {
    /// Script time before `since`.
    spent: Duration,
    /// When calls began or ceased to be under way, and the worker's work by then.
    since: (Instant, Work),
    /// True while calls are under way.
    is_calling: bool,
}

/// Work of a worker so far, measured by the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Processor time of all threads.
    processor: Duration,
    /// Time in which the main thread, which runs the script, ran or waited for a processor. `None`
    /// where the kernel does not report it.
    main_thread: Option<Duration>,
}

impl ScriptClock {
    /// A clock of a script that starts now, after the worker has done this work.
    pub(super) fn new(now: Instant, work: Work) -> Self {
        Self {
            spent: Duration::ZERO,
            since: (now, work),
            is_calling: false,
        }
    }

    pub(super) fn spent(&self, now: Instant, work: Work) -> Duration {
        self.spent + self.latest(now, work)
    }

    /// Script time since calls began or ceased to be under way.
    fn latest(&self, now: Instant, work: Work) -> Duration {
        let (since, before) = self.since;
        let processor = work.processor.saturating_sub(before.processor);
        match work.main_thread {
            Some(main_thread) => {
                let before = before.main_thread.unwrap_or_default();
                main_thread.saturating_sub(before).max(processor / 2)
            }
            None if self.is_calling => processor,
            None => now.saturating_duration_since(since),
        }
    }

    /// The time that the script has waited, for timers alone, since its last call ended.
    pub(super) fn waited(&self, now: Instant, work: Work) -> Duration {
        if self.is_calling {
            return Duration::ZERO;
        }
        let whole = now.saturating_duration_since(self.since.0);
        whole.saturating_sub(self.latest(now, work))
    }

    /// Notes whether calls are under way.
    pub(super) fn set_calling(&mut self, is_calling: bool, now: Instant, work: Work) {
        if is_calling != self.is_calling {
            self.spent = self.spent(now, work);
            self.since = (now, work);
            self.is_calling = is_calling;
        }
    }

    /// The moment to check the limits of script time and of waiting again, before either can be
    /// reached. Several threads of the worker can be busy at once.
    pub(super) fn next_check(
        &self,
        script_time: Duration,
        wait_time: Duration,
        now: Instant,
        work: Work,
    ) -> Instant {
        let left = script_time.saturating_sub(self.spent(now, work)) / 4;
        let left = left.clamp(Duration::from_millis(5), Duration::from_secs(1));
        let wait_left = wait_time.saturating_sub(self.waited(now, work));
        now + left.min(wait_left.max(Duration::from_millis(1)))
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
                main_thread: worker.main_thread_time().or(self.last.main_thread),
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
            main_thread: Some(ms(main_thread)),
        }
    }

    #[test]
    fn only_work_of_the_worker_is_script_time() {
        let start = Instant::now();
        // Before the script, the main thread worked for 1 ms: then, with a timer, for 4 ms, and
        // with a call for 5 ms more.
        let mut clock = ScriptClock::new(start, work(1, 1));
        assert_eq!(clock.spent(start + ms(3000), work(4, 5)), ms(4));
        clock.set_calling(true, start + ms(3000), work(4, 5));
        assert_eq!(clock.spent(start + ms(8000), work(6, 10)), ms(9));
        // Threads of V8 worked, too.
        assert_eq!(clock.spent(start + ms(8000), work(44, 10)), ms(24));
    }

    #[test]
    fn wall_time_counts_if_the_kernel_reports_no_work() {
        let start = Instant::now();
        let none = Work::default();
        let mut clock = ScriptClock::new(start, Work::default());
        assert_eq!(clock.spent(start + ms(10), none), ms(10));
        clock.set_calling(true, start + ms(10), none);
        assert_eq!(clock.spent(start + ms(5000), none), ms(10));
        clock.set_calling(false, start + ms(5000), none);
        assert_eq!(clock.spent(start + ms(5020), none), ms(30));
    }

    #[test]
    fn a_call_ends_a_wait_for_timers() {
        let start = Instant::now();
        let mut clock = ScriptClock::new(start, Work::default());
        assert_eq!(clock.waited(start + ms(100), work(1, 20)), ms(80));
        clock.set_calling(true, start + ms(100), work(1, 20));
        assert_eq!(clock.waited(start + ms(900), work(1, 20)), ms(0));
        clock.set_calling(false, start + ms(900), work(1, 20));
        assert_eq!(clock.waited(start + ms(950), work(1, 30)), ms(40));
    }

    #[test]
    fn next_check_is_before_either_limit() {
        let start = Instant::now();
        let clock = ScriptClock::new(start, Work::default());
        let next = |now, done| clock.next_check(ms(100), ms(5000), start + ms(now), done) - start;
        assert_eq!(next(20, work(0, 20)), ms(40));
        assert_eq!(next(100, work(0, 99)), ms(105));
        assert_eq!(next(4998, work(0, 0)), ms(5000));
    }
}
