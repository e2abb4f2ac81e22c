//! Writes Callgate into another client's configuration.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::{Dialogue, finish};
use crate::args::InitArgs;
use crate::clients::{Base, Client, Folders};
use crate::print;
use crate::setup::Sources;

/// The name of the entry.
const NAME: &str = "callgate";

/// Shows the difference, asks, writes.
pub async fn execute(
    sources: &Sources,
    folders: &Folders,
    client: Client,
    args: &InitArgs,
) -> anyhow::Result<u8> {
    let config = match &sources.config {
        Some(path) => std::path::absolute(path)?,
        None => match callgate::config::find(&folders.project)? {
            Some(path) if path.file_name().is_some_and(|it| it == "callgate.json") => path,
            _ => bail!(
                "there is no callgate.json in this folder or above for {} to use; `callgate init` \
                 makes one, or name a file with --config",
                client.facts().name
            ),
        },
    };
    let facts = client.facts();
    let first = facts.files.first().copied();
    let (base, file) = first.context("the client has no file")?;
    let file = folders
        .path(base, file)
        .context("neither HOME nor XDG_CONFIG_HOME is set")?;
    let shown = folders.shown(&file);
    let entry = entry(client, base, folders, &config)?;
    let old = match std::fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => bail!("{shown} cannot be read: {error}"),
    };
    let change = |old: &str| with_entry(&file, old, facts.key, &entry);
    let changed = change(old.as_deref().unwrap_or_default());
    let new = changed.map_err(|reason| anyhow::anyhow!("{shown} cannot be changed: {reason}"))?;
    if old.as_ref() == Some(&new) {
        print::out(&format!("{shown} has Callgate already\n"))?;
        return Ok(0);
    }
    let before = old.as_deref().unwrap_or_default();
    let diff = TextDiff::from_lines(before, &new);
    let diff = diff.unified_diff().header(&shown, &shown).to_string();
    if args.print {
        print::out(&diff)?;
        return Ok(0);
    }
    let mut dialogue = Dialogue::begin(args.yes).await?;
    match &mut dialogue {
        Some(dialogue) => {
            dialogue.show(&diff).await?;
            if !dialogue
                .agrees(&format!("write that into {shown}?"))
                .await?
            {
                bail!("nothing was written");
            }
        }
        None if args.yes => print::out(&diff)?,
        None => bail!("there is no terminal to ask at; --yes writes it, --print only shows it"),
    }
    drop(dialogue);
    if old.is_none() {
        write_new(&file, &new, false)?;
    } else {
        let backup = back_up(&file)?;
        callgate::config::rewrite(&file, change).map_err(anyhow::Error::msg)?;
        print::out(&format!("{shown} is kept as {}\n", folders.shown(&backup)))?;
    }
    print::out(&format!("wrote {shown}\n"))?;
    let sources = Sources {
        config: Some(config),
        skills: Vec::new(),
    };
    let next = format!("restart {}; it has Callgate's tools then", facts.name);
    finish(&sources, &next, &next).await
}

