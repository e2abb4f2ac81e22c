//! One field of a form: what a server wants, and what a person types.

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
    /// The property's name for people.
    pub title: Option<String>,
    pub description: Option<String>,
    pub required: bool,
    /// The valid value of an empty line.
    pub default: Option<Value>,
    pub kind: Kind,
}

/// The kind of answer that a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Text {
        length: Bounds,
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
        count: Bounds,
    },
}

/// Bounds of a length or a count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    least: u64,
    most: Option<u64>,
}

/// A format of text that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Email,
    Uri,
    Date,
    DateTime,
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
        let schema = schema.as_object()?;
        let text = |key: &str| {
            let text = schema.get(key)?.as_str()?.trim();
            (!text.is_empty()).then(|| shortened(text))
        };
        let kind = Kind::read(schema)?;
        let default = schema.get("default").filter(|value| kind.accepts(value));
        Some(Self {
            name: name.to_owned(),
            title: text("title"),
            description: text("description"),
            required,
            default: default.cloned(),
            kind,
        })
    }

    /// The answer that the field takes, in words.
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

    /// The value of a line; `None` if the line leaves the field out.
    pub fn answer(&self, line: &str) -> Result<Option<Value>, String> {
        let typed = line.trim();
        if typed.is_empty() {
            return match &self.default {
                None if self.required => Err("it is required".to_owned()),
                default => Ok(default.clone()),
            };
        }
        if typed == "!none" {
            return match self.kind {
                Kind::Text { .. } | Kind::Several { .. } => self.kind.parse("").map(Some),
                _ if self.required => Err("it is required".to_owned()),
                _ => Ok(None),
            };
        }
        // `!!` stands for a `!` that begins a text.
        match typed.strip_prefix("!!") {
            Some(rest) => self.kind.parse(&format!("!{rest}")).map(Some),
            None => self.kind.parse(typed).map(Some),
        }
    }
}

impl Kind {
    fn read(schema: &Map<String, Value>) -> Option<Self> {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        match text("type")? {
            "string" => match choices(schema, "oneOf")? {
                Some(choices) => Some(Self::One(choices)),
                None => Some(Self::Text {
                    length: Bounds::read(schema, "minLength", "maxLength"),
                    format: text("format").and_then(Format::read),
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
                count: Bounds::read(schema, "minItems", "maxItems"),
            }),
            _ => None,
        }
    }

    fn wants(&self) -> String {
        match self {
            Self::Text { length, format } => {
                let what = match format {
                    None => "text",
                    Some(Format::Email) => "an e-mail address",
                    Some(Format::Uri) => "a URL",
                    Some(Format::Date) => "a date, such as 2026-07-28",
                    Some(Format::DateTime) => "a time, such as 2026-07-28T12:00:00Z",
                };
                format!("{what}{}", length.wants("characters"))
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
            Self::Several { count, .. } => {
                let count = count.wants("of them");
                format!("any of these, by number, with commas between{count}")
            }
        }
    }

    /// The choices that the field offers.
    pub fn choices(&self) -> &[Choice] {
        match self {
            Self::One(choices) | Self::Several { choices, .. } => choices,
            _ => &[],
        }
    }

    /// The value of a typed text.
    fn parse(&self, typed: &str) -> Result<Value, String> {
        let value = match self {
            Self::Text { .. } => Value::from(typed),
            Self::Number { integer: true, .. } => {
                let number = typed.parse::<i64>();
                number
                    .map_err(|_| "it is no whole number".to_owned())?
                    .into()
            }
            Self::Number { .. } => {
                let number = typed.parse().ok().and_then(Number::from_f64);
                number.ok_or_else(|| "it is no number".to_owned())?.into()
            }
            Self::YesOrNo => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => true.into(),
                "n" | "no" | "false" => false.into(),
                _ => return Err("answer y or n".to_owned()),
            },
            Self::One(choices) => chosen(choices, typed)?.into(),
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
        self.problem(&value).map_or(Ok(value), Err)
    }

    /// Whether a default is valid.
    fn accepts(&self, value: &Value) -> bool {
        let is_offered = |value: &Value| {
            let is_it = |choice: &Choice| value.as_str() == Some(&choice.value);
            self.choices().iter().any(is_it)
        };
        let is_of_type = match self {
            Self::Text { .. } => value.is_string(),
            Self::Number { integer, .. } => value.is_i64() || (!integer && value.is_number()),
            Self::YesOrNo => value.is_boolean(),
            Self::One(_) => is_offered(value),
            Self::Several { .. } => value
                .as_array()
                .is_some_and(|all| all.iter().all(is_offered)),
        };
        is_of_type && self.problem(value).is_none()
    }

    /// The problem with a value of the right type.
    fn problem(&self, value: &Value) -> Option<String> {
        let not_wanted = || format!("it is not {}", self.wants());
        match self {
            Self::Text { length, format } => {
                let text = value.as_str().unwrap_or_default();
                let count = text.chars().count() as u64;
                if !length.contains(count) {
                    return Some(format!(
                        "it has {count} characters{}",
                        length.wants("characters")
                    ));
                }
                let is_bad = format.is_some_and(|format| !format.fits(text));
                is_bad.then(not_wanted)
            }
            Self::Number { least, most, .. } => {
                let number = value.as_f64().unwrap_or_default();
                let is_low = least.is_some_and(|least| number < least);
                let is_high = most.is_some_and(|most| number > most);
                (is_low || is_high).then(not_wanted)
            }
            Self::Several { count, .. } => {
                let chosen = value.as_array().map_or(0, Vec::len) as u64;
                let is_bad = !count.contains(chosen);
                is_bad.then(|| format!("that is {chosen}{}", count.wants("of them")))
            }
            Self::YesOrNo | Self::One(_) => None,
        }
    }
}

impl Bounds {
    fn read(schema: &Map<String, Value>, least: &str, most: &str) -> Self {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        Self {
            least: count(least).unwrap_or(0),
            most: count(most),
        }
    }

    fn contains(self, count: u64) -> bool {
        count >= self.least && self.most.is_none_or(|most| count <= most)
    }

    fn wants(self, what: &str) -> String {
        match (self.least, self.most) {
            (0, None) => String::new(),
            (least, None) => format!(", at least {least} {what}"),
            (0, Some(most)) => format!(", at most {most} {what}"),
            (least, Some(most)) => format!(", {least} to {most} {what}"),
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
    let choices: Option<Vec<Choice>> = if let Some(all) = schema.get(titled) {
        let choice = |choice: &Value| {
            Some(Choice {
                value: choice.get("const")?.as_str()?.to_owned(),
                title: choice.get("title").and_then(Value::as_str).map(shortened),
            })
        };
        all.as_array()?.iter().map(choice).collect()
    } else if let Some(all) = schema.get("enum") {
        let choice = |(index, value): (usize, &Value)| {
            let title = names.and_then(|names| names.get(index)?.as_str());
            Some(Choice {
                value: value.as_str()?.to_owned(),
                title: title.map(shortened),
            })
        };
        all.as_array()?.iter().enumerate().map(choice).collect()
    } else {
        return Some(None);
    };
    let choices = choices.filter(|choices| (1..=MAX_CHOICES).contains(&choices.len()))?;
    Some(Some(choices))
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

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_LABEL) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
