//! A question that is open in the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use callgate_gate::{Answer, Question, Reply};
use callgate_store::{Access, OpenStore, Settled, Store, StoreError, StoreErrorKind};
use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::Asking;
use super::record::{self, RunContext};

/// The reason of a withdrawn question.
const WITHDRAWN: &str = "the run no longer waits for it";

/// A question in the store. It is withdrawn when the value is dropped before an answer.
pub(super) struct OpenQuestion {
    asking: Arc<Asking>,
    store: Arc<OpenStore>,
    id: String,
    run: RunContext,
    answered: oneshot::Receiver<Reply>,
    /// True once nothing waits for an answer.
    is_over: Arc<AtomicBool>,
    is_closed: bool,
    /// The answer to a different question, if it covers this call.
    covered_by: Arc<OnceLock<Reply>>,
}

impl OpenQuestion {
    /// Writes a question; `None` if the store cannot be written.
    pub(super) async fn new(
        asking: &Arc<Asking>,
        store: &Arc<OpenStore>,
        run: &RunContext,
        question: &Question,
    ) -> Option<Self> {
        let id = question.id.clone();
        let mut open = Self {
            asking: Arc::clone(asking),
            store: Arc::clone(store),
            run: run.clone(),
            answered: asking.watch.add(&store.store, &id),
            is_over: Arc::default(),
            is_closed: false,
            covered_by: Arc::clone(&question.covered_by),
            id: id.clone(),
        };
        let (expires, is_over) = (asking.expires(), Arc::clone(&open.is_over));
        let (run, question) = (run.clone(), question.clone());
        let write = move |open: &OpenStore| -> Result<(), StoreError> {
            let (store, owner) = (&open.store, open.owner.id());
            let record = record::of_question(&id, owner, &run, &question, expires);
            store.open_question(&record)?;
            // The call may have ended before the question was written.
            if is_over.load(Ordering::SeqCst) {
                store.withdraw_question(&run.user, &id, WITHDRAWN, Timestamp::now())?;
            }
            Ok(())
        };
        match open.in_store(write).await {
            Ok(()) => Some(open),
            Err(error) => {
                tracing::warn!("a question is asked in this process alone: {error}");
                open.is_closed = true;
                None
            }
        }
    }

    /// Waits for the answer of a different process, or the end of the question; `None` if there
    /// can be none.
    pub(super) async fn elsewhere(&mut self) -> Option<Reply> {
        let reply = (&mut self.answered).await.ok()?;
        self.is_closed = true;
        Some(reply)
    }

    /// Closes the question with a reply, unless it was closed before: then the earlier reply counts.
    /// A reply without a choice expires or withdraws the question. Returns the reply that counts,
    /// and whether it is of a different process.
    pub(super) async fn settle(mut self, reply: Reply) -> (Reply, bool) {
        let (id, run, given) = (self.id.clone(), self.run.clone(), reply.clone());
        let settle = move |open: &OpenStore| -> Result<Option<Reply>, StoreError> {
            let store = &*open.store;
            let (access, now) = (Access::User(&run.user), Timestamp::now());
            if given.answer == Answer::Late {
                store.expire_questions(access, now)?;
            }
            let settled = close(store, &run, &id, Some(&given))?;
            let first = record::reply(store, &settled.question);
            Ok((!settled.is_first).then_some(first))
        };
        let mut settled = self.in_store(settle.clone()).await;
        let is_locked = |error: &StoreError| error.kind() == StoreErrorKind::Locked;
        if settled.as_ref().is_err_and(is_locked) {
            // A different process may have refused the call.
            settled = self.in_store(settle).await;
        }
        match settled {
            Ok(first) => {
                self.is_closed = true;
                let is_elsewhere = first.is_some();
                (first.unwrap_or(reply), is_elsewhere)
            }
            Err(error) => {
                tracing::warn!("an answer is not in the store: {error}");
                (reply, false)
            }
        }
    }

    /// Does an operation on a thread that may block.
    async fn in_store<T: Send + 'static>(
        &self,
        act: impl FnOnce(&OpenStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || act(&store)).await;
        done.unwrap_or_else(|error| {
            let kind = StoreErrorKind::Unavailable;
            Err(StoreError::new(kind, error.to_string()))
        })
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.asking.watch.remove(&self.id);
        if self.is_closed {
            return;
        }
        let store = Arc::clone(&self.store.store);
        let (run, id) = (self.run.clone(), self.id.clone());
        let covered_by = Arc::clone(&self.covered_by);
        let close = move || {
            let covered_by = covered_by.get();
            if let Err(error) = close(&*store, &run, &id, covered_by) {
                tracing::warn!("a question stays open in the store: {error}");
            }
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(close)),
            Err(_) => close(),
        }
    }
}

/// Closes a question that nothing waits for: with the answer that covers its call, or without one.
fn close(
    store: &dyn Store,
    run: &RunContext,
    id: &str,
    covered_by: Option<&Reply>,
) -> Result<Settled, StoreError> {
    let answer = match covered_by {
        Some(reply) => record::reply_record(store, run, reply)?,
        None => None,
    };
    match answer {
        Some(answer) => store.answer_question(Access::User(&run.user), id, &answer),
        None => store.withdraw_question(&run.user, id, WITHDRAWN, Timestamp::now()),
    }
}
