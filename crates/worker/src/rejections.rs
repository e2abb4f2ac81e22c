//! Promises that were rejected and have no handler. At the end of a turn of the event loop, the first
//! of them becomes the script's error.

use std::cell::RefCell;

use deno_core::v8;

thread_local! {
    /// In the order of rejection. V8 passes no data to its callback.
    static REJECTED: RefCell<Vec<v8::Global<v8::Promise>>> = const { RefCell::new(Vec::new()) };
}

/// Takes the first rejection and drops the others: one is enough to end a run.
pub(super) fn take() -> Option<v8::Global<v8::Promise>> {
    let rejected = REJECTED.take();
    rejected.into_iter().next()
}

/// Called by V8 when a promise is rejected without a handler, or gets one later. It must run no
/// JavaScript.
pub(super) unsafe extern "C" fn promise_rejected(message: v8::PromiseRejectMessage<'_>) {
    v8::callback_scope!(unsafe scope, &message);
    let promise = message.get_promise();
    match message.get_event() {
        v8::PromiseRejectEvent::PromiseRejectWithNoHandler => {
            let promise = v8::Global::new(scope, promise);
            REJECTED.with_borrow_mut(|rejected| rejected.push(promise));
        }
        v8::PromiseRejectEvent::PromiseHandlerAddedAfterReject => {
            REJECTED.with_borrow_mut(|rejected| {
                // Searched from the end: most promises get their handler soon.
                if let Some(index) = rejected.iter().rposition(|other| *other == promise) {
                    rejected.remove(index);
                }
            });
        }
        v8::PromiseRejectEvent::PromiseRejectAfterResolved
        | v8::PromiseRejectEvent::PromiseResolveAfterResolved => {}
    }
}
