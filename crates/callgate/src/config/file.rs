//! The sections of `callgate.json` as serde structs, and the settings that they become.
//!
//! The doc comment of a key is its description in the schema and in `docs/configuration.md`. If
//! it has a default, it ends with `Default: …`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use callgate_gate::LedgerOptions;
use callgate_policy::flow::FlowRule;
use callgate_sandbox::{JailLayer, JailOptions, Limits};
use callgate_servers::Root;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny};

use super::fields::{self, FolderPath, Labels, PatternKey, Size, Switch};
use super::models::ModelsConfig;
use super::permissions::Permissions;
use super::server::ServerKeys;
use super::store::StoreConfig;
use super::tools::ToolSettings;
use crate::asking::AskingOptions;
use crate::choices::{CheckMode, SearchBy};

/// Configuration of Callgate.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "callgate.json", bound = "S: JsonSchema + Default")]
pub(super) struct File<S> {
    /// The schema that an editor checks this file with. Callgate does not read it.
    #[serde(rename = "$schema")]
    #[schemars(with = "String")]
    _schema: IgnoredAny,
    /// The MCP servers, by name.
    #[schemars(with = "BTreeMap<String, ServerKeys>")]
    pub(super) mcp_servers: IndexMap<String, ServerKeys>,
    /// The name that VS Code has for `mcpServers`.
    #[schemars(skip)]
    pub(super) servers: IndexMap<String, ServerKeys>,
    /// A file whose lines `NAME=value` give values for `${NAME}` in this file. Variables of the
    /// environment win. It must be yours, and readable by you alone. Relative paths start at the
    /// folder of this file, and `~/` at your home folder; `${NAME}` is replaced. Flag:
    /// `--env-file FILE`.
    // It is read before the rest of the file.
    #[serde(rename = "envFile")]
    #[schemars(with = "FolderPath")]
    _env_file: IgnoredAny,
    /// Rules over calls: a call is denied, asked about or allowed.
    pub(super) permissions: Permissions,
    /// Rules over data that goes from one server to another within a script.
    pub(super) flows: Vec<FlowRule>,
    /// Labels of tools' results, by patterns over the names of functions.
    #[schemars(with = "BTreeMap<String, Labels>")]
    pub(super) tool_labels: IndexMap<PatternKey, Labels>,
    /// Limits of a run.
    pub(super) limits: LimitKeys,
    /// Folders to work in, for servers that ask. Relative paths start at the folder of this file;
    /// `${NAME}` is replaced.
    #[serde(deserialize_with = "fields::roots")]
    #[schemars(with = "Vec<FolderPath>")]
    pub(super) roots: Vec<Root>,
    /// Visibility and keywords of tools, by patterns over the names of functions.
    pub(super) tools: ToolSettings,
    /// Kernel layers around the processes that run scripts.
    #[serde(deserialize_with = "jail")]
    #[schemars(with = "Sandbox")]
    pub(super) sandbox: JailOptions,
    /// Type check of scripts.
    pub(super) check: CheckConfig,
    /// The file that every call is written to.
    pub(super) ledger: Option<Ledger>,
    /// The record of runs and calls that `callgate runs` shows: `false` for none, an object for its
    /// settings. Default: `true`.
    pub(super) store: Switch<StoreConfig>,
    /// Ways and limits of questions about calls.
    pub(super) asking: AskingOptions,
    /// Cache of tool lists and of vectors for search.
    pub(super) cache: CacheConfig,
    /// Endpoints of models for search and for `mcp.extract`.
    pub(super) models: ModelsConfig,
    /// Search for tools.
    pub(super) search: Search,
    /// Limits of `mcp.extract` in one run.
    pub(super) extract: ExtractLimits,
    /// `callgate serve`.
    pub(super) serve: S,
}

/// `sandbox`: the kernel layers around the workers that run scripts.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Sandbox {
    /// `kernel` uses every kernel layer that the machine has, `process` none. Default: `kernel`.
    level: Level,
    /// The layers without which no script runs; none with `process`. Default:
    /// `["landlock", "seccomp"]`.
    require: Option<Vec<JailLayer>>,
}

