//! Callgate's own client as the client under test: every client scenario of
//! both requirement sets.
//!
//! The suite starts a server for each scenario and then `conformance`, an
//! example of this package, with that server's URL.

use callgate_tests::binary;

fn check(revision: &str, passes: usize) {
    let folder = tempfile::TempDir::with_prefix("callgate-conformance-").expect("a folder");
    // The suite starts all scenarios at once, and too many slow each other down until a client
    // times out. Tokens of one scenario must not be found by a different one.
    let program = binary("examples/conformance");
    let client = format!(
        "exec 9>lock$(($$ % 3)); flock 9; HOME=$(mktemp -d -p \"$PWD\") exec '{}' \"$@\"\n",
        program.display()
    );
    std::fs::write(folder.path().join("client"), client).expect("a script");
    let options = ["--command", "sh client"];
    super::check("client", revision, &options, folder.path(), passes);
}

#[test]
fn every_scenario_of_2025_11_25_passes() {
    check("2025-11-25", 19);
}

#[test]
fn every_scenario_of_2026_07_28_passes() {
    check("2026-07-28", 33);
}
