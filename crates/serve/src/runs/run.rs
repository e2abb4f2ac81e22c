//! One run, from its beginning until nobody wants to know of it any more.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rmcp::task_manager::current_timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::news::News;
use super::outcome::Outcome;
use super::pages::Pages;
use super::seal::random;
use super::store::Full;

/// Why a run does not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRun {
    /// There are as many as may be.
    #[error(transparent)]
    Full(#[from] Full),
    /// The system failed.
    #[error(
        "the run could not begin, and has made no calls; try it again later, and whoever runs \
         this server can read why"
    )]
    Failed,
}

/// A run of a script.
#[derive(Debug)]
pub(crate) struct Run {
    /// `r-` and 128 random bits, as 32 hexadecimal digits: whoever knows it may
    /// see the run.
    pub(crate) id: String,
    pub(crate) board: Board,
    pub(crate) news: News,
    pub(crate) pages: Pages,
    /// When it began, as RFC 3339 has it.
    pub(crate) begun: String,
    since: Instant,
    /// How long it may last.
    pub(crate) most_time: Duration,
    cancel: CancellationToken,
    outcome: watch::Sender<Option<Arc<Outcome>>>,
    /// Whether a server said that its part takes long.
    is_long: watch::Sender<bool>,
    /// Whether a client was told the id while the run went on.
    is_left: AtomicBool,
    /// Requests that wait for it now.
    attended: AtomicUsize,
}

impl Run {
    /// A run that ends when `cancel` is cancelled, whose wishes wait so long for
    /// answers, and that lasts so long at most.
    ///
    /// # Errors
    ///
    /// If the system gives no random bytes.
    pub(crate) fn new(
        answer_time: Duration,
        most_time: Duration,
        cancel: CancellationToken,
    ) -> std::io::Result<Self> {
        let mut id = "r-".to_owned();
        for byte in random::<16>()? {
            let _ = write!(id, "{byte:02x}");
        }
        Ok(Self {
            id,
            board: Board::new(answer_time),
            news: News::new(),
            pages: Pages::default(),
            begun: current_timestamp(),
            since: Instant::now(),
            most_time,
            cancel,
            outcome: watch::Sender::new(None),
            is_long: watch::Sender::new(false),
            is_left: AtomicBool::new(false),
            attended: AtomicUsize::new(0),
        })
    }

    /// Hears of its end.
    pub(crate) fn follow(&self) -> watch::Receiver<Option<Arc<Outcome>>> {
        self.outcome.subscribe()
    }

    /// What it came to, if it has ended.
    pub(crate) fn outcome(&self) -> Option<Arc<Outcome>> {
        self.outcome.borrow().clone()
    }

    /// Sets what it came to, if nothing is yet, and says whether somebody may
    /// still come for it: its id was told, or a client has a state to come with.
    pub(crate) fn end(&self, outcome: Outcome) -> bool {
        let mut is_needed = false;
        self.outcome.send_if_modified(|slot| {
            let is_first = slot.is_none();
            let outcome = slot.get_or_insert_with(|| Arc::new(outcome));
            is_needed = outcome.whole.is_some();
            is_first
        });
        // After the outcome is there; see `leave` and `give`.
        is_needed || self.is_left.load(Ordering::SeqCst) || self.board.has_given()
    }

    /// A server says that its part of it takes long.
    pub(crate) fn become_long(&self) {
        self.is_long.send_replace(true);
    }

    /// Resolves when a server has said that its part takes long.
    pub(crate) async fn becomes_long(&self) {
        let mut is_long = self.is_long.subscribe();
        if is_long.wait_for(|is_long| *is_long).await.is_err() {
            // The run holds the other end.
            std::future::pending().await
        }
    }

    /// Lets the run go on without anyone who waits for it. The outcome if there
    /// is one all the same.
    pub(crate) fn leave(&self) -> Option<Arc<Outcome>> {
        // Either this sees the outcome, or `end` sees that the run was left.
        self.is_left.store(true, Ordering::SeqCst);
        self.outcome()
    }

