//! The calls of a script that are queued or with the handler.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, AbortRegistration, Abortable, pending};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::value::RawValue;
use tokio_util::task::AbortOnDropHandle;

use super::handler::{CallHandler, ScriptCall, Undelivered};
use crate::job::ERROR_BYTES;
use crate::wire::{Call, ErrorClass, Thrown};

/// Bytes of inputs that may wait for the handler or an answer: by default, four of the longest
/// inputs. Over it calls are refused, because the host holds several copies of each input.
const WAITING_BYTES: usize = 64 << 20;

pub(super) type Outcome = Result<Box<RawValue>, Thrown>;

/// The calls of one run that have no answer yet.
pub(super) struct PendingCalls {
    handler: Arc<dyn CallHandler>,
    /// Calls that the handler may have at the same time.
    max: usize,
    queue: VecDeque<Queued>,
    /// The calls that the handler has. Each is a task of its own, so that its work on a large result
    /// does not hold up the run's clock.
    running: FuturesUnordered<AbortOnDropHandle<Answered>>,
    /// The calls that the worker may cancel.
    cancellable: HashMap<u64, AbortHandle>,
    waiting_bytes: usize,
}

/// A call that the handler does not have yet.
struct Queued {
    id: u64,
    abort: Option<AbortRegistration>,
    call: ScriptCall,
}

pub(super) struct Answered {
    pub(super) id: u64,
    pub(super) function: String,
    input_bytes: usize,
    /// `None` if the worker cancelled the call and so expects no answer.
    pub(super) outcome: Option<Outcome>,
}

/// The reasons why a call is refused.
pub(super) enum Refusal {
    /// The script catches this error.
    Answer(Thrown),
    /// The worker breaks the protocol.
    Violation(&'static str),
}

impl PendingCalls {
    /// `max`: calls that the handler may have at the same time.
    pub(super) fn new(handler: Arc<dyn CallHandler>, max: u32) -> Self {
        Self {
            handler,
            max: usize::try_from(max).unwrap_or(usize::MAX).max(1),
            queue: VecDeque::new(),
            running: FuturesUnordered::new(),
            cancellable: HashMap::new(),
            waiting_bytes: 0,
        }
    }

