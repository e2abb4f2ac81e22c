//! A client of `callgate serve` that goes away: by either end of its pipes, and
//! whatever it has taken of its answers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use callgate_tests::{Workbench, demo_ticketing};
use serde_json::{Value, json};

use crate::served::hello;

/// With a session, and a script that never ends under way, of whose progress the client
/// wants to know.
struct Busy {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    _bench: Workbench,
}

impl Busy {
    /// After so many lists of tools that nobody reads.
    fn start(lists: u64) -> Self {
        let bench = Workbench::new(json!({
            "ticketing": demo_ticketing(),
        }));
        let mut child = bench
            .command(&["serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("start callgate serve");
        let mut stdin = child.stdin.take().expect("a piped stdin");
        let mut stdout = BufReader::new(child.stdout.take().expect("a piped stdout"));
        let mut say = |message: Value| writeln!(stdin, "{message}").expect("send a line");
        say(hello());
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a handshake");
        say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let code = "for (;;) await ticketing_createIssue({ title: 'A', body: 'B' })";
        say(
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "run_script", "arguments": { "code": code },
            "_meta": { "progressToken": 1 } } }),
        );
        line.clear();
        stdout.read_line(&mut line).expect("progress");
        assert!(line.contains("notifications/progress"), "{line}");
        for id in 3..3 + lists {
            say(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }));
        }
        Self {
            child,
            stdin,
            stdout,
            _bench: bench,
        }
    }
}

#[test]
fn a_client_that_reads_nothing_can_go() {
    // More than a pipe holds.
    let mut busy = Busy::start(100);
    drop(busy.stdin);
    assert!(busy.child.wait().expect("an end").success());
    drop(busy.stdout);
}

#[test]
fn a_client_that_reads_no_more_is_gone() {
    let mut busy = Busy::start(0);
    drop(busy.stdout);
    assert!(busy.child.wait().expect("an end").success());
    drop(busy.stdin);
}

/// That is how a server is told to end, so nothing has failed.
#[test]
fn a_signal_to_end_is_no_failure() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut busy = Busy::start(0);
        let pid = i32::try_from(busy.child.id()).expect("a process id");
        // SAFETY: a system call with numbers; the process is ours and not waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        let ended = busy.child.wait().expect("an end");
        assert_eq!(ended.code(), Some(0), "{signal}");
        drop((busy.stdin, busy.stdout));
    }
}
