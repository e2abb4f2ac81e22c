//! The calls of a script that are under way: queued, with the handler, answered or cancelled.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::wire::{Call, ErrorClass, Thrown};
use futures::future::{AbortHandle, AbortRegistration, Abortable, BoxFuture, pending};
use futures::{FutureExt, StreamExt};
use futures_buffered::FuturesUnordered;
use serde_json::value::RawValue;

use super::hush::Hush;
use super::{CallHandler, ScriptCall, Undelivered};
use crate::ERROR_BYTES;

/// Bytes of inputs that may wait for their turn or their answer, beyond which calls are refused:
/// the host has each several times until it is answered. Four of the longest inputs by default.
const WAITING_BYTES: usize = 64 << 20;

/// What a call comes to.
pub(super) type Outcome = Result<Box<RawValue>, Thrown>;

/// The calls of one run that have no answer yet.
pub(super) struct Calls {
    handler: Arc<dyn CallHandler>,
    /// Calls that the handler may have at the same time.
    most: usize,
    queue: VecDeque<Queued>,
    /// Polled by the run's own task: passing each call to another and back costs more than what a
    /// short call does.
    begun: FuturesUnordered<Begun>,
    hush: Arc<Hush>,
    /// Those that the worker may cancel.
    cancellable: HashMap<u64, AbortHandle>,
    waiting_bytes: usize,
}

/// A call that waits for its turn, in memory of its own: a frame keeps the whole buffer alive that it
/// was received in.
struct Queued {
    id: u64,
    abort: Option<AbortRegistration>,
    call: ScriptCall,
}

/// A call that the handler has.
struct Begun {
    id: u64,
    function: Box<str>,
    input_bytes: usize,
    answer: Answer,
}

