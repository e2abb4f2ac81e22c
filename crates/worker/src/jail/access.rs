//! Inherited access, which a worker drops first, and the signal that asks it to stop.

use std::io;

use callgate_sandbox::wire::STOP_SIGNAL;

/// A resource of `setrlimit`.
#[cfg(target_os = "linux")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_os = "linux"))]
type Resource = libc::c_int;

/// Limits for the whole life of a worker. The host sets limits of memory for each script.
const LIMITS: &[(Resource, libc::rlim_t)] = &[
    (libc::RLIMIT_CORE, 0),
    (libc::RLIMIT_FSIZE, 0),
    (libc::RLIMIT_NOFILE, 16),
    (libc::RLIMIT_MEMLOCK, 0),
    #[cfg(target_os = "linux")]
    (libc::RLIMIT_MSGQUEUE, 0),
];

/// Drops the terminal, resources and signals that the process inherited. Fails if `host`, its parent,
/// has ended.
pub(super) fn drop_inherited_access(host: u32) -> Result<(), String> {
    // SAFETY: system calls with numbers; the `rlimit` values live through their calls.
    unsafe {
        // A new session has no controlling terminal, so `/dev/tty` cannot be opened.
        check("setsid", libc::setsid())?;
        // The host may have died before the death signal was requested.
        if u32::try_from(libc::getppid()) != Ok(host) {
            return Err("the host is gone".to_owned());
        }
        for &(resource, max) in LIMITS {
            let limit = libc::rlimit {
                rlim_cur: max,
                rlim_max: max,
            };
            check("setrlimit", libc::setrlimit(resource, &raw const limit))?;
        }
        libc::umask(0o777);
        // Blocked in every later thread; one of them waits for it.
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, &stop_signals(), std::ptr::null_mut());
        check("sigmask", -blocked)
    }
}

/// Returns when the host has asked the worker to stop, even if it did so before the call.
pub(crate) fn wait_for_stop_signal() {
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

/// Turns an error of a system call into a message that names the step.
pub(super) fn check(step: &str, returned: libc::c_int) -> Result<(), String> {
    if returned < 0 {
        Err(format!("{step} failed: {}", io::Error::last_os_error()))
    } else {
        Ok(())
    }
}
