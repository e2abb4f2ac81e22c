//! Memory of array buffers, which V8's heap limit does not bound.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deno_core::v8;

/// Counts the bytes of all array buffers, and refuses a buffer over the limit; the script then gets
/// a `RangeError`.
pub(super) struct BufferLimit {
    used: AtomicUsize,
    limit: AtomicUsize,
    /// Bytes of all buffers including the last one that was refused; 0 until then.
    refused: AtomicUsize,
}

impl BufferLimit {
    /// A counter without a limit until [`Self::set`].
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
            refused: AtomicUsize::new(0),
        })
    }

    pub(super) fn set(&self, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// The limit and the bytes of all buffers including a refused one, if there was one.
    pub(super) fn refused(&self) -> Option<(usize, usize)> {
        match self.refused.load(Ordering::Relaxed) {
            0 => None,
            observed => Some((self.limit.load(Ordering::Relaxed), observed)),
        }
    }

    pub(super) fn allocator(self: &Arc<Self>) -> v8::UniqueRef<v8::Allocator> {
        // SAFETY: the handle is an `Arc` turned into a pointer, and `drop` of the table turns it
        // back; the functions of the table take that same type.
        unsafe { v8::new_rust_allocator(Arc::into_raw(Arc::clone(self)), &TABLE) }
    }

    fn take(&self, bytes: usize) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let order = Ordering::Relaxed;
        let taken = self.used.fetch_update(order, order, |used| {
            used.checked_add(bytes).filter(|used| *used <= limit)
        });
        if let Err(used) = taken {
            self.refused.store(used.saturating_add(bytes), order);
        }
        taken.is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn allocate(&self, bytes: usize, zeroed: bool) -> *mut c_void {
        if !self.take(bytes) {
            return std::ptr::null_mut();
        }
        // An empty buffer still needs its own address.
        let size = bytes.max(1);
        // SAFETY: sizes are not zero; the result is checked.
        let memory = unsafe {
            if zeroed {
                libc::calloc(size, 1)
            } else {
                libc::malloc(size)
            }
        };
        if memory.is_null() {
            self.give_back(bytes);
        }
        memory
    }
}

static TABLE: v8::RustAllocatorVtable<BufferLimit> = v8::RustAllocatorVtable {
    allocate,
    allocate_uninitialized,
    free,
    drop,
};

unsafe extern "C" fn allocate(buffers: &BufferLimit, bytes: usize) -> *mut c_void {
    buffers.allocate(bytes, true)
}

unsafe extern "C" fn allocate_uninitialized(buffers: &BufferLimit, bytes: usize) -> *mut c_void {
    buffers.allocate(bytes, false)
}

unsafe extern "C" fn free(buffers: &BufferLimit, memory: *mut c_void, bytes: usize) {
    // SAFETY: V8 gives back what `allocate` gave out, once.
    unsafe { libc::free(memory) };
    buffers.give_back(bytes);
}

unsafe extern "C" fn drop(buffers: *const BufferLimit) {
    // SAFETY: the pointer came from `Arc::into_raw` in `allocator`, and V8 drops it once.
    std::mem::drop(unsafe { Arc::from_raw(buffers) });
}
