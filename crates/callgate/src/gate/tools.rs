//! Questions about tools.

use callgate_catalog::Detail;
use serde::Serialize;

use super::Gate;
use crate::error::GateError;
use crate::search::request::{SearchRequest, SearchResults};

/// A tool in a list.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name of its function in a script.
    pub function: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The first sentence or line of its description.
    pub summary: Option<String>,
}

impl Gate {
    /// The tools, grouped by server in the order of the configuration.
    pub fn tools(&self) -> Vec<ToolInfo> {
        let catalog = self.live.catalog();
        let tools = catalog.tools().iter().map(|tool| ToolInfo {
            function: tool.function.clone(),
            server: tool.definition.server.clone(),
            tool: tool.definition.name.clone(),
            summary: catalog.summary(&tool.function).map(str::to_owned),
        });
        tools.collect()
    }

    /// Asks servers for lists of tools that are out of date, and waits up to two seconds.
    pub async fn refresh(&self) {
        let _ = self.live.fresh().await;
    }

    /// Searches the current tools.
    ///
    /// # Errors
    ///
    /// [`GateError`] for an unknown server or an invalid expression.
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchResults, GateError> {
        self.searcher
            .search(request, &self.setup.rules.calls, None)
            .await
    }

    /// The chosen tools at this level of detail: names, or TypeScript declarations with the
    /// types they use. The sandbox's own globals are not among
    /// them.
    pub fn declarations(&self, detail: Detail, choose: impl Fn(&str) -> bool) -> String {
        let catalog = self.live.catalog();
        let functions = catalog.tools().iter().map(|tool| tool.function.as_str());
        let chosen: Vec<&str> = functions.filter(|function| choose(function)).collect();
        self.view().declarations_of(detail, &chosen)
    }
}
