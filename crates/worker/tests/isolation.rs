//! The process of a worker: its resources and its end.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_sandbox::{
    CallHandler, End, Ended, Launcher, LauncherOptions, MachineCode, ScriptCall, Thrown,
    WorkerProgram,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use support::{Handler, job, launcher, run_by, run_with, shown};
use tokio_util::sync::CancellationToken;

/// Inspects the worker while its script waits for a call.
#[derive(Default)]
struct Look {
    seen: Arc<Mutex<Vec<Seen>>>,
    kill: Option<i32>,
}

#[derive(Debug)]
struct Seen {
    pid: i32,
    environ: std::io::Result<Vec<u8>>,
    fds: std::io::Result<Vec<(u32, String)>>,
    status: String,
}

impl CallHandler for Look {
    fn call(&self, _: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        let seen = Arc::clone(&self.seen);
        let kill = self.kill;
        async move {
            for pid in children() {
                if let Some(signal) = kill {
                    // SAFETY: a child of this test that was not waited for.
                    unsafe { libc::kill(pid, signal) };
                    continue;
                }
                let process = PathBuf::from(format!("/proc/{pid}"));
                let fds = std::fs::read_dir(process.join("fd")).map(|entries| {
                    let mut fds: Vec<_> = entries
                        .filter_map(Result::ok)
                        .map(|entry| {
                            let target = std::fs::read_link(entry.path()).unwrap_or_default();
                            let target = target.to_string_lossy();
                            let kind = match target.split_once(':') {
                                Some(("anon_inode", kind)) => kind,
                                Some((kind, _number)) => kind,
                                None => &target,
                            };
                            let fd = entry.file_name().to_string_lossy().parse().unwrap();
                            (fd, kind.to_owned())
                        })
                        .collect();
                    fds.sort();
                    fds
                });
                seen.lock().unwrap().push(Seen {
                    pid,
                    environ: std::fs::read(process.join("environ")),
                    fds,
                    status: std::fs::read_to_string(process.join("status")).unwrap_or_default(),
                });
            }
            Ok(RawValue::from_string("null".to_owned()).unwrap())
        }
        .boxed()
    }
}

/// Workers of this process.
fn children() -> Vec<i32> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        if rest.split_whitespace().nth(1) == Some(&me) {
            found.push(pid);
        }
    }
    found
}

/// Waits until there is no worker, not even a zombie.
async fn no_children_are_left(pids: &[i32]) {
    let deadline = std::time::Instant::now() + Duration::from_secs(5);
    let there = |pid: &i32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    while !children().is_empty() || pids.iter().any(there) {
        let is_late = std::time::Instant::now() > deadline;
        assert!(!is_late, "{:?} are still there", children());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn worker_has_no_environment_files_or_privileges() {
    // SAFETY: no other thread of this test reads the environment.
    unsafe { std::env::set_var("CALLGATE_TEST_SECRET", "hunter2") };
    // A descriptor that a careless library would pass to children.
    let (reader, _writer) = std::io::pipe().unwrap();
    // SAFETY: a plain system call on an open descriptor.
    unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&reader), libc::F_SETFD, 0) };
    let look = Look::default();
    let seen = Arc::clone(&look.seen);
    let mut job = job("await echo({}); return 1;");
    job.functions = vec!["echo".to_owned()];
    assert_eq!(shown(&run_with(job, look).await), "=> 1\n");

    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let [seen] = seen.as_slice() else {
        panic!("one worker, not {seen:?}")
    };
    // The worker is not dumpable, so only root can inspect it; a refusal also passes.
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    match (&seen.environ, &seen.fds) {
        (Ok(environ), Ok(fds)) => {
            assert_eq!(String::from_utf8_lossy(environ), "TZ=UTC\0");
            let shown = fds.iter().map(|(fd, kind)| format!("{fd} {kind}"));
            // 0, 4 and 5 are the socket to the host: inherited, for writing and for reading. 3 was
            // closed when the jail was shut. The runtime waits on the others and wakes itself by them.
            assert_eq!(
                shown.collect::<Vec<_>>().join(", "),
                "0 socket, 1 /dev/null, 2 pipe, 4 socket, 5 socket, 6 [eventpoll], 7 [eventfd], \
                 8 [eventpoll], 9 socket, 10 socket, 11 socket"
            );
        }
        refused => assert!(!root, "root is refused: {refused:?}"),
    }
    assert!(seen.status.contains("NoNewPrivs:\t1"), "{}", seen.status);
    no_children_are_left(&[seen.pid]).await;
}

