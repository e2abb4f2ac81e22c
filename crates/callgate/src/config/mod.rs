//! Finds, reads and checks the configuration file.
//!
//! `find` looks for `callgate.json` or `callgate.jsonc`, else `.mcp.json`, in a folder and the
//! folders above it. Such a file may be another author's: [`Loaded::effects`] are what it can do,
//! and a [`TrustStore`] knows whether a person has accepted them. [`Config::load`] reads a file that
//! the person has named: JSON with comments and trailing commas. Every mistake in a file is reported
//! with its line and column. No message and no `Debug` output holds a value of `env` or `headers`.
//!
//! The keys are the fields of `File`. A new key is a field with a doc comment, and its use:
//! the schema for editors (`schema`) and the tables of `docs/configuration.md` are made from it.

mod asking;
mod deserializer;
mod edit;
mod env_file;
mod error;
mod expand;
mod fields;
mod file;
mod find;
#[doc(hidden)]
pub mod foreign;
mod itself;
mod models;
mod permissions;
mod schema;
mod section;
mod server;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod tools;
mod tree;
mod trust;
mod units;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use callgate_policy::flow::FlowRules;
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde::de::IgnoredAny;

use error::shown;
use expand::Variables;
use fields::FolderPath;
use file::File;
use tree::{SYNTAX, Tree};

pub use edit::{EditError, allow, rewrite, takes_rules};
pub use env_file::EnvFile;
pub use error::{ConfigError, LeftOut, Problem};
pub use fields::Size;
pub use file::{CacheConfig, CheckConfig, ExtractLimits};
pub use find::{MAX_BYTES, find, is_found_name, own};
pub use models::{BaseUrl, EmbeddingsConfig, ModelsConfig, SmallModelConfig};
pub use permissions::Permissions;
pub use schema::schema;
pub use section::{Section, ServeSection};
pub use settings::Config;
pub use store::{Bodies, StoreConfig};
pub use tools::{ToolSetting, ToolSettings, Visibility};
pub use trust::{Effects, Review, TrustStore};
pub use units::{MIN_MEMORY, ValueError, parse_bytes, parse_duration, parse_memory};

/// A file with its section `serve`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Loaded<S> {
    /// The settings of the library.
    pub config: Config,
    /// The section `serve`.
    pub serve: S,
    /// The effects of the file: programs that it starts, values that it reads or sends, checks that
    /// it loosens. If the file was found, the caller asks a person to accept them before it uses
    /// the configuration.
    pub effects: Effects,
}

impl Config {
    /// Reads a file, with variables from this process's environment. The section `serve` is not
    /// read.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], which holds every problem found in the file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_with(path, |name| std::env::var(name).ok())
    }

    /// Reads a file, with variables from `environment`. The section `serve` is not read.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], which holds every problem found in the file.
    pub fn load_with(
        path: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        Loaded::<IgnoredAny>::load(path, environment).map(|loaded| loaded.config)
    }
}

impl<S: ServeSection> Loaded<S> {
    /// Reads a file with its section `serve`, and with variables from `environment`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], which holds every problem found in the file.
    pub fn load(
        path: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let (empty, shown, text) = open(path)?;
        let (mut config, serve) = read(&text, &empty, &shown, &environment)?;
        config.sha256 = trust::hash(&text);
        Ok(Self {
            config,
            serve,
            effects: Effects::of(&text),
        })
    }

    /// The place and the effects of a file. Its settings are not read.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the file cannot be read.
    pub fn outline(path: &Path) -> Result<Self, ConfigError> {
        let (config, _, text) = open(path)?;
        Ok(Self {
            config,
            serve: S::default(),
            effects: Effects::of(&text),
        })
    }
}

/// A configuration with the place of a file and no settings, the file's path in messages, and its
/// text.
fn open(path: &Path) -> Result<(Config, PathBuf, String), ConfigError> {
    let named = std::path::absolute(path).map_err(|error| ConfigError::unread(path, error))?;
    let shown = shown(&named);
    let unread = |error| ConfigError::unread(&shown, error);
    let bytes = callgate_files::read(&named, MAX_BYTES).map_err(unread)?;
    let text = String::from_utf8(bytes).map_err(|_| ConfigError::file(&shown, "not UTF-8 text"))?;
    let name = named.file_name().unwrap_or_default();
    // One folder has many paths (`sub/..`, links), and rules compare texts.
    let folder = foreign::project_folder(&named);
    let folder = folder.canonicalize().map_err(unread)?;
    let inner = named.parent().unwrap_or(&named);
    let empty = Config {
        path: inner.canonicalize().map_err(unread)?.join(name),
        folder,
        ..Config::default()
    };
    Ok((empty, shown, text))
}

