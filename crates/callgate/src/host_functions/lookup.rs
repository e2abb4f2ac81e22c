//! `mcp.searchTools` and `mcp.getToolDetails`: lookups of a script in the catalog.
//!
//! Lookups reach no server, so they meet no rule and have no ledger line. The exception is
//! a search that gives its query to a model or an embeddings endpoint. A run has a limited
//! number of lookups.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use callgate_catalog::{Detail, Tool};
use callgate_gate::code;
use callgate_sandbox::{ErrorClass, Thrown};
use callgate_schema::Declared;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::choices::SearchBy;
use crate::names::HostFunction;
use crate::script_calls::RunCalls;
use crate::script_errors::own_error;
use crate::search::pick::Consult;
use crate::search::request::SearchRequest;

/// The limit of lookups in one run.
const MAX_LOOKUPS: u64 = 100;
/// The limit of tools in one search.
const MAX_HITS: usize = 100;
/// The limit of names in one call of `mcp.getToolDetails`.
const MAX_NAMES: usize = 100;
/// The limit of a query, in bytes.
const MAX_QUERY: usize = 4 << 10;
/// The limit of an answer, in bytes.
const MAX_ANSWER: usize = 4 << 20;
/// The limit of an unknown name in an answer, in characters.
const SHOWN_NAME: usize = 80;
/// The time limit for missing vectors, for all searches of one run.
const VECTORS_TIME: Duration = Duration::from_secs(30);

impl RunCalls {
    /// The lookups so far, without refused ones.
    pub(crate) fn lookups(&self) -> u64 {
        self.counts.lookups.load(Ordering::Relaxed).min(MAX_LOOKUPS)
    }

    /// Answers a call with JSON or an error to throw.
    pub(crate) async fn look_up(
        &self,
        function: HostFunction,
        input: &RawValue,
        line: Option<u32>,
    ) -> Result<Box<RawValue>, Thrown> {
        let answer = async {
            if self.counts.lookups.fetch_add(1, Ordering::Relaxed) >= MAX_LOOKUPS {
                let message = format!(
                    "this run has reached the limit of {MAX_LOOKUPS} lookups; search for more at \
                     once and keep the results"
                );
                let code = code::TOO_MANY_CALLS;
                return Err(LookupError { code, message });
            }
            let found = if function == HostFunction::SearchTools {
                self.find_tools(input, line).await?
            } else {
                self.describe_tools(input).await?
            };
            answer(&found)
        };
        answer.await.map_err(|failed| {
            let name = function.name();
            let fields = json!({ "tool": name, "code": failed.code, "retryable": false });
            let message = format!("{name}: {}", failed.message);
            own_error(ErrorClass::Protocol, message, &fields)
        })
    }

    async fn find_tools(&self, input: &RawValue, line: Option<u32>) -> Result<Value, LookupError> {
        let input: SearchInput = parse(input)?;
        if input.query.len() > MAX_QUERY {
            let bytes = input.query.len();
            let message = format!("the query has {bytes} bytes, over the limit of {MAX_QUERY}");
            return Err(invalid(message));
        }
        let mut request = SearchRequest::new(input.query);
        request.by = input.by;
        request.patience = self.patience(request.by);
        request.server = input.server;
        request.caller.clone_from(&self.caller);
        request.among = self.scope.servers();
        if let Some(limit) = input.limit {
            if !(1..=MAX_HITS).contains(&limit) {
                return Err(invalid(format!("the limit must be 1 to {MAX_HITS}")));
            }
            request.limit = limit;
        }
        let run = &self.run;
        let consult = Some(Consult { run, line });
        let found = self.searcher.search(&request, &self.rules, consult).await;
        let found = found.map_err(|error| invalid(error.to_string()))?;
        let catalog = self.live.catalog();
        let tools = found.hits.iter().filter_map(|hit| {
            let tool = catalog.get(&hit.function)?;
            let text =
                |detail| catalog.declarations_of(detail, &[&tool.function], |tool| self.mark(tool));
            let summary = (input.detail >= Detail::Summary).then(|| text(Detail::Summary));
            let declaration = (input.detail >= Detail::Signature).then(|| text(input.detail));
            Some(without_nulls(json!({
                "name": tool.function,
                "server": tool.definition.server,
                "denied": hit.denied,
                "summary": summary.as_ref().and_then(|it| Some(it.trim_end().split_once(": ")?.1)),
                "declaration": declaration,
            })))
        });
        Ok(json!({
            "tools": tools.collect::<Vec<_>>(),
            "searched": found.searched,
            "notes": found.notes,
        }))
    }

