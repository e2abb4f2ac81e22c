//! `tools/list`: page by page, entry by entry; and the list that is current.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callgate_policy::Definition;
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ErrorCode, ServerResult};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::backoff::spread;
use crate::call::ToolCall;
use crate::clock::Clock;
use crate::failure::{CallFailure, FailureKind, Lost, Reason};
use crate::http::Http;
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::request::{Request, Session};
use crate::spec::Remembered;
use crate::tap::LISTEN;
use crate::tool_list::ToolList;
use crate::watch::Notifications;

/// The most entries of a list that are read.
const MAX_TOOLS: usize = 10_000;
/// The most bytes of its entries that are read.
const MAX_BYTES: usize = 16 << 20;
/// The most values in them.
const MAX_VALUES: usize = 1 << 19;
/// The characters of a name that a message repeats.
const MAX_NAME: usize = 256;
const MAX_PAGES: usize = 1_000;
const MAX_CURSOR_BYTES: usize = 64 << 10;
/// The entries that are left out with a warning of their own.
const MAX_WARNINGS: usize = 5;
/// The shortest and the longest time for which a list holds.
const LEAST_FRESH: Duration = Duration::from_secs(5);
const MOST_FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// The name of the annotation of arguments that are headers, too.
const HEADER_MARK: &str = "x-mcp-header";
/// The wait before a server is listened to again; it doubles up to the longest, and is the first
/// one again after a subscription that the server acknowledged.
const AGAIN: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// The time for which a list holds when its server says nothing and does not tell of changes.
pub(crate) const USUALLY_FRESH: Duration = Duration::from_secs(60);

/// A tool list while it is read.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) list: ToolList,
    /// True if the server ended it early: what is missing is not known.
    pub(crate) breaks_off: bool,
    /// The entries that were read.
    seen: usize,
    bytes: usize,
    values: usize,
    /// True if entries were left unread.
    is_cut: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    next_cursor: Option<&'a RawValue>,
    #[serde(borrow, default)]
    ttl_ms: Option<&'a RawValue>,
}

impl Session {
    /// Lists every page of tools. Each request may take up to `limit`.
    pub(crate) async fn list_tools(&self, limit: Duration) -> Result<Listing, CallFailure> {
        let mut listing = Listing::default();
        let end = self.list_pages(limit, &mut listing).await?;
        let list = &mut listing.list;
        let more = list.gaps.len().saturating_sub(MAX_WARNINGS);
        if more > 0 {
            list.gaps.truncate(MAX_WARNINGS);
            let reason = format!("{more} more of its tools are dropped");
            list.gaps.push(reason);
        }
        list.gaps.extend(end);
        let ttl = list.ttl.filter(|ttl| !ttl.is_zero());
        list.ttl = ttl.map(|ttl| ttl.clamp(LEAST_FRESH, MOST_FRESH));
        list.protocol_version = self.agreed.version.to_string();
        list.title.clone_from(&self.agreed.title);
        list.instructions.clone_from(&self.agreed.instructions);
        list.login = self.http.as_ref().and_then(Http::login);
        Ok(listing)
    }

