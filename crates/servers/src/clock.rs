//! The clock of a call, which stops while a person or a model is asked.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::failure::CallFailure;

/// Counts the current questions of a server to people and models.
#[derive(Debug, Clone)]
pub(crate) struct Asking(Arc<watch::Sender<usize>>);

impl Default for Asking {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Asking {
    /// Stops the server's clocks until the guard is dropped.
    pub(crate) fn begin(&self) -> AskingGuard {
        self.0.send_modify(|count| *count += 1);
        AskingGuard(Arc::clone(&self.0))
    }
}

/// Keeps the clocks of a server's requests stopped.
#[derive(Debug)]
pub(crate) struct AskingGuard(Arc<watch::Sender<usize>>);

impl Drop for AskingGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// The time limits of a call, over all of its requests.
#[derive(Debug)]
pub(crate) struct Clock {
    /// The limit without progress.
    idle: Duration,
    /// What is left of the total limit.
    left: Duration,
    /// The total limit.
    limit: Duration,
    asking: watch::Receiver<usize>,
}

/// A later time; a year later if the clock cannot show that time.
pub(crate) fn later(from: Instant, by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(86_400 * 365);
    from.checked_add(by).unwrap_or(from + YEAR)
}

impl Clock {
    /// A clock with a limit without progress (`idle`), and a total limit.
    pub(crate) fn new(idle: Duration, max: Duration, asking: &Asking) -> Self {
        Self {
            idle,
            left: max,
            limit: max,
            asking: asking.0.subscribe(),
        }
    }

    /// The end of the current limit for something without progress.
    pub(crate) fn deadline(&self) -> Instant {
        later(Instant::now(), self.idle.min(self.left))
    }

    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Awaits something other than an answer of the server, within the limits. `None` if it takes
    /// too long.
    pub(crate) async fn wait<T>(&mut self, done: impl Future<Output = T>) -> Option<T> {
        let began = Instant::now();
        let done = timeout(self.idle.min(self.left), done).await;
        self.left = self.left.saturating_sub(began.elapsed());
        done.ok()
    }

    /// Awaits an answer within the limits; each of the `progress_events` restarts the idle time.
    pub(crate) async fn limit<T>(
        &mut self,
        progress_events: &Notify,
        mut answer: Pin<&mut impl Future<Output = Result<T, CallFailure>>>,
    ) -> Result<T, CallFailure> {
        let mut idle_left = self.idle;
        // Without this test, an immediate answer would still count.
        while !self.left.is_zero() {
            let is_paused = *self.asking.borrow_and_update() > 0;
            let begun = Instant::now();
            let mut restarted = false;
            let mut answered = None;
            tokio::select! {
                biased;
                answer = answer.as_mut() => answered = Some(answer),
                () = progress_events.notified() => restarted = true,
                changed = self.asking.changed() => {
                    restarted = is_paused;
                    if changed.is_err() {
                        break;
                    }
                }
                () = sleep(idle_left.min(self.left)), if !is_paused => {
                    if idle_left < self.left {
                        return Err(CallFailure::timeout(self.idle));
                    }
                    self.left = Duration::ZERO;
                }
            }
            if !is_paused {
                let spent = begun.elapsed();
                self.left = self.left.saturating_sub(spent);
                idle_left = idle_left.saturating_sub(spent);
            }
            if let Some(answer) = answered {
                return answer;
            }
            if restarted {
                idle_left = self.idle;
            }
        }
        Err(CallFailure::timeout(self.limit))
    }

    /// Waits, within the total limit.
    pub(crate) async fn pause(&mut self, pause: Duration) -> Result<(), CallFailure> {
        let paused = pin!(async {
            sleep(pause).await;
            Ok(())
        });
        let idle = std::mem::replace(&mut self.idle, Duration::MAX);
        let result = self.limit(&Notify::new(), paused).await;
        self.idle = idle;
        result
    }
}