/// `level` of `sandbox`.
#[derive(Deserialize, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    #[default]
    Kernel,
    Process,
}

/// Reads `sandbox`.
fn jail<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JailOptions, D::Error> {
    let Sandbox { level, require } = Sandbox::deserialize(deserializer)?;
    let mut jail = if level == Level::Process {
        JailOptions::process_only()
    } else {
        JailOptions::default()
    };
    let is_empty = require.as_ref().is_none_or(Vec::is_empty);
    if level == Level::Process && !is_empty {
        return Err(D::Error::custom(
            "has \"level\": \"process\", which uses no kernel layer, so \"require\" must be empty",
        ));
    }
    jail.required = require.unwrap_or(jail.required);
    Ok(jail)
}

/// The limits of `mcp.extract` in one run. Past a limit, calls throw an
/// `McpExtractError` whose reason is `limit` or `loop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ExtractLimits {
    /// Calls of `mcp.extract`. Default: `20`.
    pub calls: u64,
    /// Calls with the same schema; extract an array at once instead. Default: `5`.
    pub same_schema: u64,
    /// JSON text of all values together, without schemas. Default: `1MiB`.
    #[serde(rename = "input", deserialize_with = "Size::deserialize")]
    #[schemars(with = "Size")]
    pub input_bytes: u64,
    /// All answers of the model together, also rejected ones. Default: `1MiB`.
    #[serde(rename = "output", deserialize_with = "Size::deserialize")]
    #[schemars(with = "Size")]
    pub output_bytes: u64,
}

impl Default for ExtractLimits {
    fn default() -> Self {
        Self {
            calls: 20,
            same_schema: 5,
            input_bytes: 1 << 20,
            output_bytes: 1 << 20,
        }
    }
}

/// `search`.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Search {
    /// The ranking if a request names none: `auto` is the best that is configured, `hybrid` and
    /// `model` need `models`. Default: `auto`.
    #[serde(deserialize_with = "way")]
    #[schemars(with = "String", extend("enum" = ["auto", "words", "hybrid", "model"]))]
    pub(super) by: SearchBy,
}

/// Reads a way of searching that suits every query.
fn way<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SearchBy, D::Error> {
    const WAYS: [&str; 4] = ["auto", "words", "hybrid", "model"];
    let name = String::deserialize(deserializer)?;
    let is_named = |(way, _): &(&str, SearchBy)| *way == name && WAYS.contains(way);
    let named = SearchBy::ALL.into_iter().find(is_named);
    named
        .map(|(_, way)| way)
        .ok_or_else(|| D::Error::unknown_variant(&name, &WAYS))
}

/// The cache of the lists of servers and of vectors of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CacheConfig {
    /// Keep lists and vectors at all. Default: `true`.
    pub enabled: bool,
    /// The folder; it is made if it does not exist, and closed to other users. Default: `callgate`
    /// in `$XDG_CACHE_HOME`, else in `~/.cache`.
    #[serde(deserialize_with = "fields::path")]
    pub path: Option<PathBuf>,
    /// The time to live of a tool list if its server sets none. An older list is used only while
    /// its server is down. Default: `1h`.
    pub ttl: Option<Duration>,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            path: None,
            ttl: None,
        }
    }
}

impl CacheConfig {
    /// A cache in this folder.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            ..Self::default()
        }
    }
}

/// `check`: the type check; `None` where the file has no value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CheckConfig {
    /// The effect of type errors. Flag: `--check`. Default: `on`.
    pub mode: Option<CheckMode>,
    /// TypeScript 7: its program or its folder. Default: looked for.
    #[serde(deserialize_with = "fields::path")]
    pub typescript: Option<PathBuf>,
}

