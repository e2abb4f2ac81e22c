//! Callgate's own client as the client under test: every client scenario of
//! both requirement sets.
//!
//! The suite starts a server for each scenario and then `conformance`, the
//! example of the `callgate` crate, with that server's URL.

use callgate_tests::binary;

use super::{Leg, Requirements, all_pass, check_not_applicable, suite, verdict};

/// Scenarios that measure the client's time, so that nothing runs beside them.
const ALONE: [&str; 1] = ["sse-retry"];

#[test]
fn every_scenario_of_2025_11_25_passes() {
    check("2025-11-25");
}

#[test]
fn every_scenario_of_2026_07_28_passes() {
    check("2026-07-28");
}

#[test]
fn what_does_not_apply_is_there_and_required_by_nothing() {
    check_not_applicable(Leg::Client, false);
}

#[test]
fn requirements_are_read_from_the_suites_own_files() {
    let check = |revision: &str, required: usize, one: &str| {
        let requirements = Requirements::of(Leg::Client, revision);
        assert_eq!(requirements.required.len(), required, "{requirements:?}");
        assert!(requirements.required.contains(one), "{requirements:?}");
        let unscored = "json-schema-2020-12-preservation";
        assert!(requirements.unscored.contains(unscored), "{requirements:?}");
    };
    check("2025-11-25", 18, "sse-retry");
    check("2026-07-28", 32, "http-custom-headers");
}

fn check(revision: &str) {
    let alone = |scenario: &str| ALONE.contains(&scenario);
    all_pass(Leg::Client, revision, alone, |scenario| {
        let client = binary("examples/conformance");
        // The client's tokens and caches, which must not come from another scenario.
        let home = tempfile::TempDir::with_prefix("callgate-conformance-").expect("a folder");
        let results = home.path().join("results");
        let output = suite(Leg::Client, revision, scenario, &results)
            .args(["--command", "./conformance"])
            .current_dir(client.parent().expect("it lies in a folder"))
            .env("HOME", home.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CACHE_HOME")
            .output()
            .expect("start the conformance suite");
        verdict(revision, scenario, &output)
    });
}
