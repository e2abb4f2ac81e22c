//! The conditions of a rule on the arguments of a call.

use std::cmp::Ordering;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::equality::{Judged, order, same};
use crate::parse;
use crate::path_dots::has_dot_segment;
use crate::pointer::Pointer;
use crate::text_pattern::TextPattern;

/// The maximum number of characters of a value in a rule's text.
const MAX_SHOWN: usize = 40;

/// Tests of the value at one place of the arguments; all of them must hold.
///
/// A test that wants a text, a number or a value of one type cannot judge a
/// value of another type: a lenient server would turn `"5"` into `5`, and a
/// strict one would not. The effect depends on the rule, see
/// [`crate::Rule::arguments`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The place: a JSON pointer (RFC 6901); the empty text is all arguments.
    #[serde(deserialize_with = "parse::parsed")]
    #[schemars(with = "String")]
    pub at: Pointer,
    /// True if the place must have a value, false if it must have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// A number that is not below this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Number>,
    /// A number that is not above this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Number>,
    /// This value, in any order of keys.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "parse::value"
    )]
    pub equals: Option<Value>,
    /// The start of a text. A text with a segment `.` or `..` cannot be
    /// judged.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "parse::prefix"
    )]
    pub prefix: Option<String>,
    /// One of these values.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub is_in: Option<Vec<Value>>,
    /// A glob for a whole text: `*` is any characters but `/`, `**` any characters, `?` one but
    /// `/`; `**/` is any number of folders, also none. A text with a segment `.` or `..` cannot be
    /// judged.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "parse::glob"
    )]
    #[schemars(with = "Option<String>")]
    pub glob: Option<TextPattern>,
    /// A regular expression for a whole text; `.` matches line ends; no look-around, no back
    /// references.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "parse::regex"
    )]
    #[schemars(with = "Option<String>")]
    pub regex: Option<TextPattern>,
}

impl Condition {
    /// The number of its tests.
    pub(crate) fn count(&self) -> usize {
        self.tests_in_words().len()
    }

    /// Judges arguments, with cheap tests first.
    pub(crate) fn judge(&self, arguments: &Value) -> Judged {
        let value = self.at.find(arguments);
        let number = value.and_then(Value::as_number);
        let text = value.and_then(Value::as_str);
        // A text with a segment of dots leads to a different place than its prefix says.
        let path = || text.filter(|text| !has_dot_segment(text));
        let judge = |holds: Option<bool>| holds.map_or(Judged::Unclear, Judged::of);
        let is_ordered = |bound: &Number, fits: fn(Ordering) -> bool| {
            judge(number.and_then(|number| order(number, bound)).map(fits))
        };
        let is_same = |wanted: &Value| value.map_or(Judged::Unclear, |value| same(wanted, value));
        let is_one_of = |wanted: &Vec<Value>| wanted.iter().map(is_same).max();
        [
            self.exists.map(|it| Judged::of(value.is_some() == it)),
            self.min.as_ref().map(|it| is_ordered(it, Ordering::is_ge)),
            self.max.as_ref().map(|it| is_ordered(it, Ordering::is_le)),
            self.equals.as_ref().map(is_same),
            self.prefix
                .as_ref()
                .map(|it| judge(path().map(|text| text.starts_with(it)))),
            self.is_in
                .as_ref()
                .map(|it| is_one_of(it).unwrap_or(Judged::Fails)),
            self.glob
                .as_ref()
                .map(|it| judge(path().map(|text| it.matches(text)))),
            self.regex
                .as_ref()
                .map(|it| judge(text.map(|text| it.matches(text)))),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(Judged::Holds)
    }

    /// The permitted values in short, such as `path /data/out/**`.
    pub(crate) fn in_short(&self) -> String {
        let at = self.at.as_str().trim_start_matches('/');
        match (&self.glob, &self.is_in) {
            (Some(glob), _) if self.count() == 1 => format!("{at} {}", glob.as_str()),
            (_, Some(values)) if self.count() == 1 => {
                format!("{at} one of {}", Value::from(values.clone()))
            }
            _ => self.to_string().trim_start_matches('/').to_owned(),
        }
    }

    fn tests_in_words(&self) -> Vec<String> {
        let exists = |exists| if exists { "exists" } else { "does not exist" };
        [
            self.exists.map(|it| exists(it).to_owned()),
            self.min.as_ref().map(|it| format!("≥ {it}")),
            self.max.as_ref().map(|it| format!("≤ {it}")),
            self.equals
                .as_ref()
                .map(|it| format!("= {}", shown(&it.to_string()))),
            self.prefix
                .as_ref()
                .map(|it| format!("begins with {}", quoted(it))),
            self.is_in
                .as_ref()
                .map(|it| format!("is one of {}", it.len())),
            self.glob
                .as_ref()
                .map(|it| format!("matches {}", quoted(it.as_str()))),
            self.regex
                .as_ref()
                .map(|it| format!("matches regex {}", quoted(it.as_str()))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.at.as_str() {
            "" => "the arguments",
            pointer => pointer,
        };
        write!(f, "{place} {}", self.tests_in_words().join(" and "))
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
