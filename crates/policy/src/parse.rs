//! Reads a rule from an entry of a configuration file's list.

use std::cmp::Ordering;
use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

use crate::condition::Condition;
use crate::equality::order;
use crate::error::RuleError;
use crate::path_dots::has_dot_segment;
use crate::rule::{Effect, Rule};
use crate::text_pattern::TextPattern;

/// The maximum number of conditions of a rule.
const MAX_CONDITIONS: usize = 64;
/// The maximum number of values in a list.
const MAX_VALUES: usize = 1_000;

impl Rule {
    /// Reads an entry of `permissions.allow`, `ask` or `deny`: a pattern, or an
    /// object as [`Rule::to_json`] writes it.
    /// The error: the first mistake of the entry.
    pub fn parse(effect: Effect, entry: &Value) -> Result<Self, RuleError> {
        match entry {
            Value::String(text) => Ok(Self::new(effect, text.parse()?)),
            Value::Object(_) => {
                let rule = Self::deserialize(entry).map_err(in_words)?;
                rule.with_effect(effect)
            }
            _ => Err(in_words("a rule must be a pattern or an object")),
        }
    }

    /// Reads an object from its JSON text.
    /// The error: as [`Rule::parse`], with the line and the column.
    pub fn parse_json(effect: Effect, text: &str) -> Result<Self, RuleError> {
        let rule: Self = serde_json::from_str(text).map_err(in_words)?;
        rule.with_effect(effect)
    }

    /// The rule that a deserialized one is in the list of this effect.
    /// The error: [`RuleError`] for conditions that cannot hold, and for a rule that holds calls up
    /// and could run out: it would let calls through that it held up before.
    pub fn with_effect(mut self, effect: Effect) -> Result<Self, RuleError> {
        let bound = self.definition.map(|_| "definition");
        if let Some(key) = self.max_calls.map(|_| "maxCalls").or(bound)
            && !effect.widens()
        {
            return Err(RuleError(format!(
                "\"{key}\" belongs to rules of \"allow\"; a rule that holds calls up is never used \
                 up"
            )));
        }
        if self.max_calls == Some(0) {
            let message = "\"maxCalls\" in a rule must be a whole number above zero";
            return Err(RuleError(message.to_owned()));
        }
        for condition in &self.arguments {
            let place = condition.at.as_str();
            check(condition)
                .map_err(|wrong| RuleError(format!("the condition at {place:?} {wrong}")))?;
        }
        (self.effect, self.written_in) = (effect, effect.list().into());
        Ok(self)
    }
}

fn in_words(error: impl Display) -> RuleError {
    let message = error.to_string();
    RuleError(message.trim_start_matches(": ").to_owned())
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        _ => Err(D::Error::custom("must be a string")),
    }
}

/// Reads a string that a type parses.
pub(crate) fn parsed<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
{
    let parsed = text(deserializer)?.parse();
    parsed.map_err(|error| D::Error::custom(format_args!(": {error}")))
}

/// As [`parsed`], of a key that may be left out.
pub(crate) fn parsed_some<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    parsed(deserializer).map(Some)
}

pub(crate) fn time<'de, D>(deserializer: D) -> Result<Option<Timestamp>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = text(deserializer)?;
    let no_time = |_| {
        D::Error::custom(format_args!(
            ": {text:?} is not a time; write one as RFC 3339 has it, such as \
             \"2026-12-31T18:00:00Z\""
        ))
    };
    text.parse().map(Some).map_err(no_time)
}

/// Reads a value, also `null`, of a key that may be left out.
pub(crate) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A text that may begin with the folder of its file. The reader of a file puts the path in.
#[derive(serde::Deserialize)]
struct FolderText(String);

/// As [`FolderText`], in a glob: the reader escapes the path.
#[derive(serde::Deserialize)]
struct FolderGlob(String);

pub(crate) fn prefix<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let FolderText(prefix) = FolderText::deserialize(deserializer)?;
    if prefix.is_empty() {
        return Err(D::Error::custom(": it is empty; write how the text begins"));
    }
    // Its last segment may go on.
    without_dots(&format!("{prefix}x"))?;
    Ok(Some(prefix))
}

pub(crate) fn glob<'de, D>(deserializer: D) -> Result<Option<TextPattern>, D::Error>
where
    D: Deserializer<'de>,
{
    let FolderGlob(text) = FolderGlob::deserialize(deserializer)?;
    without_dots(&text.replace(['*', '?'], "x"))?;
    compiled(TextPattern::glob(&text))
}

pub(crate) fn regex<'de, D>(deserializer: D) -> Result<Option<TextPattern>, D::Error>
where
    D: Deserializer<'de>,
{
    compiled(TextPattern::regex(&text(deserializer)?))
}

fn compiled<E: Error>(pattern: Result<TextPattern, String>) -> Result<Option<TextPattern>, E> {
    pattern
        .map(Some)
        .map_err(|error| E::custom(format_args!(": {error}")))
}

/// A text with a segment of dots is never judged, so that a test for one would never hold.
fn without_dots<E: Error>(text: &str) -> Result<(), E> {
    if !has_dot_segment(text) {
        return Ok(());
    }
    Err(E::custom(
        ": it has a segment \".\" or \"..\", and no text with one can be judged; leave the segment out",
    ))
}

pub(crate) fn conditions<'de, D>(deserializer: D) -> Result<Vec<Condition>, D::Error>
where
    D: Deserializer<'de>,
{
    let conditions = Vec::<Condition>::deserialize(deserializer)?;
    if conditions.is_empty() || conditions.len() > MAX_CONDITIONS {
        let count = conditions.len();
        return Err(D::Error::custom(format_args!(
            ": it has {count} conditions; write 1 to {MAX_CONDITIONS}, or leave it out"
        )));
    }
    Ok(conditions)
}

/// Refuses tests that no value passes together, and a condition that tests nothing.
fn check(condition: &Condition) -> Result<(), String> {
    if let Some(count) = condition.is_in.as_ref().map(Vec::len)
        && !(1..=MAX_VALUES).contains(&count)
    {
        return Err(format!(
            "has {count} values in \"in\"; write 1 to {MAX_VALUES}"
        ));
    }
    if let (Some(min), Some(max)) = (&condition.min, &condition.max)
        && order(min, max) == Some(Ordering::Greater)
    {
        return Err(format!(
            "has \"min\" {min} above \"max\" {max}, and no number is both; swap them"
        ));
    }
    match (condition.count(), condition.exists) {
        (0, _) => Err(String::from(
            "has no test; write one of exists, equals, in, prefix, glob, regex, min, max",
        )),
        (2.., Some(false)) => Err(String::from(
            "says \"exists\": false and tests the value, too; leave \"exists\" out, or the \
             other tests",
        )),
        _ => Ok(()),
    }
}
