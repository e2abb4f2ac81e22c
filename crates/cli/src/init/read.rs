//! Finds the servers in the configurations of other clients.

use std::io::ErrorKind;
use std::path::PathBuf;

use callgate::config::MAX_BYTES;
use callgate::config::foreign::Section;
use clap::ValueEnum as _;
use serde_json::{Map, Value};

use crate::clients::{Client, Folders, is_callgate};

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
    /// True if Claude Code does not use it because the person has not approved it there.
    pub is_unapproved: bool,
    /// The folder of the project that it is for, if that is not the current one.
    pub project: Option<String>,
    /// The other clients that have the same server.
    pub also_in: Vec<Client>,
}

/// The servers of the given clients, by default of all, and why files or parts of them were not
/// read.
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
                Ok(read) => {
                    let warnings = read.iter().flat_map(warnings);
                    unread.extend(warnings.map(|it| format!("{}: {it}", folders.shown(&file))));
                    sections.extend(read.into_iter().map(|it| (file.clone(), it)));
                }
                Err(error) => unread.push(format!("{}: {}", folders.shown(&file), why(&error))),
            }
        }
        collect(*client, &sections, folders, &mut found);
    }
    found.retain(|it| !is_callgate(&it.entry));
    (found, unread)
}

/// The warnings about settings, which name the project that they are for.
fn warnings(section: &Section) -> impl Iterator<Item = String> {
    let project = section.project.as_ref();
    let of = project.map_or_else(String::new, |it| format!("project {it}: "));
    let warnings = section.warnings.iter();
    warnings.map(move |warning| format!("{of}{warning}"))
}

/// Why a file was not read, and what to do.
fn why(error: &anyhow::Error) -> String {
    let kind = error
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind);
    match kind {
        Some(ErrorKind::FileTooLarge) => format!(
            "it is over {} MiB, and its servers are left out; copy them to the \"mcpServers\" of a \
             callgate.json by hand",
            MAX_BYTES >> 20
        ),
        Some(ErrorKind::InvalidData) => format!("{error:#}; save it as UTF-8"),
        _ => format!("{error:#}"),
    }
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
            let refuses = |(_, it): &&(PathBuf, Section)| it.is_off(&server.name);
            let is_off = server.is_off || settings.iter().any(refuses);
            let is_unapproved = !is_off
                && client == Client::ClaudeCode
                && file.ends_with(".mcp.json")
                && !is_approved(&settings, folders, &server.name);
            found.push(Found {
                client,
                file: file.clone(),
                name: server.name.clone(),
                entry: server.entry.clone(),
                is_off: is_off || is_unapproved,
                is_unapproved,
                project: of_file.project.clone(),
                also_in: Vec::new(),
            });
        }
    }
}

/// True if settings of Claude Code, each with its file, approve a server of the project. Those in
/// files of the project, which may be another author's, do not count.
fn is_approved(settings: &[&(PathBuf, Section)], folders: &Folders, server: &str) -> bool {
    let mut own = settings
        .iter()
        .filter(|(file, _)| !folders.is_of_project(file));
    own.any(|(_, it)| it.approves_all || it.approved.iter().any(|it| it == server))
}
