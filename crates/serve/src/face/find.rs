//! `search_tools` and `get_tool_details`.

use std::sync::Arc;

use callgate::{Caller, Detail, Gate, SearchBy, SearchRequest};
use rmcp::model::JsonObject;

use super::inlined::first_that_fit;
use super::own::{GET_TOOL_DETAILS, HITS, MAX_HITS, MAX_NAMES, SEARCH_TOOLS};
use super::texts::count;
use super::tokens::VOCABULARY;
use crate::arguments::{Arguments, shown};

/// The most tokens of the tools in an answer.
const MAX_TOKENS: usize = 4000;
/// Hits that are asked for beyond those that are wanted, because some may be
/// denied.
const SPARE_HITS: usize = 20;

/// The first is the default.
const DETAILS: [(&str, Detail); 4] = [
    ("summaries", Detail::Summary),
    ("names", Detail::Name),
    ("signatures", Detail::Signature),
    ("full", Detail::Full),
];

/// The first is the default.
const WAYS: [(&str, SearchBy); 6] = [
    ("auto", SearchBy::Auto),
    ("words", SearchBy::Words),
    ("regex", SearchBy::Regex),
    ("vectors", SearchBy::Vectors),
    ("hybrid", SearchBy::Hybrid),
    ("model", SearchBy::Model),
];

/// What `search_tools` is asked for.
pub(crate) struct Search {
    request: SearchRequest,
    detail: Detail,
    limit: usize,
}

impl Search {
    /// What these arguments ask for.
    ///
    /// # Errors
    ///
    /// What is wrong with them, for the model to mend.
    pub(crate) fn asked(given: Option<&JsonObject>) -> Result<Self, String> {
        let mut arguments = Arguments::of(SEARCH_TOOLS, given);
        let query = arguments.text("query", "what to look for");
        let detail = arguments.choice("detail", &DETAILS);
        let limit = arguments.count("limit", MAX_HITS, HITS);
        let server = arguments.optional_text("server", "the name of one");
        let by = arguments.choice("by", &WAYS);
        arguments.check()?;
        let mut request = SearchRequest::new(query);
        request.by = by.unwrap_or_default();
        request.server = server.map(str::to_owned);
        request.limit = limit.saturating_add(SPARE_HITS);
        Ok(Self {
            request,
            detail: detail.unwrap_or_default(),
            limit,
        })
    }

    /// Whether a model is to pick.
    pub(crate) fn is_by_model(&self, gate: &Gate) -> bool {
        gate.search_way(self.request.by) == SearchBy::Model
    }

    /// Has this one's model pick, before the one of the configuration.
    pub(crate) fn asking(mut self, caller: Arc<dyn Caller>) -> Self {
        self.request.caller = Some(caller);
        self
    }

    /// Answers it.
    ///
    /// # Errors
    ///
    /// Why nothing could be looked for, for the model to mend.
    pub(crate) async fn answer(self, gate: &Arc<Gate>) -> Result<String, String> {
        let found = gate
            .search(&self.request)
            .await
            .map_err(|error| format!("{SEARCH_TOOLS} was not called:\n- {error}"))?;
        let hits = found.hits.into_iter().map(|hit| hit.function);
        let hits: Vec<String> = hits
            .filter(|function| !gate.denies(function))
            .take(self.limit)
            .collect();
        let mut text = match hits.is_empty() {
            true => format!(
                "nothing found among {}; try other words, or see list_servers\n",
                count(found.searched, "", "tool")
            ),
            false => told(gate, self.detail, hits).await,
        };
        for note in &found.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        Ok(text)
    }
}

/// Answers `get_tool_details`.
///
/// # Errors
///
/// What is wrong with the arguments, or that none of the names is a tool's.
pub(crate) async fn get_tool_details(
    gate: &Arc<Gate>,
    given: Option<&JsonObject>,
) -> Result<String, String> {
    let mut arguments = Arguments::of(GET_TOOL_DETAILS, given);
    let names = arguments.texts("names", MAX_NAMES, "names of tools");
    arguments.check()?;
    let mut known: Vec<String> = Vec::new();
    let mut notes = String::new();
    for name in names {
        if !gate.has_tool(name) {
            let note = match gate.unavailable_server_of(name) {
                Some(server) => format!("{} is not available now: {}", shown(name), server.reason),
                None => gate.unknown_tool_message(name),
            };
            notes.push_str(&format!("note: {note}\n"));
        } else if gate.denies(name) {
            notes.push_str(&format!("note: {name} is denied by the rules\n"));
        } else if !known.iter().any(|known| known == name) {
            known.push(name.to_owned());
        }
    }
    if known.is_empty() {
        return Err(notes);
    }
    Ok(told(gate, Detail::Full, known).await + &notes)
}

/// What is said of these tools, in their order, as far as there is room; what
/// there is no room for is named. On a thread for what takes a while, for tokens
/// may have to be counted.
async fn told(gate: &Arc<Gate>, detail: Detail, functions: Vec<String>) -> String {
    let gate = Arc::clone(gate);
    let telling = tokio::task::spawn_blocking(move || {
        let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
        tell(&gate, detail, &functions)
    });
    match telling.await {
        Ok(text) => text,
        // Nothing in it panics, so the runtime is shutting down, and this task
        // with it.
        Err(_) => std::future::pending().await,
    }
}

fn tell(gate: &Gate, detail: Detail, functions: &[&str]) -> String {
    let (mut text, told) = first_that_fit(functions, MAX_TOKENS, |functions| {
        gate.declarations_of(detail, functions)
    });
    let left_out = functions.get(told..).unwrap_or_default();
    if !left_out.is_empty() {
        if told == 0 && detail > Detail::Summary {
            // The first alone is too long, so a line for each has to do.
            text = gate.declarations_of(Detail::Summary, functions);
        }
        text.push_str(&format!(
            "note: {} left out, for an answer has at most {MAX_TOKENS} tokens ({VOCABULARY}); ask \
             for less at a time: {}\n",
            count(left_out.len(), "", "declaration"),
            left_out.join(", ")
        ));
    }
    text
}
