//! The system calls that a worker may make, with reasons.
//!
//! A call that is not in this table kills the process. A call with a refused argument returns an
//! error, because V8 or glibc may try it and continue without it. The filters compare numbers and
//! check the architecture; calls of the x32 ABI have numbers that are not here.

/// The answer of a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    Allow,
    /// The call returns this error if one of the tests holds; otherwise it is made.
    Unless(&'static [Test], i32),
    /// The call returns this error.
    Error(i32),
    /// The process is killed.
    Kill,
}

/// A test of one argument, given by its index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Test {
    /// The argument has a bit that is not among these.
    OtherBits(u8, u64),
    /// The argument, a 32-bit number, has this value.
    Is(u8, u32),
    /// The argument has none of these values.
    IsNone(u8, &'static [u64]),
    /// The argument is not the id of this process.
    IsOther(u8),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) number: libc::c_long,
    /// While V8 and the isolate are made.
    pub(super) start_up: Verdict,
    /// While a script runs.
    pub(super) run_time: Verdict,
}

/// All calls that do not kill the process.
pub(super) fn table() -> impl Iterator<Item = &'static Call> {
    CALLS.iter().chain(CALLS_OF_X86_64)
}

const fn call(number: libc::c_long, start_up: Verdict, run_time: Verdict) -> Call {
    Call {
        number,
        start_up,
        run_time,
    }
}

const fn always(number: libc::c_long) -> Call {
    call(number, Verdict::Allow, Verdict::Allow)
}

const fn start_up_only(number: libc::c_long) -> Call {
    call(number, Verdict::Allow, Verdict::Kill)
}

/// Allowed at start-up; returns an error while a script runs.
const fn refused_later(number: libc::c_long) -> Call {
    call(number, Verdict::Allow, Verdict::Error(libc::EACCES))
}

/// Returns `EACCES`, as for a file without permissions.
const fn hidden(number: libc::c_long) -> Call {
    let refused = Verdict::Error(libc::EACCES);
    call(number, refused, refused)
}

/// Allowed at start-up; with these arguments, `EPERM` while a script runs.
const fn narrowed(number: libc::c_long, refused: &'static [Test]) -> Call {
    let narrowed = Verdict::Unless(refused, libc::EPERM);
    call(number, Verdict::Allow, narrowed)
}

/// With these arguments, `EPERM` at any time.
const fn limited(number: libc::c_long, refused: &'static [Test]) -> Call {
    let limited = Verdict::Unless(refused, libc::EPERM);
    call(number, limited, limited)
}

/// Memory permissions except execution: argument 2 of `mmap` and of `mprotect`. The other bits that
/// `mprotect` takes grow a mapping down or up.
const RIGHTS: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64 | BRANCH_TARGETS;
const EXECUTABLE: u64 = RIGHTS | libc::PROT_EXEC as u64;
/// `PROT_BTI`, with which V8 makes the processor check jumps into its code.
const BRANCH_TARGETS: u64 = if cfg!(target_arch = "aarch64") {
    0x10
} else {
    0
};

/// Flags of private memory, argument 3 of `mmap`. Other flags share, lock or grow the memory, or take
/// it from a pool that no limit counts.
const PRIVATE: u64 = (libc::MAP_PRIVATE
    | libc::MAP_ANONYMOUS
    | libc::MAP_NORESERVE
    | libc::MAP_FIXED
    | libc::MAP_FIXED_NOREPLACE
    | libc::MAP_STACK
    | libc::MAP_POPULATE) as u64;

/// Flags with which memory is moved: argument 3 of `mremap`.
const MOVE: u64 = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;

