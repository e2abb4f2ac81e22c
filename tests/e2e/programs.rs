//! Scripts and calls as programs of a shell: arguments, standard input, exit codes.

use callgate_tests::{Workbench, odd};
use serde_json::{Value, json};

use crate::cli::ticketing;

/// Calls a tool that answers with its arguments, and returns them.
#[track_caller]
fn sent(bench: &Workbench, words: &[&str]) -> Value {
    let ran = bench.callgate(&[&["call", "odd_search_records_7"], words].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    let title = &ran.json()["records"][0]["title"];
    serde_json::from_str(title.as_str().expect("a title")).expect("the arguments")
}

#[test]
fn pairs_of_a_call_follow_the_schema() {
    let bench = Workbench::new(json!({ "odd": odd("many") }));
    assert_eq!(
        sent(&bench, &["query=17", "project=", "page=4", r#"labels=["a"]"#]),
        json!({ "query": "17", "project": "", "page": 4, "labels": ["a"] })
    );
    assert_eq!(
        sent(&bench, &["project=x=y", "query=null", "labels:=[]", "state=open"]),
        json!({ "project": "x=y", "query": "null", "labels": [], "state": "open" })
    );
}

#[test]
fn wrong_arguments_of_a_call_are_not_sent() {
    let mut server = odd("many");
    let bench = Workbench::empty();
    let sent = bench.path().join("sent");
    server["env"] = json!({ "CALLS": sent });
    let config = json!({ "mcpServers": { "odd": server }, "permissions": { "allow": ["*"] } });
    bench.write("callgate.json", &config.to_string());
    for (words, parts) in [
        (
            &[r#"{"query":"a","projekt":"b"}"#][..],
            &["\"projekt\"; did you mean \"project\"?"][..],
        ),
        (&["query=a", "project=b", "page=0"], &["/page: "]),
        (&["query=a", "project=b", "page=soon"], &["/page: ", "\"integer\""]),
        (&[r#"{"query":7,"project":"b"}"#], &["/query: ", "\"string\""]),
        (&[], &["\"query\" is a required property"]),
        (&["query"], &["\"query\" is no pair", "path=README.md"]),
    ] {
        let ran = bench.callgate(&[&["call", "odd_search_records_7"], words].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        for part in parts {
            assert!(ran.stderr.contains(part), "{part}: {ran:#?}");
        }
    }
    assert!(!sent.exists());
}

#[test]
fn wrong_arguments_end_a_call_before_its_question() {
    let bench = Workbench::asking();
    let ran = bench.callgate(&["call", "ticketing_createIssue", "titles=x"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let said = "ticketing_createIssue was not called: there is no argument \"titles\"";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    let ran = bench.callgate(&["call", "ticketing_createIssue", "title=x"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
}

#[test]
fn arguments_over_the_limit_are_refused() {
    let bench = ticketing();
    let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(16 << 20));
    let file = std::fs::File::open(bench.write("long.json", &long)).expect("the file");
    let mut command = bench.command(&["call", "ticketing_createIssue", "-"]);
    let ran = callgate_tests::Ran::from(command.stdin(file).output().expect("the end"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("longer than 16 MiB"), "{}", ran.stderr);
}

#[test]
fn call_prints_a_result_that_does_not_fit() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    for (value, printed) in [(json!({ "n": 1.5 }), "{\"n\":1.5}\n"), (json!({}), "{}\n")] {
        let arguments = json!({ "value": value }).to_string();
        let ran = bench.callgate(&["call", "odd_counts", &arguments]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, printed), "{ran:#?}");
        let said = "does not fit the tool's outputSchema";
        assert!(ran.stderr.contains(said), "{ran:#?}");
    }
}

/// Lists two tools that would have one name, and one whose name is like it.
const LIKE_NAMES: &str = r#"
    schema='"inputSchema":{"type":"object"}'
    while read -r line; do
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
        case "$line" in
        *'"initialize"'*)
            say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
        *'"tools/list"'*)
            say '"result":{"tools":[{"name":"list-items",'$schema'},{"name":"list_items",'$schema'},{"name":"listItems",'$schema'}]}' ;;
        esac
    done"#;

#[test]
fn name_in_the_tools_spelling_names_both_tools() {
    let server = json!({ "command": "sh", "args": ["-c", LIKE_NAMES], "protocol": "2025-11-25" });
    let bench = Workbench::new(json!({ "s": server }));
    for command in [["call", "s_list-items"], ["types", "s.list-items"]] {
        let ran = bench.callgate(&command);
        assert_eq!(ran.code, 2, "{ran:#?}");
        for part in ["for \"list-items\" of", "for \"list_items\" of"] {
            assert!(ran.stderr.contains(part), "{part}: {ran:#?}");
        }
    }
}
