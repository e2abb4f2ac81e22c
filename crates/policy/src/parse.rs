//! Reading a rule from an entry of a configuration file's list.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr as _;

use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use crate::condition::{Condition, Test};
use crate::definition::DefinitionHash;
use crate::duplicate_keys::duplicate_keys;
use crate::equality::order;
use crate::name_pattern::{Pattern, ServerPattern};
use crate::nearest::nearest;
use crate::path_dots::has_dot_segment;
use crate::pointer::Pointer;
use crate::problem::{RuleProblem, RuleProblemKind, Step};
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

impl Rule {
    /// Reads an entry of `permissions.allow`, `ask` or `deny`: a pattern, or an
    /// object as [`Rule::to_json`] writes it.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the entry.
    pub fn parse(effect: Effect, entry: &Value) -> Result<Self, Vec<RuleProblem>> {
        let mut reader = Reader {
            at: Vec::new(),
            problems: Vec::new(),
        };
        match reader.rule(effect, entry) {
            Some(rule) if reader.problems.is_empty() => Ok(rule),
            _ => Err(reader.problems),
        }
    }

    /// Reads an entry from its JSON text, in which no key may stand twice in one object.
    ///
    /// # Errors
    ///
    /// As [`Rule::parse`].
    pub fn parse_json(effect: Effect, text: &str) -> Result<Self, Vec<RuleProblem>> {
        let no_json = |error: serde_json::Error| {
            vec![RuleProblem {
                at: Vec::new(),
                on_key: false,
                kind: RuleProblemKind::Value,
                message: format!("it is no JSON: {error}"),
            }]
        };
        let twice = duplicate_keys(text).map_err(no_json)?;
        if !twice.is_empty() {
            return Err(twice);
        }
        let entry = serde_json::from_str(text).map_err(no_json)?;
        Self::parse(effect, &entry)
    }
}

struct Reader {
    at: Vec<Step>,
    problems: Vec<RuleProblem>,
}

impl Reader {
    fn rule(&mut self, effect: Effect, entry: &Value) -> Option<Rule> {
        let members = match entry {
            Value::String(pattern) => {
                return Some(Rule::new(effect, self.pattern(pattern)?));
            }
            Value::Object(members) => members,
            _ => {
                self.wrong_type(entry, "a rule", "a pattern or an object");
                return None;
            }
        };
        self.known(members, "a rule", RULE, &[]);
        let pattern = match members.get("tool") {
            Some(tool) => self.key("tool", |reader| {
                let pattern = reader.text(tool, "\"tool\" in a rule")?;
                reader.pattern(pattern)
            }),
            None => {
                self.problem(
                    RuleProblemKind::Key,
                    "a rule has no \"tool\"; write a tool's generated name, or \"*\" for every \
                     tool",
                );
                None
            }
        };
        // The rest is read even so: all that is wrong is told at once.
        let any = Pattern::new("*").ok()?;
        let mut rule = Rule::new(effect, pattern.clone().unwrap_or(any));
        for (key, value) in members {
            self.key(key, |reader| reader.member(&mut rule, key, value));
        }
        pattern.map(|_| rule)
    }

    fn member(&mut self, rule: &mut Rule, key: &str, value: &Value) {
        match key {
            "server" => {
                let server = self.text(value, "\"server\" in a rule");
                rule.server = server.and_then(|server| {
                    let pattern = ServerPattern::new(server);
                    if pattern.is_none() {
                        self.problem(
                            RuleProblemKind::Pattern,
                            "empty pattern; write a server's name, or leave \"server\" out",
                        );
                    }
                    pattern
                });
            }
            "trusted" => rule.trusted = self.boolean(value, "\"trusted\" in a rule"),
            "arguments" => rule.arguments = self.conditions(value),
            "annotations" => rule.annotations = self.annotations(value),
            "maxCalls" => {
                rule.max_calls = self
                    .for_allow(rule.effect, key)
                    .and_then(|()| self.count(value));
            }
            "expires" => {
                rule.expires = self.text(value, "\"expires\" in a rule").and_then(|text| {
                    let time = Timestamp::from_str(text).ok();
                    if time.is_none() {
                        let message = format!(
                            "\"expires\" in a rule: {text:?} is no time; write one as RFC 3339 \
                             has it, such as \"2026-12-31T18:00:00Z\""
                        );
                        self.problem(RuleProblemKind::Value, message);
                    }
                    time
                });
            }
            "definition" => {
                rule.definition = self.for_allow(rule.effect, key).and_then(|()| {
                    let text = self.text(value, "\"definition\" in a rule")?;
                    self.ok(DefinitionHash::from_str(text), "\"definition\" in a rule:")
                });
            }
            _ => {}
        }
    }

