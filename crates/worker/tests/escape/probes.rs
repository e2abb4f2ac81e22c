//! The system calls that native code in a worker tries, and the outcome of each.
//!
//! Numbers of system calls and of constants are those of Linux on x86-64.

/// An argument of a probe.
#[derive(Debug, Clone, Copy)]
pub enum Arg {
    /// A number.
    N(i64),
    /// A text that ends with a zero.
    Text(&'static str),
    /// The address of zeroed memory of the worker, with this offset.
    Memory(u32),
    /// The process id of the host.
    Host,
    /// A path below `/proc/HOST`.
    OfHost(&'static str),
    /// A path in a folder that the test made for the user of the worker.
    Own(&'static str),
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The kernel kills the worker.
    Killed,
    /// The call returns this error.
    Error(i32),
    /// The call works, and does no harm.
    Works,
}

/// One system call.
#[derive(Debug)]
pub struct Probe {
    pub name: &'static str,
    pub call: i64,
    pub arguments: &'static [Arg],
    /// With all layers.
    pub jailed: Outcome,
    /// True if Landlock, without seccomp, refuses it as well.
    pub landlock: bool,
    /// The gain for native code.
    pub why: &'static str,
}

use Arg::{Host, Memory, N, OfHost, Own, Text};
use Outcome::{Error, Killed, Works};
use libc::{EACCES, ENOSYS, EPERM};

const HERE: Arg = N(libc::AT_FDCWD as i64);
const NULL: Arg = N(0);

const fn probe(
    name: &'static str,
    call: i64,
    arguments: &'static [Arg],
    jailed: Outcome,
    why: &'static str,
) -> Probe {
    Probe {
        name,
        call,
        arguments,
        jailed,
        landlock: false,
        why,
    }
}

/// A call that Landlock refuses, too.
const fn both(
    name: &'static str,
    call: i64,
    arguments: &'static [Arg],
    jailed: Outcome,
    why: &'static str,
) -> Probe {
    Probe {
        landlock: true,
        ..probe(name, call, arguments, jailed, why)
    }
}

#[rustfmt::skip] // a table: one line for each call
pub const PROBES: &[Probe] = &[
    // Files.
    both("open /etc/passwd", libc::SYS_openat, &[HERE, Text("/etc/passwd"), N(0)], Error(EACCES), "reads the user's files"),
    both("open by the old name", libc::SYS_open, &[Text("/etc/passwd"), N(0)], Error(EACCES), "reads the user's files"),
    both("openat2", libc::SYS_openat2, &[HERE, Text("/etc/passwd"), Memory(0), N(24)], Killed, "reads the user's files"),
    both("creat", libc::SYS_creat, &[Own("made"), N(0o600)], Killed, "makes files"),
    both("create a file", libc::SYS_openat, &[HERE, Own("made"), N(0x41), N(0o600)], Error(EACCES), "makes files"),
    both("empty a file", libc::SYS_truncate, &[Own("file"), N(0)], Killed, "destroys files"),
    both("open and empty a file", libc::SYS_openat, &[HERE, Own("file"), N(0x201)], Error(EACCES), "destroys files"),
    both("list /", libc::SYS_openat, &[HERE, Text("/"), N(0x10000)], Error(EACCES), "finds files"),
    both("unlink", libc::SYS_unlink, &[Own("file")], Killed, "deletes files"),
    both("unlinkat", libc::SYS_unlinkat, &[HERE, Own("file"), N(0)], Killed, "deletes files"),
    both("rename", libc::SYS_rename, &[Own("file"), Own("renamed")], Killed, "replaces files"),
    both("renameat2", libc::SYS_renameat2, &[HERE, Own("file"), HERE, Own("renamed"), N(0)], Killed, "replaces files"),
    both("symlink", libc::SYS_symlink, &[Text("/etc/passwd"), Own("link")], Killed, "plants links"),
    both("link", libc::SYS_linkat, &[HERE, Own("file"), HERE, Own("sub/hard"), N(0)], Killed, "plants links"),
    both("mkdir", libc::SYS_mkdir, &[Own("folder"), N(0o700)], Killed, "makes folders"),
    both("rmdir", libc::SYS_rmdir, &[Own("sub")], Killed, "deletes folders"),
    both("mknod of a pipe", libc::SYS_mknodat, &[HERE, Own("pipe"), N(0o10600), N(0)], Killed, "makes pipes for others to open"),
    probe("chmod", libc::SYS_chmod, &[Own("file"), N(0o777)], Killed, "opens files to others"),
    probe("chown", libc::SYS_chown, &[Own("file"), N(-1), N(-1)], Killed, "gives files away"),
    probe("utimensat", libc::SYS_utimensat, &[HERE, Own("file"), NULL, N(0)], Killed, "hides changes"),
    probe("setxattr", libc::SYS_setxattr, &[Own("file"), Text("user.x"), Memory(0), N(1), N(0)], Killed, "marks files"),
    probe("stat /etc/passwd", libc::SYS_newfstatat, &[HERE, Text("/etc/passwd"), Memory(0), N(0)], Error(EACCES), "learns which files there are"),
    probe("stat by the old name", libc::SYS_stat, &[Text("/etc/passwd"), Memory(0)], Error(EACCES), "learns which files there are"),
    probe("statx", libc::SYS_statx, &[HERE, Text("/etc/passwd"), N(0), N(0xfff), Memory(0)], Error(EACCES), "learns which files there are"),
    probe("access", libc::SYS_access, &[Text("/etc/passwd"), N(4)], Error(EACCES), "learns which files there are"),
    probe("faccessat2", libc::SYS_faccessat2, &[HERE, Text("/etc/passwd"), N(4), N(0)], Killed, "learns which files there are"),
    probe("readlink", libc::SYS_readlink, &[Text("/proc/self/exe"), Memory(0), N(200)], Error(EACCES), "learns where it was installed"),
    probe("statfs", libc::SYS_statfs, &[Text("/"), Memory(0)], Killed, "learns about disks"),
    probe("getcwd", libc::SYS_getcwd, &[Memory(0), N(200)], Error(EACCES), "learns where it runs"),
    probe("chdir", libc::SYS_chdir, &[Text("/")], Killed, "moves to other folders"),
    probe("name_to_handle_at", libc::SYS_name_to_handle_at, &[HERE, Text("/etc"), Memory(0), Memory(64), N(0)], Killed, "names files past their paths"),
    probe("inotify_init1", libc::SYS_inotify_init1, &[N(0)], Killed, "watches files"),
    probe("fanotify_init", libc::SYS_fanotify_init, &[N(0), N(0)], Killed, "watches files"),
    probe("getdents64", libc::SYS_getdents64, &[N(1), Memory(0), N(256)], Killed, "lists folders"),
    probe("sendfile", libc::SYS_sendfile, &[N(2), N(1), NULL, N(1)], Killed, "copies between descriptors"),
    probe("copy_file_range", libc::SYS_copy_file_range, &[N(0), NULL, N(1), NULL, N(1), N(0)], Killed, "copies between descriptors"),
    probe("mq_open", libc::SYS_mq_open, &[Text("callgate"), N(0x42), N(0o600), NULL], Killed, "speaks to other processes"),
    // The host and other processes.
    both("the host's environment", libc::SYS_openat, &[HERE, OfHost("environ"), N(0)], Error(EACCES), "reads credentials"),
    both("the host's memory", libc::SYS_openat, &[HERE, OfHost("mem"), N(2)], Error(EACCES), "reads and changes credentials and rules"),
    both("the host's descriptors", libc::SYS_openat, &[HERE, OfHost("fd/0"), N(0)], Error(EACCES), "takes the host's connections"),
    both("ptrace of the host", libc::SYS_ptrace, &[N(16902), Host, NULL, NULL], Killed, "takes the host over"),
    probe("process_vm_readv", libc::SYS_process_vm_readv, &[Host, Memory(0), N(1), Memory(64), N(1), N(0)], Killed, "reads the host's memory"),
    probe("process_vm_writev", libc::SYS_process_vm_writev, &[Host, Memory(0), N(1), Memory(64), N(1), N(0)], Killed, "changes the host's memory"),
    probe("pidfd_open", libc::SYS_pidfd_open, &[Host, N(0)], Killed, "holds on to the host"),
    probe("pidfd_getfd", libc::SYS_pidfd_getfd, &[N(0), N(0), N(0)], Killed, "takes the host's connections"),
    probe("pidfd_send_signal", libc::SYS_pidfd_send_signal, &[N(0), N(0), NULL, N(0)], Killed, "ends the host"),
    both("kill the host", libc::SYS_kill, &[Host, N(0)], Killed, "ends the host"),
    probe("kill everything", libc::SYS_kill, &[N(-1), N(0)], Killed, "ends all of the user's processes"),
    both("tgkill the host", libc::SYS_tgkill, &[Host, Host, N(0)], Error(EPERM), "ends the host"),
    both("tkill the host", libc::SYS_tkill, &[Host, N(0)], Killed, "ends the host"),
    probe("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, &[Host, N(0), Memory(0)], Killed, "ends the host"),
    both("kcmp", libc::SYS_kcmp, &[Host, Host, N(0), N(0), N(0)], Killed, "learns about the host's memory"),
    probe("prlimit of the host", libc::SYS_prlimit64, &[Host, N(7), NULL, Memory(0)], Error(EPERM), "changes the host's limits"),
    probe("setpriority of the host", libc::SYS_setpriority, &[N(0), Host, N(1)], Killed, "slows the host down"),
    probe("sched_setaffinity", libc::SYS_sched_setaffinity, &[Host, N(8), Memory(0)], Killed, "slows the host down"),
    probe("sched_setscheduler", libc::SYS_sched_setscheduler, &[NULL, N(1), Memory(0)], Killed, "takes all of the processor"),
    probe("ioprio_set", libc::SYS_ioprio_set, &[N(1), Host, N(0)], Killed, "slows the host down"),
    probe("migrate_pages", libc::SYS_migrate_pages, &[Host, N(0), NULL, NULL], Killed, "slows the host down"),
    probe("process_madvise", libc::SYS_process_madvise, &[N(0), Memory(0), N(0), N(0), N(0)], Killed, "slows other processes down"),
    probe("process_mrelease", libc::SYS_process_mrelease, &[N(0), N(0)], Killed, "takes memory from dying processes"),
    probe("getpgid of the host", libc::SYS_getpgid, &[Host], Killed, "learns about the host"),
    probe("wait4", libc::SYS_wait4, &[N(-1), NULL, N(1), NULL], Killed, "waits for children, of which there are none"),
    // Network and other sockets.
    probe("socket of TCP", libc::SYS_socket, &[N(2), N(1), N(0)], Killed, "opens connections"),
    probe("socket of UDP", libc::SYS_socket, &[N(10), N(2), N(0)], Killed, "sends packets"),
    probe("unix socket", libc::SYS_socket, &[N(1), N(1), N(0)], Killed, "speaks to other processes"),
    probe("netlink socket", libc::SYS_socket, &[N(16), N(3), N(0)], Killed, "speaks to the kernel"),
    probe("vsock socket", libc::SYS_socket, &[N(40), N(1), N(0)], Killed, "speaks to the machine around"),
    probe("socket of AF_ALG", libc::SYS_socket, &[N(38), N(5), N(0)], Killed, "reaches code of the kernel that has had holes"),
    probe("raw socket", libc::SYS_socket, &[N(2), N(3), N(1)], Killed, "sends packets"),
    probe("socketpair", libc::SYS_socketpair, &[N(1), N(1), N(0), Memory(0)], Killed, "makes descriptors"),
    probe("connect", libc::SYS_connect, &[N(0), Memory(0), N(16)], Killed, "opens connections"),
    probe("bind", libc::SYS_bind, &[N(0), Memory(0), N(16)], Killed, "is connected to"),
    probe("listen", libc::SYS_listen, &[N(0), N(1)], Killed, "is connected to"),
    probe("accept4", libc::SYS_accept4, &[N(0), NULL, NULL, N(0)], Killed, "is connected to"),
    probe("sendmsg", libc::SYS_sendmsg, &[N(0), Memory(0), N(0)], Killed, "sends descriptors to the host"),
    probe("recvmsg", libc::SYS_recvmsg, &[N(0), Memory(0), N(0x40)], Killed, "gets descriptors"),
    probe("sendmmsg", libc::SYS_sendmmsg, &[N(0), Memory(0), N(0), N(0)], Killed, "sends descriptors to the host"),
    probe("sendto", libc::SYS_sendto, &[N(0), Text("x"), N(0), N(1), NULL, N(0)], Killed, "sends out-of-band bytes"),
    probe("shutdown", libc::SYS_shutdown, &[N(0), N(0)], Killed, "half closes the socket"),
    probe("setsockopt", libc::SYS_setsockopt, &[N(0), N(1), N(2), Memory(0), N(4)], Killed, "changes the socket"),
    probe("getsockopt", libc::SYS_getsockopt, &[N(0), N(1), N(17), Memory(0), Memory(64)], Killed, "learns about the host (SO_PEERCRED)"),
    probe("getpeername", libc::SYS_getpeername, &[N(0), Memory(0), Memory(128)], Killed, "learns about the host"),
    // Programs, processes and rights.
    both("execve", libc::SYS_execve, &[Text("/bin/sh"), NULL, NULL], Killed, "runs programs"),
    both("execveat", libc::SYS_execveat, &[HERE, Text("/bin/sh"), NULL, NULL, N(0)], Killed, "runs programs"),
    probe("fork", libc::SYS_fork, &[], Killed, "outlives its run"),
    probe("vfork", libc::SYS_vfork, &[], Killed, "outlives its run"),
    probe("clone as fork", libc::SYS_clone, &[N(17), NULL, NULL, NULL, NULL], Error(EPERM), "outlives its run"),
    probe("clone with a user namespace", libc::SYS_clone, &[N(0x1000_0011), NULL, NULL, NULL, NULL], Error(EPERM), "gets rights in a namespace"),
    probe("clone3", libc::SYS_clone3, &[Memory(0), N(88)], Error(ENOSYS), "outlives its run"),
    probe("clone as thread", libc::SYS_clone, &[N(0x003d_0f00), NULL, NULL, NULL, NULL], Error(EPERM), "takes the kernel's memory and all process ids"),
    probe("clone as thread with a parent's end", libc::SYS_clone, &[N(0x003d_8f00), NULL, NULL, NULL, NULL], Error(EPERM), "takes the kernel's memory and all process ids"),
    probe("unshare", libc::SYS_unshare, &[N(0x1000_0000)], Killed, "gets rights in a namespace"),
    probe("setns", libc::SYS_setns, &[N(0), N(0)], Killed, "enters other namespaces"),
    both("mount", libc::SYS_mount, &[Text("x"), Text("/tmp"), Text("tmpfs"), N(0), NULL], Killed, "changes what files there are"),
    both("pivot_root", libc::SYS_pivot_root, &[Text("/tmp"), Text("/tmp")], Killed, "changes what files there are"),
    probe("chroot", libc::SYS_chroot, &[Text("/")], Killed, "changes what files there are"),
    probe("setuid", libc::SYS_setuid, &[N(0)], Killed, "becomes another user"),
    probe("setresuid", libc::SYS_setresuid, &[N(0), N(0), N(0)], Killed, "becomes another user"),
    probe("setgroups", libc::SYS_setgroups, &[N(0), NULL], Killed, "becomes another user"),
    probe("capset", libc::SYS_capset, &[Memory(0), Memory(64)], Killed, "gets capabilities"),
    probe("setsid", libc::SYS_setsid, &[], Killed, "leaves its session"),
    probe("setpgid", libc::SYS_setpgid, &[N(0), N(0)], Killed, "leaves its process group"),
    probe("dumpable again", libc::SYS_prctl, &[N(4), N(1), N(0), N(0), N(0)], Error(EPERM), "lets others read it"),
    probe("no death signal", libc::SYS_prctl, &[N(1), N(0), N(0), N(0), N(0)], Error(EPERM), "outlives the host"),
    probe("a filter of its own", libc::SYS_prctl, &[N(22), N(2), Memory(0), N(0), N(0)], Error(EPERM), "answers its own system calls"),
    probe("seccomp", libc::SYS_seccomp, &[N(1), N(8), Memory(0)], Killed, "answers its own system calls"),
    probe("landlock_create_ruleset", libc::SYS_landlock_create_ruleset, &[NULL, N(0), N(1)], Killed, "reaches code of the kernel"),
    probe("another handler of SIGSYS", libc::SYS_rt_sigaction, &[N(31), Memory(0), NULL, N(8)], Error(EPERM), "survives a refused call"),
    probe("personality", libc::SYS_personality, &[N(0x4_0000)], Killed, "turns the layout of memory predictable"),
    probe("more descriptors", libc::SYS_setrlimit, &[N(7), Memory(64)], Killed, "changes its limits"),
    probe("more memory", libc::SYS_prlimit64, &[N(0), N(2), Memory(0), NULL], Error(EPERM), "changes its limits"),
    // Memory.
    probe("memory to write and execute", libc::SYS_mmap, &[NULL, N(4096), N(7), N(0x22), N(-1), N(0)], Error(EPERM), "loads code"),
    probe("memory to execute", libc::SYS_mmap, &[NULL, N(4096), N(5), N(0x22), N(-1), N(0)], Error(EPERM), "loads code"),
    probe("shared memory", libc::SYS_mmap, &[NULL, N(0x4000_0000), N(3), N(0x21), N(-1), N(0)], Error(EPERM), "gets memory that no limit counts"),
    probe("shared memory, validated", libc::SYS_mmap, &[NULL, N(4096), N(3), N(0x23), N(-1), N(0)], Error(EPERM), "gets memory that no limit counts"),
    probe("droppable memory", libc::SYS_mmap, &[NULL, N(4096), N(3), N(0x28), N(-1), N(0)], Error(EPERM), "gets memory that no limit counts"),
    probe("memory that grows down", libc::SYS_mmap, &[NULL, N(4096), N(3), N(0x4122), N(-1), N(0)], Error(EPERM), "gets memory that counts as stack"),
    probe("locked memory", libc::SYS_mmap, &[NULL, N(4096), N(3), N(0x2022), N(-1), N(0)], Error(EPERM), "keeps memory from others"),
    probe("huge pages", libc::SYS_mmap, &[NULL, N(2 << 20), N(3), N(0x5404_0022), N(-1), N(0)], Error(EPERM), "takes memory set aside for others"),
    probe("memory of low addresses", libc::SYS_mmap, &[NULL, N(4096), N(3), N(0x62), N(-1), N(0)], Error(EPERM), "places memory where it helps to exploit"),
    probe("flags that do not exist", libc::SYS_mmap, &[NULL, N(4096), N(3), N(0x20_0000_0022), N(-1), N(0)], Error(EPERM), "finds flags of newer kernels"),
    probe("down to the mapping's start", libc::SYS_mprotect, &[Memory(0), N(4096), N(0x0100_0003)], Error(EPERM), "reaches code of the kernel"),
    probe("rights that do not exist", libc::SYS_mprotect, &[Memory(0), N(4096), N(0xb)], Error(EPERM), "finds rights of newer kernels"),
    probe("pages moved from under a mapping", libc::SYS_mremap, &[Memory(0), N(4096), N(4096), N(5), NULL], Error(EPERM), "helps to exploit the kernel"),
    probe("shmget", libc::SYS_shmget, &[N(0), N(4096), N(0o1600)], Killed, "shares memory with others"),
    probe("msgget", libc::SYS_msgget, &[N(0), N(0o1600)], Killed, "speaks to other processes"),
    probe("semget", libc::SYS_semget, &[N(0), N(1), N(0o1600)], Killed, "speaks to other processes"),
    probe("memfd_create", libc::SYS_memfd_create, &[Text("x"), N(0)], Killed, "makes files to execute"),
    probe("memfd_secret", libc::SYS_memfd_secret, &[N(0)], Killed, "gets memory that no limit counts"),
    probe("userfaultfd", libc::SYS_userfaultfd, &[N(1)], Killed, "holds the kernel up, which helps to exploit it"),
    probe("mlock", libc::SYS_mlock, &[Memory(0), N(4096)], Killed, "keeps memory from others"),
    probe("poisoned pages", libc::SYS_madvise, &[Memory(0), N(4096), N(100)], Error(EPERM), "breaks memory of the machine"),
    probe("mbind", libc::SYS_mbind, &[NULL, N(0), N(0), NULL, N(0), N(0)], Killed, "chooses the memory of the machine"),
    probe("set_mempolicy", libc::SYS_set_mempolicy, &[N(0), NULL, N(0)], Killed, "chooses the memory of the machine"),
    probe("remap_file_pages", libc::SYS_remap_file_pages, &[Memory(0), N(4096), N(0), N(0), N(0)], Killed, "rearranges memory"),
    // Clocks, locks and processors.
    probe("clock of init", libc::SYS_clock_gettime, &[N(-14), Memory(0)], Error(EPERM), "sees other processes and what they do"),
    probe("clock of a thread of init", libc::SYS_clock_gettime, &[N(-10), Memory(0)], Error(EPERM), "sees other processes and what they do"),
    probe("clock of init, as 32 bits", libc::SYS_clock_gettime, &[N(0xffff_fff2), Memory(0)], Error(EPERM), "sees other processes and what they do"),
    probe("clock of a descriptor", libc::SYS_clock_gettime, &[N(-5), Memory(0)], Error(EPERM), "reaches drivers of clocks"),
    probe("clock of atomic time", libc::SYS_clock_gettime, &[N(11), Memory(0)], Error(EPERM), "reaches code of the kernel"),
    probe("resolution of init's clock", libc::SYS_clock_getres, &[N(-14), Memory(0)], Error(EPERM), "sees other processes"),
    probe("wait by init's clock", libc::SYS_clock_nanosleep, &[N(-14), N(0), Memory(0), NULL], Error(EPERM), "sees what other processes do"),
    probe("sched_getaffinity of the host", libc::SYS_sched_getaffinity, &[Host, N(128), Memory(0)], Error(ENOSYS), "sees other processes"),
    probe("sched_getscheduler of the host", libc::SYS_sched_getscheduler, &[Host], Error(EACCES), "sees other processes"),
    probe("sched_getparam of init", libc::SYS_sched_getparam, &[N(1), Memory(0)], Error(EACCES), "sees other processes"),
    probe("getrusage of children", libc::SYS_getrusage, &[N(-1), Memory(0)], Error(EPERM), "nothing, for it has none"),
    probe("wake of a shared page", libc::SYS_futex, &[Memory(0), N(1), N(1)], Error(EPERM), "wakes threads of other workers"),
    probe("wake by bits of a shared page", libc::SYS_futex, &[Memory(0), N(10), N(1), NULL, NULL, N(-1)], Error(EPERM), "wakes threads of other workers"),
    probe("wake of two", libc::SYS_futex, &[Memory(0), N(133), N(1), N(1), Memory(8), N(0)], Error(EPERM), "reaches code of the kernel"),
    probe("lock with inheritance", libc::SYS_futex, &[Memory(0), N(134), N(0), NULL], Error(EPERM), "reaches code of the kernel that has had holes"),
    probe("try to lock with inheritance", libc::SYS_futex, &[Memory(0), N(136), N(0), NULL], Error(EPERM), "reaches code of the kernel that has had holes"),
    probe("lock of the second kind", libc::SYS_futex, &[Memory(0), N(141), N(0), NULL], Error(EPERM), "reaches code of the kernel that has had holes"),
    probe("requeue with inheritance", libc::SYS_futex, &[Memory(0), N(140), N(1), N(0), Memory(8), N(0)], Error(EPERM), "reaches code of the kernel that has had holes"),
    probe("requeue", libc::SYS_futex, &[Memory(0), N(131), N(1), N(0), Memory(8)], Error(EPERM), "reaches code of the kernel that has had holes"),
    probe("futex_waitv", 449, &[Memory(0), N(1), N(0), NULL, N(0)], Killed, "reaches code of the kernel"),
    probe("barrier on all processors", libc::SYS_membarrier, &[N(1), N(0), N(0)], Error(EPERM), "interrupts other processes"),
    probe("barrier in other processes", libc::SYS_membarrier, &[N(2), N(0), N(0)], Error(EPERM), "interrupts other processes"),
    probe("barrier of restartable sequences", libc::SYS_membarrier, &[N(128), N(0), N(0)], Error(EPERM), "reaches code of the kernel"),
    // Other parts of the kernel.
    probe("io_uring_setup", libc::SYS_io_uring_setup, &[N(4), Memory(0)], Killed, "makes system calls past the filter"),
    probe("bpf", libc::SYS_bpf, &[N(5), Memory(0), N(72)], Killed, "loads code into the kernel"),
    probe("perf_event_open", libc::SYS_perf_event_open, &[Memory(0), N(0), N(-1), N(-1), N(0)], Killed, "measures other processes"),
    probe("add_key", libc::SYS_add_key, &[Text("user"), Text("x"), Text("y"), N(1), N(-4)], Killed, "keeps data in the kernel for others"),
    probe("keyctl", libc::SYS_keyctl, &[N(0), N(-4), N(0), N(0), N(0)], Killed, "reads the user's keys"),
    probe("timerfd_create", libc::SYS_timerfd_create, &[N(1), N(0)], Killed, "makes descriptors"),
    probe("signalfd4", libc::SYS_signalfd4, &[N(-1), Memory(0), N(8), N(0)], Killed, "makes descriptors"),
    probe("epoll_create1", libc::SYS_epoll_create1, &[N(0)], Killed, "makes descriptors"),
    probe("eventfd2", libc::SYS_eventfd2, &[N(0), N(0)], Killed, "makes descriptors"),
    probe("pipe2", libc::SYS_pipe2, &[Memory(0), N(0)], Killed, "makes descriptors"),
    probe("dup", libc::SYS_dup, &[N(0)], Killed, "makes descriptors"),
    probe("duplicate by fcntl", libc::SYS_fcntl, &[N(0), N(1030), N(0)], Error(EPERM), "makes descriptors"),
    probe("signals of the socket to the host", libc::SYS_fcntl, &[N(0), N(8), Host], Error(EPERM), "has the kernel signal the host"),
    probe("locks", libc::SYS_fcntl, &[N(1), N(6), Memory(0)], Error(EPERM), "blocks other processes"),
    probe("type into a terminal", libc::SYS_ioctl, &[N(2), N(0x5412), Text("y")], Error(EACCES), "answers its own question"),
    probe("bytes in the socket", libc::SYS_ioctl, &[N(0), N(0x541b), Memory(0)], Error(EACCES), "reaches code of drivers"),
    probe("tee", libc::SYS_tee, &[N(0), N(1), N(1), N(0)], Killed, "moves pages between pipes"),
    probe("splice", libc::SYS_splice, &[N(0), NULL, N(1), NULL, N(1), N(0)], Killed, "moves pages between pipes"),
    probe("vmsplice", libc::SYS_vmsplice, &[N(2), Memory(0), N(0), N(0)], Killed, "moves pages between pipes"),
    probe("modify_ldt", libc::SYS_modify_ldt, &[N(0), Memory(0), N(8)], Killed, "reaches code of the kernel that has had holes"),
    probe("arch_prctl", libc::SYS_arch_prctl, &[N(0x1003), Memory(0)], Killed, "changes registers"),
    probe("uname", libc::SYS_uname, &[Memory(0)], Error(EACCES), "learns the host's name and kernel"),
    probe("syslog", libc::SYS_syslog, &[N(10), NULL, N(0)], Killed, "reads the kernel's messages"),
    probe("reboot", libc::SYS_reboot, &[N(0), N(0), N(0), NULL], Killed, "stops the machine"),
    probe("swapon", libc::SYS_swapon, &[Text("x"), N(0)], Killed, "changes the machine"),
    probe("init_module", libc::SYS_init_module, &[NULL, N(0), Text("")], Killed, "loads code into the kernel"),
    probe("acct", libc::SYS_acct, &[NULL], Killed, "changes the machine"),
    probe("quotactl", libc::SYS_quotactl, &[N(0), NULL, N(0), NULL], Killed, "changes the machine"),
    probe("sethostname", libc::SYS_sethostname, &[Text(""), N(0)], Killed, "changes the machine"),
    probe("clock_settime", libc::SYS_clock_settime, &[N(0), Memory(0)], Killed, "changes the machine"),
    probe("ioperm", libc::SYS_ioperm, &[N(0), N(1), N(1)], Killed, "reaches devices"),
    probe("iopl", libc::SYS_iopl, &[N(3)], Killed, "reaches devices"),
    probe("getpid of the x32 ABI", 0x4000_0000 + libc::SYS_getpid, &[], Killed, "makes calls under other numbers"),
    probe("a call that does not exist", 9999, &[], Killed, "finds calls of newer kernels"),
    // Calls that work and are harmless.
    probe("private memory", libc::SYS_mmap, &[NULL, N(4096), N(3), N(0x22), N(-1), N(0)], Works, "memory within the limit"),
    probe("own process id", libc::SYS_getpid, &[], Works, "a number"),
    probe("own thread id", libc::SYS_gettid, &[], Works, "a number"),
    probe("own stack limit", libc::SYS_prlimit64, &[N(0), N(3), NULL, Memory(0)], Works, "reads a number; glibc asks it for each thread"),
    probe("memory of the machine", libc::SYS_sysinfo, &[Memory(0)], Works, "reads how much memory there is; glibc asks it"),
    probe("membarrier", libc::SYS_membarrier, &[N(0), N(0), N(0)], Works, "asks what is supported"),
    probe("wake of own memory", libc::SYS_futex, &[Memory(0), N(129), N(1)], Works, "locks of its own"),
    probe("processor time", libc::SYS_clock_gettime, &[N(2), Memory(0)], Works, "its own"),
    probe("processors", libc::SYS_sched_getaffinity, &[N(0), N(128), Memory(0)], Works, "how many it may use"),
    probe("random bytes", libc::SYS_getrandom, &[Memory(0), N(8), N(0)], Works, "what a script has, too"),
];
