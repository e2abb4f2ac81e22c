//! Frames from the worker to the host, out of any thread, and what stops a stuck script.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{IoSlice, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate_wire::{
    Call, Done, Encoded, Exception, Level, LimitHit, Output, OutputEnd, Reply, ReturnValue, Text,
    Thrown, ToWire, WhichLimit, WorkerFrame, WorkerLimits,
};
use deno_core::futures::task::AtomicWaker;
use deno_core::v8::IsolateHandle;
use tokio::sync::oneshot;

use super::capture::Capture;
use super::{exit, lock_down};
use crate::ops::{Link, Receiver, Told};

/// How often a terminated script is terminated again: deno_core lifts a termination while it looks
/// at exceptions.
const TERMINATE_AGAIN: Duration = Duration::from_millis(50);

/// Bytes of a frame before the script's limits are known.
const FIRST_FRAME_BYTES: usize = 64 << 10;

/// Calls, and bytes of calls, that are sent together at most.
const SENT_TOGETHER: usize = 64;
const SENT_TOGETHER_BYTES: usize = 64 << 10;

/// What all threads of the worker share.
pub(super) struct Channel {
    socket: Mutex<UnixStream>,
    capture: Mutex<Capture>,
    frame_bytes: AtomicUsize,
    result_bytes: AtomicUsize,
    terminated: AtomicBool,
    /// Calls whose replies have not reached the script.
    pub(super) calls: AtomicUsize,
    /// Wakes the event loop when the script is to be stopped while it waits.
    pub(super) wake: AtomicWaker,
}

impl Channel {
    /// A channel that has not got its script yet. Until then frames are small.
    pub(super) fn new(socket: UnixStream) -> Arc<Self> {
        Arc::new(Self {
            socket: Mutex::new(socket),
            capture: Mutex::new(Capture::default()),
            frame_bytes: AtomicUsize::new(FIRST_FRAME_BYTES),
            result_bytes: AtomicUsize::new(0),
            terminated: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            wake: AtomicWaker::new(),
        })
    }

    /// Takes on the limits of the script.
    pub(super) fn set_limits(&self, limits: &WorkerLimits) {
        *lock(&self.capture) = Capture::new(limits.output_bytes, limits.output_lines);
        self.frame_bytes
            .store(to_usize(limits.frame_bytes), Ordering::Relaxed);
        self.result_bytes
            .store(to_usize(limits.result_bytes), Ordering::Relaxed);
    }

    /// Whether the script is to be stopped.
    pub(super) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Acquire)
    }

    /// Has the event loop see that the script is to be stopped.
    pub(super) fn set_terminated(&self) {
        self.terminated.store(true, Ordering::Release);
        self.wake.wake();
    }

    /// Sends a frame. Without a host there is nothing left to do, so an error ends the process.
    pub(super) fn send(&self, frame: WorkerFrame) {
        if self.try_send(frame).is_err() {
            exit(1);
        }
    }

    /// Tells the host that the heap has reached its limit.
    pub(super) fn send_memory_limit(&self, limit: usize, observed: usize) {
        self.send(WorkerFrame::LimitHit(LimitHit {
            which: WhichLimit::Memory,
            limit: limit as u64,
            observed: observed as u64,
        }));
    }

    /// Sends the end of the output, unless it has been sent, and then how the script ended.
    pub(super) fn finish(&self, done: Done) {
        self.flush();
        self.send(WorkerFrame::Done(done));
    }

    /// Sends the end of the output, once.
    pub(super) fn flush(&self) {
        let rest = lock(&self.capture).close();
        if let Some(rest) = rest {
            self.send(WorkerFrame::OutputEnd(OutputEnd {
                cut_bytes: rest.cut_bytes,
                cut_lines: rest.cut_lines,
                tail: rest.tail.into(),
            }));
        }
    }

    /// Has the script stopped when the host asks for it, by a thread that waits for nothing else: the
    /// isolate's own thread may be busy with the script.
    pub(super) fn stop_when_asked(self: &Arc<Self>, isolate: IsolateHandle) -> std::io::Result<()> {
        let channel = Arc::clone(self);
        std::thread::Builder::new()
            .name("stop".to_owned())
            .spawn(move || {
                lock_down::wait_for_stop_signal();
                channel.terminate(&isolate)
            })?;
        Ok(())
    }

    /// Stops the script, for as long as the process lives; the host ends it if this does not.
    fn terminate(&self, isolate: &IsolateHandle) -> ! {
        self.set_terminated();
        isolate.terminate_execution();
        self.flush();
        loop {
            isolate.terminate_execution();
            self.wake.wake();
            std::thread::sleep(TERMINATE_AGAIN);
        }
    }

    fn try_send(&self, frame: WorkerFrame) -> Result<(), ()> {
        self.write(&[encode(frame)?])
    }

    /// Writes frames one after the other, and nothing between them.
    fn write(&self, frames: &[Encoded]) -> Result<(), ()> {
        let mut slices: Vec<_> = frames
            .iter()
            .flat_map(|frame| frame.slices().map(IoSlice::new))
            .collect();
        let mut slices = slices.as_mut_slice();
        let mut socket = lock(&self.socket);
        while !slices.is_empty() {
            match socket.write_vectored(slices) {
                Ok(0) => return Err(()),
                Ok(written) => IoSlice::advance_slices(&mut slices, written),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(()),
            }
        }
        Ok(())
    }
}

