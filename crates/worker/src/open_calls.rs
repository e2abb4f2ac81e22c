//! The calls that the script waits for.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::host_channel::HostChannel;
use crate::ops::NewCall;
use callgate_sandbox::wire::{Call, WorkerFrame};

/// Maximum bytes of a call's frame besides its name and its input.
const FRAME_BYTES: usize = 64;

/// The calls of the script that have no answer yet.
pub(super) struct OpenCalls {
    channel: Arc<HostChannel>,
    last: Cell<u64>,
    open: RefCell<HashSet<u64>>,
    /// Cancelled calls that are not reported to the host yet.
    cancelled: RefCell<Vec<u64>>,
    /// Time with open calls, without the current wait.
    waited: Cell<Duration>,
    /// The start of the current wait.
    waits_since: Cell<Option<Instant>>,
}

impl OpenCalls {
    pub(super) fn new(channel: Arc<HostChannel>) -> Self {
        Self {
            channel,
            last: Cell::new(0),
            open: RefCell::default(),
            cancelled: RefCell::default(),
            waited: Cell::default(),
            waits_since: Cell::default(),
        }
    }

    /// Time with open calls, without the current wait.
    pub(super) fn waited(&self) -> Duration {
        self.waited.get()
    }

    /// Sends a call and returns its id. The script catches an error.
    pub(super) fn make(&self, call: NewCall) -> Result<u64, String> {
        let limit = self.channel.frame_bytes();
        let bytes = call.tool.len().saturating_add(call.input.len());
        if bytes.saturating_add(FRAME_BYTES) > limit {
            return Err(format!(
                "{}: the input is {} bytes of JSON, over the limit of {limit} bytes",
                call.tool,
                call.input.len()
            ));
        }
        let id = self.last.get() + 1;
        self.last.set(id);
        self.open.borrow_mut().insert(id);
        self.count();
        self.channel.send(WorkerFrame::Call(Call {
            id,
            timeout_ms: call.timeout_ms,
            cancellable: call.cancellable,
            place: call.place,
            tool: call.tool,
            input: call.input,
        }));
        Ok(id)
    }

    pub(super) fn cancel(&self, call: u64) {
        if self.settle(call) {
            self.cancelled.borrow_mut().push(call);
        }
    }

    /// Reports cancelled calls to the host at the end of a turn of the event loop. They are sent
    /// together, so that the host does not begin one of the calls in between.
    pub(super) fn send_cancels(&self) {
        let cancelled = self.cancelled.take();
        let frames = cancelled
            .into_iter()
            .map(|call| WorkerFrame::Cancel { call });
        self.channel.send_together(frames);
    }

    /// Removes a call that is answered or cancelled; false if the script did not wait for it.
    pub(super) fn settle(&self, call: u64) -> bool {
        let was_open = self.open.borrow_mut().remove(&call);
        self.count();
        was_open
    }

    fn count(&self) {
        let open = self.open.borrow().len();
        self.channel.calls.store(open, Ordering::Relaxed);
        match self.waits_since.get() {
            None if open > 0 => self.waits_since.set(Some(Instant::now())),
            Some(since) if open == 0 => {
                self.waits_since.set(None);
                self.waited.set(self.waited.get() + since.elapsed());
            }
            _ => {}
        }
    }
}
