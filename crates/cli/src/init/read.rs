//! Reads the servers in the configurations of other clients.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::ValueEnum as _;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value};

use crate::clients::{Client, Folders};

/// The most bytes of a file that is read: `~/.claude.json` has old conversations, too.
const MAX_BYTES: u64 = 64 << 20;

/// A server in another client's configuration.
#[derive(Debug, Clone)]
pub struct Found {
    pub client: Client,
    pub file: PathBuf,
    pub name: String,
    /// Its entry, as the client has it.
    pub entry: Map<String, Value>,
    /// True if the client does not use it.
    pub is_off: bool,
    /// The project that it is for, if that is another one.
    pub project: Option<String>,
}

/// The servers of all clients, and why some files were not read.
pub fn servers(folders: &Folders, from: &[Client]) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for client in Client::value_variants() {
        if !from.is_empty() && !from.contains(client) {
            continue;
        }
        let mut roots = Vec::new();
        for file in folders.files(*client) {
            if let Err(error) = callgate::config::own(&file) {
                unread.push(error.to_string());
                continue;
            }
            match read(&file) {
                Ok(root) => roots.push((file, root)),
                Err(error) => unread.push(format!("{}: {error:#}", folders.shown(&file))),
            }
        }
        collect(*client, &roots, &folders.project, &mut found);
    }
    // Callgate itself.
    found.retain(|it| !is_callgate(&it.entry));
    (found, unread)
}

/// The text of a configuration, without a byte order mark.
pub fn text(file: &Path) -> anyhow::Result<String> {
    if file.metadata()?.len() > MAX_BYTES {
        bail!("it is over {MAX_BYTES} bytes");
    }
    let text = std::fs::read_to_string(file)?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text))
}

fn read(file: &Path) -> anyhow::Result<Value> {
    let text = text(file)?;
    if file.extension().is_some_and(|it| it == "toml") {
        let document: toml_edit::DocumentMut = text.parse()?;
        return Ok(of_toml(document.as_item()));
    }
    Ok(parse_to_serde_value(&text, &ParseOptions::default())?)
}

/// Collects the servers in the files of one client.
fn collect(client: Client, roots: &[(PathBuf, Value)], project: &Path, found: &mut Vec<Found>) {
    let key = client.facts().key;
    let mut here = Vec::new();
    for (_, root) in roots {
        let (these, _) = projects(root, project);
        here.push(root);
        here.extend(these.into_iter().map(|(_, settings)| settings));
    }
    let mut add = |file: &Path, servers: &Value, of_project: Option<&str>, settings: &[&Value]| {
        for (name, entry) in servers.as_object().into_iter().flatten() {
            let Value::Object(entry) = entry else {
                continue;
            };
            // Zed has the settings of its extensions there, too.
            if entry.get("source").is_some_and(|it| it == "extension") {
                continue;
            }
            let flag = |key: &str| entry.get(key).and_then(Value::as_bool);
            let is_off = flag("disabled") == Some(true)
                || ["enabled", "isActive", "active"]
                    .iter()
                    .any(|it| flag(it) == Some(false));
            found.push(Found {
                client,
                file: file.to_owned(),
                name: name.clone(),
                entry: entry.clone(),
                is_off: is_off || turns_off(settings, name, file),
                project: of_project.map(str::to_owned),
            });
        }
    };
    for (file, root) in roots {
        let (these, others) = projects(root, project);
        // The nearest first: of one name, the first counts.
        for (_, settings) in these {
            add(file, &settings[key], None, &here);
        }
        add(file, &root[key], None, &here);
        if client == Client::VsCode {
            add(file, &root["mcp"]["servers"], None, &here);
        }
        for (folder, settings) in others {
            add(file, &settings[key], Some(folder), &[root, settings]);
        }
    }
}

type Projects<'a> = Vec<(&'a String, &'a Value)>;

/// The projects in a file of Claude Code: those that this folder is in, and the others.
fn projects<'a>(root: &'a Value, project: &Path) -> (Projects<'a>, Projects<'a>) {
    let projects = root["projects"].as_object().into_iter().flatten();
    projects.partition(|(folder, _)| project.starts_with(folder))
}

/// True if settings of a client turn off a server of this file.
fn turns_off(settings: &[&Value], name: &str, file: &Path) -> bool {
    let lists = |pointer: &'static str| {
        let lists = settings
            .iter()
            .filter_map(move |it| it.pointer(pointer)?.as_array());
        lists.filter(move |list| !list.is_empty() || pointer == ALLOWED)
    };
    let mut out = OUT.iter().copied().flat_map(lists).flatten();
    if out.any(|it| it == name) {
        return true;
    }
    // Servers of a project wait until a person approves them.
    let approves_all = |it: &&Value| it["enableAllProjectMcpServers"] == true;
    let only = if !file.ends_with(".mcp.json") || settings.iter().any(approves_all) {
        ALLOWED
    } else {
        "/enabledMcpjsonServers"
    };
    let mut only = lists(only).peekable();
    only.peek().is_some() && !only.flatten().any(|it| it == name)
}

/// Lists of servers that are off, and of the only ones that are in use.
const OUT: [&str; 4] = [
    "/disabledMcpjsonServers",
    "/disabledMcpServers",
    "/excludeMCPServers",
    "/mcp/excluded",
];
const ALLOWED: &str = "/mcp/allowed";

fn is_callgate(entry: &Map<String, Value>) -> bool {
    let command = entry
        .get("command")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let args = entry.get("args").and_then(Value::as_array);
    let mut args = args.into_iter().flatten().filter_map(Value::as_str);
    let is_ours = |text: &str| {
        Path::new(text)
            .file_stem()
            .is_some_and(|it| it == "callgate")
    };
    (is_ours(command) || args.clone().any(is_ours)) && args.any(|it| it == "serve")
}

pub fn of_toml(item: &toml_edit::Item) -> Value {
    use toml_edit::Value as Toml;
    if let Some(table) = item.as_table_like() {
        let members = table
            .iter()
            .map(|(key, item)| (key.to_owned(), of_toml(item)));
        return Value::Object(members.collect());
    }
    let of_value = |value: &Toml| of_toml(&toml_edit::Item::Value(value.clone()));
    match item.as_value() {
        Some(Toml::String(text)) => text.value().as_str().into(),
        Some(Toml::Integer(number)) => (*number.value()).into(),
        Some(Toml::Float(number)) => (*number.value()).into(),
        Some(Toml::Boolean(boolean)) => (*boolean.value()).into(),
        Some(Toml::Array(array)) => array.iter().map(of_value).collect(),
        _ => Value::Null,
    }
}
