//! `callgate trust`: configuration files that were found are used once a person has accepted them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use callgate::config::{Config, Effects, Review, TrustStore};
use callgate::present::{one_line, shell_word};
use callgate_serve::Waits;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::dialogue::Dialogue;
use crate::setup::{self, NO_CONFIGURATION, Sources};
use crate::terminal::is_attended;
use crate::{clients, print};

/// The most lines that a person is shown: more would scroll the first ones away.
const MAX_LINES: usize = 200;

/// The message where acceptances cannot be kept.
const NO_STATE: &str = "neither XDG_STATE_HOME nor HOME is set, so what you accept cannot be kept";

/// The found file is not accepted, so that nothing may be started.
#[derive(Debug)]
pub struct NotAccepted(String);

impl fmt::Display for NotAccepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotAccepted {}

/// The nearest file, in the current folder or above.
pub fn path_here() -> anyhow::Result<Option<PathBuf>> {
    let folder = std::env::current_dir().context("could not read the current folder")?;
    Ok(callgate::config::find(&folder)?)
}

/// A configuration that was found in the current folder or above.
pub struct Found {
    config: Config,
    effects: Effects,
    store: Option<TrustStore>,
}

impl Found {
    /// Looks for the nearest file, and reads it.
    pub fn look() -> anyhow::Result<Option<Self>> {
        path_here()?.map(|path| Self::read(&path)).transpose()
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let (mut config, effects) = Config::load_found(path)?;
        if path.ends_with(".mcp.json") {
            turn_off_refused(&mut config);
        }
        Ok(Self {
            config,
            effects,
            store: TrustStore::of_user(),
        })
    }

    /// The reason why the file may not be used yet; `None` if it is accepted.
    fn review(&self) -> Option<Review> {
        match &self.store {
            Some(store) => store.review(&self.config.path, &self.effects),
            None => Some(Review::New),
        }
    }

    /// The configuration, if it is accepted, or a person at the terminal accepts it now.
    pub async fn accepted(self) -> anyhow::Result<Config> {
        let Some(review) = self.review() else {
            return Ok(self.config);
        };
        if !is_attended() {
            bail!(NotAccepted(self.refusal(&review)));
        }
        if !self.ask(&review).await? {
            let path = self.config.path.display();
            bail!(NotAccepted(format!(
                "{path} is not accepted; nothing was started"
            )));
        }
        Ok(self.config)
    }

    /// The path of the nearest file, once it is accepted.
    pub async fn accepted_path() -> anyhow::Result<Option<PathBuf>> {
        match Self::look()? {
            Some(found) => Ok(Some(found.accepted().await?.path)),
            None => Ok(None),
        }
    }

    /// The configuration if it is accepted; else the reason, for a model to tell its user.
    fn without_asking(self) -> Result<Config, String> {
        if self.review().is_none() {
            return Ok(self.config);
        }
        let folder = self.config.folder.display().to_string();
        let file = self.config.path.file_name().unwrap_or_default();
        Err(format!(
            "No tool can be used yet: the user has not accepted {} of this project. Tell the user: \
             run `callgate trust` in {}. Calls work as soon as that is done.",
            file.display(),
            shell_word(&folder)
        ))
    }

    fn refusal(&self, review: &Review) -> String {
        let path = self.config.path.display();
        let fault = match review {
            Review::Changed(_) => "has changed since you accepted it",
            _ => "was found, and you have not accepted it",
        };
        format!(
            "{path} {fault}, so nothing was started; look at it and accept it with `callgate \
             trust` at a terminal, or use it once with --config {}",
            shell_word(&path.to_string())
        )
    }

    /// Shows the settings and asks. A yes is recorded.
    async fn ask(&self, review: &Review) -> anyhow::Result<bool> {
        let store = self.store.as_ref();
        let store = store.context(NO_STATE)?;
        let path = one_line(&self.config.path.display().to_string(), usize::MAX);
        let (head, lines) = match review {
            Review::Changed(lines) => ("has changed since you accepted it", lines.clone()),
            _ => ("is new here. It can do this as you", self.effects.lines()),
        };
        if lines.len() > MAX_LINES {
            bail!(
                "{path} {head}: {} settings are too many to show; read the file, and use it with \
                 --config",
                lines.len()
            );
        }
        let mut text = format!("┌ {path} {head}:\n");
        for line in &lines {
            text += &format!("│ {}\n", one_line(line, usize::MAX));
        }
        let variables = self.effects.variables();
        if !variables.is_empty() {
            let names: Vec<String> = variables.into_iter().collect();
            text += &format!("│ it reads the variables {}\n", names.join(", "));
        }
        let dialogue = Dialogue::begin(false).await?;
        let mut dialogue = dialogue.context("there is no terminal to ask at")?;
        dialogue.show(&text).await?;
        if !dialogue.agrees("accept it?").await? {
            return Ok(false);
        }
        store
            .accept(&self.config.path, &self.effects)
            .context("what you accept cannot be kept")?;
        Ok(true)
    }
}

