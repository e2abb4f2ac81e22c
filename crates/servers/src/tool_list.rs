//! A server's tool list and its description of itself.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shared::Shared;

/// The entries of all lists in use.
static ENTRIES: Shared<Vec<Value>> = Shared::empty();

/// A server's tool list and its description of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolList {
    /// The entries of all pages of `tools/list`, in order and unchanged.
    pub tools: Arc<Vec<Value>>,
    /// The protocol revision of the connection, such as `2026-07-28`.
    pub protocol_version: String,
    /// The server's name for people.
    pub title: Option<String>,
    /// The server's hints for models.
    pub instructions: Option<String>,
    /// Harmless faults, as clauses about the server.
    pub warnings: Vec<String>,
    /// Why tools may be missing, as clauses about the server ("its list of tools repeats a
    /// cursor; …").
    #[serde(default)]
    pub gaps: Vec<String>,
    /// The server's own time to live of the list (`ttlMs`), limited to between 5 s and a day.
    pub ttl: Option<Duration>,
    /// The identifier of the login that was used; `None` without a login.
    pub login: Option<Arc<str>>,
}

impl ToolList {
    /// This list, sharing its entries with an equal list in use.
    #[must_use]
    pub fn shared(self) -> Self {
        let tools = ENTRIES.get(|known| *known == *self.tools, || Arc::clone(&self.tools));
        Self { tools, ..self }
    }
}
