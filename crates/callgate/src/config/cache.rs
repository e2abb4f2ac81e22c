//! `cache`: where and for how long the lists of servers, and vectors of tools, are kept.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

/// The cache of the lists of servers and of vectors of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CacheConfig {
    /// `enabled`: lists and vectors are kept. Default: true.
    pub enabled: bool,
    /// `path`: the folder, as an absolute path; made if it does not exist, and closed to other
    /// users. Default: `callgate` in `$XDG_CACHE_HOME`, which is `~/.cache` when it is not set.
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
