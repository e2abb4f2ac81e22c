//! The place for the answer of one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::failure::CallFailure;

/// The caller and the tool of a request.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    pub(crate) caller: Arc<dyn Caller>,
    pub(crate) tool: Arc<str>,
}

/// The result of one request as text, or its failure.
pub(crate) type Answer = Result<Box<RawValue>, CallFailure>;

/// The place for the answer of one request. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot(Arc<State>);

#[derive(Debug, Default)]
struct State {
    answer: Mutex<Option<Answer>>,
    who: Option<CallContext>,
    is_waiting: AtomicBool,
    progress_events: Notify,
    over: CancellationToken,
}

impl Slot {
    pub(crate) fn new(who: Option<CallContext>) -> Self {
        let state = State::default();
        Self(Arc::new(State { who, ..state }))
    }

    pub(crate) fn fill(&self, answer: Answer) {
        *self.0.answer.lock() = Some(answer);
    }

    pub(crate) fn take(&self) -> Option<Answer> {
        self.0.answer.lock().take()
    }

    pub(crate) fn who(&self) -> Option<&CallContext> {
        self.0.who.as_ref()
    }

    /// True if the request waits for authorization.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        self.0.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Cancelled when nothing waits for the answer any more.
    pub(crate) fn over(&self) -> &CancellationToken {
        &self.0.over
    }

    /// Notified for each progress notification.
    pub(crate) fn progress_events(&self) -> &Notify {
        &self.0.progress_events
    }
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
