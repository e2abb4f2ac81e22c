//! The servers that Callgate has taken over, and that a client still has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callgate::config::foreign::OffSwitch;
use callgate::config::{MAX_BYTES, foreign};
use callgate_text::one_line;
use serde_json::Value;

use super::entry::convert;
use super::read::{self, Found};
use super::secrets::Secrets;
use crate::clients::{Client, Folders};

/// Servers that a client still has.
pub struct Taken {
    client: Client,
    /// The servers that a file of the client can turn off.
    can: Vec<Found>,
    cannot: Vec<Found>,
    /// Servers that the client does not use: their names belong into a list that replaces others.
    unused: Vec<Found>,
}

/// Servers to be turned off in a file.
pub struct Off {
    pub file: PathBuf,
    pub switch: OffSwitch,
    pub names: Vec<String>,
}

impl Taken {
    /// Finds the servers of the client that the configuration has by name or by entry.
    pub fn find(folders: &Folders, client: Client, config: &Path) -> Self {
        let text = callgate_files::read_text(config, MAX_BYTES).unwrap_or_default();
        let ours = foreign::value(config, &text).unwrap_or_default();
        let ours = ["mcpServers", "servers"].map(|key| ours[key].as_object().cloned());
        let ours: Vec<(String, Value)> = ours.into_iter().flatten().flatten().collect();
        let (found, _) = read::servers(folders, &[client]);
        let here = found.into_iter().filter(|it| it.project.is_none());
        let (unused, mut servers): (Vec<Found>, Vec<Found>) = here.partition(|it| it.is_off);
        servers.retain(|it| {
            let is_same = |(name, entry): &(String, Value)| *name == it.name || is_equal(entry, it);
            ours.iter().any(is_same)
        });
        let has_switch = client.off_switch().is_some();
        // A list of Claude Code is about the servers of `.mcp.json` alone.
        let is_listed = |it: &Found| client != Client::ClaudeCode || it.file.ends_with(".mcp.json");
        let (can, cannot) = servers
            .into_iter()
            .partition(|it| has_switch && is_listed(it));
        Self {
            client,
            can,
            cannot,
            unused,
        }
    }

    /// The ways to turn servers off, as far as their files take the change.
    pub fn offs(&self, folders: &Folders) -> Vec<Off> {
        let Some((switch, list)) = self.client.off_switch() else {
            return Vec::new();
        };
        let mut files: BTreeMap<PathBuf, Vec<&Found>> = BTreeMap::new();
        for server in &self.can {
            let file = list.map_or(Some(server.file.clone()), |list| folders.path(list));
            if let Some(file) = file {
                files.entry(file).or_default().push(server);
            }
        }
        let key = self.client.servers_key();
        let mut offs = Vec::new();
        for (file, mut servers) in files {
            // The list of a project replaces that of the person.
            if matches!(self.client, Client::Gemini | Client::Qwen) {
                servers.extend(&self.unused);
            }
            let mut names: Vec<String> = Vec::new();
            for server in servers {
                if !names.contains(&server.name) {
                    names.push(server.name.clone());
                }
            }
            let text = callgate_files::read_text(&file, MAX_BYTES).unwrap_or_default();
            if foreign::turn_off(&file, &text, key, switch, &names).is_ok() {
                offs.push(Off {
                    file,
                    switch,
                    names,
                });
            }
        }
        offs
    }

    /// The names of the servers that can be turned off, for people.
    pub fn switchable(&self) -> String {
        names(&self.can)
    }

    /// Warnings about servers that stay on. `is_off` if those that can be turned off are.
    pub fn warnings(&self, is_off: bool) -> Vec<String> {
        let client = self.client.name();
        let about = |servers: &[Found], advice: &str| {
            (!servers.is_empty()).then(|| {
                format!(
                    "{client} still has servers that Callgate has too, and their calls pass \
                     Callgate by: {}; {advice}",
                    names(servers)
                )
            })
        };
        let by_hand = match self.client {
            Client::ClaudeCode => "remove each with `claude mcp remove NAME`".to_owned(),
            _ => format!("turn them off in {client}"),
        };
        let here = "turn them off there, or run this at a terminal without --yes, which offers it";
        let can: &[Found] = if is_off { &[] } else { &self.can };
        let warnings = [about(can, here), about(&self.cannot, &by_hand)];
        warnings.into_iter().flatten().collect()
    }
}

/// The names of servers in one line.
fn names(servers: &[Found]) -> String {
    let mut names: Vec<&str> = servers.iter().map(|it| it.name.as_str()).collect();
    names.dedup();
    one_line(&names.join(", "), usize::MAX)
}

/// True if an entry of ours starts or calls the same server.
fn is_equal(ours: &Value, theirs: &Found) -> bool {
    let theirs = convert(theirs, &mut Secrets::default());
    let theirs = theirs.map(|it| it.entry).unwrap_or_default();
    let is_same = |key: &str| ours[key] == theirs[key];
    match (&theirs["command"], &theirs["url"]) {
        (Value::String(_), _) => is_same("command") && is_same("args"),
        (_, Value::String(_)) => is_same("url"),
        _ => false,
    }
}
