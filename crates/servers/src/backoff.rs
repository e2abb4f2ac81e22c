//! Waits between attempts to start a server.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use crate::spec::Connect;

/// The wait after the first failure; it doubles with each further one.
const FIRST: Duration = Duration::from_millis(200);
/// The maximum wait for a server with a known tool list, which a call can start.
const MAX_KNOWN: Duration = Duration::from_secs(30);
/// The maximum wait for a server without a known tool list. No call can start it, so attempts never
/// end.
const MAX_UNKNOWN: Duration = Duration::from_secs(300);
/// The time after which a running server's failures are forgotten.
pub(crate) const STABLE: Duration = Duration::from_secs(60);
/// Failures in a row after which only a call starts a server.
const MANY: u32 = 5;

/// The wait after this many failures in a row. `is_known` is true if the tool list is known.
pub(crate) fn backoff(failures: u32, is_known: bool) -> Duration {
    let max = if is_known { MAX_KNOWN } else { MAX_UNKNOWN };
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    spread(FIRST.saturating_mul(doubled).min(max))
}

/// True if only a call starts a server with a known tool list.
pub(crate) fn awaits_call(failures: u32, connect: Connect) -> bool {
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
            let doubled = FIRST.saturating_mul(2_u32.saturating_pow(failures - 1));
            for (is_known, max) in [(true, MAX_KNOWN), (false, MAX_UNKNOWN)] {
                let (wait, max) = (backoff(failures, is_known), doubled.min(max));
                assert!(wait <= max && wait >= max / 2, "{failures}: {wait:?}");
            }
            assert_eq!(awaits_call(failures, Connect::Always), failures >= 5);
            assert!(awaits_call(failures, Connect::Lazy));
        }
    }
}
