//! Reads the servers in another client's file.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use jsonc_parser::ast::{Object, ObjectProp, Value as Ast};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, TomlError, Value as Toml};

use super::error::ForeignError;
use super::listed::{named, yaml};
use super::{
    ServerLists, adopt_entry, all, is_boolean, is_null, is_off_switch, members, texts, type_of,
};

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
    /// Sentences about servers that are not understood. They hold no value of the file.
    pub warnings: Vec<String>,
    lists: ServerLists,
}

impl Section {
    /// True if lists in the settings turn this server off.
    pub fn is_off(&self, server: &str) -> bool {
        self.lists.is_off(server)
    }

    /// Adds the servers under a key of an object.
    fn add(&mut self, settings: &Ast<'_>, key: &str) {
        let found = all(settings, key);
        if found.len() > 1 {
            self.warnings
                .push(format!("{key:?} is there twice; remove one"));
        }
        let servers = match found.last() {
            None => return,
            Some(Ast::Object(servers)) => servers,
            Some(other) => {
                let kind = type_of(other);
                let message = format!("{key:?} must be an object with servers, and is {kind}");
                return self.warnings.push(message);
            }
        };
        let defaults = defaults(settings);
        let mut names = HashSet::new();
        for member in &servers.properties {
            let name = member.name.as_str();
            if name.trim().is_empty() {
                let message = "a server with an empty name is left out; give it a name";
                self.warnings.push(message.to_owned());
                continue;
            }
            if !names.insert(name) {
                let message = format!("server {name:?} is there twice; remove one");
                self.warnings.push(message);
            }
            if !matches!(member.value, Ast::Object(_)) {
                let kind = type_of(&member.value);
                let message = format!("server {name:?} must be an object, and is {kind}");
                self.warnings.push(message);
                continue;
            }
            self.warn_of_doubled(&member.value, name);
            let Some(mut server) = server(member) else {
                continue;
            };
            server
                .entry
                .values_mut()
                .for_each(|it| put_in(it, &defaults));
            self.servers.retain(|earlier| earlier.name != server.name);
            self.servers.push(server);
        }
    }

    /// Warns about the keys that an entry, or an object in it, has twice.
    fn warn_of_doubled(&mut self, value: &Ast<'_>, server: &str) {
        let mut names = HashSet::new();
        for member in members(value) {
            let name = member.name.as_str();
            if !names.insert(name) {
                let message = format!("{name:?} of server {server:?} is there twice; remove one");
                self.warnings.push(message);
            }
            self.warn_of_doubled(&member.value, server);
        }
    }
}

/// The references to VS Code's inputs that have a default and are not secret, each with its
/// default put in.
fn defaults(settings: &Ast<'_>) -> Vec<(String, String)> {
    let inputs = last(settings, "inputs").and_then(Ast::as_array);
    let inputs = inputs.map_or(&[][..], |it| &it.elements);
    let with_default = |input: &Object<'_>| {
        let password = input.get("password");
        let is_secret = password.is_some_and(|it| !is_boolean(&it.value, false));
        let id = &input.get_string("id")?.value;
        let default = &input.get_string("default")?.value;
        // A reference ends at the first brace.
        let fits = !is_secret && !default.contains(['{', '}']);
        fits.then(|| {
            (
                format!("${{input:{id}}}"),
                format!("${{input:{id}:-{default}}}"),
            )
        })
    };
    let inputs = inputs.iter().filter_map(Ast::as_object);
    inputs.filter_map(with_default).collect()
}

/// Puts the defaults of inputs into the references in a value.
fn put_in(value: &mut Value, defaults: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (reference, with_default) in defaults {
                *text = text.replace(reference, with_default);
            }
        }
        Value::Array(array) => array.iter_mut().for_each(|it| put_in(it, defaults)),
        Value::Object(object) => object.values_mut().for_each(|it| put_in(it, defaults)),
        _ => {}
    }
}

/// Reads the text of a file, in TOML, YAML or JSON with comments, whose servers are under `key`.
///
/// The settings for `project` come first, then those at the top of the file, and last those for
/// other projects.
///
/// # Errors
///
/// A [`ForeignError`] if the text is malformed, or is no object.
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
    if !matches!(root, Ast::Object(_)) {
        let kind = type_of(&root);
        let message = format!("its settings must be an object, and are {kind}");
        return Err(ForeignError(message));
    }
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
    section.add(settings, key);
    if let Some(of_editor) = last(settings, "mcp") {
        section.add(of_editor, "servers");
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
        let settings = of_toml(document(text)?.as_item());
        return Ok(Cow::Owned(named(settings).to_string()));
    }
    if is_yaml(file) {
        return Ok(Cow::Owned(named(yaml(text)?).to_string()));
    }
    Ok(Cow::Borrowed(text))
}

pub(super) fn is_toml(file: &Path) -> bool {
    file.extension().is_some_and(|it| it == "toml")
}

/// True for a file in YAML, which can be read and not be changed.
pub fn is_yaml(file: &Path) -> bool {
    file.extension()
        .is_some_and(|it| it == "yaml" || it == "yml")
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
