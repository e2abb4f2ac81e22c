//! The runs that somebody may ask for: those under way, and for a while those
//! that have ended.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::outcome::Outcome;
use super::run::Run;

/// The runs of one user.
#[derive(Debug)]
pub(crate) struct Store {
    most: usize,
    keep: Keep,
    runs: Mutex<Held>,
}

/// What is kept of runs that have ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// How long each.
    pub(crate) time: Duration,
    /// How many.
    pub(crate) runs: usize,
    /// How many bytes of them all.
    pub(crate) bytes: usize,
}

#[derive(Debug, Default)]
struct Held {
    runs: HashMap<String, Arc<Run>>,
    /// Those of them that have ended, the first first.
    ended: VecDeque<Ended>,
    bytes: usize,
}

#[derive(Debug)]
struct Ended {
    id: String,
    bytes: usize,
    _expiry: AbortOnDropHandle<()>,
}

/// There are as many runs under way as may be.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} scripts of yours are under way, which is as many as may be; wait for one to end")]
pub(crate) struct Full(usize);

/// Sees to it that a run has an outcome, whatever becomes of its task.
pub(crate) struct Ending {
    pub(crate) run: Arc<Run>,
    pub(crate) store: Arc<Store>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let is_needed = self.run.end(Outcome::lost());
        self.store.end(&self.run, is_needed);
    }
}

impl Store {
    /// A store for so many runs at a time.
    pub(crate) fn new(most: usize, keep: Keep) -> Self {
        Self {
            most,
            keep,
            runs: Mutex::default(),
        }
    }

    /// Takes in a run that begins.
    ///
    /// # Errors
    ///
    /// [`Full`], and it must not begin.
    pub(crate) fn begin(&self, run: &Arc<Run>) -> Result<(), Full> {
        let mut held = self.lock();
        if held.runs.len() - held.ended.len() >= self.most {
            return Err(Full(self.most));
        }
        held.runs.insert(run.id.clone(), Arc::clone(run));
        Ok(())
    }

    /// Takes note that a run has ended, and keeps it for a while if it is needed.
    pub(crate) fn end(self: &Arc<Self>, run: &Arc<Run>, is_needed: bool) {
        let outcome = run.outcome().filter(|_| is_needed);
        let bytes = outcome.map_or(0, |outcome| outcome.bytes());
        let mut gone = Vec::new();
        let mut held = self.lock();
        if !held.runs.contains_key(&run.id) {
            return;
        }
        if !is_needed || self.keep.runs == 0 {
            gone.extend(held.runs.remove(&run.id));
        } else {
            held.bytes += bytes;
            held.ended.push_back(Ended {
                id: run.id.clone(),
                bytes,
                _expiry: self.expire(run.id.clone()),
            });
            // The newest stays, however large: its own limits bound it.
            while held.ended.len() > 1
                && (held.ended.len() > self.keep.runs || held.bytes > self.keep.bytes)
            {
                let Some(first) = held.ended.pop_front() else {
                    break;
                };
                held.bytes -= first.bytes;
                gone.extend(held.runs.remove(&first.id));
            }
        }
        drop(held);
    }

    /// The run with this id, if there is one still.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Run>> {
        self.lock().runs.get(id).cloned()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().runs.is_empty()
    }

    /// Those that have ended and are kept, the first first.
    pub(crate) fn ended(&self) -> Vec<Arc<Run>> {
        let held = self.lock();
        let ended = held.ended.iter();
        ended
            .filter_map(|ended| held.runs.get(&ended.id).cloned())
            .collect()
    }

    /// How many wait for their client to come again.
    pub(crate) fn parked(&self) -> usize {
        let held = self.lock();
        held.runs.values().filter(|run| run.is_parked()).count()
    }

    /// Forgets them all.
    pub(crate) fn clear(&self) {
        let held = std::mem::take(&mut *self.lock());
        drop(held);
    }

    fn expire(self: &Arc<Self>, id: String) -> AbortOnDropHandle<()> {
        let store = Arc::downgrade(self);
        let time = self.keep.time;
        AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(store) = store.upgrade() {
                store.forget(&id);
            }
        }))
    }

    fn forget(&self, id: &str) {
        let mut held = self.lock();
        let Some(at) = held.ended.iter().position(|ended| ended.id == id) else {
            return;
        };
        let ended = held.ended.remove(at);
        held.bytes -= ended.as_ref().map_or(0, |ended| ended.bytes);
        let run = held.runs.remove(id);
        drop(held);
        drop((ended, run));
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn store(most: usize, keep: Keep) -> Arc<Store> {
        Arc::new(Store::new(most, keep))
    }

    fn begun(store: &Store) -> Arc<Run> {
        let run = Run::new(HOUR, HOUR, CancellationToken::new()).expect("random bytes");
        let run = Arc::new(run);
        store.begin(&run).expect("room");
        run
    }

    fn end(store: &Arc<Store>, run: &Arc<Run>, whole: usize, is_needed: bool) {
        let mut outcome = Outcome::lost();
        outcome.whole = Some("x".repeat(whole).into());
        run.end(outcome);
        store.end(run, is_needed);
    }

    const KEEP: Keep = Keep {
        time: HOUR,
        runs: 2,
        bytes: 100,
    };

    #[tokio::test]
    async fn so_many_may_be_under_way() {
        let store = store(2, KEEP);
        let first = begun(&store);
        begun(&store);
        let third = Run::new(HOUR, HOUR, CancellationToken::new()).expect("random bytes");
        let third = Arc::new(third);
        assert_eq!(store.begin(&third), Err(Full(2)));
        end(&store, &first, 1, true);
        assert_eq!(store.begin(&third), Ok(()));
    }

    #[tokio::test]
    async fn those_that_ended_are_kept_within_limits() {
        let store = store(9, KEEP);
        let ended = |bytes| {
            let run = begun(&store);
            end(&store, &run, bytes, true);
            run.id.clone()
        };
        let (a, b, c) = (ended(10), ended(10), ended(10));
        assert!(store.get(&a).is_none(), "they are too many");
        assert!(store.get(&b).is_some());
        let d = ended(95);
        assert!(store.get(&b).is_none() && store.get(&c).is_none());
        let e = ended(1000);
        assert!(store.get(&d).is_none(), "they are too large");
        assert!(store.get(&e).is_some(), "the last one stays");
        assert_eq!(store.ended().len(), 1);
        let unneeded = begun(&store);
        end(&store, &unneeded, 0, false);
        assert!(store.get(&unneeded.id).is_none());
        store.clear();
        assert!(store.get(&e).is_none());
        // One that ends when all is over stays away.
        end(&store, &unneeded, 0, true);
        assert!(store.ended().is_empty());
    }

    #[tokio::test]
    async fn those_that_ended_are_kept_for_a_time() {
        let keep = Keep {
            time: Duration::from_millis(1),
            ..KEEP
        };
        let store = store(9, keep);
        let run = begun(&store);
        end(&store, &run, 1, true);
        let mut gone = run.follow();
        drop(run);
        while gone.changed().await.is_ok() {}
        assert!(store.ended().is_empty());
    }
}
