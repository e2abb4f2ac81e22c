//! Search for tools: by words, regular expression, meaning or a model.

mod index;
mod meaning;
pub(crate) mod pick;
pub(crate) mod request;
mod vector_store;
mod vector_text;
pub(crate) mod vectors;

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_catalog::search::SearchIndex;
use callgate_catalog::{Catalog, Tool};
use callgate_policy::{Rules, nearest};
use callgate_servers::{Phase, Reader, ServerState, Servers};
use futures::FutureExt as _;

use crate::config::ToolSettings;
use crate::error::GateError;
use crate::foresight::Foresight;
use crate::live_catalog::LiveCatalog;
use crate::models::Models;
use crate::names::no_server;
use crate::settings::SearchBy;
use index::IndexCache;
use pick::Consult;
use request::{Found, Hit, SearchRequest};
use vectors::Vectors;

/// The most hits of a search.
const MAX_LIMIT: usize = 200;
/// The most bytes of a query that count.
const MAX_WORDS_BYTES: usize = 2_000;
/// The most time of a regular expression.
const REGEX_TIME: Duration = Duration::from_millis(500);
/// Characters of a server's name that an error repeats.
const SHOWN_NAME: usize = 80;

/// The search of one gate, for hosts and scripts.
pub(crate) struct Searcher {
    live: Arc<LiveCatalog>,
    index: IndexCache,
    vectors: Arc<Vectors>,
    models: Arc<Models>,
    /// The way of searching for requests that leave it open.
    by: SearchBy,
    /// The reader of notes.
    reader: Reader,
}

/// One search.
struct Search<'a> {
    catalog: &'a Arc<Catalog>,
    servers: &'a [ServerState],
    index: &'a SearchIndex,
    rules: &'a Arc<Rules>,
    request: &'a SearchRequest,
    limit: usize,
}

impl Search<'_> {
    fn by_words(&self, query: &str, limit: usize) -> Found {
        let accepts = |server: &str| self.request.is_of(server);
        let matched = self.index.by_words(query, accepts, limit);
        Found {
            hits: matched.ranked.iter().map(Hit::from).collect(),
            more: matched.more,
            is_poor: !matched.fits && !matched.ranked.is_empty(),
            ..Found::default()
        }
    }

    /// The searched tools that the rules do not deny, and the number of denied ones.
    fn allowed(&self) -> (Vec<&Tool>, usize) {
        let foresight = Foresight::new(Arc::clone(self.rules), self.servers.iter().cloned());
        let tools = self.catalog.tools().iter();
        let tools = tools.filter(|tool| self.request.is_of(&tool.definition.server));
        let (denied, allowed): (Vec<_>, Vec<_>) =
            tools.partition(|tool| foresight.denial(tool).is_some());
        (allowed, denied.len())
    }
}

impl Searcher {
    pub(crate) fn new(
        live: Arc<LiveCatalog>,
        settings: Arc<ToolSettings>,
        broker: &Servers,
        models: Arc<Models>,
        vectors: Arc<Vectors>,
        by: SearchBy,
        reader: Reader,
    ) -> Self {
        if vectors.can_be_made() {
            vectors.follow(&live, broker);
        }
        Self {
            live,
            index: IndexCache::new(settings),
            vectors,
            models,
            by,
            reader,
        }
    }

    /// The way of searching that a request's way stands for.
    pub(crate) fn way(&self, by: SearchBy) -> SearchBy {
        match (by, self.by) {
            (SearchBy::Auto, SearchBy::Auto) if self.vectors.can_be_made() => SearchBy::Hybrid,
            (SearchBy::Auto, SearchBy::Auto) => SearchBy::Words,
            (SearchBy::Auto, configured) => configured,
            (by, _) => by,
        }
    }

    /// Searches. A model is not shown tools that the rules deny. For a script, the rules of its
    /// run decide whether the query may go to a model or an endpoint; if not, only words are
    /// compared, and a note says so.
    pub(crate) async fn search(
        &self,
        request: &SearchRequest,
        rules: &Arc<Rules>,
        consult: Option<Consult<'_>>,
    ) -> Result<Found, GateError> {
        let catalog = self.live.fresh().await;
        let servers = self.live.servers();
        check_server(request, &servers)?;
        let limit = request.limit.min(MAX_LIMIT);
        let tools = catalog.tools().iter();
        let tools = tools.filter(|tool| request.is_of(&tool.definition.server));
        let reader = consult.is_none().then_some(self.reader);
        let mut found = Found {
            searched: tools.clone().count(),
            notes: server_notes(request, &servers, &catalog, reader),
            ..Found::default()
        };
        let query = request.query.trim();
        let finished = |mut found: Found| {
            let foresight = Foresight::new(Arc::clone(rules), servers.iter().cloned());
            for hit in &mut found.hits {
                let tool = catalog.get(&hit.function);
                hit.denied = tool.and_then(|tool| foresight.denial(tool));
            }
            if found.is_poor {
                let note = "nothing fits well; these are the nearest".to_owned();
                found.notes.insert(0, note);
            }
            if found.more > 0 {
                let note = "more; raise limit, name a server, or narrow the query";
                found.notes.push(format!("{} {note}", found.more));
            }
            found
        };
        if query.is_empty() {
            let mut tools: Vec<_> = tools.collect();
            tools.sort_by_key(|tool| tool.definition.is_deprecated());
            found.more = tools.len().saturating_sub(limit);
            let tools = tools.into_iter().take(limit);
            found.hits = tools.map(|tool| Hit::new(tool, 0.0)).collect();
            return Ok(finished(found));
        }
        let way = self.way(request.by);
        let index = self.index.of(&catalog, &servers).await;
        if way == SearchBy::Regex {
            by_regex(index, request, limit, &mut found).await?;
            return Ok(finished(found));
        }
        let end = query.floor_char_boundary(MAX_WORDS_BYTES);
        if end < query.len() {
            let note = format!("only the first {MAX_WORDS_BYTES} bytes of the query count");
            found.notes.push(note);
        }
        let query = query.get(..end).unwrap_or_default();
        let search = Search {
            catalog: &catalog,
            servers: &servers,
            index: &index,
            rules,
            request,
            limit,
        };
        let ranked = match consult.filter(|_| self.gives_away(way, request)) {
            None => self.rank(way, &search, query).await,
            Some(consult) => {
                let search = &search;
                let rank =
                    |query: String| async move { self.rank(way, search, &query).await }.boxed();
                let ranked = consult.rank(query, rank).await;
                ranked.unwrap_or_else(|reason| Found {
                    notes: vec![format!("only words were compared: {reason}")],
                    ..search.by_words(query, limit)
                })
            }
        };
        found.notes.extend(ranked.notes);
        Ok(finished(Found {
            searched: found.searched,
            notes: found.notes,
            ..ranked
        }))
    }

