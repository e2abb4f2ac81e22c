//! `callgate init`: a configuration from the servers of other MCP clients, and Callgate in theirs.

mod entry;
mod install;
mod read;
mod secrets;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail};
use callgate::config::Config;
use callgate::present::{harmless, one_line};
use callgate::rule::function_prefix;
use callgate::{CheckMode, Gate, ToolInfo};
use clap::ValueEnum as _;
use serde_json::{Map, Value, json};

use crate::args::InitArgs;
use crate::clients::{Client, Folders};
use crate::dialogue::Dialogue;
use crate::doctor::Checkup;
use crate::setup::{self, Flags, Sources};
use crate::{print, progress, terminal, trust};
use entry::Entry;
use read::Found;
use secrets::Secrets;

/// The characters of a name or path of another client that are shown.
const SHOWN: usize = 80;

/// Runs the command, and returns the exit code.
pub async fn execute(sources: &Sources, args: InitArgs) -> anyhow::Result<u8> {
    let folder = std::env::current_dir().context("could not read the current folder")?;
    let folders = Folders::of(folder);
    match args.client {
        Some(client) => install::execute(sources, &folders, client, &args).await,
        None => import(sources, &folders, &args).await,
    }
}

/// True if tools that say they only read may be called without a question.
async fn allows_reads(dialogue: &mut Dialogue) -> anyhow::Result<bool> {
    let prompt = "tools that say they only read: [a] ask each time  [r] allow without asking";
    let read = |answer: &str| match answer {
        "a" | "ask" => Some(false),
        "r" | "allow" => Some(true),
        _ => None,
    };
    dialogue.ask(prompt, &["a", "r"], read).await
}

/// Makes a configuration from the servers of other clients.
async fn import(sources: &Sources, folders: &Folders, args: &InitArgs) -> anyhow::Result<u8> {
    let file = match &sources.config {
        Some(path) => std::path::absolute(path)?,
        None => folders.project.join("callgate.json"),
    };
    let shown = install::target(folders, &file, sources.config.is_none())?;
    let is_chosen = args.yes || !args.servers.is_empty();
    let mut dialogue = Dialogue::begin(is_chosen).await?;
    if dialogue.is_none() && !is_chosen {
        bail!(
            "there is no terminal to ask at; name servers with --server, or take all of them with \
             --yes"
        );
    }
    if file.symlink_metadata().is_ok() && !args.force {
        let question = format!("{shown} exists; replace it, and keep the old one beside it?");
        match &mut dialogue {
            Some(dialogue) => dialogue.agree_or_end(&question).await?,
            None => bail!("{shown} exists; --force replaces it and keeps the old one beside it"),
        }
    }
    let (found, unread) = read::servers(folders, &args.from);
    for unread in unread {
        print::warning(&one_line(&unread, usize::MAX));
    }
    let candidates = named_once(found);
    if candidates.is_empty() {
        print::error(&nothing_found(folders, &args.from));
        return Ok(1);
    }
    let chosen = chosen(&candidates, folders, args, &mut dialogue).await?;
    let mut secrets = Secrets::default();
    let mut entries = converted(&chosen, folders, &mut secrets);
    if entries.is_empty() {
        bail!("no server is left; nothing was written");
    }
    let names: Vec<&str> = secrets.iter().map(|(name, _)| name.as_str()).collect();
    let mut copies = false;
    if let Some(dialogue) = dialogue.as_mut().filter(|_| !names.is_empty()) {
        let names = names.join(", ");
        let text = format!("┌ values that may be secrets stay out of {shown}: {names}\n");
        dialogue.show(&text).await?;
        let question = "copy them into the file all the same?";
        copies = dialogue.agrees(question).await?;
    }
    let allows = match (&args.read_only, &mut dialogue) {
        (Some(verdict), _) => verdict == "allow",
        (None, None) => false,
        (None, Some(dialogue)) => allows_reads(dialogue).await?,
    };
    drop(dialogue);
    let (config, mut unset) = tried(&file, &mut entries, &secrets)?;
    let permissions = permissions(&entries, config, allows).await?;
    let mut text = text(&entries, Some(permissions));
    for (name, secret) in secrets.iter().filter(|_| copies) {
        let value = Value::from(&*secret.value).to_string();
        text = text.replace(&format!("${{{name}}}"), &value[1..value.len() - 1]);
    }
    install::write(folders, &file, copies, |_| Ok(text.clone()))?;
    trust::accept(&file, &text)?;
    let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    let names = one_line(&names.join(", "), usize::MAX);
    print::out(&format!("wrote {shown} with the servers {names}\n"))?;
    // A reference with a default needs no variable.
    unset.retain(|name| {
        ["${", "${env:"]
            .iter()
            .any(|it| text.contains(&format!("{it}{name}}}")))
    });
    tell_unset(&unset, &secrets)?;
    let set: String = unset
        .iter()
        .map(|name| format!("export {name}=…; "))
        .collect();
    let sources = Sources {
        config: Some(file),
        skills: Vec::new(),
    };
    finish(&sources, "callgate tools", &format!("{set}callgate doctor")).await
}

