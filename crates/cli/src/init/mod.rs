//! `callgate init`: makes a configuration from the servers of other MCP clients, and adds Callgate
//! to a client's configuration.

mod choice;
mod entry;
mod install;
mod mask;
mod program;
mod read;
mod secret_store;
mod secrets;
mod suspicion;
mod taken;
mod untrusted;
mod usual;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use callgate::config::Config;
use callgate::faces::function_prefix;
use callgate::settings::CheckMode;
use callgate::{Gate, ToolInfo};
use callgate_text::{one_line, shell_word};
use serde_json::{Map, Value, json};

use crate::args::InitArgs;
use crate::clients::Folders;
use crate::dialogue::Dialogue;
use crate::doctor::Checkup;
use crate::setup::{self, Flags, Sources};
use crate::{print, progress, trust};
use choice::{candidates, chosen, nothing_found};
use entry::{Entry, reference};
use read::Found;
use secret_store::SecretStore;
use secrets::Secrets;

/// The maximum number of characters shown of a name or path from another client.
const SHOWN: usize = 80;

/// A copy of the schema beside the configuration.
const SCHEMA: &str = "callgate.schema.json";
const NO_SERVER: &str = "no server is left; nothing was written";

/// Runs the command, and returns the exit code.
pub async fn execute(sources: &Sources, args: InitArgs) -> anyhow::Result<u8> {
    let folder = std::env::current_dir().context("could not read the current folder")?;
    let folders = Folders::of(folder);
    match args.client {
        Some(client) => install::execute(sources, &folders, client, &args).await,
        None => import(sources, &folders, &args).await,
    }
}

/// The configuration of Callgate in a folder: `callgate.jsonc` if it is there, else `callgate.json`.
fn own_file(folder: &Path) -> PathBuf {
    let with_comments = folder.join("callgate.jsonc");
    if with_comments.symlink_metadata().is_ok() {
        return with_comments;
    }
    folder.join("callgate.json")
}

/// Makes a configuration from the servers of other clients.
async fn import(sources: &Sources, folders: &Folders, args: &InitArgs) -> anyhow::Result<u8> {
    let file = match &args.config {
        Some(path) => std::path::absolute(path)?,
        None => own_file(&folders.project),
    };
    let shown = install::target(folders, &file, sources.config.is_none())?;
    if sources.config.is_none() {
        // The next command finds the file, and has the same rule.
        callgate::config::own(&file)?;
    }
    let mut dialogue = begin(args).await?;
    if file.symlink_metadata().is_ok() && !args.force {
        let question = format!("{shown} exists; replace it, and keep the old one as a backup?");
        match &mut dialogue {
            Some(dialogue) => dialogue.agree_or_end(&question).await?,
            None => bail!("{shown} exists; --force replaces it and keeps the old one as a backup"),
        }
    }
    let candidates = candidates(folders, args);
    if candidates.is_empty() {
        print::error(&nothing_found(folders, &args.from));
        return Ok(1);
    }
    let chosen = chosen(&candidates, folders, args, &mut dialogue).await?;
    let mut secrets = Secrets::default();
    let mut entries = converted(&chosen, folders, &mut secrets);
    if entries.is_empty() {
        bail!(NO_SERVER);
    }
    let named = (&*file, &*shown);
    let mut store = SecretStore::ask(&secrets, &entries, named, folders, &mut dialogue).await?;
    let allows = allows_reads(args, &mut dialogue).await?;
    let bodies = kept_texts(&mut dialogue).await?;
    drop(dialogue);
    let (config, mut unset) = tried(&file, &mut entries, &secrets, sources)?;
    let permissions = permissions(&entries, config, allows).await?;
    let env_file = store.keep(&secrets, &mut entries, folders).await?;
    unset.retain(|name| !store.has_in_file(name));
    let mut head = Map::new();
    if file.with_file_name(SCHEMA).is_file() {
        head.insert("$schema".to_owned(), format!("./{SCHEMA}").into());
    }
    if let Some(env_file) = env_file {
        head.insert("envFile".to_owned(), env_file.into());
    }
    if let Some(bodies) = bodies {
        head.insert("store".to_owned(), json!({ "bodies": bodies }));
    }
    let text = text(&entries, Some(permissions), head);
    install::write(folders, &file, |_| Ok(text.clone()))?;
    trust::accept(&file, &text)?;
    let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    let names = one_line(&names.join(", "), usize::MAX);
    print::out(&format!("wrote {shown} with the servers {names}\n"))?;
    let set = print_unset(&text, unset, &secrets)?;
    let flag = sources.config.as_ref().map(|path| {
        let path = path.display().to_string();
        format!(" --config {}", shell_word(&path))
    });
    let flag = flag.unwrap_or_default();
    let [next, otherwise] = ["tools", "doctor"].map(|command| format!("callgate{flag} {command}"));
    finish(sources, &next, &format!("{set}{otherwise}")).await
}

