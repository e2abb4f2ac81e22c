//! A server's form: a list of fields, each asked for in one line and checked against its schema.

use callgate::faces::Refusal;
use callgate_schema::{Author, Schema};
use callgate_text::{label, one_line, quoted};
use serde_json::{Map, Number, Value, json};

use super::{ask, choose, cut, show};
use crate::terminal::Conversation;

const MAX_FIELDS: usize = 50;
const MAX_CHOICES: usize = 200;
/// Characters shown of a title, a description or a problem.
const MAX_LABEL: usize = 200;
/// Characters shown of one answer before it is sent.
const MAX_REVIEWED: usize = 500;
/// Characters shown of a field's name in its prompt.
const MAX_PROMPT: usize = 40;
/// The draft in which formats are checked.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// Keywords that limit an answer, and their words.
const LIMITS: [(&str, &str, &str); 6] = [
    ("minLength", "at least", " characters"),
    ("maxLength", "at most", " characters"),
    ("minimum", "at least", ""),
    ("maximum", "at most", ""),
    ("minItems", "at least", " of them"),
    ("maxItems", "at most", " of them"),
];

/// Asks field by field, shows all answers, and returns them if the person agrees.
pub async fn answer(
    conversation: &mut Conversation,
    server: &str,
    message: &str,
    params: &Value,
) -> Result<Value, Refusal> {
    let fields = fields(&params["requestedSchema"]).map_err(Refusal::Failed)?;
    let text = format!(
        "\n┌ Server {server:?} asks you:\n{message}├ Your answers go to that server: type no \
         passwords and no keys.\n├ An empty line takes the default or skips the field; !no \
         declines, !cancel cancels.\n",
    );
    show(conversation, &text).await?;
    loop {
        let mut content = Map::new();
        for field in &fields {
            if let Some(value) = field.ask(conversation).await? {
                content.insert(field.name.to_owned(), value);
            }
        }
        let text = review(&content, conversation.columns());
        show(conversation, &text).await?;
        let prompt = "└ send this? [y] send  [e] edit  [n] decline: ";
        let read = |typed: &str| match typed {
            "y" | "yes" => Some(true),
            "e" => Some(false),
            _ => None,
        };
        if choose(conversation, prompt, &["y", "e", "n"], read).await? {
            return Ok(json!({ "action": "accept", "content": content }));
        }
    }
}

/// The answers as the server gets them.
fn review(content: &Map<String, Value>, columns: Option<usize>) -> String {
    if content.is_empty() {
        return "\n├ The server gets no data, only your consent.\n".to_owned();
    }
    let answers = content.iter().map(|(name, value)| {
        let value = one_line(&plain(value), MAX_REVIEWED);
        format!("{}: {value}\n", one_line(name, usize::MAX))
    });
    let answers = quoted(&answers.collect::<String>(), columns);
    format!("\n├ The server gets this:\n{answers}")
}

/// The fields of a form, without optional fields that cannot be filled in here.
fn fields(schema: &Value) -> Result<Vec<Field<'_>>, String> {
    let properties = schema["properties"].as_object();
    if properties.is_some_and(|all| all.len() > MAX_FIELDS) {
        return Err(format!("the form has more than {MAX_FIELDS} fields"));
    }
    let properties = properties.into_iter().flatten();
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let fields = properties.filter_map(|(name, property)| {
        Field::read(name, property, required.contains(&name.as_str()))
    });
    let fields: Vec<Field<'_>> = fields.collect();
    let is_missing = |name: &&&str| !fields.iter().any(|field| field.name == **name);
    if let Some(name) = required.iter().find(is_missing) {
        return Err(format!(
            "the form requires {name:?}, which cannot be filled in here"
        ));
    }
    Ok(fields)
}

/// A property of a form's schema.
#[derive(Debug)]
struct Field<'a> {
    name: &'a str,
    property: &'a Value,
    /// The property, compiled.
    schema: Schema,
    is_required: bool,
    choices: Vec<Choice<'a>>,
}

#[derive(Debug)]
struct Choice<'a> {
    value: &'a str,
    title: Option<&'a str>,
}

impl<'a> Field<'a> {
    /// Reads a property; `None` if it cannot be filled in here.
    fn read(name: &'a str, property: &'a Value, is_required: bool) -> Option<Self> {
        let choices = match property.get("type")?.as_str()? {
            "string" => choices(property, "oneOf")?,
            "array" => choices(property.get("items")?, "anyOf")?,
            "integer" | "number" | "boolean" => Vec::new(),
            _ => return None,
        };
        if property["type"] == "array" && choices.is_empty() {
            return None;
        }
        let mut schema = property.clone();
        schema["$schema"] = DRAFT.into();
        Some(Self {
            name,
            property,
            schema: Schema::new(schema, Author::Script).ok()?,
            is_required,
            choices,
        })
    }

