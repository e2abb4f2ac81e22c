//! No input panics, whatever it is, and none widens what it should not.

use callgate_policy::{CallFacts, Definition, Effect, Rule, Rules, Verdict};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{facts, known, unmatched};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c/.*%~{}2e]{0,6}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[abc/~]{0,2}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Entries that are nearly rules.
fn entry() -> impl Strategy<Value = Value> {
    let test = prop_oneof![
        Just("equals"),
        Just("in"),
        Just("prefix"),
        Just("glob"),
        Just("regex"),
        Just("min"),
        Just("max"),
        Just("exists"),
    ];
    let condition = (
        "(/[abc]){0,2}",
        prop::collection::vec((test, value()), 1..3),
    )
        .prop_map(|(at, tests)| {
            let mut members = Map::new();
            members.insert("at".to_owned(), at.into());
            for (test, value) in tests {
                members.insert(test.to_owned(), value);
            }
            Value::Object(members)
        });
    let key = prop_oneof![
        Just("server"),
        Just("trusted"),
        Just("annotations"),
        Just("maxCalls"),
        Just("expires"),
        Just("definition"),
        Just("tool"),
    ];
    let members = prop::collection::vec((key, value()), 0..2);
    (prop::collection::vec(condition, 1..3), members).prop_map(|(conditions, members)| {
        let mut entry = json!({ "tool": "*", "arguments": conditions });
        for (key, value) in members {
            entry[key] = value;
        }
        entry
    })
}

proptest! {
    #[test]
    fn any_value_is_a_rule_or_has_problems(entry in value()) {
        for effect in [Effect::Allow, Effect::Ask, Effect::Deny] {
            match Rule::parse(effect, &entry) {
                Ok(rule) => { rule.to_string(); }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn allowed_arguments_also_match_the_deny_rule(
        entry in entry(), arguments in value(), trusted in any::<bool>(),
    ) {
        let arguments = json!({ "a": arguments });
        let decide = |effect| {
            let rules: Rules = Rule::parse(effect, &entry).ok().into_iter().collect();
            let facts = CallFacts { trusted, ..facts(Some(&arguments)) };
            (rules.iter().count() == 1).then(|| rules.decide(&facts).verdict)
        };
        let (allow, deny) = (decide(Effect::Allow), decide(Effect::Deny));
        // Whatever an allow rule takes, the same deny rule takes too.
        if let (Some(Verdict::Allow), Some(deny)) = (allow, deny) {
            prop_assert_eq!(deny, Verdict::Deny);
        }
    }

    #[test]
    fn a_rule_is_read_as_it_is_written(entry in entry()) {
        if let Ok(rule) = Rule::parse(Effect::Allow, &entry) {
            let written = rule.to_json();
            prop_assert_eq!(Rule::parse(Effect::Allow, &written), Ok(rule.clone()));
            rule.to_string();
        }
    }

    #[test]
    fn lint_accepts_schemas_of_any_form(entry in entry(), schema in value()) {
        let rules: Rules = Rule::parse(Effect::Allow, &entry).ok().into_iter().collect();
        let definition = Definition::of(&schema);
        let mut tool = known("fs_write", "fs");
        tool.facts.definition = Some(definition.hash());
        tool.input_schema = Some(&schema);
        unmatched(&rules, &[tool], &[]);
    }
}

#[test]
fn long_text_and_hostile_regex_are_fast() {
    let rule = json!({ "tool": "*", "arguments": [{ "at": "/x", "regex": "(a*)*b", "glob": "**a**a**a**b" }] });
    let rules: Rules = Rule::parse(Effect::Allow, &rule).into_iter().collect();
    let arguments = json!({ "x": "a".repeat(1_000_000) });
    assert_eq!(rules.decide(&facts(Some(&arguments))).verdict, Verdict::Ask);
}
