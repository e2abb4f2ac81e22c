//! What a rule says of the arguments of a call.

use std::fmt;

use serde_json::{Map, Number, Value};

use crate::equality::{Judged, order, same};
use crate::path_dots::has_dot_segment;
use crate::pointer::Pointer;
use crate::text_pattern::{Glob, WholeRegex};

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
        // Cheap ones first: one that fails spares the rest.
        tests.sort_by_key(Test::rank);
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

    /// The tests, cheap ones first.
    pub fn tests(&self) -> &[Test] {
        &self.tests
    }

    pub(crate) fn judge(&self, arguments: &Value) -> Judged {
        let value = self.at.find(arguments);
        let mut so_far = Judged::Holds;
        for test in &self.tests {
            so_far = so_far.and(test.judge(value));
            if so_far == Judged::Fails {
                break;
            }
        }
        so_far
    }

    /// As it stands in a configuration file.
    pub(crate) fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("at".to_owned(), self.at.as_str().into());
        for test in &self.tests {
            members.insert(test.key().to_owned(), test.value());
        }
        Value::Object(members)
    }
}

impl Test {
    fn rank(&self) -> usize {
        match self {
            Self::Exists(_) => 0,
            Self::Min(_) => 1,
            Self::Max(_) => 2,
            Self::Equals(_) => 3,
            Self::Prefix(_) => 4,
            Self::In(_) => 5,
            Self::Glob(_) => 6,
            Self::Regex(_) => 7,
        }
    }

    fn key(&self) -> &'static str {
        match self {
            Self::Exists(_) => "exists",
            Self::Min(_) => "min",
            Self::Max(_) => "max",
            Self::Equals(_) => "equals",
            Self::Prefix(_) => "prefix",
            Self::In(_) => "in",
            Self::Glob(_) => "glob",
            Self::Regex(_) => "regex",
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Exists(exists) => Value::Bool(*exists),
            Self::Min(number) | Self::Max(number) => Value::Number(number.clone()),
            Self::Equals(value) => value.clone(),
            Self::Prefix(prefix) => prefix.as_str().into(),
            Self::In(values) => Value::Array(values.clone()),
            Self::Glob(glob) => glob.as_str().into(),
            Self::Regex(regex) => regex.as_str().into(),
        }
    }

    fn judge(&self, value: Option<&Value>) -> Judged {
        if let Self::Exists(wanted) = self {
            return Judged::of(value.is_some() == *wanted);
        }
        match (self, value) {
            (Self::Equals(wanted), Some(value)) => same(wanted, value),
            (Self::In(wanted), Some(value)) => one_of(wanted, value),
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

/// True if a value is one of these.
fn one_of(wanted: &[Value], value: &Value) -> Judged {
    let mut so_far = Judged::Fails;
    for wanted in wanted {
        match same(wanted, value) {
            Judged::Holds => return Judged::Holds,
            Judged::Unclear => so_far = Judged::Unclear,
            Judged::Fails => {}
        }
    }
    so_far
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
