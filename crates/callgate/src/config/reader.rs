//! Reading the tree of a file, with a place for every complaint.

use std::path::Path;
use std::time::Duration;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};

use super::error::{ConfigErrorKind, Problem};
use super::expand::Variables;
use super::keys::Keys;
use super::units::{parse_bytes, parse_duration, parse_memory};

/// What most texts are written as.
const STRING: &str = "a string";

/// The file being read, and what was found wrong so far.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) shown: &'a Path,
    pub(super) variables: Variables<'a>,
    /// What was taken from the environment, by name, since somebody last took this.
    pub(super) used: Vec<(String, String)>,
    /// Whether keys of other clients are errors: in our own file they are
    /// mistakes, in a file that is shared with other clients they are not.
    pub(super) ours_alone: bool,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl<'t> Reader<'_> {
    /// Notes an error at `range`.
    pub(super) fn error(
        &mut self,
        range: Range,
        kind: ConfigErrorKind,
        message: impl Into<String>,
    ) {
        let problem = self.problem(range, kind, message.into());
        self.problems.push(problem);
    }

    /// Notes what is no error.
    pub(super) fn warning(
        &mut self,
        range: Range,
        kind: ConfigErrorKind,
        message: impl Into<String>,
    ) {
        let problem = self.problem(range, kind, message.into());
        self.warnings.push(problem);
    }

    fn problem(&self, range: Range, kind: ConfigErrorKind, message: String) -> Problem {
        Problem {
            path: self.shown.to_owned(),
            place: Some(place(self.text, range.start)),
            kind,
            message,
        }
    }

    /// The properties of an object that mean something here. Keys that do not,
    /// and keys that stand twice, are complained about. `what` names the object
    /// (`server "git"`).
    pub(super) fn properties<'o>(
        &mut self,
        object: &'o Object<'t>,
        what: &str,
        keys: &Keys,
    ) -> Vec<&'o ObjectProp<'t>> {
        self.no_duplicates(object, what);
        let mut properties = Vec::new();
        for property in &object.properties {
            let key = property.name.as_str();
            if keys.ours.contains(&key) {
                properties.push(property);
                continue;
            }
            let range = name_range(property);
            if let Some(instead) = keys.other(key) {
                let message = format!("key \"{key}\" in {what} means nothing here; {instead}");
                let problem = self.problem(range, ConfigErrorKind::Key, message);
                if self.ours_alone {
                    self.problems.push(problem);
                } else {
                    self.warnings.push(problem);
                }
            } else if let Some(meant) = keys.suggest(key) {
                self.error(
                    range,
                    ConfigErrorKind::Key,
                    format!("unknown key \"{key}\" in {what}; did you mean \"{meant}\"?"),
                );
            } else {
                self.error(
                    range,
                    ConfigErrorKind::Key,
                    format!(
                        "unknown key \"{key}\" in {what}; remove it, or use one of {}",
                        keys.ours.join(", ")
                    ),
                );
            }
        }
        properties
    }

    /// Complains about keys that stand twice.
    pub(super) fn no_duplicates(&mut self, object: &Object<'t>, what: &str) {
        let mut seen = std::collections::HashSet::new();
        for property in &object.properties {
            let key = property.name.as_str();
            if !seen.insert(key) {
                self.error(
                    name_range(property),
                    ConfigErrorKind::Key,
                    format!("key \"{key}\" stands twice in {what}; remove one"),
                );
            }
        }
    }

    /// The object a property holds.
    pub(super) fn object<'o>(
        &mut self,
        property: &'o ObjectProp<'t>,
        what: &str,
    ) -> Option<&'o Object<'t>> {
        let object = property.value.as_object();
        if object.is_none() {
            self.wrong_type(property, what, "an object");
        }
        object
    }

    /// The values of an array of strings, each with its place.
    pub(super) fn strings<'o>(
        &mut self,
        property: &'o ObjectProp<'t>,
        what: &str,
    ) -> Vec<(&'o str, Range)> {
        let Some(array) = property.value.as_array() else {
            self.wrong_type(property, what, "an array of strings");
            return Vec::new();
        };
        let mut strings = Vec::new();
        for element in &array.elements {
            match element.as_string_lit() {
                Some(text) => strings.push((text.value.as_ref(), text.range)),
                None => {
                    let message = format!(
                        "\"{}\" in {what} must be an array of strings, and this is {}",
                        property.name.as_str(),
                        type_of(element)
                    );
                    self.error(element.range(), ConfigErrorKind::Value, message);
                }
            }
        }
        strings
    }

    /// The string a property holds.
    pub(super) fn string<'o>(
        &mut self,
        property: &'o ObjectProp<'t>,
        what: &str,
    ) -> Option<&'o str> {
        self.text(STRING, property, what)
    }

    /// The same, where it is `wanted`.
    fn text<'o>(
        &mut self,
        wanted: &str,
        property: &'o ObjectProp<'t>,
        what: &str,
    ) -> Option<&'o str> {
        let text = property.value.as_string_lit();
        if text.is_none() {
            self.wrong_type(property, what, wanted);
        }
        text.map(|text| text.value.as_ref())
    }

    /// The boolean a property holds.
    pub(super) fn boolean(&mut self, property: &ObjectProp<'t>, what: &str) -> Option<bool> {
        let boolean = property.value.as_boolean_lit();
        if boolean.is_none() {
            self.wrong_type(property, what, "true or false");
        }
        boolean.map(|boolean| boolean.value)
    }

    /// The whole number above zero that a property holds.
    pub(super) fn count(&mut self, property: &ObjectProp<'t>, what: &str) -> Option<u64> {
        let count = property
            .value
            .as_number_lit()
            .and_then(|number| number.value.parse().ok());
        if count.is_none_or(|count: u64| count == 0) {
            self.error(
                property.value.range(),
                ConfigErrorKind::Value,
                format!(
                    "\"{}\" in {what} must be a whole number above zero",
                    property.name.as_str()
                ),
            );
            return None;
        }
        count
    }

    /// What a parser makes of the string that a property holds.
    pub(super) fn parsed<T, E: std::fmt::Display>(
        &mut self,
        property: &ObjectProp<'t>,
        what: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.parsed_from(STRING, property, what, parse)
    }

    /// The same of one that is `wanted`, in the words for whoever wrote no string.
    pub(super) fn parsed_from<T, E: std::fmt::Display>(
        &mut self,
        wanted: &str,
        property: &ObjectProp<'t>,
        what: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(wanted, property, what)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.error(
                    property.value.range(),
                    ConfigErrorKind::Value,
                    format!("\"{}\" in {what}: {error}", property.name.as_str()),
                );
                None
            }
        }
    }

    /// The duration that a property holds.
    pub(super) fn duration(&mut self, property: &ObjectProp<'t>, what: &str) -> Option<Duration> {
        self.parsed_from("a string such as \"30s\"", property, what, parse_duration)
    }

    /// The number of bytes that a property holds.
    pub(super) fn size(&mut self, property: &ObjectProp<'t>, what: &str) -> Option<u64> {
        self.parsed_from("a string such as \"1MiB\"", property, what, parse_bytes)
    }

    /// The size of a script's memory that a property holds.
    pub(super) fn memory(&mut self, property: &ObjectProp<'t>, what: &str) -> Option<u64> {
        self.parsed_from("a string such as \"128MiB\"", property, what, parse_memory)
    }

    /// A text with its references replaced. `what` names the key and the
    /// server.
    pub(super) fn expand(&mut self, text: &str, range: Range, what: &str) -> Option<String> {
        match self.variables.expand(text, &mut self.used) {
            Ok(expanded) if expanded.contains('\0') => {
                self.error(
                    range,
                    ConfigErrorKind::Value,
                    format!("{what} has a NUL character; remove it"),
                );
                None
            }
            Ok(expanded) => Some(expanded),
            Err(unresolved) => {
                self.error(
                    range,
                    unresolved.kind,
                    format!("{what}: {}", unresolved.message),
                );
                None
            }
        }
    }

    /// Complains about a value of the wrong type, without showing it.
    pub(super) fn wrong_type(&mut self, property: &ObjectProp<'t>, what: &str, wanted: &str) {
        self.error(
            property.value.range(),
            ConfigErrorKind::Value,
            format!(
                "\"{}\" in {what} must be {wanted}, and this is {}",
                property.name.as_str(),
                type_of(&property.value)
            ),
        );
    }
}

/// Where a property's key stands.
pub(super) fn name_range(property: &ObjectProp<'_>) -> Range {
    // A property's own range starts with its key.
    Range::from_byte_index(property.range.start)
}

/// Line and column of a byte position, both from 1, the column in UTF-16 units.
pub(super) fn place(text: &str, position: usize) -> (u32, u32) {
    let before = text.get(..position).unwrap_or(text);
    let mut line = 1;
    let mut column = 1;
    let mut characters = before.chars().peekable();
    while let Some(c) = characters.next() {
        if c == '\n' || (c == '\r' && characters.peek() != Some(&'\n')) {
            line += 1;
            column = 1;
        } else {
            column += u32::try_from(c.len_utf16()).unwrap_or(1);
        }
    }
    (line, column)
}

fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "a boolean",
        Value::Object(_) => "an object",
        Value::Array(_) => "an array",
        Value::NullKeyword(_) => "null",
    }
}
