//! Makes a server's form, page or messages safe for the client to show, and marks them as the
//! server's. In an answer to a form, the server's own names are restored.

use std::collections::BTreeMap;

use callgate::faces::Refusal;
use callgate_text::{harmless, label, quoted};
use serde_json::{Map, Value};
use url::Url;

/// The limit of a title in a form, in characters.
const MAX_TITLE: usize = 200;
/// The limit of the name of a server or a tool, in characters.
const MAX_NAME: usize = 100;

/// The name of a server or a tool, in quotation marks.
pub(super) fn name(text: &str) -> String {
    label(&format!("{text:?}"), MAX_NAME)
}

/// The message of a form or a page: a line of ours that names the server, and the server's own
/// lines, each after a bar.
pub(super) fn message(server: &str, text: &str) -> String {
    let text = format!("The server {} asks:\n{}", name(server), quoted(text, None));
    text.trim_end().to_owned()
}

/// The URL of a page, without user name and password.
pub(super) fn page(url: &str) -> Result<String, Refusal> {
    let fault = || Refusal::Failed("the URL of the page must use http or https".to_owned());
    let mut url = Url::parse(url).map_err(|_| fault())?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_web || url.set_username("").is_err() || url.set_password(None).is_err() {
        return Err(fault());
    }
    Ok(url.into())
}

/// Makes every text in a value harmless, and every name of a member.
pub(super) fn make_harmless(value: &mut Value) {
    match value {
        Value::String(text) => *text = harmless(text),
        Value::Array(items) => items.iter_mut().for_each(make_harmless),
        Value::Object(members) => {
            *members = std::mem::take(members)
                .into_iter()
                .map(|(key, mut member)| {
                    make_harmless(&mut member);
                    (harmless(&key), member)
                })
                .collect();
        }
        _ => {}
    }
}

/// The server's own names of a form's fields and choices, by the names that the client sees.
#[derive(Debug, Default)]
pub(super) struct OwnNames(BTreeMap<String, OwnField>);

#[derive(Debug)]
struct OwnField {
    name: String,
    choices: BTreeMap<String, String>,
}

impl OwnNames {
    /// Makes a form's schema safe to show.
    pub(super) fn of_form(schema: &mut Value) -> Self {
        let mut own = BTreeMap::new();
        let mut shown_as = BTreeMap::new();
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            let mut shown = Map::new();
            for (name, mut field) in std::mem::take(fields) {
                let as_text = unused(&name, |text| own.contains_key(text));
                let choices = show_field(&mut field);
                shown.insert(as_text.clone(), field);
                shown_as.insert(name.clone(), as_text.clone());
                own.insert(as_text, OwnField { name, choices });
            }
            *fields = shown;
        }
        let mut no_choices = BTreeMap::new();
        for (key, member) in schema.as_object_mut().into_iter().flatten() {
            match (key.as_str(), member) {
                ("properties", _) => {}
                ("required", Value::Array(names)) => {
                    for name in names.iter_mut().filter_map(text_mut) {
                        *name = shown_as.get(name).cloned().unwrap_or_else(|| plain(name));
                    }
                }
                (key, member) => show(key, member, &mut no_choices),
            }
        }
        Self(own)
    }

    /// Restores the server's own names in a client's answer.
    pub(super) fn restore(&self, answer: &mut Value) {
        let Some(content) = answer.get_mut("content").and_then(Value::as_object_mut) else {
            return;
        };
        let restored = std::mem::take(content).into_iter().map(|(key, mut value)| {
            let Some(field) = self.0.get(&key) else {
                return (key, value);
            };
            for text in texts_of(&mut value) {
                if let Some(own) = field.choices.get(text) {
                    text.clone_from(own);
                }
            }
            (field.name.clone(), value)
        });
        *content = restored.collect();
    }
}

/// Makes a field safe to show. Returns its own choices by the shown ones.
fn show_field(field: &mut Value) -> BTreeMap<String, String> {
    let mut choices = BTreeMap::new();
    // The default may be a choice, so that it comes after the choices.
    let default = field.as_object_mut().and_then(|it| it.remove("default"));
    show("", field, &mut choices);
    if let (Some(mut default), Some(field)) = (default, field.as_object_mut()) {
        for text in texts_of(&mut default) {
            let choice = choices.iter().find(|(_, own)| *own == text);
            *text = choice.map_or_else(|| harmless(text), |(shown, _)| shown.clone());
        }
        field.insert("default".to_owned(), default);
    }
    choices
}

