//! `permissions`, `flows` and labels: rules over calls, and over data between servers.

use callgate_policy::flow::{FlowRule, FlowRules};
use callgate_policy::{Effect, Rule, RuleError, Rules};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny};

use super::tree::Tree;

/// `permissions`. Its rules are read one by one, so that a mistake costs one rule.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Permissions {
    allow_unmatched: bool,
    #[serde(rename = "allow")]
    _allow: IgnoredAny,
    #[serde(rename = "ask")]
    _ask: IgnoredAny,
    #[serde(rename = "deny")]
    _deny: IgnoredAny,
}

/// Reads `permissions` into `rules`. Returns whether rules that deny may match no tool.
pub(super) fn read(tree: &Tree<'_>, section: &Value<'_>, rules: &mut Rules) -> bool {
    let Some(permissions) = tree.read::<Permissions>(section) else {
        return false;
    };
    for member in tree.members(section) {
        let effect = match member.name.as_str() {
            "allow" => Effect::Allow,
            "ask" => Effect::Ask,
            "deny" => Effect::Deny,
            _ => continue,
        };
        let Value::Array(entries) = &member.value else {
            tree.wrong_type(&member.value, "an array of rules");
            continue;
        };
        let read = entries.elements.iter();
        for rule in read.filter_map(|entry| rule(tree, effect, entry)) {
            rules.push(rule);
        }
    }
    permissions.allow_unmatched
}

fn rule(tree: &Tree<'_>, effect: Effect, entry: &Value<'_>) -> Option<Rule> {
    let at = entry.range().start;
    let read = match entry {
        Value::StringLit(text) => Rule::parse(effect, &text.value.as_ref().into()),
        Value::Object(_) => tree.read::<Rule>(entry)?.with_effect(effect),
        _ => {
            tree.wrong_type(entry, "a pattern or an object");
            return None;
        }
    };
    if tree.has_mistake(entry.range()) {
        return None;
    }
    let mistake = |error: &RuleError| tree.error(at, &error.to_string());
    read.inspect_err(mistake).ok()
}

/// A list of labels.
#[derive(Deserialize)]
struct Labels(#[serde(deserialize_with = "labels")] Vec<String>);

/// Reads a list of labels.
pub(super) fn labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let labels = Vec::<String>::deserialize(deserializer)?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_label = |label: &str| !label.is_empty() && label.chars().all(is_plain);
    match labels.iter().find(|label| !is_label(label)) {
        None => Ok(labels),
        Some(label) => Err(D::Error::custom(format_args!(
            ": {label:?} is not a label; use letters, digits, \"-\", \"_\" and \".\""
        ))),
    }
}

/// Reads `flows` and `toolLabels`.
pub(super) fn read_flows(tree: &Tree<'_>, rules: &mut FlowRules) {
    if let Some(section) = tree.find(&["flows"]) {
        let flows: Vec<FlowRule> = tree.read(section).unwrap_or_default();
        flows.into_iter().for_each(|rule| rules.push(rule));
    }
    let tools = tree.find(&["toolLabels"]);
    for member in tools.map(|tools| tree.members(tools)).unwrap_or_default() {
        let labels = tree.read::<Labels>(&member.value);
        let Some(pattern) = tree.pattern(member) else {
            continue;
        };
        for label in labels.into_iter().flat_map(|labels| labels.0) {
            rules.label_tools(pattern.clone(), &label);
        }
    }
}