enum Answer {
    Plain(BoxFuture<'static, Outcome>),
    Cancellable(Abortable<BoxFuture<'static, Outcome>>),
}

/// A call that needs nothing more of the handler.
pub(super) struct Answered {
    pub(super) id: u64,
    pub(super) function: Box<str>,
    /// `None` if the worker cancelled it: it waits for no answer.
    pub(super) outcome: Option<Outcome>,
}

/// Why a call cannot be taken on.
pub(super) enum Refusal {
    /// It is answered with this.
    Answer(Thrown),
    /// No worker that is what it should be makes such a call.
    Violation(&'static str),
}

impl Calls {
    /// None yet; `most` may be with the handler at the same time.
    pub(super) fn new(handler: Arc<dyn CallHandler>, most: u32) -> Self {
        Self {
            handler,
            most: usize::try_from(most).unwrap_or(usize::MAX).max(1),
            queue: VecDeque::new(),
            begun: FuturesUnordered::new(),
            hush: Arc::default(),
            cancellable: HashMap::new(),
            waiting_bytes: 0,
        }
    }

    /// Tells the handler what the script prints.
    pub(super) fn printed(&self, text: &str) {
        let told = catch_unwind(AssertUnwindSafe(|| self.handler.printed(text)));
        // A bug of the host's, and no reason to end the script.
        let _panicked = told;
    }

    /// What the script catches in place of what it cannot have.
    pub(super) fn undelivered(&self, function: &str, what: Undelivered, message: String) -> Thrown {
        let undelivered = || self.handler.undelivered(function, what, message);
        let undelivered = catch_unwind(AssertUnwindSafe(undelivered));
        let thrown = undelivered.unwrap_or_else(|_panic| host_failed());
        match error_bytes(&thrown) {
            0..=ERROR_BYTES => thrown,
            _ => host_failed(),
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.queue.is_empty()
    }

    /// Whether the handler has none.
    pub(super) fn none_begun(&self) -> bool {
        self.begun.is_empty()
    }

    /// Takes on a call of the worker's.
    pub(super) fn take(&mut self, call: &Call) -> Result<(), Refusal> {
        let bytes = call.input.len();
        // One by itself may be as long as its own limit says.
        let sum = self.waiting_bytes.saturating_add(bytes);
        if self.waiting_bytes > 0 && sum > WAITING_BYTES {
            let message = format!(
                "{}: with these {bytes} bytes of input, the calls under way would have more than \
                 {WAITING_BYTES} bytes; await some first",
                call.tool
            );
            return Err(Refusal::Answer(self.undelivered(
                &call.tool,
                Undelivered::Call,
                message,
            )));
        }
        let Ok(input) = RawValue::from_string(call.input.as_str().to_owned()) else {
            return Err(Refusal::Violation("the input of a call is not JSON"));
        };
        // It is without the space around it.
        self.waiting_bytes += input.get().len();
        let abort = call.cancellable.then(|| {
            let (handle, registration) = AbortHandle::new_pair();
            // Of two calls with one number, which no honest worker makes, one can be cancelled.
            self.cancellable.insert(call.id, handle);
            registration
        });
        self.queue.push_back(Queued {
            id: call.id,
            abort,
            call: ScriptCall {
                function: call.tool.as_str().to_owned(),
                input,
                timeout: call.timeout_ms.map(Duration::from_millis),
                place: call.place,
            },
        });
        Ok(())
    }

    /// Drops a call, whether it has begun or not; one that is not there is nothing.
    pub(super) fn cancel(&mut self, id: u64) {
        if let Some(handle) = self.cancellable.get(&id) {
            handle.abort();
        }
    }

    /// Hands queued calls to the handler as far as there is room.
    pub(super) fn begin(&mut self) {
        while self.begun.len() < self.most {
            let Some(Queued { id, abort, call }) = self.queue.pop_front() else {
                return;
            };
            let input_bytes = call.input.get().len();
            let function = call.function.as_str().into();
            let answer =
                match abort {
                    None => {
                        let begun = catch_unwind(AssertUnwindSafe(|| self.handler.call(call)));
                        Answer::Plain(begun.unwrap_or_else(|_panic| {
                            std::future::ready(Err(host_failed())).boxed()
                        }))
                    }
                    // The handler hears of it when it is polled first, and so not at all if it was
                    // cancelled before its turn.
                    Some(registration) => {
                        let handler = Arc::clone(&self.handler);
                        let call = async move { handler.call(call).await };
                        Answer::Cancellable(Abortable::new(call.boxed(), registration))
                    }
                };
            self.begun.push(Begun {
                id,
                function,
                input_bytes,
                answer,
            });
        }
    }

    /// The next call that is answered or cancelled; pends for ever while the handler has none.
    pub(super) async fn next(&mut self) -> Answered {
        let (hush, begun) = (&self.hush, &mut self.begun);
        let next = poll_fn(|context| hush.poll(context, |context| begun.poll_next_unpin(context)));
        let Some((answered, input_bytes)) = next.await else {
            return pending().await;
        };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(input_bytes);
        if !self.cancellable.is_empty() {
            self.cancellable.remove(&answered.id);
        }
        answered
    }

    /// Drops all of them.
    pub(super) fn clear(&mut self) {
        self.begun = FuturesUnordered::new();
        self.queue.clear();
        self.cancellable.clear();
    }
}

impl Future for Begun {
    type Output = (Answered, usize);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A handler that panics is a bug of the host's, and no reason for the script to wait for
        // ever.
        let polled = catch_unwind(AssertUnwindSafe(|| match &mut self.answer {
            Answer::Plain(answer) => answer.as_mut().poll(context).map(Some),
            Answer::Cancellable(answer) => Pin::new(answer).poll(context).map(Result::ok),
        }));
        let outcome = ready!(polled.unwrap_or_else(|_panic| Poll::Ready(Some(Err(host_failed())))));
        let answered = Answered {
            id: self.id,
            function: std::mem::take(&mut self.function),
            outcome,
        };
        Poll::Ready((answered, self.input_bytes))
    }
}

/// How many bytes an error has.
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
    use super::*;

    /// Answers each call at once.
    struct Null;

    impl CallHandler for Null {
        fn call(&self, _call: ScriptCall) -> BoxFuture<'static, Outcome> {
            std::future::ready(Ok(RawValue::NULL.to_owned())).boxed()
        }
    }

    /// A call with so many bytes of input.
    fn call(bytes: usize) -> Call {
        Call {
            id: 1,
            timeout_ms: None,
            cancellable: false,
            place: None,
            tool: "f".into(),
            input: "1".repeat(bytes).into(),
        }
    }

    /// What the script catches in place of the call, if it is not taken.
    fn refused(calls: &mut Calls, bytes: usize) -> Option<String> {
        match calls.take(&call(bytes)) {
            Ok(()) => None,
            Err(Refusal::Answer(thrown)) => Some(thrown.message.to_string()),
            Err(Refusal::Violation(what)) => panic!("{what}"),
        }
    }

    #[tokio::test]
    async fn the_inputs_of_calls_under_way_are_bounded_together() {
        let mut calls = Calls::new(Arc::new(Null), 1);
        let quarter = WAITING_BYTES / 4;
        for _ in 0..4 {
            assert_eq!(refused(&mut calls, quarter), None);
        }
        let expected = "f: with these 1 bytes of input, the calls under way would have more than \
            67108864 bytes; await some first";
        assert_eq!(refused(&mut calls, 1).as_deref(), Some(expected));
        // Those that the handler has count like those that wait for their turn.
        calls.begin();
        assert!(refused(&mut calls, 1).is_some());
        calls.next().await;
        assert_eq!(refused(&mut calls, quarter), None);
        assert!(refused(&mut calls, 1).is_some());
    }

    #[tokio::test]
    async fn a_call_by_itself_may_have_more() {
        let mut calls = Calls::new(Arc::new(Null), 1);
        assert_eq!(refused(&mut calls, WAITING_BYTES + 1), None);
        assert!(refused(&mut calls, 1).is_some());
        calls.begin();
        calls.next().await;
        assert_eq!(refused(&mut calls, 1), None);
    }
}