/// Starts the dialogue. `None` if the flags answer all questions; an error if nothing does.
async fn begin(args: &InitArgs) -> anyhow::Result<Option<Dialogue>> {
    let is_chosen = args.yes || !args.servers.is_empty();
    let dialogue = Dialogue::begin(is_chosen).await?;
    if dialogue.is_none() && !is_chosen {
        bail!(
            "there is no terminal to ask at; name servers with --server, or take all of them with \
             --yes"
        );
    }
    Ok(dialogue)
}

/// True if tools that say they only read may be called without a question.
async fn allows_reads(args: &InitArgs, dialogue: &mut Option<Dialogue>) -> anyhow::Result<bool> {
    if let Some(verdict) = &args.read_only {
        return Ok(verdict == "allow");
    }
    let Some(dialogue) = dialogue else {
        return Ok(false);
    };
    let prompt = "tools that say they only read: [ask] each time  [allow] without asking";
    let read = |answer: &str| match answer {
        "ask" => Some(false),
        "allow" => Some(true),
        _ => None,
    };
    dialogue.ask(prompt, &["ask", "allow"], read).await
}

/// The texts that the record of runs keeps, as `bodies` of `store`; `None` for none.
async fn kept_texts(dialogue: &mut Option<Dialogue>) -> anyhow::Result<Option<&'static str>> {
    let Some(dialogue) = dialogue else {
        return Ok(None);
    };
    let prompt = "scripts, outputs and data of calls in the record of runs: [none]  [errors] those \
                  of failures  [all]";
    let read = |answer: &str| match answer {
        "" | "none" => Some(None),
        "errors" => Some(Some("errors")),
        "all" => Some(Some("all")),
        _ => None,
    };
    dialogue.ask(prompt, &["none", "errors", "all"], read).await
}

/// Prints the variables to set, and where their values are. Returns the commands that set them.
fn print_unset(
    text: &str,
    mut unset: BTreeSet<String>,
    secrets: &Secrets,
) -> anyhow::Result<String> {
    // A reference with a default needs no variable.
    unset.retain(|name| {
        text.contains(&reference(name)) || text.contains(&reference(&format!("env:{name}")))
    });
    if !unset.is_empty() {
        print::out("set these variables, which the configuration refers to:\n")?;
    }
    let mut commands = String::new();
    for name in unset {
        let place = secrets
            .get(&name)
            .map(|it| format!("  (its value is in {})", it.place));
        print::out(&format!("  {name}{}\n", place.unwrap_or_default()))?;
        commands += &format!("export {name}=…; ");
    }
    Ok(commands)
}

/// Runs `doctor`, and prints the next command: `next`, or `otherwise` if something is missing.
async fn finish(sources: &Sources, next: &str, otherwise: &str) -> anyhow::Result<u8> {
    print::out("\n")?;
    let checkup = Checkup::make(setup::load(sources).await, true).await?;
    let next = if checkup.ok { next } else { otherwise };
    print::out(&format!("\nnext: {next}\n"))?;
    Ok(0)
}

/// The entries of the servers, each with its name. Warns about what is left out.
fn converted(chosen: &[Found], folders: &Folders, secrets: &mut Secrets) -> Vec<(String, Entry)> {
    let mut entries = Vec::new();
    for server in chosen {
        let name = one_line(&server.name, SHOWN);
        secrets.place = format!("{}, server {name}", folders.shown(&server.file));
        match entry::convert(server, secrets) {
            Ok(entry) => {
                if !entry.passed_over.is_empty() {
                    let keys = entry.passed_over.join(", ");
                    print::warning(&format!("server {name}: not taken over: {keys}"));
                }
                entries.push((server.name.clone(), entry));
            }
            Err(reason) => print::warning(&format!("server {name} is left out: {reason}")),
        }
    }
    entries
}

