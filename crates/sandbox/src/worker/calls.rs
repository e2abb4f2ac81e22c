//! The calls that the script waits for, and the frames of those that have not left.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::wire::{Call, Encoded, WorkerFrame};

use super::channel::{Channel, encode};
use super::exit;
use crate::ops::Made;

/// Calls, and bytes of calls, that are sent together at most.
const SENT_TOGETHER: usize = 64;
const SENT_TOGETHER_BYTES: usize = 64 << 10;

/// Bytes of a call's frame besides its name and its input, and some to spare.
const FRAME_BYTES: usize = 64;

/// What is known of the script's calls.
pub(super) struct Calls {
    channel: Arc<Channel>,
    /// The number of the last call.
    last: Cell<u64>,
    /// Those that the script waits for.
    open: RefCell<HashSet<u64>>,
    /// Whether a call was sent since the script last waited.
    has_called: Cell<bool>,
    unsent: RefCell<Unsent>,
}

/// Calls that a script makes without a wait between them, such as those of a `Promise.all`: the
/// first is sent at once, and the others together.
#[derive(Default)]
struct Unsent {
    frames: Vec<Encoded>,
    bytes: usize,
}

impl Calls {
    /// None yet.
    pub(super) fn new(channel: Arc<Channel>) -> Self {
        Self {
            channel,
            last: Cell::new(0),
            open: RefCell::default(),
            has_called: Cell::new(false),
            unsent: RefCell::default(),
        }
    }

    /// Sends a call, now or with others; an error is for the script to catch.
    pub(super) fn make(&self, made: Made) -> Result<u64, String> {
        let limit = self.channel.frame_bytes();
        let bytes = made.tool.len().saturating_add(made.input.len());
        if bytes.saturating_add(FRAME_BYTES) > limit {
            return Err(format!(
                "{}: the input is {} bytes of JSON, over the limit of {limit} bytes",
                made.tool,
                made.input.len()
            ));
        }
        let id = self.last.get() + 1;
        self.last.set(id);
        self.open.borrow_mut().insert(id);
        self.note_open();
        let frame = WorkerFrame::Call(Call {
            id,
            timeout_ms: made.timeout_ms,
            cancellable: made.cancellable,
            place: made.place,
            tool: made.tool.into(),
            input: made.input.into(),
        });
        if self.has_called.replace(true) {
            self.send_later(frame);
        } else {
            self.channel.send(frame);
        }
        Ok(id)
    }

    /// Has the host drop a call.
    pub(super) fn cancel(&self, call: u64) {
        if self.settle(call) {
            // After the call itself, which may not have left yet.
            self.send_later(WorkerFrame::Cancel { call });
        }
    }

    /// Takes it that the script waits for the call no longer; false if it did not.
    pub(super) fn settle(&self, call: u64) -> bool {
        let was_open = self.open.borrow_mut().remove(&call);
        self.note_open();
        was_open
    }

    /// The script waits: sends what is left.
    pub(super) fn send_rest(&self) {
        self.has_called.set(false);
        let unsent = self.unsent.take();
        if !unsent.frames.is_empty() && self.channel.write(&unsent.frames).is_err() {
            exit(1);
        }
    }

    fn send_later(&self, frame: WorkerFrame) {
        let Ok(frame) = encode(frame) else { exit(1) };
        let mut unsent = self.unsent.borrow_mut();
        unsent.bytes += frame.len();
        unsent.frames.push(frame);
        if unsent.bytes >= SENT_TOGETHER_BYTES || unsent.frames.len() >= SENT_TOGETHER {
            drop(unsent);
            self.send_rest();
            self.has_called.set(true);
        }
    }

    fn note_open(&self) {
        let open = self.open.borrow().len();
        self.channel.calls.store(open, Ordering::Relaxed);
    }
}
