//! How many flows the lines of a ledger keep.

use callgate_policy::flow::{Seen, Side};
use serde_json::json;

use super::*;

/// So many flows, of as many functions.
fn flows(count: usize) -> Vec<Finding> {
    let to = Arc::new(Side::new("g", "b", "t"));
    let flow = |number: usize| {
        let from = Side::new(&format!("f{number}"), "a", "t");
        Finding::new(
            Arc::new(from),
            Arc::clone(&to),
            Seen::NotCompared("too much"),
        )
    };
    (0..count).map(flow).collect()
}

fn open(ledger: &Ledger) -> Entry {
    let opened = ledger.open("g", "b", "t", None, 2);
    opened.expect("there is room")
}

/// How many flows each line has, and how many more there are.
fn kept(ledger: &Ledger) -> Vec<(usize, usize)> {
    let lines = ledger.snapshot().into_iter();
    lines
        .map(|line| (line.flows.len(), line.more_flows))
        .collect()
}

#[test]
fn a_line_has_the_first_flows_and_says_how_many_more_there_are() {
    let ledger = Ledger::new(None);
    let found = flows(FLOWS_OF_ONE + 3);
    let found: Vec<&Finding> = found.iter().collect();
    for count in [0, 1, FLOWS_OF_ONE, FLOWS_OF_ONE + 3] {
        open(&ledger).carries(&found[..count]);
    }
    let all = FLOWS_OF_ONE;
    assert_eq!(kept(&ledger), [(0, 0), (1, 0), (all, 0), (all, 3)]);
    let lines = json!(ledger.snapshot());
    assert_eq!(lines[1]["flows"], json!([{ "from": "f0", "to": "g" }]));
    assert_eq!(lines[2].get("moreFlows"), None);
    assert_eq!(lines[3]["flows"], lines[2]["flows"]);
    assert_eq!(lines[3]["moreFlows"], 3);
}

#[test]
fn the_flows_of_a_run_are_bounded_and_each_line_has_one() {
    let ledger = Ledger::new(None);
    let found = flows(100);
    let found: Vec<&Finding> = found.iter().collect();
    let full = FLOWS_IN_ALL / FLOWS_OF_ONE;
    for _ in 0..full + 2 {
        let mut entry = open(&ledger);
        // What a look finds stands in the place of what was said before it was done.
        entry.carries(&found);
        entry.carries(&found);
    }
    let lines = kept(&ledger);
    assert_eq!(lines.len(), full + 2);
    let (first, last) = lines.split_at(full);
    assert!(first.iter().all(|line| *line == (FLOWS_OF_ONE, 84)));
    assert_eq!(last, [(1, 99), (1, 99)]);
}
