//! Limits of requests per second.

use std::num::NonZeroU32;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};

use super::refusal::HttpRefusal;
use crate::config::RateConfig;

/// Counts requests by sender: a user, or the address of an unknown sender.
pub(crate) struct Rates(DefaultKeyedRateLimiter<String>);

impl Rates {
    pub(crate) fn new(config: &RateConfig) -> Self {
        let count = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(count(config.per_second)).allow_burst(count(config.burst));
        Self(DefaultKeyedRateLimiter::keyed(quota))
    }

    /// Counts a request, or refuses it.
    pub(crate) fn count(&self, sender: &String) -> Result<(), HttpRefusal> {
        let Err(early) = self.0.check_key(sender) else {
            return Ok(());
        };
        let wait = early.wait_time_from(DefaultClock::default().now());
        let seconds = wait.as_secs() + 1;
        let message = format!("too many requests; retry in {seconds} s");
        let refused = HttpRefusal::new(StatusCode::TOO_MANY_REQUESTS, message);
        Err(refused.with(RETRY_AFTER, HeaderValue::from(seconds)))
    }

    /// Forgets senders that have sent nothing for a while.
    pub(crate) fn forget_idle(&self) {
        self.0.retain_recent();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_is_counted_alone() {
        let config = RateConfig {
            per_second: 1,
            burst: 2,
        };
        let rates = Rates::new(&config);
        let count = |name: &str| rates.count(&name.to_owned()).is_ok();
        assert_eq!([count("a"), count("a"), count("a")], [true, true, false]);
        assert_eq!([count("b"), count("b"), count("b")], [true, true, false]);
    }
}
