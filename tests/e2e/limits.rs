//! Each limit ends a run typed, with its exit code, and with the ledger whole.

use std::process::Stdio;
use std::time::{Duration, Instant};

use callgate_tests::{Ran, Workbench, odd};
use serde_json::{Value, json};

/// Far above what each of these takes; a hang would be far above this.
const IN_TIME: Duration = Duration::from_secs(60);

#[track_caller]
fn ends(script: &str, flags: &[&str], status: &str, kind: &str, which: Option<&str>) -> Value {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    let before = Instant::now();
    let report = bench.report(&format!("console.log('before');\n{script}"), flags);
    assert!(before.elapsed() < IN_TIME, "took {:?}", before.elapsed());
    assert_eq!(report["status"], status, "{report:#}");
    assert_eq!(report["error"]["kind"], kind, "{report:#}");
    assert_eq!(
        report["error"]["limit"]["which"].as_str(),
        which,
        "{report:#}"
    );
    report
}

#[test]
fn a_builtin_that_v8_does_not_interrupt() {
    let script = "Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)";
    let report = ends(
        script,
        &["--timeout", "300ms"],
        "limit",
        "limit",
        Some("timeout"),
    );
    assert_eq!(report["output"]["text"], "before\n");
}

#[test]
fn a_hundred_megabyte_result_is_an_error_that_can_be_caught() {
    let bench = Workbench::new(json!({ "odd": odd("big") }));
    let report = bench.report(
        "try { await odd_blob({ bytes: 100_000_000 }); return 'got it'; }
         catch (error) { return [error instanceof McpProtocolError, error.tool]; }",
        &[],
    );
    assert_eq!(report["status"], "completed", "{report:#}");
    assert_eq!(
        report["value"]["json"],
        json!([true, "odd_blob"]),
        "{report:#}"
    );
    assert_eq!(report["calls"].as_array().map(Vec::len), Some(1));
}

/// The parser would take hours for it, in a worker. Nothing was printed before.
#[test]
fn ctrl_c_while_the_script_is_read() {
    let bench = Workbench::new(json!({}));
    let levels = format!("f({}1{})", "<T>[".repeat(40), "]".repeat(40));
    bench.write("script.ts", &levels);
    let child = bench
        .command(&["run", "script.ts", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate");
    let pid = i32::try_from(child.id()).expect("a process id");
    let began = Instant::now();
    while !has_child(pid) {
        assert!(began.elapsed() < IN_TIME, "there is no worker");
        std::thread::yield_now();
    }
    // SAFETY: a system call with numbers; the process is ours and not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let ran = Ran::from(child.wait_with_output().expect("wait for callgate"));
    assert_eq!(ran.code, 130, "{ran:?}");
    let report = ran.json();
    let told = [&report["status"], &report["error"]["message"]];
    assert_eq!(told, ["cancelled", "cancelled; nothing was run"]);
}

fn has_child(pid: i32) -> bool {
    let pid = pid.to_string();
    let processes = std::fs::read_dir("/proc").expect("the processes");
    processes.filter_map(Result::ok).any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1) == Some(&pid)
    })
}
