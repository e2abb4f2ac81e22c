//! Adds the entry of a server to another client's file, and keeps the rest of the file.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Table};

use super::read::{ForeignError, document, is_toml, value};

/// Sets the entry `name` among the servers under `key` in the text of a file, and keeps the rest.
///
/// # Errors
///
/// A [`ForeignError`] if the text is malformed, if it has no room for the entry, or if another
/// value would change.
pub fn patch(
    file: &Path,
    text: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, ForeignError> {
    let body = text.trim_start_matches('\u{feff}');
    let patched = if is_toml(file) {
        with_table(body, key, name, entry)?
    } else {
        with_member(body, key, name, entry)?
    };
    let entry = Value::Object(entry.clone());
    let mut expected = value(file, body)?;
    if expected[key][name] == entry {
        return Ok(text.to_owned());
    }
    expected[key][name] = entry;
    if value(file, &patched)? != expected {
        return Err(ForeignError(format!(
            "another value would change; write the entry {name:?} under {key:?} by hand"
        )));
    }
    let marks = text.strip_suffix(body).unwrap_or_default();
    Ok(format!("{marks}{patched}"))
}

fn with_member(
    body: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, ForeignError> {
    let text = if body.trim().is_empty() { "{}\n" } else { body };
    let root = CstRootNode::parse(text, &ParseOptions::default());
    let root = root.map_err(|error| ForeignError(error.to_string()))?;
    let no_object = |what: String| ForeignError(format!("{what} is not an object"));
    let top = root.object_value();
    let top = top.ok_or_else(|| no_object("its content".to_owned()))?;
    let is_new = top.properties().is_empty();
    let servers = match property(&top, key)? {
        Some(found) => found
            .object_value()
            .ok_or_else(|| no_object(format!("its {key:?}")))?,
        None => top.object_value_or_set(key),
    };
    let members = entry.iter().map(|(key, value)| (key.clone(), cst(value)));
    let entry = CstInputValue::Object(members.collect());
    match property(&servers, name)? {
        Some(found) => found.set_value(entry),
        None => drop(servers.append(name, entry)),
    }
    if is_new {
        top.ensure_multiline();
        servers.ensure_multiline();
    }
    Ok(root.to_string())
}

/// The member with this name. Of two, clients use one, and programs disagree about which.
fn property(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, ForeignError> {
    let mut found = object.properties();
    found.retain(|it| it.decoded_name().as_deref() == Some(name));
    if found.len() > 1 {
        let message = format!("key {name:?} is there twice; remove one");
        return Err(ForeignError(message));
    }
    Ok(found.pop())
}

fn cst(value: &Value) -> CstInputValue {
    match value {
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(array) => CstInputValue::Array(array.iter().map(cst).collect()),
        // The text of a number is written as it is.
        other => CstInputValue::Number(other.to_string()),
    }
}

fn with_table(
    body: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, ForeignError> {
    let mut document = document(body)?;
    let mut before = String::new();
    if document.is_empty() {
        // A text of comments alone would come after the table.
        (before, document) = (body.to_owned(), DocumentMut::new());
        if !before.is_empty() && !before.ends_with('\n') {
            before.push('\n');
        }
    }
    let servers = document.entry(key).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        servers.into()
    });
    let servers = servers.as_table_like_mut();
    let servers = servers.ok_or_else(|| ForeignError(format!("its {key:?} is not a table")))?;
    let mut table = Table::new();
    let now = servers.get(name).and_then(|it| it.as_table());
    if let Some(now) = now.filter(|now| !now.is_dotted()) {
        // The comment above the table stays.
        *table.decor_mut() = now.decor().clone();
        table.set_position(now.position());
    }
    for (key, value) in entry {
        // Texts and lists of texts are written as in JSON.
        let value = value.to_string().parse::<toml_edit::Value>();
        let value = value.map_err(|error| ForeignError(error.message().to_owned()))?;
        table.insert(key, value.into());
    }
    servers.insert(name, table.into());
    Ok(format!("{before}{document}"))
}
