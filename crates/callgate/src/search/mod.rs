//! Search for tools: by words, regular expression, meaning or a model.

mod meaning;
pub(crate) mod pick;
pub(crate) mod request;
mod vector_text;
pub(crate) mod vectors;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_catalog::search::{Entry, SearchIndex, UnknownWords};
use callgate_catalog::{Catalog, Tool};
use callgate_policy::Rules;
use callgate_servers::{Audience, Phase, ServerState};
use callgate_text::one_line;
use futures::FutureExt as _;

use crate::choices::SearchBy;
use crate::error::{GateError, GateErrorKind};
use crate::live_catalog::LiveCatalog;
use crate::names::{no_server, server_description};
use pick::Consult;
use request::{SearchHit, SearchRequest, SearchResults};
use vectors::Vectors;

/// The limit of hits in a search.
const MAX_LIMIT: usize = 200;
/// The limit of a query, in bytes. The rest is ignored.
const MAX_WORDS_BYTES: usize = 2_000;
/// The time limit of a regular expression.
const REGEX_TIME: Duration = Duration::from_millis(500);
/// The limit of a server's name in an error, and of a word in a note, in characters.
const SHOWN_NAME: usize = 80;
/// The limit of the servers' names in a note, in characters.
const SHOWN_SERVERS: usize = 400;
/// The limit of words in a note.
const SHOWN_WORDS: usize = 5;

/// The search of one gate, for hosts and scripts.
pub(crate) struct Searcher {
    live: Arc<LiveCatalog>,
    vectors: Arc<Vectors>,
    /// The way of searching for requests with [`SearchBy::Auto`].
    by: SearchBy,
    audience: Audience,
}

/// One search.
struct Search<'a> {
    catalog: &'a Arc<Catalog>,
    index: &'a SearchIndex,
    rules: &'a Rules,
    request: &'a SearchRequest,
    limit: usize,
}

impl Search<'_> {
    fn by_words(&self, query: &str, limit: usize) -> SearchResults {
        let accepts = |server: &str| self.request.is_of(server);
        let matched = self.index.by_words(query, accepts, limit);
        SearchResults {
            hits: matched.ranked.iter().map(SearchHit::from).collect(),
            more: matched.more,
            is_poor: !matched.fits && !matched.ranked.is_empty(),
            ..SearchResults::default()
        }
    }

    /// Searches by words, with a note that gives the reason.
    fn only_by_words(&self, query: &str, limit: usize, reason: &str) -> SearchResults {
        SearchResults {
            notes: vec![format!("only words were compared: {reason}")],
            ..self.by_words(query, limit)
        }
    }
}

impl Searcher {
    pub(crate) fn new(
        live: Arc<LiveCatalog>,
        vectors: Arc<Vectors>,
        by: SearchBy,
        audience: Audience,
    ) -> Self {
        if vectors.models.has_embeddings() {
            vectors.follow(&live);
        }
        Self {
            live,
            vectors,
            by,
            audience,
        }
    }

    /// Resolves [`SearchBy::Auto`].
    pub(crate) fn way(&self, by: SearchBy) -> SearchBy {
        match (by, self.by) {
            (SearchBy::Auto, SearchBy::Auto) if self.vectors.models.has_embeddings() => {
                SearchBy::Hybrid
            }
            (SearchBy::Auto, SearchBy::Auto) => SearchBy::Words,
            (SearchBy::Auto, configured) => configured,
            (by, _) => by,
        }
    }

