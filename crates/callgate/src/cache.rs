//! What servers listed, kept on disk: so that one need not be connected to before
//! it is called, and that one which is down still says what it can do.
//!
//! A file is a hint from an earlier time and never more: what it says is read as a
//! server's own words are, what cannot be read is passed over, and before a call is
//! made on a new connection the tool has to be what was decided about. Whoever can
//! read a file learns what the server lists; nothing in it leads to the secrets the
//! server is started with.

mod entry;
mod folder;
mod granted;
mod identity;
#[cfg(test)]
mod tests;

pub(crate) use folder::Folder;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use callgate_broker::{Phase, Remembered, ServerSpec, ServerState, Status, ToolList};

use crate::auth;

use crate::config::CacheConfig;
use entry::{Entry, MAX_FILE, Unfit};
use identity::Key;

/// A list that was asked for anew is written again only if its file says that it
/// is older than this by so much.
const WRITE_AGAIN: Duration = Duration::from_secs(60);
/// The most warnings that are kept.
const MAX_WARNINGS: usize = 20;
/// Files of lists that nobody has written for so long are removed.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The cache of one gate.
pub(crate) struct Cache {
    lists: Folder,
    definitions: Folder,
    vectors: Folder,
    key: Key,
    /// How long a list holds for which its server says nothing.
    ttl: Option<Duration>,
    slots: Mutex<HashMap<String, Slot>>,
    warnings: Mutex<Vec<String>>,
}

/// The file of one server.
struct Slot {
    file: String,
    identity: String,
    /// What the file says, as far as this process knows: the list, and when it
    /// came.
    kept: Option<(Arc<ToolList>, SystemTime)>,
}

impl Cache {
    /// Opens, or makes, the cache that the settings say; `None` where there is to
    /// be none. `scope` keeps it apart from those of others in the same folder.
    ///
    /// # Errors
    ///
    /// Why it cannot be used, as a clause.
    pub(crate) fn open(config: &CacheConfig, scope: Option<&str>) -> Result<Option<Self>, String> {
        if !config.enabled {
            return Ok(None);
        }
        let root = match &config.path {
            Some(path) => path.clone(),
            None => default_folder().ok_or("neither XDG_CACHE_HOME nor HOME is set")?,
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

    /// Where vectors of tools are kept.
    pub(crate) fn vectors(&self) -> Folder {
        self.vectors.clone()
    }

    /// Tells a server's specification what is known of it from an earlier time.
    pub(crate) fn recall(&self, spec: &mut ServerSpec) {
        let identity = self.key.identity(spec);
        let file = format!("{identity}.json");
        let read = self.lists.read(&file, MAX_FILE);
        let read = read.map_err(|error| Unfit::Io(error.to_string()));
        let entry = read.and_then(|bytes| match bytes {
            Some(bytes) => entry::read(&bytes, &identity, &self.key).map(Some),
            None => Ok(None),
        });
        let entry = entry.and_then(|entry| self.of_login(entry, spec, &file));
        let mut slot = Slot {
            file,
            identity,
            kept: None,
        };
        match entry {
            Ok(Some(entry)) => {
                let written = UNIX_EPOCH.checked_add(Duration::from_millis(entry.written_ms));
                // One of a time to come says nothing of its age.
                let age = written.and_then(|at| SystemTime::now().duration_since(at).ok());
                let ready = Arc::new(entry.ready);
                slot.kept = Some((Arc::clone(&ready), written.unwrap_or(UNIX_EPOCH)));
                spec.remembered = Some(Remembered {
                    list: ready,
                    age: age.unwrap_or(Duration::MAX),
                });
            }
            Ok(None) => {}
            Err(unfit) => self.warn(format!(
                "what was kept of server {:?} is passed over, and written anew: {unfit}",
                spec.name
            )),
        }
        if let Some(ttl) = self.ttl {
            spec.lists_hold = ttl;
        }
        self.slots().insert(spec.name.clone(), slot);
    }

    /// Writes what has become known of servers, and removes what a server has said
    /// is no longer so.
    pub(crate) fn follow(&self, states: &[ServerState]) {
        let mut slots = self.slots();
        for state in states {
            let Some(slot) = slots.get_mut(&state.name) else {
                continue;
            };
            let followed = if state.changed {
                self.forget(slot)
            } else {
                self.keep_list(slot, state)
            };
            if let Err(error) = followed {
                self.warn(format!(
                    "what server {:?} lists is not kept: {error}",
                    state.name
                ));
            }
        }
    }

    /// What was passed over and could not be written, as sentences.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self.warnings.lock();
        warnings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Removes what nobody has used for long, and what a process that was killed
    /// left behind.
    pub(crate) fn tidy(&self) {
        self.lists.tidy(UNUSED);
        self.definitions.tidy(granted::UNUSED);
        // Of those, what was never written to its end.
        self.vectors.tidy(UNUSED);
    }

    /// An entry, unless there is another login than when the server listed: what somebody
    /// else may see is removed.
    fn of_login(
        &self,
        entry: Option<Entry>,
        spec: &ServerSpec,
        file: &str,
    ) -> Result<Option<Entry>, Unfit> {
        let Some(entry) = entry else {
            return Ok(None);
        };
        let login = auth::login_id(spec).map_err(|error| Unfit::Io(error.to_string()))?;
        if entry.ready.login.as_deref() == login.as_deref() {
            return Ok(Some(entry));
        }
        tracing::info!(
            server = spec.name,
            "there was another login since it listed its tools"
        );
        let removed = self.lists.remove(file);
        removed.map_err(|error| Unfit::Io(error.to_string()))?;
        Ok(None)
    }

    fn forget(&self, slot: &mut Slot) -> std::io::Result<()> {
        match slot.kept.take() {
            Some(_) => self.lists.remove(&slot.file),
            None => Ok(()),
        }
    }

    fn keep_list(&self, slot: &mut Slot, state: &ServerState) -> std::io::Result<()> {
        let (Status::Ready(ready), true, Some(age)) = (&state.status, state.heard, state.age)
        else {
            return Ok(());
        };
        let Some(came) = SystemTime::now().checked_sub(age) else {
            return Ok(());
        };
        // While it is up, its list is as good as new.
        let is_kept = slot.kept.as_ref().is_some_and(|(kept, at)| {
            let newer = came.duration_since(*at).unwrap_or_default();
            Arc::ptr_eq(kept, ready) && newer < WRITE_AGAIN
        });
        if is_kept || state.phase == Phase::Closed {
            return Ok(());
        }
        let written = came.duration_since(UNIX_EPOCH).unwrap_or_default();
        let written_ms = u64::try_from(written.as_millis()).unwrap_or_default();
        let text = entry::write(ready, written_ms, &slot.identity, &self.key)?;
        // What fails is not tried again with every change.
        slot.kept = Some((Arc::clone(ready), came));
        match u64::try_from(text.len()) {
            Ok(length) if length <= MAX_FILE => self.lists.write(&slot.file, &text),
            _ => self.lists.remove(&slot.file),
        }
    }

    fn warn(&self, warning: String) {
        tracing::warn!("{warning}");
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MAX_WARNINGS {
            warnings.push(warning);
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn default_folder() -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("callgate"))
}
