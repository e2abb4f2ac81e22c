//! Finding tools by what they do.

mod consulted;
mod index;
mod meaning;
mod pick;
mod vector_store;
mod vector_text;
pub(crate) mod vectors;

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_broker::{Broker, Caller, Phase, ServerState};
use callgate_catalog::Catalog;
use callgate_catalog::search::{PatternFault, Ranked, SearchIndex};
use callgate_policy::Rules;
use futures::FutureExt as _;
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::Gate;
use crate::gate::Foresight;
use crate::gate::servers::closest;
use crate::live_catalog::LiveCatalog;
use crate::models::Models;
use crate::search::vectors::Vectors;

pub(crate) use consulted::Searching;
pub(crate) use index::Indexes;
use pick::Showable;

/// The most hits, whatever a request says.
const MAX_LIMIT: usize = 200;
/// Bytes of words that are read.
const MAX_WORDS_BYTES: usize = 2_000;
/// How long a regular expression is looked for.
const PATTERN_TIME: Duration = Duration::from_millis(500);
/// Characters of a server's name that an error repeats.
const MAX_QUOTED: usize = 80;

/// What to look for. Begins with the defaults.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use]
pub struct SearchRequest {
    /// Words, or what [`SearchBy`] says; of words, without the space around them, the first
    /// 2,000 bytes count. A model or an endpoint gets no more of them.
    /// Nothing at all finds every tool, in the order of the configuration.
    pub query: String,
    /// How it is looked for. Default: [`SearchBy::Auto`].
    pub by: SearchBy,
    /// Only tools of this server, by its name in the configuration. Default: all.
    pub server: Option<String>,
    /// Only tools of these servers, and no word of others. Default: all.
    pub among: Option<Vec<String>>,
    /// Whose model may be asked by [`SearchBy::Model`], before the one of the
    /// configuration. Default: nobody's.
    pub caller: Option<Arc<dyn Caller>>,
    /// The most hits; over 200 is 200. Default: 10.
    pub limit: usize,
    /// How long vectors that tools have not got yet may be waited for. Default: not at
    /// all; where some are missing, a note says so, and they are made for later.
    pub patience: Duration,
    /// Whether notes tell of servers that cannot be had, whose tools are missing or as they
    /// were. Default: they do; for a host that tells of them itself
    /// ([`Gate::unavailable`]) they need not.
    pub tells_of_servers: bool,
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
    /// By a regular expression over names, titles and descriptions, whatever
    /// their case.
    Regex,
    /// By what is meant: embeddings of tools and of the query. Needs an endpoint
    /// of embeddings; where it is away, by words, with a note.
    Vectors,
    /// By words and by what is meant, both rankings together. Needs the same.
    Hybrid,
    /// By a model that picks among what is found. Needs a client that offers
    /// one, or an endpoint; where neither answers, by words, with a note.
    Model,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
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
    /// How many tools there were to look through.
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
    #[error("no server is named {name:?}{}", did_you_mean(near.as_deref()))]
    UnknownServer {
        /// The name; its beginning, if it is long.
        name: String,
        /// The nearest that is one.
        near: Option<String>,
    },
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
            among: None,
            caller: None,
            limit: 10,
            patience: Duration::ZERO,
            tells_of_servers: true,
        }
    }

    fn is_of(&self, server: &str) -> bool {
        let is_one = |among: &Vec<String>| among.iter().any(|one| one == server);
        self.server.as_deref().is_none_or(|only| only == server)
            && self.among.as_ref().is_none_or(is_one)
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
        self.searcher.search(request, &self.rules, None).await
    }

    /// How a search is done here that asks for this: what [`SearchBy::Auto`]
    /// stands for, and any other way as it is.
    pub fn search_way(&self, by: SearchBy) -> SearchBy {
        self.searcher.way(by)
    }
}

/// The search of one gate, which runs share with it: a script can look for
/// tools, too.
pub(crate) struct Searcher {
    live: Arc<LiveCatalog>,
    vectors: Arc<Vectors>,
    models: Arc<Models>,
    /// What is done where a request leaves it open.
    by: SearchBy,
    /// Makes vectors when the tools change.
    follower: Option<JoinHandle<()>>,
}

