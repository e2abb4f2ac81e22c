//! The program that workers are.

use std::process::Command;

use callgate_tests::{Ran, Workbench, binary};
use tempfile::TempDir;

/// One file is all of Callgate: no second program is looked for, and none by the `PATH`.
#[test]
fn the_program_is_its_own_worker() {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let program = folder.path().join("any-name");
    std::fs::hard_link(binary("callgate"), &program).expect("a link");
    let bench = Workbench::empty();
    let script = bench.write("script.ts", "console.log('ran')");
    let mut command = Command::new(&program);
    command.arg("run").arg(&script).current_dir(bench.path());
    let ran = Ran::from(command.env("PATH", "").output().expect("it starts"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "ran\n"), "{ran:#?}");
}
