//! Tool lists of servers on disk: a server need not be connected before its first call, and the
//! tools of a server that is down are still shown.
//!
//! A file is a hint: it is as untrusted as the server, and before a call on a new connection the
//! tool must have the definition that was decided on. No file contains or reveals a secret of a
//! server.

mod file;
mod granted;
mod identity;
#[cfg(test)]
mod tests;

pub(crate) use file::Folder;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use callgate_auth::xdg_folder;
use callgate_servers::{Phase, Remembered, ServerSpec, ServerState, Status, ToolList};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::auth;
use crate::config::CacheConfig;
use identity::Key;

/// The limit of a list's file, in bytes. A longer list is not kept.
const MAX_FILE: u64 = 64 << 20;
/// An unchanged list is written again if its file is older by this.
const WRITE_AGAIN: Duration = Duration::from_secs(60);
const MAX_WARNINGS: usize = 20;
/// Files of lists that were not written for this time are removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The cache of one gate.
pub(crate) struct Cache {
    lists: Folder,
    definitions: Folder,
    vectors: Folder,
    key: Key,
    /// The lifetime of lists whose servers do not set it.
    ttl: Option<Duration>,
    slots: Mutex<HashMap<String, CacheFile>>,
    warnings: Mutex<Vec<String>>,
}

/// The file of one server.
struct CacheFile {
    file: String,
    /// The contents, if this process knows them.
    kept: Option<CachedList>,
}

/// The contents of a server's file.
#[derive(Serialize, Deserialize)]
struct CachedList {
    list: Arc<ToolList>,
    /// The time when the server sent the list.
    came: SystemTime,
}

impl Cache {
    /// Opens or makes the cache of these settings; `None` if it is switched off. `scope` separates
    /// it from other caches in the same folder.
    /// The error: the reason why it cannot be used, as a clause.
    pub(crate) fn open(config: &CacheConfig, scope: Option<&str>) -> Result<Option<Self>, String> {
        if !config.enabled {
            return Ok(None);
        }
        let root = match &config.path {
            Some(path) => path.clone(),
            None => xdg_folder("XDG_CACHE_HOME", ".cache")
                .ok_or("neither XDG_CACHE_HOME nor HOME is set")?,
        };
        let open = || {
            let root = Folder::open(root.clone())?;
            let key = Key::of(&root)?;
            let own = match scope {
                Some(scope) => root.sub("users")?.sub(&key.name_of_scope(scope))?,
                None => root,
            };
            Ok(Self {
                lists: own.sub("servers")?,
                definitions: own.sub("definitions")?,
                vectors: own.sub("vectors")?,
                key,
                ttl: config.ttl,
                slots: Mutex::default(),
                warnings: Mutex::default(),
            })
        };
        let opened = open()
            .map_err(|error: std::io::Error| format!("{} cannot be used: {error}", root.display()));
        opened.map(Some)
    }

    /// The folder of the lists.
    pub(crate) fn folder(&self) -> PathBuf {
        self.lists.path().to_owned()
    }

    /// The folder of vectors of tools.
    pub(crate) fn vectors(&self) -> Folder {
        self.vectors.clone()
    }

    /// Adds the cached list of a server to its specification.
    pub(crate) fn recall(&self, spec: &mut ServerSpec) {
        let file = format!("{}.json", self.key.identity(spec));
        let mut kept = None;
        match self.entry(&file, spec) {
            Ok(Some(entry)) => {
                // If the time is in the future, the age is unknown.
                let age = SystemTime::now().duration_since(entry.came);
                spec.remembered = Some(Remembered {
                    list: Arc::clone(&entry.list),
                    age: age.unwrap_or(Duration::MAX),
                });
                kept = Some(entry);
            }
            Ok(None) => {}
            Err(reason) => self.warn(format!(
                "the kept list of server {:?} is ignored, and written again: {reason}",
                spec.name
            )),
        }
        if let Some(ttl) = self.ttl {
            spec.list_ttl = ttl;
        }
        let slot = CacheFile { file, kept };
        self.slots.lock().insert(spec.name.clone(), slot);
    }

    /// Writes the new lists of servers.
    pub(crate) fn follow(&self, states: &[ServerState]) {
        let mut slots = self.slots.lock();
        for state in states {
            let Some(slot) = slots.get_mut(&state.name) else {
                continue;
            };
            if let Err(error) = self.keep_list(slot, state) {
                self.warn(format!(
                    "the list of server {:?} is not kept: {error}",
                    state.name
                ));
            }
        }
    }

    /// Warnings about files that were ignored or could not be written, as sentences.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    /// Removes unused files, and temporary files of killed processes.
    pub(crate) fn tidy(&self) {
        self.lists.tidy(UNUSED);
        self.definitions.tidy(granted::UNUSED);
        self.vectors.tidy(UNUSED);
    }

    /// The list in the file of a server. It is removed if the server listed its tools for a different
    /// login, because a different user may see different tools.
    fn entry(&self, file: &str, spec: &ServerSpec) -> Result<Option<CachedList>, String> {
        let read = self.lists.read(file, MAX_FILE);
        let Some(bytes) = read.map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        // The error of the parser could quote the text.
        let damaged = |_| "it is damaged".to_owned();
        let mut entry: CachedList = serde_json::from_slice(&bytes).map_err(damaged)?;
        let login = auth::login_id(spec).map_err(|error| error.to_string())?;
        if entry.list.login.as_deref() == login.as_deref() {
            entry.list = Arc::new(ToolList::clone(&entry.list).shared());
            return Ok(Some(entry));
        }
        tracing::info!(
            server = spec.name,
            "the cached list is of a different login"
        );
        self.lists.remove(file).map_err(|error| error.to_string())?;
        Ok(None)
    }

    fn keep_list(&self, slot: &mut CacheFile, state: &ServerState) -> std::io::Result<()> {
        let (Status::Ready(ready), true, Some(age)) = (&state.status, state.received, state.age)
        else {
            return Ok(());
        };
        let Some(came) = SystemTime::now().checked_sub(age) else {
            return Ok(());
        };
        // A list is current as long as its server is connected.
        let is_kept = slot.kept.as_ref().is_some_and(|kept| {
            let newer = came.duration_since(kept.came).unwrap_or_default();
            Arc::ptr_eq(&kept.list, ready) && newer < WRITE_AGAIN
        });
        if is_kept || state.phase == Phase::Closed {
            return Ok(());
        }
        // After a failure, the same list is not written again.
        let entry = slot.kept.insert(CachedList {
            list: Arc::clone(ready),
            came,
        });
        let text = serde_json::to_vec(entry)?;
        if text.len() as u64 > MAX_FILE {
            return self.lists.remove(&slot.file);
        }
        self.lists.write(&slot.file, &text)
    }

    fn warn(&self, warning: String) {
        tracing::warn!("{warning}");
        let mut warnings = self.warnings.lock();
        if warnings.len() < MAX_WARNINGS {
            warnings.push(warning);
        }
    }
}
