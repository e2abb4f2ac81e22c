//! A server's tool list and its description of itself.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shared::Shared;

/// The entries of all lists.
static ENTRIES: Shared<Vec<Value>> = Shared::empty();

/// A server's tool list and its description of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolList {
    /// The entries of its `tools/list`, from all pages, in order, as it wrote them.
    pub tools: Arc<Vec<Value>>,
    /// The protocol revision agreed on, such as `2026-07-28`.
    pub protocol_version: String,
    /// Its program's name for people.
    pub title: Option<String>,
    /// Its hints for models, if it has any.
    pub instructions: Option<String>,
    /// Oddities that did no harm, as clauses about the server.
    pub warnings: Vec<String>,
    /// Reasons for which tools may be missing, as clauses about the server ("its list of tools
    /// repeats a cursor; …").
    #[serde(default)]
    pub gaps: Vec<String>,
    /// The time for which the list holds by the server's own word (`ttlMs`), within 5 s and a day;
    /// `None` if it does not say.
    pub ttl: Option<Duration>,
    /// The identifier of the login that the list was asked for with; `None` without a login.
    pub login: Option<Arc<str>>,
}

impl ToolList {
    /// This list, whose entries are those of an equal list in use.
    #[must_use]
    pub fn shared(self) -> Self {
        let tools = ENTRIES.get(|known| *known == *self.tools, || Arc::clone(&self.tools));
        Self { tools, ..self }
    }
}
