//! Finds the servers in the configurations of other clients.

use std::path::{Path, PathBuf};

use callgate::config::foreign::Section;
use clap::ValueEnum as _;
use serde_json::{Map, Value};

use crate::clients::{Client, Folders};

/// A server in another client's configuration.
#[derive(Debug, Clone)]
pub struct Found {
    pub client: Client,
    pub file: PathBuf,
    pub name: String,
    /// Its entry, with Callgate's keys where it has some.
    pub entry: Map<String, Value>,
    /// True if the client does not use it.
    pub is_off: bool,
    /// The folder of the project that it is for, if that is not the current one.
    pub project: Option<String>,
}

/// The servers of the given clients, by default of all, and why some files were not read.
pub fn servers(folders: &Folders, from: &[Client]) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for client in Client::value_variants() {
        if !from.is_empty() && !from.contains(client) {
            continue;
        }
        let mut sections = Vec::new();
        for file in folders.files(*client) {
            if let Err(error) = callgate::config::own(&file) {
                unread.push(error.to_string());
                continue;
            }
            match folders.sections(*client, &file) {
                Ok(read) => sections.extend(read.into_iter().map(|it| (file.clone(), it))),
                Err(error) => unread.push(format!("{}: {error:#}", folders.shown(&file))),
            }
        }
        collect(*client, &sections, folders, &mut found);
    }
    found.retain(|it| !is_callgate(&it.entry));
    (found, unread)
}

/// Collects the servers in the files of one client. Of servers with one name, the first counts.
fn collect(
    client: Client,
    sections: &[(PathBuf, Section)],
    folders: &Folders,
    found: &mut Vec<Found>,
) {
    let here = sections.iter().filter(|(_, it)| it.project.is_none());
    let here: Vec<&(PathBuf, Section)> = here.collect();
    for section in sections {
        let (file, of_file) = section;
        let settings = [&here[..], &[section]].concat();
        for server in &of_file.servers {
            found.push(Found {
                client,
                file: file.clone(),
                name: server.name.clone(),
                entry: server.entry.clone(),
                is_off: server.is_off || turns_off(&settings, folders, &server.name, file),
                project: of_file.project.clone(),
            });
        }
    }
}

/// True if settings, each with its file, turn off a server of this file. In files of the project,
/// which may be another author's, refusals count and approvals do not.
fn turns_off(
    settings: &[&(PathBuf, Section)],
    folders: &Folders,
    server: &str,
    file: &Path,
) -> bool {
    if settings.iter().any(|(_, it)| it.is_off(server)) {
        return true;
    }
    // Servers of a project wait until a person approves them.
    let own = settings.iter();
    let own = own.filter(|(file, _)| !folders.is_of_project(file));
    let own: Vec<&Section> = own.map(|(_, it)| it).collect();
    let approved: Vec<&String> = own.iter().flat_map(|it| &it.approved).collect();
    file.ends_with(".mcp.json")
        && !approved.is_empty()
        && !own.iter().any(|it| it.approves_all)
        && !approved.iter().any(|it| *it == server)
}

/// True if an entry starts Callgate itself.
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
