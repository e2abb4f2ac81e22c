//! The steps of the jail that are single system calls.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
    RulesetAttr as _, RulesetStatus, Scope,
};

use super::failed;

/// The signal by which the host asks a worker to stop.
pub(crate) const STOP_SIGNAL: libc::c_int = libc::SIGTERM;

/// The newest Landlock ABI whose rights are handled.
const NEWEST_ABI: ABI = ABI::V7;

/// Resources that a worker never needs more of. Memory is bounded by the host, for each script.
const LIMITS: &[(libc::__rlimit_resource_t, libc::rlim_t)] = &[
    (libc::RLIMIT_CORE, 0),
    (libc::RLIMIT_FSIZE, 0),
    (libc::RLIMIT_NOFILE, 16),
    (libc::RLIMIT_MEMLOCK, 0),
    (libc::RLIMIT_MSGQUEUE, 0),
];

/// The namespaces that a worker makes for itself. Their order is that of the bits in `Ready`.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
];

/// Closes what came with the process, and ties its life to that of `host`.
pub(super) fn drop_inherited_access(host: u32) -> Result<(), String> {
    // SAFETY: system calls with numbers; the `rlimit` values live through their calls.
    unsafe {
        // All but the socket, the null device and the pipe for crash messages.
        check("close_range", libc::close_range(3, libc::c_uint::MAX, 0))?;
        // A session of its own has no controlling terminal, so `/dev/tty` cannot be opened.
        check("setsid", libc::setsid())?;
        check(
            "death signal",
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        )?;
        // The host may have died before the signal was asked for.
        if u32::try_from(libc::getppid()) != Ok(host) {
            return Err("the host is gone".to_owned());
        }
        for &(resource, most) in LIMITS {
            let limit = libc::rlimit {
                rlim_cur: most,
                rlim_max: most,
            };
            check("setrlimit", libc::setrlimit(resource, &raw const limit))?;
        }
        libc::umask(0o777);
        // Blocked in every thread there will be; one of them waits for it.
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, &stop_signals(), std::ptr::null_mut());
        check("sigmask", -blocked)
    }
}

/// Makes namespaces; the bits of those that were made. Where the kernel or a container refuses, the
/// worker goes on without them.
pub(super) fn unshare_namespaces() -> u8 {
    let flags = NAMESPACES.iter().fold(0, |flags, flag| flags | flag);
    // SAFETY: a system call with a number.
    if unsafe { libc::unshare(flags) } == 0 {
        (1 << NAMESPACES.len()) - 1
    } else {
        0
    }
}

/// Gives up capabilities, and the ways to get rights or be looked into.
pub(super) fn give_up_rights() -> Result<(), String> {
    /// `struct __user_cap_header_struct` and `__user_cap_data_struct` of linux/capability.h.
    #[repr(C)]
    struct Header {
        version: u32,
        pid: libc::c_int,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    // Effective, permitted and inheritable, twice 32 bits each.
    let none = [0_u32; 6];
    // SAFETY: system calls with numbers; `header` and `none` have the layout that version 3 says,
    // and live through the call.
    unsafe {
        let dropped = libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr());
        check("capset", dropped as libc::c_int)?;
        let privileges = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        check("no_new_privs", privileges)?;
        // No core dump, and no reading of this process by others of the same user.
        check("undumpable", libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
        // A change of rights takes the death signal away, so it is asked for once more.
        check(
            "death signal",
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        )
    }
}

/// Takes away every right that Landlock handles; the ABI version in force, or 0.
///
/// The rights of ABI 1 are a must, those of newer kernels are taken away where there are any.
pub(super) fn restrict_by_landlock() -> u8 {
    let restricted = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST_ABI))?
            .handle_access(AccessNet::from_all(NEWEST_ABI))?
            .scope(Scope::from_all(NEWEST_ABI))?
            .create()?
            .restrict_self()
    };
    match restricted() {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => effective_abi as u8,
            _ => 0,
        },
        _ => 0,
    }
}

/// True if the processor and the kernel have memory protection keys, as V8 finds out.
pub(super) fn has_protection_keys() -> bool {
    // SAFETY: system calls with numbers.
    unsafe {
        let key = libc::syscall(libc::SYS_pkey_alloc, 0, 0);
        key >= 0 && libc::syscall(libc::SYS_pkey_free, key) == 0
    }
}

/// Has the first refused system call named on standard error, before the process dies of it.
///
/// A filter that kills at once cannot say which call it was. This one traps: the call is not made,
/// the kernel calls the handler once (`SA_RESETHAND`), and making the call again kills the process.
pub(super) fn name_refused_calls() -> Result<(), String> {
    // SAFETY: zeros are a valid `sigaction`, the handler calls nothing but system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = name_call as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESETHAND | libc::SA_ONSTACK;
        let set = libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut());
        check("sigaction", set)
    }
}

/// Marks the line of standard error that holds the number of a refused system call.
pub(crate) const REFUSED_CALL: &str = "refused system call ";

extern "C" fn name_call(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    /// `si_syscall` in `siginfo_t` of 64-bit Linux, after three numbers, padding and an address.
    const SYSCALL_OFFSET: usize = 24;
    let mut line = [b' '; REFUSED_CALL.len() + 11];
    let (text, digits) = line.split_at_mut(REFUSED_CALL.len());
    text.copy_from_slice(REFUSED_CALL.as_bytes());
    // SAFETY: the kernel passes a `siginfo_t` of a SIGSYS, which has a number at this offset.
    let number = unsafe { info.byte_add(SYSCALL_OFFSET).cast::<u32>().read() };
    let mut rest = number;
    for digit in digits.iter_mut().rev().skip(1) {
        if rest == 0 {
            break;
        }
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if let Some(end) = line.last_mut() {
        *end = b'\n';
    }
    // SAFETY: writes `line`, which lives through the call; the second call is refused again, now
    // without a handler, and kills the process.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
        libc::syscall(libc::c_long::from(number));
        libc::_exit(1)
    }
}

/// Returns when the host has asked the worker to stop, which it may have done before.
pub(crate) fn wait_for_stop_signal() {
    let signals = stop_signals();
    let mut signal = 0;
    // SAFETY: both values live through the call.
    while unsafe { libc::sigwait(&raw const signals, &raw mut signal) } != 0 {}
}

/// Bytes of a page of memory.
pub(super) fn page_bytes() -> u64 {
    // SAFETY: a number in, a number out.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
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

fn check(step: &str, returned: libc::c_int) -> Result<(), String> {
    if returned < 0 {
        Err(failed(step))
    } else {
        Ok(())
    }
}
