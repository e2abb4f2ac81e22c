//! `callgate trust`: a configuration file that was found is used only after a person accepts it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use callgate::config::{Config, Effects, Review, TrustStore};
use callgate_serve::Waits;
use callgate_text::{one_line, quoted, shell_word, wrapped};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::clients::{Client, Folders};
use crate::dialogue::Dialogue;
use crate::print;
use crate::setup::{self, Loaded, NO_CONFIGURATION, Sources};
use crate::terminal::is_attended;

/// Lines of a question: more would scroll the first ones off the screen.
const MAX_LINES: usize = 200;

const NO_STATE: &str = "neither XDG_STATE_HOME nor HOME is set, so an acceptance cannot be stored";
const NOT_STORED: &str = "the acceptance cannot be stored";

/// The error for a file that was found and is not accepted.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotAccepted(String);

/// The nearest configuration file, in the current folder or above.
pub fn path_here() -> anyhow::Result<Option<PathBuf>> {
    let folder = std::env::current_dir().context("could not read the current folder")?;
    Ok(callgate::config::find(&folder)?)
}

/// A configuration that was found in the current folder or above.
pub struct FoundConfig {
    /// Without settings if the file is not accepted and names an environment file.
    loaded: Loaded,
    /// The reason why the file needs acceptance; `None` if it is accepted.
    review: Option<Review>,
}

impl FoundConfig {
    /// Reads the nearest configuration file.
    pub fn look(sources: &Sources) -> anyhow::Result<Option<Self>> {
        let path = path_here()?;
        path.map(|path| Self::read(&path, sources)).transpose()
    }

    fn read(path: &Path, sources: &Sources) -> anyhow::Result<Self> {
        let mut loaded = Loaded::outline(path)?;
        let review = match TrustStore::of_user() {
            Some(store) => store.review(&loaded.config.path, &loaded.effects),
            None => Some(Review::New),
        };
        // A file that is not accepted must not say which other files are read.
        if review.is_none() || !loaded.effects.has_env_file() {
            let reviewed = loaded.effects;
            loaded = setup::read(path, sources)?;
            if loaded.effects != reviewed {
                bail!("{} was changed just now; try again", path.display());
            }
        }
        if path.ends_with(".mcp.json") {
            turn_off_refused(&mut loaded.config);
        }
        Ok(Self { loaded, review })
    }

    /// Returns the configuration if it is accepted, or if the person at the terminal accepts it now.
    pub async fn accepted(self, sources: &Sources) -> anyhow::Result<Loaded> {
        let Some(review) = &self.review else {
            return Ok(self.loaded);
        };
        if !is_attended() {
            bail!(NotAccepted(self.refusal(review)));
        }
        let path = &self.loaded.config.path;
        if !self.ask(review).await? {
            let path = path.display();
            bail!(NotAccepted(format!(
                "{path} is not accepted; nothing was started"
            )));
        }
        if !self.loaded.effects.has_env_file() {
            return Ok(self.loaded);
        }
        let again = Self::read(path, sources)?;
        match &again.review {
            Some(review) => bail!(NotAccepted(again.refusal(review))),
            None => Ok(again.loaded),
        }
    }

    fn refusal(&self, review: &Review) -> String {
        let path = self.loaded.config.path.display();
        let reason = match review {
            Review::Changed(_) => "has changed since you accepted it",
            _ => "was found, and you have not accepted it",
        };
        format!(
            "{path} {reason}, so nothing was started; review and accept it with `callgate \
             trust` at a terminal, or use it once with --config {}",
            shell_word(&path.to_string())
        )
    }

    /// Shows the settings, asks whether to accept them, and records the acceptance.
    async fn ask(&self, review: &Review) -> anyhow::Result<bool> {
        let store = TrustStore::of_user().context(NO_STATE)?;
        let path = one_line(&self.loaded.config.path.display().to_string(), usize::MAX);
        let (head, part, lines) = match review {
            Review::Changed(lines) => (
                "has changed since you accepted it",
                "its changes",
                lines.clone(),
            ),
            _ => (
                "is new here. It can do this as you",
                "its settings",
                self.loaded.effects.lines(),
            ),
        };
        if lines.len() > MAX_LINES {
            bail!(
                "{path} {head}: it has too many settings to show ({}); read the file, and use it \
                 with --config",
                lines.len()
            );
        }
        let names: Vec<String> = self.loaded.effects.variables().into_iter().collect();
        let dialogue = Dialogue::begin(false).await?;
        let mut dialogue = dialogue.context("there is no terminal to ask at")?;
        let columns = dialogue.columns();
        // A terminal breaks long rows wherever it is full, and the file's author may have meant that.
        let text = format!("┌ This file {head}:");
        let mut text = wrapped(&[text.as_str()], columns.unwrap_or(usize::MAX)) + "\n";
        text += &quoted(&path, columns);
        text += &format!("├ {part}:\n");
        for line in &lines {
            text += &quoted(&one_line(line, usize::MAX), columns);
        }
        if !names.is_empty() {
            let names = format!("it reads the variables {}", names.join(", "));
            text += &quoted(&one_line(&names, usize::MAX), columns);
        }
        dialogue.show(&text).await?;
        if !dialogue.agrees("accept it?").await? {
            return Ok(false);
        }
        store
            .accept(&self.loaded.config.path, &self.loaded.effects)
            .context(NOT_STORED)?;
        Ok(true)
    }
}

