//! The program that workers are.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use callgate_tests::host::Host;
use callgate_tests::{Ran, Workbench, binary};
use serde_json::json;
use tempfile::TempDir;

/// A folder with both programs; the path of `callgate`.
fn installed() -> (TempDir, PathBuf) {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    for name in ["callgate", "callgate-worker"] {
        fs::hard_link(binary(name), folder.path().join(name)).expect("a link");
    }
    let program = folder.path().join("callgate");
    (folder, program)
}

fn run(bench: &Workbench, program: &PathBuf) -> Ran {
    let script = bench.write("script.ts", "console.log('ran')");
    let mut command = Command::new(program);
    command.arg("run").arg(&script).current_dir(bench.path());
    Ran::from(command.env("PATH", "").output().expect("it starts"))
}

#[test]
fn worker_is_found_beside_the_program_alone() {
    let (folder, program) = installed();
    let bench = Workbench::empty();
    let ran = run(&bench, &program);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ran\n"), "{ran:#?}");
    fs::remove_file(folder.path().join("callgate-worker")).expect("a file");
    let ran = run(&bench, &program);
    let worker = folder.path().join("callgate-worker");
    let is_named = ran.stderr.contains(&worker.display().to_string());
    assert!(ran.code != 0 && is_named, "{ran:#?}");
    assert!(ran.stderr.contains("install Callgate again"), "{ran:#?}");
}

/// An update replaces files while hosts run.
#[test]
fn running_host_keeps_its_worker_program() {
    let (folder, program) = installed();
    let bench = Workbench::with_config(json!({ "mcpServers": {} }));
    let mut host = Host::start_program(&program, &bench, &[]).expect("a handshake");
    for run in 0..4 {
        let ran = host.call("run_script", &json!({ "code": "return 6 * 7" }));
        let (text, is_error) = ran.expect("an answer");
        assert!(!is_error && text.contains("42"), "{text}");
        if run == 0 {
            // The program is open now. It is opened after the handshake.
            let new = folder.path().join("new");
            fs::write(&new, "of a different build").expect("a file");
            fs::rename(&new, folder.path().join("callgate-worker")).expect("a replaced file");
        }
    }
}

/// The host is attacked through servers and clients, the worker through scripts.
#[test]
fn host_excludes_v8_and_worker_excludes_tls() {
    let holds = |name: &str, text: &str| {
        let bytes = fs::read(binary(name)).expect("a program");
        memchr::memmem::find(&bytes, text.as_bytes()).is_some()
    };
    for (text, host, worker) in [
        ("v8::internal", false, true),
        ("EncryptedClientHello", true, false),
    ] {
        let found = (holds("callgate", text), holds("callgate-worker", text));
        assert_eq!(found, (host, worker), "{text}");
    }
}