    async fn rank(&self, way: SearchBy, search: &Search<'_>, query: &str) -> Found {
        match way {
            SearchBy::Model => self.by_model(search, query).await,
            SearchBy::Vectors | SearchBy::Hybrid => {
                self.by_meaning(way, search, query, search.limit).await
            }
            SearchBy::Auto | SearchBy::Words | SearchBy::Regex => {
                search.by_words(query, search.limit)
            }
        }
    }

    /// True if such a search gives the query to a model or an endpoint.
    fn gives_away(&self, way: SearchBy, request: &SearchRequest) -> bool {
        match way {
            SearchBy::Vectors | SearchBy::Hybrid => self.vectors.can_be_made(),
            SearchBy::Model => {
                let caller = request.caller.as_ref();
                self.vectors.can_be_made()
                    || self.models.has_small()
                    || caller.is_some_and(|caller| caller.offers().sampling)
            }
            SearchBy::Auto | SearchBy::Words | SearchBy::Regex => false,
        }
    }
}

/// Matches on a blocking thread, for a limited time.
async fn by_regex(
    index: Arc<SearchIndex>,
    request: &SearchRequest,
    limit: usize,
    found: &mut Found,
) -> Result<(), GateError> {
    let request = request.clone();
    let matching = tokio::task::spawn_blocking(move || {
        let until = Instant::now() + REGEX_TIME;
        let accepts = |server: &str| request.is_of(server);
        let go_on = || Instant::now() < until;
        let matched = index.by_pattern(&request.query, accepts, limit, go_on);
        matched.map(|matched| {
            let hits: Vec<Hit> = matched.ranked.iter().map(Hit::from).collect();
            (hits, matched.more, matched.is_complete)
        })
    });
    let matched = matching.await;
    let matched = matched.map_err(|panic| GateError(panic.to_string()))?;
    let (hits, more, is_complete) = matched
        .map_err(|fault| GateError(format!("the query is not a regular expression: {fault}")))?;
    (found.hits, found.more) = (hits, more);
    if !is_complete {
        let note = "the expression takes long, so not all tools were looked at; use a simpler one";
        found.notes.push(note.to_owned());
    }
    Ok(())
}

/// An error if no server has the requested name.
fn check_server(request: &SearchRequest, servers: &[ServerState]) -> Result<(), GateError> {
    let Some(name) = &request.server else {
        return Ok(());
    };
    let names = servers.iter().map(|server| server.name.as_str());
    let names: Vec<&str> = names.filter(|name| request.may_mention(name)).collect();
    if names.contains(&name.as_str()) {
        return Ok(());
    }
    let near = nearest(name, names.iter().copied());
    let shown: String = name.chars().take(SHOWN_NAME).collect();
    let known: Vec<String> = names.iter().copied().map(str::to_owned).collect();
    Err(GateError(no_server(&shown, near, &known)))
}

/// Notes about searched servers that are down or disabled. A script does not learn why a server is
/// down: the reason may quote the server, whose data reaches scripts only through reviewed calls.
fn server_notes(
    request: &SearchRequest,
    servers: &[ServerState],
    catalog: &Catalog,
    reader: Option<Reader>,
) -> Vec<String> {
    let is_listed = |name: &str| {
        let mut tools = catalog.tools().iter();
        tools.any(|tool| tool.definition.server == name)
    };
    let servers = servers.iter().filter(|server| request.is_of(&server.name));
    let notes = servers.filter_map(|server| {
        let name = &server.name;
        match &server.phase {
            Phase::Down(reason) if request.tells_of_servers => {
                let is_listed = is_listed(name);
                let tools = if is_listed {
                    "as they were"
                } else {
                    "not among these"
                };
                let why = reader.map_or(String::new(), |it| format!(": {}", reason.to(it)));
                Some(format!(
                    "server {name:?} is not available, so its tools are {tools}{why}"
                ))
            }
            Phase::Disabled if request.server.is_some() => Some(format!(
                "server {name:?} is not in use; enable it to find its tools"
            )),
            _ => None,
        }
    });
    notes.collect()
}

#[cfg(test)]
mod tests;
