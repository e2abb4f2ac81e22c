//! Reads a rule from an entry of a configuration file's list.

use std::cmp::Ordering;
use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::condition::{Condition, Test};
use crate::duplicate_keys::duplicate_keys;
use crate::equality::order;
use crate::name_pattern::{Pattern, ServerPattern};
use crate::nearest::nearest;
use crate::path_dots::has_dot_segment;
use crate::pointer::Pointer;
use crate::problem::{RuleProblem, Step};
use crate::rule::{Annotations, Effect, Rule};
use crate::text_pattern::{Glob, WholeRegex};

/// Keys of a rule.
const RULE: &[&str] = &[
    "tool",
    "server",
    "trusted",
    "arguments",
    "annotations",
    "maxCalls",
    "expires",
    "definition",
];
/// Keys of an entry of `arguments`.
const CONDITION: &[&str] = &[
    "at", "exists", "equals", "in", "prefix", "glob", "regex", "min", "max",
];
/// Keys of `annotations`.
const ANNOTATIONS: &[&str] = &["readOnly", "destructive", "idempotent", "openWorld"];
/// Names of the hints in the protocol, which people write instead.
const HINTS: &[(&str, &str)] = &[
    ("readOnlyHint", "readOnly"),
    ("destructiveHint", "destructive"),
    ("idempotentHint", "idempotent"),
    ("openWorldHint", "openWorld"),
];
/// The most conditions of a rule.
const MAX_CONDITIONS: usize = 64;
/// The most values in a list of them.
const MAX_VALUES: usize = 1_000;

type Problems = Vec<RuleProblem>;

impl Rule {
    /// Reads an entry of `permissions.allow`, `ask` or `deny`: a pattern, or an
    /// object as [`Rule::to_json`] writes it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry.
    pub fn parse(effect: Effect, entry: &Value) -> Result<Self, Vec<RuleProblem>> {
        match entry {
            Value::String(text) => Ok(Self::new(effect, pattern(text)?)),
            Value::Object(members) => rule(effect, members),
            _ => Err(wrong_type(entry, "a rule", "a pattern or an object")),
        }
    }

    /// Reads an entry from its JSON text, in which no object may have a key twice.
    ///
    /// # Errors
    ///
    /// As [`Rule::parse`].
    pub fn parse_json(effect: Effect, text: &str) -> Result<Self, Vec<RuleProblem>> {
        let no_json = |error| problem(format!("it is not JSON: {error}"));
        let duplicates = duplicate_keys(text).map_err(no_json)?;
        if !duplicates.is_empty() {
            return Err(duplicates);
        }
        let entry = serde_json::from_str(text).map_err(no_json)?;
        Self::parse(effect, &entry)
    }
}

fn rule(effect: Effect, members: &Map<String, Value>) -> Result<Rule, Problems> {
    let mut problems = unknown_keys(members, "a rule", RULE, &[]);
    if !members.contains_key("tool") {
        problems.extend(problem(
            "a rule has no \"tool\"; write a tool's generated name, or \"*\" for every tool",
        ));
    }
    // Another one takes its place, or there is a problem.
    let mut rule = Rule::new(effect, pattern("*")?);
    for (key, value) in members {
        if let Err(found) = rule_member(&mut rule, key, value) {
            problems.extend(within(Step::Key(key.clone()), found));
        }
    }
    unless(problems, rule)
}

fn rule_member(rule: &mut Rule, key: &str, value: &Value) -> Result<(), Problems> {
    let what = format!("\"{key}\" in a rule");
    match key {
        "tool" => rule.pattern = pattern(text(value, &what)?)?,
        "server" => {
            let server = ServerPattern::new(text(value, &what)?);
            let empty = || {
                let message = "empty pattern; write a server's name, or leave \"server\" out";
                problem(message)
            };
            rule.server = Some(server.ok_or_else(empty)?);
        }
        "trusted" => rule.trusted = Some(boolean(value, &what)?),
        "arguments" => rule.arguments = conditions(value, &what)?,
        "annotations" => rule.annotations = annotations(value)?,
        "maxCalls" => {
            only_in_allow(rule.effect, key)?;
            let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
            let none = || {
                let most = u32::MAX;
                let message = format!("{what} must be a whole number from 1 to {most}");
                problem(message)
            };
            rule.max_calls = Some(count.filter(|count| *count > 0).ok_or_else(none)?);
        }
        "expires" => {
            let text = text(value, &what)?;
            let none = |_| {
                let message = format!(
                    "{what}: {text:?} is not a time; write one as RFC 3339 has it, such as \
                     \"2026-12-31T18:00:00Z\""
                );
                problem(message)
            };
            rule.expires = Some(text.parse::<Timestamp>().map_err(none)?);
        }
        "definition" => {
            only_in_allow(rule.effect, key)?;
            let definition = text(value, &what)?.parse();
            rule.definition = Some(valid(definition, &format!("{what}:"))?);
        }
        _ => {}
    }
    Ok(())
}

