//! The official conformance suite, with the scenarios that Callgate must pass as a client
//! ([`client`]) and as a server ([`server`]).

mod client;
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use callgate_tests::{conformance_suite, repository};

/// Runs the scenarios of a revision's requirements for one side of the protocol, `client` or
/// `server`, from this folder. So many must pass; all others are those listed, with reasons, in
/// `fixtures/conformance/not-applicable-SIDE.txt`, as far as the revision has them.
#[expect(clippy::print_stdout, reason = "`cargo xtask conformance` shows it")]
fn check(side: &str, revision: &str, options: &[&str], folder: &Path, passes: usize) {
    let suite = conformance_suite().join("node_modules");
    // The Node.js that was installed with the suite, else the machine's.
    let own = suite.join(".bin/node");
    let output = Command::new(if own.exists() { own } else { "node".into() })
        .arg(suite.join("@modelcontextprotocol/conformance/dist/index.js"))
        .args([side, "--requirements", revision])
        .args(options)
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CACHE_HOME")
        .output()
        .expect("start the conformance suite");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let (_, summary) = said.split_once("SUMMARY ===").unwrap_or_default();
    println!("{revision}{summary}");
    let scenarios = |mark: &str| -> BTreeSet<String> {
        let lines = summary.lines().filter_map(|line| line.strip_prefix(mark));
        let names = lines.filter_map(|line| line.split_once(": "));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let listed = repository().join(format!("fixtures/conformance/not-applicable-{side}.txt"));
    let listed = fs::read_to_string(listed).expect("the list is in the checkout");
    let listed: BTreeSet<_> = listed
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, _)| name.to_owned())
        .collect();
    let failed = scenarios("✗ ");
    let wrong: Vec<_> = failed.difference(&listed).collect();
    assert!(wrong.is_empty(), "{wrong:?} fail\n{said}{errors}");
    // A skipped scenario neither passes nor fails.
    let passed = scenarios("✓ ").len() - summary.matches(": 0 passed, 0 failed").count();
    assert_eq!(passed, passes, "{said}{errors}");
}
