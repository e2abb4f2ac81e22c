//! What a rule says of the arguments of a call.

use std::fmt;

use serde_json::{Map, Number, Value};

use crate::equality::{Judged, order, same};
use crate::path_dots::has_dot_segment;
use crate::pointer::Pointer;
use crate::text_pattern::{Glob, WholeRegex};

/// The keys of tests in the order in which a condition has them: cheap ones first.
const KEYS: [&str; 8] = [
    "exists", "min", "max", "equals", "prefix", "in", "glob", "regex",
];
/// The most characters of a value that a rule's text shows.
const MAX_SHOWN: usize = 40;

/// Tests of what is at one place of the arguments; all of them must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    at: Pointer,
    tests: Vec<Test>,
}

/// One test of a value.
///
/// A test that wants a text, a number or a value of one type cannot judge a
/// value of another type: a lenient server would turn `"5"` into `5`, and a
/// strict one would not. What that means depends on the rule, see
/// [`crate::Rule::arguments`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Test {
    /// Something is there, or nothing is.
    Exists(bool),
    /// A number that is not below this one.
    Min(Number),
    /// A number that is not above this one.
    Max(Number),
    /// This value, whatever the order of keys.
    Equals(Value),
    /// A text that begins so. A text with a segment `.` or `..` cannot be
    /// judged.
    Prefix(String),
    /// One of these values.
    In(Vec<Value>),
    /// A text that the glob matches. A text with a segment `.` or `..` cannot
    /// be judged.
    Glob(Glob),
    /// A text that the expression matches, all of it.
    Regex(WholeRegex),
}

impl Condition {
    /// Tests of what is at `at`.
    pub fn new(at: Pointer, tests: impl IntoIterator<Item = Test>) -> Self {
        let mut tests: Vec<Test> = tests.into_iter().collect();
        tests.sort_by_key(|test| KEYS.iter().position(|key| *key == test.written().0));
        Self { at, tests }
    }

    /// The condition that all arguments are these.
    pub fn exactly(arguments: Value) -> Self {
        Self::new(Pointer::whole(), [Test::Equals(arguments)])
    }

    /// The place.
    pub fn at(&self) -> &Pointer {
        &self.at
    }

    pub(crate) fn judge(&self, arguments: &Value) -> Judged {
        let value = self.at.find(arguments);
        let judged = self.tests.iter().map(|test| test.judge(value));
        judged.min().unwrap_or(Judged::Holds)
    }

    /// As it stands in a configuration file.
    pub(crate) fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("at".to_owned(), self.at.as_str().into());
        let tests = self.tests.iter().map(Test::written);
        members.extend(tests.map(|(key, value)| (key.to_owned(), value)));
        Value::Object(members)
    }
}

impl Test {
    /// The key and the value in a configuration file.
    fn written(&self) -> (&'static str, Value) {
        match self {
            Self::Exists(exists) => ("exists", (*exists).into()),
            Self::Min(number) => ("min", number.clone().into()),
            Self::Max(number) => ("max", number.clone().into()),
            Self::Equals(value) => ("equals", value.clone()),
            Self::Prefix(prefix) => ("prefix", prefix.as_str().into()),
            Self::In(values) => ("in", values.clone().into()),
            Self::Glob(glob) => ("glob", glob.as_str().into()),
            Self::Regex(regex) => ("regex", regex.as_str().into()),
        }
    }

    fn judge(&self, value: Option<&Value>) -> Judged {
        match (self, value) {
            (Self::Exists(wanted), value) => Judged::of(value.is_some() == *wanted),
            (Self::Equals(wanted), Some(value)) => same(wanted, value),
            (Self::In(wanted), Some(value)) => {
                let judged = wanted.iter().map(|wanted| same(wanted, value));
                judged.max().unwrap_or(Judged::Fails)
            }
            (Self::Min(least), Some(Value::Number(number))) => {
                order(number, least).map_or(Judged::Unclear, |order| Judged::of(order.is_ge()))
            }
            (Self::Max(most), Some(Value::Number(number))) => {
                order(number, most).map_or(Judged::Unclear, |order| Judged::of(order.is_le()))
            }
            (Self::Prefix(_) | Self::Glob(_), Some(Value::String(text)))
                if has_dot_segment(text) =>
            {
                Judged::Unclear
            }
            (Self::Prefix(prefix), Some(Value::String(text))) => {
                Judged::of(text.starts_with(prefix))
            }
            (Self::Glob(glob), Some(Value::String(text))) => Judged::of(glob.matches(text)),
            (Self::Regex(regex), Some(Value::String(text))) => Judged::of(regex.matches(text)),
            _ => Judged::Unclear,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.at.as_str() {
            "" => "the arguments",
            pointer => pointer,
        };
        for (index, test) in self.tests.iter().enumerate() {
            let before = if index == 0 { place } else { " and" };
            f.write_str(before)?;
            match test {
                Test::Exists(true) => f.write_str(" exists")?,
                Test::Exists(false) => f.write_str(" does not exist")?,
                Test::Min(number) => write!(f, " ≥ {number}")?,
                Test::Max(number) => write!(f, " ≤ {number}")?,
                Test::Equals(value) => write!(f, " = {}", shown(&value.to_string()))?,
                Test::In(values) => write!(f, " is one of {}", values.len())?,
                Test::Prefix(text) => write!(f, " begins with {}", quoted(text))?,
                Test::Glob(glob) => write!(f, " matches {}", quoted(glob.as_str()))?,
                Test::Regex(regex) => write!(f, " matches regex {}", quoted(regex.as_str()))?,
            }
        }
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    shown(&Value::from(text).to_string())
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
