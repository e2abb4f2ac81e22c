//! Reading the arguments of our own tools: every problem at once, in words that
//! a model can act on.

use std::fmt;

use callgate_policy::nearest;
use rmcp::model::JsonObject;
use serde_json::Value;

/// Problems that are told of one call.
const TOLD: usize = 10;
/// Bytes of a model's text that are said again.
const SHOWN: usize = 80;

/// The arguments of one call, as far as they were read, and what is wrong with
/// them.
pub(crate) struct Arguments<'a> {
    /// What did not happen if something is wrong.
    lead: String,
    given: Option<&'a JsonObject>,
    /// The argument that they are members of, if they are.
    within: Option<&'static str>,
    known: Vec<&'static str>,
    problems: Vec<String>,
}

/// What is wrong with the arguments of a call, one line each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    lead: String,
    problems: Vec<String>,
}

impl<'a> Arguments<'a> {
    /// Those of a tool.
    pub(crate) fn of(tool: &str, given: Option<&'a JsonObject>) -> Self {
        Self::or(format!("{tool} was not called"), given)
    }

    /// Those of what does not happen, in these words, if they are wrong.
    pub(crate) fn or(lead: impl Into<String>, given: Option<&'a JsonObject>) -> Self {
        Self {
            lead: lead.into(),
            given,
            within: None,
            known: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, key: &'static str, what: &str) -> &'a str {
        match self.get(key) {
            Some(Value::String(text)) => return text,
            Some(other) => self.unfit(key, &format!("a string: {what}"), other),
            None => self.missing(key, &format!("{what}, a string")),
        }
        ""
    }

    /// A text that may be left out.
    pub(crate) fn optional_text(&mut self, key: &'static str, what: &str) -> Option<&'a str> {
        match self.get(key)? {
            Value::String(text) => return Some(text),
            other => self.unfit(key, &format!("a string: {what}"), other),
        }
        None
    }

    /// One of these words, the first if it is left out.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let Some(given) = self.get(key) else {
            return choices.first().map(|(_, choice)| *choice);
        };
        let found = choices.iter().find(|(word, _)| given == word);
        if found.is_none() {
            let words: Vec<String> = choices
                .iter()
                .map(|(word, _)| format!("{word:?}"))
                .collect();
            self.unfit(key, &format!("one of {}", words.join(", ")), given);
        }
        found.map(|(_, choice)| *choice)
    }

    /// A whole number within these bounds, of this unit if it has one.
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        least: u64,
        most: u64,
        unit: &str,
    ) -> Option<u64> {
        let given = self.get(key)?;
        let number = whole(given).filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let of = if unit.is_empty() { "" } else { " of " };
            let bounds = match most {
                u64::MAX => format!(", at least {least}"),
                _ => format!(" from {least} to {most}"),
            };
            self.unfit(key, &format!("a whole number{of}{unit}{bounds}"), given);
        }
        number
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn count(&mut self, key: &'static str, most: usize, default: usize) -> usize {
        let count = self.number(key, 1, u64::try_from(most).unwrap_or(u64::MAX), "");
        let count = count.and_then(|count| usize::try_from(count).ok());
        count.unwrap_or(default)
    }

