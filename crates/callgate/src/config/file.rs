//! The sections of `callgate.json` as serde structs, and the settings that they become.

use std::path::PathBuf;
use std::time::Duration;

use callgate_gate::LedgerOptions;
use callgate_sandbox::{JailLayer, Limits};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::fields;
use crate::settings::{CheckMode, ExtractLimits, SearchBy};

/// `extract`: the limits of `mcp.extract`.
#[derive(Deserialize)]
#[serde(
    remote = "ExtractLimits",
    rename_all = "camelCase",
    deny_unknown_fields,
    default = "ExtractLimits::default"
)]
pub(super) struct Extract {
    calls: u64,
    same_schema: u64,
    #[serde(rename = "input", deserialize_with = "fields::size")]
    input_bytes: u64,
    #[serde(rename = "output", deserialize_with = "fields::size")]
    output_bytes: u64,
}

/// `sandbox`: the kernel layers around the workers that run scripts.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Sandbox {
    pub(super) level: Level,
    #[serde(deserialize_with = "layers")]
    pub(super) require: Option<Vec<JailLayer>>,
}

/// `level` of `sandbox`.
#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    #[default]
    Kernel,
    Process,
}

fn layers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<JailLayer>>, D::Error> {
    let layer = |name: &String| {
        JailLayer::ALL
            .into_iter()
            .find(|layer| layer.name() == name)
    };
    let names = Vec::<String>::deserialize(deserializer)?;
    let layers: Option<Vec<JailLayer>> = names.iter().map(layer).collect();
    let unknown = || D::Error::custom("lists \"landlock\", \"seccomp\" and \"namespaces\"");
    layers.ok_or_else(unknown).map(Some)
}

/// Reads `search`.
pub(super) fn search<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SearchBy, D::Error> {
    #[derive(Deserialize, Default)]
    #[serde(deny_unknown_fields, default)]
    struct Search {
        by: SearchBy,
    }
    Search::deserialize(deserializer).map(|search| search.by)
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
    #[must_use]
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

/// `ledger`: the file that calls are written to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LedgerConfig {
    /// `path`: the file that every call is written to, as an absolute path.
    /// `None` keeps the ledger in memory, for the report of a run.
    #[serde(deserialize_with = "fields::path")]
    pub path: Option<PathBuf>,
    /// `bodies`: whether arguments and results are written too. Default: false.
    pub bodies: bool,
    /// The user who calls, for `user` in each line. Not in the file; see [`Config::for_user`](super::Config::for_user).
    #[serde(skip)]
    pub user: Option<String>,
    /// `maxSize`: the size in bytes from which on the file takes no more calls, and none is made,
    /// or, with `keep`, the file is moved aside. `None` leaves the default.
    #[serde(rename = "maxSize", deserialize_with = "fields::size")]
    pub max_bytes: Option<u64>,
    /// `keep`: how many full files are kept beside the one that is written to.
    /// `None` leaves the default.
    pub keep: Option<u32>,
    /// `sync`: whether each line is on the disk, and not only with the kernel, before the call
    /// goes on. Default: false.
    pub sync: bool,
}

impl LedgerConfig {
    /// The file and what it is opened with; `None` where there is none.
    pub fn file(&self) -> Option<(PathBuf, LedgerOptions)> {
        let mut options = LedgerOptions::default();
        options.bodies = self.bodies;
        options.user.clone_from(&self.user);
        options.max_bytes = self.max_bytes.unwrap_or(options.max_bytes);
        options.keep = self.keep.unwrap_or(options.keep);
        options.sync = self.sync;
        Some((self.path.clone()?, options))
    }
}

/// `limits`: the limits of a run; `None` where the file leaves the default. [`Limits`]
/// documents each limit and its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// `timeout`: time the script itself may run, waiting not counted.
    pub timeout: Option<Duration>,
    /// `runTimeout`: time the whole run may take, waiting counted.
    pub run_timeout: Option<Duration>,
    /// `memory`: size of the script's heap, and of its array buffers, in bytes each.
    #[serde(deserialize_with = "fields::memory")]
    pub memory: Option<u64>,
    /// `output`: console output, and returned value, kept for the report, in bytes each.
    #[serde(deserialize_with = "fields::size")]
    pub output: Option<u64>,
    /// `outputLines`: console output kept for the report, in lines; a line for
    /// every 8 bytes of `output` if only that is set.
    pub output_lines: Option<u64>,
    /// `result`: size of one tool result, in bytes.
    #[serde(deserialize_with = "fields::size")]
    pub result: Option<u64>,
    /// `callsInFlight`: tool calls that may wait for an answer at one time.
    pub calls_in_flight: Option<u64>,
}

/// The default size of a result: that of a server's message ([`callgate_servers::ServerSpec`]).
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