/// The entry that starts this program.
fn entry(
    client: Client,
    base: Base,
    folders: &Folders,
    config: &Path,
) -> anyhow::Result<Map<String, Value>> {
    let this = std::env::current_exe().context("this program's path is not known")?;
    let is_this = |folder: PathBuf| {
        let real = folder.join(NAME).canonicalize();
        real.is_ok_and(|real| this.canonicalize().is_ok_and(|this| this == real))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Other people use a project's file, too, and desktop programs have another `PATH`.
    let is_shared = base == Base::Project;
    let command = if is_shared && std::env::split_paths(&path).any(is_this) {
        NAME.to_owned()
    } else {
        this.display().to_string()
    };
    let config = match config.strip_prefix(&folders.project) {
        Ok(below) if is_shared => format!("{}{}", client.facts().project, below.display()),
        _ => config.display().to_string(),
    };
    let mut entry = Map::new();
    if let Some((key, kind)) = client.facts().kind {
        entry.insert(key.to_owned(), kind.into());
    }
    entry.insert("command".to_owned(), command.into());
    entry.insert("args".to_owned(), json!(["serve", "--config", config]));
    Ok(entry)
}

/// The text of a configuration with the entry among its servers.
fn with_entry(
    file: &Path,
    text: &str,
    key: &str,
    entry: &Map<String, Value>,
) -> Result<String, String> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    if file.extension().is_some_and(|it| it == "toml") {
        return with_table(body, key, entry).map(|text| format!("{mark}{text}"));
    }
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    let root = CstRootNode::parse(body, &ParseOptions::default()).map_err(|it| it.to_string())?;
    let top = root.object_value().ok_or("it holds no object")?;
    let is_new = top.properties().is_empty();
    let servers = match top.get(key) {
        Some(found) => found
            .object_value()
            .ok_or(format!("its {key:?} is not an object"))?,
        None => top.object_value_or_set(key),
    };
    let members = entry.iter().map(|(key, value)| (key.clone(), cst(value)));
    let value = CstInputValue::Object(members.collect());
    match servers.get(NAME) {
        Some(found) => {
            let now = found.value().and_then(|it| it.to_serde_value());
            if now.as_ref() == Some(&Value::Object(entry.clone())) {
                return Ok(text.to_owned());
            }
            found.set_value(value);
        }
        None => drop(servers.append(NAME, value)),
    }
    if is_new {
        top.ensure_multiline();
        servers.ensure_multiline();
    }
    Ok(format!("{mark}{root}"))
}

/// The same for TOML.
fn with_table(body: &str, key: &str, entry: &Map<String, Value>) -> Result<String, String> {
    let parsed = body.parse::<toml_edit::DocumentMut>();
    let mut document = parsed.map_err(|error| error.to_string())?;
    let mut before = "";
    if document.is_empty() {
        // Comments alone would come after the table.
        (before, document) = (body, toml_edit::DocumentMut::new());
    }
    let servers = document.entry(key).or_insert_with(|| {
        let mut servers = toml_edit::Table::new();
        servers.set_implicit(true);
        servers.into()
    });
    let servers = servers.as_table_like_mut();
    let servers = servers.ok_or_else(|| format!("its {key:?} is no table"))?;
    let now = servers.get(NAME).map(super::read::of_toml);
    if now == Some(Value::Object(entry.clone())) {
        return Ok(body.to_owned());
    }
    let mut table = toml_edit::Table::new();
    for (key, value) in entry {
        table.insert(key, toml(value));
    }
    servers.insert(NAME, table.into());
    Ok(format!("{before}{document}"))
}

fn cst(value: &Value) -> CstInputValue {
    match value {
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(array) => CstInputValue::Array(array.iter().map(cst).collect()),
        _ => CstInputValue::Null,
    }
}

fn toml(value: &Value) -> toml_edit::Item {
    match value {
        Value::Array(array) => {
            let texts = array.iter().filter_map(Value::as_str);
            toml_edit::value(texts.collect::<toml_edit::Array>())
        }
        value => toml_edit::value(value.as_str().unwrap_or_default()),
    }
}

/// Copies a file to the first of `FILE.bak`, `FILE.bak2`, … that does not exist.
pub fn back_up(file: &Path) -> anyhow::Result<PathBuf> {
    let name = file.display();
    let numbered = (2..).map(|number| format!("{name}.bak{number}"));
    for backup in std::iter::once(format!("{name}.bak")).chain(numbered) {
        match std::fs::File::create_new(&backup) {
            Ok(_) => {
                // With the mode of the file.
                std::fs::copy(file, &backup).with_context(|| backup.clone())?;
                return Ok(backup.into());
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => bail!("{backup} cannot be written: {error}"),
        }
    }
    bail!("{name} has too many backups");
}

/// Writes a file that does not exist yet, and its folder.
pub fn write_new(file: &Path, text: &str, is_private: bool) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = if is_private { 0o600 } else { 0o666 };
    let folder = file.parent().context("it has no folder")?;
    let write = || {
        std::fs::create_dir_all(folder)?;
        let mut new = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist_noclobber(file)?;
        Ok(())
    };
    write().map_err(|error: std::io::Error| {
        anyhow::anyhow!("{} cannot be written: {error}", file.display())
    })
}
