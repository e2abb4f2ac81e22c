//! Sends frames to the host from any thread, and stops a stuck script.

use std::io::{IoSlice, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate_sandbox::wire::{
    Done, LeftTimer, LimitHit, OutputEnd, WorkerFrame, WorkerLimits, encode,
};
use deno_core::futures::task::AtomicWaker;
use deno_core::v8::IsolateHandle;

use super::console::Console;
use super::emits::Emits;
use super::failures::exit;
use super::jail;

/// Time until a terminated script is terminated again: deno_core lifts a termination while it
/// handles exceptions.
const TERMINATE_AGAIN: Duration = Duration::from_millis(50);

/// Bytes of a frame before the script's limits are known.
const FIRST_FRAME_BYTES: usize = 64 << 10;

/// The state that all threads of the worker share.
///
/// Its locks are those of the standard library, which allocate nothing: it is used when memory is
/// out.
pub(super) struct HostChannel {
    socket: Mutex<UnixStream>,
    console: Mutex<Console>,
    emits: Mutex<Emits>,
    /// Timers that an idle script waits for.
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

    pub(super) fn set_limits(&self, limits: &WorkerLimits) {
        *lock(&self.console) =
            Console::new(limits.output_bytes, limits.output_lines, limits.more_bytes);
        *lock(&self.emits) = Emits::new(limits.emits, limits.emit_bytes);
        self.frame_bytes
            .store(to_usize(limits.frame_bytes), Ordering::Relaxed);
        self.result_bytes
            .store(to_usize(limits.result_bytes), Ordering::Relaxed);
    }

    /// Maximum bytes of a frame.
    pub(super) fn frame_bytes(&self) -> usize {
        self.frame_bytes.load(Ordering::Relaxed)
    }

    /// Maximum bytes of the returned value.
    pub(super) fn result_bytes(&self) -> usize {
        self.result_bytes.load(Ordering::Relaxed)
    }

    /// True if the script is to be stopped.
    pub(super) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Acquire)
    }

    /// Makes the event loop stop the script.
    pub(super) fn set_terminated(&self) {
        self.terminated.store(true, Ordering::Release);
        self.wake.wake();
    }

    /// Sends a frame. An error ends the process: the host is gone.
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

    /// Adds a console message, and sends the part of it that goes to the host at once.
    pub(super) fn print(&self, message: String, missing: u64, is_error: bool) {
        let sent = lock(&self.console).push(message, missing, is_error);
        if let Some(text) = sent.head {
            self.send(WorkerFrame::Output { text, is_error });
        }
        if let Some(text) = sent.more {
            self.send(WorkerFrame::More { text, is_error });
        }
    }

    /// Sends a block, unless a limit is reached; the script catches the error.
    pub(super) fn emit(&self, block: String, data: &str) -> Result<(), String> {
        lock(&self.emits).take(&block, data)?;
        self.send(WorkerFrame::Emit { block });
        Ok(())
    }

    /// Sets the timers that the script waits for.
    pub(super) fn set_timers(&self, timers: Vec<LeftTimer>) {
        *lock(&self.timers) = timers;
    }

    /// Reports to the host that a memory limit is reached.
    pub(super) fn send_memory_limit(&self, limit: usize, observed: usize) {
        self.send(WorkerFrame::LimitHit(LimitHit {
            limit: limit as u64,
            observed: observed as u64,
        }));
    }

    /// Sends the end of the output, unless it has been sent, and then the end of the script.
    pub(super) fn finish(&self, done: Done) {
        self.flush();
        self.send(WorkerFrame::Done(done));
    }

    /// Sends the end of the output, once. The lock is held until it is sent, so that a second thread
    /// cannot send the script's end first.
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

    /// Stops the script, again and again; the host kills the process if that does not help.
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
        // The host's limit for frames is not known here. Frames that a script can make long are cut
        // before.
        self.write(&encode(&frame, usize::MAX).map_err(|_| ())?)
    }

    /// Writes all bytes with `writev`, the only system call for that in the jail.
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

pub(super) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Ignores poisoning: no code here panics between two changes that belong together.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