impl Searcher {
    pub(crate) fn new(
        live: Arc<LiveCatalog>,
        broker: &Broker,
        models: Arc<Models>,
        vectors: Arc<Vectors>,
        by: SearchBy,
    ) -> Self {
        let follower = vectors.can_be_made().then(|| vectors.follow(&live, broker));
        Self {
            live,
            vectors,
            models,
            by,
            follower,
        }
    }

    /// As [`Gate::search`]. What these rules deny whatever its arguments, no model is
    /// shown. Where a script searches, its run decides whether anything is given to a model
    /// or an endpoint; where that may not be, words are compared, and a note says so.
    pub(crate) async fn search(
        &self,
        request: &SearchRequest,
        rules: &Arc<Rules>,
        searching: Option<Searching<'_>>,
    ) -> Result<Found, SearchError> {
        let catalog = self.live.fresh().await;
        let servers = self.live.servers();
        known_server(request, &servers)?;
        let limit = request.limit.min(MAX_LIMIT);
        let mut found = Found {
            notes: notes(request, &servers, &catalog, searching.is_some()),
            ..Found::default()
        };
        let in_scope = catalog.tools().iter();
        let in_scope = in_scope.filter(|tool| request.is_of(&tool.definition.server));
        found.searched = in_scope.clone().count();
        if request.query.trim().is_empty() {
            let hits = in_scope.take(limit).map(|tool| Hit {
                function: tool.function.clone(),
                server: tool.definition.server.clone(),
                score: 0.0,
            });
            found.hits = hits.collect();
            return Ok(found);
        }
        let way = self.way(request.by);
        let showable = (way == SearchBy::Model).then(|| {
            let foresight = Foresight::new(Arc::clone(rules), &servers);
            Showable::of(&catalog, request, &foresight)
        });
        let index = self.live.index(Arc::clone(&catalog), servers).await;
        if way == SearchBy::Regex {
            by_pattern(index, request, limit, &mut found).await?;
            return Ok(found);
        }
        let asked = request.query.trim();
        let query = asked.get(..asked.floor_char_boundary(MAX_WORDS_BYTES));
        let query = query.unwrap_or_default();
        if query.len() < asked.len() {
            let note = format!("only the first {MAX_WORDS_BYTES} bytes of the query count");
            found.notes.push(note);
        }
        // Each way of searching is a ranking; `callgate_catalog::search::fuse`
        // makes one of several.
        let by_words = |query: &str, limit| Found {
            hits: hits(&index.by_words(query, |one| request.is_of(one), limit)),
            ..Found::default()
        };
        // Whatever is given away of a query is this text, which is that which was looked at.
        let ranking = async |query: String| match (way, showable) {
            (_, Some(showable)) => {
                let most = showable.candidates(limit);
                let mut candidates = if self.vectors.can_be_made() {
                    let way = SearchBy::Hybrid;
                    let meant = self.by_meaning(way, &catalog, &index, request, &query, most);
                    meant.await
                } else {
                    by_words(&query, most)
                };
                showable.choose(&mut candidates, limit);
                self.by_model(&catalog, request, &query, limit, candidates, &showable)
                    .await
            }
            (SearchBy::Vectors | SearchBy::Hybrid, _) => {
                let meant = self.by_meaning(way, &catalog, &index, request, &query, limit);
                meant.await
            }
            _ => by_words(&query, limit),
        };
        let ranking = |query| ranking(query).boxed();
        let ranked = match searching.filter(|_| self.gives_away(way, request)) {
            None => ranking(query.to_owned()).await,
            Some(searching) => match searching.consult(query, ranking).await {
                Ok(ranked) => ranked,
                Err(reason) => Found {
                    notes: vec![format!("only words were compared: {reason}")],
                    ..by_words(query, limit)
                },
            },
        };
        found.hits = ranked.hits;
        found.notes.extend(ranked.notes);
        Ok(found)
    }
}

