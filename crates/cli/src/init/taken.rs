//! The servers that Callgate has taken over, and that a client still has.

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
    servers: Vec<Found>,
    /// Servers that the client does not use: their names belong into a list that replaces others.
    unused: Vec<String>,
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
        Self {
            client,
            servers,
            unused: unused.into_iter().map(|it| it.name).collect(),
        }
    }

    /// The ways to turn servers off. Those without one stay on.
    pub fn offs(&self, folders: &Folders) -> Vec<Off> {
        let Some((switch, list)) = self.client.off_switch() else {
            return Vec::new();
        };
        let mut offs: Vec<Off> = Vec::new();
        for server in self.servers.iter().filter(|it| self.can_turn_off(it)) {
            let Some(file) = list.map_or(Some(server.file.clone()), |list| folders.path(list))
            else {
                continue;
            };
            let name = server.name.clone();
            match offs.iter_mut().find(|off| off.file == file) {
                Some(off) if off.names.contains(&name) => {}
                Some(off) => off.names.push(name),
                None => offs.push(Off {
                    file,
                    switch,
                    names: vec![name],
                }),
            }
        }
        // The list of a project replaces that of the person.
        if matches!(self.client, Client::Gemini | Client::Qwen) {
            for off in &mut offs {
                let unused = self.unused.iter().filter(|name| !off.names.contains(name));
                let unused: Vec<String> = unused.cloned().collect();
                off.names.extend(unused);
            }
        }
        let key = self.client.servers_key();
        offs.retain(|off| {
            let text = callgate_files::read_text(&off.file, MAX_BYTES).unwrap_or_default();
            foreign::turn_off(&off.file, &text, key, off.switch, &off.names).is_ok()
        });
        offs
    }

    /// True if a file of the client can turn this server off. A list of Claude Code is about the
    /// servers of `.mcp.json` alone.
    fn can_turn_off(&self, server: &Found) -> bool {
        self.client != Client::ClaudeCode || server.file.ends_with(".mcp.json")
    }

    /// The names of the servers that can be turned off, for people.
    pub fn switchable(&self) -> String {
        names(self.servers.iter().filter(|it| self.can_turn_off(it)))
    }

    /// Warnings about servers that stay on. `is_off` if those that can be turned off are.
    pub fn warnings(&self, is_off: bool) -> Vec<String> {
        let client = self.client.name();
        let has_switch = self.client.off_switch().is_some();
        let (can, cannot): (Vec<&Found>, Vec<&Found>) = self
            .servers
            .iter()
            .partition(|it| has_switch && self.can_turn_off(it));
        let about = |servers: Vec<&Found>, advice: &str| {
            (!servers.is_empty()).then(|| {
                let names = names(servers.into_iter());
                format!(
                    "{client} still has servers that Callgate has too, and their calls pass \
                     Callgate by: {names}; {advice}"
                )
            })
        };
        let by_hand = match self.client {
            Client::ClaudeCode => "remove each with `claude mcp remove NAME`".to_owned(),
            _ => format!("turn them off in {client}"),
        };
        let here = "turn them off there, or run this at a terminal without --yes, which offers it";
        let can = if is_off { Vec::new() } else { can };
        let warnings = [about(can, here), about(cannot, &by_hand)];
        warnings.into_iter().flatten().collect()
    }
}

/// The names of servers in one line.
fn names<'a>(servers: impl Iterator<Item = &'a Found>) -> String {
    let mut names: Vec<&str> = servers.map(|it| it.name.as_str()).collect();
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
