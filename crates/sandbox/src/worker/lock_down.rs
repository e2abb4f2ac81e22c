//! What a worker gives up before it does anything else.
//!
//! The kernel's own filters (seccomp, Landlock, namespaces) have their place here and are not there
//! yet; docs/limitations/sandbox.md says what that means.

/// The signal by which the host asks a worker to stop.
pub(crate) const STOP_SIGNAL: libc::c_int = libc::SIGTERM;

/// Gives up what can be given up before the first thread starts.
///
/// A step that the kernel refuses is left out: the host's watch over the process does not depend on
/// any of them.
pub(super) fn lock_down() {
    // SAFETY: plain system calls with numbers; no memory of this process is involved but the
    // `rlimit` values, which live through their calls.
    unsafe {
        // Everything but socket, null device and the pipe for crash messages. Descriptors that the
        // host's other libraries left open to children end here.
        libc::close_range(3, libc::c_uint::MAX, 0);
        // The worker dies with the thread that started it, which lives as long as its launcher.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        // No core dump, and no reading of this process's memory or environment by others of the
        // same user.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        for (resource, most) in [
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, 0),
            (libc::RLIMIT_NOFILE, 16),
            (libc::RLIMIT_MEMLOCK, 0),
            (libc::RLIMIT_MSGQUEUE, 0),
        ] {
            let limit = libc::rlimit {
                rlim_cur: most,
                rlim_max: most,
            };
            libc::setrlimit(resource, &raw const limit);
        }
        libc::umask(0o777);
        // Blocked in every thread there will be; one of them waits for it.
        libc::pthread_sigmask(libc::SIG_BLOCK, &stop_signals(), std::ptr::null_mut());
    }
}

/// Returns when the host has asked the worker to stop, which it may have done before.
pub(super) fn wait_for_stop_signal() {
    let signals = stop_signals();
    let mut signal = 0;
    // SAFETY: both values live through the call.
    while unsafe { libc::sigwait(&raw const signals, &raw mut signal) } != 0 {}
}

fn stop_signals() -> libc::sigset_t {
    let mut signals = std::mem::MaybeUninit::uninit();
    // SAFETY: the first call makes the set, the second adds to it.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), STOP_SIGNAL);
        signals.assume_init()
    }
}

/// Bounds what the process may allocate from now on, by whatever way: array buffers that grow in
/// place are counted by nothing else.
///
/// Reserved address space, of which V8 has much, does not count.
pub(super) fn limit_memory(bytes: u64) {
    let most = on_top(bytes);
    set_data_limit(libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    });
}

/// The same until [`limit_memory`] sets another bound.
pub(super) fn limit_memory_for_now(bytes: u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the value lives through the call.
    unsafe {
        libc::getrlimit(libc::RLIMIT_DATA, &raw mut limit);
    }
    limit.rlim_cur = on_top(bytes).min(limit.rlim_max);
    set_data_limit(limit);
}

/// So many bytes on top of what the process has.
fn on_top(bytes: u64) -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|statm| statm.split_whitespace().nth(5)?.parse::<u64>().ok())
        .unwrap_or(0);
    // SAFETY: a number in, a number out.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    pages.saturating_mul(page).saturating_add(bytes)
}

fn set_data_limit(limit: libc::rlimit) {
    // SAFETY: the value lives through the call.
    unsafe {
        libc::setrlimit(libc::RLIMIT_DATA, &raw const limit);
    }
}