    /// A deny or ask rule that could run out would let calls through that were
    /// held up a moment before.
    fn for_allow(&mut self, effect: Effect, key: &str) -> Option<()> {
        if effect.widens() {
            return Some(());
        }
        let message = format!(
            "\"{key}\" belongs to rules of \"allow\"; a rule that holds calls up is never used up"
        );
        self.on_key(message);
        None
    }

    fn conditions(&mut self, value: &Value) -> Vec<Condition> {
        let Value::Array(elements) = value else {
            self.wrong_type(value, "\"arguments\" in a rule", "an array of objects");
            return Vec::new();
        };
        if elements.is_empty() || elements.len() > MAX_CONDITIONS {
            let message = format!(
                "\"arguments\" in a rule has {} conditions; write 1 to {MAX_CONDITIONS}, or leave \
                 it out",
                elements.len()
            );
            self.problem(RuleProblemKind::Value, message);
            return Vec::new();
        }
        let mut conditions = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            self.at.push(Step::Index(index));
            conditions.extend(self.condition(element));
            self.at.pop();
        }
        conditions
    }

    fn condition(&mut self, value: &Value) -> Option<Condition> {
        let what = "\"arguments\" in a rule";
        let Value::Object(members) = value else {
            self.wrong_type(value, what, "an array of objects");
            return None;
        };
        self.known(members, "a condition", CONDITION, &[]);
        let at = match members.get("at") {
            Some(at) => self.key("at", |reader| {
                let text = reader.text(at, "\"at\" in a condition")?;
                reader.ok(Pointer::new(text), "\"at\" in a condition:")
            }),
            None => {
                self.problem(
                    RuleProblemKind::Key,
                    "a condition has no \"at\"; write a JSON pointer, such as \"/path\"",
                );
                None
            }
        };
        let mut tests = Vec::new();
        for (key, value) in members {
            tests.extend(self.key(key, |reader| reader.test(key, value)));
        }
        if !members
            .keys()
            .any(|key| key != "at" && CONDITION.contains(&key.as_str()))
        {
            let message = format!(
                "a condition says nothing of its value; write one of {}",
                CONDITION.get(1..).unwrap_or_default().join(", ")
            );
            self.problem(RuleProblemKind::Key, message);
        }
        if let Some(message) = contradiction(&tests) {
            self.problem(RuleProblemKind::Value, message);
        }
        Some(Condition::new(at?, tests))
    }

    fn test(&mut self, key: &str, value: &Value) -> Option<Test> {
        let what = format!("\"{key}\" in a condition");
        match key {
            "exists" => self.boolean(value, &what).map(Test::Exists),
            "equals" => Some(Test::Equals(value.clone())),
            "in" => match value {
                Value::Array(values) if (1..=MAX_VALUES).contains(&values.len()) => {
                    Some(Test::In(values.clone()))
                }
                Value::Array(values) => {
                    let message = format!(
                        "{what} has {} values; write 1 to {MAX_VALUES}",
                        values.len()
                    );
                    self.problem(RuleProblemKind::Value, message);
                    None
                }
                _ => {
                    self.wrong_type(value, &what, "an array");
                    None
                }
            },
            "prefix" => {
                let prefix = self.text(value, &what)?;
                if prefix.is_empty() {
                    let message = format!("{what} is empty; write how the text begins");
                    self.problem(RuleProblemKind::Value, message);
                    return None;
                }
                // Its last segment may go on.
                self.judgeable(&format!("{prefix}x"), &what)?;
                Some(Test::Prefix(prefix.to_owned()))
            }
            "glob" => {
                let text = self.text(value, &what)?;
                self.judgeable(&text.replace(['*', '?'], "x"), &what)?;
                self.ok(Glob::new(text), &what).map(Test::Glob)
            }
            "regex" => {
                let text = self.text(value, &what)?;
                self.ok(WholeRegex::new(text), &what).map(Test::Regex)
            }
            "min" => self.number(value, &what).map(Test::Min),
            "max" => self.number(value, &what).map(Test::Max),
            _ => None,
        }
    }

    /// Whether such a text can be judged. If not, none that the test is for can.
    fn judgeable(&mut self, text: &str, what: &str) -> Option<()> {
        if has_dot_segment(text) {
            let message = format!(
                "{what} has a segment \".\" or \"..\", and no text with one can be judged; leave \
                 the segment out"
            );
            self.problem(RuleProblemKind::Value, message);
            return None;
        }
        Some(())
    }

    fn annotations(&mut self, value: &Value) -> Annotations {
        let mut annotations = Annotations::default();
        let Value::Object(members) = value else {
            self.wrong_type(value, "\"annotations\" in a rule", "an object");
            return annotations;
        };
        self.known(members, "\"annotations\"", ANNOTATIONS, HINTS);
        if members.is_empty() {
            self.problem(
                RuleProblemKind::Value,
                "\"annotations\" in a rule says nothing; write one of readOnly, destructive, \
                 idempotent, openWorld, or leave it out",
            );
        }
        for (key, value) in members {
            let place = match key.as_str() {
                "readOnly" => &mut annotations.read_only,
                "destructive" => &mut annotations.destructive,
                "idempotent" => &mut annotations.idempotent,
                "openWorld" => &mut annotations.open_world,
                _ => continue,
            };
            let what = format!("\"{key}\" in \"annotations\"");
            *place = self.key(key, |reader| reader.boolean(value, &what));
        }
        annotations
    }

    fn pattern(&mut self, text: &str) -> Option<Pattern> {
        match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.problem(RuleProblemKind::Pattern, error.to_string());
                None
            }
        }
    }

    fn count(&mut self, value: &Value) -> Option<u32> {
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
        let count = count.filter(|count| *count > 0);
        if count.is_none() {
            let message = format!(
                "\"maxCalls\" in a rule must be a whole number from 1 to {}",
                u32::MAX
            );
            self.problem(RuleProblemKind::Value, message);
        }
        count
    }

    fn text<'v>(&mut self, value: &'v Value, what: &str) -> Option<&'v str> {
        let text = value.as_str();
        if text.is_none() {
            self.wrong_type(value, what, "a string");
        }
        text
    }

    fn boolean(&mut self, value: &Value, what: &str) -> Option<bool> {
        let boolean = value.as_bool();
        if boolean.is_none() {
            self.wrong_type(value, what, "true or false");
        }
        boolean
    }

    fn number(&mut self, value: &Value, what: &str) -> Option<Number> {
        let number = value.as_number();
        if number.is_none() {
            self.wrong_type(value, what, "a number");
        }
        number.cloned()
    }

    fn ok<T, E: fmt::Display>(&mut self, result: Result<T, E>, what: &str) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(RuleProblemKind::Value, format!("{what} {error}"));
                None
            }
        }
    }

    /// Complains about keys that mean nothing.
    fn known(
        &mut self,
        members: &Map<String, Value>,
        what: &str,
        keys: &[&str],
        synonyms: &[(&str, &str)],
    ) {
        for key in members.keys().map(String::as_str) {
            if keys.contains(&key) {
                continue;
            }
            let meant = synonyms
                .iter()
                .find(|(synonym, _)| *synonym == key)
                .map(|(_, meant)| *meant)
                .or_else(|| nearest(key, keys.iter().copied()));
            let message = match meant {
                Some(meant) => {
                    format!("unknown key {key:?} in {what}; did you mean \"{meant}\"?")
                }
                None => format!(
                    "unknown key {key:?} in {what}; remove it, or use one of {}",
                    keys.join(", ")
                ),
            };
            self.key(key, |reader| reader.on_key(message));
        }
    }

    fn wrong_type(&mut self, value: &Value, what: &str, wanted: &str) {
        let message = format!("{what} must be {wanted}, and this is {}", type_of(value));
        self.problem(RuleProblemKind::Value, message);
    }

    fn problem(&mut self, kind: RuleProblemKind, message: impl Into<String>) {
        self.problems.push(RuleProblem {
            at: self.at.clone(),
            on_key: false,
            kind,
            message: message.into(),
        });
    }

    fn on_key(&mut self, message: String) {
        self.problems.push(RuleProblem {
            at: self.at.clone(),
            on_key: true,
            kind: RuleProblemKind::Key,
            message,
        });
    }

    /// Reads on inside the member of an object.
    fn key<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.at.push(Step::Key(key.to_owned()));
        let read = read(self);
        self.at.pop();
        read
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Tests of one condition that no value passes together.
fn contradiction(tests: &[Test]) -> Option<String> {
    if tests.len() > 1 && tests.contains(&Test::Exists(false)) {
        let message = "a condition says \"exists\": false and tests the value, too; leave \
            \"exists\" out, or the other tests";
        return Some(message.to_owned());
    }
    let min = tests.iter().find_map(|test| match test {
        Test::Min(min) => Some(min),
        _ => None,
    })?;
    let max = tests.iter().find_map(|test| match test {
        Test::Max(max) => Some(max),
        _ => None,
    })?;
    (order(min, max) == Some(Ordering::Greater)).then(|| {
        format!(
            "a condition has \"min\" {min} above \"max\" {max}, and no number is both; swap them"
        )
    })
}
