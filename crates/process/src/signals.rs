//! Signals of this process.

/// True if this process ignores SIGHUP, as `nohup` makes it do.
pub fn ignores_hangup() -> bool {
    // SAFETY: all zeros are a valid `sigaction`, and the call only reads the current one.
    unsafe {
        let mut known: libc::sigaction = std::mem::zeroed();
        let asked = libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut known);
        asked == 0 && known.sa_sigaction == libc::SIG_IGN
    }
}

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail with an error. Without
/// this, the kernel ends the process.
///
/// The signal gets a handler and is not ignored, so a child starts with the default for it.
pub fn survive_file_size_limit() {
    extern "C" fn handle(_signal: libc::c_int) {}
    let handler = handle as *const ();
    // SAFETY: the handler does nothing, so it can run at any point.
    unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
}
