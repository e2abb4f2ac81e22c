//! Finds, reads and checks the configuration file.
//!
//! [`find`] looks for `callgate.json`, else `.mcp.json`, in a folder and the folders above it.
//! Such a file may be another author's: [`Config::load_found`] reads it together with its
//! [`Effects`], which a [`TrustStore`] knows as accepted or not. [`Config::load`] reads a file that
//! the person has named: JSON with comments and trailing commas. Every mistake in a
//! file is reported with its line and column. No message and no `Debug` output holds a value of
//! `env` or `headers`.

mod deserializer;
mod edit;
mod error;
mod expand;
mod fields;
mod file;
mod find;
mod foreign;
mod itself;
mod models;
mod permissions;
mod serve;
mod server;
#[cfg(test)]
mod tests;
mod tools;
mod tree;
mod trust;
mod units;
mod users;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use callgate_auth::OAuth;
use callgate_gate::LedgerOptions;
use callgate_policy::Rules;
use callgate_policy::flow::FlowRules;
use callgate_sandbox::{JailOptions, Limits};
use callgate_servers::{Root, ServerSpec, Transport};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::settings::SearchBy;
use crate::skill::Skill;
use error::shown;
use expand::Variables;
use file::RESULT_BYTES;
use tree::{SYNTAX, Tree};

pub use edit::{allow, rewrite, takes_rules};
pub use error::{ConfigError, LeftOut, Problem};
pub use file::{CacheConfig, CheckConfig, ExtractLimits};
pub use find::{MAX_BYTES, find, is_found_name, own};
pub use models::{EmbeddingsConfig, ModelsConfig, SmallModelConfig};
pub use serve::{
    ALGORITHMS, ContextConfig, HttpConfig, LEAST_TOKEN, RateConfig, ResourceConfig, ServeConfig,
    TOKEN_OF_ONE, ToolMode, address, host, origin, parse_share,
};
pub use tools::{ToolSetting, ToolSettings, Visibility};
pub use trust::{Effects, Review, TrustStore};
pub use units::{LEAST_MEMORY, parse_bytes, parse_duration, parse_memory};
pub use users::{Role, UsersConfig, subject_user, token_user};

/// The contents of one configuration file. What serde skips is not a key of the file, and what is
/// read `later` needs the file's tree.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Config {
    #[serde(rename = "$schema")]
    _schema: IgnoredAny,
    /// The file, in its folder.
    #[serde(skip)]
    pub path: PathBuf,
    /// The folder of the project, by its real path, without links, however the file was named:
    /// the file's own, or the one above that of an editor, such as `.vscode`. Relative paths in
    /// the file start here.
    #[serde(skip)]
    pub folder: PathBuf,
    /// `mcpServers`: the servers to start, in the order of the file.
    #[serde(rename = "mcpServers", deserialize_with = "fields::later")]
    pub servers: Vec<ServerSpec>,
    #[serde(rename = "servers")]
    _servers: IgnoredAny,
    /// Names of the servers that the file disables, and of those in `left_out`.
    #[serde(skip)]
    pub disabled: Vec<String>,
    /// The servers whose entries name unset variables, or have mistakes in a file of another client.
    #[serde(skip)]
    pub left_out: Vec<LeftOut>,
    /// Names of the servers that the roles of a user leave out; see [`Config::for_user`].
    #[serde(skip)]
    pub withheld: Vec<String>,
    /// The rules of `permissions`.
    #[serde(deserialize_with = "fields::later")]
    pub permissions: Rules,
    /// `allowUnmatched` of `permissions`: rules that deny may match no tool.
    #[serde(skip)]
    pub allow_unmatched: bool,
    /// `limits`: the limits of a run.
    #[serde(deserialize_with = "file::limits")]
    pub limits: Limits,
    /// `sandbox`: the kernel layers around the workers that run scripts.
    #[serde(rename = "sandbox", deserialize_with = "file::jail")]
    pub jail: JailOptions,
    /// `check`: the type check of scripts.
    pub check: CheckConfig,
    /// `ledger`: the file that every call is written to, as an absolute path. Without one, calls
    /// are in the report of a run alone.
    #[serde(deserialize_with = "file::ledger")]
    pub ledger: Option<(PathBuf, LedgerOptions)>,
    /// `cache`: where the lists of servers are kept.
    pub cache: CacheConfig,
    /// `models`: endpoints of models, and their keys.
    pub models: ModelsConfig,
    /// `search`: how tools are searched where a request does not say it.
    #[serde(deserialize_with = "file::search")]
    pub search: SearchBy,
    /// `extract`: the limits of `mcp.extract`.
    pub extract: ExtractLimits,
    /// `roots`: the folders to work in, for servers that ask.
    #[serde(deserialize_with = "fields::roots")]
    pub roots: Vec<Root>,
    /// `serve`: how `callgate serve` serves, to whom, and what its clients see.
    pub serve: ServeConfig,
    /// The rules of `flows`, and the labels of servers and tools.
    #[serde(deserialize_with = "fields::later")]
    pub flows: FlowRules,
    #[serde(rename = "toolLabels")]
    _tool_labels: IgnoredAny,
    /// `tools`: visibility and keywords of tools.
    #[serde(deserialize_with = "fields::later")]
    pub tools: ToolSettings,
    /// The skills to work with. They are not in the file: the caller adds them.
    #[serde(skip)]
    pub skills: Vec<Skill>,
    /// Warnings, such as keys that only other clients know.
    #[serde(skip)]
    pub warnings: Vec<Problem>,
}

