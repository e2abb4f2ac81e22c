//! Signals that this process inherited as ignored.

/// True if this process ignores SIGHUP, as `nohup` makes it do.
pub fn ignores_hangup() -> bool {
    // SAFETY: all zeros are a valid `sigaction`, and the call only reads the current one.
    unsafe {
        let mut known: libc::sigaction = std::mem::zeroed();
        let asked = libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut known);
        asked == 0 && known.sa_sigaction == libc::SIG_IGN
    }
}