fn encode(frame: WorkerFrame) -> Result<Encoded, ()> {
    // The host reads everything this end may send, so its limit is not this one's to hold; the
    // frames that a script can make long are cut before they come here.
    frame.encode(usize::MAX).map_err(|_| ())
}

/// The channel as the ops see it.
pub(super) struct IsolateLink {
    pub(super) channel: Arc<Channel>,
    /// The end of the run, once it is known.
    pub(super) done: RefCell<Option<Done>>,
    /// What the script returned, as long as calls that it left alone are under way.
    pub(super) returned: RefCell<Option<ReturnValue>>,
    /// Who waits for the reply to which call.
    pub(super) replies: RefCell<HashMap<u64, oneshot::Sender<Result<Text, Thrown>>>>,
    /// The number of the last call.
    pub(super) last_call: Cell<u64>,
    /// Whether a call was sent since the script last waited.
    has_called: Cell<bool>,
    /// Calls that are not sent yet.
    unsent: RefCell<Unsent>,
}

/// Calls that a script makes without a wait between them, such as those of a `Promise.all`: the
/// first is sent at once, and the others together.
#[derive(Default)]
struct Unsent {
    frames: Vec<Encoded>,
    bytes: usize,
}

impl IsolateLink {
    /// Nothing has happened yet.
    pub(super) fn new(channel: Arc<Channel>) -> Self {
        Self {
            channel,
            done: RefCell::new(None),
            returned: RefCell::new(None),
            replies: RefCell::new(HashMap::new()),
            last_call: Cell::new(0),
            has_called: Cell::new(false),
            unsent: RefCell::default(),
        }
    }

    /// The script waits: sends the calls that are left.
    pub(super) fn send_calls(&self) {
        self.has_called.set(false);
        let unsent = self.unsent.take();
        if !unsent.frames.is_empty() && self.channel.write(&unsent.frames).is_err() {
            exit(1);
        }
    }

    fn send_call(&self, call: Call) {
        let call = WorkerFrame::Call(call);
        if !self.has_called.replace(true) {
            self.channel.send(call);
            return;
        }
        let Ok(frame) = encode(call) else { exit(1) };
        let mut unsent = self.unsent.borrow_mut();
        unsent.bytes += frame.len();
        unsent.frames.push(frame);
        if unsent.bytes >= SENT_TOGETHER_BYTES || unsent.frames.len() >= SENT_TOGETHER {
            drop(unsent);
            self.send_calls();
            self.has_called.set(true);
        }
    }

    /// Hands a reply to the call that waits for it.
    pub(super) fn reply(&self, reply: Reply) {
        let waiting = self.replies.borrow_mut().remove(&reply.call);
        if let Some(waiting) = waiting {
            // A script that has ended waits for nothing.
            let _gone = waiting.send(reply.outcome);
        }
    }
}

impl Link for IsolateLink {
    fn call(&self, tool: String, input: String) -> Result<Receiver, String> {
        let limit = self.channel.frame_bytes.load(Ordering::Relaxed);
        if tool.len().saturating_add(input.len()).saturating_add(64) > limit {
            return Err(format!(
                "{tool}: the input is {} bytes of JSON, over the limit of {limit} bytes",
                input.len()
            ));
        }
        let id = self.last_call.get() + 1;
        self.last_call.set(id);
        let (sender, receiver) = oneshot::channel();
        self.replies.borrow_mut().insert(id, sender);
        self.send_call(Call {
            id,
            tool: tool.into(),
            input: input.into(),
        });
        self.channel.calls.fetch_add(1, Ordering::Relaxed);
        Ok(receiver)
    }

    fn answered(&self) {
        self.channel.calls.fetch_sub(1, Ordering::Relaxed);
    }

    fn print(&self, level: u8, message: String) {
        let level = match level {
            0 => Level::Debug,
            2 => Level::Info,
            3 => Level::Warn,
            4 => Level::Error,
            _ => Level::Log,
        };
        let head = lock(&self.channel.capture).push(message);
        if let Some(text) = head {
            self.channel.send(WorkerFrame::Output(Output {
                level,
                text: text.into(),
            }));
        }
    }

    fn done(&self, told: Told) {
        let limit = self.channel.result_bytes.load(Ordering::Relaxed);
        let value = match told.kind {
            0 => Some(ReturnValue::Undefined),
            1 => Some(cut(told.text, limit, ReturnValue::Json)),
            2 => Some(cut(told.text, limit, ReturnValue::Shown)),
            _ => {
                // The first end counts.
                self.done.borrow_mut().get_or_insert(Done::Threw(Exception {
                    name: told.name.into(),
                    message: told.text.into(),
                    line: told.line,
                    column: told.column,
                    stack: told.stack.into(),
                }));
                None
            }
        };
        if let Some(value) = value {
            self.returned.borrow_mut().get_or_insert(value);
        }
        self.channel.wake.wake();
    }
}

/// The value in whole, or its head and tail if it is over the limit.
fn cut(text: String, limit: usize, whole: impl FnOnce(Text) -> ReturnValue) -> ReturnValue {
    if text.len() <= limit {
        return whole(text.into());
    }
    let head = text.floor_char_boundary(limit / 2);
    let tail = text.ceil_char_boundary(text.len() - (limit - limit / 2).min(text.len()));
    ReturnValue::Cut {
        head: text.get(..head).unwrap_or_default().into(),
        tail: text.get(tail..).unwrap_or_default().into(),
        total_bytes: text.len() as u64,
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A panic while a lock is held leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