/// A deny or ask rule that could run out would let calls through that it held up before.
fn only_in_allow(effect: Effect, key: &str) -> Result<(), Problems> {
    if effect.widens() {
        return Ok(());
    }
    Err(on_key(format!(
        "\"{key}\" belongs to rules of \"allow\"; a rule that holds calls up is never used up"
    )))
}

fn conditions(value: &Value, what: &str) -> Result<Vec<Condition>, Problems> {
    let wanted = "an array of objects";
    let Value::Array(elements) = value else {
        return Err(wrong_type(value, what, wanted));
    };
    if elements.is_empty() || elements.len() > MAX_CONDITIONS {
        let message = format!(
            "{what} has {} conditions; write 1 to {MAX_CONDITIONS}, or leave it out",
            elements.len()
        );
        return Err(problem(message));
    }
    let (mut conditions, mut problems) = (Vec::new(), Vec::new());
    for (index, element) in elements.iter().enumerate() {
        let read = match element {
            Value::Object(members) => condition(members),
            _ => Err(wrong_type(element, what, wanted)),
        };
        match read {
            Ok(condition) => conditions.push(condition),
            Err(found) => problems.extend(within(Step::Index(index), found)),
        }
    }
    unless(problems, conditions)
}

fn condition(members: &Map<String, Value>) -> Result<Condition, Problems> {
    let mut problems = unknown_keys(members, "a condition", CONDITION, &[]);
    let (mut at, mut tests) = (None, Vec::new());
    for (key, value) in members {
        let read = match key.as_str() {
            "at" => pointer(value).map(|read| at = Some(read)),
            _ => test(key, value).map(|test| tests.extend(test)),
        };
        if let Err(found) = read {
            problems.extend(within(Step::Key(key.clone()), found));
        }
    }
    if !members.contains_key("at") {
        problems.extend(problem(
            "a condition has no \"at\"; write a JSON pointer, such as \"/path\"",
        ));
    }
    let (_, test_keys) = CONDITION.split_first().unwrap_or((&"", &[]));
    if !test_keys.iter().any(|key| members.contains_key(*key)) {
        let message = format!(
            "a condition has no test; write one of {}",
            test_keys.join(", ")
        );
        problems.extend(problem(message));
    }
    problems.extend(contradiction(&tests));
    match at {
        Some(at) if problems.is_empty() => Ok(Condition::new(at, tests)),
        _ => Err(problems),
    }
}

fn pointer(value: &Value) -> Result<Pointer, Problems> {
    let text = text(value, "\"at\" in a condition")?;
    valid(Pointer::new(text), "\"at\" in a condition:")
}

/// The test of one key of a condition; `None` for a key that is no test.
fn test(key: &str, value: &Value) -> Result<Option<Test>, Problems> {
    let what = format!("\"{key}\" in a condition");
    let number = || {
        let number = value.as_number().cloned();
        number.ok_or_else(|| wrong_type(value, &what, "a number"))
    };
    Ok(Some(match key {
        "exists" => Test::Exists(boolean(value, &what)?),
        "equals" => Test::Equals(value.clone()),
        "in" => {
            let values = value.as_array();
            let values = values.ok_or_else(|| wrong_type(value, &what, "an array"))?;
            if values.is_empty() || values.len() > MAX_VALUES {
                let count = values.len();
                let message = format!("{what} has {count} values; write 1 to {MAX_VALUES}");
                return Err(problem(message));
            }
            Test::In(values.clone())
        }
        "prefix" => {
            let prefix = text(value, &what)?;
            if prefix.is_empty() {
                let message = format!("{what} is empty; write how the text begins");
                return Err(problem(message));
            }
            // Its last segment may go on.
            without_dots(&format!("{prefix}x"), &what)?;
            Test::Prefix(prefix.to_owned())
        }
        "glob" => {
            let text = text(value, &what)?;
            without_dots(&text.replace(['*', '?'], "x"), &what)?;
            Test::Glob(valid(Glob::new(text), &what)?)
        }
        "regex" => Test::Regex(valid(WholeRegex::new(text(value, &what)?), &what)?),
        "min" => Test::Min(number()?),
        "max" => Test::Max(number()?),
        _ => return Ok(None),
    }))
}

