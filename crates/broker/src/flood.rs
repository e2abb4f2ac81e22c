//! Bounds the lines that a server can add to the log.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota};

/// Lines of a server that are logged at once.
const BURST: u32 = 100;
/// Lines of a server that are logged each second after that.
const PER_SECOND: u32 = 10;

/// Counts the lines that one server writes, and leaves out those that are too
/// many. A line of its own says how many were left out.
#[derive(Debug)]
pub(crate) struct FloodGate {
    server: Arc<str>,
    rate: DefaultDirectRateLimiter,
    left_out: AtomicU64,
}

impl FloodGate {
    pub(crate) fn new(server: Arc<str>) -> Self {
        let count = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(count(PER_SECOND)).allow_burst(count(BURST));
        Self {
            server,
            rate: DefaultDirectRateLimiter::direct(quota),
            left_out: AtomicU64::new(0),
        }
    }

    /// Counts a line and tells whether it may be logged.
    pub(crate) fn admit(&self) -> bool {
        if self.rate.check().is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.report();
        true
    }

    /// Logs how many lines were left out since the last report. It is an error,
    /// so that it is seen wherever the lines were.
    fn report(&self) {
        let count = self.left_out.swap(0, Ordering::Relaxed);
        if count > 0 {
            tracing::error!(server = %self.server, "{count} more messages of the server were left out");
        }
    }
}

impl Drop for FloodGate {
    fn drop(&mut self) {
        self.report();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_admitted_and_the_rest_is_counted() {
        let gate = FloodGate::new("s".into());
        let admitted = (0..10_000).filter(|_| gate.admit()).count();
        // The test may take seconds on a busy machine.
        assert!((100..1_000).contains(&admitted), "{admitted}");
        assert!(gate.left_out.load(Ordering::Relaxed) > 0);
        gate.report();
        assert_eq!(gate.left_out.load(Ordering::Relaxed), 0);
    }
}
