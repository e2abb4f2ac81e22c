//! Landlock and seccomp around the TypeScript process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use callgate_process::Restrictions;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

use super::{Confinement, LIMITS, LayerUse};
use crate::error::Unavailable;

/// The flags with which Go starts a thread, without `CLONE_SETTLS`, which it uses only on some
/// processors.
const THREAD: libc::c_int = {
    use libc::{CLONE_FILES, CLONE_FS, CLONE_SIGHAND, CLONE_SYSVSEM, CLONE_THREAD, CLONE_VM};
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD
};

/// System calls that are allowed with any arguments.
const ALLOWED: &[libc::c_long] = &[
    // The program is executed under the filter. Landlock allows no other.
    libc::SYS_execve,
    // Memory. Go returns and names parts of it.
    libc::SYS_munmap,
    libc::SYS_madvise,
    // Threads and locks.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_nanosleep,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_arch_prctl,
    // Signals, with which Go interrupts its own threads.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // Its pipes, and waiting for them.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    // The time, on machines where reading it takes a system call.
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    // Start-up needs the path of its own program and checks for its library. These calls tell whether
    // a path exists, and open nothing.
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_newfstatat,
];

/// The layers for one process.
pub(super) fn restrictions(
    confinement: Confinement,
    program: &Path,
) -> Result<Restrictions, Unavailable> {
    let lacks = |layer: &str, reason: &dyn fmt::Display| {
        Unavailable::Confinement(format!("the kernel lacks {layer}: {reason}"))
    };
    let landlock = match confinement.landlock {
        LayerUse::Off => None,
        layer => {
            let program =
                PathFd::new(program).map_err(|error| Unavailable::Start(error.to_string()))?;
            let ruleset = landlock(layer, program);
            Some(ruleset.map_err(|error| lacks("Landlock", &error))?)
        }
    };
    let seccomp = match (confinement.seccomp, has_seccomp()) {
        (LayerUse::Off, _) | (LayerUse::Optional, false) => None,
        (LayerUse::Required, false) => return Err(lacks("seccomp", &"it filters no calls")),
        (_, true) => Some(seccomp().map_err(|error| lacks("seccomp", &error))?),
    };
    Ok(Restrictions {
        limits: LIMITS,
        landlock,
        seccomp,
    })
}

/// A ruleset that only allows executing this program.
fn landlock(layer: LayerUse, program: PathFd) -> Result<RulesetCreated, RulesetError> {
    let level = match layer {
        LayerUse::Required => CompatLevel::HardRequirement,
        _ => CompatLevel::BestEffort,
    };
    Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(ABI::V1))?
        // Rights that newer kernels handle.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))?
        .handle_access(AccessNet::from_all(ABI::V6))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        // The kernel needs both rights to execute it.
        .add_rule(PathBeneath::new(
            program,
            AccessFs::Execute | AccessFs::ReadFile,
        ))
}

/// True if the kernel can filter system calls and answer them with an error.
fn has_seccomp() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail")
        .is_ok_and(|actions| actions.split_whitespace().any(|action| action == "errno"))
}

