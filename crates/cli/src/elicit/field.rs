//! One field of a form: what a server wants in it, and what a person types.

use serde_json::{Map, Number, Value, json};
use url::Url;

/// Characters of a server's text in one line.
const MAX_LABEL: usize = 200;
/// Choices of one field.
const MAX_CHOICES: usize = 200;

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The property.
    pub name: String,
    /// Its name for people, if it has one.
    pub title: Option<String>,
    /// What the server says of it.
    pub description: Option<String>,
    pub required: bool,
    /// What an empty line stands for; valid.
    pub default: Option<Value>,
    pub kind: Kind,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Text {
        least: u64,
        most: Option<u64>,
        format: Option<Format>,
    },
    Number {
        integer: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    YesOrNo,
    One(Vec<Choice>),
    Several {
        choices: Vec<Choice>,
        least: u64,
        most: Option<u64>,
    },
}

/// A form of text that servers can ask for; others are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Email,
    Uri,
    Date,
    DateTime,
}

/// A value to choose, and its name for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub value: String,
    pub title: Option<String>,
}

impl Field {
    /// Reads a property of a form's schema; `None` for what cannot be filled in
    /// here.
    pub fn read(name: &str, schema: &Value, required: bool) -> Option<Self> {
        let schema = schema.as_object()?;
        let text = |key: &str| {
            let text = schema.get(key)?.as_str()?.trim();
            (!text.is_empty()).then(|| shortened(text))
        };
        let mut field = Self {
            name: name.to_owned(),
            title: text("title"),
            description: text("description"),
            required,
            default: None,
            kind: Kind::read(schema)?,
        };
        field.default = schema
            .get("default")
            .filter(|value| field.kind.accepts(value))
            .cloned();
        Some(field)
    }

    /// What kind of answer it takes, for people.
    pub fn wants(&self) -> String {
        let mut wants = self.kind.wants();
        if !self.required {
            wants.push_str(", optional");
        }
        if let Some(default) = &self.default {
            wants += &format!(", default {}", plain(default));
        }
        wants
    }

    /// The value that a line stands for; `None` if it leaves the field out.
    pub fn answer(&self, line: &str) -> Result<Option<Value>, String> {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.trim().is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.required => Err("it is required".to_owned()),
                None => Ok(None),
            };
        }
        let typed = match line.trim() {
            "!none" => match self.kind {
                Kind::Text { .. } => String::new(),
                Kind::Several { .. } => String::new(),
                _ if self.required => return Err("it is required".to_owned()),
                _ => return Ok(None),
            },
            // A text may begin as a command does.
            other => match other.strip_prefix("!!") {
                Some(rest) => format!("!{rest}"),
                None => other.to_owned(),
            },
        };
        self.kind.parse(&typed).map(Some)
    }
}

impl Kind {
    fn read(schema: &Map<String, Value>) -> Option<Self> {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        match schema.get("type").and_then(Value::as_str)? {
            "string" => match choices(schema, "oneOf")? {
                Some(choices) => Some(Self::One(choices)),
                None => Some(Self::Text {
                    least: count("minLength").unwrap_or(0),
                    most: count("maxLength"),
                    format: schema
                        .get("format")
                        .and_then(Value::as_str)
                        .and_then(Format::read),
                }),
            },
            kind @ ("number" | "integer") => Some(Self::Number {
                integer: kind == "integer",
                least: number("minimum"),
                most: number("maximum"),
            }),
            "boolean" => Some(Self::YesOrNo),
            "array" => Some(Self::Several {
                choices: choices(schema.get("items")?.as_object()?, "anyOf")??,
                least: count("minItems").unwrap_or(0),
                most: count("maxItems"),
            }),
            _ => None,
        }
    }

    fn wants(&self) -> String {
        match self {
            Self::Text {
                least,
                most,
                format,
            } => {
                let what = match format {
                    None => "text",
                    Some(Format::Email) => "an e-mail address",
                    Some(Format::Uri) => "a URL",
                    Some(Format::Date) => "a date, such as 2026-07-28",
                    Some(Format::DateTime) => "a time, such as 2026-07-28T12:00:00Z",
                };
                format!("{what}{}", range(*least, *most, "characters"))
            }
            Self::Number {
                integer,
                least,
                most,
            } => {
                let what = if *integer {
                    "a whole number"
                } else {
                    "a number"
                };
                match (least, most) {
                    (Some(least), Some(most)) => format!("{what} from {least} to {most}"),
                    (Some(least), None) => format!("{what} of at least {least}"),
                    (None, Some(most)) => format!("{what} of at most {most}"),
                    (None, None) => what.to_owned(),
                }
            }
            Self::YesOrNo => "y or n".to_owned(),
            Self::One(_) => "one of these, by number".to_owned(),
            Self::Several { least, most, .. } => format!(
                "any of these, by number, with commas between{}",
                range(*least, *most, "of them")
            ),
        }
    }

    /// The choices it offers.
    pub fn choices(&self) -> &[Choice] {
        match self {
            Self::One(choices) | Self::Several { choices, .. } => choices,
            _ => &[],
        }
    }

