//! The official conformance suite, and what of it Callgate must pass: as a client
//! ([`client`]) and as a server ([`server`]).

mod client;
mod server;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use callgate_tests::{conformance_suite, repository};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Which side of the protocol is under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    Client,
    Server,
}

impl Leg {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The Node.js that was installed with the suite, else the machine's.
fn node(suite: &Path) -> PathBuf {
    let own = suite.join("node_modules/.bin/node");
    if own.exists() { own } else { "node".into() }
}

/// A revision's scenarios for one side.
#[derive(Debug)]
struct Requirements {
    /// Those that conformance needs.
    required: BTreeSet<String>,
    /// Those that the suite runs and does not count: extensions and newer ones.
    unscored: BTreeSet<String>,
}

impl Requirements {
    /// Reads `requirements/REVISION.yaml` of the suite, of which only the list
    /// of this side and `not_scored` matter.
    fn of(leg: Leg, revision: &str) -> Self {
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
            } else if list == leg.name()
                && let Some(name) = trimmed.strip_prefix("- ")
            {
                required.insert(name.to_owned());
            } else if let Some(name) = trimmed.strip_prefix("- scenario: ") {
                scenario = name;
            } else if list == "not_scored" && trimmed == format!("leg: {}", leg.name()) {
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
fn not_applicable(leg: Leg) -> BTreeMap<String, String> {
    let file = format!("fixtures/conformance/not-applicable-{}.txt", leg.name());
    let file = repository().join(file);
    let text = fs::read_to_string(file).expect("the list is in the checkout");
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(": ").expect("SCENARIO: REASON"))
        .map(|(scenario, reason)| (scenario.to_owned(), reason.to_owned()))
        .collect()
}

/// Runs a revision's scenarios, as many side by side as there are processors but
/// for those that are to be `alone`. `run` says what a scenario that failed said.
fn all_pass(
    leg: Leg,
    revision: &str,
    alone: impl Fn(&str) -> bool,
    run: impl Fn(&str) -> Result<(), String> + Sync,
) {
    let left_out = not_applicable(leg);
    let mut scenarios: VecDeque<String> = Requirements::of(leg, revision).all().into();
    scenarios.retain(|scenario| !left_out.contains_key(scenario));
    let count = scenarios.len();
    let (alone, together): (VecDeque<_>, VecDeque<_>) =
        scenarios.into_iter().partition(|scenario| alone(scenario));
    let processors = thread::available_parallelism().map_or(2, usize::from);
    let mut failures = run_all(together, processors, &run);
    failures.extend(run_all(alone, 1, &run));
    assert!(
        failures.is_empty(),
        "{} of {count} scenarios of {revision} fail:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

/// Runs scenarios with this many at a time; what each that failed said.
fn run_all(
    scenarios: VecDeque<String>,
    at_a_time: usize,
    run: &(impl Fn(&str) -> Result<(), String> + Sync),
) -> Vec<String> {
    let scenarios = Mutex::new(scenarios);
    let next = || {
        let mut scenarios = scenarios.lock().unwrap_or_else(PoisonError::into_inner);
        scenarios.pop_front()
    };
    let work = || {
        let mut failures = Vec::new();
        while let Some(scenario) = next() {
            if let Err(said) = run(&scenario) {
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

/// The suite with one scenario to run, for this side of the protocol.
fn suite(leg: Leg, revision: &str, scenario: &str, results: &Path) -> Command {
    let suite = conformance_suite();
    let mut command = Command::new(node(&suite));
    command
        .arg(suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args([
            leg.name(),
            "--scenario",
            scenario,
            "--spec-version",
            revision,
        ])
        // A requirement set's choice outranks what the scenario says of itself.
        .arg("--force")
        .arg("--output-dir")
        .arg(results)
        .stdin(Stdio::null());
    command
}

/// What the suite's output says of a scenario; all of it, if it failed.
#[expect(clippy::print_stdout, reason = "`cargo xtask conformance` shows it")]
fn verdict(revision: &str, scenario: &str, output: &Output) -> Result<(), String> {
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

/// Looks that a list of what does not apply holds for the suite as it is.
/// `may_be_required` says whether a required scenario may be on it.
fn check_not_applicable(leg: Leg, may_be_required: bool) {
    let of = |revision: &&str| Requirements::of(leg, revision);
    let known: BTreeSet<String> = REVISIONS.iter().flat_map(|r| of(r).all()).collect();
    let required: BTreeSet<String> = REVISIONS.iter().flat_map(|r| of(r).required).collect();
    for (scenario, reason) in not_applicable(leg) {
        assert!(known.contains(&scenario), "no such scenario: {scenario}");
        let is_required = required.contains(&scenario);
        assert!(
            may_be_required || !is_required,
            "it is required: {scenario}"
        );
        assert!(reason.len() > 20, "{scenario} has no reason: {reason:?}");
    }
}