    /// A yes or no, if there is one.
    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let given = self.get(key)?;
        if !given.is_boolean() {
            self.unfit(key, "true or false", given);
        }
        given.as_bool()
    }

    /// One to `most` texts.
    pub(crate) fn texts(&mut self, key: &'static str, most: usize, what: &str) -> Vec<&'a str> {
        let wanted = format!("an array of 1 to {most} strings: {what}");
        let Some(given) = self.get(key) else {
            self.missing(key, &wanted);
            return Vec::new();
        };
        let texts: Option<Vec<&str>> = match given {
            Value::Array(items) => items.iter().map(Value::as_str).collect(),
            _ => None,
        };
        let name = self.name(key);
        match texts {
            Some(texts) if (1..=most).contains(&texts.len()) => return texts,
            Some(texts) => {
                let count = texts.len();
                self.wrong(format!("{name} must be {wanted}, and this has {count}"));
            }
            None if given.is_array() => self.wrong(format!(
                "{name} must be {wanted}, and this has other things in it"
            )),
            None => self.unfit(key, &wanted, given),
        }
        Vec::new()
    }

    /// A list of so many at most, if there is one.
    pub(crate) fn list(&mut self, key: &'static str, most: usize) -> Option<&'a [Value]> {
        let given = self.get(key)?;
        let wanted = format!("an array of at most {most}");
        match given {
            Value::Array(list) if list.len() <= most => return Some(list),
            Value::Array(list) => {
                let (name, count) = (self.name(key), list.len());
                self.wrong(format!("{name} must be {wanted}, and this has {count}"));
            }
            _ => self.unfit(key, &wanted, given),
        }
        None
    }

    /// An object, if there is one.
    pub(crate) fn object(&mut self, key: &'static str, what: &str) -> Option<&'a JsonObject> {
        let given = self.get(key)?;
        if !given.is_object() {
            self.unfit(key, &format!("an object: {what}"), given);
        }
        given.as_object()
    }

    /// The members of an object, if there is one; it has none but those that are
    /// read.
    pub(crate) fn members<T>(
        &mut self,
        key: &'static str,
        what: &str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let given = self.object(key, what)?;
        let mut members = Self::or(String::new(), Some(given));
        members.within = Some(key);
        let result = read(&mut members);
        members.look_for_unknown();
        self.problems.append(&mut members.problems);
        Some(result)
    }

    /// Takes note of something that is wrong.
    pub(crate) fn wrong(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// The end: nothing is there besides what was read.
    ///
    /// # Errors
    ///
    /// All that is wrong.
    pub(crate) fn check(mut self) -> Result<(), Wrong> {
        self.look_for_unknown();
        match self.problems.is_empty() {
            true => Ok(()),
            false => Err(Wrong {
                lead: self.lead,
                problems: self.problems,
            }),
        }
    }

    fn look_for_unknown(&mut self) {
        let what = match self.within {
            None => "argument".to_owned(),
            Some(within) => format!("member of {within:?}"),
        };
        for key in self.given.into_iter().flat_map(JsonObject::keys) {
            if self.known.contains(&key.as_str()) {
                continue;
            }
            // Of more than are told, it is enough to know how many they are: there may be as many
            // as a message has room for.
            if self.problems.len() >= TOLD {
                self.problems.push(String::new());
                continue;
            }
            let shown = shown(key);
            let advice = match nearest(key, self.known.iter().copied()) {
                Some(near) => format!("; did you mean {near:?}?"),
                None if self.known.is_empty() => ": it takes none".to_owned(),
                None => format!("; there are {}", self.known.join(", ")),
            };
            self.problems
                .push(format!("there is no {what} {shown}{advice}"));
        }
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        // Many clients write null for what they leave out.
        self.given?.get(key).filter(|value| !value.is_null())
    }

    fn name(&self, key: &str) -> String {
        match self.within {
            None => format!("{key:?}"),
            Some(within) => format!("\"{within}.{key}\""),
        }
    }

    fn missing(&mut self, key: &str, wanted: &str) {
        let name = self.name(key);
        self.wrong(format!("{name} is missing: {wanted}"));
    }

    fn unfit(&mut self, key: &str, wanted: &str, given: &Value) {
        let given = match given {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => shown(text),
            Value::Array(_) => "an array".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        let name = self.name(key);
        self.wrong(format!("{name} must be {wanted}, and this is {given}"));
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.lead)?;
        for problem in self.problems.iter().take(TOLD) {
            write!(f, "\n- {problem}")?;
        }
        match self.problems.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "\n- and {more} more like these"),
        }
    }
}

impl From<Wrong> for String {
    fn from(wrong: Wrong) -> Self {
        wrong.to_string()
    }
}

/// A text of a model's as it is said again: quoted, and no longer than it need be.
pub(crate) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN);
    match text.get(..end) {
        Some(head) if end < text.len() => format!("{:?}", format!("{head}…")),
        _ => format!("{text:?}"),
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

#[cfg(test)]
mod tests;