/// Waiting and waking. Other processes can map the same page of a library, so only private futexes
/// can be woken; `pthread_join` waits for the kernel, which wakes any futex.
const WAITING: &[u64] = &[
    (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as u64,
    (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64,
    (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as u64,
    (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u64,
    libc::FUTEX_WAIT as u64,
    (libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME) as u64,
];

/// Queries of support, and barriers between the threads of this process: `MEMBARRIER_CMD_QUERY`,
/// `PRIVATE_EXPEDITED`, `PRIVATE_EXPEDITED_SYNC_CORE`, and the registration for each.
const BARRIERS: &[u64] = &[0, 1 << 3, 1 << 4, 1 << 5, 1 << 6];

/// The clocks of the machine and of the caller. Clocks of other processes have negative ids.
const CLOCKS: &[u64] = &[
    libc::CLOCK_REALTIME as u64,
    libc::CLOCK_MONOTONIC as u64,
    libc::CLOCK_PROCESS_CPUTIME_ID as u64,
    libc::CLOCK_THREAD_CPUTIME_ID as u64,
    libc::CLOCK_MONOTONIC_RAW as u64,
    libc::CLOCK_REALTIME_COARSE as u64,
    libc::CLOCK_MONOTONIC_COARSE as u64,
    libc::CLOCK_BOOTTIME as u64,
];

/// The flags with which glibc makes a thread. Any other `clone` makes a process or a namespace.
const THREAD_FLAGS: u64 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID) as u64;

/// Advice about the process's own memory. Advice that poisons pages or drops shared ones is refused.
const ADVICE: &[u64] = &[
    libc::MADV_NORMAL as u64,
    libc::MADV_DONTNEED as u64,
    libc::MADV_FREE as u64,
    libc::MADV_DONTFORK as u64,
    libc::MADV_DOFORK as u64,
    libc::MADV_DODUMP as u64,
    libc::MADV_DONTDUMP as u64,
    libc::MADV_HUGEPAGE as u64,
    libc::MADV_NOHUGEPAGE as u64,
    102, // MADV_GUARD_INSTALL and MADV_GUARD_REMOVE: glibc 2.42 guards stacks of threads by them
    103,
];

/// Names of threads and of memory areas; and `no_new_privs`, which cannot be turned off and is set
/// again with each filter.
const OPTIONS: &[u64] = &[
    libc::PR_SET_NAME as u64,
    libc::PR_SET_VMA as u64,
    libc::PR_SET_NO_NEW_PRIVS as u64,
];

/// Commands of `fcntl` that read the flags of a descriptor.
const READING_FLAGS: &[u64] = &[libc::F_GETFD as u64, libc::F_GETFL as u64];

const CALLS: &[Call] = &[
    // Memory: private, and not executable after V8 has its code range.
    always(libc::SYS_brk),                                  // glibc's heap
    always(libc::SYS_munmap),                               // gives memory back
    limited(libc::SYS_mremap, &[Test::OtherBits(3, MOVE)]), // cannot change rights
    limited(libc::SYS_madvise, &[Test::IsNone(2, ADVICE)]),
    Call {
        number: libc::SYS_mmap,
        start_up: Verdict::Unless(&[Test::OtherBits(3, PRIVATE)], libc::EPERM),
        run_time: Verdict::Unless(
            &[Test::OtherBits(2, RIGHTS), Test::OtherBits(3, PRIVATE)],
            libc::EPERM,
        ),
    },
    Call {
        number: libc::SYS_mprotect,
        start_up: Verdict::Unless(&[Test::OtherBits(2, EXECUTABLE)], libc::EPERM),
        run_time: Verdict::Unless(&[Test::OtherBits(2, RIGHTS)], libc::EPERM),
    },
    narrowed(libc::SYS_pkey_mprotect, &[Test::OtherBits(2, RIGHTS)]),
    start_up_only(libc::SYS_pkey_alloc), // V8's key for its machine code
    start_up_only(libc::SYS_pkey_free),  // the probe for keys
    // Threads, and their locks. All threads are made at start-up.
    Call {
        number: libc::SYS_clone,
        start_up: Verdict::Unless(&[Test::IsNone(0, &[THREAD_FLAGS])], libc::EPERM),
        run_time: Verdict::Error(libc::EPERM),
    },
    Call {
        // Its flags are behind a pointer, which a filter cannot read; glibc then uses `clone`.
        number: libc::SYS_clone3,
        start_up: Verdict::Error(libc::ENOSYS),
        run_time: Verdict::Error(libc::ENOSYS),
    },
    limited(libc::SYS_futex, &[Test::IsNone(1, WAITING)]), // locks
    always(libc::SYS_set_robust_list),                     // glibc, for each thread
    always(libc::SYS_rseq),                                // glibc, for each thread
    // V8 publishes machine code to its threads.
    limited(libc::SYS_membarrier, &[Test::IsNone(0, BARRIERS)]),
    always(libc::SYS_sched_yield), // spinning locks
    Call {
        // The number of processors. glibc also makes the call for each thread by its id, and
        // continues without it where it does not exist.
        number: libc::SYS_sched_getaffinity,
        start_up: Verdict::Unless(&[Test::IsNone(0, &[0])], libc::ENOSYS),
        run_time: Verdict::Unless(&[Test::IsNone(0, &[0])], libc::ENOSYS),
    },
    // V8 reads a thread's attributes when it makes one.
    refused_later(libc::SYS_sched_getparam),
    refused_later(libc::SYS_sched_getscheduler),
    always(libc::SYS_gettid), // names the thread in locks
    always(libc::SYS_getpid), // abort and V8 ask for it
    limited(libc::SYS_prctl, &[Test::IsNone(0, OPTIONS)]),
    // The bounds of a thread's stack are read; limits are never set.
    limited(
        libc::SYS_prlimit64,
        &[Test::IsNone(0, &[0]), Test::IsNone(2, &[0])],
    ),
    // V8 measures its own time: of this process or of a thread. A worker has no children.
    limited(libc::SYS_getrusage, &[Test::IsNone(0, &[0, 1])]),
    // The socket to the host, the pipe for crash messages, and waiting for them. Not `sendmsg` and
    // `recvmsg`, which can pass descriptors.
    always(libc::SYS_read),                 // tokio's event descriptor
    always(libc::SYS_write),                // crash messages
    always(libc::SYS_writev),               // frames to the host
    always(libc::SYS_recvfrom),             // frames of the host
    always(libc::SYS_close),                // descriptors of the start-up
    always(libc::SYS_epoll_pwait),          // waits for the socket
    always(libc::SYS_epoll_ctl),            // waits for the socket
    start_up_only(libc::SYS_epoll_create1), // tokio's event loop
    start_up_only(libc::SYS_eventfd2),      // wakes tokio's event loop
    start_up_only(libc::SYS_socketpair),    // tokio's pipe for signals
    start_up_only(libc::SYS_getsockopt),    // checks that standard input is the socket
    narrowed(libc::SYS_fcntl, &[Test::IsNone(1, READING_FLAGS)]),
    always(libc::SYS_lseek),   // on the socket it only fails
    always(libc::SYS_pread64), // on the socket it only fails
    // Time and randomness.
    limited(libc::SYS_clock_gettime, &[Test::IsNone(0, CLOCKS)]), // `Date`, timers
    limited(libc::SYS_clock_getres, &[Test::IsNone(0, CLOCKS)]),  // `performance`
    // Waits until a stuck script is terminated again.
    limited(libc::SYS_clock_nanosleep, &[Test::IsNone(0, CLOCKS)]),
    always(libc::SYS_nanosleep),    // the same on older glibc
    always(libc::SYS_gettimeofday), // V8 reads the date
    always(libc::SYS_getrandom),    // hash seeds, `crypto`
    always(libc::SYS_getcpu),       // which processor a thread is on
    always(libc::SYS_sysinfo),      // how much memory the machine has
    // Signals: the stop signal is waited for, and `abort` sends one to this process.
    always(libc::SYS_rt_sigprocmask),  // glibc, for each thread
    always(libc::SYS_rt_sigreturn),    // the end of a signal handler
    always(libc::SYS_rt_sigtimedwait), // waits for the stop signal
    always(libc::SYS_sigaltstack),     // Rust, for each thread
    always(libc::SYS_restart_syscall), // the kernel resumes a wait
    // The handler that names refused calls stays.
    limited(
        libc::SYS_rt_sigaction,
        &[Test::Is(0, libc::SIGSYS.unsigned_abs())],
    ),
    limited(libc::SYS_tgkill, &[Test::IsOther(0)]),
    always(libc::SYS_exit),       // a thread ends
    always(libc::SYS_exit_group), // the worker ends
    // glibc, V8 and ICU look for files and continue without them.
    hidden(libc::SYS_openat),       // zone data, processors
    hidden(libc::SYS_readlinkat),   // the name of the program
    hidden(libc::SYS_newfstatat),   // files that were not opened
    hidden(libc::SYS_statx),        // files that were not opened
    hidden(libc::SYS_fstat),        // files that were not opened
    hidden(libc::SYS_faccessat),    // files that were not opened
    hidden(libc::SYS_getcwd),       // the backtrace of a panic
    refused_later(libc::SYS_uname), // V8 reads the kernel's version when it starts
    refused_later(libc::SYS_ioctl), // sockets are made non-blocking at start-up
    // The jail itself. Filters can be added, not removed.
    start_up_only(libc::SYS_seccomp), // the run-time filter
];

/// Older names of some calls, which are not on aarch64.
#[cfg(target_arch = "x86_64")]
const CALLS_OF_X86_64: &[Call] = &[
    always(libc::SYS_epoll_wait), // waits for the socket
    always(libc::SYS_time),       // glibc
    hidden(libc::SYS_open),       // as openat
    hidden(libc::SYS_stat),       // as newfstatat
    hidden(libc::SYS_lstat),      // as newfstatat
    hidden(libc::SYS_access),     // as faccessat
    hidden(libc::SYS_readlink),   // as readlinkat
];
#[cfg(not(target_arch = "x86_64"))]
const CALLS_OF_X86_64: &[Call] = &[];
