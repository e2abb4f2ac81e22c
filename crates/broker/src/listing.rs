//! What a server lists as its tools, page by page, as far as it is used.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::misfit;
use crate::object::{First, MAX_VALUE_BYTES, object};
use crate::room::Room;
use crate::tools::Specials;
use crate::values::Unread;

/// The most tools of a list that are looked at, whether they can be used or not.
const MAX_TOOLS: usize = 10_000;
/// The most bytes of its pages, beyond which no tools are looked at either.
const MAX_BYTES: usize = 16 << 20;
/// The most values that its tools have together, beyond which no tools are looked at either.
/// So many bytes may have ten times as many, which would take gigabytes.
const MAX_VALUES: u32 = 1 << 19;
/// The most values of one tool.
const MAX_TOOL_VALUES: u32 = 1 << 17;
/// The most bytes of JSON by which a list goes on.
const MAX_CURSOR_BYTES: usize = 64 << 10;
/// Of how many tools that are left off it is said why.
const SAID: usize = 5;
/// The shortest and the longest time for which a list is taken to hold.
const LEAST_FRESH: Duration = Duration::from_secs(5);
const MOST_FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a list is taken to hold which says nothing of it or that it holds for no
/// time, by a server that does not tell of changes either.
pub(crate) const USUALLY_FRESH: Duration = Duration::from_secs(60);

/// The tools of a server, as it wrote them, and what was odd about the list.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Value>,
    pub(crate) warnings: Vec<String>,
    pub(crate) dropped: Dropped,
    /// How those are called that are called in some special way.
    pub(crate) specials: Specials,
    /// Whether it came to its end, as far as it is used.
    pub(crate) whole: bool,
    /// How many tools were looked at.
    pub(crate) seen: usize,
    /// How many bytes its pages have so far.
    bytes: usize,
    /// For the values of its tools.
    values: Room,
    /// Whether a page has more than are looked at.
    pub(crate) cut: bool,
    /// How long it holds: of its pages the least, as they say it.
    ttl: Option<Duration>,
    /// Whether a page does not say for how long it holds: no longer than a list of such pages.
    unsaid: bool,
    /// The login that it was asked for with.
    pub(crate) login: Option<Arc<str>>,
}

/// Tools that are left off a list.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    first: Vec<String>,
    count: usize,
}

impl Listing {
    /// Before the first page.
    pub(crate) fn new() -> Self {
        Self {
            tools: Vec::new(),
            warnings: Vec::new(),
            dropped: Dropped::default(),
            specials: Specials::default(),
            whole: true,
            seen: 0,
            bytes: 0,
            values: Room::new(MAX_VALUES),
            cut: false,
            ttl: None,
            unsaid: false,
            login: None,
        }
    }

    /// How long it holds by the server's own word; `None` if it says nothing of
    /// that, or no time.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        let ttl = self.ttl.filter(|ttl| !ttl.is_zero());
        let most = if self.unsaid {
            USUALLY_FRESH
        } else {
            MOST_FRESH
        };
        ttl.map(|ttl| ttl.clamp(LEAST_FRESH, most))
    }

    /// Whether no more tools are looked at.
    pub(crate) fn is_full(&self) -> bool {
        self.seen >= MAX_TOOLS || self.bytes >= MAX_BYTES
    }

    /// Takes a page's tools and returns the cursor of the next one.
    pub(crate) fn take_page(&mut self, page: &RawValue) -> Result<Option<String>, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page<'a> {
            #[serde(borrow)]
            tools: First<&'a RawValue, MAX_TOOLS>,
            #[serde(borrow, default)]
            next_cursor: Option<&'a RawValue>,
            #[serde(borrow, default)]
            ttl_ms: Option<&'a RawValue>,
        }
        let page_bytes = page.get().len();
        let page: Page<'_> = object(page.get()).map_err(|error| misfit::describe(&error))?;
        self.cut = page.tools.more;
        let mut room = MAX_BYTES.saturating_sub(self.bytes);
        for tool in page.tools.first {
            let bytes = tool.get().len();
            if self.seen >= MAX_TOOLS || bytes > room {
                self.cut = true;
                break;
            }
            let read = match bytes > MAX_VALUE_BYTES {
                true => Err(format!(
                    "it has {bytes} bytes, and {MAX_VALUE_BYTES} are the most"
                )),
                false => match self.values.object_of(tool.get(), MAX_TOOL_VALUES) {
                    Ok(tool) => Ok(tool.kept()),
                    Err(Unread::Full { .. }) => {
                        self.cut = true;
                        break;
                    }
                    Err(Unread::TooMany { most }) => Err(format!("it has more than {most} values")),
                    Err(Unread::Unfit(error)) => Err(misfit::describe(&error)),
                },
            };
            room -= bytes;
            self.seen += 1;
            match read {
                Ok(tool) => self.tools.push(tool),
                Err(reason) => {
                    let number = self.seen;
                    let clause = || format!("its tool {number} is dropped: {reason}");
                    self.dropped.add(clause);
                }
            }
        }
        self.bytes = self.bytes.saturating_add(page_bytes);
        let ttl = page.ttl_ms.and_then(|ttl| ttl.get().parse().ok());
        match ttl.map(Duration::from_millis) {
            Some(ttl) => self.ttl = Some(self.ttl.map_or(ttl, |least| least.min(ttl))),
            None => self.unsaid = true,
        }
        let Some(cursor) = page.next_cursor else {
            return Ok(None);
        };
        if cursor.get().len() > MAX_CURSOR_BYTES {
            return Err(format!("nextCursor is over {MAX_CURSOR_BYTES} bytes"));
        }
        match serde_json::from_str::<String>(cursor.get()) {
            Ok(cursor) => Ok(Some(cursor)),
            Err(_) => Err("nextCursor is no string".to_owned()),
        }
    }
}

