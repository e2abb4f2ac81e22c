//! What is known of a server's tools, since when, and what has changed since.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate_policy::{Definition, DefinitionHash};
use tokio::time::Instant;

use crate::broker::{Ready, Status};
use crate::error::StartError;
use crate::spec::Remembered;

/// What is known of one server.
#[derive(Debug)]
pub(crate) struct Listed(Mutex<Lists>);

/// What a call was decided on, and where to see whether its tool still is that.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) definition: DefinitionHash,
    pub(crate) listed: Arc<Listed>,
}

/// What is no longer as it was when a call was decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The tool is another.
    Tool,
    /// There is no such tool.
    Gone,
    /// Requests go with another login than the newest list was asked for with.
    Login,
}

/// Reasons for a new list, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Covered {
    pub(crate) told: u64,
    pub(crate) wishes: u64,
}

#[derive(Debug)]
struct Lists {
    ready: Option<Arc<Ready>>,
    /// What its tools are that were called, by their names: of one name there may be
    /// several, of which not all can be used.
    definitions: HashMap<String, Vec<DefinitionHash>>,
    /// Why it did not start, as long as it never has.
    failed: Option<StartError>,
    /// When the list came; `None` for longer ago than this system has run.
    at: Option<Instant>,
    covered: Covered,
    /// The server said that its list has changed, and there is no new one.
    changed: bool,
    /// The last attempt at a new list failed.
    missed: bool,
    /// Since when somebody has waited for a new one.
    awaited: Option<Instant>,
    /// The list is of this process's own asking.
    heard: bool,
}

impl Lists {
    fn replace(&mut self, ready: Ready) {
        let same = self.ready.as_deref() == Some(&ready);
        if !same {
            self.ready = Some(Arc::new(ready));
            self.definitions.clear();
        }
        self.at = Some(Instant::now());
        self.heard = true;
    }
}

/// How much the list counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Freshness {
    /// It is of this process's own asking.
    pub(crate) heard: bool,
    pub(crate) changed: bool,
    pub(crate) missed: bool,
    /// How old it is; `None` for older than can be said.
    pub(crate) age: Option<Duration>,
}

impl Decided {
    /// That the tool is by the newest list what was decided about.
    pub(crate) fn still_is(&self, tool: &str) -> Result<(), Change> {
        match self.listed.is(tool, &self.definition) {
            Some(true) => Ok(()),
            Some(false) => Err(Change::Tool),
            None => Err(Change::Gone),
        }
    }

    /// The same, and that the list is of this login: another one may have other tools.
    pub(crate) fn still_is_with(&self, login: Option<&str>, tool: &str) -> Result<(), Change> {
        match self.listed.is_of(login) {
            true => self.still_is(tool),
            false => Err(Change::Login),
        }
    }
}

impl Listed {
    /// Nothing but what an earlier time left.
    pub(crate) fn new(remembered: Option<&Remembered>) -> Self {
        Self(Mutex::new(Lists {
            ready: remembered.map(|remembered| Arc::clone(&remembered.ready)),
            definitions: HashMap::new(),
            failed: None,
            at: remembered.and_then(|remembered| Instant::now().checked_sub(remembered.age)),
            covered: Covered::default(),
            changed: false,
            missed: false,
            awaited: None,
            heard: false,
        }))
    }

    /// Takes a list that covers these reasons. One that says the same as the
    /// last is no change.
    pub(crate) fn take(&self, ready: Ready, covered: Covered) {
        let mut lists = self.lists();
        lists.replace(ready);
        lists.failed = None;
        lists.covered = covered;
        lists.changed = false;
        lists.missed = false;
        lists.awaited = None;
    }

    /// Takes a list that was asked for by a call, for a reason of its own: all others
    /// there are for a new one stay.
    pub(crate) fn take_beside(&self, ready: Ready) {
        self.lists().replace(ready);
    }

    /// There is no list for these reasons: nobody is to wait for it.
    pub(crate) fn miss(&self, covered: Covered) {
        let mut lists = self.lists();
        lists.covered = covered;
        lists.missed = true;
        lists.awaited = None;
    }