/// Prints the variables to set, and where their values are.
fn tell_unset(unset: &BTreeSet<String>, secrets: &Secrets) -> anyhow::Result<()> {
    if !unset.is_empty() {
        print::out("set these variables, which the configuration refers to:\n")?;
    }
    for name in unset {
        let place = secrets
            .get(name)
            .map(|it| format!("  (its value is in {})", it.place));
        print::out(&format!("  {name}{}\n", place.unwrap_or_default()))?;
    }
    Ok(())
}

/// Runs `doctor`, and prints the next command: another one if something is missing.
async fn finish(sources: &Sources, next: &str, otherwise: &str) -> anyhow::Result<u8> {
    let checkup = Checkup::make(setup::load(sources).await).await;
    let next = if checkup.ok { next } else { otherwise };
    print::out(&format!("\n{}\nnext: {next}\n", checkup.text()))?;
    Ok(0)
}

fn nothing_found(folders: &Folders, from: &[Client]) -> String {
    let clients = Client::value_variants().iter();
    let clients = clients.filter(|it| from.is_empty() || from.contains(it));
    let looked: Vec<String> = clients
        .flat_map(|client| client.facts().files)
        .filter_map(|path| Some(folders.shown(&folders.path(path)?)))
        .collect();
    format!(
        "there are no MCP servers in {}; write a callgate.json, such as\n  \
         {{ \"mcpServers\": {{ \"time\": {{ \"command\": \"uvx\", \"args\": [\"mcp-server-time\"] \
         }} }} }}",
        looked.join(", ")
    )
}

/// The servers, each once. Of several with one name, all but the first get a number.
fn named_once(found: Vec<Found>) -> Vec<Found> {
    let mut once: Vec<Found> = Vec::new();
    for mut server in found {
        let is_same = |it: &&Found| it.entry == server.entry && it.name == server.name;
        if once.iter().any(|it| is_same(&it)) {
            continue;
        }
        let name = server.name.clone();
        let mut number = 2;
        while once.iter().any(|it| it.name == server.name) {
            server.name = format!("{name}-{number}");
            number += 1;
        }
        once.push(server);
    }
    once
}

