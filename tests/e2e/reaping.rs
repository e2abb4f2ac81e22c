//! A command leaves no process behind, not even a zombie, and a command that continues keeps no
//! resources of its runs.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use callgate_tests::{Workbench, children, demo_ticketing};
use futures::future::join_all;
use rmcp::model::ProtocolVersion;
use serde_json::json;

use crate::serve_client::{Session, User, connect};

/// Runs of each kind.
const RUNS: usize = 4;

#[test]
fn ended_command_leaves_no_process() {
    // In a process of its own, which inherits no other test's processes.
    let test = std::env::current_exe().expect("this program");
    let status = Command::new(test)
        .args([
            "--exact",
            "reaping::subreaper_inherits_no_process",
            "--ignored",
            "--nocapture",
        ])
        .status();
    assert!(status.expect("it starts").success());
}

/// The test above, in a process of its own, which inherits orphans of the command.
#[test]
#[ignore = "run by another test"]
fn subreaper_inherits_no_process() {
    // SAFETY: this prctl takes numbers only.
    let set = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    assert_eq!(set, 0);
    let bench = Workbench::new(json!({ "ticketing": demo_ticketing() }));
    bench.write(
        "good.ts",
        "return (await ticketing_listIssues()).issues.length",
    );
    bench.write("endless.ts", "for (;;);");
    bench.write("wrong.ts", "const a: number = 'x';");
    let commands: [&[&str]; 6] = [
        &["run", "good.ts"],
        &["run", "endless.ts", "--timeout=200ms"],
        &["run", "wrong.ts"],
        &["check", "good.ts"],
        &["call", "ticketing_listIssues", "{}"],
        // Its input is at its end.
        &["serve"],
    ];
    for command in commands {
        for _ in 0..RUNS {
            let _ = bench.callgate(command);
            // SAFETY: waitpid is given no place to write to.
            let left = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
            let error = std::io::Error::last_os_error().raw_os_error();
            assert_eq!((left, error), (-1, Some(libc::ECHILD)), "{command:?}");
        }
    }
}

/// Rounds of [`SCRIPTS`] until caches and spare workers are there, and after that.
const ROUNDS: [usize; 2] = [10, 30];
/// Scripts that return, call a tool, throw, are refused and reach a limit.
const SCRIPTS: [&str; 5] = [
    "return 'x'.repeat(1000)",
    "return await ticketing_listIssues()",
    "throw new Error('x')",
    "import 'x'",
    "for (;;);",
];

#[tokio::test]
async fn hundreds_of_runs_in_serve_leak_nothing() {
    let bench = Workbench::new(json!({ "ticketing": demo_ticketing() }));
    let user = User::new(&ProtocolVersion::V_2025_11_25, &[]);
    let session = connect(&bench, user, &["--check=off"]).await;
    let mut held = Vec::new();
    for rounds in ROUNDS {
        for _ in 0..rounds {
            let limits = json!({ "timeoutMs": 100 });
            let run =
                |code| session.result("run_script", json!({ "code": code, "limits": limits }));
            let ran = join_all(SCRIPTS.map(run)).await;
            let failed: Vec<bool> = ran.into_iter().map(|(failed, _)| failed).collect();
            assert_eq!(failed, [false, false, true, true, true]);
        }
        held.push(held_by(&session).await);
    }
    let [before, after] = [&held[0], &held[1]];
    // Spare workers are replaced, and the allocator does not return all memory.
    let slack = [16, 8, 4, 32 << 10];
    let grown = (0..slack.len()).any(|kind| after[kind] > before[kind] + slack[kind]);
    assert!(
        !grown,
        "{before:?} descriptors, threads, processes and KiB became {after:?}"
    );
}

/// Descriptors, threads, processes and KiB of memory of the host, once it has waited for the
/// processes that have ended.
async fn held_by(session: &Session) -> [usize; 4] {
    let proc = format!("/proc/{}", session.pid);
    let began = Instant::now();
    loop {
        let children = children(session.pid);
        let stat = |pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let ended = children.iter().any(|pid| stat(pid).contains(") Z "));
        if ended && began.elapsed() < Duration::from_secs(20) {
            tokio::task::yield_now().await;
            continue;
        }
        assert!(!ended, "a process that has ended is not waited for");
        // Another user than root may not look into a process that may not be traced.
        let count = |name| fs::read_dir(format!("{proc}/{name}")).map_or(0, Iterator::count);
        let status = fs::read_to_string(format!("{proc}/status")).expect("it runs");
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|memory| memory.trim_end_matches("kB").trim().parse().ok());
        return [
            count("fd"),
            count("task"),
            children.len(),
            memory.expect("a number"),
        ];
    }
}
