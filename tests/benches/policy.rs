//! What a decision costs, with rules of the kinds that people write.
//!
//! `cargo xtask bench` builds what this needs and runs it.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_policy::{Authority, CallFacts, Effect, Grant, Hints, Rule, Rules, Scope};
use serde_json::{Value, json};

/// How many decisions are timed one by one.
const DECISIONS: usize = 100_000;

fn main() {
    println!("{:<58} {:>10} {:>10}", "one decision", "p50", "p99");
    let arguments = json!({
        "path": "/data/reports/2026/summary.csv", "mode": "w", "count": 12,
        "text": "x".repeat(200), "options": { "force": false },
    });
    measure("200 patterns", &patterns(), &arguments);
    measure(
        "200 rules, 40 of them over the arguments of one tool",
        &conditional(0, 40),
        &arguments,
    );
    measure(
        "the same, and 40 that deny by the same arguments",
        &conditional(40, 40),
        &arguments,
    );
    measure(
        "200 rules over the arguments of one tool, 99 of which deny",
        &conditional(99, 100),
        &arguments,
    );
}

/// Rules of which none but the last matches, so that all are asked.
fn patterns() -> Rules {
    let names = (0..199).map(|n| entry(Effect::Allow, json!(format!("server{n}_*"))));
    names.chain([entry(Effect::Allow, json!("fs_*"))]).collect()
}

/// Rules over the arguments of one tool, of which none matches, among others.
fn conditional(deny: usize, allow: usize) -> Rules {
    let over = |n: usize| {
        let condition = match n % 5 {
            0 => json!({ "at": "/path", "prefix": format!("/other/{n}/") }),
            1 => json!({ "at": "/path", "glob": format!("/data/**/{n}/*.csv") }),
            2 => json!({ "at": "/path", "regex": format!("/data/[a-z]+/{n}/.*") }),
            3 => json!({ "at": "/count", "min": n + 100 }),
            _ => json!({ "at": "/mode", "in": ["a", "r", format!("m{n}")] }),
        };
        json!({ "tool": "fs_write", "arguments": [condition] })
    };
    let others = (0..199 - deny - allow).map(|n| {
        let effect = [Effect::Deny, Effect::Ask, Effect::Allow][n % 3];
        entry(effect, json!(format!("server{n}_*")))
    });
    let denied = (0..deny).map(|n| entry(Effect::Deny, over(n)));
    others
        .chain(denied)
        .chain((0..allow).map(|n| entry(Effect::Allow, over(n))))
        .chain([entry(Effect::Allow, json!("fs_*"))])
        .collect()
}

fn entry(effect: Effect, entry: Value) -> Rule {
    match Rule::parse(effect, &entry) {
        Ok(rule) => rule,
        Err(problems) => panic!("{entry}: {problems:?}"),
    }
}

fn measure(what: &str, rules: &Rules, arguments: &Value) {
    assert_eq!(rules.iter().count(), 200, "{what}");
    let authority = Authority::new(Arc::new(rules.clone()), Arc::default());
    authority.grant(Grant::new("fs_read"), Scope::Session);
    let facts = CallFacts {
        function: "fs_write",
        other_names: None,
        server: "fs",
        tool: "write",
        hints: Hints::default(),
        trusted: false,
        definition: None,
        arguments: Some(arguments),
        now: "2026-06-01T12:00:00Z".parse().expect("a time"),
    };
    let mut times: Vec<Duration> = (0..DECISIONS)
        .map(|_| {
            let before = Instant::now();
            black_box(authority.take(black_box(&facts)));
            before.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{what:<58} {:>10.2?} {:>10.2?}", at(50), at(99));
}