impl Searcher {
    /// Whether a search in this way gives what is looked for to a model or an endpoint.
    fn gives_away(&self, way: SearchBy, request: &SearchRequest) -> bool {
        let caller = request.caller.as_ref();
        match way {
            SearchBy::Vectors | SearchBy::Hybrid => self.vectors.can_be_made(),
            SearchBy::Model => {
                self.vectors.can_be_made()
                    || self.models.has_small()
                    || caller.is_some_and(|caller| caller.offers().sampling)
            }
            SearchBy::Auto | SearchBy::Words | SearchBy::Regex => false,
        }
    }
}

impl Drop for Searcher {
    fn drop(&mut self) {
        if let Some(follower) = &self.follower {
            follower.abort();
        }
    }
}

/// Whatever its author thought of, it does not hold up the others' thread.
async fn by_pattern(
    index: Arc<SearchIndex>,
    request: &SearchRequest,
    limit: usize,
    found: &mut Found,
) -> Result<(), SearchError> {
    let request = request.clone();
    let matching = tokio::task::spawn_blocking(move || {
        let until = Instant::now() + PATTERN_TIME;
        let go_on = || Instant::now() < until;
        let is_of = |server: &str| request.is_of(server);
        let matched = index.by_pattern(&request.query, is_of, limit, go_on)?;
        Ok((hits(&matched.ranked), matched.is_complete))
    });
    let matched: Result<_, PatternFault> = match matching.await {
        Ok(matched) => matched,
        // `by_pattern` does not panic, so the runtime is shutting down.
        Err(_) => std::future::pending().await,
    };
    let (hits, is_complete) = matched.map_err(|fault| SearchError::Regex(fault.to_string()))?;
    found.hits = hits;
    if !is_complete {
        let note = "the expression takes long, so not all tools were looked at; use a simpler one";
        found.notes.push(note.to_owned());
    }
    Ok(())
}

fn hits(ranked: &[Ranked<'_>]) -> Vec<Hit> {
    let hit = |ranked: &Ranked<'_>| Hit {
        function: ranked.function.to_owned(),
        server: ranked.server.to_owned(),
        score: ranked.score,
    };
    ranked.iter().map(hit).collect()
}

/// An error if the request asks for a server that there is not.
fn known_server(request: &SearchRequest, servers: &[ServerState]) -> Result<(), SearchError> {
    let Some(asked) = &request.server else {
        return Ok(());
    };
    let visible = |name: &&str| {
        let is_one = |among: &Vec<String>| among.iter().any(|one| one == name);
        request.among.as_ref().is_none_or(is_one)
    };
    let names = servers.iter().map(|server| server.name.as_str());
    let names: Vec<&str> = names.filter(visible).collect();
    if names.contains(&asked.as_str()) {
        return Ok(());
    }
    Err(SearchError::UnknownServer {
        near: closest(asked, names.into_iter()),
        name: asked.chars().take(MAX_QUOTED).collect(),
    })
}

/// What is to be known of the servers that were to be looked through: whose tools
/// are not among those found, or are as they were. A script does not hear why: that may quote
/// the server, and what servers say to scripts is what calls of theirs bring, which is looked at
/// and remembered as their data.
fn notes(
    request: &SearchRequest,
    servers: &[ServerState],
    catalog: &Catalog,
    by_script: bool,
) -> Vec<String> {
    let is_listed = |name: &str| {
        let mut tools = catalog.tools().iter();
        tools.any(|tool| tool.definition.server == name)
    };
    let why = |reason: &str| match by_script {
        true => String::new(),
        false => format!(": {reason}"),
    };
    let in_scope = servers.iter().filter(|server| request.is_of(&server.name));
    let notes = in_scope.filter_map(|ServerState { name, phase, .. }| match phase {
        Phase::Down(_) if !request.tells_of_servers => None,
        Phase::Down(reason) if is_listed(name) => Some(format!(
            "server {name:?} cannot be had, so its tools are as they were{}",
            why(reason)
        )),
        Phase::Down(reason) => Some(format!(
            "server {name:?} cannot be had, so its tools are not among these{}",
            why(reason)
        )),
        Phase::Disabled if request.server.is_some() => Some(format!(
            "server {name:?} is not in use; enable it to find its tools"
        )),
        _ => None,
    });
    notes.collect()
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
