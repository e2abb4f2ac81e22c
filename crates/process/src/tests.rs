//! Tests with real processes.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tokio::io::AsyncReadExt as _;

use super::*;

/// A program without streams.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null());
    command
}

/// A program that runs until its input ends.
fn cat() -> Command {
    let mut cat = command("cat");
    cat.stdin(Stdio::piped());
    cat
}

/// The output of a shell's commands.
async fn printed(
    script: &str,
    restrictions: Option<Restrictions>,
    change: impl FnOnce(&mut Command),
) -> String {
    let mut command = command("/bin/sh");
    command.args(["-c", script]).stdout(Stdio::piped());
    command.env_clear().env("PATH", "/usr/bin:/bin");
    change(&mut command);
    let mut child = spawn(command, restrictions).await.expect("it starts");
    let mut printed = String::new();
    let mut stdout = child.stdout.take().expect("it has an output");
    stdout.read_to_string(&mut printed).await.expect("text");
    let status = child.wait().await.expect("it ends");
    assert!(status.success(), "{status}: {printed}");
    assert_eq!(child.id(), None);
    printed
}

/// A descriptor that is readable when the process is over.
fn watch(pid: u32) -> OwnedFd {
    // SAFETY: pidfd_open with these arguments reads no memory of ours.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor = RawFd::try_from(descriptor).expect("a descriptor");
    assert!(descriptor >= 0, "{}", io::Error::last_os_error());
    // SAFETY: it was just made, and no other code has it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Waits for the end of the process.
fn is_over(process: &OwnedFd) -> bool {
    let mut poll = libc::pollfd {
        fd: process.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: poll reads and writes the one struct that the pointer is to.
    unsafe { libc::poll(&raw mut poll, 1, 60_000) == 1 }
}

#[tokio::test]
async fn process_gets_only_given_environment_and_folder() {
    let given = |command: &mut Command| {
        let command = command.env_clear().current_dir("/usr");
        command.envs([("A", "1"), ("B", ""), ("A", "two words")]);
    };
    assert_eq!(
        printed("/usr/bin/env; pwd", None, given).await,
        "A=two words\nB=\nPWD=/usr\n/usr\n"
    );
    // Group and session are its own, it has no terminal, and its parent is this process.
    let ids = printed("echo $$; cut -d' ' -f4-7 /proc/$$/stat", None, |_| ()).await;
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let host = std::process::id().to_string();
    assert_eq!(ids, [ids[0], &host, ids[0], ids[0], "0"]);
}

#[tokio::test]
async fn no_descriptor_of_the_host_is_inherited() {
    let null = fs::File::open("/dev/null").expect("it is there");
    // A descriptor without the mark close-on-exec.
    // SAFETY: fcntl with these arguments reads no memory of ours.
    let left_open = unsafe { libc::fcntl(null.as_raw_fd(), libc::F_DUPFD, 100) };
    assert!(left_open >= 100);
    // SAFETY: it was just made, and no other code has it.
    let _left_open = unsafe { OwnedFd::from_raw_fd(left_open) };
    let script = "for fd in /proc/$$/fd/*; do echo ${fd##*/}; done";
    let open = printed(script, None, |_| ()).await;
    let open: Vec<i32> = open
        .lines()
        .map(|fd| fd.parse().expect("a number"))
        .collect();
    // The shell itself opens the folder.
    assert!(open.starts_with(&[0, 1, 2]) && open.len() <= 4, "{open:?}");
    assert!(!open.contains(&left_open), "{open:?}");
}

#[tokio::test]
async fn restricted_process_keeps_limits_and_gains_no_privileges() {
    let restrictions = Restrictions {
        limits: &[(libc::RLIMIT_NOFILE, 20)],
        ..Restrictions::default()
    };
    let script = "ulimit -Hn; grep -E 'NoNewPrivs|Cap(Prm|Eff)' /proc/self/status";
    let printed = printed(script, Some(restrictions), |_| ()).await;
    let none = "0".repeat(16);
    assert_eq!(
        printed,
        format!("20\nCapPrm:\t{none}\nCapEff:\t{none}\nNoNewPrivs:\t1\n")
    );
}

#[tokio::test]
async fn restriction_keeps_lower_hard_limits() {
    let open_files: &'static [(Resource, u64)] =
        &[(libc::RLIMIT_NOFILE, 40), (libc::RLIMIT_NOFILE, 64)];
    let core: &'static [(Resource, u64)] = &[(libc::RLIMIT_CORE, 0), (libc::RLIMIT_CORE, 1 << 20)];
    for (limits, script, kept) in [
        (open_files, "ulimit -Hn", "40\n"),
        (core, "ulimit -Hc", "0\n"),
    ] {
        let restrictions = Restrictions {
            limits,
            ..Restrictions::default()
        };
        assert_eq!(printed(script, Some(restrictions), |_| ()).await, kept);
    }
}

#[tokio::test]
async fn child_has_default_action_for_file_size_limit() {
    survive_file_size_limit();
    // Bit 24 of the masks of ignored and caught signals is SIGXFSZ.
    let script = "grep -E 'SigIgn|SigCgt' /proc/self/status";
    let masks = printed(script, None, |_| ()).await;
    for line in masks.lines() {
        let mask = line.rsplit('\t').next().unwrap_or_default();
        let mask = u64::from_str_radix(mask, 16).expect("a mask");
        assert_eq!(mask & (1 << (libc::SIGXFSZ - 1)), 0, "{masks}");
    }
}

#[tokio::test]
async fn dropped_child_is_killed_and_reaped() {
    let child = spawn(cat(), None).await.expect("it starts");
    let pid = child.id().expect("it runs");
    let process = watch(pid);
    drop(child);
    assert!(is_over(&process));
    // The process is gone, and its status is collected, which the runtime does in its next turn.
    while Path::new(&format!("/proc/{pid}")).exists() {
        tokio::task::yield_now().await;
    }

    let mut child = spawn(cat(), None).await.expect("it starts");
    child.signal_group(Signal::Kill);
    let status = child.wait().await.expect("it ends");
    assert_eq!(status.signal(), Some(libc::SIGKILL));
}

#[test]
fn child_outlives_its_thread_and_runtime() {
    let (child, thread) = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let child = runtime.block_on(spawn(cat(), None)).expect("it starts");
        // SAFETY: gettid reads no memory of ours.
        (child, unsafe { libc::gettid() })
    })
    .join()
    .expect("no panic");
    // When its entry is gone, the kernel has killed its children.
    while Path::new(&format!("/proc/self/task/{thread}")).exists() {
        std::thread::yield_now();
    }
    let pid = child.id().expect("it runs");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    let state = status.lines().find(|line| line.starts_with("State:"));
    assert!(state.is_some_and(|state| !state.contains('Z')), "{status}");
    let process = watch(pid);
    drop(child);
    assert!(is_over(&process));
}

