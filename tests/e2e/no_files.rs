//! Pipes, devices and folders in the places of files: every command ends, and says why.

use std::path::Path;
use std::process::Command;

use callgate_tests::{Ran, Workbench};

/// A pipe that nothing is ever written to.
fn mkfifo(path: &Path) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo starts").success());
}

fn run(bench: &Workbench, arguments: &[&str]) -> Ran {
    let mut command = bench.command(arguments);
    let command = command.env("HOME", bench.path());
    command.output().expect("start callgate").into()
}

const NO_FILE: &str = "it is a pipe, a socket or a device, and not a file";

#[test]
fn pipes_in_place_of_files_end_commands() {
    let one = r#"{ "mcpServers": { "log": { "command": "true" } } }"#;
    for (name, arguments) in [
        ("callgate.json", &["tools"][..]),
        (".mcp.json", &["doctor"]),
        ("mail/SKILL.md", &["tools", "--skill", "mail"]),
        (
            "recorded",
            &["call", "a_b", "{}", "--dry-run", "--recorded", "recorded"],
        ),
        (
            "calls.jsonl",
            &["call", "a_b", "{}", "--ledger", "calls.jsonl"],
        ),
        (".cursor/mcp.json", &["init", "--client", "cursor", "--yes"]),
        (".claude/settings.local.json", &["init", "--yes"]),
    ] {
        let bench = Workbench::empty();
        if !name.contains("json") || name.starts_with(".cursor") || name == "calls.jsonl" {
            bench.write("callgate.json", one);
        } else if name.starts_with(".claude") {
            bench.write(".mcp.json", one);
        }
        mkfifo(&bench.path().join(name));
        let ran = run(&bench, arguments);
        let regular = "it is not a regular file";
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let is_said = said.contains(NO_FILE) || said.contains(regular);
        assert!(is_said, "{name}: {said}");
    }
}

#[test]
fn link_to_endless_device_is_refused() {
    let bench = Workbench::empty();
    std::os::unix::fs::symlink("/dev/zero", bench.path().join("callgate.json")).expect("a link");
    let ran = run(&bench, &["--config", "callgate.json", "tools"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains(NO_FILE), "{ran:#?}");
}

#[test]
fn configuration_from_standard_input_is_read() {
    let bench = Workbench::empty();
    let program = callgate_tests::binary("callgate");
    let script = "echo '{ \"mcpServers\": {} }' | \"$0\" --config /dev/stdin tools";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program);
    let output = command.current_dir(bench.path()).output();
    let ran = Ran::from(output.expect("start sh"));
    assert!(ran.stderr.contains("no server is configured"), "{ran:#?}");
}
