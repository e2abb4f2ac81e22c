//! Trust in configuration files that were found, not named.
//!
//! A file in the current folder or above may come from another author, such as the one of a cloned
//! repository. A person accepts it once, by its [`Effects`]. [`TrustStore`] keeps which effects of
//! which file were accepted. A change that only tightens needs no new acceptance.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use callgate_auth::xdg_folder;
use jsonc_parser::ast::Value;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::find::{MAX_BYTES, is_found_name};
use super::tree::SYNTAX;

/// Keys that cannot start, read, send or loosen anything. `*` stands for one key, and each path for
/// all that is below it.
pub(super) const INERT: &[&str] = &[
    "$schema",
    "asking.expires",
    "cache.enabled",
    "cache.ttl",
    "limits",
    "mcpServers.*.callTimeout",
    "mcpServers.*.description",
    "mcpServers.*.idle",
    "mcpServers.*.maxCallTime",
    "mcpServers.*.startTimeout",
    "serve.answerTime",
    "serve.context",
    "serve.structuredReport",
    "serve.toolsTtl",
    "serve.wait",
    "tools.*.alwaysOn",
    "tools.*.keywords",
];

/// A setting: the keys that lead to it, and its value as JSON.
type Setting = (Vec<String>, String);

/// The settings of a file that can start, read, send or loosen something.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Effects(BTreeSet<Setting>);

impl Effects {
    /// The effects of a file's text. A text that is not JSON has no effects, and is never loaded.
    pub fn of(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut effects = Self::default();
        let parsed = parse_to_ast(text, &CollectOptions::default(), &SYNTAX);
        if let Some(root) = parsed.ok().and_then(|parsed| parsed.value) {
            effects.add(&mut Vec::new(), root);
        }
        effects
    }

    fn add(&mut self, keys: &mut Vec<String>, value: Value<'_>) {
        if INERT.iter().any(|inert| matches(inert, keys)) {
            return;
        }
        match value {
            Value::Object(object) if !object.properties.is_empty() => {
                for member in object.properties {
                    let key = match member.name.as_str() {
                        "servers" if keys.is_empty() => "mcpServers",
                        key => key,
                    };
                    keys.push(key.to_owned());
                    self.add(keys, member.value);
                    keys.pop();
                }
            }
            Value::Array(rules) if is_rule(keys) => {
                for rule in rules.elements {
                    self.insert(keys, rule);
                }
            }
            value => self.insert(keys, value),
        }
    }

    fn insert(&mut self, keys: &[String], value: Value<'_>) {
        let value = serde_json::Value::from(value).to_string();
        self.0.insert((keys.to_vec(), value));
    }

    /// Each setting in a line, rules that ask or deny left out.
    pub fn lines(&self) -> Vec<String> {
        let settings = self.0.iter().filter(|(keys, _)| !is_restraint(keys));
        settings
            .map(|(keys, value)| format!("{}: {value}", path(keys)))
            .collect()
    }

    /// The names in `${NAME}` references of the settings, sorted.
    pub fn variables(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (_, value) in &self.0 {
            for reference in value.split("${").skip(1) {
                let reference = reference.strip_prefix("env:").unwrap_or(reference);
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = reference.find(|c: char| !is_name(c));
                let name = reference.get(..end.unwrap_or(reference.len()));
                let folder = [
                    "workspaceFolder",
                    "workspaceFolderBasename",
                    "pathSeparator",
                ];
                let name = name.filter(|it| !it.is_empty() && !folder.contains(it));
                names.extend(name.map(str::to_owned));
            }
        }
        names
    }

    /// True if the settings cannot be read without another file, which `envFile` names.
    pub fn has_env_file(&self) -> bool {
        self.0.iter().any(|(keys, _)| words(keys) == ["envFile"])
    }

    fn accepted(&self) -> BTreeSet<(Vec<String>, String)> {
        let hashed = self
            .0
            .iter()
            .map(|(keys, value)| (keys.clone(), hash(value)));
        hashed.collect()
    }

    /// The differences from accepted settings that do more than tighten, each in a line.
    fn loosened(&self, accepted: &BTreeSet<Setting>) -> Vec<String> {
        let is_accepted =
            |(keys, value): &&Setting| accepted.contains(&(keys.clone(), hash(value)));
        let is_left = |keys: &[String]| self.0.iter().any(|(left, _)| left.starts_with(keys));
        let added = self.0.iter().filter(|it| !is_accepted(it));
        let added = added.filter(|(keys, value)| !adding_tightens(keys, value));
        let mut lines: Vec<String> = added
            .map(|(keys, value)| {
                let was = accepted.iter().any(|(old, _)| old == keys);
                let sign = if was && !is_rule(keys) { '~' } else { '+' };
                format!("{sign} {}: {value}", path(keys))
            })
            .collect();
        let now = self.accepted();
        for (keys, hashed) in accepted.difference(&now) {
            let tightens = match words(keys)[..] {
                ["permissions", "allow"] | ["mcpServers", _, "trusted"] => true,
                ["permissions", "ask"] => {
                    let denied = vec!["permissions".to_owned(), "deny".to_owned()];
                    now.contains(&(denied, hashed.clone()))
                }
                ["mcpServers", _, "disabled"] => *hashed == hash("false"),
                _ => false,
            };
            let is_server_gone = matches!(words(keys)[..], ["mcpServers", _, ..]
                if keys.get(..2).is_some_and(|server| !is_left(server)));
            // A changed value is among those added.
            let is_changed = !is_rule(keys) && self.0.iter().any(|(left, _)| left == keys);
            if !tightens && !is_server_gone && !is_changed && !keys.is_empty() {
                let what = if is_rule(keys) {
                    "a rule is removed"
                } else {
                    "removed"
                };
                lines.push(format!("- {}: {what}", path(keys)));
            }
        }
        lines
    }
}