    /// Lets the run go on until a client comes again for these wishes. False if
    /// none of them is wanted any more, or the run has ended all the same: then
    /// there is something else to answer.
    pub(crate) fn give(&self, wishes: &[u64]) -> bool {
        // Either this sees the outcome, or `end` sees what was given.
        self.board.give(wishes) && self.outcome().is_none()
    }

    /// Whether its id was told while it went on.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::SeqCst)
    }

    /// What ends the run.
    pub(crate) fn token(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Ends the run.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Whether it was told to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Time since it began.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether it waits for its client to come again.
    pub(crate) fn is_parked(&self) -> bool {
        self.attended.load(Ordering::SeqCst) == 0 && self.board.wants()
    }

    /// Nobody answered in time. Where somebody could still come by the run's id,
    /// it goes on without the answer; else it is over, and this is true. A client
    /// that comes with its state later hears how it ended.
    pub(crate) fn nobody_came(&self) -> bool {
        let is_over = self.attended.load(Ordering::SeqCst) == 0 && !self.is_left();
        if is_over {
            tracing::info!("a parked script was cancelled: nobody came with an answer");
            self.cancel();
        }
        is_over
    }
}

/// A request that waits for a run. When it is dropped before it is at its end,
/// because its client is gone, it takes the run with it, if it was the one that
/// carries it.
#[derive(Debug)]
pub(crate) struct Attending<'a> {
    run: &'a Run,
    /// Whether the run ends with the request.
    carries: bool,
}

impl<'a> Attending<'a> {
    pub(crate) fn new(run: &'a Run, carries: bool) -> Self {
        run.attended.fetch_add(1, Ordering::SeqCst);
        Self { run, carries }
    }

    /// The request has its answer.
    pub(crate) fn answered(mut self) {
        self.carries = false;
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        self.run.attended.fetch_sub(1, Ordering::SeqCst);
        if self.carries {
            self.run.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let hour = Duration::from_secs(3600);
        Run::new(hour, hour, CancellationToken::new()).expect("random bytes")
    }

    #[test]
    fn ids_are_not_alike() {
        let (one, other) = (run().id, run().id);
        assert_ne!(one, other);
        assert_eq!(one.len(), 34);
    }

    #[test]
    fn a_run_that_is_left_is_kept() {
        let left = run();
        assert!(left.leave().is_none());
        assert!(left.end(Outcome::lost()));
        assert!(left.leave().is_some());
        let awaited = run();
        assert!(!awaited.end(Outcome::lost()));
    }

    #[tokio::test]
    async fn a_run_that_a_client_has_a_state_for_is_kept() {
        let request = serde_json::json!({ "method": "roots/list" });
        let request = serde_json::from_value(request).expect("a request");
        let parked = run();
        let mut wish = Box::pin(parked.board.wish(vec![(None, request)]));
        assert!(futures::poll!(&mut wish).is_pending());
        assert!(!parked.give(&[2]), "nobody wants that");
        assert!(!parked.end(Outcome::lost()));
        assert!(!parked.give(&[1]), "it has ended");
        assert!(
            parked.end(Outcome::lost()),
            "a client may have it all the same"
        );
        drop(wish);
        assert!(parked.end(Outcome::lost()));
    }

    #[test]
    fn a_run_ends_once() {
        let run = run();
        let mut first = Outcome::lost();
        first.is_cancelled = true;
        run.end(first);
        run.end(Outcome::lost());
        assert!(run.outcome().is_some_and(|outcome| outcome.is_cancelled));
    }

    #[test]
    fn a_request_that_is_given_up_takes_its_run_along() {
        let waited = run();
        drop(Attending::new(&waited, false));
        Attending::new(&waited, true).answered();
        assert!(!waited.is_cancelled());
        drop(Attending::new(&waited, true));
        assert!(waited.is_cancelled());
    }

    #[test]
    fn only_a_run_that_nobody_can_come_for_ends_without_an_answer() {
        let attended = run();
        let attending = Attending::new(&attended, false);
        assert!(!attended.nobody_came() && !attended.is_cancelled());
        drop(attending);
        assert!(attended.nobody_came() && attended.is_cancelled());
        let left = run();
        left.leave();
        assert!(!left.nobody_came() && !left.is_cancelled());
    }
}