/// `ledger`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Ledger {
    /// The file. Flag: `--ledger FILE`.
    path: FolderPath,
    /// Write arguments and results, not only their hashes. Flag: `--ledger-bodies`. Default:
    /// `false`.
    #[serde(default)]
    bodies: bool,
    /// The size from which on no call is made, or with `keep` the file is moved aside. Default:
    /// `1GiB`.
    #[serde(default, deserialize_with = "Size::deserialize")]
    #[schemars(with = "Option<Size>")]
    max_size: Option<u64>,
    /// Full files that are kept beside it as `FILE.1` to `FILE.N`. Default: none.
    #[serde(default, deserialize_with = "kept")]
    #[schemars(range(max = 1_000))]
    keep: Option<u32>,
    /// Force each line to the disk (`fdatasync`). Default: `false`.
    #[serde(default)]
    sync: bool,
}

/// The maximum of `keep`: each time a ledger is full, every kept file is renamed.
const MAX_KEPT_LEDGERS: u32 = 1_000;

fn kept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let keep = u32::deserialize(deserializer)?;
    if keep > MAX_KEPT_LEDGERS {
        return Err(D::Error::custom(format_args!(
            "must be at most {MAX_KEPT_LEDGERS}"
        )));
    }
    Ok(Some(keep))
}

impl From<Ledger> for (PathBuf, LedgerOptions) {
    fn from(ledger: Ledger) -> Self {
        let mut options = LedgerOptions::default();
        options.bodies = ledger.bodies;
        options.max_bytes = ledger.max_size.unwrap_or(options.max_bytes);
        options.keep = ledger.keep.unwrap_or(options.keep);
        options.sync = ledger.sync;
        (ledger.path.0, options)
    }
}

/// `limits`; `None` where the file has no value.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Limits")]
pub(super) struct LimitKeys {
    /// Computing; waiting for tools, answers and timers is not counted. Flag: `--timeout`. Default:
    /// `10s`.
    timeout: Option<Duration>,
    /// Waiting for timers alone, since the last call. Default: `5m`.
    wait_timeout: Option<Duration>,
    /// The time of the whole run, except while every call under way waits for approval. Default:
    /// `1h`.
    run_timeout: Option<Duration>,
    /// The memory of the heap and of array buffers, each; at least 16MiB. Flag: `--memory`. Default: `128MiB`.
    #[serde(deserialize_with = "Size::deserialize_memory")]
    #[schemars(with = "Option<Size>")]
    memory: Option<u64>,
    /// Console output, and the returned value, each; `callgate run` has its own limit. Flag of
    /// `serve`: `--output`. Default: `16KiB`.
    #[serde(deserialize_with = "Size::deserialize")]
    #[schemars(with = "Option<Size>")]
    output: Option<u64>,
    /// Lines of console output. Default: one for every 8 bytes of `output`.
    output_lines: Option<u64>,
    /// One tool result; other messages of a server may have 1 MiB in any case. Default: `64MiB`.
    #[serde(deserialize_with = "Size::deserialize")]
    #[schemars(with = "Option<Size>")]
    result: Option<u64>,
    /// Calls at one time; all together have at most 64 MiB of arguments. Default: `1000`.
    calls_in_flight: Option<u32>,
}

/// The default size of a result.
const RESULT_BYTES: u64 = 64 << 20;

impl From<LimitKeys> for Limits {
    fn from(keys: LimitKeys) -> Self {
        let mut limits = Self::default();
        limits.script_time = keys.timeout.unwrap_or(limits.script_time);
        limits.wait_time = keys.wait_timeout.unwrap_or(limits.wait_time);
        limits.run_time = keys.run_timeout.unwrap_or(limits.run_time);
        limits.heap_bytes = keys.memory.unwrap_or(limits.heap_bytes);
        limits.buffer_bytes = keys.memory.unwrap_or(limits.buffer_bytes);
        if let Some(output) = keys.output {
            limits.keep_output(output);
        }
        limits.output_lines = keys.output_lines.unwrap_or(limits.output_lines);
        limits.reply_bytes = keys.result.unwrap_or(RESULT_BYTES);
        limits.calls_in_flight = keys.calls_in_flight.unwrap_or(limits.calls_in_flight);
        limits
    }
}