impl std::fmt::Debug for Effects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values may be secrets.
        f.debug_list()
            .entries(self.0.iter().map(|(keys, _)| path(keys)))
            .finish()
    }
}

/// True if keys are those of a pattern, or below them.
fn matches(pattern: &str, keys: &[String]) -> bool {
    let mut keys = keys.iter();
    pattern
        .split('.')
        .all(|word| keys.next().is_some_and(|key| word == "*" || word == key))
}

fn words(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

/// True for the lists whose rules are settings of their own.
fn is_rule(keys: &[String]) -> bool {
    matches!(words(keys)[..], ["permissions", "allow" | "ask" | "deny"])
}

fn is_restraint(keys: &[String]) -> bool {
    is_rule(keys) && !keys.ends_with(&["allow".to_owned()])
}

fn adding_tightens(keys: &[String], value: &str) -> bool {
    match words(keys)[..] {
        [] | ["permissions" | "mcpServers"] => value == "{}",
        ["permissions", "ask" | "deny"] => true,
        ["mcpServers", _, "disabled"] => value == "true",
        ["mcpServers", _, "trusted"] => value == "false",
        _ => false,
    }
}

/// Keys as text: `mcpServers.git.command`; a key with other characters is quoted.
fn path(keys: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    let written = keys.iter().map(|key| {
        let plain = !key.is_empty() && key.chars().all(is_plain);
        if plain {
            key.clone()
        } else {
            serde_json::Value::from(key.as_str()).to_string()
        }
    });
    written.collect::<Vec<_>>().join(".")
}

/// SHA-256 in hexadecimal.
pub(super) fn hash(value: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(value))
}

/// The reason why a person has to look at a found file before it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Review {
    /// The file was never accepted.
    New,
    /// The file was accepted, and these settings have changed since: `+` added, `~` changed, `-`
    /// removed.
    Changed(Vec<String>),
}

/// The record of an accepted file.
#[derive(Serialize, Deserialize)]
struct Accepted {
    /// For people who look into the folder.
    file: String,
    /// Settings with hashes of their values: there is no second copy of a secret.
    settings: BTreeSet<Setting>,
}

/// The files that a person has accepted, in a folder of theirs.
#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
}

impl TrustStore {
    /// The store of this user: `callgate/trusted` in `$XDG_STATE_HOME`, which is `~/.local/state`
    /// when it is not set. `None` if `HOME` is not set either.
    pub fn of_user() -> Option<Self> {
        let folder = xdg_folder("XDG_STATE_HOME", ".local/state")?;
        Some(Self::at(folder.join("trusted")))
    }

    /// The store in this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The reason why the file may not be used yet; `None` if these effects are accepted. An
    /// unreadable record counts as missing.
    pub fn review(&self, file: &Path, effects: &Effects) -> Option<Review> {
        let Some(accepted) = self.accepted(file) else {
            return Some(Review::New);
        };
        let lines = effects.loosened(&accepted);
        (!lines.is_empty()).then_some(Review::Changed(lines))
    }

    fn accepted(&self, file: &Path) -> Option<BTreeSet<Setting>> {
        let text = callgate_files::read_text(&self.record(file).ok()?, MAX_BYTES).ok()?;
        let accepted: Accepted = serde_json::from_str(&text).ok()?;
        Some(accepted.settings)
    }

    /// Records that a person accepts the effects of a file.
    ///
    /// # Errors
    ///
    /// An error of the file system.
    pub fn accept(&self, file: &Path, effects: &Effects) -> Result<(), Error> {
        let record = self.record(file)?;
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder)?;
        let accepted = Accepted {
            file: file.display().to_string(),
            settings: effects.accepted(),
        };
        let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
        new.write_all(serde_json::to_string(&accepted)?.as_bytes())?;
        new.persist(record)?;
        Ok(())
    }

    /// Forgets that a file was accepted. False if it was not.
    ///
    /// # Errors
    ///
    /// An error of the file system.
    pub fn forget(&self, file: &Path) -> Result<bool, Error> {
        match std::fs::remove_file(self.record(file)?) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// The record of a file. The file is known by its folder's real path and its name.
    fn record(&self, file: &Path) -> Result<PathBuf, Error> {
        let folder = std::path::absolute(file)?;
        let folder = folder.parent().unwrap_or(&folder).canonicalize()?;
        let real = folder.join(file.file_name().unwrap_or_default());
        let name = hash(real.as_os_str().as_bytes());
        Ok(self.folder.join(name).with_extension("json"))
    }
}

/// Accepts the new text of a file that Callgate itself has changed, if the old one was accepted.
pub(super) fn carry_over(file: &Path, old: &str, new: &str) -> Result<(), Error> {
    match TrustStore::of_user() {
        Some(store) if is_found_name(file) => match store.review(file, &Effects::of(old)) {
            None => store.accept(file, &Effects::of(new)),
            Some(_) => Ok(()),
        },
        _ => Ok(()),
    }
}
