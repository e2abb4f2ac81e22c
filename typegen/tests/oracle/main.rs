//! The rule of the types, tested by TypeScript: an instance that a schema accepts fits its type.
//!
//! Over the JSON Schema Test Suite, each schema plain and inside others; over random schemas, with
//! a validator as the reference. `figures.txt` has the counts, pinned; `waivers.txt` the instances
//! that are rejected on purpose.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test")]

mod random;
mod results;
mod suite;
mod typescript;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use expect_test::expect_file;
use suite::{Set, Shape};
use typescript::{Verdict, check};

#[test]
#[expect(clippy::print_stderr, reason = "a test that skips says why")]
fn types_accept_valid_suite_instances() {
    let mut groups = Vec::new();
    for set in [Set::Typed, Set::Draft202012, Set::Draft7] {
        let Some(found) = suite::groups(set) else {
            eprintln!("skipped: ../shared/corpus is not beside the checkout");
            return;
        };
        groups.extend(found);
    }
    let schemas: Vec<_> = groups
        .iter()
        .map(|group| {
            let instances = group.cases.iter().map(|case| &case.instance);
            (&group.schema, instances.collect())
        })
        .collect();
    let verdicts = check("suite", &schemas);

    let waivers = waivers();
    let mut unused: BTreeSet<&str> = waivers.keys().map(String::as_str).collect();
    let mut rejected = BTreeSet::new();
    let mut table: BTreeMap<(Set, Shape), Counts> = BTreeMap::new();
    for (group, verdicts) in groups.iter().zip(&verdicts) {
        let counts = table.entry((group.set, group.shape)).or_default();
        for (case, verdict) in group.cases.iter().zip(verdicts) {
            counts.add(case.valid, *verdict);
            if !case.valid || *verdict != Verdict::Rejected {
                continue;
            }
            let name = format!("{} | {}", group.title, case.title);
            if waivers.contains_key(&name) && group.set != Set::Typed {
                counts.waived += 1;
                unused.remove(name.as_str());
            } else {
                rejected.insert(name);
            }
        }
    }
    expect_file![folder().join("figures.txt")].assert_eq(&figures(&table));
    let rejected: Vec<String> = rejected.into_iter().collect();
    assert_eq!(rejected.join("\n"), "", "valid, and rejected");
    assert_eq!(unused, BTreeSet::new(), "waived, and not rejected");
}

#[test]
fn types_accept_valid_random_instances() {
    let cases = random::schemas(600, seed());
    let schemas: Vec<_> = cases
        .iter()
        .map(|case| (&case.schema, case.instances.iter().collect()))
        .collect();
    let count: usize = cases.iter().map(|case| case.instances.len()).sum();
    assert!(count > 2_000, "{count}");
    let mut rejected = Vec::new();
    for (case, verdicts) in cases.iter().zip(check("random", &schemas)) {
        for (instance, verdict) in case.instances.iter().zip(verdicts) {
            if verdict == Verdict::Rejected {
                rejected.push(format!("{instance} of {}", case.schema));
            }
        }
    }
    rejected.sort_by_key(String::len);
    rejected.truncate(5);
    assert_eq!(rejected.join("\n\n"), "", "valid, and rejected");
}

/// Which random schemas: always the same, unless someone goes looking.
fn seed() -> u64 {
    std::env::var("CALLGATE_ORACLE_SEED").map_or(3, |seed| seed.parse().unwrap())
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle")
}

/// The waived cases, each with its reason.
fn waivers() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join("waivers.txt")).unwrap();
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (case, reason) = line.rsplit_once(" | ").unwrap();
            assert!(!reason.is_empty(), "{line}");
            (case.to_owned(), reason.to_owned())
        })
        .collect()
}

/// The verdicts on the instances of one set in one shape, counted.
#[derive(Default)]
struct Counts {
    /// The counts of invalid instances, and of valid ones.
    by_validity: [Kind; 2],
    waived: usize,
}

#[derive(Default)]
struct Kind {
    all: usize,
    rejected: usize,
    unlisted: usize,
}

impl Counts {
    fn add(&mut self, valid: bool, verdict: Verdict) {
        let kind = &mut self.by_validity[usize::from(valid)];
        kind.all += 1;
        kind.unlisted += usize::from(verdict == Verdict::Unlisted);
        kind.rejected += usize::from(verdict == Verdict::Rejected);
    }
}

fn figures(table: &BTreeMap<(Set, Shape), Counts>) -> String {
    let mut text = format!(
        "{:<30}{:>5}{:>10}{:>8}{:>10}{:>9}{:>8}{:>10}\n",
        "", "valid", "rejected", "waived", "unlisted", "invalid", "caught", "unlisted"
    );
    let mut before = None;
    for ((set, shape), counts) in table {
        if before != Some(*set) {
            text.push_str(match set {
                Set::Typed => "draft 2020-12 without references, implied type given\n",
                Set::Draft202012 => "draft 2020-12\n",
                Set::Draft7 => "draft 7\n",
            });
            before = Some(*set);
        }
        let shape = match shape {
            Shape::Plain => "plain",
            Shape::Array => "array<S>",
            Shape::ArrayOrNull => "array<S | null>",
            Shape::NullableType => "type: [T, \"null\"]",
            Shape::Siblings => "beside properties, in anyOf",
        };
        let [invalid, valid] = &counts.by_validity;
        text.push_str(&format!(
            "  {shape:<28}{:>5}{:>10}{:>8}{:>10}{:>9}{:>8}{:>10}\n",
            valid.all,
            valid.rejected - counts.waived,
            counts.waived,
            valid.unlisted,
            invalid.all,
            invalid.rejected,
            invalid.unlisted,
        ));
    }
    text
}
