//! A client of `callgate serve` that goes away: by either end of its pipes, and
//! whatever it has taken of its answers.

use callgate_tests::Workbench;
use callgate_tests::host::Host;
use serde_json::json;

/// A session with an endless run, for which the client has asked for progress.
fn busy(bench: &Workbench) -> Host {
    let mut host = Host::start(bench, &[]).expect("a handshake");
    let script =
        json!({ "code": "for (;;) await ticketing_createIssue({ title: 'A', body: 'B' })" });
    let params =
        json!({ "name": "run_script", "arguments": script, "_meta": { "progressToken": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    host.send(call).expect("sent");
    let progress = host.receive().expect("progress");
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    host
}

#[test]
fn serve_ends_after_either_pipe_closes() {
    let bench = Workbench::demo();
    let mut reads_nothing = busy(&bench);
    // More than a pipe holds.
    for id in 3..103 {
        let list = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        reads_nothing.send(list).expect("sent");
    }
    assert!(reads_nothing.end().expect("an end").success());

    let mut reads_no_more = busy(&bench);
    drop(reads_no_more.answers.take());
    assert!(reads_no_more.process.wait().expect("an end").success());
}

/// A termination signal is the normal end of a server.
#[test]
fn termination_signal_ends_serve_with_success() {
    let bench = Workbench::demo();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut host = busy(&bench);
        let pid = host.process.id().cast_signed();
        // SAFETY: a system call with numbers; the process is ours and not waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        let ended = host.process.wait().expect("an end");
        assert_eq!(ended.code(), Some(0), "{signal}");
    }
}
