//! The library's example program does what its documentation says.

use std::process::Command;

use callgate_tests::{Ran, Workbench, binary};

#[test]
fn the_example_program_runs_a_script() {
    // Nothing lies beside an example; a project has its TypeScript in `node_modules`.
    let project = Workbench::empty();
    project.bring_typescript();
    let output = Command::new(binary("examples/embed"))
        .env("CALLGATE_DEMO_LOGGING", binary("callgate-demo-logging"))
        .current_dir(project.path())
        .output()
        .expect("start the example");
    let ran = Ran::from(output);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    assert_eq!(
        ran.stdout,
        "completed after 1 call\n12 different errors in the past hour\n"
    );
}
