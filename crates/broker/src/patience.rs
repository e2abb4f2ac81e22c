//! How long an answer is waited for.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::asked::Asked;
use crate::failure::Failure;

/// How long an answer is waited for. The time in which a person or a model is
/// asked on the server's behalf counts in neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Without a sign of work from the server.
    pub(crate) idle: Duration,
    /// In all.
    pub(crate) most: Duration,
}

impl Patience {
    /// Signs of work make no difference.
    pub(crate) fn exactly(limit: Duration) -> Self {
        Self {
            idle: limit,
            most: limit,
        }
    }
}

/// The clock of one wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    patience: Patience,
    started: Instant,
    /// How long the server had kept others busy when the wait began.
    asked_before: Duration,
}

impl Clock {
    /// Starts now.
    pub(crate) fn start(patience: Patience, asked: &Asked) -> Self {
        Self {
            patience,
            started: Instant::now(),
            asked_before: asked.time(),
        }
    }

    /// When it was.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// What is left of the patience, for a wait that is one of several.
    pub(crate) fn rest(&self, asked: &Asked) -> Patience {
        Patience {
            idle: self.patience.idle,
            most: self.patience.most.saturating_sub(self.spent(asked)),
        }
    }

    /// How much of the patience is over.
    pub(crate) fn spent(&self, asked: &Asked) -> Duration {
        let others = asked.time().saturating_sub(self.asked_before);
        self.started.elapsed().saturating_sub(others)
    }

    /// What is left of the patience, before something new is begun: with nothing
    /// left a quick answer would still be taken.
    pub(crate) fn left(&self, asked: &Asked) -> Result<Patience, Failure> {
        let rest = self.rest(asked);
        match rest.most.is_zero() {
            true => Err(Failure::Timeout(self.patience.most)),
            false => Ok(rest),
        }
    }

    /// Waits so long, unless the patience runs out before.
    pub(crate) async fn pause(&self, pause: Duration, asked: &Asked) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let rest = self.left(asked)?;
            let left = pause.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(rest.most)).await;
        }
    }

    /// Awaits `answer` as long as the patience lasts. `last_sign` says when the
    /// server last showed that it works on it.
    pub(crate) async fn limit<T>(
        self,
        mut answer: Pin<&mut impl Future<Output = Result<T, Failure>>>,
        last_sign: impl Fn() -> Option<Instant>,
        asked: &Asked,
    ) -> Result<T, Failure> {
        let Patience { idle, most } = self.patience;
        let mut alarm = std::pin::pin!(sleep_until(later(self.started, idle.min(most))));
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                () = &mut alarm => {}
            }
            let signs = Signs {
                server: last_sign(),
                others: asked.last(),
                asking: asked.is_asking(),
                asked: asked.time().saturating_sub(self.asked_before),
            };
            alarm.as_mut().reset(self.next(Instant::now(), signs)?);
        }
    }

    /// When to look again, or that the patience has run out.
    fn next(&self, now: Instant, signs: Signs) -> Result<Instant, Failure> {
        let Patience { idle, most } = self.patience;
        let most_at = later(self.started, most.saturating_add(signs.asked));
        let idle_from = signs
            .server
            .max(signs.others)
            .map_or(self.started, |sign| sign.max(self.started));
        let idle_at = later(idle_from, idle);
        if most_at <= now {
            Err(Failure::Timeout(most))
        } else if signs.asking {
            // While somebody is asked, it is not the server that is slow.
            Ok(later(now, idle).min(most_at))
        } else if idle_at <= now {
            Err(Failure::Timeout(idle))
        } else {
            Ok(idle_at.min(most_at))
        }
    }
}

/// Why a wait may go on.
#[derive(Debug, Clone, Copy, Default)]
struct Signs {
    /// When the server last showed that it works.
    server: Option<Instant>,
    /// When somebody was last asked on its behalf.
    others: Option<Instant>,
    /// Whether somebody is being asked now.
    asking: bool,
    /// For how long somebody was asked in the time of this wait.
    asked: Duration,
}

/// Some time later; a time that no clock shows is very late.
pub(crate) fn later(from: Instant, by: Duration) -> Instant {
    const VERY_LATE: Duration = Duration::from_secs(86_400 * 365);
    from.checked_add(by).unwrap_or_else(|| from + VERY_LATE)
}

/// That time from now, or as good as never.
pub(crate) fn soon(after: Duration) -> Instant {
    let now = Instant::now();
    let day = Duration::from_secs(86_400);
    now.checked_add(after).unwrap_or_else(|| now + day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One second without a sign of work, ten in all; times are in seconds from
    /// the start.
    fn check(now: u64, server: Option<u64>, signs: Signs, expected: &str) {
        let started = Instant::now();
        let at = |seconds| started + Duration::from_secs(seconds);
        let clock = Clock {
            patience: Patience {
                idle: Duration::from_secs(1),
                most: Duration::from_secs(10),
            },
            started,
            asked_before: Duration::ZERO,
        };
        let signs = Signs {
            server: server.map(at),
            ..signs
        };
        let next = match clock.next(at(now), signs) {
            Ok(next) => format!("{} s", next.duration_since(started).as_secs()),
            Err(failure) => failure.to_string(),
        };
        assert_eq!(next, expected, "{now} {server:?}");
    }

    #[test]
    fn signs_of_work_keep_a_call_going_up_to_the_most() {
        let none = Signs::default();
        check(0, None, none, "1 s");
        check(1, None, none, "no answer within 1000 ms");
        check(1, Some(1), none, "2 s");
        check(5, Some(4), none, "no answer within 1000 ms");
        check(9, Some(9), none, "10 s");
        check(10, Some(10), none, "no answer within 10000 ms");
    }

    #[test]
    fn no_clock_goes_on_while_somebody_is_asked() {
        let asking = |seconds| Signs {
            asking: true,
            asked: Duration::from_secs(seconds),
            ..Signs::default()
        };
        check(5, None, asking(5), "6 s");
        check(3_600, None, asking(3_600), "3601 s");
        // From eight on, of which two were somebody else's.
        check(11, Some(10), asking(2), "12 s");
        check(12, Some(12), asking(2), "no answer within 10000 ms");
    }

    #[test]
    fn no_patience_is_too_long_to_add() {
        let clock = Clock {
            patience: Patience::exactly(Duration::MAX),
            started: Instant::now(),
            asked_before: Duration::ZERO,
        };
        assert!(clock.next(Instant::now(), Signs::default()).is_ok());
    }
}
