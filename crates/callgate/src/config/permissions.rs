//! `permissions`: rules over calls.

use std::fmt;

use callgate_policy::{Effect, Rule, Rules};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// `permissions`: rules over calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "PermissionKeys")]
#[schemars(with = "PermissionKeys")]
#[non_exhaustive]
pub struct Permissions {
    /// The rules of all lists.
    pub rules: Rules,
    /// True if rules that deny may match no tool.
    pub allow_unmatched: bool,
}

/// A rule is a pattern over the names of functions (`*` is any number of characters), or an object.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PermissionKeys {
    /// Calls that are sent.
    #[serde(deserialize_with = "allow")]
    #[schemars(schema_with = "rules_schema")]
    allow: Vec<Rule>,
    /// Calls that a person is asked about. They win over `allow`.
    #[serde(deserialize_with = "ask")]
    #[schemars(schema_with = "rules_schema")]
    ask: Vec<Rule>,
    /// Calls that are denied. They win over `ask` and `allow`.
    #[serde(deserialize_with = "deny")]
    #[schemars(schema_with = "rules_schema")]
    deny: Vec<Rule>,
    /// Go on where a rule that denies matches no tool. Flag: `--allow-unmatched-rules`. Default:
    /// `false`.
    allow_unmatched: bool,
}

impl From<PermissionKeys> for Permissions {
    fn from(keys: PermissionKeys) -> Self {
        let lists = [keys.allow, keys.ask, keys.deny];
        Self {
            rules: lists.into_iter().flatten().collect(),
            allow_unmatched: keys.allow_unmatched,
        }
    }
}

fn rules_schema(generator: &mut SchemaGenerator) -> Schema {
    let rule = generator.subschema_for::<Rule>();
    json_schema!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, rule] } })
}

fn allow<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    deserializer.deserialize_seq(RuleList(Effect::Allow))
}

fn ask<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    deserializer.deserialize_seq(RuleList(Effect::Ask))
}

fn deny<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    deserializer.deserialize_seq(RuleList(Effect::Deny))
}

/// Reads the rules of one list.
struct RuleList(Effect);

impl<'de> Visitor<'de> for RuleList {
    type Value = Vec<Rule>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of rules")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<Rule>, A::Error> {
        let mut rules = Vec::new();
        while let Some(rule) = entries.next_element_seed(RuleEntry(self.0))? {
            rules.push(rule);
        }
        Ok(rules)
    }
}

/// Reads one rule.
struct RuleEntry(Effect);

impl<'de> DeserializeSeed<'de> for RuleEntry {
    type Value = Rule;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Rule, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RuleEntry {
    type Value = Rule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pattern or an object")
    }

    fn visit_str<E: Error>(self, pattern: &str) -> Result<Rule, E> {
        let rule = Rule::parse(self.0, &pattern.into());
        rule.map_err(|error| E::custom(format_args!(": {error}")))
    }

    fn visit_map<A: MapAccess<'de>>(self, keys: A) -> Result<Rule, A::Error> {
        let rule = Rule::deserialize(MapAccessDeserializer::new(keys))?;
        let rule = rule.with_effect(self.0);
        rule.map_err(|error| A::Error::custom(format_args!(": {error}")))
    }
}
