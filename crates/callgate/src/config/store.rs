//! `store`: the record of runs.

use std::path::PathBuf;

use callgate_auth::xdg_folder;
use schemars::JsonSchema;
use serde::Deserialize;

use super::fields::{self, Size};

/// The record of runs and calls. Several configurations may share a folder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The folder; it is made if it does not exist, and closed to other users. Default:
    /// `callgate/store` in `$XDG_STATE_HOME`, else in `~/.local/state`.
    #[serde(deserialize_with = "fields::path")]
    pub path: Option<PathBuf>,
    /// Days until runs of all configurations are removed from the folder. Default: `14`.
    pub days: u32,
    /// The size of the folder over which its oldest runs are removed. Default: `1GiB`.
    #[serde(deserialize_with = "Size::deserialize")]
    #[schemars(with = "Size")]
    pub bytes: u64,
    /// The texts that are kept, besides their hashes and sizes. Default: `none`.
    pub bodies: Bodies,
}

/// The texts that the store keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Bodies {
    /// No texts.
    #[default]
    None,
    /// Script and output of runs that did not complete; arguments and results of calls that failed.
    Errors,
    /// Scripts, outputs, arguments and results.
    All,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            path: None,
            days: 14,
            bytes: 1 << 30,
            bodies: Bodies::default(),
        }
    }
}

impl StoreConfig {
    /// The folder of the store. `None` if it has no path, and `HOME` is not set either.
    pub fn folder(&self) -> Option<PathBuf> {
        let default = || Some(xdg_folder("XDG_STATE_HOME", ".local/state")?.join("store"));
        self.path.clone().or_else(default)
    }
}
