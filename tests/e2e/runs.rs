//! `callgate runs`: runs are recorded, listed, shown and removed, and no run needs the record.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use callgate_tests::{Ran, Workbench, demo_ticketing};
use serde_json::{Value, json};

use crate::serve_client::{NEWEST, User, connect};

/// The ticketing server, all of whose calls are allowed, with this value of `store`.
fn bench(store: Value) -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": { "ticketing": demo_ticketing() },
        "permissions": { "allow": ["*"] },
        "check": { "mode": "off" },
        "store": store,
    }))
}

/// The runs in the record, the newest first.
fn runs(bench: &Workbench, flags: &[&str]) -> Vec<Value> {
    let ran = bench.callgate(&[&["runs", "--json"], flags].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    ran.json().as_array().expect("a list").clone()
}

/// The output of `callgate runs COMMAND RUN` for the newest run.
fn newest(bench: &Workbench, command: &str) -> Ran {
    let id = runs(bench, &["--limit", "1"])[0]["id"].clone();
    bench.callgate(&["runs", command, id.as_str().expect("an id")])
}

#[tokio::test]
async fn runs_of_all_commands_are_listed() {
    let bench = bench(json!(true));
    let report = bench.report("await ticketing_listIssues(); return 'first'", &[]);
    let ran = bench.run("throw new Error('half')", &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let (is_error, said) = session.run("return 6 * 9").await;
    assert!(!is_error, "{said}");
    drop(session);
    let ran = bench.callgate(&["call", "ticketing_listIssues", "{}"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let listed = runs(&bench, &[]);
    let found: Vec<String> = listed
        .iter()
        .map(|run| format!("{} {}", run["face"], run["status"]))
        .collect();
    assert_eq!(found[0], r#""call" "completed""#);
    // The server may still be ending.
    assert!(found[1].starts_with(r#""serve" "#), "{found:?}");
    assert_eq!(found[2..], [r#""run" "failed""#, r#""run" "completed""#]);
    assert_eq!(listed[3]["id"], report["run"]);
    assert_eq!(listed[0]["script"], Value::Null);
    assert!(listed[1]["client"].is_string(), "{listed:#?}");

    let id =
        |runs: Vec<Value>| -> Vec<Value> { runs.iter().map(|run| run["id"].clone()).collect() };
    let of_tool = id(runs(&bench, &["--tool", "ticketing_listIssues"]));
    assert_eq!(of_tool, [listed[0]["id"].clone(), listed[3]["id"].clone()]);
    let failed = id(runs(&bench, &["--status", "failed", "--since", "1d"]));
    assert_eq!(failed, [listed[2]["id"].clone()]);
    let text = bench.callgate(&["runs", "--status", "failed"]).stdout;
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("  failed  ") && text.contains("  run  "),
        "{text}"
    );

    let run = listed[3]["id"].as_str().expect("an id");
    let shown = bench
        .callgate(&["runs", "--config", "callgate.json", "show", run])
        .stdout;
    for part in [
        "status   completed",
        "calls    1, ",
        "callgate.json",
        "SHA-256",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let calls = bench.callgate(&["runs", "calls", run]).stdout;
    assert!(
        calls.starts_with("1  line 1  ticketing_listIssues  ok  "),
        "{calls}"
    );
}

#[test]
fn texts_are_kept_as_bodies_says() {
    let thrown = "console.log('so far'); throw new Error('late')";
    for (bodies, script, is_kept) in [
        ("none", thrown, false),
        ("errors", thrown, true),
        ("errors", "return 'fine so far'", false),
        ("all", "return 'fine so far'", true),
    ] {
        let bench = bench(json!({ "bodies": bodies }));
        bench.run(script, &[]);
        let (script_of, output) = (newest(&bench, "script"), newest(&bench, "output"));
        if is_kept {
            assert_eq!((script_of.code, script_of.stdout.as_str()), (0, script));
            assert!(output.stdout.contains("so far\n"), "{output:#?}");
        } else {
            assert_eq!((script_of.code, output.code), (1, 1), "{bodies}");
            let says = format!("{} bytes, SHA-256 ", script.len());
            assert!(script_of.stderr.contains(&says), "{script_of:#?}");
            assert!(output.stderr.contains(r#""bodies": "all""#), "{output:#?}");
        }
        let folder = bench.state().join("callgate/store");
        let mode = fs::metadata(&folder)
            .expect("the folder")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[test]
fn kept_arguments_and_results_belong_to_calls() {
    for (bodies, is_kept) in [("all", true), ("none", false)] {
        let bench = bench(json!({ "bodies": bodies }));
        let ran = bench.run("await ticketing_createIssue({ title: 'Leak in B3' })", &[]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let id = runs(&bench, &[])[0]["id"].clone();
        let id = id.as_str().expect("an id");
        let calls = bench.callgate(&["runs", "calls", id, "--json"]).json();
        for body in ["arguments", "result"] {
            assert!(calls[0][body]["bytes"].is_u64(), "{calls:#}");
            assert_eq!(calls[0][body]["blob"].is_string(), is_kept, "{calls:#}");
        }
    }
}

#[test]
fn runs_go_on_without_a_usable_store() {
    let bench = bench(json!(true));
    let script = "return (await ticketing_listIssues()) !== null";
    assert_eq!(bench.run(script, &[]).stderr, "");
    let database = bench.state().join("callgate/store/store.db");
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(database.with_file_name(format!("store.db{suffix}")));
    }
    fs::write(&database, [7_u8; 8192]).expect("a damaged database");
    let ran = bench.run(script, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "true\n"), "{ran:#?}");
    assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{ran:#?}");
    assert!(ran.stderr.contains("the store was damaged"), "{ran:#?}");
    // Later runs are fine, and the list says why the first one is missing.
    assert_eq!(bench.run(script, &[]).stderr, "");
    let listed = bench.callgate(&["runs", "--json"]);
    assert!(
        listed.stderr.contains("the store was damaged"),
        "{listed:#?}"
    );
    assert_eq!(listed.json().as_array().map(Vec::len), Some(2));

    // A state folder that cannot be made.
    let mut command = bench.command(&["run", "-e", script, "--config", "callgate.json"]);
    command.env("XDG_STATE_HOME", bench.path().join("callgate.json"));
    let ran = Ran::from(command.output().expect("start callgate"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "true\n"), "{ran:#?}");
    assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{ran:#?}");
    assert!(ran.stderr.contains("runs are not recorded: "), "{ran:#?}");
}

#[test]
fn doctor_counts_runs_and_removes_none() {
    let bench = bench(json!(true));
    for script in ["return 4", "return 5"] {
        assert_eq!(bench.run(script, &[]).code, 0);
    }
    // By this setting they are too large.
    let config = json!({ "mcpServers": {}, "store": { "bytes": "1B" } });
    bench.write("callgate.json", &config.to_string());
    let checkup = bench.callgate(&["doctor", "--json"]).json();
    let mut checks = checkup["checks"].as_array().expect("checks").iter();
    let store = checks.find(|check| check["what"] == "store");
    let says = store.expect("the store")["says"].to_string();
    assert!(says.contains(": 2 runs, "), "{says}");
    assert_eq!(runs(&bench, &[]).len(), 2);
}

#[test]
fn store_that_is_off_records_nothing() {
    let bench = bench(json!(false));
    let ran = bench.run("return 1", &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    assert!(!bench.state().join("callgate/store").exists());
    let ran = bench.callgate(&["runs"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("\"store\": false"), "{ran:#?}");
}

#[test]
fn removed_runs_are_gone() {
    let bench = bench(json!({ "path": "records" }));
    for script in ["return 1", "return 2", "return 3"] {
        assert_eq!(bench.run(script, &[]).code, 0);
    }
    let all = runs(&bench, &[]);
    let last = all[0]["id"].as_str().expect("an id");
    let removed = bench.callgate(&["runs", "rm", last]);
    assert_eq!(
        (removed.code, removed.stdout.as_str()),
        (0, "removed 1 run\n")
    );
    for command in ["rm", "show"] {
        let again = bench.callgate(&["runs", command, last]);
        assert_eq!(again.code, 1);
        assert!(again.stderr.contains(last), "{again:#?}");
    }
    assert_eq!(runs(&bench, &[]), all[1..]);
    let oldest = all[2]["id"].as_str().expect("an id");
    let partly = bench.callgate(&["runs", "rm", "r-none", last, oldest]);
    assert_eq!(
        (partly.code, partly.stdout.as_str()),
        (1, "removed 1 run\n")
    );
    for id in ["r-none", last] {
        let error = format!("error: there is no run `{id}`\n");
        assert!(partly.stderr.contains(&error), "{partly:#?}");
    }
    assert_eq!(runs(&bench, &[]), all[1..2]);
    let old = bench.callgate(&["runs", "rm", "--before", "1d"]);
    assert_eq!(old.stdout, "removed 0 runs\n");
    let rest = bench.callgate(&["runs", "rm", "--before", "2999-01-01T00:00:00Z"]);
    assert_eq!(rest.stdout, "removed 1 run\n");
    assert_eq!(runs(&bench, &[]).len(), 0);
}

#[test]
fn filters_before_a_subcommand_are_refused() {
    let bench = bench(json!(true));
    assert_eq!(bench.run("return 'kept'", &[]).code, 0);
    let all = runs(&bench, &[]);
    let id = all[0]["id"].as_str().expect("an id");
    for words in [
        vec!["--user", "ana", "rm", "--before", "2999-01-01T00:00:00Z"],
        vec!["--status", "failed", "list"],
        vec!["--since", "1h", "list"],
        vec!["--limit", "3", "calls", id],
        vec!["--json", "show", id],
    ] {
        let ran = bench.callgate(&[&["runs"], &words[..]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        let advice = "write the filters after the subcommand";
        assert!(ran.stderr.contains(advice), "{ran:#?}");
    }
    assert_eq!(runs(&bench, &[]), all);
}

#[test]
fn killed_run_is_lost_and_can_be_removed() {
    let bench = bench(json!(true));
    let script = "await new Promise((done) => setTimeout(done, 200_000))";
    let mut command = bench.command(&["run", "-e", script]);
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = command.spawn().expect("start callgate");
    while runs(&bench, &["--status", "running"]).is_empty() {
        let ended = program.try_wait().expect("its state");
        assert!(ended.is_none(), "{ended:?}");
    }
    program.kill().expect("kill -9");
    program.wait().expect("it ends");
    let listed = runs(&bench, &[]);
    assert_eq!((listed.len(), &listed[0]["status"]), (1, &json!("lost")));
    let id = listed[0]["id"].as_str().expect("an id");
    let shown = bench.callgate(&["runs", "show", id]).stdout;
    // The time of its end is not known.
    assert!(
        shown.contains("\nstatus   lost\n") && !shown.contains("\ntook "),
        "{shown}"
    );
    let removed = bench.callgate(&["runs", "rm", id]);
    assert_eq!(removed.stdout, "removed 1 run\n", "{removed:#?}");
}
