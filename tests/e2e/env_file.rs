//! `--env-file` and `envFile`: values for the references of a configuration.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use callgate_tests::{Ran, Workbench, binary};
use serde_json::json;

fn private(path: &Path) {
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, mode).expect("a mode");
}

/// A folder whose server is the program in `CG_PROGRAM`.
fn bench() -> Workbench {
    let bench = Workbench::new(json!({ "log": { "command": "${CG_PROGRAM}" } }));
    let program = binary("callgate-demo-logging").display().to_string();
    for (name, text) in [
        ("right.env", format!("CG_PROGRAM='{program}'\n")),
        ("wrong.env", "CG_PROGRAM=/no/such/program\n".to_owned()),
        (
            "broken.env",
            "CG_KEY=kept-to-itself\nkept-to-itself\n".to_owned(),
        ),
    ] {
        private(&bench.write(name, &text));
    }
    bench
}

fn tools(bench: &Workbench, files: &[&str], environment: &[(&str, &str)]) -> Ran {
    let mut command = bench.command(&["tools"]);
    for file in files {
        command.args(["--env-file", file]);
    }
    let environment = environment.iter().copied();
    let output = command.envs(environment).output();
    output.expect("start callgate").into()
}

#[test]
fn last_env_file_counts_after_environment() {
    let none: &[(&str, &str)] = &[];
    for (files, environment, is_right) in [
        (&["right.env"][..], none, true),
        (&["wrong.env", "right.env"], none, true),
        (&["right.env", "wrong.env"], none, false),
        (&["right.env"], &[("CG_PROGRAM", "/no/such/program")], false),
        (&[], none, false),
    ] {
        let bench = bench();
        let ran = tools(&bench, files, environment);
        let is_there = ran.stdout.contains("getLogs");
        assert_eq!(is_there, is_right, "{files:?} {environment:?}: {ran:#?}");
    }
}

#[test]
fn unfit_env_file_is_a_usage_error() {
    let bench = bench();
    let open = bench.write("open.env", "CG_KEY=kept-to-itself\n");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    for (file, expected) in [
        ("missing.env", "missing.env: cannot be read: "),
        ("broken.env", "broken.env:2:1: the line is not NAME=value"),
        ("open.env", "run `chmod 600 open.env`"),
    ] {
        let ran = tools(&bench, &[file], &[]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains("--env-file: "), "{ran:#?}");
        assert!(ran.stderr.contains(expected), "{ran:#?}");
        assert!(!ran.stderr.contains("kept-to-itself"), "{ran:#?}");
    }
}

#[test]
fn acceptance_shows_env_file() {
    let bench = bench();
    let log = json!({ "command": "${CG_PROGRAM}" });
    let config = json!({ "envFile": "right.env", "mcpServers": { "log": log } }).to_string();
    bench.write_unaccepted("callgate.json", &config);
    let mut session = crate::pty::at_terminal(&bench, &["trust"]);
    let shown = session.exp_string("[n] no: ").expect("the question");
    assert!(shown.contains("envFile: \"right.env\""), "{shown}");
    session.send_line("y").expect("answer");
    session.exp_eof().expect("the end");
    let ran = tools(&bench, &[], &[]);
    assert!(ran.stdout.contains("getLogs"), "{ran:#?}");
}

#[test]
fn env_file_is_not_read_before_acceptance() {
    for named in ["missing.env", "broken.env"] {
        let bench = bench();
        let config = json!({ "envFile": named, "mcpServers": {} }).to_string();
        bench.write_unaccepted("callgate.json", &config);
        let ran = tools(&bench, &[], &[]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains("callgate trust"), "{ran:#?}");
        assert!(!ran.stderr.contains(named), "{ran:#?}");
        bench.write("callgate.json", &config);
        let ran = tools(&bench, &[], &[]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(named), "{ran:#?}");
    }
}
