//! What a command leaves behind when it has ended: no process, not even one that
//! has ended and was not waited for.

use std::process::Command;

use callgate_tests::{Workbench, fixture};
use serde_json::json;

/// Runs of each kind.
const RUNS: usize = 8;

#[test]
fn a_command_that_has_ended_leaves_no_process() {
    // In a process of its own, which inherits no other test's processes.
    let test = std::env::current_exe().expect("this program");
    let status = Command::new(test)
        .args(["--exact", "reaping::heir", "--ignored", "--nocapture"])
        .status();
    assert!(status.expect("it starts").success());
}

/// The test above, in its own process, which inherits what a command leaves.
#[test]
#[ignore = "run by another test"]
fn heir() {
    // SAFETY: this prctl takes numbers only.
    let set = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    assert_eq!(set, 0);
    let bench = Workbench::new(json!({ "ticketing": fixture("callgate-demo-ticketing", &[]) }));
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
