//! The official conformance suite, with Callgate's own client as the client
//! under test: every client scenario of both requirement sets.
//!
//! The suite starts a server for each scenario and then `conformance`, the
//! example of the `callgate` crate, with that server's URL.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use callgate_tests::{binary, conformance_suite, repository};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Scenarios that measure the client's time, so that nothing runs beside them.
const ALONE: [&str; 1] = ["sse-retry"];

#[test]
fn every_scenario_of_2025_11_25_passes() {
    all_pass("2025-11-25");
}

#[test]
fn every_scenario_of_2026_07_28_passes() {
    all_pass("2026-07-28");
}

#[test]
fn what_does_not_apply_is_there_and_required_by_nothing() {
    let known: BTreeSet<String> = REVISIONS
        .iter()
        .flat_map(|revision| Requirements::of(revision).all())
        .collect();
    let required: BTreeSet<String> = REVISIONS
        .iter()
        .flat_map(|revision| Requirements::of(revision).required)
        .collect();
    for (scenario, reason) in not_applicable() {
        assert!(known.contains(&scenario), "no such scenario: {scenario}");
        assert!(!required.contains(&scenario), "it is required: {scenario}");
        assert!(reason.len() > 20, "{scenario} has no reason: {reason:?}");
    }
}

#[test]
fn requirements_are_read_from_the_suites_own_files() {
    let check = |revision: &str, required: usize, one: &str| {
        let requirements = Requirements::of(revision);
        assert_eq!(requirements.required.len(), required, "{requirements:?}");
        assert!(requirements.required.contains(one), "{requirements:?}");
        let unscored = "json-schema-2020-12-preservation";
        assert!(requirements.unscored.contains(unscored), "{requirements:?}");
    };
    check("2025-11-25", 18, "sse-retry");
    check("2026-07-28", 32, "http-custom-headers");
}

/// Runs a revision's scenarios, as many side by side as there are processors.
fn all_pass(revision: &'static str) {
    let left_out = not_applicable();
    let mut scenarios: VecDeque<String> = Requirements::of(revision).all().into();
    scenarios.retain(|scenario| !left_out.contains_key(scenario));
    let count = scenarios.len();
    let (alone, together): (VecDeque<_>, VecDeque<_>) = scenarios
        .into_iter()
        .partition(|scenario| ALONE.contains(&scenario.as_str()));
    let processors = thread::available_parallelism().map_or(2, usize::from);
    let mut failures = run(revision, together, processors);
    failures.extend(run(revision, alone, 1));
    assert!(
        failures.is_empty(),
        "{} of {count} scenarios of {revision} fail:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

/// Runs scenarios with this many at a time; what each that failed said.
fn run(revision: &str, scenarios: VecDeque<String>, at_a_time: usize) -> Vec<String> {
    let scenarios = Mutex::new(scenarios);
    let next = || {
        let mut scenarios = scenarios.lock().unwrap_or_else(PoisonError::into_inner);
        scenarios.pop_front()
    };
    let work = || {
        let mut failures = Vec::new();
        while let Some(scenario) = next() {
            if let Err(said) = run_one(revision, &scenario) {
                failures.push(format!("### {scenario}\n{said}"));
            }
        }
        failures
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.flat_map(|failures| failures.expect("a scenario's thread panicked"))
            .collect()
    })
}

#[expect(clippy::print_stdout, reason = "`cargo xtask conformance` shows it")]
fn run_one(revision: &str, scenario: &str) -> Result<(), String> {
    let client = binary("examples/conformance");
    let suite = conformance_suite();
    // The client's tokens and caches, which must not come from another scenario.
    let home = tempfile::TempDir::with_prefix("callgate-conformance-").expect("a folder");
    let output = Command::new(node(&suite))
        .arg(suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["client", "--scenario", scenario, "--spec-version", revision])
        // A requirement set's choice outranks what the scenario says of itself.
        .arg("--force")
        .args(["--command", "./conformance", "--output-dir"])
        .arg(home.path().join("results"))
        .current_dir(client.parent().expect("it lies in a folder"))
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("XDG_DATA_HOME")
        .stdin(Stdio::null())
        .output()
        .expect("start the conformance suite");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let verdict = said.lines().find(|line| line.starts_with("Passed: "));
    match verdict {
        // A scenario that is skipped exits with success, too.
        Some(verdict) if output.status.success() && !verdict.starts_with("Passed: 0/") => {
            println!("{revision} {scenario}: {verdict}");
            Ok(())
        }
        _ => Err(said),
    }
}

/// The Node.js that was installed with the suite, else the machine's.
fn node(suite: &Path) -> PathBuf {
    let own = suite.join("node_modules/.bin/node");
    if own.exists() { own } else { "node".into() }
}

/// A revision's client scenarios.
#[derive(Debug)]
struct Requirements {
    /// Those that conformance needs.
    required: BTreeSet<String>,
    /// Those that the suite runs and does not count: extensions and newer ones.
    unscored: BTreeSet<String>,
}

impl Requirements {
    /// Reads `requirements/REVISION.yaml` of the suite, of which only the lists
    /// `client` and `not_scored` matter.
    fn of(revision: &str) -> Self {
        let file = conformance_suite()
            .join("node_modules/@modelcontextprotocol/conformance/requirements")
            .join(format!("{revision}.yaml"));
        let text =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (mut required, mut unscored) = (BTreeSet::new(), BTreeSet::new());
        let (mut list, mut scenario) = ("", "");
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(key) = line.strip_suffix(':') {
                list = key;
            } else if list == "client"
                && let Some(name) = trimmed.strip_prefix("- ")
            {
                required.insert(name.to_owned());
            } else if let Some(name) = trimmed.strip_prefix("- scenario: ") {
                scenario = name;
            } else if list == "not_scored" && trimmed == "leg: client" {
                unscored.insert(scenario.to_owned());
            }
        }
        Self { required, unscored }
    }

    fn all(&self) -> Vec<String> {
        self.required.union(&self.unscored).cloned().collect()
    }
}

/// Scenarios that are not run, with their reasons.
fn not_applicable() -> BTreeMap<String, String> {
    let file = repository().join("fixtures/conformance/not-applicable.txt");
    let text = fs::read_to_string(file).expect("the list is in the checkout");
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(": ").expect("SCENARIO: REASON"))
        .map(|(scenario, reason)| (scenario.to_owned(), reason.to_owned()))
        .collect()
}
