//! The kernel layers of Linux that a worker puts around itself.

use std::fs::File;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
    RulesetAttr as _, RulesetStatus, Scope,
};

use super::access::check;
use super::filters;
use callgate_sandbox::wire::REFUSED_CALL;

/// The newest Landlock ABI whose rights are handled.
const NEWEST_ABI: ABI = ABI::V7;

/// The namespaces that a worker makes for itself, in the order of the bits in `Ready`.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
];

/// Closes all descriptors from this one on.
pub(super) fn close_from(first: libc::c_uint) -> Result<(), String> {
    // SAFETY: a system call with numbers.
    check("close_range", unsafe {
        libc::close_range(first, libc::c_uint::MAX, 0)
    })
}

/// Makes the kernel kill this process when the thread that started it ends.
pub(super) fn ask_for_death_signal() -> Result<(), String> {
    // SAFETY: a system call with numbers.
    let asked = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    check("death signal", asked)
}

/// Makes namespaces and returns their bits. Where the kernel or a container refuses, the worker
/// continues without them.
pub(super) fn unshare_namespaces() -> u8 {
    let flags = NAMESPACES.iter().fold(0, |flags, flag| flags | flag);
    // SAFETY: a system call with a number.
    if unsafe { libc::unshare(flags) } == 0 {
        (1 << NAMESPACES.len()) - 1
    } else {
        0
    }
}

/// Drops capabilities, and forbids gaining privileges and being inspected.
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
    // SAFETY: system calls with numbers; `header` and `none` have the layout of version 3, and live
    // through the call.
    unsafe {
        let dropped = libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr());
        check("capset", dropped as libc::c_int)?;
        let privileges = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        check("no_new_privs", privileges)?;
        // No core dump, and other processes of the same user cannot read this one.
        check("undumpable", libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
    }
    // A change of privileges resets the death signal.
    ask_for_death_signal()
}

/// Drops every right that Landlock handles; returns the ABI version in force, or 0.
///
/// The rights of ABI 1 are required; those of newer kernels are dropped where the kernel has them.
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

/// Opens the list of this process's mappings. Without it, memory cannot be bounded.
pub(super) fn open_maps() -> Result<Option<File>, String> {
    let maps = File::open("/proc/self/maps");
    maps.map(Some)
        .map_err(|error| format!("/proc/self/maps cannot be read: {error}"))
}

/// Unmaps address space that V8 reserves and does not use: 16 GiB for objects of C++ code, of which a
/// worker has hardly any. Returns the remaining bytes of address space, and those of private writable
/// memory, according to this process's `maps` (proc_pid_maps(5)).
///
/// A limit on address space bounds memory only if little of it was reserved before. If V8 needs more
/// than the rest of a reservation, it ends the process.
pub(super) fn release_reserved(maps: &str) -> (usize, usize) {
    const KEPT: usize = 256 << 20;
    const MAX_RESERVED: usize = 1 << 30;
    let (mut space, mut data) = (0, 0);
    for line in maps.lines() {
        let mut words = line.split(' ');
        let range = words.next().and_then(|range| range.split_once('-'));
        let (start, end) = range.unwrap_or_default();
        let bound = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let (start, mut end) = (bound(start), bound(end));
        let rights = words.next().unwrap_or_default();
        if rights == "---p" && end - start > MAX_RESERVED {
            let unused = std::ptr::without_provenance_mut(start + KEPT);
            // SAFETY: the mapping permits no access, so no code uses it.
            if unsafe { libc::munmap(unused, end - start - KEPT) } == 0 {
                end = start + KEPT;
            }
        }
        space += end - start;
        if rights.contains('w') && rights.ends_with('p') {
            data += end - start;
        }
    }
    (space, data)
}

/// Applies the filters for the start-up; true if they are in force.
pub(super) fn filter_start_up() -> bool {
    filters::apply_start_up().is_ok()
}

/// Applies the filters for the run of a script; true if they are in force.
pub(super) fn filter_run_time() -> bool {
    filters::apply_run_time().is_ok()
}

/// True if the processor and the kernel have memory protection keys. V8 makes the same test.
pub(super) fn has_protection_keys() -> bool {
    // SAFETY: system calls with numbers.
    unsafe {
        let key = libc::syscall(libc::SYS_pkey_alloc, 0, 0);
        key >= 0 && libc::syscall(libc::SYS_pkey_free, key) == 0
    }
}

/// Makes the process write the number of a refused system call to standard error before it is killed.
///
/// A filter that kills at once cannot report the call. This one traps: the call is not made, the
/// kernel calls the handler once (`SA_RESETHAND`), and making the call again kills the process.
pub(super) fn name_refused_calls() -> Result<(), String> {
    // SAFETY: zeros are a valid `sigaction`, and the handler only makes system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = name_call as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESETHAND | libc::SA_ONSTACK;
        let set = libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut());
        check("sigaction", set)
    }
}

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
