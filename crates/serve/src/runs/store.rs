//! Running and recently ended runs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::outcome::Outcome;
use super::served_run::ServedRun;

/// The runs of one user.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) keep: Keep,
    inner: Mutex<Inner>,
}

/// Limits of a user's runs, and of the ended ones that are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// The most runs at a time, parked and left ones included. Beyond, a run is refused.
    pub(crate) running: usize,
    /// The most parked runs; each has a process. Beyond, questions get no answer.
    pub(crate) parked: usize,
    /// Bytes that are kept of a run's output and of its value, each, where the report cuts
    /// them: of more, the beginning and the end.
    pub(crate) output: u64,
    /// The time that a run is kept after its end, if its client may still ask for it.
    pub(crate) time: Duration,
    /// The most ended runs. The oldest go first.
    pub(crate) runs: usize,
    /// The most bytes of ended runs. The newest stays whatever its size.
    pub(crate) bytes: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            running: 64,
            parked: 16,
            output: 8 << 20,
            time: Duration::from_secs(600),
            runs: 64,
            bytes: 64 << 20,
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    runs: HashMap<String, Arc<ServedRun>>,
    /// The ended runs, the oldest first.
    ended: VecDeque<Ended>,
    /// Bytes of the ended runs.
    bytes: usize,
}

#[derive(Debug)]
struct Ended {
    id: String,
    bytes: usize,
    since: Instant,
}

/// The reason why a run does not begin, or has no report.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoRun {
    /// The arguments are wrong.
    #[error("{0}")]
    Wrong(String),
    /// As many runs as allowed are under way.
    #[error("your limit of {0} scripts under way is reached; wait for one to end")]
    Full(usize),
    /// The system failed.
    #[error(
        "the run could not begin, and has made no calls; try it again later, and the operator of \
         this server can read why"
    )]
    Failed,
    /// The run's task ended abnormally.
    #[error(
        "the run has no report, though it may have made calls; the operator of this server can \
         read why"
    )]
    Lost,
}

/// Ends a run when its task ends, normally or not.
pub(crate) struct EndGuard {
    pub(crate) run: Arc<ServedRun>,
    pub(crate) store: Arc<Store>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        let is_needed = self.run.end(Outcome::lost());
        self.store.end(&self.run, is_needed);
    }
}

impl Store {
    pub(crate) fn new(keep: Keep) -> Self {
        Self {
            keep,
            inner: Mutex::default(),
        }
    }

    /// Adds a run that begins.
    pub(crate) fn begin(&self, run: &Arc<ServedRun>) -> Result<(), NoRun> {
        let mut inner = self.lock();
        if inner.runs.len() - inner.ended.len() >= self.keep.running {
            return Err(NoRun::Full(self.keep.running));
        }
        inner.runs.insert(run.id.clone(), Arc::clone(run));
        Ok(())
    }

    /// Removes a run that has ended, or keeps it for a while if it is needed.
    pub(crate) fn end(&self, run: &Arc<ServedRun>, is_needed: bool) {
        let mut inner = self.lock();
        if !inner.runs.contains_key(&run.id) {
            return;
        }
        if !is_needed || self.keep.runs == 0 {
            inner.runs.remove(&run.id);
            return;
        }
        let bytes = run.outcome().map_or(0, |outcome| outcome.bytes());
        inner.bytes += bytes;
        inner.ended.push_back(Ended {
            id: run.id.clone(),
            bytes,
            since: Instant::now(),
        });
        // The newest stays, whatever its size: the run's limits bound it.
        while inner.ended.len() > 1
            && (inner.ended.len() > self.keep.runs || inner.bytes > self.keep.bytes)
        {
            inner.forget_oldest();
        }
    }

    /// The run with this id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<ServedRun>> {
        self.lock().runs.get(id).cloned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().runs.is_empty()
    }

    /// The ended runs, the oldest first.
    pub(crate) fn ended(&self) -> Vec<Arc<ServedRun>> {
        let inner = self.lock();
        let ended = inner.ended.iter();
        ended
            .filter_map(|ended| inner.runs.get(&ended.id).cloned())
            .collect()
    }

    /// The number of runs that wait for their client to come again.
    pub(crate) fn parked(&self) -> usize {
        let inner = self.lock();
        inner.runs.values().filter(|run| run.is_parked()).count()
    }

    /// Forgets all runs.
    pub(crate) fn clear(&self) {
        let inner = std::mem::take(&mut *self.lock());
        drop(inner);
    }

    /// The runs, without those that have ended too long ago.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |ended: &Ended| ended.since.elapsed() >= self.keep.time;
        while inner.ended.front().is_some_and(is_over) {
            inner.forget_oldest();
        }
        inner
    }
}

impl Inner {
    fn forget_oldest(&mut self) {
        if let Some(ended) = self.ended.pop_front() {
            self.bytes -= ended.bytes;
            self.runs.remove(&ended.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock};
    use tokio_util::sync::CancellationToken;

    use super::super::resume::Purpose;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const KEEP: Keep = Keep {
        running: 2,
        parked: 0,
        output: 0,
        time: HOUR,
        runs: 2,
        bytes: 1000,
    };

    fn run() -> Arc<ServedRun> {
        let run = ServedRun::new(
            Purpose::new(Purpose::SCRIPT, ""),
            HOUR,
            HOUR,
            CancellationToken::new(),
        );
        Arc::new(run.expect("random bytes"))
    }

    fn end(store: &Arc<Store>, run: &Arc<ServedRun>, bytes: usize, is_needed: bool) {
        let text = ContentBlock::text("x".repeat(bytes));
        run.end(Outcome::of_call(Ok(CallToolResult::success(vec![text]))));
        store.end(run, is_needed);
    }

    #[tokio::test]
    async fn running_runs_are_bounded() {
        let store = Arc::new(Store::new(KEEP));
        let (first, third) = (run(), run());
        store.begin(&first).expect("room");
        store.begin(&run()).expect("room");
        assert_eq!(store.begin(&third), Err(NoRun::Full(2)));
        end(&store, &first, 1, true);
        assert_eq!(store.begin(&third), Ok(()));
    }

    #[tokio::test]
    async fn ended_runs_are_bounded() {
        let keep = Keep { running: 9, ..KEEP };
        let store = Arc::new(Store::new(keep));
        let ended = |bytes, is_needed| {
            let run = run();
            store.begin(&run).expect("room");
            end(&store, &run, bytes, is_needed);
            run.id.clone()
        };
        let (a, b, c) = (ended(10, true), ended(10, true), ended(10, true));
        assert!(
            store.get(&a).is_none() && store.get(&b).is_some(),
            "two are kept"
        );
        let d = ended(900, true);
        assert!(
            store.get(&b).is_none() && store.get(&c).is_none(),
            "their bytes"
        );
        let e = ended(10_000, true);
        assert!(
            store.get(&d).is_none() && store.get(&e).is_some(),
            "the last one stays"
        );
        let unneeded = ended(0, false);
        assert!(store.get(&unneeded).is_none());
        store.clear();
        assert!(store.is_empty());
        // A run that ends after that is not kept.
        end(&store, &run(), 0, true);
        assert!(store.ended().is_empty());
    }

    #[tokio::test]
    async fn ended_runs_expire() {
        let time = Duration::ZERO;
        let store = Arc::new(Store::new(Keep { time, ..KEEP }));
        let run = run();
        store.begin(&run).expect("room");
        end(&store, &run, 1, true);
        assert!(store.is_empty());
    }
}
