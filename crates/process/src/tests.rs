//! Real processes: what they are started with, what they are not, and how they end.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// What a shell's commands print, with no other environment than this.
async fn printed(script: &str, change: impl FnOnce(Command) -> Command) -> String {
    let command = Command::new("/bin/sh")
        .args(["-c", script])
        .environment([("PATH", "/usr/bin:/bin")])
        .streams(Stream::Null, Stream::Piped, Stream::Null);
    let mut child = spawn(change(command)).await.expect("it starts");
    let mut printed = String::new();
    let mut stdout = child.stdout.take().expect("it has an output");
    stdout.read_to_string(&mut printed).await.expect("text");
    let status = child.wait().await.expect("it ends");
    assert!(status.success(), "{status}: {printed}");
    assert_eq!(child.id(), None);
    printed
}

/// Something that tells when a process is over, whoever waits for it.
fn watch(pid: u32) -> OwnedFd {
    // SAFETY: pidfd_open with these arguments reads no memory of ours.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor = RawFd::try_from(descriptor).expect("a descriptor");
    assert!(descriptor >= 0, "{}", io::Error::last_os_error());
    // SAFETY: it was just made, and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Waits for that, which takes no time unless it never comes.
fn is_over(process: &OwnedFd) -> bool {
    let mut poll = libc::pollfd {
        fd: process.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: poll reads and writes the one struct that the pointer is to.
    unsafe { libc::poll(&raw mut poll, 1, 60_000) == 1 }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir();
        let path = path.join(format!("callgate-process-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_process_has_what_it_was_given_and_no_more() {
    assert_eq!(
        printed("/usr/bin/env; pwd", |command| {
            let variables = [("A", "1"), ("B", ""), ("A", "two words")];
            command.environment(variables).folder("/usr")
        })
        .await,
        "A=two words\nB=\nPWD=/usr\n/usr\n"
    );
    // Group and session are its own, it has no terminal, and its parent is this process.
    let ids = printed("echo $$; cut -d' ' -f4-7 /proc/$$/stat", |command| command).await;
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let host = std::process::id().to_string();
    assert_eq!(ids, [ids[0], &host, ids[0], ids[0], "0"]);
    // Of the environment that is not its own, it has all.
    let inherited = Command::new("/usr/bin/env").streams(Stream::Null, Stream::Piped, Stream::Null);
    let mut child = spawn(inherited).await.expect("it starts");
    let mut text = String::new();
    let mut stdout = child.stdout.take().expect("it has an output");
    stdout.read_to_string(&mut text).await.expect("text");
    for (name, value) in std::env::vars() {
        assert!(text.contains(&format!("{name}={value}\n")), "{name}");
    }
}

#[tokio::test]
async fn streams_lead_where_they_are_said_to() {
    let command = Command::new("/bin/sh")
        .args(["-c", "cat; echo done >&2"])
        .streams(Stream::Piped, Stream::Piped, Stream::Piped);
    let mut child = spawn(command).await.expect("it starts");
    let mut stdin = child.stdin.take().expect("it has an input");
    stdin.write_all(b"text").await.expect("it reads");
    drop(stdin);
    let (mut output, mut error) = (String::new(), String::new());
    let mut stdout = child.stdout.take().expect("it has an output");
    stdout.read_to_string(&mut output).await.expect("text");
    let mut stderr = child.stderr.take().expect("it has one");
    stderr.read_to_string(&mut error).await.expect("text");
    assert_eq!((output.as_str(), error.as_str()), ("text", "done\n"));
    assert!(child.wait().await.expect("it ends").success());

    let mut child = spawn(Command::new("true")).await.expect("it starts");
    assert!(child.stdin.is_none() && child.stdout.is_none() && child.stderr.is_none());
    assert!(child.wait().await.expect("it ends").success());
}

#[tokio::test]
async fn no_descriptor_of_the_host_is_inherited() {
    let null = fs::File::open("/dev/null").expect("it is there");
    // One that nobody marked.
    // SAFETY: fcntl with these arguments reads no memory of ours.
    let left_open = unsafe { libc::fcntl(null.as_raw_fd(), libc::F_DUPFD, 100) };
    assert!(left_open >= 100);
    // SAFETY: it was just made, and nobody else has it.
    let _left_open = unsafe { OwnedFd::from_raw_fd(left_open) };
    let open = printed("for fd in /proc/$$/fd/*; do echo ${fd##*/}; done", |it| it).await;
    let open: Vec<i32> = open
        .lines()
        .map(|fd| fd.parse().expect("a number"))
        .collect();
    // The shell itself opens the folder.
    assert!(open.starts_with(&[0, 1, 2]) && open.len() <= 4, "{open:?}");
    assert!(!open.contains(&left_open), "{open:?}");
}

/// The signals of a kind that the status of a thread lists.
fn signals(status: &str, kind: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(kind));
    u64::from_str_radix(line.expect("it is listed").trim(), 16).expect("bits")
}

#[tokio::test]
async fn signals_do_what_they_do_by_themselves() {
    extern "C" fn handler(_signal: libc::c_int) {}
    // SAFETY: the handler does nothing, and the calls read what the pointers are to.
    unsafe {
        libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t);
        libc::signal(libc::SIGUSR2, libc::SIG_IGN);
    }
    let of_child = printed("cat /proc/self/status", |it| it).await;
    assert_eq!(signals(&of_child, "SigBlk:"), 0);
    // What the host ignores is ignored, but for what no program expects to be.
    let own = fs::read_to_string("/proc/thread-self/status").expect("it is there");
    let bit = |signal: libc::c_int| 1_u64 << (signal - 1);
    let ignored = signals(&own, "SigIgn:");
    assert_ne!(ignored & bit(libc::SIGUSR2), 0);
    assert_ne!(ignored & bit(libc::SIGPIPE), 0);
    let ignored = ignored & !bit(libc::SIGPIPE);
    assert_eq!(signals(&of_child, "SigIgn:"), ignored);
    // And the host has its own as before.
    assert_eq!(signals(&own, "SigBlk:"), 0);
    assert_ne!(signals(&own, "SigCgt:") & bit(libc::SIGUSR1), 0);
}

#[tokio::test]
async fn code_before_exec_runs_in_the_child_and_may_fail() {
    // SAFETY: umask takes and returns a number.
    let masked = |command: Command| unsafe {
        command.before_exec(|| {
            libc::umask(0o123);
            Ok(())
        })
    };
    assert_eq!(printed("umask", masked).await, "0123\n");
    // SAFETY: the code makes no call at all.
    let refused = unsafe {
        Command::new("true").before_exec(|| Err(io::Error::from_raw_os_error(libc::EDOM)))
    };
    let error = spawn(refused).await.expect_err("it does not start");
    assert_eq!(error.raw_os_error(), Some(libc::EDOM));
}

#[tokio::test]
async fn why_a_program_does_not_start() {
    let folder = Folder::new("why");
    let plain = folder.write("plain", "echo", 0o644);
    let garbage = folder.write("garbage", "#!/no/such/program\n", 0o755);
    let check = async |command: Command, expected: io::ErrorKind| {
        let shown = format!("{command:?}");
        let error = spawn(command).await.expect_err("it does not start");
        assert_eq!(error.kind(), expected, "{shown}: {error}");
    };
    use io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
    check(Command::new("no-such-program"), NotFound).await;
    check(Command::new("/no/such/program"), NotFound).await;
    check(Command::new(""), NotFound).await;
    check(Command::new(&garbage), NotFound).await;
    check(Command::new(&plain), PermissionDenied).await;
    check(Command::new("/"), PermissionDenied).await;
    check(Command::new("true").folder("/no/such/folder"), NotFound).await;
    check(Command::new("a\0b"), InvalidInput).await;
    check(Command::new("true").args(["a\0b"]), InvalidInput).await;
    check(
        Command::new("true").environment([("A", "a\0b")]),
        InvalidInput,
    )
    .await;
    // One that may not be executed hides no other, and is told of if there is none.
    let path = |folders: &[&Path]| {
        let folders: Vec<_> = folders.iter().map(|it| it.display().to_string()).collect();
        Command::new("plain").environment([("PATH", folders.join(":"))])
    };
    check(path(&[&folder.0, Path::new("/no/such")]), PermissionDenied).await;
    let other = Folder::new("why-other");
    other.write("plain", "#!/bin/sh\nexit 7\n", 0o755);
    let mut child = spawn(path(&[&folder.0, &other.0]))
        .await
        .expect("it starts");
    assert_eq!(child.wait().await.expect("it ends").code(), Some(7));
    // What begins like no program is a script, as in every shell.
    let script = other.write("script", "exit $(($1 + 1))", 0o755);
    let mut child = spawn(Command::new(script).args(["8"]))
        .await
        .expect("it starts");
    assert_eq!(child.wait().await.expect("it ends").code(), Some(9));
}

#[tokio::test]
async fn a_program_is_looked_for_in_the_path_it_is_to_have() {
    let folder = Folder::new("path");
    folder.write("callgate-test-program", "#!/bin/sh\necho here\n", 0o755);
    let started = spawn(Command::new("callgate-test-program")).await;
    assert_eq!(
        started.expect_err("it is nowhere").kind(),
        io::ErrorKind::NotFound
    );
    let command = |path: &str| {
        Command::new("callgate-test-program")
            .environment([("PATH", path)])
            .folder(&folder.0)
    };
    let named = folder.0.display().to_string();
    // An empty one is where the program starts.
    for path in [named.as_str(), "/no/such:", ":/no/such", "."] {
        let mut child = spawn(command(path)).await.expect(path);
        assert!(child.wait().await.expect("it ends").success());
    }
}

#[tokio::test]
async fn a_child_that_is_dropped_is_killed_and_waited_for() {
    let command = || Command::new("cat").streams(Stream::Piped, Stream::Null, Stream::Null);
    let child = spawn(command()).await.expect("it starts");
    let pid = child.id().expect("it runs");
    let process = watch(pid);
    drop(child);
    assert!(is_over(&process));
    // Nothing is left of it, not even its status. The runtime takes that when it has a turn.
    while Path::new(&format!("/proc/{pid}")).exists() {
        tokio::task::yield_now().await;
    }

    let mut child = spawn(command()).await.expect("it starts");
    let status = child.kill().await.expect("it ends");
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    // Once more is nothing, and must not be another process with its id.
    assert_eq!(child.kill().await.expect("it has ended"), status);
}

#[test]
fn a_child_outlives_the_thread_and_the_runtime_that_asked_for_it() {
    let (child, thread) = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let command = Command::new("cat").streams(Stream::Piped, Stream::Null, Stream::Null);
        let child = runtime.block_on(spawn(command)).expect("it starts");
        // SAFETY: gettid reads no memory of ours.
        (child, unsafe { libc::gettid() })
    })
    .join()
    .expect("no panic");
    // By the time its entry is gone, the kernel has killed what dies with it.
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

/// The host of the test below, in a process of its own.
#[test]
#[ignore = "it waits to be killed"]
fn host() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let command = || Command::new("cat").streams(Stream::Piped, Stream::Null, Stream::Null);
    let children: Vec<Child> = runtime.block_on(async {
        let mut children = Vec::new();
        for _ in 0..3 {
            children.push(spawn(command()).await.expect("it starts"));
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
fn children_end_with_a_host_that_is_killed() {
    let test = std::env::current_exe().expect("this program");
    let mut host = std::process::Command::new(test)
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

#[tokio::test]
async fn many_are_started_at_once() {
    let started = (0..100).map(|number: i32| async move {
        let command = Command::new("/bin/sh").args(["-c".to_owned(), format!("exit {number}")]);
        let mut child = spawn(command).await.expect("it starts");
        child.wait().await.expect("it ends").code()
    });
    let started: Vec<_> = started.map(tokio::spawn).collect();
    for (number, child) in (0..).zip(started) {
        assert_eq!(child.await.expect("no panic"), Some(number));
    }
}