/// The servers that the person or the flags choose.
async fn chosen(
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
    let mut text = String::from("┌ MCP servers of other clients:\n");
    for (index, server) in all.iter().enumerate() {
        let mut line = format!(
            "{} {}  ({}, {})",
            index + 1,
            one_line(&server.name, SHOWN),
            server.client.facts().name,
            one_line(&folders.shown(&server.file), SHOWN)
        );
        if let Some(project) = &server.project {
            line += &format!(" of project {}", one_line(project, SHOWN));
        }
        if server.is_off {
            line += " turned off";
        }
        text += &format!(
            "├ {line}\n│   {}\n",
            one_line(&entry::shown(server), usize::MAX)
        );
    }
    // Servers of other projects, and those that are off, are chosen by name only.
    let usual = |it: &&Found| !it.is_off && it.project.is_none();
    let Some(dialogue) = dialogue else {
        print::out(&harmless(&text))?;
        let is_named = |it: &&Found| args.servers.contains(&it.name);
        // Files of the project may be another author's: --yes does not speak of them.
        let is_unseen = |it: &&Found| usual(it) && folders.is_of_project(&it.file);
        if args.servers.is_empty() && all.iter().any(|it| is_unseen(&it)) {
            let unseen: Vec<_> = all.iter().filter(is_unseen).map(|it| &*it.name).collect();
            print::warning(&format!(
                "servers of the project's own files are left out: {}; look at them, and name them \
                 with --server",
                one_line(&unseen.join(", "), usize::MAX)
            ));
        }
        let is_taken = |it: &&Found| match args.servers.is_empty() {
            true => usual(it) && !is_unseen(it),
            false => is_named(it),
        };
        return Ok(all.iter().filter(is_taken).cloned().collect());
    };
    dialogue.show(&text).await?;
    let numbers = format!("numbers from 1 to {}", all.len());
    let prompt = "take which? [a] all that are in use here  [1 2] those, by number  [n] none";
    let read = |answer: &str| match answer {
        "a" | "all" => Some(all.iter().filter(usual).cloned().collect()),
        "n" | "none" => Some(Vec::new()),
        numbers => terminal::numbered(numbers, all),
    };
    let chosen: Vec<Found> = dialogue.ask(prompt, &["a", &numbers, "n"], read).await?;
    if chosen.is_empty() {
        bail!("nothing was written");
    }
    Ok(chosen)
}

/// The entries of the servers that are of use.
fn converted(chosen: &[Found], folders: &Folders, secrets: &mut Secrets) -> Vec<(String, Entry)> {
    let mut entries = Vec::new();
    for server in chosen {
        let name = one_line(&server.name, SHOWN);
        secrets.place = format!("{}, server {name}", folders.shown(&server.file));
        match entry::convert(server, secrets) {
            Ok(entry) => {
                if !entry.passed_over.is_empty() {
                    let keys = one_line(&entry.passed_over.join(", "), SHOWN);
                    print::warning(&format!("server {name}: not taken over: {keys}"));
                }
                entries.push((server.name.clone(), entry));
            }
            Err(reason) => print::warning(&format!("server {name} is left out: {reason}")),
        }
    }
    entries
}

/// The text of the configuration.
fn text(entries: &[(String, Entry)], permissions: Option<Value>) -> String {
    let servers = entries
        .iter()
        .map(|(name, it)| (name.clone(), it.entry.clone()));
    let mut root = Map::new();
    let servers = servers.collect::<Map<String, Value>>();
    root.insert("mcpServers".to_owned(), servers.into());
    if let Some(permissions) = permissions {
        root.insert("permissions".to_owned(), permissions);
    }
    format!("{:#}\n", Value::Object(root))
}

