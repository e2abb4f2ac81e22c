//! `cache`: where and for how long is kept what servers list, and vectors of it.

use std::path::PathBuf;
use std::time::Duration;

use jsonc_parser::ast::ObjectProp;
use jsonc_parser::common::Ranged as _;

use super::error::ConfigErrorKind;
use super::keys::Keys;
use super::reader::Reader;
use super::server::expanded;

/// Keys of `cache`.
const CACHE: Keys = Keys {
    ours: &["path", "ttl", "enabled"],
    others: &[],
};

/// Where and for how long is kept what servers list; vectors of tools are kept
/// there, too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheConfig {
    /// `enabled`: whether anything is kept. Default: true.
    pub enabled: bool,
    /// `path`: the folder, as an absolute path; made where there is none, and
    /// closed to other users. Default: `callgate` in `$XDG_CACHE_HOME`, which is
    /// `~/.cache` when it is not set.
    pub path: Option<PathBuf>,
    /// `ttl`: for how long a list holds of which its server does not say that
    /// itself. Default: 1 h. One that is older is asked for anew at the start,
    /// and serves only as long as its server is down.
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

pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>, cache: &mut CacheConfig) {
    let what = "\"cache\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    for property in reader.properties(object, what, &CACHE) {
        match property.name.as_str() {
            "path" => {
                let path = expanded(reader, property, what);
                if path.as_deref() == Some("") {
                    reader.error(
                        property.value.range(),
                        ConfigErrorKind::Value,
                        "\"path\" in \"cache\" is empty; name a folder, or leave it out",
                    );
                }
                cache.path = path.map(|path| reader.variables.folder.join(path));
            }
            "ttl" => cache.ttl = reader.duration(property, what),
            _ => cache.enabled = reader.boolean(property, what).unwrap_or(true),
        }
    }
}