    /// The time that a search may wait for vectors: zero if it was not asked to use them.
    fn patience(&self, by: SearchBy) -> Duration {
        if !matches!(by, SearchBy::Vectors | SearchBy::Hybrid) {
            return Duration::ZERO;
        }
        let since = self.counts.searching_since.get_or_init(Instant::now);
        VECTORS_TIME.saturating_sub(since.elapsed())
    }

    fn mark(&self, tool: &Tool) -> Option<String> {
        self.live.mark(&self.rules, tool)
    }

    /// The details of tools, in the order of the names. The first unknown names of a run come with
    /// the nearest tool.
    async fn describe_tools(&self, input: &RawValue) -> Result<Value, LookupError> {
        let input: DetailsInput = parse(input)?;
        let names = match input.names {
            ToolNames::One(name) => vec![name],
            ToolNames::Many(names) => names,
        };
        if names.len() > MAX_NAMES {
            let count = names.len();
            let message = format!("{count} names are over the limit of {MAX_NAMES} in one call");
            return Err(invalid(message));
        }
        let catalog = self.live.having(names.iter().map(String::as_str)).await;
        let mut seen = HashSet::new();
        let (mut functions, mut tools, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for name in names.iter().filter(|name| seen.insert(name.as_str())) {
            let tool = catalog.get(name);
            if let Some(tool) = tool.filter(|tool| self.scope.has(&tool.definition.server)) {
                functions.push(tool.function.as_str());
                let definition = &tool.definition;
                tools.push(without_nulls(json!({
                    "name": tool.function,
                    "server": definition.server,
                    "tool": definition.name,
                    "inputSchema": definition.input_schema,
                    "denied": self.live.denial(&self.rules, tool),
                    "description": definition.description,
                    "outputSchema": definition.output_schema.as_ref().map(Declared::value),
                })));
            } else {
                let near = self.suggestion(&catalog, name);
                let shown: String = name.chars().take(SHOWN_NAME).collect();
                others.push(json!({ "name": shown, "near": near }));
            }
        }
        let mark = |tool: &Tool| self.mark(tool);
        Ok(json!({
            "declarations": catalog.declarations_of(Detail::Read, &functions, mark),
            "tools": tools,
            "unknown": others,
        }))
    }
}

/// An answer as text, within the limit.
fn answer(value: &Value) -> Result<Box<RawValue>, LookupError> {
    match to_raw_value(value) {
        Ok(text) if text.get().len() <= MAX_ANSWER => Ok(text),
        Ok(text) => Err(LookupError {
            code: code::RESULT_TOO_LARGE,
            message: format!(
                "the answer would have {} bytes, over the limit of {MAX_ANSWER}; ask for fewer \
                 tools or less detail",
                text.get().len()
            ),
        }),
        Err(_) => Err(invalid("the answer could not be made")),
    }
}

/// The members of an object that are not null.
pub(crate) fn without_nulls(object: Value) -> Map<String, Value> {
    let Value::Object(mut members) = object else {
        return Map::new();
    };
    members.retain(|_, value| !value.is_null());
    members
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchInput {
    query: String,
    #[serde(default = "summaries", with = "DetailWord")]
    detail: Detail,
    limit: Option<usize>,
    server: Option<String>,
    #[serde(default)]
    by: SearchBy,
}

/// The words of `detail`.
#[derive(Deserialize)]
#[serde(remote = "Detail")]
enum DetailWord {
    #[serde(rename = "names")]
    Name,
    #[serde(rename = "summaries")]
    Summary,
    #[serde(rename = "signatures")]
    Signature,
    #[serde(rename = "full")]
    Full,
    #[serde(skip)]
    Read,
    #[serde(skip)]
    Call,
}

fn summaries() -> Detail {
    Detail::Summary
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetailsInput {
    names: ToolNames,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`names` must be a string or an array of strings"
)]
enum ToolNames {
    One(String),
    Many(Vec<String>),
}

fn parse<'a, T: Deserialize<'a>>(input: &'a RawValue) -> Result<T, LookupError> {
    serde_json::from_str(input.get()).map_err(|error| {
        // The author of the script does not know the text that the position refers to.
        let message = error.to_string();
        let end = message.rfind(" at line ").unwrap_or(message.len());
        invalid(message.get(..end).unwrap_or_default())
    })
}

/// An error for the script.
struct LookupError {
    code: i64,
    message: String,
}

fn invalid(message: impl Into<String>) -> LookupError {
    LookupError {
        code: code::INVALID_ARGUMENTS,
        message: message.into(),
    }
}