    /// Searches. Models do not see tools that the rules deny. For a script, the rules of its run
    /// decide whether the query may go to a model or an endpoint; if not, only words are compared,
    /// and a note says so.
    pub(crate) async fn search(
        &self,
        request: &SearchRequest,
        rules: &Rules,
        consult: Option<Consult<'_>>,
    ) -> Result<SearchResults, GateError> {
        let catalog = self.live.fresh().await;
        let servers = self.live.servers();
        check_server(request, &servers)?;
        let audience = consult.is_none().then_some(self.audience);
        let mut notes = server_notes(request, &servers, &catalog, audience);
        let tools = catalog.tools().iter();
        let tools: Vec<&Tool> = tools
            .filter(|tool| request.is_of(&tool.definition.server))
            .collect();
        let searched = tools.len();
        let denial = |tool: &Tool| self.live.denial(rules, tool);
        let denied = tools.iter().filter(|tool| denial(tool).is_some()).count();
        let limit = request.limit.min(MAX_LIMIT);
        // With room for the denied tools, none takes the place of a tool that may be called.
        let mut found = self
            .ranked(request, rules, &catalog, tools, limit + denied, consult)
            .await?;
        for hit in &mut found.hits {
            hit.denied = catalog.get(&hit.function).and_then(denial);
        }
        found.hits.sort_by_key(|hit| hit.denied.is_some());
        found.more += found.hits.len().saturating_sub(limit);
        found.hits.truncate(limit);
        if found.is_poor {
            let accepts = |server: &str| request.is_of(server);
            let index = self.index(&catalog).await;
            let unknown = index.unknown_words(&request.query, accepts);
            found.is_off_topic = unknown.is_topic;
            notes.insert(0, poor_note(&unknown));
        }
        notes.append(&mut found.notes);
        if found.more > 0 && !found.is_off_topic {
            let note = "more; raise limit, name a server, or narrow the query";
            notes.push(format!("{} {note}", found.more));
        }
        Ok(SearchResults {
            searched,
            notes,
            ..found
        })
    }

    /// Ranks the tools of the searched servers, with notes about the way of searching.
    async fn ranked(
        &self,
        request: &SearchRequest,
        rules: &Rules,
        catalog: &Arc<Catalog>,
        mut tools: Vec<&Tool>,
        limit: usize,
        consult: Option<Consult<'_>>,
    ) -> Result<SearchResults, GateError> {
        let query = request.query.trim();
        if query.is_empty() {
            tools.sort_by_key(|tool| tool.definition.is_deprecated());
            let hits = tools
                .iter()
                .take(limit)
                .map(|tool| SearchHit::new(tool, 0.0));
            return Ok(SearchResults {
                hits: hits.collect(),
                more: tools.len().saturating_sub(limit),
                ..SearchResults::default()
            });
        }
        let way = self.way(request.by);
        let index = self.index(catalog).await;
        if way == SearchBy::Regex {
            return by_regex(index, request, limit).await;
        }
        let words = query.get(..query.floor_char_boundary(MAX_WORDS_BYTES));
        let words = words.unwrap_or_default();
        let search = Search {
            catalog,
            index: &index,
            rules,
            request,
            limit,
        };
        let mut found = match consult.filter(|_| self.sends_query(way, request)) {
            None => self.rank(way, &search, words).await,
            Some(consult) => {
                let search = &search;
                let rank =
                    |query: String| async move { self.rank(way, search, &query).await }.boxed();
                let ranked = consult.rank(words, rank).await;
                ranked.unwrap_or_else(|reason| search.only_by_words(words, limit, &reason))
            }
        };
        if words.len() < query.len() {
            let note = format!("only the first {MAX_WORDS_BYTES} bytes of the query are used");
            found.notes.insert(0, note);
        }
        Ok(found)
    }

    /// Makes the word index of a catalog on a blocking thread.
    async fn index(&self, catalog: &Arc<Catalog>) -> SearchIndex {
        let (live, catalog) = (Arc::clone(&self.live), Arc::clone(catalog));
        let making = tokio::task::spawn_blocking(move || {
            let servers = live.servers();
            let about = servers.iter().filter_map(|server| {
                let description = server_description(server)?;
                Some((server.name.as_str(), description))
            });
            let about: HashMap<&str, String> = about.collect();
            SearchIndex::build(catalog.tools().iter().map(|tool| Entry {
                function: &tool.function,
                definition: &tool.definition,
                keywords: live.lint.settings.keywords(tool.name()),
                about: about.get(&*tool.definition.server).map(String::as_str),
            }))
        });
        making.await.unwrap_or_default()
    }

