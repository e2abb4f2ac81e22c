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
        for file in folders.files(*client) {
            if let Err(error) = callgate::config::own(&file) {
                unread.push(error.to_string());
                continue;
            }
            match read(&file) {
                Ok(root) => collect(*client, &file, &root, &folders.project, &mut found),
                Err(error) => unread.push(format!("{}: {error:#}", folders.shown(&file))),
            }
        }
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

fn collect(client: Client, file: &Path, root: &Value, project: &Path, found: &mut Vec<Found>) {
    let key = client.facts().key;
    let off = |name: &str| {
        let lists = [
            &root["disabledMcpjsonServers"],
            &root["disabledMcpServers"],
            &root["excludeMCPServers"],
            &root["mcp"]["excluded"],
        ];
        let lists_it = |list: &Value| {
            list.as_array()
                .is_some_and(|it| it.iter().any(|it| it == name))
        };
        let only = &root["mcp"]["allowed"];
        lists.into_iter().any(lists_it) || (only.is_array() && !lists_it(only))
    };
    let mut add = |servers: &Value, of_project: Option<&str>| {
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
                is_off: is_off || off(name),
                project: of_project.map(str::to_owned),
            });
        }
    };
    // The nearest first: of one name, the first counts.
    let projects = root["projects"]
        .as_object()
        .filter(|_| client == Client::ClaudeCode);
    let (here, others): (Vec<_>, Vec<_>) = projects
        .into_iter()
        .flatten()
        .partition(|(folder, _)| project.starts_with(folder));
    for (_, settings) in here {
        add(&settings[key], None);
    }
    add(&root[key], None);
    for (folder, settings) in others {
        add(&settings[key], Some(folder));
    }
}

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
