//! What a script may ask about the tools there are: `mcp.searchTools` and
//! `mcp.getToolDetails`.
//!
//! They come over the same way as calls of tools, under names that no function
//! has. They reach no server, so no rule is asked and the ledger has no line of
//! them, but for searches that give what is looked for to a model or an endpoint;
//! they are counted, and a run has so many of them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use callgate_broker::{Caller, Place, Run, code};
use callgate_catalog::{Catalog, CatalogTool, Detail};
use callgate_policy::Rules;
use callgate_sandbox::{ErrorClass, Thrown};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::live_catalog::LiveCatalog;
use crate::scope::Scope;
use crate::script_calls::SUGGESTIONS;
use crate::search::{SearchBy, SearchRequest, Searcher, Searching};

/// The most lookups of one run.
const MAX_LOOKUPS: u64 = 100;
/// The most tools that one search finds.
const MAX_HITS: usize = 100;
/// The most tools that one call has the details of.
const MAX_NAMES: usize = 100;
/// The most bytes of what is looked for.
const MAX_QUERY: usize = 4 << 10;
/// The most bytes that a lookup answers with.
const MAX_ANSWER: usize = 4 << 20;

/// How long the searches of one run may wait, together, for vectors that tools have not
/// got yet.
const VECTORS_TIME: Duration = Duration::from_secs(30);

/// JSON-RPC's "invalid params".
const INVALID_PARAMS: i64 = -32602;

/// What can be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Tools, by what they do.
    Search,
    /// Tools, by their names.
    Details,
}

impl Lookup {
    /// The lookup that a call of this name is, if it is one.
    pub(crate) fn named(function: &str) -> Option<Self> {
        match function {
            "mcp.searchTools" => Some(Self::Search),
            "mcp.getToolDetails" => Some(Self::Details),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Search => "mcp.searchTools",
            Self::Details => "mcp.getToolDetails",
        }
    }
}

/// The lookups of one run.
pub(crate) struct Lookups {
    live: Arc<LiveCatalog>,
    searcher: Arc<Searcher>,
    /// The servers whose tools the run may use: it finds no others.
    scope: Scope,
    /// Those of the run.
    rules: Arc<Rules>,
    /// Whose model may pick tools.
    caller: Option<Arc<dyn Caller>>,
    run: Arc<Run>,
    waits: Waits,
    made: AtomicU64,
    /// Names that no tool has, so far.
    unknown: Arc<AtomicU64>,
}

impl Lookups {
    pub(crate) fn new(
        live: Arc<LiveCatalog>,
        searcher: Arc<Searcher>,
        scope: Scope,
        rules: Arc<Rules>,
        caller: Option<Arc<dyn Caller>>,
        run: Arc<Run>,
    ) -> Self {
        Self {
            live,
            searcher,
            scope,
            rules,
            caller,
            run,
            waits: Waits::default(),
            made: AtomicU64::new(0),
            unknown: Arc::default(),
        }
    }

    /// How many there were, those over the limit not counted.
    pub(crate) fn count(&self) -> u64 {
        self.made.load(Ordering::Relaxed).min(MAX_LOOKUPS)
    }

    /// Answers one, with JSON text or with an error to throw.
    pub(crate) async fn answer(
        &self,
        lookup: Lookup,
        input: &RawValue,
        place: Option<Place>,
    ) -> Result<Box<RawValue>, Thrown> {
        if self.made.fetch_add(1, Ordering::Relaxed) >= MAX_LOOKUPS {
            let message = format!(
                "a run may look up {MAX_LOOKUPS} times, and this one has; search for more at once \
                 and keep what was found"
            );
            return Err(Failed(code::TOO_MANY_CALLS, message).thrown(lookup));
        }
        let answered = match lookup {
            Lookup::Search => self.search(input, place).await,
            Lookup::Details => self.details(input).await,
        };
        answered.map_err(|failed| failed.thrown(lookup))
    }

