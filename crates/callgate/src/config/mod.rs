//! Finds, reads and checks the configuration file: servers, permissions,
//! limits, the type check and the ledger.
//!
//! [`find`] looks for `callgate.json`, else `.mcp.json`, in a folder and the
//! folders above it; [`Config::load`] reads one file. The text is JSON with
//! comments and trailing commas. Servers stand under `mcpServers`, or under
//! `servers` as VS Code writes them. Every mistake in a file is reported at
//! once, each with its line and column, and no message or `Debug` output ever
//! holds a value of `env` or `headers`.

mod amend;
mod cache;
mod connect;
mod error;
mod expand;
mod find;
mod flows;
mod http;
mod insert;
mod keys;
mod models;
mod oauth;
mod permissions;
mod reader;
mod resource;
mod roots;
mod sandbox;
mod sections;
mod serve;
mod server;
mod source;
#[cfg(test)]
mod tests;
mod tools;
mod units;
mod users;

use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_auth::OAuth;
use callgate_broker::{JournalOptions, Root, ServerSpec, Transport};
use callgate_policy::Rules;
use callgate_policy::flow::FlowRules;
use callgate_sandbox::{JailOptions, Limits};

use crate::settings::{CheckMode, ExtractLimits, SearchBy};
use crate::skill::Skill;
use crate::tool_settings::ToolSettings;

pub use amend::{AmendError, allow, takes_rules};
pub use cache::CacheConfig;
pub use error::{ConfigError, ConfigErrorKind, Problem};
pub use find::find;
pub use http::{HttpConfig, LEAST_TOKEN, RateConfig, TOKEN_OF_ONE, address, host, origin};
pub use models::{EmbeddingsConfig, ModelsConfig, SmallModelConfig};
pub use resource::{ALGORITHMS, ResourceConfig};
pub use serve::{NoShare, ServeConfig, ToolMode, UnknownToolMode, parse_share};
pub use units::{LEAST_MEMORY, UnitError, parse_bytes, parse_duration, parse_memory};
pub use users::{Role, UsersConfig, subject_user, token_user};

/// What one configuration file says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The file, in its folder.
    pub path: PathBuf,
    /// The file's folder, by its real path: without links, however the file was named.
    /// Relative paths in the file start here.
    pub folder: PathBuf,
    /// The servers to start, in the order of the file.
    pub servers: Vec<ServerSpec>,
    /// Names of the servers that the file disables.
    pub disabled: Vec<String>,
    /// The rules of `permissions`.
    pub permissions: Rules,
    /// The rules of `flows`, and the labels of servers and tools.
    pub flows: FlowRules,
    /// The limits the file sets.
    pub limits: LimitsConfig,
    /// `sandbox`: the kernel layers around the workers that run scripts.
    pub jail: JailOptions,
    /// How scripts are type-checked.
    pub check: CheckConfig,
    /// Where calls are written down.
    pub ledger: LedgerConfig,
    /// `serve`, `http`: how MCP is served over HTTP.
    pub http: HttpConfig,
    /// `serve`, `users`: who may use what over HTTP.
    pub users: UsersConfig,
    /// `models`: endpoints of models, and their keys.
    pub models: ModelsConfig,
    /// `search`: how tools are looked for where nobody says how.
    pub search: SearchBy,
    /// `extract`: the limits of `mcp.extract`.
    pub extract: ExtractLimits,
    /// `roots`: the folders that servers are told to work in, if they ask.
    pub roots: Vec<Root>,
    /// What the clients of `callgate serve` see.
    pub serve: ServeConfig,
    /// What is set for tools one by one.
    pub tools: ToolSettings,
    /// `cache`: where what servers list is kept.
    pub cache: CacheConfig,
    /// The skills to work with. No file says them: whoever loads it adds them.
    pub skills: Vec<Skill>,
    /// What was read over, such as keys that only other clients know.
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

    /// Reads a file, with variables from `environment`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], which holds every problem found in the file.
    pub fn load_with(
        path: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let named = std::path::absolute(path)
            .map_err(|error| ConfigError::file(path, ConfigErrorKind::Read, error))?;
        let shown = shown(&named);
        let unread = |error| ConfigError::file(&shown, ConfigErrorKind::Read, error);
        let bytes = std::fs::read(&named).map_err(|error| match error.kind() {
            std::io::ErrorKind::IsADirectory => {
                let file = shown.join(find::NAMES[0]);
                let message = format!("it is a folder; name a file, such as {}", file.display());
                ConfigError::file(&shown, ConfigErrorKind::Read, message)
            }
            _ => unread(error),
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| ConfigError::file(&shown, ConfigErrorKind::Syntax, "not UTF-8 text"))?;
        let named_folder = named.parent().unwrap_or(&named);
        // One folder has many paths (`sub/..`, links), and rules compare texts.
        let folder = named_folder.canonicalize().map_err(unread)?;
        let alias = roots::plain(named_folder);
        let is_alias = alias != folder && alias.canonicalize().is_ok_and(|real| real == folder);
        let place = Place {
            path: folder.join(named.file_name().unwrap_or_default()),
            folder,
            alias: is_alias.then_some(alias),
            shown,
        };
        sections::read(&text, &place, &environment)
    }

    /// How to log in at the servers over HTTP where that is not switched off, for what no
    /// file says of it.
    pub fn logins_mut(&mut self) -> impl Iterator<Item = &mut OAuth> {
        let servers = self.servers.iter_mut();
        servers.filter_map(|server| match &mut server.transport {
            Transport::Http(http) => http.oauth.as_mut(),
            Transport::Stdio(_) => None,
        })
    }
}

