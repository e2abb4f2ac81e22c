//! Running and recently ended runs.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::outcome::Outcome;
use super::served_run::ServedRun;

/// The limit of unfinished runs, with parked and detached ones. Further runs are refused.
const MAX_RUNNING: usize = 64;
/// The limit of parked runs, which have a process each. Questions of further runs get no answer.
pub(crate) const MAX_PARKED: usize = 16;
/// The limit of a run's output, and of its value, that are kept if the report cuts them, in bytes:
/// of longer ones, the start and the end.
pub(crate) const KEPT_OUTPUT: u64 = 8 << 20;
/// The time that a run is kept after its end, if a client may still request it.
pub(crate) const KEPT_TIME: Duration = Duration::from_secs(600);
/// The limit of ended runs. Further runs replace the oldest.
const MAX_ENDED: usize = 64;
/// The limit of ended runs in bytes. The newest is always kept: the run's limits bound it.
const MAX_ENDED_BYTES: usize = 64 << 20;

/// The runs of one user. The ended ones among them are in the order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Store(Mutex<Vec<Arc<ServedRun>>>);

/// The reason why a run does not start, or has no report.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRun {
    /// The arguments are wrong.
    #[error("{0}")]
    Wrong(String),
    /// The limit of unfinished runs is reached.
    #[error("your limit of {MAX_RUNNING} running scripts is reached; wait for one to end")]
    Full,
    /// The run's task ended abnormally.
    #[error(
        "the run has no report, though it may have made calls; the operator's log has the reason"
    )]
    Lost,
}

impl Store {
    pub(crate) fn begin(&self, run: &Arc<ServedRun>) -> Result<(), NoRun> {
        let mut runs = self.lock();
        if runs.iter().filter(|run| !run.has_ended()).count() >= MAX_RUNNING {
            return Err(NoRun::Full);
        }
        runs.push(Arc::clone(run));
        Ok(())
    }

    /// Ends a run, and keeps it for a while if a client may still request it.
    pub(crate) fn end(&self, run: &ServedRun, outcome: Outcome) {
        let is_needed = run.end(outcome);
        let mut runs = self.lock();
        let Some(at) = runs.iter().position(|it| it.id == run.id) else {
            return;
        };
        let run = runs.remove(at);
        if is_needed {
            runs.push(run);
            forget_excess(&mut runs);
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<ServedRun>> {
        self.lock().iter().find(|run| run.id == id).cloned()
    }

    /// Cancels the runs that were started in this session.
    pub(crate) fn cancel_session(&self, session: &str) {
        let runs = self.lock();
        let started = runs
            .iter()
            .filter(|run| run.session.as_deref() == Some(session));
        started.for_each(|run| run.cancel.cancel());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The ended runs, the oldest first.
    pub(crate) fn ended(&self) -> Vec<Arc<ServedRun>> {
        let runs = self.lock();
        runs.iter().filter(|run| run.has_ended()).cloned().collect()
    }

    /// The number of runs that wait for their client to repeat a request.
    pub(crate) fn parked(&self) -> usize {
        self.lock().iter().filter(|run| run.is_parked()).count()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// The runs, without those that have ended too long ago.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ServedRun>>> {
        let mut runs = self.0.lock();
        forget_old(&mut runs, KEPT_TIME);
        runs
    }
}

/// Forgets the runs that ended this long ago.
fn forget_old(runs: &mut Vec<Arc<ServedRun>>, time: Duration) {
    let is_old = |outcome: Arc<Outcome>| outcome.since.elapsed() >= time;
    runs.retain(|run| !run.outcome().is_some_and(is_old));
}

/// Forgets the oldest ended runs, up to their limits.
fn forget_excess(runs: &mut Vec<Arc<ServedRun>>) {
    let (mut count, mut bytes) = (0, 0);
    // From the newest to the oldest.
    let is_excess = |run: &Arc<ServedRun>| {
        let Some(outcome) = run.outcome() else {
            return false;
        };
        (count, bytes) = (count + 1, bytes + outcome.bytes);
        count > 1 && (count > MAX_ENDED || bytes > MAX_ENDED_BYTES)
    };
    let kept: Vec<bool> = runs.iter().rev().map(is_excess).map(|it| !it).collect();
    let mut kept = kept.into_iter().rev();
    runs.retain(|_| kept.next().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::super::resume::Purpose;
    use super::*;

    fn run() -> Arc<ServedRun> {
        let (hour, purpose) = (Duration::from_secs(3600), Purpose::new(Purpose::SCRIPT, ""));
        Arc::new(ServedRun::new(
            purpose,
            hour,
            hour,
            CancellationToken::new(),
        ))
    }

    /// A run that has ended with an output of this size.
    fn ended(store: &Store, bytes: usize) -> String {
        let run = run();
        store.begin(&run).expect("room");
        run.detach();
        let outcome = Outcome {
            bytes,
            ..Outcome::lost()
        };
        store.end(&run, outcome);
        run.id.clone()
    }

    #[test]
    fn running_runs_are_bounded() {
        let store = Store::default();
        let runs = [(); MAX_RUNNING].map(|()| run());
        for run in &runs {
            store.begin(run).expect("room");
        }
        assert_eq!(store.begin(&run()), Err(NoRun::Full));
        store.end(&runs[0], Outcome::lost());
        assert_eq!(store.begin(&run()), Ok(()));
        assert!(store.get(&runs[0].id).is_none(), "no client knows it");
    }

    #[test]
    fn ended_runs_are_bounded() {
        let store = Store::default();
        let first = ended(&store, 1);
        let others = [(); MAX_ENDED].map(|()| ended(&store, 1));
        assert!(store.get(&first).is_none() && store.get(&others[0]).is_some());
        let large = ended(&store, MAX_ENDED_BYTES - 1);
        assert_eq!(store.ended().len(), 2, "their bytes");
        let larger = ended(&store, 2 * MAX_ENDED_BYTES);
        assert!(store.get(&large).is_none());
        assert!(store.get(&larger).is_some(), "the last one stays");
        store.clear();
        assert!(store.is_empty());
        // A run that ends after that is not kept.
        store.end(&run(), Outcome::lost());
        assert!(store.ended().is_empty());
    }

    #[test]
    fn ended_runs_expire() {
        let store = Store::default();
        ended(&store, 1);
        store.begin(&run()).expect("room");
        forget_old(&mut store.lock(), Duration::ZERO);
        assert!(store.ended().is_empty() && !store.is_empty());
    }
}
