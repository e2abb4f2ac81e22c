//! The sections of `callgate.json` as serde structs, and the settings that they become.

use std::path::PathBuf;
use std::time::Duration;

use callgate_gate::LedgerOptions;
use callgate_sandbox::{JailLayer, JailOptions, Limits};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::fields;
use crate::settings::{CheckMode, SearchBy};

/// `sandbox`: the kernel layers around the workers that run scripts.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Sandbox {
    level: Level,
    require: Option<Vec<JailLayer>>,
}

/// `level` of `sandbox`.
#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Level {
    #[default]
    Kernel,
    Process,
}

/// Reads `sandbox`.
pub(super) fn jail<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JailOptions, D::Error> {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ExtractLimits {
    /// Calls of `mcp.extract`. Default: 20.
    pub calls: u64,
    /// Calls with the same schema; more are a loop that one call with an array replaces.
    /// Default: 5. Reason: `loop`.
    pub same_schema: u64,
    /// Bytes of JSON of all values together, without schemas. Default: 1 MiB.
    #[serde(rename = "input", deserialize_with = "fields::size")]
    pub input_bytes: u64,
    /// Bytes of all answers of the model together, also of rejected ones. Default: 1 MiB.
    #[serde(rename = "output", deserialize_with = "fields::size")]
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

/// Reads `search`.
pub(super) fn search<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SearchBy, D::Error> {
    #[derive(Deserialize, Default)]
    #[serde(deny_unknown_fields, default)]
    struct Search {
        #[serde(deserialize_with = "way")]
        by: SearchBy,
    }
    Search::deserialize(deserializer).map(|search| search.by)
}

/// A way of searching that suits every query.
fn way<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SearchBy, D::Error> {
    match SearchBy::deserialize(deserializer)? {
        SearchBy::Regex | SearchBy::Vectors => {
            let wanted = "must be \"auto\", \"words\", \"hybrid\" or \"model\"";
            Err(D::Error::custom(wanted))
        }
        by => Ok(by),
    }
}

/// The cache of the lists of servers and of vectors of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CacheConfig {
    /// `enabled`: lists and vectors are kept. Default: true.
    pub enabled: bool,
    /// `path`: the folder, as an absolute path; made if it does not exist, and closed to other
    /// users. Default: `callgate` in `$XDG_CACHE_HOME`, which is `~/.cache` when it is not set.
    #[serde(deserialize_with = "fields::path")]
    pub path: Option<PathBuf>,
    /// `ttl`: how long a list holds if its server does not say it. Default: 1 h. An older list
    /// is asked for again at the start, and serves only as long as its server is down.
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

/// `check`: the type check; `None` where the file leaves the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CheckConfig {
    /// `mode`: what the check decides.
    pub mode: Option<CheckMode>,
    /// `typescript`: the native TypeScript 7 to use, as an absolute path.
    #[serde(deserialize_with = "fields::path")]
    pub typescript: Option<PathBuf>,
}

/// `ledger`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Ledger {
    #[serde(deserialize_with = "fields::path")]
    path: Option<PathBuf>,
    #[serde(default)]
    bodies: bool,
    #[serde(default, deserialize_with = "fields::size")]
    max_size: Option<u64>,
    #[serde(default, deserialize_with = "kept")]
    keep: Option<u32>,
    #[serde(default)]
    sync: bool,
}

/// The most full ledgers that are kept: each time one is full, each is renamed.
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

/// Reads `ledger`.
pub(super) fn ledger<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<(PathBuf, LedgerOptions)>, D::Error> {
    let ledger = Ledger::deserialize(deserializer)?;
    let mut options = LedgerOptions::default();
    options.bodies = ledger.bodies;
    options.max_bytes = ledger.max_size.unwrap_or(options.max_bytes);
    options.keep = ledger.keep.unwrap_or(options.keep);
    options.sync = ledger.sync;
    Ok(ledger.path.map(|path| (path, options)))
}

/// `limits`; `None` where the file leaves the default.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct LimitKeys {
    timeout: Option<Duration>,
    run_timeout: Option<Duration>,
    #[serde(deserialize_with = "fields::memory")]
    memory: Option<u64>,
    #[serde(deserialize_with = "fields::size")]
    output: Option<u64>,
    output_lines: Option<u64>,
    #[serde(deserialize_with = "fields::size")]
    result: Option<u64>,
    calls_in_flight: Option<u32>,
}

/// The default size of a result: that of a server's message ([`callgate_servers::ServerSpec`]).
pub(super) const RESULT_BYTES: u64 = 64 << 20;

/// Reads `limits`.
pub(super) fn limits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Limits, D::Error> {
    let keys = LimitKeys::deserialize(deserializer)?;
    let mut limits = Limits::default();
    limits.script_time = keys.timeout.unwrap_or(limits.script_time);
    limits.run_time = keys.run_timeout.unwrap_or(limits.run_time);
    limits.heap_bytes = keys.memory.unwrap_or(limits.heap_bytes);
    limits.buffer_bytes = keys.memory.unwrap_or(limits.buffer_bytes);
    if let Some(output) = keys.output {
        limits.keep_output(output);
    }
    limits.output_lines = keys.output_lines.unwrap_or(limits.output_lines);
    limits.reply_bytes = keys.result.unwrap_or(RESULT_BYTES);
    limits.calls_in_flight = keys.calls_in_flight.unwrap_or(limits.calls_in_flight);
    Ok(limits)
}