impl Config {
    /// Reads a file, with variables from this process's environment.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], which holds every problem found in the file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_with(path, |name| std::env::var(name).ok())
    }

    /// Reads a file that was found, not named, and its effects. Whether a person has accepted
    /// these is for the caller to ask, before anything is done with the configuration.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], which holds every problem found in the file.
    pub fn load_found(path: &Path) -> Result<(Self, Effects), ConfigError> {
        let (place, text) = open(path)?;
        let config = read(&text, &place, &|name| std::env::var(name).ok())?;
        Ok((config, Effects::of(&text)))
    }

    /// Reads a file, with variables from `environment`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], which holds every problem found in the file.
    pub fn load_with(
        path: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let (place, text) = open(path)?;
        read(&text, &place, &environment)
    }

    /// The logins of the servers over HTTP, for settings that are not in the file.
    pub fn logins_mut(&mut self) -> impl Iterator<Item = &mut OAuth> {
        let servers = self.servers.iter_mut();
        servers.filter_map(|server| match &mut server.transport {
            Transport::Http(http) => http.oauth.as_mut(),
            Transport::Stdio(_) => None,
        })
    }

    /// The names of the servers, also of disabled ones.
    fn server_names(&self) -> impl Iterator<Item = &str> {
        let enabled = self.servers.iter().map(|server| &server.name);
        enabled.chain(&self.disabled).map(String::as_str)
    }

    /// The configuration of one user: the servers and rules of these roles, and logins, kept
    /// definitions and ledger lines under the user's name, so that no other user's are used;
    /// without a name where there is only one user. `None` if the roles give no server. Roles that
    /// the file does not have give nothing; without roles in the file, every user has all servers.
    pub fn for_user<'a>(
        &self,
        user: Option<&str>,
        roles: impl IntoIterator<Item = &'a str>,
    ) -> Option<Self> {
        let mut config = self.clone();
        if let Some(known) = &self.serve.users.roles {
            let roles = roles.into_iter();
            let roles: Vec<&Role> = roles.filter_map(|role| known.get(role)).collect();
            let gives = |server: &str| {
                let mut given = roles.iter().flat_map(|role| &role.servers);
                given.any(|name| name == "*" || name == server)
            };
            let names = self.server_names().filter(|server| !gives(server));
            config.withheld = names.map(str::to_owned).collect();
            config.servers.retain(|server| gives(&server.name));
            config.disabled.retain(|server| gives(server));
            if config.servers.is_empty() {
                return None;
            }
            for role in roles {
                for rule in role.permissions.iter() {
                    config.permissions.push(rule.clone());
                }
                config.tools.add(&role.tools);
            }
        }
        if let Some(user) = user {
            for oauth in config.logins_mut() {
                oauth.user = Some(user.to_owned());
                // Users see the flags, and not where the configuration is.
                oauth.login_flags = users::login_flags(user);
            }
        }
        if let Some((_, options)) = &mut config.ledger {
            options.user = user.map(str::to_owned);
        }
        Some(config)
    }
}

/// The place of a file.
struct Place {
    path: PathBuf,
    /// Its folder, by the real path.
    folder: PathBuf,
    /// The path in messages.
    shown: PathBuf,
}