    async fn search(
        &self,
        input: &RawValue,
        place: Option<Place>,
    ) -> Result<Box<RawValue>, Failed> {
        let asked: SearchInput = parse(input)?;
        if asked.query.len() > MAX_QUERY {
            return Err(invalid(format!(
                "the query has {} bytes, over the limit of {MAX_QUERY}",
                asked.query.len()
            )));
        }
        let level = Level::named(asked.detail.as_deref())?;
        let mut request = SearchRequest::new(asked.query);
        request.by = search_by(asked.by.as_deref())?;
        request.patience = self.waits.patience(request.by, Instant::now());
        request.server = asked.server;
        request.caller.clone_from(&self.caller);
        if let Some(limit) = asked.limit {
            if !(1..=MAX_HITS).contains(&limit) {
                return Err(invalid(format!("the limit must be 1 to {MAX_HITS}")));
            }
            request.limit = limit;
        }
        request.among = self.scope.servers();
        let run = &self.run;
        let searching = Some(Searching { run, place });
        let found = self.searcher.search(&request, &self.rules, searching).await;
        let found = found.map_err(|error| invalid(error.to_string()))?;
        let catalog = self.live.catalog();
        let shown = move || {
            let tools = found.hits.iter().filter_map(|hit| {
                let tool = catalog.get(&hit.function)?;
                Some(level.shown(&catalog, tool))
            });
            json!({
                "tools": tools.collect::<Vec<_>>(),
                "searched": found.searched,
                "notes": found.notes,
            })
        };
        made(shown).await
    }

    async fn details(&self, input: &RawValue) -> Result<Box<RawValue>, Failed> {
        let asked: DetailsInput = parse(input)?;
        let names = match asked.names {
            Names::One(name) => vec![name],
            Names::Many(names) => names,
        };
        if names.len() > MAX_NAMES {
            return Err(invalid(format!(
                "{} names are more than the {MAX_NAMES} of one call",
                names.len()
            )));
        }
        let catalog = self.live.fresh().await;
        let scope = self.scope.clone();
        let unknown = Arc::clone(&self.unknown);
        made(move || details(&catalog, &names, &scope, &unknown)).await
    }
}

/// How long a run's searches wait for vectors: until some time after the first that
/// asked for them. The process may be one run's alone, and have begun with none.
#[derive(Debug, Default)]
struct Waits(OnceLock<Instant>);

impl Waits {
    /// How long a search may wait that is asked for in this way. Who leaves the way open
    /// gets what there is.
    fn patience(&self, by: SearchBy, now: Instant) -> Duration {
        match by {
            SearchBy::Vectors | SearchBy::Hybrid => {
                let first = self.0.get_or_init(|| now);
                VECTORS_TIME.saturating_sub(now.saturating_duration_since(*first))
            }
            SearchBy::Auto | SearchBy::Words | SearchBy::Regex | SearchBy::Model => Duration::ZERO,
        }
    }
}

/// Makes an answer on a thread for such work: the declarations of a large
/// catalog may have to be made first.
async fn made(answer: impl FnOnce() -> Value + Send + 'static) -> Result<Box<RawValue>, Failed> {
    let text = tokio::task::spawn_blocking(move || to_raw_value(&answer())).await;
    match text {
        Ok(Ok(text)) if text.get().len() <= MAX_ANSWER => Ok(text),
        Ok(Ok(text)) => Err(Failed(
            code::RESULT_TOO_LARGE,
            format!(
                "the answer would have {} bytes, over the limit of {MAX_ANSWER}; ask for fewer \
                 tools or less detail",
                text.get().len()
            ),
        )),
        Ok(Err(_)) | Err(_) => Err(invalid("the answer could not be made".to_owned())),
    }
}

/// What is known of these tools, in the order of the names. The first unknown names of
/// a run, which `told` counts, come with the name that is like them.
fn details(catalog: &Catalog, names: &[String], scope: &Scope, told: &AtomicU64) -> Value {
    let near = |name: &str| {
        let tell = told.fetch_add(1, Ordering::Relaxed) < SUGGESTIONS;
        tell.then(|| scope.nearest(catalog, name)).flatten()
    };
    let mut seen = HashSet::new();
    let (mut tools, mut unknown) = (Vec::new(), Vec::new());
    for name in names.iter().filter(|name| seen.insert(name.as_str())) {
        let tool = catalog.get(name);
        match tool.filter(|tool| scope.has(&tool.definition.server)) {
            Some(tool) => tools.push(described(tool)),
            None => {
                // The name is a script's: what is given back of it is bounded.
                let shown: String = name.chars().take(80).collect();
                unknown.push(json!({ "name": shown, "near": near(name) }));
            }
        }
    }
    json!({
        "declarations": catalog.declarations(Detail::Full, |function| {
            seen.contains(function) && !scope.excludes(catalog, function)
        }),
        "tools": tools,
        "unknown": unknown,
    })
}

