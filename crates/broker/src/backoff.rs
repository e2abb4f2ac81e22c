//! How long to wait before a server that ended is started again.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

/// The wait after the first failure; it doubles with each that follows.
const FIRST: Duration = Duration::from_millis(200);
/// The longest wait for a server whose tools are known: a call can want it.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest for one of which nothing is known: nobody can call it, and it is
/// tried again for ever.
const LONGEST_UNKNOWN: Duration = Duration::from_secs(300);
/// A server that has been up for so long has no failures behind it.
const STABLE: Duration = Duration::from_secs(60);
/// Failures in a row after which a server is started again only for a call.
pub(crate) const MANY: u32 = 5;

/// The failures of one server in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Notes that a server which was up for so long is gone.
    pub(crate) fn ended_after(&mut self, up: Duration) {
        if up >= STABLE {
            self.failures = 0;
        }
    }

    /// Notes a failure, and says how long to wait: between half and the whole
    /// of a time that grows, so that servers which ended together do not come
    /// back together. It may grow for longer where the server's tools are not
    /// `known`.
    pub(crate) fn wait(&mut self, known: bool) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let longest = match known {
            true => LONGEST,
            false => LONGEST_UNKNOWN,
        };
        longest_wait(self.failures)
            .min(longest)
            .mul_f64(0.5 + random() / 2.0)
    }

    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

fn longest_wait(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST.saturating_mul(doubled).min(LONGEST_UNKNOWN)
}

/// From 0 to 1.
fn random() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit_and_are_not_all_the_same() {
        let mut backoff = Backoff::default();
        let mut waits = Vec::new();
        for failure in 1..100 {
            let wait = backoff.wait(true);
            let most = longest_wait(failure).min(LONGEST);
            assert!(wait <= most && wait >= most / 2, "{failure}: {wait:?}");
            waits.push(wait);
        }
        assert_eq!(longest_wait(1), FIRST);
        assert_eq!(longest_wait(2), FIRST * 2);
        assert_eq!(longest_wait(u32::MAX), LONGEST_UNKNOWN);
        let last = &waits[50..];
        assert!(last.iter().any(|wait| *wait != last[0]), "{last:?}");
    }

    #[test]
    fn a_stable_time_forgives() {
        let mut backoff = Backoff::default();
        backoff.wait(true);
        backoff.wait(true);
        backoff.ended_after(STABLE - Duration::from_millis(1));
        assert_eq!(backoff.failures(), 2);
        backoff.ended_after(STABLE);
        assert_eq!(backoff.failures(), 0);
        assert!(backoff.wait(true) <= FIRST);
    }
}
