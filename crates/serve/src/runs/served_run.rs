//! One run as its client sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use callgate::faces::run_id;
use rmcp::task_manager::current_timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::outcome::Outcome;
use super::pages::Pages;
use super::pending::PendingRequests;
use super::progress::RunProgress;
use super::resume::Purpose;

/// A run of a script, or of one call or search without a script.
#[derive(Debug)]
pub(crate) struct ServedRun {
    /// The id in reports and in the ledger: `r-` and 64 random bits. Each client of the user that
    /// knows it may see the run; clients of other users may not.
    pub(crate) id: String,
    pub(crate) purpose: Purpose,
    /// The MCP session over HTTP in which the run was started.
    pub(crate) session: Option<String>,
    pub(crate) pending: PendingRequests,
    pub(crate) progress: RunProgress,
    pub(crate) pages: Pages,
    /// The time of the start, in RFC 3339.
    pub(crate) begun: String,
    pub(crate) since: Instant,
    /// The longest time that the run may take.
    pub(crate) max_time: Duration,
    pub(crate) cancel: CancellationToken,
    outcome: watch::Sender<Option<Arc<Outcome>>>,
    /// Cancelled when a server announces that its part takes long.
    pub(crate) is_long: CancellationToken,
    /// True if a client got the id before the run ended.
    is_detached: AtomicBool,
    /// True if a client was asked to repeat its request.
    is_asked_again: AtomicBool,
    /// The number of requests that wait for the run.
    waiting: AtomicUsize,
}

impl ServedRun {
    /// A run that ends when `cancel` is cancelled and after `max_time` at the latest. Its
    /// questions wait for `answer_time`.
    pub(crate) fn new(
        purpose: Purpose,
        answer_time: Duration,
        max_time: Duration,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            id: run_id(),
            purpose,
            session: None,
            pending: PendingRequests::new(answer_time),
            progress: RunProgress::new(),
            pages: Pages::default(),
            begun: current_timestamp(),
            since: Instant::now(),
            max_time,
            cancel,
            outcome: watch::Sender::new(None),
            is_long: CancellationToken::new(),
            is_detached: AtomicBool::new(false),
            is_asked_again: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Arc<Outcome>>> {
        self.outcome.subscribe()
    }

    /// The outcome, if the run has ended.
    pub(crate) fn outcome(&self) -> Option<Arc<Outcome>> {
        self.outcome.borrow().clone()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.outcome.borrow().is_some()
    }

    /// Sets the outcome, unless it is set. True if a client may still request it: a client got the
    /// id, a client was asked to repeat its request, or the whole output is kept.
    pub(crate) fn end(&self, outcome: Outcome) -> bool {
        let mut is_needed = false;
        self.outcome.send_if_modified(|slot| {
            let is_first = slot.is_none();
            is_needed = slot
                .get_or_insert_with(|| Arc::new(outcome))
                .whole
                .is_some();
            is_first
        });
        // Read after the outcome is set; see `detach` and `ask_again`.
        is_needed || self.is_detached() || self.is_asked_again.load(Ordering::SeqCst)
    }

    /// Lets the run continue without a waiting request. Returns the outcome, if the run has ended.
    pub(crate) fn detach(&self) -> Option<Arc<Outcome>> {
        // Either this sees the outcome, or `end` sees the flag.
        self.is_detached.store(true, Ordering::SeqCst);
        self.outcome()
    }

    /// Lets the run continue until its client repeats the request. False if the run has ended.
    pub(crate) fn ask_again(&self) -> bool {
        // Either this sees the outcome, or `end` sees the flag.
        self.is_asked_again.store(true, Ordering::SeqCst);
        self.outcome().is_none()
    }

    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::SeqCst)
    }

    /// True if the run waits for its client to repeat the request.
    pub(crate) fn is_parked(&self) -> bool {
        !self.is_waited_for() && self.pending.has_unsent()
    }

    fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Handles a question without an answer in time. If no client can find the run by its id, the
    /// run is cancelled, and this is true; otherwise it continues without the answer.
    pub(crate) fn answer_is_late(&self) -> bool {
        let is_over = !self.is_waited_for() && !self.is_detached();
        if is_over {
            tracing::info!("a parked script was cancelled: its question got no answer in time");
            self.cancel.cancel();
        }
        is_over
    }
}

/// A request that waits for a run. If it owns the run, dropping it before its answer cancels the
/// run: the client is gone.
#[derive(Debug)]
pub(crate) struct WaitingRequest<'a> {
    run: &'a ServedRun,
    owns_run: bool,
}

impl<'a> WaitingRequest<'a> {
    pub(crate) fn new(run: &'a ServedRun, owns_run: bool) -> Self {
        run.waiting.fetch_add(1, Ordering::SeqCst);
        Self { run, owns_run }
    }

    /// Ends the wait; the run continues.
    pub(crate) fn answered(mut self) {
        self.owns_run = false;
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.run.waiting.fetch_sub(1, Ordering::SeqCst);
        if self.owns_run {
            self.run.cancel.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> ServedRun {
        let hour = Duration::from_secs(3600);
        let purpose = Purpose::new(Purpose::SCRIPT, "");
        ServedRun::new(purpose, hour, hour, CancellationToken::new())
    }

    #[test]
    fn run_still_reachable_by_client_is_kept() {
        assert!(!run().end(Outcome::lost()));
        let left = run();
        assert!(left.detach().is_none());
        assert!(left.end(Outcome::lost()));
        assert!(left.detach().is_some());

        let parked = run();
        assert!(parked.ask_again());
        assert!(parked.end(Outcome::lost()));
        assert!(!parked.ask_again(), "the run has ended");
    }

    #[test]
    fn a_run_ends_once() {
        let run = run();
        run.end(Outcome::cancelled_call());
        run.end(Outcome::lost());
        assert!(run.outcome().is_some_and(|outcome| outcome.is_cancelled));
    }

    #[test]
    fn a_dropped_request_cancels_its_own_run() {
        let run = run();
        drop(WaitingRequest::new(&run, false));
        WaitingRequest::new(&run, true).answered();
        assert!(!run.cancel.is_cancelled());
        drop(WaitingRequest::new(&run, true));
        assert!(run.cancel.is_cancelled());
    }

    #[test]
    fn only_unreachable_run_is_cancelled_without_answer() {
        let waited_for = run();
        let waiting = WaitingRequest::new(&waited_for, false);
        assert!(!waited_for.answer_is_late());
        drop(waiting);
        assert!(waited_for.answer_is_late() && waited_for.cancel.is_cancelled());
        let left = run();
        left.detach();
        assert!(!left.answer_is_late() && !left.cancel.is_cancelled());
    }
}