fn described(tool: &CatalogTool) -> Value {
    let definition = &tool.definition;
    let mut members = json!({
        "name": tool.function,
        "server": definition.server,
        "tool": definition.name,
        "inputSchema": definition.input_schema,
    });
    let optional = [
        (
            "description",
            definition.description.as_deref().map(Value::from),
        ),
        (
            "outputSchema",
            definition
                .output_schema
                .as_ref()
                .map(|it| it.value().clone()),
        ),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            members[key] = value;
        }
    }
    members
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchInput {
    query: String,
    detail: Option<String>,
    limit: Option<usize>,
    server: Option<String>,
    by: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetailsInput {
    names: Names,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`names` must be a string or an array of strings"
)]
enum Names {
    One(String),
    Many(Vec<String>),
}

fn parse<'a, T: Deserialize<'a>>(input: &'a RawValue) -> Result<T, Failed> {
    serde_json::from_str(input.get()).map_err(|error| {
        // Without its place, which is one in a text that nobody has seen.
        let message = error.to_string();
        let end = message.rfind(" at line ").unwrap_or(message.len());
        invalid(message.get(..end).unwrap_or_default().to_owned())
    })
}

/// How much is said of a tool that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level(Detail);

impl Level {
    fn named(word: Option<&str>) -> Result<Self, Failed> {
        Ok(Self(match word {
            Some("names") => Detail::Name,
            None | Some("summaries") => Detail::Summary,
            Some("signatures") => Detail::Signature,
            Some("full") => Detail::Full,
            Some(_) => {
                let all = "`detail` must be one of names, summaries, signatures and full";
                return Err(invalid(all.to_owned()));
            }
        }))
    }

    fn shown(self, catalog: &Catalog, tool: &CatalogTool) -> FoundTool {
        let function = tool.function.as_str();
        let declaration = (self.0 >= Detail::Signature)
            .then(|| catalog.declarations(self.0, |name| name == function));
        FoundTool {
            name: tool.function.clone(),
            server: tool.definition.server.clone(),
            summary: (self.0 >= Detail::Summary)
                .then(|| catalog.summary(function).map(str::to_owned))
                .flatten(),
            declaration,
        }
    }
}

#[derive(Serialize)]
struct FoundTool {
    name: String,
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    declaration: Option<String>,
}

fn search_by(word: Option<&str>) -> Result<SearchBy, Failed> {
    Ok(match word {
        None | Some("auto") => SearchBy::Auto,
        Some("words") => SearchBy::Words,
        Some("regex") => SearchBy::Regex,
        Some("vectors") => SearchBy::Vectors,
        Some("hybrid") => SearchBy::Hybrid,
        Some("model") => SearchBy::Model,
        Some(_) => {
            return Err(invalid(
                "`by` must be one of auto, words, regex, vectors, hybrid and model".to_owned(),
            ));
        }
    })
}

/// Code and message of what is thrown.
struct Failed(i64, String);

fn invalid(message: String) -> Failed {
    Failed(INVALID_PARAMS, message)
}

impl Failed {
    fn thrown(self, lookup: Lookup) -> Thrown {
        let Self(code, message) = self;
        let name = lookup.name();
        Thrown {
            class: ErrorClass::Protocol,
            message: format!("{name}: {message}").into(),
            fields: json!({ "tool": name, "code": code, "retryable": false })
                .to_string()
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_waits_for_vectors_where_it_asks_for_them_and_not_for_ever() {
        let (waits, start) = (Waits::default(), Instant::now());
        let after = |by, seconds| {
            let patience = waits.patience(by, start + Duration::from_secs(seconds));
            patience.as_secs()
        };
        for by in [
            SearchBy::Auto,
            SearchBy::Words,
            SearchBy::Regex,
            SearchBy::Model,
        ] {
            assert_eq!(after(by, 0), 0, "{by:?}");
        }
        assert_eq!(after(SearchBy::Vectors, 100), 30);
        assert_eq!(after(SearchBy::Vectors, 110), 20);
        assert_eq!(after(SearchBy::Hybrid, 120), 10);
        assert_eq!(after(SearchBy::Auto, 120), 0);
        assert_eq!(after(SearchBy::Hybrid, 200), 0);
    }
}