/// The text of the configuration, which begins with the members of `root`.
fn text(
    entries: &[(String, Entry)],
    permissions: Option<Value>,
    mut root: Map<String, Value>,
) -> String {
    let servers = entries
        .iter()
        .map(|(name, it)| (name.clone(), it.entry.clone()));
    let servers = servers.collect::<Map<String, Value>>();
    root.insert("mcpServers".to_owned(), servers.into());
    if let Some(permissions) = permissions {
        root.insert("permissions".to_owned(), permissions);
    }
    format!("{:#}\n", Value::Object(root))
}

/// Reads the configuration with the values of the secrets. Returns it with the unset variables that
/// it refers to. Servers whose entries have mistakes are left out, and do not stop the others.
fn tried(
    file: &Path,
    entries: &mut Vec<(String, Entry)>,
    secrets: &Secrets,
    sources: &Sources,
) -> anyhow::Result<(Config, BTreeSet<String>)> {
    let folder = file.parent().context("the file has no folder")?;
    // In a file with Callgate's name, one mistake would be an error for all servers.
    let trial = tempfile::Builder::new()
        .prefix(".init-")
        .suffix(".json")
        .tempfile_in(folder);
    let trial = trial.with_context(|| format!("{} cannot be written to", folder.display()))?;
    std::fs::write(trial.path(), text(entries, None, Map::new()))?;
    let unset = RefCell::new(BTreeSet::new());
    let value = |name: &str| {
        let set = sources.variable(name);
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
        let mut about = config.left_out.iter().filter(|it| it.server == *name);
        let wrong = about.clone().find(|it| !it.is_unset);
        // A server whose only problem is an unset variable stays: it may be set later.
        if wrong.is_none() && about.next().is_some() {
            return true;
        }
        let reason = wrong.map_or("its name or entry is wrong", |it| &it.problem.message);
        let (name, reason) = (one_line(name, SHOWN), one_line(reason, usize::MAX));
        print::warning(&format!("server {name} is left out: {reason}"));
        false
    });
    if entries.is_empty() {
        bail!(NO_SERVER);
    }
    Ok((config, unset.into_inner()))
}

/// The rules for the servers. If they depend on single tools, the servers are started.
async fn permissions(
    entries: &[(String, Entry)],
    config: Config,
    allows: bool,
) -> anyhow::Result<Value> {
    let counts = |entry: &Entry| allows || entry.is_limited();
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
            if !entry.only.is_empty() {
                print::warning(&format!(
                    "server {}: its client uses only some of its tools; it did not start, so all \
                     of them are asked about; write those that are not used under \
                     \"permissions\", \"deny\"",
                    one_line(name, SHOWN)
                ));
            }
            let left_out = entry.without.iter().filter(|tool| !tool.is_empty());
            deny.extend(left_out.map(|tool| format!("{name}/{tool}")));
            ask.push(format!("{}*", function_prefix(name)));
        }
        for (tool, only_reads) in known {
            let list = match (entry.leaves_out(&tool.tool), *only_reads && allows) {
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

/// The tools of the servers that start, each with whether it says that it only reads.
async fn tools(mut config: Config) -> anyhow::Result<Vec<(ToolInfo, bool)>> {
    for server in &mut config.servers {
        // Hints such as `readOnlyHint` are shown for trusted servers only.
        server.trusted = true;
    }
    let builder = setup::builder(Some(&config), &Flags::default())?;
    let builder = builder.on_waiting(progress::starting);
    let gate: Gate = builder.check(CheckMode::Off).cache(None).build().await?;
    progress::clear();
    let tools = gate.tools().into_iter().map(|tool| {
        let entry = Value::from(gate.view().tool_entry(&tool.function).unwrap_or_default());
        let only_reads = entry["annotations"]["readOnlyHint"] == true;
        (tool, only_reads)
    });
    let tools = tools.collect();
    gate.shutdown().await;
    Ok(tools)
}