impl Dropped {
    /// Counts one; what is to be said of it is a clause about the server.
    pub(crate) fn add(&mut self, clause: impl FnOnce() -> String) {
        if self.count < SAID {
            self.first.push(clause());
        }
        self.count += 1;
    }

    /// What is to be said of all.
    pub(crate) fn said(&mut self) -> Vec<String> {
        let Self { mut first, count } = std::mem::take(self);
        let more = count - first.len();
        if more > 0 {
            first.push(format!("{more} more of its tools are dropped"));
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one page of so many of these.
    fn page_of(listing: &mut Listing, element: &str, count: usize) {
        let page = format!(r#"{{"tools":[{}]}}"#, vec![element; count].join(","));
        let page = RawValue::from_string(page).expect("it is JSON");
        assert_eq!(listing.take_page(&page), Ok(None));
    }

    #[test]
    fn no_page_has_more_tools_than_a_list_may() {
        let mut listing = Listing::new();
        page_of(&mut listing, r#"{"name":"t"}"#, 25_000);
        assert_eq!((listing.tools.len(), listing.cut), (10_000, true));

        let mut listing = Listing::new();
        page_of(&mut listing, r#"{"name":"t"}"#, 9_999);
        assert_eq!((listing.is_full(), listing.cut), (false, false));
        page_of(&mut listing, "0", 1);
        assert_eq!((listing.is_full(), listing.cut), (true, false));
        page_of(&mut listing, r#"{"name":"t"}"#, 1);
        assert_eq!((listing.tools.len(), listing.cut), (9_999, true));
    }

    #[test]
    fn a_list_and_a_tool_are_as_long_as_they_may_be() {
        let long = |bytes: usize| {
            let description = "x".repeat(bytes - 29);
            format!(r#"{{"name":"t","description":"{description}"}}"#)
        };
        assert_eq!(long(MAX_VALUE_BYTES).len(), MAX_VALUE_BYTES);
        let mut listing = Listing::new();
        page_of(&mut listing, &long(MAX_VALUE_BYTES + 1), 1);
        page_of(&mut listing, &long(MAX_VALUE_BYTES), 1);
        assert_eq!((listing.tools.len(), listing.cut), (1, false));
        assert_eq!(
            listing.dropped.said(),
            ["its tool 1 is dropped: it has 1048577 bytes, and 1048576 are the most"]
        );

        let half = format!(r#"{{"description":"{}"}}"#, "x".repeat((1 << 19) - 18));
        assert_eq!(half.len(), 1 << 19);
        let mut listing = Listing::new();
        page_of(&mut listing, &half, 33);
        assert_eq!((listing.tools.len(), listing.cut), (32, true));
        // What pages have besides counts, too.
        let mut listing = Listing::new();
        page_of(&mut listing, &half, 31);
        assert!(!listing.is_full());
        page_of(&mut listing, &format!("0{}", " ".repeat(1 << 19)), 1);
        assert!(listing.is_full());
    }

    #[test]
    fn a_list_and_a_tool_have_as_many_values_as_they_may() {
        let many = |values: u32| format!(r#"{{"name":[{}0]}}"#, "0,".repeat(values as usize - 2));
        let mut listing = Listing::new();
        page_of(&mut listing, &many(MAX_TOOL_VALUES + 1), 2);
        page_of(&mut listing, &many(MAX_TOOL_VALUES), 4);
        assert_eq!((listing.tools.len(), listing.cut), (4, false));
        assert_eq!(
            listing.dropped.said(),
            [1, 2].map(|n| format!("its tool {n} is dropped: it has more than 131072 values"))
        );
        page_of(&mut listing, r#"{"name":"t"}"#, 1);
        assert_eq!((listing.tools.len(), listing.cut), (4, true));
        assert_eq!(listing.seen, 6);
    }

    #[test]
    fn a_tool_is_an_object() {
        let mut listing = Listing::new();
        for (element, fault) in [
            (
                "null",
                "invalid type: null, expected a map at line 1 column 4",
            ),
            (
                "[[]]",
                "invalid type: sequence, expected a map at line 1 column 0",
            ),
            (
                r#"{"a":{"$serde_json::private::RawValue":"[]"}}"#,
                "a name in it begins with \"$serde_json::private::\", which many programs in Rust \
                 do not read as a name; name it otherwise at line 1 column 38",
            ),
        ] {
            page_of(&mut listing, element, 1);
            let said = listing.dropped.said();
            let [said] = &said[..] else {
                panic!("{said:?}");
            };
            assert!(said.ends_with(&format!("is dropped: {fault}")), "{said}");
        }
        assert!(listing.tools.is_empty());
    }

    #[test]
    fn the_first_tools_that_are_dropped_are_said_and_the_others_counted() {
        let mut listing = Listing::new();
        page_of(&mut listing, r#"{"name":"t"}"#, 2);
        page_of(&mut listing, "0", 25_000);
        assert_eq!((listing.tools.len(), listing.cut), (2, true));
        let said = listing.dropped.said();
        assert_eq!(said.len(), 6);
        assert!(said[0].starts_with("its tool 3 is dropped: "), "{said:?}");
        assert_eq!(said[5], "9993 more of its tools are dropped");
    }
}
