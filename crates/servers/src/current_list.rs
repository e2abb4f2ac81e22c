//! The current tool list of a server.

use std::sync::Arc;
use std::time::Duration;

use callgate_policy::Definition;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::failure::{CallFailure, FailureKind, Reason};
use crate::spec::Remembered;
use crate::tool_call::ToolCall;
use crate::tool_list::ToolList;

/// The current tool list of a server.
#[derive(Debug)]
pub(crate) struct CurrentList(Mutex<ListState>);

/// The knowledge about a server's tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListState {
    pub(crate) list: Option<Arc<ToolList>>,
    /// Why the server did not start, as long as it never has.
    pub(crate) failed: Option<Reason>,
    /// The time of the list; `None` if this system has not run since then.
    at: Option<Instant>,
    /// The generation that the list covers: the current one at the time of the request.
    pub(crate) covered_generation: u64,
    /// True if this process received it from the server.
    pub(crate) received: bool,
    /// True if the last request for a new list failed.
    pub(crate) relist_failed: bool,
}

impl ListState {
    /// The age of the list; `None` if it is not known.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.at.map(|at| at.elapsed())
    }
}

impl CurrentList {
    /// Begins with the list of an earlier process, or without a list.
    pub(crate) fn new(remembered: Option<&Remembered>) -> Self {
        Self(Mutex::new(ListState {
            list: remembered.map(|remembered| Arc::clone(&remembered.list)),
            at: remembered.and_then(|remembered| Instant::now().checked_sub(remembered.age)),
            ..ListState::default()
        }))
    }

    /// Takes a list that was requested in this generation.
    pub(crate) fn take(&self, list: ToolList, covered_generation: u64) {
        let mut state = self.state();
        if state.list.as_deref() != Some(&list) {
            state.list = Some(Arc::new(list.shared()));
        }
        state.at = Some(Instant::now());
        state.failed = None;
        state.covered_generation = covered_generation;
        (state.received, state.relist_failed) = (true, false);
    }

    /// Records that the request in this generation failed.
    pub(crate) fn record_failure(&self, covered_generation: u64) {
        let mut state = self.state();
        state.covered_generation = covered_generation;
        state.relist_failed = true;
    }

    /// Records that the server did not start, unless it started before. The list stays.
    pub(crate) fn fail(&self, reason: Reason) {
        let mut state = self.state();
        if !state.received {
            state.failed = Some(reason);
        }
    }

    pub(crate) fn list(&self) -> Option<Arc<ToolList>> {
        self.state().list.clone()
    }

    /// Checks that the tool still has the definition that the decision was about. Several tools
    /// may have the same name.
    pub(crate) fn check(&self, call: &ToolCall<'_>, has_begun: bool) -> Result<(), CallFailure> {
        let list = self.list();
        let tools = list
            .as_deref()
            .map_or(&[][..], |list| list.tools.as_slice());
        let mut found = tools
            .iter()
            .filter(|entry| entry["name"] == call.tool)
            .peekable();
        let is_gone = found.peek().is_none();
        if found.any(|entry| Definition::of(entry).hash() == call.definition) {
            return Ok(());
        }
        let (problem, advice) = if is_gone {
            ("its server no longer lists the tool", "")
        } else {
            (
                "the server changed the tool's definition after this call was decided on",
                "; call it again to have the new definition decided on",
            )
        };
        let effect = if has_begun {
            "the call had begun and was given up, and may have done something".to_owned()
        } else {
            format!("nothing was done{advice}")
        };
        let reason = format!("{problem}; {effect}");
        Err(CallFailure::new(
            FailureKind::ToolChanged,
            reason,
            has_begun,
        ))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ListState> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn any_entry_with_the_name_is_listed() {
        let list = |tools| ToolList {
            tools: Arc::new(tools),
            ..ToolList::default()
        };
        let odd = json!({ "name": "t", "inputSchema": 7 });
        let good = json!({ "name": "t", "inputSchema": { "type": "object" } });
        let current = CurrentList::new(None);
        let is_listed = |tool: &Value| {
            let definition = Definition::of(tool);
            let call = ToolCall {
                server: "s",
                tool: "t",
                definition: definition.hash(),
                arguments: "{}",
                caller: None,
                limit: None,
            };
            current.check(&call, false).is_ok()
        };
        assert!(!is_listed(&good));
        current.take(list(vec![odd.clone(), good.clone()]), 0);
        assert!(is_listed(&odd) && is_listed(&good));
        assert!(!is_listed(&json!({ "name": "t" })));
        current.take(list(vec![good.clone()]), 0);
        assert!(!is_listed(&odd));
    }
}
