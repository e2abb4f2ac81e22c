//! Limits of requests per second.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use callgate::config::RateConfig;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota};

use super::refusal::Refusal;

/// Requests between two times of forgetting idle senders.
const CLEAN_UP: u32 = 4096;

/// Counts requests by sender.
#[derive(Debug)]
pub(crate) struct Rates {
    users: DefaultKeyedRateLimiter<Sender>,
    clock: DefaultClock,
    count: AtomicU32,
}

/// A sender whose requests are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    /// A known user.
    User(String),
    /// The address of an unknown sender.
    Address(IpAddr),
}

impl Rates {
    pub(crate) fn new(config: &RateConfig) -> Self {
        let count = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(count(config.per_second)).allow_burst(count(config.burst));
        Self {
            users: DefaultKeyedRateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            count: AtomicU32::new(0),
        }
    }

    /// Counts a request, or refuses it.
    pub(crate) fn count(&self, sender: &Sender) -> Result<(), Refusal> {
        if self.count.fetch_add(1, Ordering::Relaxed) % CLEAN_UP == CLEAN_UP - 1 {
            self.users.retain_recent();
        }
        let early = match self.users.check_key(sender) {
            Ok(()) => return Ok(()),
            Err(early) => early,
        };
        let wait = early
            .wait_time_from(self.clock.now())
            .as_millis()
            .div_ceil(1000);
        let seconds = u64::try_from(wait).unwrap_or(u64::MAX).max(1);
        Err(Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!("too many requests; come again in {seconds} s"),
        )
        .with(RETRY_AFTER, HeaderValue::from(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_is_counted_alone() {
        let mut config = RateConfig::default();
        (config.per_second, config.burst) = (1, 2);
        let rates = Rates::new(&config);
        let count = |name: &str| rates.count(&Sender::User(name.to_owned())).is_ok();
        assert_eq!([count("a"), count("a"), count("a")], [true, true, false]);
        assert_eq!([count("b"), count("b"), count("b")], [true, true, false]);
        let address = Sender::Address(IpAddr::from([127, 0, 0, 1]));
        assert!(rates.count(&address).is_ok());
    }
}
