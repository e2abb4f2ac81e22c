//! How long an answer is waited for.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

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

    /// What is left of the patience, for a wait that is one of several.
    pub(crate) fn rest(&self, asked: &Asked) -> Patience {
        let gone = self.started.elapsed();
        let gone = gone.saturating_sub(asked.time().saturating_sub(self.asked_before));
        Patience {
            idle: self.patience.idle,
            most: self.patience.most.saturating_sub(gone),
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
            let others = asked.time().saturating_sub(self.asked_before);
            let now = Instant::now();
            let most_at = later(self.started, most.saturating_add(others));
            let idle_from = last_sign().max(asked.last()).unwrap_or(self.started);
            let idle_at = later(idle_from.max(self.started), idle);
            if most_at <= now {
                return Err(Failure::Timeout(most));
            }
            // While somebody is asked, it is not the server that is slow.
            let next = match asked.is_asking() {
                true => later(now, idle).min(most_at),
                false if idle_at <= now => return Err(Failure::Timeout(idle)),
                false => idle_at.min(most_at),
            };
            alarm.as_mut().reset(next);
        }
    }
}

/// Some time later; a time that no clock shows is very late.
fn later(from: Instant, by: Duration) -> Instant {
    const VERY_LATE: Duration = Duration::from_secs(86_400 * 365);
    from.checked_add(by).unwrap_or_else(|| from + VERY_LATE)
}
