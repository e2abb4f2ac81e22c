//! Reading a tool's arguments without stopping at the first that is wrong.

use std::fmt;

use rmcp::model::JsonObject;
use serde_json::Value;

/// Problems that are told of one call.
const TOLD: usize = 10;
/// Characters of a text of the caller's that is shown again.
const SHOWN: usize = 80;

/// The arguments of one call, and what is wrong with them so far.
pub(super) struct Reading<'a> {
    tool: &'static str,
    arguments: Option<&'a JsonObject>,
    problems: Vec<String>,
}

/// What is wrong with the arguments of a call, one line each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong(Vec<String>);

impl<'a> Reading<'a> {
    pub(super) fn of(tool: &'static str, arguments: Option<&'a JsonObject>) -> Self {
        Self {
            tool,
            arguments,
            problems: Vec::new(),
        }
    }

    /// Takes note of something that is wrong.
    pub(super) fn wrong(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, key: &str, what: &str) -> Option<&'a str> {
        match self.get(key) {
            Some(Value::String(text)) => return Some(text),
            Some(_) => self.wrong(format!("{key:?} must be a string: {what}")),
            None => self.wrong(format!("{} needs an argument {key:?}: {what}", self.tool)),
        }
        None
    }

    /// A whole number within these bounds, if there is one.
    pub(super) fn number(&mut self, key: &str, least: u64, most: u64, unit: &str) -> Option<u64> {
        let value = self.get(key)?;
        self.number_of(value, &format!("{key:?}"), least, most, unit)
    }

    /// The same of a value that is at hand.
    pub(super) fn number_of(
        &mut self,
        value: &Value,
        name: &str,
        least: u64,
        most: u64,
        unit: &str,
    ) -> Option<u64> {
        let Some(number) = whole(value) else {
            self.wrong(format!("{name} must be a whole number of {unit}"));
            return None;
        };
        if number < least {
            self.wrong(format!(
                "{name} is {number}, under the least, {least} {unit}"
            ));
        } else if number > most {
            self.wrong(format!("{name} is {number}, over the most, {most} {unit}"));
        } else {
            return Some(number);
        }
        None
    }

    /// A yes or no, if there is one.
    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        if !value.is_boolean() {
            self.wrong(format!("{key:?} must be true or false"));
        }
        value.as_bool()
    }

    /// An object, if there is one.
    pub(super) fn object(&mut self, key: &str) -> Option<&'a JsonObject> {
        let value = self.get(key)?;
        if !value.is_object() {
            self.wrong(format!("{key:?} must be an object"));
        }
        value.as_object()
    }

    /// A list of so many at most, if there is one.
    pub(super) fn list(&mut self, key: &str, most: usize) -> Option<&'a [Value]> {
        match self.get(key)? {
            Value::Array(list) if list.len() <= most => return Some(list),
            Value::Array(list) => {
                let length = list.len();
                self.wrong(format!("{key:?} has {length} items, over the most, {most}"));
            }
            _ => self.wrong(format!("{key:?} must be a list")),
        }
        None
    }

    /// The end: nothing is there besides these.
    ///
    /// # Errors
    ///
    /// All that is wrong.
    pub(super) fn end(mut self, known: &[&str]) -> Result<(), Wrong> {
        let tool = self.tool;
        if let Some(arguments) = self.arguments {
            self.unknown(
                arguments,
                known,
                &format!("{tool} has no argument"),
                "it takes",
            );
        }
        match self.problems.is_empty() {
            true => Ok(()),
            false => Err(Wrong(self.problems)),
        }
    }

    /// Takes note of the keys that nobody knows.
    pub(super) fn unknown(
        &mut self,
        object: &JsonObject,
        known: &[&str],
        lacking: &str,
        takes: &str,
    ) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let shown: String = key.chars().take(SHOWN).collect();
            self.wrong(format!("{lacking} {shown:?}; {takes} {}", known.join(", ")));
        }
    }

    /// An argument; one that is `null` is not there.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.arguments?.get(key).filter(|value| !value.is_null())
    }
}

/// A number without a fraction, however it is written.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        let fits = number.fract() == 0.0 && (0.0..9.0e15).contains(&number);
        fits.then_some(number as u64)
    })
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(TOLD).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            f.write_str(problem)?;
        }
        match self.0.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more like these"),
        }
    }
}
