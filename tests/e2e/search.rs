//! `callgate search`: what it prints, and how it ends.

use std::net::TcpListener;
use std::process::Stdio;

use callgate_tests::{Ran, Workbench, fixture};
use expect_test::{Expect, expect};
use serde_json::json;

#[track_caller]
fn check(flags: &[&str], expected: Expect) {
    let bench = Workbench::new(json!({
        "ticketing": fixture("callgate-demo-ticketing", &[]),
        "logging": fixture("callgate-demo-logging", &[]),
    }));
    let ran = bench.callgate(&[&["search"], flags].concat());
    let said = format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        ran.code, ran.stdout, ran.stderr
    );
    expected.assert_eq(&said);
}

#[test]
fn by_words() {
    check(
        &["open a ticket", "--limit", "2"],
        expect![[r#"
        exit code 0
        --- stdout
        ticketing_createIssue: File an issue and get its id.
        ticketing_listIssues: Get every issue filed so far, oldest first.
        --- stderr
    "#]],
    );
}

#[test]
fn a_regular_expression_that_is_none() {
    check(
        &["(", "--by", "regex"],
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: the query is no regular expression: unclosed group
    "#]],
    );
}

/// The endpoint of embeddings takes the connection and says nothing.
#[test]
fn ctrl_c_ends_a_search() {
    let endpoint = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", endpoint.local_addr().expect("an address"));
    let bench = Workbench::with_config(json!({
        "mcpServers": { "logging": fixture("callgate-demo-logging", &[]) },
        "models": { "embeddings": { "url": url, "model": "m" } },
    }));
    let child = bench
        .command(&["search", "the log"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate");
    let _asked = endpoint.accept().expect("a connection");
    let pid = i32::try_from(child.id()).expect("a process id");
    // SAFETY: a system call with numbers; the process is ours and not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let ran = Ran::from(child.wait_with_output().expect("wait for callgate"));
    let told = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
    assert_eq!(told, (130, "", "callgate: the command was cancelled\n"));
}
