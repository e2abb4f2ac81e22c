//! The entries of a server's list of tools, read once for all gates of a process.

use std::sync::Arc;

use callgate_catalog::{Malformed, ToolDefinition};
use callgate_servers::{ServerState, Shared, ToolList};
use serde_json::Value;

/// A server's list, and the definitions read from it.
#[derive(Clone)]
pub(crate) struct ReadList {
    pub(crate) ready: Arc<ToolList>,
    pub(crate) read: Arc<ReadTools>,
}

/// Why a tool is dropped that a server of an earlier revision of MCP runs as a task only.
const TASK_ONLY: &str = "it can be called only as a task of MCP 2025-11-25 \
    (`execution.taskSupport`), which Callgate does not support";
/// The first revision of MCP in which a server may answer any call with a task.
const TASKS_SINCE: &str = "2026-07-28";

/// The entries of a list, read.
pub(crate) struct ReadTools {
    pub(crate) server: String,
    /// True if the server may answer any call with a task.
    has_tasks: bool,
    entries: Arc<Vec<Value>>,
    pub(crate) definitions: Vec<Arc<ToolDefinition>>,
    pub(crate) dropped: Vec<Malformed>,
}

/// The lists of all gates: those of the users of a host are mostly the same.
static READ: Shared<ReadTools> = Shared::empty();

impl ReadList {
    pub(crate) fn read(state: &ServerState, ready: &Arc<ToolList>) -> Self {
        let (server, revision) = (&state.name, &ready.protocol_version);
        let tools = ready.tools.len();
        if state.received {
            tracing::info!(server, revision, tools, "server is ready");
        } else {
            tracing::info!(
                server,
                revision,
                tools,
                "the tools of a server are known from an earlier time"
            );
        }
        let has_tasks = revision.as_str() >= TASKS_SINCE;
        let is_same = |it: &ReadTools| {
            it.server == *server
                && it.has_tasks == has_tasks
                && Arc::ptr_eq(&it.entries, &ready.tools)
        };
        let read = || Arc::new(ReadTools::read(server, has_tasks, &ready.tools));
        Self {
            ready: Arc::clone(ready),
            read: READ.get(is_same, read),
        }
    }

    /// Problems of the list and its entries.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let of_list = self.ready.warnings.iter().chain(&self.ready.gaps);
        let of_list = of_list.map(|warning| format!("server {:?}: {warning}", self.read.server));
        of_list.chain(self.read.dropped.iter().map(ToString::to_string))
    }
}

impl ReadTools {
    fn read(server: &str, has_tasks: bool, entries: &Arc<Vec<Value>>) -> Self {
        let mut dropped = Vec::new();
        let mut definitions = Vec::with_capacity(entries.len());
        for raw in entries.iter() {
            match ToolDefinition::parse(server, raw) {
                Ok(definition) if definition.task_only && !has_tasks => dropped.push(Malformed {
                    server: definition.server,
                    tool: Some(definition.name),
                    reason: TASK_ONLY.to_owned(),
                }),
                Ok(definition) => definitions.push(Arc::new(definition)),
                Err(malformed) => dropped.push(malformed),
            }
        }
        Self {
            server: server.to_owned(),
            has_tasks,
            entries: Arc::clone(entries),
            definitions,
            dropped,
        }
    }
}
