//! Pages that servers have a person open (MCP 2025-11-25, client/elicitation, "URL Mode
//! Elicitation Requests").

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;
use url::Url;

use crate::caller::PageDone;

/// The pages of one connection that are remembered until the server says that they are done; of
/// more, the oldest is forgotten.
const MAX_OPEN: usize = 64;
/// The longest id of a page, in bytes.
pub(crate) const MAX_ID_BYTES: usize = 1_024;
/// The callers that hear the end of one page.
const MAX_HEAR: usize = 64;

/// The open pages of one connection.
#[derive(Default)]
pub(crate) struct Pages(Mutex<VecDeque<Page>>);

struct Page {
    id: Box<str>,
    done: Arc<watch::Sender<bool>>,
    /// Called when the page is done.
    hear: Vec<PageDone>,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

impl Pages {
    /// Remembers a page that a person is shown. The receiver tells when the page is done.
    pub(crate) fn show(&self, params: &Value) -> Option<watch::Receiver<bool>> {
        let id = page_id(params)?;
        let mut open = self.lock();
        // Shown once more, it is the same page.
        let before = open.iter().position(|page| &*page.id == id);
        let page = before
            .and_then(|at| open.remove(at))
            .unwrap_or_else(|| Page {
                id: id.into(),
                done: Arc::new(watch::Sender::new(false)),
                hear: Vec::new(),
            });
        let done = page.done.subscribe();
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back(page);
        Some(done)
    }

    /// Notes that a person agreed to open a page, and the function to call when it is done.
    pub(crate) fn agreed(&self, params: &Value, done: &watch::Receiver<bool>, hears: PageDone) {
        let mut open = self.lock();
        let page = open
            .iter_mut()
            .find(|page| Some(&*page.id) == page_id(params));
        match page {
            Some(page) if page.hear.len() < MAX_HEAR => page.hear.push(hears),
            _ => {
                drop(open);
                // The page may have been done before the person's answer came.
                if *done.borrow() {
                    hears();
                }
            }
        }
    }

    /// The server says that a page is done.
    pub(crate) fn complete(&self, id: &str) {
        let page = {
            let mut open = self.lock();
            let at = open.iter().position(|page| &*page.id == id);
            at.and_then(|at| open.remove(at))
        };
        if let Some(page) = page {
            page.done.send_replace(true);
            page.hear.into_iter().for_each(|hears| hears());
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Page>> {
        self.0.lock()
    }
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_page_is_heard_once() {
        let pages = Pages::default();
        let page = json!({ "elicitationId": "door" });
        let heard = Arc::new(AtomicUsize::new(0));
        let hears = || {
            let heard = Arc::clone(&heard);
            Box::new(move || {
                heard.fetch_add(1, Ordering::Relaxed);
            })
        };
        let done = pages.show(&page).expect("it has an id");
        pages.agreed(&page, &done, hears());
        pages.complete("window");
        assert_eq!((heard.load(Ordering::Relaxed), *done.borrow()), (0, false));
        pages.complete("door");
        pages.complete("door");
        assert_eq!((heard.load(Ordering::Relaxed), *done.borrow()), (1, true));
        // The person's answer comes after the end.
        pages.agreed(&page, &done, hears());
        assert_eq!(heard.load(Ordering::Relaxed), 2);
        assert!(pages.show(&json!({})).is_none());
        for n in 0..2 * MAX_OPEN {
            pages.show(&json!({ "elicitationId": n.to_string() }));
        }
        assert_eq!(pages.lock().len(), MAX_OPEN);
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
