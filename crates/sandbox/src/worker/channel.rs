//! The worker's end of the socket: frames out from any thread, frames in on a thread of their own,
//! so that a stuck script can be stopped and what it printed can still be sent.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate_wire::{
    Call, Decoder, Done, Exception, HostFrame, Level, LimitHit, Output, OutputEnd, ReturnValue,
    Start, Text, Thrown, ToWire, WhichLimit, WorkerFrame, WorkerLimits,
};
use deno_core::futures::task::AtomicWaker;
use deno_core::v8::IsolateHandle;
use tokio::sync::oneshot;

use super::capture::Capture;
use super::exit;
use crate::ops::{Link, Receiver, Told};

/// How often a terminated script is terminated again: deno_core lifts a termination while it looks
/// at exceptions.
const TERMINATE_AGAIN: Duration = Duration::from_millis(50);

/// Room to read into at once.
const READ_BYTES: usize = 64 << 10;

/// What all threads of the worker share.
pub(super) struct Channel {
    socket: Mutex<UnixStream>,
    capture: Mutex<Capture>,
    replies: Mutex<HashMap<u64, oneshot::Sender<Result<Text, Thrown>>>>,
    next_call: AtomicU64,
    frame_bytes: AtomicUsize,
    result_bytes: AtomicUsize,
    terminated: AtomicBool,
    /// Wakes the event loop when the script is to be stopped while it waits.
    pub(super) wake: AtomicWaker,
}

impl Channel {
    /// A channel that has not got its script yet. Until then frames are small.
    pub(super) fn new(socket: UnixStream) -> Arc<Self> {
        Arc::new(Self {
            socket: Mutex::new(socket),
            capture: Mutex::new(Capture::default()),
            replies: Mutex::new(HashMap::new()),
            next_call: AtomicU64::new(1),
            frame_bytes: AtomicUsize::new(READ_BYTES),
            result_bytes: AtomicUsize::new(0),
            terminated: AtomicBool::new(false),
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

    /// Reads frames until the host is gone, on a thread of its own.
    ///
    /// The script goes to `start`, replies to whoever waits for them.
    pub(super) fn read(
        self: &Arc<Self>,
        mut socket: UnixStream,
        start: oneshot::Sender<Start>,
        isolate: IsolateHandle,
        max_frame: usize,
    ) -> std::io::Result<()> {
        let channel = Arc::clone(self);
        std::thread::Builder::new()
            .name("socket".to_owned())
            .spawn(move || {
                let mut start = Some(start);
                let mut decoder = Decoder::<HostFrame>::new(max_frame);
                loop {
                    match decoder.next() {
                        Ok(Some(HostFrame::Start(job))) => {
                            if start.take().is_none_or(|start| start.send(job).is_err()) {
                                exit(1);
                            }
                        }
                        Ok(Some(HostFrame::Reply(reply))) => {
                            let waiting = lock(&channel.replies).remove(&reply.call);
                            if let Some(waiting) = waiting {
                                // A script that has ended waits for nothing.
                                let _gone = waiting.send(reply.outcome);
                            }
                        }
                        Ok(Some(HostFrame::Terminate { reason: _ })) => channel.terminate(&isolate),
                        Ok(None) => {
                            if !receive(&mut socket, &mut decoder) {
                                exit(0);
                            }
                        }
                        Err(_) => exit(1),
                    }
                }
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
        // The host reads everything this end may send, so its limit is not this one's to hold; the
        // frames that a script can make long are cut before they come here.
        let frame = frame.encode(usize::MAX).map_err(|_| ())?;
        let mut slices = frame.slices().map(IoSlice::new);
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

/// The channel as the ops see it.
pub(super) struct IsolateLink {
    pub(super) channel: Arc<Channel>,
    /// The end of the run, once it is known.
    pub(super) done: RefCell<Option<Done>>,
    /// What the script returned, as long as calls that it left alone are under way.
    pub(super) returned: RefCell<Option<ReturnValue>>,
    /// Calls whose replies have not reached the script.
    pub(super) calls: Cell<usize>,
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
        let id = self.channel.next_call.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        lock(&self.channel.replies).insert(id, sender);
        self.channel.send(WorkerFrame::Call(Call {
            id,
            tool: tool.into(),
            input: input.into(),
        }));
        self.calls.set(self.calls.get() + 1);
        Ok(receiver)
    }

    fn answered(&self) {
        self.calls.set(self.calls.get().saturating_sub(1));
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

fn receive(socket: &mut UnixStream, decoder: &mut Decoder<HostFrame>) -> bool {
    let buffer = decoder.space(READ_BYTES);
    let filled = buffer.len();
    buffer.resize(buffer.capacity().min(filled + (4 << 20)), 0);
    let Some(room) = buffer.get_mut(filled..) else {
        return false;
    };
    loop {
        match socket.read(room) {
            Ok(read) => {
                buffer.truncate(filled + read);
                return read > 0;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A panic while a lock is held leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
