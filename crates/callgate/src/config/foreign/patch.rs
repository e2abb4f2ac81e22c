//! Adds the entry of a server to another client's file, and keeps the rest of the file.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value, json};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, Value as Toml};

use super::error::ForeignError;
use super::read::{document, is_toml, value};

/// The way in which a client turns a server off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffSwitch {
    /// A member of the server's entry, and its value.
    Member(&'static str, bool),
    /// A list of names in JSON, and the keys that lead to it.
    List(&'static [&'static str]),
}

/// Sets the entry `name` among the servers under `key` in the text of a file, and keeps the rest.
/// If the entry has its name as a member, the servers are in a list.
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
    let patched = if !is_toml(file) {
        with_member(body, key, name, entry)?
    } else if entry.contains_key("name") {
        with_element(body, key, name, entry)?
    } else {
        with_table(body, key, name, entry)?
    };
    let mut entry = entry.clone();
    entry.remove("name");
    let entry = Value::Object(entry);
    let mut expected = value(file, body)?;
    if expected[key][name] == entry {
        return Ok(text.to_owned());
    }
    expected[key][name] = entry;
    checked(file, text, &patched, &expected)
}

/// Turns servers under `key` off in the text of a file, and keeps the rest.
///
/// # Errors
///
/// A [`ForeignError`] if the text is malformed, if one of the servers is not in it, or if another
/// value would change.
pub fn turn_off(
    file: &Path,
    text: &str,
    key: &str,
    switch: OffSwitch,
    names: &[String],
) -> Result<String, ForeignError> {
    let body = text.trim_start_matches('\u{feff}');
    let mut expected = value(file, body)?;
    let patched = match switch {
        OffSwitch::Member(member, off) => {
            let patched = if is_toml(file) {
                with_toml_members(body, key, names, member, off)?
            } else {
                with_json_members(body, key, names, member, off)?
            };
            for name in names {
                expected[key][name][member] = off.into();
            }
            patched
        }
        OffSwitch::List(keys) => {
            let list = keys.iter().fold(&expected, |it, key| &it[*key]);
            let is_missing = |name: &&String| !list.as_array().is_some_and(|it| has(it, name));
            let missing: Vec<String> = names.iter().filter(is_missing).cloned().collect();
            if missing.is_empty() {
                return Ok(text.to_owned());
            }
            let patched = with_names(body, keys, &missing)?;
            let list = keys.iter().fold(&mut expected, |it, key| &mut it[*key]);
            if list.is_null() {
                *list = json!([]);
            }
            if let Value::Array(list) = list {
                list.extend(missing.into_iter().map(Value::from));
            }
            patched
        }
    };
    checked(file, text, &patched, &expected)
}

/// The new text, if it has the expected values. The marks at the start of the old text stay.
fn checked(
    file: &Path,
    text: &str,
    patched: &str,
    expected: &Value,
) -> Result<String, ForeignError> {
    if value(file, patched)? != *expected {
        let message = "another value would change; change the file by hand";
        return Err(ForeignError(message.to_owned()));
    }
    let body = text.trim_start_matches('\u{feff}');
    let marks = text.strip_suffix(body).unwrap_or_default();
    Ok(format!("{marks}{patched}"))
}

/// The root and the object in it. An empty text has an empty object.
fn opened(body: &str) -> Result<(CstRootNode, CstObject), ForeignError> {
    let text = if body.trim().is_empty() { "{}\n" } else { body };
    let root = CstRootNode::parse(text, &ParseOptions::default());
    let root = root.map_err(|error| ForeignError(error.to_string()))?;
    let top = root.object_value();
    let top = top.ok_or_else(|| ForeignError("its content is not an object".to_owned()))?;
    Ok((root, top))
}

/// The object under a key, which is made if the key is not there.
fn object(parent: &CstObject, key: &str) -> Result<CstObject, ForeignError> {
    match property(parent, key)? {
        Some(found) => found
            .object_value()
            .ok_or_else(|| ForeignError(format!("its {key:?} is not an object"))),
        None => Ok(parent.object_value_or_set(key)),
    }
}

