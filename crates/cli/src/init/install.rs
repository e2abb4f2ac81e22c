//! Writes Callgate into another client's configuration.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use callgate::config::MAX_BYTES;
use callgate::config::foreign;
use callgate::config::foreign::{ForeignError, OffSwitch};
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::mask::Mask;
use super::program::Program;
use super::taken::Taken;
use super::{finish, untrusted};
use crate::args::InitArgs;
use crate::clients::{ALLOW_FIRST, Client, Folders};
use crate::dialogue::Dialogue;
use crate::print;
use crate::setup::Sources;
use crate::trust::FoundConfig;

/// The name of the entry.
const NAME: &str = "callgate";

/// The settings of Codex's entry without which `codex exec` refuses the calls or begins without it.
const CODEX: [&str; 2] = ["default_tools_approval_mode", "required"];

/// A change of a client's file.
enum Change {
    Entry(Map<String, Value>),
    Off(OffSwitch, Vec<String>),
}

/// The changes of one file.
struct Edit {
    file: PathBuf,
    /// The path for people.
    shown: String,
    changes: Vec<Change>,
}

impl Edit {
    fn new(file: PathBuf, shown: String, change: Change) -> Self {
        Self {
            file,
            shown,
            changes: vec![change],
        }
    }

    /// The text with all changes.
    fn apply(&self, client: Client, text: &str) -> Result<String, ForeignError> {
        let (file, key) = (&self.file, client.servers_key());
        let mut text = text.to_owned();
        for change in &self.changes {
            text = match change {
                Change::Entry(entry) => foreign::patch(file, &text, key, NAME, entry),
                Change::Off(switch, names) => foreign::turn_off(file, &text, key, *switch, names),
            }?;
        }
        Ok(text)
    }

    /// The difference that the changes make, without secrets. `None` if there is none.
    fn difference(&self, client: Client) -> anyhow::Result<Option<String>> {
        let shown = &self.shown;
        let old = read(&self.file, shown)?;
        let new = self.apply(client, &old);
        let new = new.with_context(|| format!("{shown} cannot be changed"))?;
        if old == new {
            return Ok(None);
        }
        let ours = self.changes.iter().map(|change| match change {
            Change::Entry(entry) => Value::Object(entry.clone()),
            Change::Off(_, names) => json!(names),
        });
        let settings = foreign::value(&self.file, &old).unwrap_or_default();
        let mask = Mask::new(&settings, &ours.collect());
        let (old, new) = (mask.apply(&old), mask.apply(&new));
        let diff = TextDiff::from_lines(&old, &new);
        Ok(Some(diff.unified_diff().header(shown, shown).to_string()))
    }
}

/// Adds the entry to the client's file, once the person agrees to the difference.
pub async fn execute(
    sources: &Sources,
    folders: &Folders,
    client: Client,
    args: &InitArgs,
) -> anyhow::Result<u8> {
    let config = served_config(sources, client).await?;
    let file = folders.target(client);
    let file = file.context("neither HOME nor XDG_CONFIG_HOME is set; set one of them")?;
    let shown = target(folders, &file, client.writes_to_project())?;
    let program = Program::of(client);
    let mut entry = entry(client, &program, &config);
    let taken = Taken::find(folders, client, &config);
    let warn = |warnings: Vec<String>| {
        let advice = program.advice.map(str::to_owned);
        let notes = advice
            .into_iter()
            .chain(untrusted::warning(folders, client));
        for note in warnings.into_iter().chain(notes) {
            print::warning(&note);
        }
    };
    if foreign::is_yaml(&file) {
        paste(folders, client, &shown, &entry)?;
        warn(taken.warnings(false));
        return Ok(0);
    }
    let mut dialogue = Dialogue::begin(args.yes || args.print).await?;
    let mut warnings = codex(client, &file, &shown, &mut entry, &mut dialogue).await?;
    let mut edits = vec![Edit::new(file, shown.clone(), Change::Entry(entry))];
    let is_off = turn_off(folders, client, &taken, &mut edits, &mut dialogue).await?;
    warnings.extend(taken.warnings(is_off));
    let mut differences = String::new();
    let mut changed = Vec::new();
    for edit in edits {
        if let Some(difference) = edit.difference(client)? {
            differences += &difference;
            changed.push(edit);
        }
    }
    if changed.is_empty() || args.print {
        drop(dialogue);
        if changed.is_empty() {
            differences = format!("{shown} has Callgate already\n");
        }
        print::out(&differences)?;
        warn(warnings);
        return Ok(0);
    }
    let files: Vec<&str> = changed.iter().map(|edit| edit.shown.as_str()).collect();
    let files = files.join(" and ");
    agree_to(&differences, &files, dialogue, args).await?;
    for edit in &changed {
        let change = |old: &str| edit.apply(client, old).map_err(|error| error.to_string());
        write(folders, &edit.file, change)?;
    }
    print::out(&format!("wrote {files}\n"))?;
    warn(warnings);
    let next = format!("restart {}, which then has Callgate's tools", client.name());
    finish(sources, &next, &next).await
}