    /// Passes printed text to the handler.
    pub(super) fn printed(&self, text: &str, is_error: bool) {
        // A handler that panics is a bug of the host; the script goes on.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.handler.printed(text, is_error);
        }));
    }

    /// The time so far in which each call under way waited for approval.
    pub(super) fn approval_time(&self) -> Duration {
        self.handler.approval_time()
    }

    /// Makes the error that the script catches for a call or an answer that is not passed on.
    pub(super) fn undelivered(&self, function: &str, what: Undelivered, message: String) -> Thrown {
        let undelivered = || self.handler.undelivered(function, what, message);
        let undelivered = catch_unwind(AssertUnwindSafe(undelivered));
        let thrown = undelivered.unwrap_or_else(|_panic| host_failed());
        match error_bytes(&thrown) {
            0..=ERROR_BYTES => thrown,
            _ => host_failed(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.queue.is_empty()
    }

    /// Queues a call of the worker.
    pub(super) fn take(&mut self, call: Call) -> Result<(), Refusal> {
        let bytes = call.input.len();
        // A single call has a limit of its own.
        let sum = self.waiting_bytes.saturating_add(bytes);
        if self.waiting_bytes > 0 && sum > WAITING_BYTES {
            let message = format!(
                "{}: with these {bytes} bytes of input, the calls under way would have more than \
                 {WAITING_BYTES} bytes; await some first",
                call.tool
            );
            let thrown = self.undelivered(&call.tool, Undelivered::Call, message);
            return Err(Refusal::Answer(thrown));
        }
        let Ok(input) = RawValue::from_string(call.input) else {
            return Err(Refusal::Violation("the input of a call is not JSON"));
        };
        self.waiting_bytes += input.get().len();
        let abort = call.cancellable.then(|| {
            let (handle, registration) = AbortHandle::new_pair();
            // If a compromised worker reuses an id, only the latest call can be cancelled.
            self.cancellable.insert(call.id, handle);
            registration
        });
        self.queue.push_back(Queued {
            id: call.id,
            abort,
            call: ScriptCall {
                function: call.tool,
                input,
                timeout: call.timeout_ms.map(Duration::from_millis),
                place: call.place,
            },
        });
        Ok(())
    }

    /// Drops a call, queued or running. An unknown id is ignored.
    pub(super) fn cancel(&mut self, id: u64) {
        if let Some(handle) = self.cancellable.get(&id) {
            handle.abort();
        }
    }

    /// Hands queued calls to the handler, up to the maximum.
    pub(super) fn begin(&mut self) {
        while self.running.len() < self.max {
            let Some(Queued { id, abort, call }) = self.queue.pop_front() else {
                return;
            };
            let handler = Arc::clone(&self.handler);
            let function = call.function.clone();
            let input_bytes = call.input.get().len();
            let answer = AssertUnwindSafe(async move { handler.call(call).await }).catch_unwind();
            let mut call = Box::pin(async move {
                let outcome = match abort {
                    None => Some(answer.await),
                    Some(registration) => Abortable::new(answer, registration).await.ok(),
                };
                Answered {
                    id,
                    function,
                    input_bytes,
                    // A handler that panics must not leave the script waiting.
                    outcome: outcome
                        .map(|outcome| outcome.unwrap_or_else(|_panic| Err(host_failed()))),
                }
            });
            // Polled here first, so that calls reach the handler in their order.
            let answered = (&mut call).now_or_never();
            let task = tokio::spawn(async {
                match answered {
                    Some(answered) => answered,
                    None => call.await,
                }
            });
            self.running.push(AbortOnDropHandle::new(task));
        }
    }

    /// The next call that is answered or cancelled; pending while the handler has none.
    pub(super) async fn next(&mut self) -> Answered {
        let answered = loop {
            match self.running.next().await {
                Some(Ok(answered)) => break answered,
                // The task was aborted.
                Some(Err(_)) => {}
                None => return pending().await,
            }
        };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(answered.input_bytes);
        self.cancellable.remove(&answered.id);
        answered
    }

    /// Drops all calls, without waiting for the tasks to end.
    pub(super) fn clear(&mut self) {
        self.running.iter().for_each(AbortOnDropHandle::abort);
        self.queue.clear();
        self.cancellable.clear();
    }

    /// Drops all calls, and returns when their tasks have ended.
    pub(super) async fn end(&mut self) {
        self.clear();
        while self.running.next().await.is_some() {}
    }
}

/// Bytes of the texts of an error.
pub(super) fn error_bytes(thrown: &Thrown) -> usize {
    thrown.message.len().saturating_add(thrown.fields.len())
}

fn host_failed() -> Thrown {
    Thrown {
        class: ErrorClass::Protocol,
        message: "the host failed while it answered the call".into(),
        fields: "{}".into(),
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;

    use super::*;

    /// Answers each call at once.
    struct Null;

    impl CallHandler for Null {
        fn call(&self, _call: ScriptCall) -> BoxFuture<'static, Outcome> {
            std::future::ready(Ok(RawValue::NULL.to_owned())).boxed()
        }
    }

    fn call(bytes: usize) -> Call {
        Call {
            id: 1,
            timeout_ms: None,
            cancellable: false,
            place: None,
            tool: "f".into(),
            input: "1".repeat(bytes),
        }
    }

    /// The message of the error that the script catches if the call is not taken.
    fn refused(calls: &mut PendingCalls, bytes: usize) -> Option<String> {
        match calls.take(call(bytes)) {
            Ok(()) => None,
            Err(Refusal::Answer(thrown)) => Some(thrown.message.to_string()),
            Err(Refusal::Violation(fault)) => panic!("{fault}"),
        }
    }

    #[tokio::test]
    async fn inputs_of_pending_calls_share_one_limit() {
        let mut calls = PendingCalls::new(Arc::new(Null), 1);
        let quarter = WAITING_BYTES / 4;
        for _ in 0..4 {
            assert_eq!(refused(&mut calls, quarter), None);
        }
        let expected = "f: with these 1 bytes of input, the calls under way would have more than \
            67108864 bytes; await some first";
        assert_eq!(refused(&mut calls, 1).as_deref(), Some(expected));
        // Calls with the handler count like queued calls.
        calls.begin();
        assert!(refused(&mut calls, 1).is_some());
        calls.next().await;
        assert_eq!(refused(&mut calls, quarter), None);
        assert!(refused(&mut calls, 1).is_some());
    }

    #[tokio::test]
    async fn single_call_may_exceed_the_input_limit() {
        let mut calls = PendingCalls::new(Arc::new(Null), 1);
        assert_eq!(refused(&mut calls, WAITING_BYTES + 1), None);
        assert!(refused(&mut calls, 1).is_some());
        calls.begin();
        calls.next().await;
        assert_eq!(refused(&mut calls, 1), None);
    }
}