/// A filter that allows the calls of the Go runtime. Other calls fail with EPERM: a different version
/// of the runtime may try them and continue without them.
fn seccomp() -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let is = |argument, mask: u64, value: u64| {
        let operator = SeccompCmpOp::MaskedEq(mask);
        SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)
    };
    let has =
        |argument, value: libc::c_int| is(argument, u64::MAX, u64::from(value.unsigned_abs()));
    let lacks = |argument, flags: libc::c_int| is(argument, u64::from(flags.unsigned_abs()), 0);
    // Only private memory that is not executable.
    let private = [lacks(2, libc::PROT_EXEC)?, lacks(3, libc::MAP_SHARED)?];
    rules.insert(libc::SYS_mmap, vec![SeccompRule::new(private.into())?]);
    // Only threads, not processes.
    let besides = !u64::from(libc::CLONE_SETTLS.unsigned_abs());
    let thread = is(0, besides, u64::from(THREAD.unsigned_abs()));
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![thread?])?]);
    // Only the signal that processes ignore by default.
    let urgent = has(2, libc::SIGURG);
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![urgent?])?]);
    // Reading its own limits, not setting them.
    let read = [has(0, 0)?, has(2, 0)?];
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(read.into())?]);
    // Only the flags of its pipes.
    let flags = [libc::F_GETFD, libc::F_GETFL, libc::F_SETFL];
    let flags = flags.map(|command| SeccompRule::new(vec![has(1, command)?]));
    let flags = flags.into_iter().collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_fcntl, flags);
    SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::process::CommandExt as _;

    use super::*;

    /// A system call with its first arguments.
    type Probe = (libc::c_long, [usize; 4]);

    /// The calls that do not fail with `refusal` in a confined process.
    fn allowed(confinement: Confinement, refusal: libc::c_int, probes: Vec<Probe>) -> Vec<Probe> {
        let program = Path::new("/bin/true");
        let is_allowed = |probe: &Probe| {
            let (call, [a, b, c, d]) = *probe;
            let mut restrictions = restrictions(confinement, program).expect("the kernel has it");
            let code = move || {
                restrictions.enter()?;
                // SAFETY: the pointers among the arguments are null or to a text that outlives the
                // call; the effects of the call end with this child.
                let returned = unsafe { libc::syscall(call, a, b, c, d, 0, 0) };
                let error = io::Error::last_os_error().raw_os_error();
                let is_refused = returned == -1 && error == Some(refusal);
                let code = if is_refused { libc::ERANGE } else { libc::EDOM };
                Err(io::Error::from_raw_os_error(code))
            };
            // SAFETY: the code makes system calls only and allocates nothing.
            let spawned = unsafe { std::process::Command::new(program).pre_exec(code).spawn() };
            spawned.expect_err("the code fails").raw_os_error() != Some(libc::ERANGE)
        };
        probes.into_iter().filter(is_allowed).collect()
    }

    const SHELL: &std::ffi::CStr = c"/bin/sh";

    #[test]
    fn seccomp_refuses_system_calls_unneeded_by_go_runtime() {
        let confinement = Confinement {
            landlock: LayerUse::Off,
            seccomp: LayerUse::Required,
        };
        let shell = SHELL.as_ptr() as usize;
        let number = |value: libc::c_int| value as usize;
        let here = number(libc::AT_FDCWD);
        let executable = number(libc::PROT_READ | libc::PROT_EXEC);
        let writable = number(libc::PROT_READ | libc::PROT_WRITE);
        let private = number(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let shared = number(libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let stack_size = number(3);
        let probes = vec![
            // Files.
            (libc::SYS_openat, [here, shell, 0, 0]),
            (libc::SYS_unlinkat, [here, shell, 0, 0]),
            (libc::SYS_memfd_create, [shell, 0, 0, 0]),
            (libc::SYS_mount, [0; 4]),
            // The network and other processes' sockets.
            (libc::SYS_socket, [2, 1, 0, 0]),
            (libc::SYS_socketpair, [1, 1, 0, 0]),
            (libc::SYS_connect, [0; 4]),
            (libc::SYS_sendmsg, [1, 0, 0, 0]),
            (libc::SYS_io_uring_setup, [1, 0, 0, 0]),
            // Processes.
            (libc::SYS_clone, [number(libc::SIGCHLD), 0, 0, 0]),
            (
                libc::SYS_clone,
                [number(THREAD | libc::CLONE_NEWUSER), 0, 0, 0],
            ),
            (libc::SYS_clone3, [0; 4]),
            (libc::SYS_execveat, [here, shell, 0, 0]),
            (libc::SYS_unshare, [number(libc::CLONE_NEWUSER), 0, 0, 0]),
            (libc::SYS_setns, [0; 4]),
            (libc::SYS_setsid, [0; 4]),
            // Other processes.
            (libc::SYS_kill, [1, 0, 0, 0]),
            (libc::SYS_tkill, [1, number(libc::SIGURG), 0, 0]),
            (libc::SYS_tgkill, [1, 1, number(libc::SIGKILL), 0]),
            (libc::SYS_ptrace, [0; 4]),
            (libc::SYS_process_vm_readv, [1, 0, 0, 0]),
            (libc::SYS_process_vm_writev, [1, 0, 0, 0]),
            (libc::SYS_pidfd_open, [1, 0, 0, 0]),
            (libc::SYS_prlimit64, [1, stack_size, 0, 0]),
            (libc::SYS_fcntl, [0, number(libc::F_SETOWN), 1, 0]),
            // Its own confinement and memory.
            (libc::SYS_prlimit64, [0, stack_size, shell, 0]),
            (libc::SYS_prctl, [number(libc::PR_SET_DUMPABLE), 1, 0, 0]),
            (libc::SYS_mmap, [0, 4096, executable, private]),
            (libc::SYS_mmap, [0, 4096, writable, shared]),
            (libc::SYS_mprotect, [0, 4096, executable, 0]),
            // Parts of the kernel with many defects.
            (libc::SYS_userfaultfd, [0; 4]),
            (libc::SYS_bpf, [0; 4]),
            (libc::SYS_perf_event_open, [0; 4]),
            (libc::SYS_keyctl, [0; 4]),
            (libc::SYS_ioctl, [0, 0x5412, shell, 0]),
        ];
        assert_eq!(allowed(confinement, libc::EPERM, probes), []);
    }

    #[test]
    fn landlock_refuses_files_and_programs() {
        let confinement = Confinement {
            landlock: LayerUse::Required,
            seccomp: LayerUse::Off,
        };
        let shell = SHELL.as_ptr() as usize;
        let data = c"/etc/passwd".as_ptr() as usize;
        let here = libc::AT_FDCWD as usize;
        let write = libc::O_WRONLY as usize;
        let probes = vec![
            (libc::SYS_openat, [here, shell, 0, 0]),
            // Not a program: writing to a running one fails with a different error.
            (libc::SYS_openat, [here, data, write, 0]),
            (libc::SYS_unlinkat, [here, shell, 0, 0]),
            (libc::SYS_execve, [shell, 0, 0, 0]),
        ];
        assert_eq!(allowed(confinement, libc::EACCES, probes), []);
    }
}
