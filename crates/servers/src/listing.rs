//! `tools/list`: page by page, entry by entry.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callgate_schema::{extent, json_fault};
use rmcp::model::{ErrorCode, ServerResult};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::failure::{CallFailure, FailureKind};
use crate::http::HttpClient;
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::request::{Request, Session};
use crate::tool_list::ToolList;

/// Entries of a list.
const MAX_TOOLS: usize = 10_000;
/// Bytes of all entries.
const MAX_BYTES: usize = 16 << 20;
/// JSON values in all entries.
const MAX_VALUES: u64 = 1 << 19;
/// Characters of a name that a message repeats.
const MAX_NAME: usize = 256;
const MAX_PAGES: usize = 1_000;
const MAX_CURSOR_BYTES: usize = 64 << 10;
/// Dropped entries with a warning of their own.
const MAX_WARNINGS: usize = 5;
/// The bounds of the server's time to live of a list.
const MIN_TTL: Duration = Duration::from_secs(5);
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The annotation of arguments that are sent as headers, too.
const HEADER_MARK: &str = "x-mcp-header";

/// A tool list while it is read.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) list: ToolList,
    /// True if a request for a later page failed, so an unknown number of tools is missing.
    pub(crate) breaks_off: bool,
    /// The number of entries that were read.
    seen: usize,
    bytes: usize,
    values: u64,
    /// True if entries were not read because of a limit.
    is_cut: bool,
}

/// The result of one `tools/list` request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListPage<'a> {
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
        list.ttl = ttl.map(|ttl| ttl.clamp(MIN_TTL, MAX_TTL));
        list.protocol_version = self.agreed.version.to_string();
        list.title.clone_from(&self.agreed.title);
        list.instructions.clone_from(&self.agreed.instructions);
        list.login = self.http.as_ref().and_then(HttpClient::login);
        Ok(listing)
    }

    /// Reads the pages. Returns a reason if they are not the whole list.
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
                // Servers without announced tools are asked, too, because some have tools.
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
            // Older servers write an empty cursor on the last page.
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

    /// Requests and reads one page, and returns the cursor of the next one.
    async fn list_page(
        &self,
        params: Value,
        limit: Duration,
        listing: &mut Listing,
    ) -> Result<Option<String>, CallFailure> {
        let mut clock = Clock::new(limit, limit, &self.questions.asking);
        let request = Request::new("tools/list", params);
        let (page, known) = self.send(request, Some(&mut clock)).await?;
        // rmcp drops tools with invalid header annotations.
        let callable: Option<HashSet<String>> = match known {
            Some(ServerResult::ListToolsResult(list)) if self.mirrors_arguments() => {
                let names = list.tools.into_iter().map(|tool| tool.name.into_owned());
                Some(names.collect())
            }
            _ => None,
        };
        listing
            .take_page(&page, callable.as_ref())
            .map_err(CallFailure::malformed)
    }
}

impl Listing {
    /// Reads a page and returns the cursor of the next one.
    fn take_page(
        &mut self,
        page: &RawValue,
        callable: Option<&HashSet<String>>,
    ) -> Result<Option<String>, String> {
        let page: ListPage<'_> =
            serde_json::from_str(page.get()).map_err(|error| json_fault(&error))?;
        for tool in page.tools {
            self.bytes += tool.get().len();
            self.values += extent(tool.get()).parts;
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
        // The cursor may be null.
        serde_json::from_str(cursor.get()).map_err(|_| "nextCursor is not a string".to_owned())
    }
}

/// Reads one entry of a list.
fn read_tool(tool: &RawValue, callable: Option<&HashSet<String>>) -> Result<Value, String> {
    let text = tool.get();
    if text.len() > MAX_VALUE_BYTES {
        let bytes = text.len();
        return Err(format!(
            "it has {bytes} bytes, over the limit of {MAX_VALUE_BYTES}"
        ));
    }
    let tool: Value = serde_json::from_str(text).map_err(|error| json_fault(&error))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn page(listing: &mut Listing, element: &str, count: usize) {
        let page = format!(r#"{{"tools":[{}]}}"#, vec![element; count].join(","));
        let page = RawValue::from_string(page).expect("it is JSON");
        assert_eq!(listing.take_page(&page, None), Ok(None));
    }

    #[test]
    fn listing_over_a_limit_is_cut() {
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

        let many = format!(
            r#"{{"name":[{}0]}}"#,
            "0,".repeat((MAX_VALUES >> 2) as usize - 3)
        );
        let mut listing = Listing::default();
        page(&mut listing, &many, 5);
        assert_eq!((listing.list.tools.len(), listing.is_cut), (4, true));
    }

    #[test]
    fn bad_entries_are_dropped_and_reported() {
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
}
