//! The C library's allocator of this process.

/// Has all threads allocate from one heap, so that freed memory goes back to the system.
///
/// glibc gives each thread a heap of its own, and large results are freed by other threads than those
/// that made them: after a few, hundreds of megabytes stay. Other C libraries are left as they are.
pub fn use_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