/// Reads the configuration with the values of the secrets, and returns it with the variables that it
/// refers to and that are not set. Servers whose entries have mistakes are left out, so that they
/// stop no other one.
fn tried(
    file: &Path,
    entries: &mut Vec<(String, Entry)>,
    secrets: &Secrets,
) -> anyhow::Result<(Config, BTreeSet<String>)> {
    let folder = file.parent().context("the file has no folder")?;
    // It is not a file of Callgate's name: there, one mistake would be an error for all servers.
    let trial = tempfile::Builder::new()
        .prefix(".init-")
        .suffix(".json")
        .tempfile_in(folder);
    let trial = trial.with_context(|| format!("{} cannot be written to", folder.display()))?;
    std::fs::write(trial.path(), text(entries, None))?;
    let unset = RefCell::new(BTreeSet::new());
    let value = |name: &str| {
        let set = std::env::var(name).ok();
        if set.is_none() {
            unset.borrow_mut().insert(name.to_owned());
        }
        secrets.get(name).map(|it| it.value.clone()).or(set)
    };
    let config = Config::load_with(trial.path(), value)?;
    entries.retain(|(name, _)| {
        if config.servers.iter().any(|server| server.name == *name) {
            return true;
        }
        let about = config.left_out.iter().filter(|it| it.server == *name);
        let mut about: Vec<&str> = about.map(|it| it.problem.message.as_str()).collect();
        let count = about.len();
        about.retain(|message| !message.contains("is not set"));
        // A variable may be set later.
        if count > 0 && about.is_empty() {
            return true;
        }
        let reason = about
            .first()
            .copied()
            .unwrap_or("its name or entry is wrong");
        let (name, reason) = (one_line(name, SHOWN), one_line(reason, usize::MAX));
        print::warning(&format!("server {name} is left out: {reason}"));
        false
    });
    if entries.is_empty() {
        bail!("no server is left; nothing was written");
    }
    Ok((config, unset.into_inner()))
}

/// The rules for the servers. Where single tools count, the servers are started.
async fn permissions(
    entries: &[(String, Entry)],
    config: Config,
    allows: bool,
) -> anyhow::Result<Value> {
    let is_limited = |entry: &Entry| entry.only.is_some() || !entry.without.is_empty();
    let counts = |entry: &Entry| allows || is_limited(entry);
    let tools = if entries.iter().any(|(_, entry)| counts(entry)) {
        tools(config).await?
    } else {
        Vec::new()
    };
    let (mut allow, mut ask, mut deny) = (Vec::new(), Vec::new(), Vec::new());
    for (name, entry) in entries {
        let of_server = |(tool, _): &&(ToolInfo, bool)| tool.server == *name && counts(entry);
        let mut known = tools.iter().filter(of_server).peekable();
        if known.peek().is_none() {
            if is_limited(entry) {
                print::warning(&format!(
                    "server {}: it did not start, so write the tools that are not to be used under \
                     \"permissions\", \"deny\"",
                    one_line(name, SHOWN)
                ));
            }
            ask.push(format!("{}*", function_prefix(name)));
        }
        for (tool, only_reads) in known {
            let only = entry.only.as_ref();
            let is_out = entry.without.contains(&tool.tool)
                || only.is_some_and(|only| !only.contains(&tool.tool));
            let list = match (is_out, *only_reads && allows) {
                (true, _) => &mut deny,
                (false, true) => &mut allow,
                (false, false) => &mut ask,
            };
            list.push(tool.function.clone());
        }
    }
    let mut permissions = Map::new();
    for (key, list) in [("allow", allow), ("ask", ask), ("deny", deny)] {
        if !list.is_empty() {
            permissions.insert(key.to_owned(), json!(list));
        }
    }
    Ok(permissions.into())
}

/// The tools of the servers that start, and whether each says that it only reads.
async fn tools(mut config: Config) -> anyhow::Result<Vec<(ToolInfo, bool)>> {
    for server in &mut config.servers {
        // So that its hints are shown.
        server.trusted = true;
    }
    let builder = setup::builder(Some(&config), &Flags::default())?;
    let builder = builder.on_waiting(progress::starting);
    let gate: Gate = builder.check(CheckMode::Off).cache(None).build().await?;
    progress::clear();
    let tools = gate.tools().into_iter().map(|tool| {
        let entry = Value::from(gate.tool_entry(&tool.function).unwrap_or_default());
        let only_reads = entry["annotations"]["readOnlyHint"] == true;
        (tool, only_reads)
    });
    let tools = tools.collect();
    gate.shutdown().await;
    Ok(tools)
}
