//! Writes Callgate into another client's configuration.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use callgate::config::MAX_BYTES;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::finish;
use crate::args::InitArgs;
use crate::clients::{Client, Folders};
use crate::dialogue::Dialogue;
use crate::print;
use crate::setup::Sources;
use crate::trust::Found;

/// The name of the entry.
const NAME: &str = "callgate";

/// Shows the difference, asks, writes.
pub async fn execute(
    sources: &Sources,
    folders: &Folders,
    client: Client,
    args: &InitArgs,
) -> anyhow::Result<u8> {
    let is_named = sources.config.is_some();
    let config = match &sources.config {
        Some(path) => Some(std::path::absolute(path)?),
        // The entry of a client that has the path in it uses the file without a question.
        None => Found::accepted_path().await?,
    };
    let Some(config) = config.filter(|path| is_named || !path.ends_with(".mcp.json")) else {
        bail!(
            "there is no callgate.json in this folder or above for {} to use; `callgate init` \
             makes one, or name a file with --config",
            client.facts().name
        );
    };
    if is_named && client.writes_to_project() {
        bail!(
            "{} starts `callgate serve` in the project, which uses the callgate.json that it finds \
             there; leave --config out",
            client.facts().name
        );
    }
    let facts = client.facts();
    let first = facts.files.first().and_then(|file| folders.path(file));
    let file = first.context("neither HOME nor XDG_CONFIG_HOME is set")?;
    let shown = target(folders, &file, client.writes_to_project())?;
    let entry = entry(client, &config)?;
    let old = match callgate_files::read_text(&file, MAX_BYTES) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        old => old.with_context(|| format!("{shown} cannot be read"))?,
    };
    let change = |old: &str| with_entry(&file, old, facts.key, &entry);
    let new = change(&old).map_err(anyhow::Error::msg);
    let new = new.with_context(|| format!("{shown} cannot be changed"))?;
    if old == new {
        print::out(&format!("{shown} has Callgate already\n"))?;
        return Ok(0);
    }
    let diff = TextDiff::from_lines(&old, &new);
    let diff = diff.unified_diff().header(&shown, &shown).to_string();
    if args.print {
        print::out(&diff)?;
        return Ok(0);
    }
    let mut dialogue = Dialogue::begin(args.yes).await?;
    match &mut dialogue {
        Some(dialogue) => {
            dialogue.show(&diff).await?;
            let question = format!("write that into {shown}?");
            dialogue.agree_or_end(&question).await?;
        }
        None if args.yes => print::out(&diff)?,
        None => bail!("there is no terminal to ask at; --yes writes it, --print only shows it"),
    }
    drop(dialogue);
    write(folders, &file, false, change)?;
    print::out(&format!("wrote {shown}\n"))?;
    let next = format!("restart {}; it has Callgate's tools then", facts.name);
    finish(sources, &next, &next).await
}

/// The entry that starts this program.
fn entry(client: Client, config: &Path) -> anyhow::Result<Map<String, Value>> {
    let facts = client.facts();
    let this = std::env::current_exe().context("this program's path is not known")?;
    let is_this = |folder: PathBuf| {
        let real = folder.join(NAME).canonicalize();
        real.is_ok_and(|real| this.canonicalize().is_ok_and(|this| this == real))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Other people use a project's file, too, and desktop programs have another `PATH`.
    let is_shared = client.writes_to_project();
    let command = if is_shared && std::env::split_paths(&path).any(is_this) {
        NAME.to_owned()
    } else {
        this.display().to_string()
    };
    let args = if is_shared {
        // A named file would be used without the person's acceptance.
        json!(["serve"])
    } else {
        json!(["serve", "--config", config.display().to_string()])
    };
    let mut entry = Map::new();
    if let Some((key, kind)) = facts.kind {
        entry.insert(key.to_owned(), kind.into());
    }
    entry.insert("command".to_owned(), command.into());
    entry.insert("args".to_owned(), args);
    Ok(entry)
}

/// The file that is written to, for people: its path, and where links lead it.
///
/// The author of a repository decides where a link in it leads, so a project's file must be in the
/// project. Links of a person's own files are followed.
pub fn target(folders: &Folders, file: &Path, is_of_project: bool) -> anyhow::Result<String> {
    let shown = folders.shown(file);
    let exists = |place: &&Path| place.symlink_metadata().is_ok();
    let place = file.ancestors().find(exists).unwrap_or(file);
    let real = place.canonicalize();
    let real = real.with_context(|| format!("{} leads nowhere", folders.shown(place)))?;
    // Without a slash at the end of the file itself.
    let real = match file.strip_prefix(place) {
        Ok(below) if !below.as_os_str().is_empty() => real.join(below),
        _ => real,
    };
    if is_of_project && !real.starts_with(folders.project.canonicalize()?) {
        bail!(
            "{shown} leads out of this project, to {}; nothing was written, so remove the link",
            folders.shown(&real)
        );
    }
    if real == file {
        return Ok(shown);
    }
    Ok(format!("{shown} ({})", folders.shown(&real)))
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
    let now = servers.get(NAME).map(crate::clients::of_toml);
    if now == Some(Value::Object(entry.clone())) {
        return Ok(body.to_owned());
    }
    let mut table = toml_edit::Table::new();
    for (key, value) in entry {
        // Texts and lists of texts are written as in JSON.
        let value = value.to_string().parse::<toml_edit::Value>();
        table.insert(key, value.map_err(|error| error.to_string())?.into());
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

/// Writes a file: a new one with its folder; or the old one, which is kept as the first of
/// `FILE.bak`, `FILE.bak2`, … that does not exist. Others cannot read either if it `is_private`.
pub fn write(
    folders: &Folders,
    file: &Path,
    is_private: bool,
    change: impl FnOnce(&str) -> Result<String, String>,
) -> anyhow::Result<()> {
    let shown = folders.shown(file);
    if file.symlink_metadata().is_err() {
        let text = change("").map_err(anyhow::Error::msg)?;
        let mode = if is_private { 0o600 } else { 0o666 };
        let made = std::fs::create_dir_all(file.parent().unwrap_or(file));
        let written = made.and_then(|()| create(file, mode, text.as_bytes()));
        written.with_context(|| format!("{shown} cannot be written"))?;
        return crate::trust::accept(file, &text);
    }
    let name = file.display();
    let numbered = (2..).map(|number| format!("{name}.bak{number}"));
    let mut backups = [format!("{name}.bak")]
        .into_iter()
        .chain(numbered)
        .map(PathBuf::from);
    let is_free = |backup: &PathBuf| backup.symlink_metadata().is_err();
    let backup = backups.find(is_free).context("it has too many backups")?;
    let kept = folders.shown(&backup);
    let old = callgate_files::read(file, MAX_BYTES);
    let old = old.with_context(|| format!("{shown} cannot be read"))?;
    let mode = file.metadata()?.mode() & if is_private { 0o600 } else { 0o777 };
    let written = create(&backup, mode, &old);
    written.with_context(|| format!("{kept} cannot be written"))?;
    callgate::config::rewrite(file, is_private, change).map_err(anyhow::Error::msg)?;
    print::out(&format!("the old {shown} is kept as {kept}\n"))
}

/// Writes a file that does not exist.
fn create(file: &Path, mode: u32, bytes: &[u8]) -> std::io::Result<()> {
    let mut new = OpenOptions::new();
    let mut new = new.write(true).create_new(true).mode(mode).open(file)?;
    new.write_all(bytes)
}
