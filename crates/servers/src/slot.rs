//! The place for the answer of one request.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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

/// The place for the answer of one request.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    answer: Mutex<Option<Answer>>,
    /// The call that the request belongs to.
    pub(crate) context: Option<CallContext>,
    /// True while the request waits for authorization.
    pub(crate) is_waiting: AtomicBool,
    /// Notified for each progress notification.
    pub(crate) progress_events: Notify,
    /// Cancelled when the answer is no longer waited for.
    pub(crate) over: CancellationToken,
}

impl Slot {
    pub(crate) fn new(context: Option<CallContext>) -> Arc<Self> {
        Arc::new(Self {
            context,
            ..Self::default()
        })
    }

    pub(crate) fn fill(&self, answer: Answer) {
        *self.answer.lock() = Some(answer);
    }

    pub(crate) fn take(&self) -> Option<Answer> {
        self.answer.lock().take()
    }
}
