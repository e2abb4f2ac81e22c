//! `search_tools` and `get_tool_details`.

use callgate::settings::{Detail, SearchBy};
use callgate::{Gate, SearchRequest};
use callgate_text::one_line;
use callgate_typegen::names::prefix;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::json;

use super::approvals::{Approvals, Asked};
use super::declared::first_that_fit;
use super::own_tools::{self, GET_TOOL_DETAILS, SEARCH_TOOLS};
use super::texts::count;
use crate::arguments::quoted;

/// The limit of tools in an answer, in tokens.
const MAX_TOKENS: usize = 4000;
const DEFAULT_HITS: usize = 10;
/// The number of tools that are shown with their signature and purpose by default; others are
/// named.
const DEFAULT_SIGNATURES: usize = 5;
/// The characters of a name that a message proposes to search for.
const SHOWN_QUERY: usize = 80;
/// The number of tools if none has to do with the query.
const OFF_TOPIC_HITS: usize = 3;

pub(crate) struct ToolSearch {
    pub(crate) request: SearchRequest,
    /// `None` for the default: signatures of the best, and names.
    detail: Option<Detail>,
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    detail: Option<String>,
    limit: Option<usize>,
    server: Option<String>,
    #[serde(default)]
    by: SearchBy,
}

#[derive(Deserialize)]
struct DetailsArguments {
    names: Vec<String>,
}

impl ToolSearch {
    /// Reads the arguments. `full`: the form of full declarations.
    pub(crate) fn read(given: Option<&JsonObject>, full: Detail) -> Result<Self, String> {
        let given: SearchArguments = own_tools::read(SEARCH_TOOLS, given)?;
        let mut request = SearchRequest::new(given.query);
        request.by = given.by;
        request.server = given.server;
        request.limit = given.limit.unwrap_or(DEFAULT_HITS);
        let detail = match given.detail.as_deref() {
            Some("names") => Some(Detail::Name),
            Some("summaries") => Some(Detail::Summary),
            Some("signatures") => Some(Detail::Signature),
            Some("full") => Some(full),
            _ => None,
        };
        Ok(Self { request, detail })
    }

    /// True if a model picks the tools.
    pub(crate) fn is_by_model(&self, gate: &Gate) -> bool {
        gate.view().search_way(self.request.by) == SearchBy::Model
    }

    /// Searches. `asked`: the people who can be asked to approve calls.
    pub(crate) async fn run(self, gate: &Gate, asked: Asked) -> Result<String, String> {
        let found = gate.search(&self.request).await;
        let found = found.map_err(|error| format!("{SEARCH_TOOLS} was not called:\n- {error}"))?;
        let hits = found.hits.iter().map(|hit| hit.function.as_str());
        let mut hits: Vec<&str> = hits.collect();
        if found.is_off_topic {
            hits.truncate(OFF_TOPIC_HITS);
        }
        let (mut text, mut notes) = (String::new(), found.notes.iter());
        if found.is_poor
            && let Some(note) = notes.next()
        {
            text += &format!("{note}:\n");
        }
        text += &if hits.is_empty() {
            let searched = count(found.searched, "tool");
            format!("nothing found among {searched}; try other words\n")
        } else {
            match self.detail {
                Some(detail) => described(gate, detail, &hits),
                None => best_described(gate, &hits),
            }
        };
        text += &Approvals::of(gate, &hits, asked).lines();
        for note in notes {
            text += &format!("note: {note}\n");
        }
        Ok(text)
    }
}

/// Answers `get_tool_details`. `full`: the form of the declarations. `asked`: the
/// people who can be asked to approve calls.
pub(crate) fn get_tool_details(
    gate: &Gate,
    given: Option<&JsonObject>,
    full: Detail,
    asked: Asked,
) -> Result<String, String> {
    let given: DetailsArguments = own_tools::read(GET_TOOL_DETAILS, given)?;
    let mut known: Vec<&str> = Vec::new();
    let mut notes = String::new();
    for name in &given.names {
        if !gate.view().has_tool(name) {
            let note = match gate.view().unavailable_server_of(name) {
                Some(server) => format!("{} is not available now: {}", quoted(name), server.reason),
                None => unknown_tool(gate, name),
            };
            notes += &format!("note: {note}\n");
        } else if !known.contains(&name.as_str()) {
            known.push(name);
        }
    }
    if known.is_empty() {
        return Err(notes);
    }
    let approvals = Approvals::of(gate, &known, asked);
    Ok(described(gate, full, &known) + &approvals.lines() + &notes)
}

/// The message for a name that no tool has, with the nearest name or else a search for it.
pub(crate) fn unknown_tool(gate: &Gate, name: &str) -> String {
    let message = gate.view().unknown_tool_message(name);
    if !message.starts_with("no tool is named") || message.contains("did you mean") {
        return message;
    }
    let servers = gate.servers();
    let mut named = servers.iter().filter_map(|server| {
        let own = name.strip_prefix(prefix(&server.name).as_str())?;
        Some((&server.name, own))
    });
    let search = |own: &str| one_line(&own.replace('_', " "), SHOWN_QUERY);
    let search = match named.next() {
        Some((server, own)) => json!({ "query": search(own), "server": server }),
        None => json!({ "query": search(name) }),
    };
    format!("{message}; find one with {SEARCH_TOOLS} {search}")
}

/// Describes the best tools by their signature and purpose, up to the limit of an answer, and lists
/// the names of the others.
fn best_described(gate: &Gate, functions: &[&str]) -> String {
    let known = gate.tools();
    let described = |function: &&str| {
        let signature = gate.view().declarations_of(Detail::Signature, &[*function]);
        let tool = known.iter().find(|tool| tool.function == *function);
        match tool.and_then(|tool| tool.summary.as_deref()) {
            Some(summary) => format!("{signature}  {summary}\n"),
            None => signature,
        }
    };
    let best = functions.get(..DEFAULT_SIGNATURES).unwrap_or(functions);
    let (text, shown) = first_that_fit(best, MAX_TOKENS, |best| {
        best.iter().map(described).collect()
    });
    let others = functions.get(shown..).unwrap_or_default();
    text + &gate.view().declarations_of(Detail::Name, others)
}

/// Describes the first tools up to the limit of an answer, and lists the names of the others.
fn described(gate: &Gate, detail: Detail, functions: &[&str]) -> String {
    let (mut text, described) = first_that_fit(functions, MAX_TOKENS, |functions| {
        gate.view().declarations_of(detail, functions)
    });
    let left_out = functions.get(described..).unwrap_or_default();
    if !left_out.is_empty() {
        if described == 0 && detail > Detail::Summary {
            // The first alone is too long.
            text = gate.view().declarations_of(Detail::Summary, functions);
        }
        text += &format!(
            "note: {} left out, because an answer has at most about {MAX_TOKENS} tokens; ask for \
             less at a time: {}\n",
            count(left_out.len(), "declaration"),
            left_out.join(", ")
        );
    }
    text
}
