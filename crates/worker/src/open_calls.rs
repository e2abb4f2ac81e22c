//! The calls that the script waits for.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::host_channel::HostChannel;
use crate::ops::NewCall;
use callgate_sandbox::wire::{Call, WorkerFrame};

/// Bytes of a call's frame besides its name and its input, with some to spare.
const FRAME_BYTES: usize = 64;

/// The calls of the script that have no answer yet.
pub(super) struct OpenCalls {
    channel: Arc<HostChannel>,
    last: Cell<u64>,
    open: RefCell<HashSet<u64>>,
    /// Cancelled calls that the host is not told of yet.
    cancelled: RefCell<Vec<u64>>,
    /// The time with open calls that is over, and the beginning of that which is not.
    waited: Cell<Duration>,
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

    /// The time with open calls, up to the last time that there were none.
    pub(super) fn waited(&self) -> Duration {
        self.waited.get()
    }

    /// Sends a call and returns its number. The script catches an error.
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

    /// Tells the host which calls to drop, at the end of a turn of the script. All cancels leave
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
