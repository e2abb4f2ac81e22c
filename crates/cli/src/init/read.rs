//! Reads the servers in the configurations of other clients.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use serde_json::{Map, Value};

use crate::clients::{self, Client, Folders};

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
            match clients::read(&file) {
                Ok(root) => roots.push((file, root)),
                Err(error) => unread.push(format!("{}: {error:#}", folders.shown(&file))),
            }
        }
        collect(*client, &roots, folders, &mut found);
    }
    // Callgate itself.
    found.retain(|it| !is_callgate(&it.entry));
    (found, unread)
}

/// Collects the servers in the files of one client.
fn collect(client: Client, roots: &[(PathBuf, Value)], folders: &Folders, found: &mut Vec<Found>) {
    // Claude Code has the settings of all projects in one file. The nearest come first: of one
    // name, the first counts.
    let mut sections = Vec::new();
    for (file, root) in roots {
        let projects = root["projects"].as_object().into_iter().flatten();
        let (these, others): (Vec<_>, Vec<_>) =
            projects.partition(|(folder, _)| folders.project.starts_with(folder));
        sections.extend(
            these
                .into_iter()
                .map(|(_, settings)| (file, settings, None)),
        );
        sections.push((file, root, None));
        let others = others.into_iter();
        sections.extend(others.map(|(folder, settings)| (file, settings, Some(folder))));
    }
    let here = sections.iter().filter(|(.., project)| project.is_none());
    let here: Vec<Settings<'_>> = here
        .map(|(file, settings, _)| (*settings, !folders.is_of_project(file)))
        .collect();
    for (file, section, of_project) in sections {
        let settings = [&here[..], &[(section, !folders.is_of_project(file))]].concat();
        let servers = [&section[client.facts().key], &section["mcp"]["servers"]];
        for (name, entry) in servers.into_iter().filter_map(Value::as_object).flatten() {
            let Value::Object(entry) = entry else {
                continue;
            };
            // Zed has the settings of its extensions there, too.
            if entry.get("source").is_some_and(|it| it == "extension") {
                continue;
            }
            let is = |key: &str, value: bool| entry.get(key) == Some(&Value::Bool(value));
            let is_off = is("disabled", true) || is("enabled", false) || is("isActive", false);
            found.push(Found {
                client,
                file: file.clone(),
                name: name.clone(),
                entry: entry.clone(),
                is_off: is_off || turns_off(&settings, name, file),
                project: of_project.cloned(),
            });
        }
    }
}

/// Settings of a client, and whether they are in a file of the person's own. Of others, refusals
/// count and approvals do not.
type Settings<'a> = (&'a Value, bool);

/// True if settings of a client turn off a server of this file.
fn turns_off(settings: &[Settings<'_>], name: &str, file: &Path) -> bool {
    let lists = |pointer: &'static str| {
        let lists = settings.iter();
        let lists = lists.filter_map(move |(it, _)| it.pointer(pointer)?.as_array());
        lists.filter(move |list| !list.is_empty() || pointer == ALLOWED)
    };
    let mut out = OUT.iter().copied().flat_map(lists).flatten();
    if out.any(|it| it == name) {
        return true;
    }
    let is_only = |mut lists: std::iter::Peekable<_>| {
        lists.peek().is_some() && !lists.flatten().any(|it: &Value| it == name)
    };
    if !file.ends_with(".mcp.json") {
        return is_only(lists(ALLOWED).peekable());
    }
    // Servers of a project wait until a person approves them.
    let own = settings
        .iter()
        .filter(|(_, is_own)| *is_own)
        .map(|(it, _)| *it);
    let approves_all = |it: &Value| it["enableAllProjectMcpServers"] == true;
    let approved = own
        .clone()
        .filter_map(|it| it["enabledMcpjsonServers"].as_array());
    let approved: Vec<&Value> = approved.flatten().collect();
    !approved.is_empty() && !own.clone().any(approves_all) && !approved.iter().any(|it| *it == name)
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
    let args = entry.get("args").and_then(Value::as_array);
    let words = entry
        .get("command")
        .into_iter()
        .chain(args.into_iter().flatten());
    let words: Vec<&Path> = words.filter_map(Value::as_str).map(Path::new).collect();
    let is_ours = |word: &&Path| word.file_stem().is_some_and(|it| it == "callgate");
    words.iter().any(is_ours) && words.contains(&Path::new("serve"))
}
