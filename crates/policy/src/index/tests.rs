//! The index against the plain reading of the same rules.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;
use crate::condition::Condition;
use crate::decision::Because;
use crate::facts::{CallFacts, Hints};
use crate::fit::fits_arguments;
use crate::pattern::Pattern;
use crate::rule::Effect;
use crate::rules::Rules;
use crate::text::{Glob, WholeRegex};

/// Values that are alike: equal to some readers, or near enough to be mixed up.
fn value() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!("true"),
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!("1"),
        json!(9_007_199_254_740_993_i64),
        json!(9_007_199_254_740_992.0),
        json!(u64::MAX),
        json!(""),
        json!("a"),
        json!("/a"),
        json!("/a/b"),
        json!("/a/b/c.csv"),
        json!("/a/../b"),
        json!("/a/%2e%2e/b"),
        json!("ab\nab"),
        json!("é/ab"),
        json!([]),
        json!(["a", 1]),
        json!({}),
        json!({ "a": 1 }),
        json!({ "a": "1", "b": 2 }),
    ])
}

fn arguments() -> impl Strategy<Value = Value> {
    let members = proptest::collection::hash_map(select(vec!["p", "q", "r"]), value(), 0..3);
    members.prop_map(|members| {
        members
            .into_iter()
            .map(|(k, v)| (k.to_owned(), v))
            .collect()
    })
}

fn test() -> impl Strategy<Value = Test> {
    let number = select(vec![json!(0), json!(1), json!(1.5), json!(u64::MAX)])
        .prop_filter_map("a number", |number| number.as_number().cloned());
    let regex = select(vec![
        "a.*",
        "/a/[a-z]+",
        ".*b.*",
        "/a/b/c\\.csv",
        "a|1",
        "(?i)/A",
        "[^/]*",
        "ab.ab",
        "/a/b?",
        "é/a+b",
        "\\d+",
    ]);
    let glob = select(vec![
        "*",
        "**",
        "/a/*",
        "/a/**",
        "**/b*",
        "**.csv",
        "/a/?",
        "a",
        "é/**",
        "*ab*ab",
        "/a/b/c.csv",
    ]);
    prop_oneof![
        any::<bool>().prop_map(Test::Exists),
        number.clone().prop_map(Test::Min),
        number.prop_map(Test::Max),
        value().prop_map(Test::Equals),
        select(vec!["", "/", "/a", "/a/b", "é"]).prop_map(|text| Test::Prefix(text.to_owned())),
        proptest::collection::vec(value(), 0..5).prop_map(Test::In),
        glob.prop_map(|text| Test::Glob(Glob::new(text).expect(text))),
        regex.prop_map(|text| Test::Regex(WholeRegex::new(text).expect(text))),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    let at = select(vec!["", "/p", "/p", "/q", "/q/a", "/r/0"]);
    (at, proptest::collection::vec(test(), 0..4))
        .prop_map(|(at, tests)| Condition::new(Pointer::new(at).expect(at), tests))
}

fn rule() -> impl Strategy<Value = Rule> {
    let effect = select(vec![
        Effect::Allow,
        Effect::Ask,
        Effect::Grant,
        Effect::Deny,
    ]);
    (effect, proptest::collection::vec(condition(), 0..3)).prop_map(|(effect, conditions)| {
        let mut rule = Rule::new(effect, Pattern::new("*").expect("a pattern"));
        rule.arguments = conditions;
        rule
    })
}

fn shared(rules: &[Rule]) -> Vec<Arc<Rule>> {
    rules.iter().cloned().map(Arc::new).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Many rules together, so that texts are searched for all literals.
    #[test]
    fn arguments_fit_as_they_do_rule_by_rule(
        rules in proptest::collection::vec(rule(), 1..24),
        arguments in arguments(),
    ) {
        let rules = shared(&rules);
        let index = Index::of(&rules);
        for arguments in [Some(&arguments), None] {
            let mut look = index.look(&rules, arguments);
            for (number, rule) in rules.iter().enumerate() {
                let plain = fits_arguments(&rule.arguments, arguments, rule.effect.widens());
                prop_assert_eq!(look.fits(number), plain, "{} and {:?}", rule, arguments);
            }
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides(
        rules in proptest::collection::vec(rule(), 1..24),
        arguments in arguments(),
    ) {
        let shared = shared(&rules);
        let fits = |rule: &&Arc<Rule>| {
            fits_arguments(&rule.arguments, Some(&arguments), rule.effect.widens()) == Fit::Yes
        };
        // Of rules of one rank the first.
        let first = shared.iter().filter(fits).min_by_key(|rule| rule.rank());
        let rules: Rules = rules.into_iter().collect();
        let decision = rules.decide(&CallFacts {
            function: "s_t",
            other_names: None,
            server: "s",
            tool: "t",
            hints: Hints::default(),
            trusted: false,
            definition: None,
            arguments: Some(&arguments),
            now: "2026-06-01T12:00:00Z".parse().expect("a time"),
        });
        match (first, &decision.because) {
            (Some(first), Because::Rule(decided)) => prop_assert_eq!(first, decided),
            (first, because) => {
                prop_assert!(first.is_none() && *because == Because::NoRule, "{:?}", because);
            }
        }
    }
}

#[test]
fn texts_that_lack_a_literal_are_told_apart_by_one_search() {
    let rules: Vec<Rule> = (0..200)
        .map(|n| {
            let mut rule = Rule::new(Effect::Allow, Pattern::new("*").expect("a pattern"));
            let test = match n % 2 {
                0 => Test::Glob(Glob::new(&format!("/data/**/n{n}/*.csv")).expect("a glob")),
                _ => Test::Regex(WholeRegex::new(&format!("/data/[a-z]+/n{n}/.*")).expect("one")),
            };
            rule.arguments = vec![Condition::new(Pointer::new("/p").expect("one"), [test])];
            rule
        })
        .collect();
    let rules = shared(&rules);
    let index = Index::of(&rules);
    for (path, expected) in [
        ("/data/reports/n120/x.csv", vec![120]),
        ("/data/reports/n121/x.csv", vec![121]),
        ("/data/reports/x/n120/n121/x.csv", vec![]),
        ("/data/../n120/x.csv", vec![]),
        ("/other/n120/x.csv", vec![]),
    ] {
        let arguments = json!({ "p": path });
        let mut look = index.look(&rules, Some(&arguments));
        let fits: Vec<usize> = (0..rules.len())
            .filter(|number| look.fits(*number) == Fit::Yes)
            .collect();
        assert_eq!(fits, expected, "{path}");
        assert!(look.seen.iter().all(|seen| seen.found.is_some()), "{path}");
    }
}
