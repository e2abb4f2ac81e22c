//! Lists the servers of other clients, and chooses among them.

use anyhow::bail;
use callgate_text::{harmless, one_line};
use clap::ValueEnum as _;

use super::read::{self, Found};
use super::{SHOWN, entry};
use crate::args::InitArgs;
use crate::clients::{Client, Folders};
use crate::dialogue::Dialogue;
use crate::{print, terminal};

/// The servers of other clients, each once. Warns about files that were not read.
pub fn candidates(folders: &Folders, args: &InitArgs) -> Vec<Found> {
    let (found, unread) = read::servers(folders, &args.from);
    for unread in unread {
        print::warning(&one_line(&unread, usize::MAX));
    }
    named_once(found, folders)
}

/// The message if no client has a server.
pub fn nothing_found(folders: &Folders, from: &[Client]) -> String {
    let clients = Client::value_variants().iter();
    let mut text = String::from("no MCP server was found in these files:\n");
    for client in clients.filter(|it| from.is_empty() || from.contains(it)) {
        let files = client.files().iter();
        let files = files.filter_map(|path| Some(folders.shown(&folders.path(path)?)));
        let files: Vec<String> = files.collect();
        let more = match files.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let first = files.first().map_or("", String::as_str);
        text += &format!("  {}: {first}{more}\n", client.name());
    }
    text + "write a callgate.json, such as\n  \
            { \"mcpServers\": { \"time\": { \"command\": \"uvx\", \"args\": [\"mcp-server-time\"] } } }"
}

/// The servers, each once. Different servers with the same name get a number.
fn named_once(found: Vec<Found>, folders: &Folders) -> Vec<Found> {
    // The place that counts for a server of several clients.
    let rank = |it: &Found| (is_in_use(it), !folders.is_of_project(&it.file));
    let mut once: Vec<((String, String), Found)> = Vec::new();
    for mut server in found {
        let key = (server.name.clone(), entry::identity(&server));
        if let Some((_, known)) = once.iter_mut().find(|(it, _)| *it == key) {
            if rank(&server) > rank(known) {
                server.name.clone_from(&known.name);
                server.also_in = std::mem::take(&mut known.also_in);
                std::mem::swap(known, &mut server);
            }
            if !known.also_in.contains(&server.client) {
                known.also_in.push(server.client);
            }
            continue;
        }
        let mut number = 2;
        while once.iter().any(|(_, it)| it.name == server.name) {
            server.name = format!("{}-{number}", key.0);
            number += 1;
        }
        once.push((key, server));
    }
    once.into_iter().map(|(_, server)| server).collect()
}

/// The servers that the person or the flags choose.
pub async fn chosen(
    all: &[Found],
    folders: &Folders,
    args: &InitArgs,
    dialogue: &mut Option<Dialogue>,
) -> anyhow::Result<Vec<Found>> {
    for name in &args.servers {
        if !all.iter().any(|it| it.name == *name) {
            let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
            bail!(
                "no server is named {name:?}; there are: {}",
                names.join(", ")
            );
        }
    }
    match dialogue {
        Some(dialogue) => {
            dialogue.show(&listing(all, folders)).await?;
            chosen_by_person(all, dialogue).await
        }
        None => {
            let chosen = chosen_by_flags(all, folders, args);
            let is_named = !args.servers.is_empty();
            let shown = if is_named { &chosen[..] } else { all };
            print::out(&harmless(&listing(shown, folders)))?;
            Ok(chosen)
        }
    }
}

/// The servers in numbered lines, each with its entry.
fn listing(all: &[Found], folders: &Folders) -> String {
    let mut text = String::from("┌ MCP servers of other clients:\n");
    for (index, server) in all.iter().enumerate() {
        let also = server.also_in.iter().filter(|it| **it != server.client);
        let also: Vec<&str> = also.map(|it| it.name()).collect();
        let also = match &also[..] {
            [] => String::new(),
            clients => format!("; also in {}", clients.join(", ")),
        };
        let mut line = format!(
            "{} {}  ({}, {}{also})",
            index + 1,
            one_line(&server.name, SHOWN),
            server.client.name(),
            one_line(&folders.shown(&server.file), SHOWN)
        );
        if let Some(project) = &server.project {
            line += &format!(" of project {}", one_line(project, SHOWN));
        }
        if server.is_unapproved {
            line += " not approved in Claude Code";
        } else if server.is_off {
            line += " turned off";
        }
        let entry = one_line(&entry::shown(server), usize::MAX);
        text += &format!("├ {line}\n│   {entry}\n");
    }
    text
}

/// True if the client uses the server here. Others are chosen by number or name only.
fn is_in_use(server: &Found) -> bool {
    !server.is_off && server.project.is_none()
}

/// The servers that `--server` names, else those in use that are in the person's own files.
fn chosen_by_flags(all: &[Found], folders: &Folders, args: &InitArgs) -> Vec<Found> {
    let servers = all.iter();
    if !args.servers.is_empty() {
        let named = servers.filter(|it| args.servers.contains(&it.name));
        return named.cloned().collect();
    }
    // Files of the project may be another author's, so --yes does not include them.
    let (unseen, taken): (Vec<&Found>, Vec<&Found>) = servers
        .filter(|it| is_in_use(it) || it.is_unapproved && it.project.is_none())
        .partition(|it| it.is_unapproved || folders.is_of_project(&it.file));
    if !unseen.is_empty() {
        let names: Vec<&str> = unseen.iter().map(|it| it.name.as_str()).collect();
        print::warning(&format!(
            "servers of the project's own files are left out: {}; look at them, and name them with \
             --server",
            one_line(&names.join(", "), usize::MAX)
        ));
    }
    taken.into_iter().cloned().collect()
}

/// The servers that the person at the terminal chooses.
async fn chosen_by_person(all: &[Found], dialogue: &mut Dialogue) -> anyhow::Result<Vec<Found>> {
    let numbers = format!("numbers from 1 to {}", all.len());
    let prompt = "take which? [all] that are in use here  [1 2] those, by number  [n] none";
    let read = |answer: &str| match answer {
        "all" => Some(all.iter().filter(|it| is_in_use(it)).cloned().collect()),
        "n" | "none" => Some(Vec::new()),
        numbers => terminal::numbered(numbers, all),
    };
    let chosen: Vec<Found> = dialogue.ask(prompt, &["all", &numbers, "n"], read).await?;
    if chosen.is_empty() {
        bail!("no server was chosen; nothing was written");
    }
    Ok(chosen)
}
