//! One field of a form: what a server wants, and what a person types.

use callgate_schema::{Author, Schema};
use serde_json::{Map, Number, Value, json};

/// Characters of a server's text in one line.
const MAX_LABEL: usize = 200;
/// The most choices of one field.
const MAX_CHOICES: usize = 200;
/// The draft in which formats are checked.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// A field of a form.
#[derive(Debug)]
pub struct Field {
    /// The property.
    pub name: String,
    /// The property's name for people.
    pub title: Option<String>,
    pub description: Option<String>,
    required: bool,
    /// The valid value of an empty line.
    default: Option<Value>,
    kind: Kind,
    /// The kind of answer, in words.
    wants: String,
    schema: Schema,
}

/// The way a typed text becomes a value.
#[derive(Debug, PartialEq)]
enum Kind {
    Text,
    Number,
    YesOrNo,
    One(Vec<Choice>),
    Several(Vec<Choice>),
}

/// A value to choose, with its name for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub value: String,
    pub title: Option<String>,
}

impl Field {
    /// Reads a property of a form's schema; `None` for a kind that cannot be filled in here.
    pub fn read(name: &str, schema: &Value, required: bool) -> Option<Self> {
        let mut checked = schema.clone();
        let schema = schema.as_object()?;
        let text = |key: &str| {
            let text = schema.get(key)?.as_str()?.trim();
            (!text.is_empty()).then(|| bounded(text, MAX_LABEL))
        };
        let (kind, wants) = Kind::read(schema)?;
        checked
            .as_object_mut()?
            .insert("$schema".to_owned(), DRAFT.into());
        let mut field = Self {
            name: name.to_owned(),
            title: text("title"),
            description: text("description"),
            required,
            default: None,
            kind,
            wants,
            schema: Schema::new(checked, Author::Script).ok()?,
        };
        let default = schema.get("default");
        field.default = default
            .filter(|value| field.problem(value).is_none())
            .cloned();
        Some(field)
    }

    /// The answer that the field takes, in words.
    pub fn wants(&self) -> String {
        let optional = if self.required { "" } else { ", optional" };
        let default = self.default.as_ref();
        let default = default.map_or(String::new(), |value| format!(", default {}", plain(value)));
        format!("{}{optional}{default}", self.wants)
    }

    /// The choices that the field offers.
    pub fn choices(&self) -> &[Choice] {
        match &self.kind {
            Kind::One(choices) | Kind::Several(choices) => choices,
            _ => &[],
        }
    }

    /// The value of a line; `None` if the line leaves the field out.
    pub fn answer(&self, line: &str) -> Result<Option<Value>, String> {
        let typed = line.trim();
        let value = match typed {
            "" if self.default.is_some() => return Ok(self.default.clone()),
            "" if self.required => return Err("it is required".to_owned()),
            "" => return Ok(None),
            _ => self.kind.parse(typed)?,
        };
        self.problem(&value).map_or(Ok(Some(value)), Err)
    }

    /// The problem with a value.
    fn problem(&self, value: &Value) -> Option<String> {
        let problem = self.schema.problems(value, MAX_LABEL, 1).pop()?;
        Some(problem.trim_start_matches("the value: ").to_owned())
    }
}