/// The place and the text of a file.
fn open(path: &Path) -> Result<(Place, String), ConfigError> {
    let named = std::path::absolute(path).map_err(|error| ConfigError::unread(path, error))?;
    let shown = shown(&named);
    let unread = |error| ConfigError::unread(&shown, error);
    let bytes = callgate_files::read(&named, MAX_BYTES).map_err(|error| match error.kind() {
        std::io::ErrorKind::IsADirectory => {
            let file = shown.join(find::NAMES[0]);
            let message = format!("it is a folder; name a file, such as {}", file.display());
            ConfigError::unread(&shown, message)
        }
        _ => unread(error),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| ConfigError::file(&shown, "not UTF-8 text"))?;
    let name = named.file_name().unwrap_or_default();
    // One folder has many paths (`sub/..`, links), and rules compare texts.
    let folder = foreign::project_folder(&named);
    let folder = folder.canonicalize().map_err(unread)?;
    let inner = named.parent().unwrap_or(&named);
    let place = Place {
        path: inner.canonicalize().map_err(unread)?.join(name),
        folder,
        shown,
    };
    Ok((place, text))
}

/// Reads the text of a file.
fn read(
    text: &str,
    place: &Place,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let failed = |at, message: &str| Problem::at(&place.shown, text, at, message);
    let mut parsed = parse_to_ast(text, &CollectOptions::default(), &SYNTAX).map_err(|error| {
        let message = format!("not valid JSON: {}", error.kind());
        failed(error.range().start, &message)
    })?;
    let is_shared = foreign::is_shared(&place.path);
    let shared = parsed.value.as_mut().filter(|_| is_shared);
    let passed_over = shared.map(|root| foreign::adopt(root, &place.path));
    let passed_over = passed_over.into_iter().flatten();
    let warnings = passed_over.map(|(at, message)| failed(at, &message));
    let Some(root @ Value::Object(_)) = &parsed.value else {
        let message = "the file must hold one object, such as { \"mcpServers\": {} }";
        return Err(failed(0, message).into());
    };
    let tree = Tree {
        text,
        root,
        shown: &place.shown,
        variables: Variables {
            environment,
            folder: &place.folder,
        },
        is_shared,
        problems: RefCell::default(),
        warnings: RefCell::new(warnings.collect()),
        lost: RefCell::default(),
        unset: RefCell::default(),
        left_out: RefCell::default(),
        used: RefCell::default(),
    };
    let config = sections(&tree, place);
    let (problems, mut warnings) = (tree.problems.into_inner(), tree.warnings.into_inner());
    warnings.sort_by_key(|warning| warning.place);
    warnings.dedup();
    match ConfigError::of(problems) {
        None => Ok(Config { warnings, ..config }),
        Some(error) => Err(error),
    }
}

/// Reads the sections. What has mistakes, which are reported, keeps its default.
fn sections(tree: &Tree<'_>, place: &Place) -> Config {
    let mut config: Config = tree.read(tree.root).unwrap_or_default();
    config.path.clone_from(&place.path);
    config.folder.clone_from(&place.folder);
    for under in ["mcpServers", "servers"] {
        if let Some(section) = tree.find(&[under]) {
            server::read(tree, section, &mut config);
        }
    }
    config.left_out = tree.left_out_servers();
    for LeftOut { server: lost, .. } in &config.left_out {
        config.servers.retain(|server| server.name != *lost);
        config.disabled.retain(|name| name != lost);
        config.disabled.push(lost.clone());
    }
    if let (false, Some(_), Some(both)) = (
        tree.is_shared,
        tree.find(&["mcpServers"]),
        tree.find(&["servers"]),
    ) {
        let message = "the file has both \"mcpServers\" and \"servers\"; put all servers under one \
                       of them";
        tree.error(both.range().start, message);
    }
    if let Some(section) = tree.find(&["permissions"]) {
        config.allow_unmatched = permissions::read(tree, section, &mut config.permissions);
    }
    permissions::read_flows(tree, &mut config.flows);
    if let Some(section) = tree.find(&["tools"]) {
        tools::read(tree, section, &mut config.tools);
    }
    if tree.find(&["limits"]).is_none() {
        config.limits.reply_bytes = RESULT_BYTES;
    }
    models::read(tree, &mut config.models, config.search);
    if let Some(tokens) = tree.find(&["serve", "http", "bearer"]) {
        config.serve.http.bearer = serve::bearer(tree, tokens);
    }
    let mut users = std::mem::take(&mut config.serve.users);
    users::read(tree, &mut users, &config.server_names().collect::<Vec<_>>());
    config.serve.users = users;
    config
}
