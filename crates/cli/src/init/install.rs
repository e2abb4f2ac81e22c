//! Writes Callgate into another client's configuration.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use callgate::config::MAX_BYTES;
use callgate::config::foreign;
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::finish;
use crate::args::InitArgs;
use crate::clients::{Client, Folders};
use crate::dialogue::Dialogue;
use crate::print;
use crate::setup::Sources;
use crate::trust::FoundConfig;

/// The name of the entry.
const NAME: &str = "callgate";

/// Adds the entry to the client's file, once the person agrees to the difference.
pub async fn execute(
    sources: &Sources,
    folders: &Folders,
    client: Client,
    args: &InitArgs,
) -> anyhow::Result<u8> {
    let config = served_config(sources, client).await?;
    let first = client.files().first().and_then(|file| folders.path(file));
    let file = first.context("neither HOME nor XDG_CONFIG_HOME is set; set one of them")?;
    let shown = target(folders, &file, client.writes_to_project())?;
    let entry = entry(client, &config)?;
    let old = match callgate_files::read_text(&file, MAX_BYTES) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        old => old.with_context(|| format!("{shown} cannot be read"))?,
    };
    let change = |old: &str| foreign::patch(&file, old, client.servers_key(), NAME, &entry);
    let new = change(&old).with_context(|| format!("{shown} cannot be changed"))?;
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
    agree_to(&diff, &shown, args).await?;
    let change = |old: &str| change(old).map_err(|error| error.to_string());
    write(folders, &file, false, change)?;
    print::out(&format!("wrote {shown}\n"))?;
    let next = format!("restart {}, which then has Callgate's tools", client.name());
    finish(sources, &next, &next).await
}

/// The configuration that the client's Callgate will serve.
async fn served_config(sources: &Sources, client: Client) -> anyhow::Result<PathBuf> {
    let name = client.name();
    let is_named = sources.config.is_some();
    if is_named && client.writes_to_project() {
        bail!(
            "{name} starts `callgate serve` in the project, which uses the callgate.json that it \
             finds there; remove --config"
        );
    }
    let config = match &sources.config {
        Some(path) => Some(std::path::absolute(path)?),
        // An entry that names the file uses it without a question.
        None => FoundConfig::accepted_path(sources).await?,
    };
    let config = config.filter(|path| is_named || !path.ends_with(".mcp.json"));
    config.with_context(|| {
        format!(
            "there is no callgate.json in this folder or above for {name} to use; `callgate init` \
             makes one, or name a file with --config"
        )
    })
}

/// Shows the difference, and asks unless `--yes` answers. An error if the person refuses.
async fn agree_to(diff: &str, shown: &str, args: &InitArgs) -> anyhow::Result<()> {
    match Dialogue::begin(args.yes).await? {
        Some(mut dialogue) => {
            dialogue.show(diff).await?;
            let question = format!("write this to {shown}?");
            dialogue.agree_or_end(&question).await
        }
        None if args.yes => print::out(diff),
        None => bail!("there is no terminal to ask at; --yes writes it, --print only shows it"),
    }
}

/// The entry that starts this program.
fn entry(client: Client, config: &Path) -> anyhow::Result<Map<String, Value>> {
    let this = std::env::current_exe().context("this program's path is not known")?;
    let is_this = |folder: PathBuf| {
        let real = folder.join(NAME).canonicalize();
        real.is_ok_and(|real| this.canonicalize().is_ok_and(|this| this == real))
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Other people use a project's file, too. Desktop programs have a different `PATH`.
    let is_shared = client.writes_to_project();
    let command = if is_shared && std::env::split_paths(&path).any(is_this) {
        NAME.to_owned()
    } else {
        this.display().to_string()
    };
    let args = if is_shared {
        // A file named with `--config` would be used before the person accepts it.
        json!(["serve"])
    } else {
        json!(["serve", "--config", config.display().to_string()])
    };
    let mut entry = Map::new();
    if let Some((key, kind)) = client.entry_kind() {
        entry.insert(key.to_owned(), kind.into());
    }
    entry.insert("command".to_owned(), command.into());
    entry.insert("args".to_owned(), args);
    Ok(entry)
}

/// The path of the file to write, for people, with the path that links lead to.
///
/// The author of a repository decides where a link in it leads. So a link out of the project is an
/// error for a project's file; links of a person's own files are followed.
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
            "{shown} leads out of this project, to {}; nothing was written; remove the link",
            folders.shown(&real)
        );
    }
    if real == file {
        return Ok(shown);
    }
    Ok(format!("{shown} ({})", folders.shown(&real)))
}

/// Writes what `change` makes of a file's text, and creates the file and its folder if necessary.
///
/// The old file is kept as the first of `FILE.bak`, `FILE.bak2`, … that does not exist. If the
/// file `is_private`, other users can read neither of them.
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
    let backup = backups
        .find(is_free)
        .context("there is no free name for a backup")?;
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