/// A text with a segment of dots is never judged, so that a test for one would never hold.
fn without_dots(text: &str, what: &str) -> Result<(), Problems> {
    if !has_dot_segment(text) {
        return Ok(());
    }
    let message = format!(
        "{what} has a segment \".\" or \"..\", and no text with one can be judged; leave the \
         segment out"
    );
    Err(problem(message))
}

fn annotations(value: &Value) -> Result<Annotations, Problems> {
    let Value::Object(members) = value else {
        return Err(wrong_type(value, "\"annotations\" in a rule", "an object"));
    };
    let mut problems = unknown_keys(members, "\"annotations\"", ANNOTATIONS, HINTS);
    if members.is_empty() {
        let message = "\"annotations\" in a rule says nothing; write one of readOnly, \
             destructive, idempotent, openWorld, or leave it out";
        problems.extend(problem(message));
    }
    let mut annotations = Annotations::default();
    for (key, value) in members {
        let place = match key.as_str() {
            "readOnly" => &mut annotations.read_only,
            "destructive" => &mut annotations.destructive,
            "idempotent" => &mut annotations.idempotent,
            "openWorld" => &mut annotations.open_world,
            _ => continue,
        };
        match boolean(value, &format!("\"{key}\" in \"annotations\"")) {
            Ok(wanted) => *place = Some(wanted),
            Err(found) => problems.extend(within(Step::Key(key.clone()), found)),
        }
    }
    unless(problems, annotations)
}

/// The value that was read, unless there are problems.
fn unless<T>(problems: Problems, read: T) -> Result<T, Problems> {
    if problems.is_empty() {
        Ok(read)
    } else {
        Err(problems)
    }
}

fn pattern(text: &str) -> Result<Pattern, Problems> {
    Pattern::new(text).map_err(|error| problem(error.to_string()))
}

fn text<'v>(value: &'v Value, what: &str) -> Result<&'v str, Problems> {
    let text = value.as_str();
    text.ok_or_else(|| wrong_type(value, what, "a string"))
}

fn boolean(value: &Value, what: &str) -> Result<bool, Problems> {
    let boolean = value.as_bool();
    boolean.ok_or_else(|| wrong_type(value, what, "true or false"))
}

fn valid<T, E: fmt::Display>(read: Result<T, E>, what: &str) -> Result<T, Problems> {
    read.map_err(|error| problem(format!("{what} {error}")))
}

/// A problem for each key that means nothing.
fn unknown_keys(
    members: &Map<String, Value>,
    what: &str,
    keys: &[&str],
    synonyms: &[(&str, &str)],
) -> Problems {
    let unknown = members.keys().filter(|key| !keys.contains(&key.as_str()));
    let problems = unknown.flat_map(|key| {
        let synonym = synonyms.iter().find(|(synonym, _)| synonym == key);
        let meant = synonym.map(|(_, meant)| *meant);
        let meant = meant.or_else(|| nearest(key, keys.iter().copied()));
        let message = match meant {
            Some(meant) => format!("unknown key {key:?} in {what}; did you mean \"{meant}\"?"),
            None => format!(
                "unknown key {key:?} in {what}; remove it, or use one of {}",
                keys.join(", ")
            ),
        };
        within(Step::Key(key.clone()), on_key(message))
    });
    problems.collect()
}

fn wrong_type(value: &Value, what: &str, wanted: &str) -> Problems {
    let given = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let message = format!("{what} must be {wanted}, and this is {given}");
    problem(message)
}

fn problem(message: impl Into<String>) -> Problems {
    vec![RuleProblem {
        at: Vec::new(),
        on_key: false,
        message: message.into(),
    }]
}

fn on_key(message: String) -> Problems {
    let mut problems = problem(message);
    problems
        .iter_mut()
        .for_each(|problem| problem.on_key = true);
    problems
}

/// The same problems, seen from one step further outside.
fn within(step: Step, mut problems: Problems) -> Problems {
    for problem in &mut problems {
        problem.at.insert(0, step.clone());
    }
    problems
}

/// The problem of tests that no value passes together.
fn contradiction(tests: &[Test]) -> Problems {
    if tests.len() > 1 && tests.contains(&Test::Exists(false)) {
        let message = "a condition says \"exists\": false and tests the value, too; leave \
             \"exists\" out, or the other tests";
        return problem(message);
    }
    let (mut min, mut max) = (None, None);
    for test in tests {
        match test {
            Test::Min(least) => min = Some(least),
            Test::Max(most) => max = Some(most),
            _ => {}
        }
    }
    match (min, max) {
        (Some(min), Some(max)) if order(min, max) == Some(Ordering::Greater) => {
            let message = format!(
                "a condition has \"min\" {min} above \"max\" {max}, and no number is both; swap \
                 them"
            );
            problem(message)
        }
        _ => Vec::new(),
    }
}