/// Offers the settings of [`CODEX`]. A written entry keeps those that it has.
async fn codex(
    client: Client,
    file: &Path,
    shown: &str,
    entry: &mut Map<String, Value>,
    dialogue: &mut Option<Dialogue>,
) -> anyhow::Result<Vec<String>> {
    if client != Client::Codex {
        return Ok(Vec::new());
    }
    let settings = foreign::value(file, &read(file, shown)?).unwrap_or_default();
    let now = &settings[client.servers_key()][NAME];
    for key in CODEX {
        if let Some(value) = now.get(key) {
            entry.insert(key.to_owned(), value.clone());
        }
    }
    if CODEX.iter().all(|key| entry.contains_key(*key)) {
        return Ok(Vec::new());
    }
    let agrees = match dialogue {
        Some(dialogue) => {
            let text = "┌ Callgate asks by its own rules. But Codex asks about each of its calls, \
                        too,\n│ `codex exec` refuses them all, and begins without a server that is \
                        slow,\n│ unless the entry has default_tools_approval_mode = \"approve\" and \
                        required = true\n";
            dialogue.show(text).await?;
            dialogue.agrees("write these two settings, too?").await?
        }
        None => false,
    };
    if !agrees {
        return Ok(vec![
            "`codex exec` refuses the calls of Callgate unless its entry has \
             default_tools_approval_mode = \"approve\"; see docs/clients.md"
                .to_owned(),
        ]);
    }
    for (key, value) in CODEX.into_iter().zip([json!("approve"), json!(true)]) {
        entry.entry(key).or_insert(value);
    }
    Ok(Vec::new())
}

/// Asks whether servers that Callgate has taken over are turned off, and adds that to the edits.
/// Returns whether they are.
async fn turn_off(
    folders: &Folders,
    client: Client,
    taken: &Taken,
    edits: &mut Vec<Edit>,
    dialogue: &mut Option<Dialogue>,
) -> anyhow::Result<bool> {
    let offs = taken.offs(folders);
    let Some(dialogue) = dialogue.as_mut().filter(|_| !offs.is_empty()) else {
        return Ok(false);
    };
    let text = format!(
        "┌ {} still has servers that Callgate has too: {}\n│ Their calls would pass Callgate by.\n",
        client.name(),
        taken.switchable()
    );
    dialogue.show(&text).await?;
    if !dialogue.agrees("turn them off there?").await? {
        return Ok(false);
    }
    for off in offs {
        let change = Change::Off(off.switch, off.names);
        if let Some(edit) = edits.iter_mut().find(|edit| edit.file == off.file) {
            edit.changes.push(change);
            continue;
        }
        let shown = target(folders, &off.file, folders.is_of_project(&off.file))?;
        edits.push(Edit::new(off.file, shown, change));
    }
    Ok(true)
}

