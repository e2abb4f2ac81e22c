//! Starting servers: both eras, odd lists, failures.

use std::time::Duration;

use callgate_auth::Source;
use callgate_servers::{ServerSpec, Status, Transport};
use expect_test::{Expect, expect};

use crate::support::{answer, in_time, odd, odd_with_env, start, states};

async fn check(specs: Vec<ServerSpec>, expected: Expect) {
    let servers = start(specs).await;
    let states = states(&servers);
    in_time(servers.shut_down()).await;
    expected.assert_eq(&states);
}

#[tokio::test]
async fn every_answer_to_discover_is_handled() {
    // Its answer comes after the time limit, and it has no `initialize`, so it is asked again.
    let mut slow = odd("counter --modern --start-delay-ms 2500");
    slow.name = "slow".to_owned();
    check(
        vec![
            slow,
            odd("counter"),
            odd("counter --modern"),
            odd("exits-on-discover"),
            odd("ignores-discover"),
        ],
        expect![[r#"
            slow: 2026-07-28, tools [wait]
            counter: 2025-11-25, tools [wait]
            counter --modern: 2026-07-28, tools [wait]
            exits-on-discover: 2025-11-25, tools [echo]
            ignores-discover: 2025-11-25, tools [echo]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn configured_era_is_used() {
    let fixed = |mode, era: &str| {
        let mut spec = odd(mode);
        spec.name = format!("{mode} {era}");
        spec.era = era.parse().expect("a revision");
        spec
    };
    check(
        vec![
            fixed("counter", "2025-06-18"),
            fixed("counter", "2026-07-28"),
            fixed("counter --modern", "2026-07-28"),
            fixed("counter --modern", "2025-11-25"),
            fixed("exits-on-discover", "2026-07-28"),
        ],
        expect![[r#"
            counter 2025-06-18: 2025-06-18, tools [wait]
            server `counter 2026-07-28` did not start: it refused server/discover: Method not found (code -32601)
            counter --modern 2026-07-28: 2026-07-28, tools [wait]
            server `counter --modern 2025-11-25` did not start: it does not speak protocol 2025-11-25; it offers 2026-07-28
            server `exits-on-discover 2026-07-28` did not start: it ended with exit code 4; run its command by hand to see why; its last words on stderr:
              odd server: expected initialize
        "#]],
    )
    .await;
}

#[tokio::test]
async fn odd_tool_lists_are_read_partially() {
    check(
        vec![odd("pages"), odd("repeat-cursor")],
        expect![[r#"
            pages: 2025-11-25, tools [first, second, third, malformed, fourth, delete, fifth]
            repeat-cursor: 2025-11-25, tools [first, again]
              warning: its list of tools repeats a cursor; what came before is used
        "#]],
    )
    .await;
    let servers = start(vec![odd("endless-pages")]).await;
    let state = servers.list().next().expect("a server");
    let Status::Ready(list) = state.status else {
        panic!("{state:?}");
    };
    assert_eq!(list.tools.len(), 1_000);
    assert_eq!(
        list.gaps,
        ["only the first 1000 pages of its tools are used"]
    );
    in_time(servers.shut_down()).await;
}

#[tokio::test]
async fn failed_server_does_not_affect_others() {
    let mut silent = odd("silent");
    silent.start_timeout = Duration::from_millis(300);
    let mut junk = odd("junk");
    junk.era = "2025-11-25".parse().expect("a revision");
    let mut twin = odd("counter");
    twin.name = "junk".to_owned();
    let missing = ServerSpec::stdio("missing", "callgate-no-such-program", [""; 0]);
    let mut nowhere = odd("counter");
    nowhere.name = "nowhere".to_owned();
    if let Transport::Stdio(stdio) = &mut nowhere.transport {
        stdio.cwd = Some("/no/such/directory".into());
    }
    let shell = |name: &str, script: &str| ServerSpec::stdio(name, "sh", ["-c", script]);
    let mut usage = shell("usage", "echo 'Usage: server [stdio]'; exec sleep 60");
    usage.start_timeout = Duration::from_millis(500);
    check(
        vec![
            silent,
            junk,
            twin,
            missing,
            nowhere,
            odd("exits"),
            ServerSpec::stdio("not a server", "true", [""; 0]),
            ServerSpec::stdio("echo", "cat", [""; 0]),
            shell("mute", "exec >&-; read line; read line; exec sleep 100"),
            usage,
            shell("unlicensed", "echo 'no license'; exit 3"),
        ],
        expect![[r#"
            server `silent` did not start: it was not ready within 300 ms (waiting for its handshake); raise its `startTimeout` if it is slow to start
            junk: 2025-11-25, tools [echo]
              warning: the server wrote 13 messages that could not be used, the first: "Junk server 1.0 listening on stdio …"; it should log to stderr
            server `junk` did not start: another server has this name; give each server a name of its own
            server `missing` did not start: command "callgate-no-such-program" was not found; install it, or give its full path
            server `nowhere` did not start: working directory "/no/such/directory" does not exist; create it, or change `cwd`
            server `exits` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:
              odd server: no database at localhost:5432
            server `not a server` did not start: it ended with exit code 0; run its command by hand to see why
            server `echo` did not start: its answer to initialize is malformed: it is our own request, sent back, which no MCP server does; check what is configured for it
            server `mute` did not start: it closed its standard output; an MCP server speaks there
            server `usage` did not start: it was not ready within 500 ms (waiting for its handshake); raise its `startTimeout` if it is slow to start; the server wrote a message that could not be used: "Usage: server [stdio]"
            server `unlicensed` did not start: it ended with exit code 3; run its command by hand to see why; the server wrote a message that could not be used: "no license"
        "#]],
    )
    .await;
}

#[tokio::test]
async fn process_has_only_the_configured_environment() {
    let spec = odd_with_env("env", &[("GIVEN", "yes")]);
    let seen = answer(spec, "env", serde_json::json!({})).await;
    let seen: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&seen).expect("an object");
    let mut names: Vec<_> = seen.keys().map(String::as_str).collect();
    names.retain(|name| !matches!(*name, "PATH" | "HOME"));
    assert_eq!(names, ["CALLGATE_DEPTH", "GIVEN"]);
}

/// A shell that runs this script, with a secret in its environment.
fn shell(name: &str, script: &str) -> ServerSpec {
    let mut spec = ServerSpec::stdio(name, "sh", ["-c", script]);
    spec.era = "2025-11-25".parse().expect("a revision");
    if let Transport::Stdio(stdio) = &mut spec.transport {
        let token = Source::text("hunter2-hunter2");
        stdio.env.insert("TOKEN".to_owned(), token);
    }
    spec
}

/// A shell that agrees on a revision, and runs `does` when it gets `tools/list`.
fn listing(name: &str, does: &str) -> ServerSpec {
    let greeting = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
    let script = format!(
        r#"read -r request; echo '{{"jsonrpc":"2.0","id":0,"result":{greeting}}}'
        read -r notification; read -r request; {does}"#
    );
    shell(name, &script)
}

#[tokio::test]
async fn start_errors_show_stderr_without_secrets() {
    let refuses = r#"read -r request
        echo '{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no '$TOKEN'"}}'
        read -r request"#;
    let counts = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $n >&2; done; exit 1";
    let counting = states(&start(vec![shell("counts", counts)]).await);
    assert!(counting.contains("line 3\n"), "{counting}");
    assert!(
        !counting.contains("line 2\n"),
        "the last ten lines: {counting}"
    );
    check(
        vec![
            shell("leaky", "echo \"cannot log in with $TOKEN\" >&2; exit 1"),
            shell("rude", refuses),
            listing("ends", "echo 'no database' >&2; exit 3"),
            listing("goes mute", "exec >&-; exec sleep 100"),
        ],
        expect![[r#"
            server `leaky` did not start: it ended with exit code 1; run its command by hand to see why; its last words on stderr:
              cannot log in with [TOKEN]
            server `rude` did not start: it refused initialize: no [TOKEN] (code -1)
            server `ends` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:
              no database
            server `goes mute` did not start: it closed its standard output; an MCP server speaks there
        "#]],
    )
    .await;
}
