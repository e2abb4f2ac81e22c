//! Last messages of a worker that cannot go on: memory is out, or it panicked.
//!
//! V8 ends the process when it cannot get the memory it needs. This module reports that to the host
//! first, so that the run ends at its limit and not as crashed.

use std::ffi::{c_char, c_int};
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use deno_core::v8;

use super::host_channel::HostChannel;

/// Memory counts as out if a block of this size cannot be mapped.
const LAST_BLOCK_BYTES: usize = 16 << 20;

/// The channel, and the limit of the heap. A static, because V8 passes no data to its callbacks.
static CHANNEL: OnceLock<(Arc<HostChannel>, usize)> = OnceLock::new();

/// Makes panics print their message to standard error without the place, which is a path of the
/// machine that the worker was built on.
pub(super) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or("unknown");
        let _ = writeln!(std::io::stderr(), "panic: {what}");
    }));
}

/// Makes the worker report to the host when memory is out, from now on.
pub(super) fn report_memory(isolate: &mut v8::Isolate, channel: Arc<HostChannel>, heap: usize) {
    let _ = CHANNEL.set((channel, heap));
    isolate.set_oom_error_handler(heap_is_out);
    // SAFETY: neither handler unwinds, and both live as long as the process. The handler of the
    // signal ends the process in any case, so that the interrupted code does not go on.
    unsafe {
        set_new_handler(allocation_failed);
        let handler = access_failed as *const () as libc::sighandler_t;
        libc::signal(libc::SIGSEGV, handler);
    }
    v8::V8::set_fatal_error_handler(|_file: &str, _line: i32, _message: &str| {
        send_if_memory_is_out();
    });
}

unsafe extern "C" {
    /// `std::set_new_handler` of the C++ library that is linked with V8.
    #[link_name = "_ZSt15set_new_handlerPFvvE"]
    fn set_new_handler(handler: extern "C" fn()) -> Option<extern "C" fn()>;
}

/// Called by V8 when its heap is out, just before it aborts the process.
unsafe extern "C" fn heap_is_out(_location: *const c_char, _details: &v8::OomDetails) {
    send_memory_limit();
}

/// Called when C++ code outside the heap gets no memory, which would abort the process.
extern "C" fn allocation_failed() {
    send_memory_limit();
    exit(1);
}

/// C code, ICU's above all, may use a null pointer when it gets no memory.
extern "C" fn access_failed(signal: c_int) {
    send_if_memory_is_out();
    // SAFETY: system calls with numbers. The signal is raised again and ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
    }
}

/// Called after a failed check of V8 or a failed access to memory, which can be caused by lack of
/// memory.
fn send_if_memory_is_out() {
    // SAFETY: makes and removes a mapping that touches no other memory.
    let has_memory = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let block = libc::mmap(std::ptr::null_mut(), LAST_BLOCK_BYTES, rights, flags, -1, 0);
        block != libc::MAP_FAILED && libc::munmap(block, LAST_BLOCK_BYTES) == 0
    };
    if !has_memory {
        send_memory_limit();
    }
}

fn send_memory_limit() {
    if let Some((channel, heap)) = CHANNEL.get() {
        channel.send_memory_limit(*heap, *heap);
        channel.flush();
    }
}

/// Ends the process without running destructors: shutting V8 down would take longer than the run of
/// a small script.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}