    /// Since when somebody has waited for a list that covers these reasons, or an attempt at
    /// one, after the last: since now, if nobody has; `None` where it is there.
    pub(crate) fn awaited_since(&self, reasons: Covered) -> Option<Instant> {
        let mut lists = self.lists();
        let is_there = lists.covered == reasons;
        (!is_there).then(|| *lists.awaited.get_or_insert_with(Instant::now))
    }

    /// It did not start. What was known of it stays.
    pub(crate) fn fail(&self, error: StartError) {
        let mut lists = self.lists();
        if !lists.heard {
            lists.failed = Some(error);
        }
    }

    /// The server said that its list is another; whether that is news.
    pub(crate) fn outdate(&self) -> bool {
        let mut lists = self.lists();
        let news = !lists.changed;
        lists.changed = true;
        news
    }

    /// Whether something about its tools is known.
    pub(crate) fn is_known(&self) -> bool {
        self.lists().ready.is_some()
    }

    /// What is known of its tools.
    pub(crate) fn ready(&self) -> Option<Arc<Ready>> {
        self.lists().ready.clone()
    }

    /// Whether the list was asked for with this login.
    pub(crate) fn is_of(&self, login: Option<&str>) -> bool {
        let lists = self.lists();
        let listed = lists
            .ready
            .as_ref()
            .and_then(|ready| ready.login.as_deref());
        listed == login
    }

    /// Whether a tool of this name has this definition; `None` if no tool has the name.
    pub(crate) fn is(&self, tool: &str, definition: &DefinitionHash) -> Option<bool> {
        let mut lists = self.lists();
        if let Some(known) = lists.definitions.get(tool) {
            return Some(known.contains(definition));
        }
        let ready = lists.ready.as_deref()?;
        let listed = ready.tools.iter().filter(|listed| listed["name"] == tool);
        let known: Vec<_> = listed
            .map(|listed| *Definition::of(listed).hash())
            .collect();
        if known.is_empty() {
            return None;
        }
        let is = known.contains(definition);
        lists.definitions.insert(tool.to_owned(), known);
        Some(is)
    }

    /// Why it did not start, as long as it never has.
    pub(crate) fn failed(&self) -> Option<StartError> {
        self.lists().failed.clone()
    }

    pub(crate) fn status(&self) -> Status {
        let lists = self.lists();
        match (&lists.ready, &lists.failed) {
            (Some(ready), _) => Status::Ready(Arc::clone(ready)),
            (None, Some(error)) => Status::Failed(error.clone()),
            (None, None) => Status::Unknown,
        }
    }

    pub(crate) fn covered(&self) -> Covered {
        self.lists().covered
    }

    pub(crate) fn freshness(&self) -> Freshness {
        let lists = self.lists();
        Freshness {
            heard: lists.heard,
            changed: lists.changed,
            missed: lists.missed,
            age: lists.at.map(|at| at.elapsed()),
        }
    }

    /// Makes the list older than it is.
    #[cfg(test)]
    pub(crate) fn grow_older(&self, by: Duration) {
        let mut lists = self.lists();
        lists.at = lists.at.and_then(|at| at.checked_sub(by));
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fake::ready;

    #[test]
    fn a_tool_is_what_any_entry_of_its_name_says() {
        let odd = json!({ "name": "t", "inputSchema": 7 });
        let good = json!({ "name": "t", "inputSchema": { "type": "object" } });
        let listed = Listed::new(None);
        let is = |name: &str, tool: &Value| listed.is(name, Definition::of(tool).hash());
        assert_eq!(is("t", &good), None);
        let tools = vec![odd.clone(), good.clone()];
        listed.take(ready(tools), Covered::default());
        for _ in 0..2 {
            assert_eq!(is("t", &odd), Some(true));
            assert_eq!(is("t", &good), Some(true));
            assert_eq!(is("t", &json!({ "name": "t" })), Some(false));
            assert_eq!(is("u", &good), None);
        }
    }
}