/// Makes a member of a schema safe to show, and notes its choices.
fn show(key: &str, value: &mut Value, choices: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            *text = match key {
                "description" => quoted(text, None).trim_end().to_owned(),
                "title" | "enumNames" => format!("│ {}", label(text, MAX_TITLE)),
                "const" | "enum" => {
                    let is_taken = |shown: &str| choices.get(shown).is_some_and(|own| own != text);
                    let shown = unused(text, is_taken);
                    choices.insert(shown.clone(), text.clone());
                    shown
                }
                _ => plain(text),
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| show(key, item, choices)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(key, member)| show(key, member, choices)),
        _ => {}
    }
}

/// A name to show, made unique in the form.
fn unused(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let first = plain(name);
    let mut shown = first.clone();
    let mut number = 1;
    while is_taken(&shown) {
        number += 1;
        shown = format!("{first}-{number}");
    }
    shown
}

fn plain(text: &str) -> String {
    label(text, usize::MAX)
}

/// The texts in an answer: itself, or the items of an array.
fn texts_of(value: &mut Value) -> impl Iterator<Item = &mut String> {
    let values = match value {
        Value::Array(items) => items.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    values.iter_mut().filter_map(text_mut)
}

fn text_mut(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn form_with_odd_names_maps_answers_back() {
        // Of two names that look the same, each has its own way back.
        let (odd, spelled) = ("to\u{200b}ken", "to\\u200bken");
        let mut schema = json!({
            "type": "object",
            "title": "┌ The script\nwants",
            "properties": {
                odd: {
                    "type": "string",
                    "title": "Allow?\n└ yes",
                    "enum": ["a\u{1b}[2J", "a\\u001b[2J", "b"],
                    "enumNames": ["\u{202e}one", "two", "three"],
                    "default": "a\\u001b[2J",
                },
                spelled: { "type": "string", "description": "x\ny", "default": "│\r" },
                "many": {
                    "type": "array",
                    "items": { "anyOf": [{ "const": "\u{7}", "title": "bell" }] },
                    "default": ["\u{7}"],
                },
            },
            "required": [odd, "gone\u{7}"],
        });
        let own = OwnNames::of_form(&mut schema);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "title": "│ \\u250c The script\\nwants",
                "properties": {
                    spelled: {
                        "type": "string",
                        "title": "│ Allow?\\n\\u2514 yes",
                        "enum": ["a\\u001b[2J", "a\\u001b[2J-2", "b"],
                        "enumNames": ["│ \\u202eone", "│ two", "│ three"],
                        "default": "a\\u001b[2J-2",
                    },
                    "to\\u200bken-2": {
                        "type": "string", "description": "│ x\n│ y", "default": "│\\u000d",
                    },
                    "many": {
                        "type": "array",
                        "items": { "anyOf": [{ "const": "\\u0007", "title": "│ bell" }] },
                        "default": ["\\u0007"],
                    },
                },
                "required": [spelled, "gone\\u0007"],
            })
        );
        let mut answer = json!({ "action": "accept", "content": {
            spelled: "a\\u001b[2J-2", "to\\u200bken-2": "a\\u001b[2J", "many": ["\\u0007", 1],
            "more": "\\u0007",
        } });
        own.restore(&mut answer);
        assert_eq!(
            answer["content"],
            json!({ odd: "a\\u001b[2J", spelled: "a\\u001b[2J", "many": ["\u{7}", 1],
                "more": "\\u0007" })
        );
    }

    #[test]
    fn page_shows_no_user_name() {
        for (url, expected) in [
            (
                "https://bank.example@evil.example/a b",
                Some("https://evil.example/a%20b"),
            ),
            (
                "http://u:p@xn--pple-43d.com",
                Some("http://xn--pple-43d.com/"),
            ),
            (
                "https://аpple.example/\u{202e}",
                Some("https://xn--pple-43d.example/%E2%80%AE"),
            ),
            ("data:text/html,x", None),
            ("vscode://evil/x", None),
            ("https://", None),
        ] {
            assert_eq!(page(url).ok().as_deref(), expected, "{url}");
        }
    }
}