    /// Reads the pages, and says why they are not the whole list.
    async fn list_pages(
        &self,
        limit: Duration,
        listing: &mut Listing,
    ) -> Result<Option<String>, CallFailure> {
        let mut cursors = HashSet::new();
        let mut params = Value::Null;
        for _ in 0..MAX_PAGES {
            let next = match self.list_page(params, limit, listing).await {
                Ok(next) => next,
                // It was asked all the same: some have tools and do not say so.
                Err(failure)
                    if matches!(&failure.kind, FailureKind::Refused(error)
                    if cursors.is_empty()
                        && (error.code == ErrorCode::METHOD_NOT_FOUND || !self.agreed.tools)) =>
                {
                    let reason = "it has no tools: it announces none, or does not know tools/list";
                    return Ok(Some(reason.to_owned()));
                }
                Err(failure) if listing.list.tools.is_empty() => return Err(failure),
                Err(failure) => {
                    listing.breaks_off = true;
                    return Ok(Some(format!("its list of tools breaks off: {failure}")));
                }
            };
            // Older servers write an empty cursor where there is none.
            let next = next.filter(|cursor| !cursor.is_empty() || self.is_stateless());
            let seen = listing.seen;
            let is_full = seen >= MAX_TOOLS || listing.bytes >= MAX_BYTES;
            if listing.is_cut || next.is_some() && is_full {
                return Ok(Some(format!(
                    "its list of tools is too long; only the first {seen} are used"
                )));
            }
            let Some(next) = next else {
                return Ok(None);
            };
            params = json!({ "cursor": next });
            if !cursors.insert(next) {
                let reason = "its list of tools repeats a cursor; what came before is used";
                return Ok(Some(reason.to_owned()));
            }
        }
        Ok(Some(format!(
            "only the first {MAX_PAGES} pages of its tools are used"
        )))
    }

    /// Asks for one page, reads it, and returns the cursor of the next one.
    async fn list_page(
        &self,
        params: Value,
        limit: Duration,
        listing: &mut Listing,
    ) -> Result<Option<String>, CallFailure> {
        let mut clock = Clock::new(limit, limit, &self.questions.asking);
        let request = Request::new("tools/list", params);
        let (page, known) = self.send(request, Some(&mut clock)).await?;
        // rmcp leaves out the tools whose annotations it does not take.
        let callable: Option<HashSet<String>> = match known {
            Some(ServerResult::ListToolsResult(list)) if self.mirrors() => {
                let names = list.tools.into_iter().map(|tool| tool.name.into_owned());
                Some(names.collect())
            }
            _ => None,
        };
        listing
            .take_page(&page, callable.as_ref())
            .map_err(CallFailure::malformed)
    }

    /// True if arguments may have to be headers, too.
    pub(crate) fn mirrors(&self) -> bool {
        self.http.is_some() && self.is_stateless()
    }
}

impl Listing {
    /// Reads a page and returns the cursor of the next one.
    fn take_page(
        &mut self,
        page: &RawValue,
        callable: Option<&HashSet<String>>,
    ) -> Result<Option<String>, String> {
        let page: Page<'_> = serde_json::from_str(page.get()).map_err(|error| misfit(&error))?;
        for tool in page.tools {
            self.bytes += tool.get().len();
            self.values += count_values(tool.get());
            if self.seen >= MAX_TOOLS || self.bytes > MAX_BYTES || self.values > MAX_VALUES {
                self.is_cut = true;
                break;
            }
            self.seen += 1;
            match read_tool(tool, callable) {
                Ok(tool) => Arc::make_mut(&mut self.list.tools).push(tool),
                Err(reason) => {
                    let number = self.seen;
                    self.list
                        .gaps
                        .push(format!("its tool {number} is dropped: {reason}"));
                }
            }
        }
        let ttl = page.ttl_ms.and_then(|ttl| ttl.get().parse().ok());
        if let Some(ttl) = ttl.map(Duration::from_millis) {
            self.list.ttl = Some(self.list.ttl.map_or(ttl, |min| min.min(ttl)));
        }
        let Some(cursor) = page.next_cursor else {
            return Ok(None);
        };
        if cursor.get().len() > MAX_CURSOR_BYTES {
            return Err(format!("nextCursor is over {MAX_CURSOR_BYTES} bytes"));
        }
        // It may be null.
        serde_json::from_str(cursor.get()).map_err(|_| "nextCursor is not a string".to_owned())
    }
}

/// Reads one entry of a list.
fn read_tool(tool: &RawValue, callable: Option<&HashSet<String>>) -> Result<Value, String> {
    let text = tool.get();
    if text.len() > MAX_VALUE_BYTES {
        let bytes = text.len();
        return Err(format!(
            "it has {bytes} bytes, and {MAX_VALUE_BYTES} are the most"
        ));
    }
    let tool: Value = serde_json::from_str(text).map_err(|error| misfit(&error))?;
    if !tool.is_object() {
        return Err("it is not an object".to_owned());
    }
    if let (Some(callable), Some(name)) = (callable, tool["name"].as_str())
        && text.contains(HEADER_MARK)
        && !callable.contains(name)
    {
        let shown: String = name.chars().take(MAX_NAME).collect();
        return Err(format!(
            "the {HEADER_MARK} annotations of {shown:?} are not valid"
        ));
    }
    Ok(tool)
}