fn with_member(
    body: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, ForeignError> {
    let (root, top) = opened(body)?;
    let is_new = top.properties().is_empty();
    let servers = object(&top, key)?;
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

fn with_json_members(
    body: &str,
    key: &str,
    names: &[String],
    member: &str,
    value: bool,
) -> Result<String, ForeignError> {
    let (root, top) = opened(body)?;
    let servers = object(&top, key)?;
    for name in names {
        let entry = property(&servers, name)?.and_then(|found| found.object_value());
        let entry = entry.ok_or_else(|| absent(name))?;
        match property(&entry, member)? {
            Some(found) => found.set_value(value.into()),
            None => drop(entry.append(member, value.into())),
        }
    }
    Ok(root.to_string())
}

/// Adds names to the list under these keys.
fn with_names(body: &str, keys: &[&str], names: &[String]) -> Result<String, ForeignError> {
    let (root, top) = opened(body)?;
    let is_new = top.properties().is_empty();
    let mut parent = top.clone();
    let (last, path) = keys.split_last().unwrap_or((&"", &[]));
    for key in path {
        parent = object(&parent, key)?;
    }
    let list = match property(&parent, last)? {
        Some(found) => found
            .array_value()
            .ok_or_else(|| ForeignError(format!("its {last:?} is not a list")))?,
        None => parent.array_value_or_set(last),
    };
    for name in names {
        list.append(name.clone().into());
    }
    if is_new {
        top.ensure_multiline();
    }
    Ok(root.to_string())
}

fn has(list: &[Value], name: &str) -> bool {
    list.iter().any(|it| it == name)
}

fn absent(name: &str) -> ForeignError {
    ForeignError(format!("the server {name:?} is not in it"))
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

/// The document, and a text that goes before it: a text of comments alone would come after tables.
fn tables(body: &str) -> Result<(String, DocumentMut), ForeignError> {
    let document = document(body)?;
    if !document.is_empty() {
        return Ok((String::new(), document));
    }
    let mut before = body.to_owned();
    if !before.is_empty() && !before.ends_with('\n') {
        before.push('\n');
    }
    Ok((before, DocumentMut::new()))
}

/// The table of an entry, in the place and with the comment of an earlier one.
fn table(entry: &Map<String, Value>, now: Option<&Table>) -> Result<Table, ForeignError> {
    let mut table = Table::new();
    if let Some(now) = now.filter(|now| !now.is_dotted()) {
        // The comment above the table stays.
        *table.decor_mut() = now.decor().clone();
        table.set_position(now.position());
    }
    for (key, value) in entry {
        // Texts, lists of texts and booleans are written as in JSON.
        let value = value.to_string().parse::<Toml>();
        let value = value.map_err(|error| ForeignError(error.message().to_owned()))?;
        table.insert(key, value.into());
    }
    Ok(table)
}

fn with_table(
    body: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, ForeignError> {
    let (before, mut document) = tables(body)?;
    let servers = document.entry(key).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        servers.into()
    });
    let servers = servers.as_table_like_mut();
    let servers = servers.ok_or_else(|| ForeignError(format!("its {key:?} is not a table")))?;
    let table = table(entry, servers.get(name).and_then(Item::as_table))?;
    servers.insert(name, table.into());
    Ok(format!("{before}{document}"))
}

/// Sets an element of a list of servers.
fn with_element(
    body: &str,
    key: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, ForeignError> {
    let (before, mut document) = tables(body)?;
    let servers = document.entry(key);
    let servers = servers.or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    if let Some(servers) = servers.as_array_of_tables_mut() {
        let at = servers.iter().position(|it| has_name(it, name));
        match at {
            Some(at) => {
                let table = table(entry, servers.get(at))?;
                servers.replace(at, table);
            }
            None => servers.push(table(entry, None)?),
        }
    } else if let Some(servers) = servers.as_array_mut() {
        let is_other = |it: &Toml| it.as_inline_table().is_none_or(|it| !has_name(it, name));
        servers.retain(is_other);
        servers.push(table(entry, None)?.into_inline_table());
    } else {
        return Err(ForeignError(format!("its {key:?} is not a list")));
    }
    Ok(format!("{before}{document}"))
}

fn has_name(entry: &dyn TableLike, name: &str) -> bool {
    entry.get("name").and_then(Item::as_str) == Some(name)
}

fn with_toml_members(
    body: &str,
    key: &str,
    names: &[String],
    member: &str,
    value: bool,
) -> Result<String, ForeignError> {
    let mut document = document(body)?;
    let servers = document.get_mut(key);
    let servers = servers.ok_or_else(|| ForeignError(format!("it has no {key:?}")))?;
    for name in names {
        let entry: Option<&mut dyn TableLike> = match &mut *servers {
            Item::ArrayOfTables(list) => {
                let entry = list.iter_mut().find(|it| has_name(&**it, name));
                entry.map(|entry| entry as &mut dyn TableLike)
            }
            servers => {
                let servers = servers.as_table_like_mut();
                let entry = servers.and_then(|servers| servers.get_mut(name));
                entry.and_then(Item::as_table_like_mut)
            }
        };
        let entry = entry.ok_or_else(|| absent(name))?;
        entry.insert(member, toml_edit::value(value));
    }
    Ok(document.to_string())
}