/// The configuration of `serve` over stdio, which cannot ask: standard input is the client's.
pub enum Served {
    Ready(Box<Config>),
    /// Not accepted yet.
    Waiting,
}

impl Served {
    /// Loads the named file, or the nearest one.
    pub fn load(sources: &Sources) -> anyhow::Result<Self> {
        let config = match &sources.config {
            Some(path) => setup::named(path)?,
            None => {
                let found = Found::look()?.context(NO_CONFIGURATION)?;
                if let Some(review) = found.review() {
                    print::warning(&found.refusal(&review));
                    return Ok(Self::Waiting);
                }
                found.config
            }
        };
        let config = setup::with_skills(config, sources)?;
        setup::tell_warnings(&config);
        Ok(Self::Ready(Box::new(config)))
    }

    /// The configuration, if it is ready.
    pub fn config(&self) -> Option<&Config> {
        match self {
            Self::Ready(config) => Some(config),
            Self::Waiting => None,
        }
    }

    /// The configuration once it is accepted. The function looks again, and gives the reason while
    /// it is not.
    pub fn split(self, sources: &Sources) -> (BoxFuture<'static, Config>, Option<Waits>) {
        if let Self::Ready(config) = self {
            return (std::future::ready(*config).boxed(), None);
        }
        let (accepted, later) = oneshot::channel();
        let accepted = Mutex::new(Some(accepted));
        let sources = sources.clone();
        let waits = move || {
            let mut accepted = accepted.lock().unwrap_or_else(PoisonError::into_inner);
            if accepted.is_none() {
                return None;
            }
            let config = match look_again(&sources) {
                Ok(config) => config,
                Err(reason) => return Some(reason),
            };
            setup::tell_warnings(&config);
            if let Some(accepted) = accepted.take() {
                let _ = accepted.send(config);
            }
            None
        };
        let config = async move {
            match later.await {
                Ok(config) => config,
                // The function is gone, and with it the session.
                Err(_) => std::future::pending().await,
            }
        };
        (config.boxed(), Some(Arc::new(waits)))
    }
}

/// The configuration if it is accepted by now; else the reason, for a model.
fn look_again(sources: &Sources) -> Result<Config, String> {
    let unusable = |error: anyhow::Error| {
        format!("No tool can be used: the configuration has mistakes. Tell the user: {error:#}")
    };
    let found = Found::look().and_then(|found| found.context(NO_CONFIGURATION));
    let config = found.map_err(unusable)?.without_asking()?;
    setup::with_skills(config, sources).map_err(unusable)
}

/// Turns off the servers that the person has turned down in Claude Code.
fn turn_off_refused(config: &mut Config) {
    let (refused, unread) = clients::refused_in_claude_code(config.folder.clone());
    for unread in unread {
        let unread = one_line(&unread, usize::MAX);
        print::warning(&format!("{unread}; servers that it turns off are used"));
    }
    let servers = std::mem::take(&mut config.servers);
    for server in servers {
        if refused.contains(&server.name) {
            config.disabled.push(server.name);
        } else {
            config.servers.push(server);
        }
    }
}

/// Records the acceptance of a file that `init` has written or shown as a whole, if it is one that
/// is found.
pub fn accept(file: &Path, text: &str) -> anyhow::Result<()> {
    match TrustStore::of_user() {
        Some(store) if callgate::config::is_found_name(file) => store
            .accept(file, &Effects::of(text))
            .context("what you accept cannot be kept"),
        _ => Ok(()),
    }
}

/// Accepts the file that is found here, or forgets that it was accepted. Returns the exit code.
pub async fn execute(sources: &Sources, forget: bool) -> anyhow::Result<u8> {
    if sources.config.is_some() {
        bail!("a file named with --config is used once, and needs no acceptance");
    }
    let path = path_here()?.context(NO_CONFIGURATION)?;
    let shown = path.display();
    if forget {
        let store = TrustStore::of_user();
        let was = store.context(NO_STATE)?.forget(&path)?;
        let says = if was {
            "is forgotten"
        } else {
            "was not accepted"
        };
        print::out(&format!("{shown} {says}\n"))?;
        return Ok(0);
    }
    let found = Found::read(&path)?;
    match found.review() {
        None => print::out(&format!("{shown} is accepted already\n"))?,
        Some(_) => {
            found.accepted().await?;
            print::out(&format!("{shown} is accepted\n"))?;
        }
    }
    Ok(0)
}