/// A bound of the number of values in a JSON text.
fn count_values(json: &str) -> usize {
    let is_start = |byte: &u8| matches!(byte, b',' | b'[' | b'{');
    json.bytes().filter(is_start).count() + 1
}

/// The fault of a text that cannot be read, without quoting it: it may hold secrets.
pub(crate) fn misfit(error: &serde_json::Error) -> String {
    let what = if error.is_data() {
        "a value does not fit"
    } else {
        "it is not JSON"
    };
    format!("{what} at line {} column {}", error.line(), error.column())
}

/// Listens for changes where servers tell of them in a subscription (2026-07-28).
pub(crate) async fn listen(session: &Session, notifications: &Notifications) {
    if !(session.is_stateless() && session.agreed.tools_changes) {
        return std::future::pending().await;
    }
    let mut wait = AGAIN;
    loop {
        let before = notifications.acknowledged();
        let params = json!({ "notifications": { "toolsListChanged": true } });
        let ended = session.send(Request::new(LISTEN, params), None).await;
        let acknowledged = notifications.acknowledged();
        if let Err(failure) = &ended {
            tracing::debug!(server = %session.server, %failure, "a subscription ended");
            let is_refused = matches!(
                failure.kind,
                FailureKind::Refused(_) | FailureKind::Lost(Lost::Status(300..=499))
            );
            // One that has worked may be refused while the server restarts.
            if acknowledged.is_none() && is_refused {
                return std::future::pending().await;
            }
        }
        let has_worked = acknowledged != before;
        if has_worked {
            wait = AGAIN;
        }
        sleep(spread(wait)).await;
        wait = wait.saturating_mul(2).min(LONGEST);
        if has_worked {
            notifications.list_changed();
        }
    }
}

/// The current tool list of a server.
#[derive(Debug)]
pub(crate) struct CurrentList(Mutex<State>);

/// The knowledge about a server's tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) list: Option<Arc<ToolList>>,
    /// Why the server did not start, as long as it never has.
    pub(crate) failed: Option<Reason>,
    /// The time of the list; `None` for longer ago than this system has run.
    at: Option<Instant>,
    /// The generation that the list covers: that of the time when it was asked for.
    pub(crate) covered_generation: u64,
    /// True if this process asked for it.
    pub(crate) heard: bool,
    /// True if the last attempt at a new list failed.
    pub(crate) missed: bool,
}

impl State {
    /// The age of the list; `None` if that is not known.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.at.map(|at| at.elapsed())
    }
}

impl CurrentList {
    /// A list of an earlier time, or none.
    pub(crate) fn new(remembered: Option<&Remembered>) -> Self {
        Self(Mutex::new(State {
            list: remembered.map(|remembered| Arc::clone(&remembered.list)),
            at: remembered.and_then(|remembered| Instant::now().checked_sub(remembered.age)),
            ..State::default()
        }))
    }

    /// Takes a list that was asked for in this generation.
    pub(crate) fn take(&self, list: ToolList, covered_generation: u64) {
        let mut state = self.state();
        if state.list.as_deref() != Some(&list) {
            state.list = Some(Arc::new(list.shared()));
        }
        state.at = Some(Instant::now());
        state.failed = None;
        state.covered_generation = covered_generation;
        (state.heard, state.missed) = (true, false);
    }

    /// Records that there is no list of this generation.
    pub(crate) fn miss(&self, covered_generation: u64) {
        let mut state = self.state();
        state.covered_generation = covered_generation;
        state.missed = true;
    }