    /// Asks until the answer is valid; `None` if the field is skipped.
    async fn ask(&self, conversation: &mut Conversation) -> Result<Option<Value>, Refusal> {
        let columns = conversation.columns();
        show(conversation, &self.head(columns)).await?;
        let prompt = format!("├ {:?}: ", label(self.name, MAX_PROMPT));
        loop {
            let line = ask(conversation, &prompt).await?;
            match self.answer(&line) {
                Ok(value) => return Ok(value),
                Err(problem) => show(conversation, &quoted(&problem, columns)).await?,
            }
        }
    }

    /// The text before the field's prompt.
    fn head(&self, columns: Option<usize>) -> String {
        let mut text = String::new();
        for key in ["title", "description"] {
            if let Some(words) = self.property[key].as_str() {
                text += &format!("{}\n", cut(words.trim(), MAX_LABEL));
            }
        }
        for (index, Choice { value, title }) in self.choices.iter().enumerate() {
            let choice = match title {
                Some(title) => format!("{} ({value})", cut(title, MAX_LABEL)),
                None => (*value).to_owned(),
            };
            text += &format!("{}) {}\n", index + 1, one_line(&choice, usize::MAX));
        }
        text += &format!("({}", self.wants());
        if !self.is_required {
            text += ", optional";
        }
        if let Some(default) = self.default() {
            text += &format!(", default {}", one_line(&plain(default), usize::MAX));
        }
        format!("\n{}", quoted(&format!("{text})"), columns))
    }

    /// The expected answer in words.
    fn wants(&self) -> String {
        let text = |key: &str| self.property[key].as_str().unwrap_or_default();
        let kind = match (text("type"), text("format")) {
            ("array", _) => "any of these, by number, separated by commas",
            _ if !self.choices.is_empty() => "one of these, by number",
            ("integer", _) => "a whole number",
            ("number", _) => "a number",
            ("boolean", _) => "y or n",
            (_, "email") => "an e-mail address",
            (_, "uri") => "a URL",
            (_, "date") => "a date, such as 2026-07-28",
            (_, "date-time") => "a time, such as 2026-07-28T12:00:00Z",
            _ => "text",
        };
        let limits = LIMITS.iter().filter_map(|(key, words, unit)| {
            let limit = self.property.get(key).filter(|limit| limit.is_number())?;
            Some(format!(", {words} {limit}{unit}"))
        });
        format!("{kind}{}", limits.collect::<String>())
    }

    /// The value that an empty line stands for, if it is valid.
    fn default(&self) -> Option<&Value> {
        let default = self.property.get("default");
        default.filter(|value| self.problem(value).is_none())
    }

    /// The value of a typed line; `None` if the field is skipped.
    fn answer(&self, line: &str) -> Result<Option<Value>, String> {
        let typed = line.trim();
        if typed.is_empty() {
            let default = self.default();
            if self.is_required && default.is_none() {
                return Err("an answer is required".to_owned());
            }
            return Ok(default.cloned());
        }
        let value = self.parse(typed);
        let value = value.ok_or_else(|| format!("the answer must be {}", self.wants()))?;
        self.problem(&value).map_or(Ok(Some(value)), Err)
    }

    fn parse(&self, typed: &str) -> Option<Value> {
        match self.property["type"].as_str()? {
            "integer" | "number" => Some(typed.parse::<Number>().ok()?.into()),
            "boolean" => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            "array" => {
                let mut values = Vec::new();
                for typed in typed.split(',').filter(|typed| !typed.trim().is_empty()) {
                    let value = self.choice(typed.trim())?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Some(json!(values))
            }
            _ if self.choices.is_empty() => Some(typed.into()),
            _ => Some(self.choice(typed)?.into()),
        }
    }

    /// The choice with this number, value or title.
    fn choice(&self, typed: &str) -> Option<&str> {
        let number = typed.parse::<usize>().ok();
        let numbered = number.and_then(|number| self.choices.get(number.checked_sub(1)?));
        let is_named = |choice: &&Choice<'_>| choice.value == typed || choice.title == Some(typed);
        let choice = numbered.or_else(|| self.choices.iter().find(is_named))?;
        Some(choice.value)
    }

    fn problem(&self, value: &Value) -> Option<String> {
        let problems = self.schema.problems(value, value.to_string().len(), 1);
        let problem = problems.first()?.trim_start_matches("the value: ");
        Some(one_line(problem, MAX_LABEL))
    }
}

/// The choices that a string schema lists under this keyword or under `enum`: empty without
/// either, `None` if the list is malformed.
fn choices<'a>(schema: &'a Value, keyword: &str) -> Option<Vec<Choice<'a>>> {
    let Some(all) = schema.get(keyword).or_else(|| schema.get("enum")) else {
        return Some(Vec::new());
    };
    let choices = all.as_array()?.iter().enumerate().map(|(index, choice)| {
        let title = choice.get("title").unwrap_or(&schema["enumNames"][index]);
        Some(Choice {
            value: choice.get("const").unwrap_or(choice).as_str()?,
            title: title.as_str(),
        })
    });
    let choices: Vec<Choice<'_>> = choices.collect::<Option<_>>()?;
    let is_allowed = (1..=MAX_CHOICES).contains(&choices.len());
    is_allowed.then_some(choices)
}

/// A value in words.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
