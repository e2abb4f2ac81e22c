//! Pages that servers have a person open (MCP 2025-11-25, client/elicitation, "URL Mode
//! Elicitation Requests").

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use url::Url;

/// The pages of one connection that are remembered until the server says that they are done; of
/// more, the oldest is forgotten.
const MAX_OPEN: usize = 64;
/// The longest id of a page, in bytes.
const MAX_ID_BYTES: usize = 1_024;

/// The open pages of one connection, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<VecDeque<Page>>);

type Page = (Box<str>, Arc<watch::Sender<bool>>);

impl Pages {
    /// Remembers a page that a person is shown. The receiver tells when the page is done.
    pub(crate) fn show(&self, params: &Value) -> Option<watch::Receiver<bool>> {
        let id = page_id(params)?;
        let mut open = self.0.lock();
        // Shown once more, it is the same page.
        let page = take(&mut open, id).unwrap_or_else(|| (id.into(), Arc::default()));
        let done = page.1.subscribe();
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back(page);
        Some(done)
    }

    /// The server says that a page is done.
    pub(crate) fn complete(&self, id: &str) {
        if let Some((_, done)) = take(&mut self.0.lock(), id) {
            done.send_replace(true);
        }
    }
}

fn take(open: &mut VecDeque<Page>, id: &str) -> Option<Page> {
    let at = open.iter().position(|(known, _)| **known == *id)?;
    open.remove(at)
}

/// The id by which the server knows a page.
pub(crate) fn page_id(params: &Value) -> Option<&str> {
    let id = params.get("elicitationId").and_then(Value::as_str);
    id.filter(|id| (1..=MAX_ID_BYTES).contains(&id.len()))
}

/// The fault of a page's address.
pub(crate) fn address_fault(params: &Value) -> Option<String> {
    let Some(url) = params.get("url").and_then(Value::as_str) else {
        return Some("the page has no URL".to_owned());
    };
    match Url::parse(url) {
        Err(error) => Some(format!("the page has no valid URL: {error}")),
        Ok(url) if matches!(url.scheme(), "http" | "https") => None,
        Ok(_) => Some("the page is none of the web: its URL is not http or https".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_page_is_told_to_all_who_wait() {
        let pages = Pages::default();
        let page = json!({ "elicitationId": "door" });
        let (one, other) = (pages.show(&page), pages.show(&page));
        pages.complete("window");
        let is_done = |done: &Option<watch::Receiver<bool>>| done.as_ref().map(|it| *it.borrow());
        assert_eq!((is_done(&one), is_done(&other)), (Some(false), Some(false)));
        pages.complete("door");
        assert_eq!((is_done(&one), is_done(&other)), (Some(true), Some(true)));
        assert!(pages.show(&json!({})).is_none());
        for n in 0..2 * MAX_OPEN {
            pages.show(&json!({ "elicitationId": n.to_string() }));
        }
        assert_eq!(pages.0.lock().len(), MAX_OPEN);
    }

    #[test]
    fn only_pages_of_the_web() {
        for url in ["https://example.com/key?a=b#c", "HTTP://127.0.0.1:8080/"] {
            assert_eq!(address_fault(&json!({ "url": url })), None, "{url}");
        }
        for url in [
            "javascript:alert(1)",
            " \tjava\nscript:alert(1)",
            "file:///etc/passwd",
            "https.example:x",
            "//example.com",
            "https://",
        ] {
            assert!(address_fault(&json!({ "url": url })).is_some(), "{url}");
        }
        assert!(address_fault(&json!({ "url": 7 })).is_some());
    }
}