    async fn rank(&self, way: SearchBy, search: &Search<'_>, query: &str) -> SearchResults {
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

    /// True if such a search sends the query to a model or an endpoint.
    fn sends_query(&self, way: SearchBy, request: &SearchRequest) -> bool {
        let models = &self.vectors.models;
        match way {
            SearchBy::Vectors | SearchBy::Hybrid => models.has_embeddings(),
            SearchBy::Model => models.has_embeddings() || models.can_ask(request.caller.as_ref()),
            SearchBy::Auto | SearchBy::Words | SearchBy::Regex => false,
        }
    }
}

/// Matches on a blocking thread, for a limited time.
async fn by_regex(
    index: SearchIndex,
    request: &SearchRequest,
    limit: usize,
) -> Result<SearchResults, GateError> {
    let request = request.clone();
    let matching = tokio::task::spawn_blocking(move || {
        let until = Instant::now() + REGEX_TIME;
        let accepts = |server: &str| request.is_of(server);
        let go_on = || Instant::now() < until;
        let matched = index.by_pattern(&request.query, accepts, limit, go_on);
        let matched = matched.map_err(|fault| {
            let message = format!("the query is not a regular expression: {fault}");
            GateError::new(GateErrorKind::Query, message)
        })?;
        let note =
            "the expression takes too long, so not all tools were searched; use a simpler one";
        let note = (!matched.is_complete).then(|| note.to_owned());
        Ok(SearchResults {
            hits: matched.ranked.iter().map(SearchHit::from).collect(),
            more: matched.more,
            notes: note.into_iter().collect(),
            ..SearchResults::default()
        })
    });
    matching
        .await
        .unwrap_or_else(|panic| Err(GateError::new(GateErrorKind::Query, panic.to_string())))
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
    let shown: String = name.chars().take(SHOWN_NAME).collect();
    let message = no_server(&shown, &names);
    Err(GateError::new(GateErrorKind::NotFound, message))
}

/// The note about a search without a good match.
fn poor_note(unknown: &UnknownWords) -> String {
    let words = unknown.words.iter().take(SHOWN_WORDS);
    let words: Vec<String> = words
        .map(|word| format!("{:?}", one_line(word, SHOWN_NAME)))
        .collect();
    let why = if words.is_empty() {
        "no good match".to_owned()
    } else {
        format!("no tool speaks of {}", words.join(", "))
    };
    format!("{why}; these are the nearest")
}

/// Notes about searched servers that are down or disabled: one for all that are down, and for the
/// operator and a search of one server the reason. A script does not get the reason, because the
/// reason may quote the server, whose data reaches scripts only through reviewed calls.
fn server_notes(
    request: &SearchRequest,
    servers: &[ServerState],
    catalog: &Catalog,
    audience: Option<Audience>,
) -> Vec<String> {
    let is_listed = |name: &str| {
        let mut tools = catalog.tools().iter();
        tools.any(|tool| tool.definition.server == name)
    };
    let of_one = request.server.is_some();
    let (mut notes, mut listed, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for server in servers.iter().filter(|server| request.is_of(&server.name)) {
        let name = &server.name;
        match &server.phase {
            Phase::Down(reason) if request.tells_of_servers => {
                let is_listed = is_listed(name);
                let tools = if is_listed {
                    "those of its last list"
                } else {
                    "missing"
                };
                match audience.filter(|it| of_one || *it == Audience::Operator) {
                    Some(audience) => notes.push(format!(
                        "server {name:?} is not available, so its tools are {tools}: {}",
                        reason.to(audience)
                    )),
                    None if is_listed => listed.push(format!("{name:?}")),
                    None => missing.push(format!("{name:?}")),
                }
            }
            Phase::Disabled if of_one => notes.push(format!(
                "server {name:?} is disabled; enable it to find its tools"
            )),
            _ => {}
        }
    }
    let who = audience.map_or("", |_| "; only the person who runs Callgate can mend that");
    for (names, tools) in [(missing, "missing"), (listed, "those of their last lists")] {
        if !names.is_empty() {
            let names = one_line(&names.join(", "), SHOWN_SERVERS);
            notes.push(format!(
                "not available, so their tools are {tools}: {names}{who}"
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests;
