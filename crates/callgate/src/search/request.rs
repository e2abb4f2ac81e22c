//! A search request and its answer.

use std::sync::Arc;
use std::time::Duration;

use callgate_catalog::Tool;
use callgate_catalog::search::Ranked;
use callgate_servers::Caller;
use serde::Serialize;

use crate::choices::SearchBy;

/// A search for tools. A new request has the defaults.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use]
pub struct SearchRequest {
    /// Words, or a text in the form of [`SearchBy`]. Of the trimmed text, the first 2,000 bytes are
    /// used. An empty query finds every tool, in the order of the configuration.
    pub query: String,
    /// The way of searching. Default: [`SearchBy::Auto`].
    pub by: SearchBy,
    /// The one server to search, by its name in the configuration. Default: all.
    pub server: Option<String>,
    /// The servers to search; others are not mentioned. Default: all.
    pub among: Option<Vec<String>>,
    /// The caller whose model [`SearchBy::Model`] asks before the configured one. Default: no caller.
    #[doc(hidden)]
    pub caller: Option<Arc<dyn Caller>>,
    /// The limit of hits, up to 200. Default: 10.
    pub limit: usize,
    /// The time to wait for missing vectors of tools. Default: zero; a note says how many are missing,
    /// and they are made for later searches.
    pub patience: Duration,
    /// True if notes mention servers that are down. Default: yes. A host that reports
    /// [`Gate::unavailable`](crate::Gate::unavailable) itself can turn this off.
    pub tells_of_servers: bool,
}

impl SearchRequest {
    /// A search for this query.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            by: SearchBy::default(),
            server: None,
            among: None,
            caller: None,
            limit: 10,
            patience: Duration::ZERO,
            tells_of_servers: true,
        }
    }

    /// True if the request may mention this server.
    pub(super) fn may_mention(&self, server: &str) -> bool {
        let among = self.among.as_ref();
        among.is_none_or(|among| among.iter().any(|name| name == server))
    }

    /// True if the request searches this server.
    pub(super) fn is_of(&self, server: &str) -> bool {
        self.server.as_deref().is_none_or(|only| only == server) && self.may_mention(server)
    }
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SearchHit {
    /// The name of its function in a script.
    pub function: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The quality of the match, comparable within one answer only.
    pub score: f64,
    /// The rule that denies every call of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
}

impl SearchHit {
    pub(super) fn new(tool: &Tool, score: f64) -> Self {
        Self {
            function: tool.function.clone(),
            server: tool.definition.server.clone(),
            score,
            denied: None,
        }
    }
}

impl From<&Ranked<'_>> for SearchHit {
    fn from(ranked: &Ranked<'_>) -> Self {
        Self {
            function: ranked.function.to_owned(),
            server: ranked.server.to_owned(),
            score: ranked.score,
            denied: None,
        }
    }
}

/// The tools that were found, the best first.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchResults {
    /// The tools, up to the requested limit.
    pub hits: Vec<SearchHit>,
    /// The number of further tools that match.
    pub more: usize,
    /// The number of tools that were searched.
    pub searched: usize,
    /// True if no tool matches most words of the query: the hits are the nearest. The first note says
    /// so.
    pub is_poor: bool,
    /// True for a poor search if no tool has a word of what the query is about, such as `jira`.
    pub is_off_topic: bool,
    /// Remarks about the search as sentences, such as a way of searching that was not available.
    pub notes: Vec<String>,
}