    /// The value that a typed text stands for.
    fn parse(&self, typed: &str) -> Result<Value, String> {
        let value = match self {
            Self::Text { .. } => Value::from(typed),
            Self::Number { integer: true, .. } => match typed.trim().parse::<i64>() {
                Ok(number) => Value::from(number),
                Err(_) => return Err("it is no whole number".to_owned()),
            },
            Self::Number { .. } => match typed.trim().parse().ok().and_then(Number::from_f64) {
                Some(number) => Value::Number(number),
                None => return Err("it is no number".to_owned()),
            },
            Self::YesOrNo => match typed.trim().to_lowercase().as_str() {
                "y" | "yes" | "true" => Value::Bool(true),
                "n" | "no" | "false" => Value::Bool(false),
                _ => return Err("answer y or n".to_owned()),
            },
            Self::One(choices) => Value::from(chosen(choices, typed)?),
            Self::Several { choices, .. } => {
                let mut values: Vec<&str> = Vec::new();
                for typed in typed.split(',').filter(|typed| !typed.trim().is_empty()) {
                    let value = chosen(choices, typed)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                json!(values)
            }
        };
        self.fault(&value).map_or(Ok(value), Err)
    }

    /// Whether a default may stand.
    fn accepts(&self, value: &Value) -> bool {
        let offered = |value: &Value| {
            let offers = |choice: &Choice| value.as_str() == Some(&choice.value);
            self.choices().iter().any(offers)
        };
        let right = match self {
            Self::Text { .. } => value.is_string(),
            Self::Number { integer, .. } => value.is_i64() || (!integer && value.is_number()),
            Self::YesOrNo => value.is_boolean(),
            Self::One(_) => offered(value),
            Self::Several { .. } => value.as_array().is_some_and(|all| all.iter().all(offered)),
        };
        right && self.fault(value).is_none()
    }

    /// What is wrong with a value of the right type.
    fn fault(&self, value: &Value) -> Option<String> {
        match self {
            Self::Text {
                least,
                most,
                format,
            } => {
                let text = value.as_str().unwrap_or_default();
                let length = text.chars().count() as u64;
                if length < *least || most.is_some_and(|most| length > most) {
                    let wanted = range(*least, *most, "characters");
                    return Some(format!("it has {length} characters{wanted}"));
                }
                let format = format.as_ref()?;
                (!format.fits(text)).then(|| format!("it is not {}", self.wants()))
            }
            Self::Number { least, most, .. } => {
                let number = value.as_f64().unwrap_or_default();
                let low = least.is_some_and(|least| number < least);
                let high = most.is_some_and(|most| number > most);
                (low || high).then(|| format!("it is not {}", self.wants()))
            }
            Self::Several { least, most, .. } => {
                let count = value.as_array().map_or(0, Vec::len) as u64;
                let wrong = count < *least || most.is_some_and(|most| count > most);
                wrong.then(|| format!("that is {count}{}", range(*least, *most, "of them")))
            }
            Self::YesOrNo | Self::One(_) => None,
        }
    }
}

impl Format {
    fn read(name: &str) -> Option<Self> {
        match name {
            "email" => Some(Self::Email),
            "uri" => Some(Self::Uri),
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            _ => None,
        }
    }

    fn fits(self, text: &str) -> bool {
        match self {
            Self::Email => text.split_once('@').is_some_and(|(name, host)| {
                let part = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
                part(name) && part(host) && !host.contains('@')
            }),
            Self::Uri => Url::parse(text).is_ok(),
            Self::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => text.parse::<jiff::Timestamp>().is_ok(),
        }
    }
}

/// A value as a person reads it.
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

/// The choices of a string schema, in any of the forms there have been: none if
/// it has no such keyword, and no field at all if it has a strange one.
fn choices(schema: &Map<String, Value>, titled: &str) -> Option<Option<Vec<Choice>>> {
    let choices: Vec<Choice> = if let Some(all) = schema.get(titled) {
        let choice = |choice: &Value| {
            Some(Choice {
                value: choice.get("const")?.as_str()?.to_owned(),
                title: choice.get("title").and_then(Value::as_str).map(shortened),
            })
        };
        all.as_array()?.iter().map(choice).collect::<Option<_>>()?
    } else if let Some(all) = schema.get("enum") {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        let choice = |(index, value): (usize, &Value)| {
            let title = titles.and_then(|titles| titles.get(index)?.as_str());
            Some(Choice {
                value: value.as_str()?.to_owned(),
                title: title.map(shortened),
            })
        };
        let all = all.as_array()?.iter().enumerate();
        all.map(choice).collect::<Option<_>>()?
    } else {
        return Some(None);
    };
    (!choices.is_empty() && choices.len() <= MAX_CHOICES).then_some(Some(choices))
}

/// The choice that a number, a value or a title means.
fn chosen<'c>(choices: &'c [Choice], typed: &str) -> Result<&'c str, String> {
    let typed = typed.trim();
    let numbered = typed
        .parse::<usize>()
        .ok()
        .and_then(|number| choices.get(number.checked_sub(1)?));
    let named = || {
        let is = |choice: &&Choice| choice.value == typed || choice.title.as_deref() == Some(typed);
        choices.iter().find(is)
    };
    match numbered.or_else(named) {
        Some(choice) => Ok(&choice.value),
        None => Err(format!("choose by a number from 1 to {}", choices.len())),
    }
}

fn range(least: u64, most: Option<u64>, what: &str) -> String {
    match (least, most) {
        (0, None) => String::new(),
        (least, None) => format!(", at least {least} {what}"),
        (0, Some(most)) => format!(", at most {most} {what}"),
        (least, Some(most)) => format!(", {least} to {most} {what}"),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_LABEL) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