/// Loads the configuration of `serve` over stdio, which cannot ask at the terminal. `None` if the
/// file is not accepted yet.
pub fn load_unattended(sources: &Sources) -> anyhow::Result<Option<Loaded>> {
    let loaded = match &sources.config {
        Some(path) => setup::named(path, sources)?,
        None => {
            let found = FoundConfig::look(sources)?.context(NO_CONFIGURATION)?;
            if let Some(review) = &found.review {
                print::warning(&found.refusal(review));
                return Ok(None);
            }
            found.loaded
        }
    };
    let loaded = setup::with_flags(loaded, sources)?;
    setup::print_warnings(&loaded.config);
    Ok(Some(loaded))
}

/// Returns the configuration once a person accepts it elsewhere, and a function that checks for the
/// acceptance and returns a message for a model while it is missing.
pub fn when_accepted(sources: &Sources) -> (BoxFuture<'static, Loaded>, Waits) {
    let (sender, accepted) = oneshot::channel();
    let sender = Mutex::new(Some(sender));
    let sources = sources.clone();
    let waits = move || {
        let mut sender = sender.lock();
        if sender.is_none() {
            return None;
        }
        let loaded = match look_again(&sources) {
            Ok(loaded) => loaded,
            Err(reason) => return Some(reason),
        };
        setup::print_warnings(&loaded.config);
        if let Some(sender) = sender.take() {
            let _ = sender.send(loaded);
        }
        None
    };
    let loaded = async move {
        match accepted.await {
            Ok(loaded) => loaded,
            // The function was dropped with its session.
            Err(_) => std::future::pending().await,
        }
    };
    (loaded.boxed(), Arc::new(waits))
}

/// The configuration if it is accepted by now, else a message for a model.
fn look_again(sources: &Sources) -> Result<Loaded, String> {
    let unusable = |error: anyhow::Error| {
        format!("No tool can be used: the configuration has mistakes. Tell the user: {error:#}")
    };
    let found = FoundConfig::look(sources).and_then(|found| found.context(NO_CONFIGURATION));
    let FoundConfig { loaded, review } = found.map_err(unusable)?;
    if review.is_some() {
        let folder = loaded.config.folder.display().to_string();
        let file = loaded.config.path.file_name().unwrap_or_default();
        return Err(format!(
            "No tool can be used yet: the user has not accepted {} of this project. Tell the user: \
             run `callgate trust` in {}. Calls work as soon as that is done.",
            file.display(),
            shell_word(&folder)
        ));
    }
    setup::with_flags(loaded, sources).map_err(unusable)
}

/// Disables the servers that the person has rejected in Claude Code.
fn turn_off_refused(config: &mut Config) {
    let folders = Folders::of(config.folder.clone());
    let mut settings = Vec::new();
    for file in folders.files(Client::ClaudeCode) {
        match folders.sections(Client::ClaudeCode, &file) {
            Ok(sections) => settings.extend(sections),
            Err(error) => {
                let unread = format!("{}: {error:#}", folders.shown(&file));
                print::warning(&format!(
                    "{}; servers that it rejects are not disabled",
                    one_line(&unread, usize::MAX)
                ));
            }
        }
    }
    settings.retain(|section| section.project.is_none());
    let is_off = |name: &str| settings.iter().any(|it| it.is_off(name));
    let off = config.servers.extract_if(.., |it| is_off(&it.name));
    config.disabled.extend(off.map(|server| server.name));
}

/// Records the acceptance of a file that `init` has written or shown as a whole, if commands find
/// files of its name.
pub fn accept(file: &Path, text: &str) -> anyhow::Result<()> {
    match TrustStore::of_user() {
        Some(store) if callgate::config::is_found_name(file) => {
            store.accept(file, &Effects::of(text)).context(NOT_STORED)
        }
        _ => Ok(()),
    }
}

/// Accepts the file that is found here, or withdraws its acceptance. Returns the exit code.
pub async fn execute(sources: &Sources, forget: bool) -> anyhow::Result<u8> {
    if sources.config.is_some() {
        bail!("a file named with --config needs no acceptance");
    }
    let path = path_here()?.context(NO_CONFIGURATION)?;
    let shown = path.display();
    if forget {
        let store = TrustStore::of_user();
        let was = store.context(NO_STATE)?.forget(&path)?;
        let outcome = if was {
            "is forgotten"
        } else {
            "was not accepted"
        };
        print::out(&format!("{shown} {outcome}\n"))?;
        return Ok(0);
    }
    let found = FoundConfig::read(&path, sources)?;
    match found.review {
        None => print::out(&format!("{shown} is accepted already\n"))?,
        Some(_) => {
            found.accepted(sources).await?;
            print::out(&format!("{shown} is accepted\n"))?;
        }
    }
    Ok(0)
}
