//! Waits between attempts to start a server.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use crate::spec::Connect;

/// The wait after the first failure; it doubles with each that follows.
const FIRST: Duration = Duration::from_millis(200);
/// The longest wait for a server whose tools are known: a call can ask for it.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest wait for a server without a known tool list: it cannot be called, and is tried again
/// for ever.
const LONGEST_UNKNOWN: Duration = Duration::from_secs(300);
/// A server that ran this long has no failures behind it.
pub(crate) const STABLE: Duration = Duration::from_secs(60);
/// Failures in a row after which a server is started again only for a call.
const MANY: u32 = 5;

/// The wait after this many failures in a row; `is_known` tells whether the tool list is known.
pub(crate) fn backoff(failures: u32, is_known: bool) -> Duration {
    let longest = if is_known { LONGEST } else { LONGEST_UNKNOWN };
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    spread(FIRST.saturating_mul(doubled).min(longest))
}

/// True if a server whose tools are known is started again only for a call.
pub(crate) fn is_patient(failures: u32, connect: Connect) -> bool {
    failures >= MANY || connect != Connect::Always
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
        for failures in 1..100_u32 {
            let max = FIRST.saturating_mul(2_u32.saturating_pow(failures - 1));
            for (is_known, longest) in [(true, LONGEST), (false, LONGEST_UNKNOWN)] {
                let (wait, max) = (backoff(failures, is_known), max.min(longest));
                assert!(wait <= max && wait >= max / 2, "{failures}: {wait:?}");
            }
            assert_eq!(is_patient(failures, Connect::Always), failures >= 5);
            assert!(is_patient(failures, Connect::Lazy));
        }
    }
}