#[tokio::test]
async fn dead_worker_is_reported() {
    let script =
        "console.log('before'); await echo({}); await new Promise(r => setTimeout(r, 5000));";
    for signal in [libc::SIGABRT, libc::SIGTRAP] {
        let look = Look {
            kill: Some(signal),
            ..Look::default()
        };
        let Ended { end, output, .. } = run_with(job(script), look).await;
        let End::Crashed { reason } = end else {
            panic!("{end:?}")
        };
        assert_eq!(reason, format!("the worker died of signal {signal}"));
        assert_eq!(output.head, "before\n");
    }
}

#[tokio::test]
async fn a_dropped_run_leaves_no_process() {
    let launcher = launcher(0);
    let run = run_job(&launcher, "while (true) {}");
    let stopped = tokio::time::timeout(Duration::from_millis(300), run).await;
    assert!(stopped.is_err(), "a run that does not end by itself");
    no_children_are_left(&[]).await;
}

#[tokio::test]
async fn non_worker_programs_are_reported() {
    let ended = "the worker ended with code 0 before the script did";
    let closed = "the worker closed its socket before the script ended";
    let missing = "the worker /nowhere/worker cannot be started: No such file or directory";
    for (program, expected) in [("/nowhere/worker", missing), ("/bin/true", ended)] {
        let program = WorkerProgram::Path(program.into());
        let launcher = Launcher::new(program, LauncherOptions::default());
        let End::NotStarted { reason } = run_job(&launcher, "return 1;").await.end else {
            panic!("{expected}")
        };
        assert!(
            reason.replace(closed, ended).starts_with(expected),
            "{reason}"
        );
    }
}

/// Runs a script without calls.
async fn run_job(launcher: &Launcher, script: &str) -> Ended {
    let handler = Arc::new(Handler::default());
    run_by(launcher, job(script), handler, CancellationToken::new()).await
}

#[test]
fn worker_of_other_build_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_test-worker"))
        .arg0("callgate-worker")
        .args(["--callgate-sandbox-worker", "0.0.0-0", "134217728", "1"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "the worker program and its host are not from the same build; install them together, \
         and restart a host that was replaced while it ran\n"
    );
}

#[test]
fn a_normal_start_is_no_worker() {
    for arguments in [vec![], vec!["--callgate-sandbox-worker", "0.0.0-0"]] {
        let status = Command::new(env!("CARGO_BIN_EXE_test-worker"))
            .args(&arguments)
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2), "{arguments:?}");
    }
}

/// V8 aborts in its set-up on some machines: the worker is then started again, first without
/// protection keys, then without machine code, and later workers too.
#[tokio::test]
async fn worker_falls_back_when_v8_aborts() {
    let folder = tempfile::tempdir().unwrap();
    let (program, starts) = (folder.path().join("worker"), folder.path().join("starts"));
    let worker = env!("CARGO_BIN_EXE_test-worker");
    let script = format!(
        "#!/bin/bash\necho \"$4\" >> '{}'\n[ \"$4\" = 2 ] || kill -TRAP $$\nexec -a callgate-worker '{worker}' \"$@\"\n",
        starts.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    let options = LauncherOptions {
        spares: 0,
        ..LauncherOptions::default()
    };
    let launcher = Launcher::new(WorkerProgram::Path(program), options);
    for _ in 0..2 {
        let ended = run_job(&launcher, "return 1;").await;
        assert_eq!(shown(&ended), "=> 1\n");
        assert_eq!(ended.jail.unwrap().machine_code, MachineCode::None);
    }
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "0\n1\n2\n2\n");
}
