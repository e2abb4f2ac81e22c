//! Answers of other processes: the store is looked at while questions are open, and at no other
//! time.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use callgate_gate::Reply;
use callgate_store::{Access, QuestionState, Store, StoreErrorKind};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::record;

/// Time between two looks at the store.
const INTERVAL: Duration = Duration::from_millis(250);

/// The open questions of this process.
#[derive(Default)]
pub(super) struct Watch(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    /// The waiting calls, by the id of the question.
    open: HashMap<String, oneshot::Sender<Reply>>,
    /// True if a question was added since the last look.
    has_new: bool,
    is_running: bool,
}

impl Watch {
    /// Watches a question. Add it before it is written, so that no answer is missed.
    pub(super) fn add(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        id: &str,
    ) -> oneshot::Receiver<Reply> {
        let (sender, receiver) = oneshot::channel();
        let mut watched = self.0.lock();
        watched.open.insert(id.to_owned(), sender);
        watched.has_new = true;
        if !mem::replace(&mut watched.is_running, true) {
            tokio::spawn(Arc::clone(self).run(Arc::clone(store)));
        }
        receiver
    }

    pub(super) fn remove(&self, id: &str) {
        self.0.lock().open.remove(id);
    }

    async fn run(self: Arc<Self>, store: Arc<dyn Store>) {
        let mut seen = None;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(ids) = self.next(&mut seen) else {
                return;
            };
            let (store, last) = (Arc::clone(&store), seen);
            let look = move || closed(&*store, &ids, last);
            let Ok((changes, replies)) = tokio::task::spawn_blocking(look).await else {
                continue;
            };
            seen = changes;
            let mut watched = self.0.lock();
            for (id, reply) in replies {
                if let Some(sender) = watched.open.remove(&id) {
                    // The call may have ended.
                    let _ = sender.send(reply);
                }
            }
        }
    }

    /// The questions to look at; `None` if there are no more.
    fn next(&self, seen: &mut Option<u64>) -> Option<Vec<String>> {
        let mut watched = self.0.lock();
        if mem::take(&mut watched.has_new) {
            *seen = None;
        }
        watched.is_running = !watched.open.is_empty();
        let ids = || watched.open.keys().cloned().collect();
        watched.is_running.then(ids)
    }
}

/// The number of changes of the store, and the replies to questions that are not open any more, if
/// something has changed.
fn closed(
    store: &dyn Store,
    ids: &[String],
    seen: Option<u64>,
) -> (Option<u64>, Vec<(String, Reply)>) {
    let mut replies = Vec::new();
    let changes = match store.changes() {
        Ok(changes) if Some(changes) == seen => return (seen, replies),
        Ok(changes) => changes,
        Err(error) => {
            tracing::debug!(%error, "answers in the store are not seen");
            return (None, replies);
        }
    };
    for id in ids {
        match store.question(Access::All, id) {
            Ok(record) if record.state == QuestionState::Open => {}
            Ok(record) => replies.push((id.clone(), record::reply(store, &record))),
            // It is not written yet.
            Err(error) if error.kind() == StoreErrorKind::NotFound => {}
            Err(error) => {
                tracing::debug!(%error, "answers in the store are not seen");
                return (None, replies);
            }
        }
    }
    (Some(changes), replies)
}