#[test]
fn start_error_names_the_limit_of_the_machine() {
    for (code, named) in [
        (libc::EAGAIN, "`ulimit -u`"),
        (libc::ENOMEM, "`ulimit -v`"),
        (libc::EMFILE, "`ulimit -n`"),
        (libc::EACCES, "Permission denied"),
    ] {
        let text = start_failure(&io::Error::from_raw_os_error(code));
        assert!(text.contains(named), "{text}");
    }
}

/// The host of the test below, in its own process.
#[test]
#[ignore = "it waits to be killed"]
fn host() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let children: Vec<Child> = runtime.block_on(async {
        let mut children = Vec::new();
        for _ in 0..3 {
            children.push(spawn(cat(), None).await.expect("it starts"));
        }
        children
    });
    for child in &children {
        let line = format!("child {}\n", child.id().expect("it runs"));
        io::stderr().write_all(line.as_bytes()).expect("it is read");
    }
    loop {
        std::thread::park();
    }
}

#[test]
fn children_end_with_a_killed_host() {
    let test = std::env::current_exe().expect("this program");
    let mut host = Command::new(test)
        .args(["--exact", "tests::host", "--ignored", "--nocapture"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(host.stderr.take().expect("piped")).lines();
    let children: Vec<OwnedFd> = std::iter::from_fn(|| {
        let line = lines.find_map(|line| line.ok()?.strip_prefix("child ")?.parse().ok());
        line.map(watch)
    })
    .take(3)
    .collect();
    assert_eq!(children.len(), 3);
    host.kill().expect("it runs");
    host.wait().expect("it ends");
    assert!(children.iter().all(is_over));
}