    /// The server did not start. The list stays.
    pub(crate) fn fail(&self, reason: Reason) {
        let mut state = self.state();
        if !state.heard {
            state.failed = Some(reason);
        }
    }

    pub(crate) fn list(&self) -> Option<Arc<ToolList>> {
        self.state().list.clone()
    }

    /// Checks that a tool has the definition that was decided on. One name may have several.
    pub(crate) fn check(&self, call: &ToolCall<'_>, has_begun: bool) -> Result<(), CallFailure> {
        let list = self.list();
        let tools = list
            .as_deref()
            .map_or(&[][..], |list| list.tools.as_slice());
        let mut found = tools
            .iter()
            .filter(|entry| entry["name"] == call.tool)
            .peekable();
        let is_gone = found.peek().is_none();
        if found.any(|entry| Definition::of(entry).hash() == call.definition) {
            return Ok(());
        }
        let (what, next) = if is_gone {
            ("its server no longer lists the tool", "")
        } else {
            (
                "the server changed the tool's definition after this call was decided on",
                "; call it again to have the new definition decided on",
            )
        };
        let done = if has_begun {
            "the call had begun and was given up, and may have done something".to_owned()
        } else {
            format!("nothing was done{next}")
        };
        let reason = format!("{what}; {done}");
        Err(CallFailure::new(
            FailureKind::ToolChanged,
            reason,
            has_begun,
        ))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(listing: &mut Listing, element: &str, count: usize) {
        let page = format!(r#"{{"tools":[{}]}}"#, vec![element; count].join(","));
        let page = RawValue::from_string(page).expect("it is JSON");
        assert_eq!(listing.take_page(&page, None), Ok(None));
    }

    #[test]
    fn a_list_is_bounded() {
        let mut listing = Listing::default();
        page(&mut listing, r#"{"name":"t"}"#, 25_000);
        assert_eq!(
            (listing.list.tools.len(), listing.is_cut),
            (MAX_TOOLS, true)
        );

        let half = format!(r#"{{"description":"{}"}}"#, "x".repeat((1 << 19) - 18));
        let mut listing = Listing::default();
        page(&mut listing, &half, 33);
        assert_eq!((listing.list.tools.len(), listing.is_cut), (32, true));

        let many = format!(r#"{{"name":[{}0]}}"#, "0,".repeat((MAX_VALUES >> 2) - 3));
        let mut listing = Listing::default();
        page(&mut listing, &many, 5);
        assert_eq!((listing.list.tools.len(), listing.is_cut), (4, true));
    }

    #[test]
    fn bad_entries_are_dropped_and_said() {
        let mut listing = Listing::default();
        page(&mut listing, r#"{"name":"t"}"#, 2);
        page(&mut listing, "0", 10);
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(MAX_VALUE_BYTES));
        page(&mut listing, &long, 1);
        assert_eq!(listing.list.tools.len(), 2);
        assert_eq!(
            listing.list.gaps[0],
            "its tool 3 is dropped: it is not an object"
        );
        assert_eq!(listing.list.gaps.len(), 11);
    }

    #[test]
    fn any_entry_with_the_name_is_listed() {
        let list = |tools| ToolList {
            tools: Arc::new(tools),
            ..ToolList::default()
        };
        let odd = json!({ "name": "t", "inputSchema": 7 });
        let good = json!({ "name": "t", "inputSchema": { "type": "object" } });
        let current = CurrentList::new(None);
        let is_listed = |tool: &Value| {
            let definition = Definition::of(tool);
            let call = ToolCall {
                server: "s",
                tool: "t",
                definition: definition.hash(),
                arguments: "{}",
                caller: None,
                limit: None,
            };
            current.check(&call, false).is_ok()
        };
        assert!(!is_listed(&good));
        current.take(list(vec![odd.clone(), good.clone()]), 0);
        assert!(is_listed(&odd) && is_listed(&good));
        assert!(!is_listed(&json!({ "name": "t" })));
        current.take(list(vec![good.clone()]), 0);
        assert!(!is_listed(&odd));
    }
}
