//! Reads the servers in another client's file.

use std::borrow::Cow;
use std::path::Path;

use jsonc_parser::ast::{ObjectProp, Value as Ast};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, TomlError, Value as Toml};

use super::{ServerLists, adopt_entry, all, is_boolean, is_null, is_off_switch, members, texts};

/// The reason why a client's file cannot be read or changed. It holds no value of the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ForeignError(pub(super) String);

/// A server in another client's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignServer {
    /// Its name.
    pub name: String,
    /// Its entry, with Callgate's keys where it has some.
    pub entry: Map<String, Value>,
    /// True if the client does not use it.
    pub is_off: bool,
}

/// Settings in a file: those at its top, or those of one project.
#[derive(Default)]
pub struct Section {
    /// The folder of the project, if the settings are for a project other than the one read for.
    pub project: Option<String>,
    /// The servers.
    pub servers: Vec<ForeignServer>,
    /// `enabledMcpjsonServers` of Claude Code: the approved servers of `.mcp.json`.
    pub approved: Vec<String>,
    /// `enableAllProjectMcpServers` of Claude Code.
    pub approves_all: bool,
    lists: ServerLists,
}

impl Section {
    /// True if lists in the settings turn this server off.
    pub fn is_off(&self, server: &str) -> bool {
        self.lists.is_off(server)
    }
}

/// Reads the text of a file, in TOML or JSON with comments, whose servers are under `key`.
///
/// The settings for `project` come first, then those at the top of the file, and last those for
/// other projects.
///
/// # Errors
///
/// A [`ForeignError`] if the text is malformed.
pub fn read(
    file: &Path,
    text: &str,
    key: &str,
    project: &Path,
) -> Result<Vec<Section>, ForeignError> {
    let json = json(file, text)?;
    let Some(root) = parse(&json)? else {
        return Ok(Vec::new());
    };
    let projects = all(&root, "projects").into_iter().flat_map(members);
    let (these, others): (Vec<_>, Vec<_>) =
        projects.partition(|it| project.starts_with(it.name.as_str()));
    let these = these.into_iter().map(|it| section(&it.value, key));
    let mut sections: Vec<Section> = these.chain([section(&root, key)]).collect();
    sections.extend(others.into_iter().map(|other| Section {
        project: Some(other.name.as_str().to_owned()),
        ..section(&other.value, key)
    }));
    Ok(sections)
}

/// The contents of a file as JSON.
///
/// # Errors
///
/// A [`ForeignError`] if the text is malformed.
pub fn value(file: &Path, text: &str) -> Result<Value, ForeignError> {
    let json = json(file, text)?;
    Ok(parse(&json)?.map(Value::from).unwrap_or_default())
}

fn section(settings: &Ast<'_>, key: &str) -> Section {
    let mut section = Section::default();
    for member in members(settings) {
        section.lists.add(member);
    }
    let approved = last(settings, "enabledMcpjsonServers");
    section.approved = approved.map(texts).unwrap_or_default();
    let approves_all = last(settings, "enableAllProjectMcpServers");
    section.approves_all = approves_all.is_some_and(|it| is_boolean(it, true));
    let of_editor = last(settings, "mcp").and_then(|mcp| last(mcp, "servers"));
    let servers = [last(settings, key), of_editor].into_iter().flatten();
    for server in servers.flat_map(members).filter_map(server) {
        section
            .servers
            .retain(|earlier| earlier.name != server.name);
        section.servers.push(server);
    }
    section
}

/// The server of a member. `None` if the member is something else.
fn server(member: &ObjectProp<'_>) -> Option<ForeignServer> {
    let Ast::Object(entry) = &member.value else {
        return None;
    };
    // Zed has the settings of its extensions there, too.
    let source = entry.get_string("source");
    if source.is_some_and(|source| source.value == "extension") {
        return None;
    }
    let mut entry = entry.clone();
    // A value that is not a boolean does not keep the server on.
    let is_switched_off = |member: &ObjectProp<'_>| {
        let is_false = is_boolean(&member.value, false) || is_null(&member.value);
        is_off_switch(&member.name.as_str().to_ascii_lowercase()) && !is_false
    };
    let is_off = adopt_entry(&mut entry) || entry.properties.iter().any(is_switched_off);
    let members = entry.properties.into_iter();
    let members = members.map(|it| (it.name.into_string(), it.value.into()));
    Some(ForeignServer {
        name: member.name.as_str().to_owned(),
        entry: members.collect(),
        is_off,
    })
}

/// The value of the last member with this name, which is the one that clients use.
fn last<'v, 'a>(object: &'v Ast<'a>, name: &str) -> Option<&'v Ast<'a>> {
    all(object, name).pop()
}

fn parse(json: &str) -> Result<Option<Ast<'_>>, ForeignError> {
    let parsed = parse_to_ast(json, &CollectOptions::default(), &ParseOptions::default());
    let parsed = parsed.map_err(|error| ForeignError(error.to_string()))?;
    Ok(parsed.value)
}

/// The text as JSON.
fn json<'t>(file: &Path, text: &'t str) -> Result<Cow<'t, str>, ForeignError> {
    let text = text.trim_start_matches('\u{feff}');
    if is_toml(file) {
        return Ok(Cow::Owned(of_toml(document(text)?.as_item()).to_string()));
    }
    Ok(Cow::Borrowed(text))
}

pub(super) fn is_toml(file: &Path) -> bool {
    file.extension().is_some_and(|it| it == "toml")
}

pub(super) fn document(text: &str) -> Result<DocumentMut, ForeignError> {
    text.parse().map_err(|error: TomlError| {
        // The text of the error would quote the line, which may hold a secret.
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.unwrap_or_default().matches('\n').count() + 1;
        ForeignError(format!("{} on line {line}", error.message()))
    })
}

/// A TOML value as JSON.
fn of_toml(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        let members = table
            .iter()
            .map(|(key, item)| (key.to_owned(), of_toml(item)));
        return Value::Object(members.collect());
    }
    if let Some(tables) = item.as_array_of_tables() {
        let tables = tables.iter().map(|table| Item::Table(table.clone()));
        return tables.map(|table| of_toml(&table)).collect();
    }
    let of_value = |value: &Toml| of_toml(&Item::Value(value.clone()));
    match item.as_value() {
        Some(Toml::String(text)) => text.value().as_str().into(),
        Some(Toml::Integer(number)) => (*number.value()).into(),
        Some(Toml::Float(number)) => (*number.value()).into(),
        Some(Toml::Boolean(boolean)) => (*boolean.value()).into(),
        Some(Toml::Datetime(time)) => time.value().to_string().into(),
        Some(Toml::Array(array)) => array.iter().map(of_value).collect(),
        _ => Value::Null,
    }
}