impl Kind {
    /// The kind of a property, and the kind in words.
    fn read(schema: &Map<String, Value>) -> Option<(Self, String)> {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        Some(match text("type")? {
            "string" => match choices(schema, "oneOf")? {
                Some(choices) => (Self::One(choices), "one of these, by number".to_owned()),
                None => {
                    let what = match text("format") {
                        Some("email") => "an e-mail address",
                        Some("uri") => "a URL",
                        Some("date") => "a date, such as 2026-07-28",
                        Some("date-time") => "a time, such as 2026-07-28T12:00:00Z",
                        _ => "text",
                    };
                    let length = range(schema, "minLength", "maxLength", "characters");
                    (Self::Text, format!("{what}{length}"))
                }
            },
            kind @ ("integer" | "number") => {
                let what = if kind == "integer" {
                    "a whole number"
                } else {
                    "a number"
                };
                let range = range(schema, "minimum", "maximum", "");
                (Self::Number, format!("{what}{range}"))
            }
            "boolean" => (Self::YesOrNo, "y or n".to_owned()),
            "array" => {
                let choices = choices(schema.get("items")?.as_object()?, "anyOf")??;
                let count = range(schema, "minItems", "maxItems", "of them");
                let wants = format!("any of these, by number, with commas between{count}");
                (Self::Several(choices), wants)
            }
            _ => return None,
        })
    }

    /// The value of a typed text.
    fn parse(&self, typed: &str) -> Result<Value, String> {
        Ok(match self {
            Self::Text => typed.into(),
            Self::Number => {
                let number = typed.parse::<Number>();
                number.map_err(|_| "it is not a number".to_owned())?.into()
            }
            Self::YesOrNo => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => true.into(),
                "n" | "no" | "false" => false.into(),
                _ => return Err("answer y or n".to_owned()),
            },
            Self::One(choices) => chosen(choices, typed)?.into(),
            Self::Several(choices) => {
                let mut values: Vec<&str> = Vec::new();
                for typed in typed.split(',').filter(|typed| !typed.trim().is_empty()) {
                    let value = chosen(choices, typed)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                json!(values)
            }
        })
    }
}

/// A value in words.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The choices of a string schema: titled ones, or an `enum`. No choices if it has neither
/// keyword; no field if the keyword is malformed.
fn choices(schema: &Map<String, Value>, titled: &str) -> Option<Option<Vec<Choice>>> {
    let names = schema.get("enumNames").and_then(Value::as_array);
    let Some(all) = schema.get(titled).or_else(|| schema.get("enum")) else {
        return Some(None);
    };
    let choice = |(index, choice): (usize, &Value)| {
        let value = choice.get("const").unwrap_or(choice).as_str()?.to_owned();
        let name = || names?.get(index);
        let title = choice.get("title").or_else(name).and_then(Value::as_str);
        Some(Choice {
            value,
            title: title.map(|title| bounded(title, MAX_LABEL)),
        })
    };
    let choices = all.as_array()?.iter().enumerate().map(choice);
    let choices: Vec<Choice> = choices.collect::<Option<_>>()?;
    (1..=MAX_CHOICES)
        .contains(&choices.len())
        .then_some(Some(choices))
}

/// The choice that a number, a value or a title means.
fn chosen<'c>(choices: &'c [Choice], typed: &str) -> Result<&'c str, String> {
    let typed = typed.trim();
    let number = typed.parse::<usize>().ok();
    let numbered = number.and_then(|number| choices.get(number.checked_sub(1)?));
    let is_named =
        |choice: &&Choice| choice.value == typed || choice.title.as_deref() == Some(typed);
    match numbered.or_else(|| choices.iter().find(is_named)) {
        Some(choice) => Ok(&choice.value),
        None => Err(format!("choose by a number from 1 to {}", choices.len())),
    }
}

/// The bounds of a length, a count or a number, in words.
fn range(schema: &Map<String, Value>, min: &str, max: &str, what: &str) -> String {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number());
    let words = match (bound(min), bound(max)) {
        (None, None) => return String::new(),
        (Some(min), None) => format!(", at least {min} {what}"),
        (None, Some(max)) => format!(", at most {max} {what}"),
        (Some(min), Some(max)) => format!(", {min} to {max} {what}"),
    };
    words.trim_end().to_owned()
}

/// A text of at most so many characters, and its length if it is cut.
pub fn bounded(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!(
            "{}… (cut: {} bytes in all)",
            text.get(..end).unwrap_or_default(),
            text.len()
        ),
    }
}

#[cfg(test)]
mod tests;