/// Where a file is.
struct Place {
    path: PathBuf,
    /// Its folder, by the real path.
    folder: PathBuf,
    /// Another path of the folder, by which the file was named.
    alias: Option<PathBuf>,
    /// The path in messages.
    shown: PathBuf,
}

/// The path in messages: relative where the file lies in the current folder.
fn shown(path: &Path) -> PathBuf {
    let current = std::env::current_dir().ok();
    match current.and_then(|current| path.strip_prefix(current).ok()) {
        Some(relative) if relative.as_os_str().is_empty() => PathBuf::from("."),
        Some(relative) => relative.to_owned(),
        None => path.to_owned(),
    }
}

/// What a file says of the type check; `None` where it leaves the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckConfig {
    /// `mode`: what the check decides.
    pub mode: Option<CheckMode>,
    /// `typescript`: the native TypeScript 7 to use, as an absolute path.
    pub typescript: Option<PathBuf>,
}

/// What a file says of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerConfig {
    /// `path`: the file that every call is written to, as an absolute path.
    /// `None` keeps the ledger in memory, for the report of a run.
    pub path: Option<PathBuf>,
    /// `bodies`: whether arguments and results are written too. Default: false.
    pub bodies: bool,
    /// Whose calls they are: `user` in each line. Not in the file; see
    /// [`Config::for_user`].
    pub user: Option<String>,
    /// `maxSize`: the size in bytes from which on the file takes no more
    /// calls, and none is made, or, with `keep`, it is moved aside. `None`
    /// leaves the default.
    pub max_bytes: Option<u64>,
    /// `keep`: how many full files are kept beside the one that is written to.
    /// `None` leaves the default.
    pub keep: Option<u32>,
}

impl LedgerConfig {
    /// The file and what it is opened with; `None` where there is none.
    pub fn file(&self) -> Option<(PathBuf, JournalOptions)> {
        let mut options = JournalOptions::default();
        options.bodies = self.bodies;
        options.user.clone_from(&self.user);
        options.max_bytes = self.max_bytes.unwrap_or(options.max_bytes);
        options.keep = self.keep.unwrap_or(options.keep);
        Some((self.path.clone()?, options))
    }
}

/// The limits that a file sets; `None` where it leaves the default. What each
/// limit means, and its default, is documented on the limits of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// `timeout`: time the script itself may run, waiting not counted.
    pub timeout: Option<Duration>,
    /// `runTimeout`: time the whole run may take, waiting counted.
    pub run_timeout: Option<Duration>,
    /// `memory`: size of the script's heap, and of its array buffers, in bytes
    /// each.
    pub memory: Option<u64>,
    /// `output`: console output, and returned value, kept for the report, in
    /// bytes each.
    pub output: Option<u64>,
    /// `outputLines`: console output kept for the report, in lines; a line for
    /// every 8 bytes of `output` if only that is set.
    pub output_lines: Option<u64>,
    /// `result`: size of one tool result, in bytes.
    pub result: Option<u64>,
    /// `callsInFlight`: tool calls that may wait for an answer at one time.
    pub calls_in_flight: Option<u64>,
}

/// What a result may have where the file does not say: as much as a message of a
/// server may ([`callgate_broker::ServerSpec`]).
const RESULT_BYTES: u64 = 64 << 20;

impl LimitsConfig {
    /// The limits of a run: what the file sets, over the defaults.
    #[must_use]
    pub fn over_defaults(&self) -> Limits {
        let mut limits = Limits::default();
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        limits.script_time = self.timeout.unwrap_or(limits.script_time);
        limits.run_time = self.run_timeout.unwrap_or(limits.run_time);
        limits.heap_bytes = self.memory.unwrap_or(limits.heap_bytes);
        limits.buffer_bytes = self.memory.unwrap_or(limits.buffer_bytes);
        if let Some(output) = self.output {
            limits.keep_output(output);
        }
        limits.output_lines = self.output_lines.unwrap_or(limits.output_lines);
        limits.reply_bytes = self.result.unwrap_or(RESULT_BYTES);
        limits.calls_in_flight = self
            .calls_in_flight
            .map(count)
            .unwrap_or(limits.calls_in_flight);
        limits
    }
}
