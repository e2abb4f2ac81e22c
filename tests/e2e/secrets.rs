//! What is in the host's environment stays there.

use callgate_tests::{Workbench, odd};
use serde_json::{Value, json};

const SECRET: &str = "canary-4f1e9b";

#[test]
fn a_server_gets_what_the_configuration_names_and_no_more() {
    let mut given = odd("env");
    given["env"] = json!({ "TOKEN": "${CALLGATE_TEST_SECRET}" });
    let bench = Workbench::new(json!({ "given": given, "other": odd("env") }));
    bench.write(
        "script.ts",
        "return [await given_env({}), await other_env({})]",
    );
    let ran: callgate_tests::Ran = bench
        .command(&["run", "script.ts", "--json"])
        .env("CALLGATE_TEST_SECRET", SECRET)
        .output()
        .expect("start callgate")
        .into();
    let report = ran.json();
    let (given, other) = (&report["value"]["json"][0], &report["value"]["json"][1]);
    let names = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .map(|map| map.keys().cloned().collect())
            .unwrap_or_default()
    };
    let mut seen = names(given);
    seen.sort();
    assert_eq!(seen, ["HOME", "PATH", "TOKEN"], "{report:#}");
    assert_eq!(given["TOKEN"], SECRET);
    let mut seen = names(other);
    seen.sort();
    assert_eq!(seen, ["HOME", "PATH"], "{report:#}");
}

/// A worker waits in an endless call while the test reads its environment and
/// its memory maps' file names from /proc.
#[test]
fn a_worker_has_no_environment() {
    let bench = Workbench::new(json!({ "odd": odd("hang-on-call") }));
    bench.write("script.ts", "await odd_hang({})");
    let mut child = bench
        .command(&["run", "script.ts", "--yes", "--ledger", "calls.jsonl"])
        .env("CALLGATE_TEST_SECRET", SECRET)
        .spawn()
        .expect("start callgate");
    let worker = loop {
        if let Some(worker) = worker_of(child.id()) {
            break worker;
        }
        assert_eq!(child.try_wait().expect("its state"), None, "ended early");
        std::thread::yield_now();
    };
    // Before the script calls, the program is still being loaded, with an environment that
    // reads as empty, and V8 opens what it begins its random numbers with.
    while std::fs::read(bench.path().join("calls.jsonl")).map_or(0, |ledger| ledger.len()) == 0 {
        assert_eq!(child.try_wait().expect("its state"), None, "ended early");
        std::thread::yield_now();
    }
    let descriptors = std::fs::read_dir(format!("/proc/{worker}/fd")).expect("its descriptors");
    let open: Vec<String> = descriptors
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.display().to_string())
        .collect();
    let environment = std::fs::read(format!("/proc/{worker}/environ")).expect("its environment");
    let files: Vec<_> = open
        .iter()
        .filter(|target| target.starts_with('/') && *target != "/dev/null")
        .collect();
    child.kill().expect("kill callgate");
    child.wait().expect("reap callgate");
    assert_eq!(
        String::from_utf8_lossy(&environment).trim_end_matches('\0'),
        "TZ=UTC"
    );
    assert_eq!(files, Vec::<&String>::new(), "files open in the worker");
}

/// A worker of `parent`, once it has its name, which comes with the empty environment by exec.
fn worker_of(parent: u32) -> Option<u32> {
    workers_of(parent)?.into_iter().next()
}

/// All workers of `parent`.
pub fn workers_of(parent: u32) -> Option<Vec<u32>> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?;
    let mut all = children.unwrap_or_default();
    for thread in threads.flatten() {
        let path = thread.path().join("children");
        all.push_str(&std::fs::read_to_string(path).unwrap_or_default());
    }
    let all = all
        .split_whitespace()
        .filter_map(|pid| pid.parse::<u32>().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"callgate-worker\0")
        });
    Some(all.collect())
}