/// Prints the entry for a file in YAML, whose comments a change would lose.
fn paste(
    folders: &Folders,
    client: Client,
    shown: &str,
    entry: &Map<String, Value>,
) -> anyhow::Result<()> {
    if folders.has_callgate(client) {
        return print::out(&format!("{shown} has Callgate already\n"));
    }
    let mut members = String::new();
    for (index, (key, value)) in entry.iter().enumerate() {
        let mark = if index == 0 { '-' } else { ' ' };
        members += &format!("  {mark} {key}: {value}\n");
    }
    let (name, key) = (client.name(), client.servers_key());
    let says = client.cannot_ask();
    let says = says.map(|says| format!("\n{says}; {ALLOW_FIRST}\n"));
    print::out(&format!(
        "init does not change YAML, so add this to {shown}, and restart {name}:\n\n\
         {key}:\n{members}{}",
        says.unwrap_or_default()
    ))
}

/// The text of a client's file, which is empty if there is no file.
fn read(file: &Path, shown: &str) -> anyhow::Result<String> {
    match callgate_files::read_text(file, MAX_BYTES) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        text => text.with_context(|| format!("{shown} cannot be read")),
    }
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
        None => match FoundConfig::look(sources)? {
            Some(found) => Some(found.accepted(sources).await?.config.path),
            None => None,
        },
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
async fn agree_to(
    diff: &str,
    files: &str,
    dialogue: Option<Dialogue>,
    args: &InitArgs,
) -> anyhow::Result<()> {
    match dialogue {
        Some(mut dialogue) => {
            dialogue.show(diff).await?;
            let question = format!("write this to {files}?");
            dialogue.agree_or_end(&question).await
        }
        None if args.yes => print::out(diff),
        None => bail!("there is no terminal to ask at; --yes writes it, --print only shows it"),
    }
}

/// The entry that starts this program.
fn entry(client: Client, program: &Program, config: &Path) -> Map<String, Value> {
    let config = config.display().to_string();
    let args = ["serve", "--config", &*config];
    // A file named with `--config` would be used before the person accepts it.
    let count = if client.writes_to_project() { 1 } else { 3 };
    client.entry(NAME, &program.command, &args[..count])
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
/// The old file is kept as the first of `FILE.bak`, `FILE.bak2`, … that does not exist.
pub fn write(
    folders: &Folders,
    file: &Path,
    change: impl FnOnce(&str) -> Result<String, String>,
) -> anyhow::Result<()> {
    let shown = folders.shown(file);
    if file.symlink_metadata().is_err() {
        let text = change("").map_err(anyhow::Error::msg)?;
        let made = std::fs::create_dir_all(file.parent().unwrap_or(file));
        // A configuration that others may write is refused.
        let written = made.and_then(|()| create(file, 0o644, text.as_bytes()));
        written.with_context(|| format!("{shown} cannot be written"))?;
        return crate::trust::accept(file, &text);
    }
    let name = file.display();
    let numbered = (2..).map(|number| format!("{name}.bak{number}"));
    let mut backups = std::iter::once(format!("{name}.bak")).chain(numbered);
    let backup = backups.find(|backup| Path::new(backup).symlink_metadata().is_err());
    let backup = PathBuf::from(backup.context("there is no free name for a backup")?);
    let kept = folders.shown(&backup);
    let old = callgate_files::read_with_metadata(file, MAX_BYTES);
    let (old, metadata) = old.with_context(|| format!("{shown} cannot be read"))?;
    let written = create(&backup, metadata.mode() & 0o777, &old);
    written.with_context(|| format!("{kept} cannot be written"))?;
    callgate::config::rewrite(file, change).map_err(anyhow::Error::msg)?;
    print::out(&format!("the old {shown} is kept as {kept}\n"))
}

/// Writes a file that does not exist.
fn create(file: &Path, mode: u32, bytes: &[u8]) -> std::io::Result<()> {
    let mut new = OpenOptions::new();
    let mut new = new.write(true).create_new(true).mode(mode).open(file)?;
    new.write_all(bytes)
}
