//! Starting servers: eras, lists of tools, and everything that goes wrong.

use std::time::Duration;

use callgate_gate::{ServerSpec, Servers, Status};
use expect_test::{Expect, expect};

use crate::support::{in_time, odd, odd_with_env, program, states};

async fn check(specs: Vec<ServerSpec>, expected: Expect) {
    let broker = in_time(Servers::connect(specs, |_| {})).await;
    let states = states(&broker);
    in_time(broker.shut_down()).await;
    expected.assert_eq(&states);
}

#[tokio::test]
async fn each_way_of_answering_discover() {
    check(
        vec![
            odd("counter"),
            odd("counter --modern"),
            odd("exits-on-discover"),
            odd("ignores-discover"),
        ],
        expect![[r#"
            counter: 2025-11-25, tools [wait]
            counter --modern: 2026-07-28, tools [wait]
            exits-on-discover: 2025-11-25, tools [echo]
            ignores-discover: 2025-11-25, tools [echo]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_era_can_be_fixed() {
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
            fixed("exits-on-discover", "2025-11-25"),
            fixed("exits-on-discover", "2026-07-28"),
        ],
        expect![[r#"
            counter 2025-06-18: 2025-06-18, tools [wait]
            server `counter 2026-07-28` did not start: it refused server/discover: Method not found (code -32601)
            counter --modern 2026-07-28: 2026-07-28, tools [wait]
            server `counter --modern 2025-11-25` did not start: it does not speak protocol 2025-11-25; it offers 2026-07-28
            exits-on-discover 2025-11-25: 2025-11-25, tools [echo]
            server `exits-on-discover 2026-07-28` did not start: it ended with exit code 4; run its command by hand to see why; its last words on stderr:
              odd server: expected initialize
        "#]],
    )
    .await;
}

#[tokio::test]
async fn pages_are_read_to_the_end() {
    check(
        vec![odd("pages"), odd("repeat-cursor")],
        expect![[r#"
            pages: 2025-11-25, tools [first, second, third, malformed, fourth, delete, fifth]
            repeat-cursor: 2025-11-25, tools [first, again]
              warning: its list of tools repeats a cursor; what came before is used
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_endless_list_is_cut() {
    check_with(odd("endless-pages"), |status| match status {
        Status::Ready(ready) => {
            assert_eq!(ready.tools.len(), 1_000);
            assert_eq!(
                ready.warnings,
                ["only the first 1000 pages of its tools are used"]
            );
        }
        other => panic!("{other:?}"),
    })
    .await;
}

#[tokio::test]
async fn a_malformed_tool_is_handed_out_as_it_is() {
    check_with(odd("pages"), |status| match status {
        Status::Ready(ready) => {
            let malformed = ready.tools.iter().find(|tool| tool["name"] == "malformed");
            assert_eq!(malformed.map(|tool| &tool["inputSchema"]), Some(&42.into()));
        }
        other => panic!("{other:?}"),
    })
    .await;
}

async fn check_with(spec: ServerSpec, look: impl Fn(&Status)) {
    let broker = in_time(Servers::connect(vec![spec], |_| {})).await;
    for state in broker.list() {
        look(&state.status);
    }
    in_time(broker.shut_down()).await;
}

#[tokio::test]
async fn one_that_fails_takes_no_other_down() {
    let mut silent = odd("silent");
    silent.start_timeout = Duration::from_millis(300);
    // What is remembered of it from another test would change the count of lines.
    let mut junk = odd("junk");
    junk.era = "2025-11-25".parse().expect("a revision");
    let mut nowhere = odd("counter");
    nowhere.name = "nowhere".to_owned();
    if let callgate_gate::Transport::Stdio(stdio) = &mut nowhere.transport {
        stdio.cwd = Some("/no/such/directory".into());
    }
    check(
        vec![
            silent,
            odd("exits"),
            junk.clone(),
            junk,
            program("missing", "callgate-no-such-program", &[]),
            nowhere,
            program("not executable", "/etc/passwd", &[]),
            program("not a server", "true", &[]),
            program("echo", "cat", &[]),
            program(
                "mute",
                "sh",
                &["-c", "exec >&-; read line; read line; exec sleep 100"],
            ),
        ],
        expect![[r#"
            server `silent` did not start: it was not ready within 300 ms (waiting for its handshake); raise its `startTimeout` if it is slow to start
            server `exits` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:
              odd server: no database at localhost:5432
            junk: 2025-11-25, tools [echo]
              warning: 10 lines on its standard output were no MCP messages and were ignored; a server should log to stderr
            server `junk` did not start: another server has this name; give each server a name of its own
            server `missing` did not start: command "callgate-no-such-program" was not found; install it, or give its full path
            server `nowhere` did not start: working directory "/no/such/directory" does not exist; create it, or change `cwd`
            server `not executable` did not start: command "/etc/passwd" could not be started: Permission denied (os error 13)
            server `not a server` did not start: it ended with exit code 0; run its command by hand to see why
            server `echo` did not start: its answer to initialize is malformed: it is our own request, sent back, which no MCP server does; check what is configured for it
            server `mute` did not start: it closed its standard output; an MCP server speaks there
        "#]],
    )
    .await;
}

/// A shell that agrees on a revision and does this when it is asked for its tools.
fn listing(name: &str, does: &str) -> ServerSpec {
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
    let script = format!(
        r#"
        read -r request
        echo '{{"jsonrpc":"2.0","id":0,"result":{result}}}'
        read -r notification
        read -r request
        {does}
    "#
    );
    let mut spec = program(name, "sh", &["-c", &script]);
    spec.era = "2025-11-25".parse().expect("a revision");
    spec
}

#[tokio::test]
async fn one_that_ends_when_it_is_asked_for_its_tools_has_no_malformed_list() {
    check(
        vec![
            listing("ends", "echo 'no database' >&2; exit 3"),
            listing("goes mute", "exec >&-; exec sleep 100"),
        ],
        expect![[r#"
            server `ends` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:
              no database
            server `goes mute` did not start: it closed its standard output; an MCP server speaks there
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_start_may_take_as_long_as_there_is_time() {
    let mut patient = odd("counter");
    patient.start_timeout = Duration::MAX;
    check(
        vec![patient],
        expect![[r#"
            counter: 2025-11-25, tools [wait]
        "#]],
    )
    .await;
}

#[tokio::test]
async fn secrets_are_not_in_messages() {
    let spec = program(
        "leaky",
        "sh",
        &["-c", "echo \"cannot log in with $TOKEN\" >&2; exit 1"],
    );
    let mut leaky = odd_with_env("exits", &[("TOKEN", "hunter2-hunter2")]);
    leaky.name = spec.name;
    if let (callgate_gate::Transport::Stdio(to), callgate_gate::Transport::Stdio(from)) =
        (&mut leaky.transport, spec.transport)
    {
        to.command = from.command;
        to.args = from.args;
    }
    check(vec![leaky], expect![[r#"
        server `leaky` did not start: it ended with exit code 1; run its command by hand to see why; its last words on stderr:
          cannot log in with [TOKEN]
    "#]]).await;
}

#[tokio::test]
async fn secrets_are_not_in_refusals() {
    let refuse = r#"
        for id in 0 1; do
            read -r request
            echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-1,"message":"no '$TOKEN'"}}'
        done
        read -r request
    "#;
    let mut rude = program("rude", "sh", &["-c", refuse]);
    if let callgate_gate::Transport::Stdio(stdio) = &mut rude.transport {
        stdio.env = [("TOKEN".to_owned(), "hunter2-hunter2".to_owned())].into();
    }
    check(
        vec![rude],
        expect![[r#"
        server `rude` did not start: it refused initialize: no [TOKEN] (code -1)
    "#]],
    )
    .await;
}
