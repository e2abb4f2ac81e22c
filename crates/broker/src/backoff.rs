//! How long to wait before a server that ended is started again.

use std::fmt;
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
const MANY: u32 = 5;

/// The failures of one server, and how long to wait after them.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: Failures,
}

/// Failures in a row.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failures {
    /// It had started, and ended.
    ended: u32,
    unstarted: u32,
}

impl Backoff {
    /// Notes that a server which was up for so long is gone.
    pub(crate) fn ended_after(&mut self, up: Duration) {
        if up >= STABLE {
            self.failures = Failures::default();
        }
        self.failures.ended = self.failures.ended.saturating_add(1);
    }

    /// Notes that a server did not start.
    pub(crate) fn did_not_start(&mut self) {
        self.failures.unstarted = self.failures.unstarted.saturating_add(1);
    }

    /// How long to wait now: a time that grows with the failures, [`spread`]. It may grow for
    /// longer where the server's tools are not `known`.
    pub(crate) fn wait(&self, known: bool) -> Duration {
        let longest = match known {
            true => LONGEST,
            false => LONGEST_UNKNOWN,
        };
        spread(longest_wait(self.failures.count()).min(longest))
    }

    /// Failures in a row.
    pub(crate) fn failures(&self) -> Failures {
        self.failures
    }
}

impl Failures {
    fn count(self) -> u32 {
        self.ended.saturating_add(self.unstarted)
    }

    /// Whether it is left down until a call wants it, if one can.
    pub(crate) fn are_many(self) -> bool {
        self.count() >= MANY
    }

    /// Whether it never got as far as to end.
    pub(crate) fn are_of_starts(self) -> bool {
        self.ended == 0
    }
}

/// One clause for people, of a server named before.
impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ended, unstarted } = self;
        match (ended, unstarted) {
            (0, _) => write!(f, "it failed to start {unstarted} times in a row"),
            (_, 0) => write!(f, "it ended {ended} times in a row"),
            _ => write!(
                f,
                "it ended {ended} and failed to start {unstarted} times in a row"
            ),
        }
    }
}

/// Between half and the whole of a wait, so that what ended together does not come back
/// together.
pub(crate) fn spread(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + random() / 2.0)
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
            // Whichever it is.
            match failure % 2 {
                0 => backoff.did_not_start(),
                _ => backoff.ended_after(Duration::ZERO),
            }
            let wait = backoff.wait(true);
            let most = longest_wait(failure).min(LONGEST);
            assert!(wait <= most && wait >= most / 2, "{failure}: {wait:?}");
            assert_eq!(backoff.failures().are_many(), failure >= 5, "{failure}");
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
        backoff.did_not_start();
        backoff.did_not_start();
        backoff.ended_after(STABLE - Duration::from_millis(1));
        assert_eq!(backoff.failures().count(), 3);
        backoff.ended_after(STABLE);
        assert_eq!(backoff.failures().count(), 1);
        assert!(backoff.wait(true) <= FIRST);
    }

    #[test]
    fn failures_are_what_they_were() {
        let shown = |ended, unstarted| Failures { ended, unstarted }.to_string();
        assert_eq!(shown(0, 5), "it failed to start 5 times in a row");
        assert_eq!(shown(6, 0), "it ended 6 times in a row");
        assert_eq!(
            shown(2, 3),
            "it ended 2 and failed to start 3 times in a row"
        );
    }
}
