//! Which process reads a text, which runs it, and what is said where there is none.

use std::process::Command;

use callgate_tests::{Ran, Workbench, binary};
use tempfile::TempDir;

/// No other programs are looked for, and none by the `PATH`.
#[test]
fn the_worker_lies_beside_the_program_or_in_the_packages_lib_folder() {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (programs, library) = (
        folder.path().join("bin"),
        folder.path().join("lib/callgate"),
    );
    std::fs::create_dir_all(&programs).expect("a folder");
    std::fs::create_dir_all(&library).expect("a folder");
    let program = programs.join("callgate");
    std::fs::hard_link(binary("callgate"), &program).expect("a link");
    let bench = Workbench::empty();
    let script = bench.write("script.ts", "console.log('ran')");
    let run = || {
        let mut command = Command::new(&program);
        command.arg("run").arg(&script).current_dir(bench.path());
        Ran::from(command.output().expect("it starts"))
    };
    let ran = run();
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("bin/callgate-worker"), "{ran:#?}");
    let worker = library.join("callgate-worker");
    std::fs::hard_link(binary("callgate-worker"), worker).expect("a link");
    let ran = run();
    assert_eq!(ran.code, 0, "{ran:#?}");
    std::os::unix::fs::symlink("/bin/false", programs.join("callgate-worker")).expect("a link");
    let ran = run();
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("the worker"), "{ran:#?}");
}

/// What is not in a worker's memory is of no use to a script that breaks out of V8.
#[test]
fn the_worker_program_has_no_code_for_http_tls_and_mcp() {
    let has = |program: &str, crate_name: &str| {
        let code = std::fs::read(binary(program)).expect("a program");
        memchr::memmem::find(&code, crate_name.as_bytes()).is_some()
    };
    for crate_name in ["/rmcp-", "/reqwest-", "/hyper-", "/rustls-", "/aws-lc-"] {
        assert!(has("callgate", crate_name), "{crate_name}");
        assert!(!has("callgate-worker", crate_name), "{crate_name}");
    }
}
