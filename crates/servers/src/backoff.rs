//! Waits between attempts to start a server.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// The wait after the first failure; it doubles with each that follows.
const FIRST: Duration = Duration::from_millis(200);
/// The longest wait for a server whose tools are known: a call can ask for it.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest wait for a server without a known tool list: it cannot be called, and is tried again
/// for ever.
const LONGEST_UNKNOWN: Duration = Duration::from_secs(300);
/// A server that ran this long has no failures behind it.
const STABLE: Duration = Duration::from_secs(60);
/// Failures in a row after which a server is started again only for a call.
const MANY: u32 = 5;

/// Failures of one server in a row.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff {
    failures: u32,
    /// Whether it had started, and ended.
    has_started: bool,
}

impl Backoff {
    /// Counts the end of a server that ran this long.
    pub(crate) fn ended_after(&mut self, up: Duration) {
        if up >= STABLE {
            self.failures = 0;
        }
        self.has_started = true;
        self.failures = self.failures.saturating_add(1);
    }

    /// Counts a start that failed.
    pub(crate) fn did_not_start(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// The wait before the next attempt; `known` tells whether the tool list is known.
    pub(crate) fn wait(self, known: bool) -> Duration {
        let longest = if known { LONGEST } else { LONGEST_UNKNOWN };
        let doubled = 2_u32.saturating_pow(self.failures.saturating_sub(1));
        spread(FIRST.saturating_mul(doubled).min(longest))
    }

    /// Whether it is left down until a call asks for it.
    pub(crate) fn has_many(self) -> bool {
        self.failures >= MANY
    }

    /// Whether it never started.
    pub(crate) fn never_started(self) -> bool {
        !self.has_started
    }
}

/// A clause about a server named before.
impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it failed {} times in a row", self.failures)
    }
}

/// A random time between half and the whole of a wait, so that servers that ended together do not
/// start together.
pub(crate) fn spread(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) >> 11;
    let share = random as f64 / (1_u64 << 53) as f64;
    wait.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit() {
        let mut backoff = Backoff::default();
        for failure in 1..100_u32 {
            backoff.did_not_start();
            let most = FIRST
                .saturating_mul(2_u32.saturating_pow(failure - 1))
                .min(LONGEST);
            let wait = backoff.wait(true);
            assert!(wait <= most && wait >= most / 2, "{failure}: {wait:?}");
            assert_eq!(backoff.has_many(), failure >= 5, "{failure}");
        }
        assert!(backoff.wait(false) > LONGEST);
        assert!(backoff.wait(false) <= LONGEST_UNKNOWN);
    }

    #[test]
    fn a_stable_time_forgives() {
        let mut backoff = Backoff::default();
        backoff.did_not_start();
        backoff.ended_after(STABLE - Duration::from_millis(1));
        assert_eq!(backoff.failures, 2);
        backoff.ended_after(STABLE);
        assert_eq!(backoff.failures, 1);
    }
}
