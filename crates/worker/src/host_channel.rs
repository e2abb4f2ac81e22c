//! Sends frames to the host from any thread, and stops a stuck script.

use std::cell::RefCell;
use std::io::{IoSlice, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate_sandbox::wire::{
    Done, LeftTimer, LimitHit, OutputEnd, ReturnValue, ScriptException, WorkerFrame, WorkerLimits,
    encode,
};
use deno_core::futures::task::AtomicWaker;
use deno_core::v8::{self, IsolateHandle};

use super::console::Console;
use super::emits::Emits;
use super::failures::exit;
use super::open_calls::OpenCalls;
use super::timers::Timers;
use super::{jail, rejections};
use crate::ops::{Link, NewCall, Told};

/// Time until a terminated script is terminated again: deno_core lifts a termination while it looks
/// at exceptions.
const TERMINATE_AGAIN: Duration = Duration::from_millis(50);

/// Bytes of a frame before the script's limits are known.
const FIRST_FRAME_BYTES: usize = 64 << 10;

/// The state that all threads of the worker share.
pub(super) struct HostChannel {
    socket: Mutex<UnixStream>,
    console: Mutex<Console>,
    emits: Mutex<Emits>,
    /// Timers that the script waits for, while it waits.
    timers: Mutex<Vec<LeftTimer>>,
    frame_bytes: AtomicUsize,
    result_bytes: AtomicUsize,
    terminated: AtomicBool,
    /// Calls that the script waits for.
    pub(super) calls: AtomicUsize,
    /// Wakes the event loop when the script is to be stopped while it waits.
    pub(super) wake: AtomicWaker,
}

impl HostChannel {
    /// A channel before the script is known. Until then frames are small.
    pub(super) fn new(socket: UnixStream) -> Arc<Self> {
        Arc::new(Self {
            socket: Mutex::new(socket),
            console: Mutex::new(Console::default()),
            emits: Mutex::default(),
            timers: Mutex::default(),
            frame_bytes: AtomicUsize::new(FIRST_FRAME_BYTES),
            result_bytes: AtomicUsize::new(0),
            terminated: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            wake: AtomicWaker::new(),
        })
    }

    /// Takes on the limits of the script.
    pub(super) fn set_limits(&self, limits: &WorkerLimits) {
        *lock(&self.console) =
            Console::new(limits.output_bytes, limits.output_lines, limits.more_bytes);
        *lock(&self.emits) = Emits::new(limits.emits, limits.emit_bytes);
        self.frame_bytes
            .store(to_usize(limits.frame_bytes), Ordering::Relaxed);
        self.result_bytes
            .store(to_usize(limits.result_bytes), Ordering::Relaxed);
    }

    /// Bytes that a frame may have.
    pub(super) fn frame_bytes(&self) -> usize {
        self.frame_bytes.load(Ordering::Relaxed)
    }

    /// True if the script is to be stopped.
    pub(super) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Acquire)
    }

    /// Tells the event loop that the script is to be stopped.
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

    /// Sends short frames with one write.
    pub(super) fn send_together(&self, frames: impl Iterator<Item = WorkerFrame>) {
        let mut bytes = Vec::new();
        for frame in frames {
            let Ok(frame) = encode(&frame, usize::MAX) else {
                exit(1)
            };
            bytes.extend(frame);
        }
        if self.write(&bytes).is_err() {
            exit(1);
        }
    }

    /// Says which timers the script waits for from now on.
    pub(super) fn set_timers(&self, timers: Vec<LeftTimer>) {
        *lock(&self.timers) = timers;
    }

    /// Tells the host that the heap has reached its limit.
    pub(super) fn send_memory_limit(&self, limit: usize, observed: usize) {
        self.send(WorkerFrame::LimitHit(LimitHit {
            limit: limit as u64,
            observed: observed as u64,
        }));
    }

    /// Sends the end of the output, unless it has been sent, and then how the script ended.
    pub(super) fn finish(&self, done: Done) {
        self.flush();
        self.send(WorkerFrame::Done(done));
    }

    /// Sends the end of the output, once. The lock is held until it is sent: of two threads, the one
    /// that comes second must not send the script's end first.
    pub(super) fn flush(&self) {
        let mut console = lock(&self.console);
        if let Some(end) = console.close() {
            self.send(WorkerFrame::OutputEnd(OutputEnd {
                timers: std::mem::take(&mut lock(&self.timers)),
                ..end
            }));
        }
    }

    /// Starts a thread that stops the script when the host asks for it: the isolate's own thread may
    /// be busy with the script.
    pub(super) fn stop_when_asked(self: &Arc<Self>, isolate: IsolateHandle) -> std::io::Result<()> {
        let channel = Arc::clone(self);
        std::thread::Builder::new()
            .name("stop".to_owned())
            .spawn(move || {
                jail::wait_for_stop_signal();
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
        // The host's limit for frames is not known here. The frames that a script can make long are
        // cut before.
        self.write(&encode(&frame, usize::MAX).map_err(|_| ())?)
    }

    /// Writes all bytes with `writev`, the one system call for it that the jail allows.
    fn write(&self, mut bytes: &[u8]) -> Result<(), ()> {
        let mut socket = lock(&self.socket);
        while !bytes.is_empty() {
            match socket.write_vectored(&[IoSlice::new(bytes)]) {
                Ok(0) => return Err(()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(()),
            }
        }
        Ok(())
    }
}

/// The channel and the calls as the ops see them.
pub(super) struct IsolateLink {
    pub(super) channel: Arc<HostChannel>,
    /// The end of the run, once it is known.
    pub(super) done: RefCell<Option<Done>>,
    /// The returned value, while calls that the script did not await are under way.
    pub(super) returned: RefCell<Option<ReturnValue>>,
    pub(super) calls: OpenCalls,
    pub(super) timers: Timers,
}

impl IsolateLink {
    pub(super) fn new(channel: Arc<HostChannel>) -> Self {
        Self {
            calls: OpenCalls::new(Arc::clone(&channel)),
            channel,
            done: RefCell::new(None),
            returned: RefCell::new(None),
            timers: Timers::default(),
        }
    }
}

impl Link for IsolateLink {
    fn call(&self, call: NewCall) -> Result<u64, String> {
        self.calls.make(call)
    }

    fn cancel(&self, call: u64) {
        self.calls.cancel(call);
    }

    fn print(&self, message: String, missing: u64) {
        let sent = lock(&self.channel.console).push(message, missing);
        if let Some(text) = sent.head {
            self.channel.send(WorkerFrame::Output { text });
        }
        if let Some(text) = sent.more {
            self.channel.send(WorkerFrame::More { text });
        }
    }

    fn emit(&self, block: String, data: &str) -> Result<(), String> {
        lock(&self.channel.emits).take(&block, data)?;
        self.channel.send(WorkerFrame::Emit { block });
        Ok(())
    }

    fn set_timer(&self, timer: u64, after_ms: f64, kind: u32, line: u32) {
        let is_late = self.returned.borrow().is_some();
        self.timers.set(timer, after_ms, kind, line, is_late);
    }

    fn clear_timer(&self, timer: u64) {
        self.timers.clear(timer);
    }

    fn take_rejected(&self) -> Option<v8::Global<v8::Promise>> {
        rejections::take()
    }

    fn done(&self, told: Told) {
        let limit = self.channel.result_bytes.load(Ordering::Relaxed);
        let value = match told.kind {
            0 => Some(ReturnValue::Undefined),
            1 => Some(cut(told.text, limit, ReturnValue::Json)),
            2 => Some(cut(told.text, limit, ReturnValue::Shown)),
            _ => {
                // The first end counts.
                self.done
                    .borrow_mut()
                    .get_or_insert(Done::Threw(ScriptException {
                        name: told.name,
                        message: told.text,
                        line: told.line,
                        column: told.column,
                        stack: told.stack,
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
fn cut(text: String, limit: usize, whole: impl FnOnce(String) -> ReturnValue) -> ReturnValue {
    if text.len() <= limit {
        return whole(text);
    }
    let head = text.floor_char_boundary(limit / 2);
    let tail = text.ceil_char_boundary(text.len() - (limit - limit / 2).min(text.len()));
    ReturnValue::Cut {
        head: text.get(..head).unwrap_or_default().into(),
        tail: text.get(tail..).unwrap_or_default().into(),
        total_bytes: text.len() as u64,
    }
}

pub(super) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A panic while a lock is held leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
