//! The C library's allocator of this process.

/// Makes all threads allocate from one heap, so that freed memory returns to the system.
///
/// glibc gives each thread its own heap, and large results are freed by other threads than those that
/// allocated them: after a few, hundreds of megabytes stay in use. No effect with other C libraries.
pub fn use_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a parameter of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