/// Reads the text of a file, whose place `empty` has.
fn read<S: ServeSection>(
    text: &str,
    empty: &Config,
    shown: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(Config, S), ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let failed = |at, message: &str| Problem::at(shown, text, at, message);
    let mut parsed = parse_to_ast(text, &CollectOptions::default(), &SYNTAX).map_err(|error| {
        let message = format!("not valid JSON: {}", error.kind());
        failed(error.range().start, &message)
    })?;
    let is_shared = foreign::is_shared(&empty.path);
    let shared = parsed.value.as_mut().filter(|_| is_shared);
    let passed_over = shared.map(|root| foreign::adopt(root, &empty.path));
    let passed_over = passed_over.into_iter().flatten();
    let warnings = passed_over.map(|(at, message)| failed(at, &message));
    let Some(root @ Value::Object(_)) = &parsed.value else {
        let message = "the file must hold one object, such as { \"mcpServers\": {} }";
        return Err(failed(0, message).into());
    };
    let mut tree = Tree {
        text,
        root,
        shown,
        variables: Variables {
            environment,
            file: EnvFile::default(),
            folder: &empty.folder,
        },
        is_shared,
        problems: RefCell::default(),
        warnings: RefCell::new(warnings.collect()),
        lost: RefCell::default(),
        unset: RefCell::default(),
        left_out: RefCell::default(),
        used: RefCell::default(),
    };
    tree.variables.file = env_file(&tree).unwrap_or_default();
    let (mut config, mut serve) = read_sections::<S>(&tree, empty);
    serve.complete(&Section {
        tree: &tree,
        config: &config,
    });
    let (problems, mut warnings) = (tree.problems.into_inner(), tree.warnings.into_inner());
    warnings.sort_by_key(|warning| warning.place);
    warnings.dedup();
    config.warnings = warnings;
    match ConfigError::of(problems) {
        None => Ok((config, serve)),
        Some(error) => Err(error),
    }
}

/// Reads the sections. A section or key with a mistake, which is reported, keeps its default.
fn read_sections<S: ServeSection>(tree: &Tree<'_>, empty: &Config) -> (Config, S) {
    server::leave_out_unused(tree);
    let file: File<S> = tree.read(tree.root).unwrap_or_default();
    let mut flows = FlowRules::default();
    file.flows.into_iter().for_each(|rule| flows.push(rule));
    for (pattern, labels) in file.tool_labels {
        for label in labels.0 {
            flows.label_tools(pattern.0.clone(), &label);
        }
    }
    let mut config = Config {
        permissions: file.permissions.rules,
        allow_unmatched: file.permissions.allow_unmatched,
        limits: file.limits.into(),
        jail: file.sandbox,
        check: file.check,
        ledger: file.ledger.map(Into::into),
        store: file.store.settings(),
        asking: file.asking,
        cache: file.cache,
        models: file.models,
        search: file.search.by,
        extract: file.extract,
        roots: file.roots,
        flows,
        tools: file.tools,
        ..empty.clone()
    };
    let [ours, theirs] = server::SECTIONS;
    server::add(tree, ours, file.mcp_servers, &mut config);
    server::add(tree, theirs, file.servers, &mut config);
    if let Some(theirs) = tree.find(&[theirs])
        && !tree.is_shared
        && tree.find(&[ours]).is_some()
    {
        let message = "the file has both \"mcpServers\" and \"servers\"; put all servers under one \
                       of them";
        tree.error(theirs.range().start, message);
    }
    config.left_out = tree.left_out_servers();
    for LeftOut { server: lost, .. } in &config.left_out {
        config.servers.retain(|server| server.name != *lost);
        config.disabled.retain(|name| name != lost);
        config.disabled.push(lost.clone());
    }
    models::complete(tree, &mut config.models);
    asking::complete(tree, &mut config.asking);
    (config, file.serve)
}

/// Reads the file that `envFile` names. Mistakes are reported.
fn env_file(tree: &Tree<'_>) -> Option<EnvFile> {
    let value = tree.find(&["envFile"])?;
    let FolderPath(mut path) = tree.read(value)?;
    if let Ok(below) = path.strip_prefix(tree.variables.folder.join("~")) {
        let Some(home) = (tree.variables.environment)("HOME") else {
            tree.wrong(value, "begins with \"~/\", and HOME is not set; set it");
            return None;
        };
        path = Path::new(&home).join(below);
    }
    let file = EnvFile::read(&path);
    file.inspect_err(|error| tree.wrong(value, &format!(": {error}")))
        .ok()
}
