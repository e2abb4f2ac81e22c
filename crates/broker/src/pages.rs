//! Pages that servers want opened, and what is done there beside the connection
//! (MCP 2025-11-25, client/elicitation, "URL Mode Elicitation Requests").

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ErrorData;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::address;
use crate::asked::Asking;
use crate::caller::{Opened, PageDone, Refusal};
use crate::calls::Call;
use crate::error::PAGES_REQUIRED;
use crate::failure::Failure;
use crate::input::{self, Ask, Asks};
use crate::link::LinkError;
use crate::session::Session;

/// How many pages of one connection are remembered until the server says that
/// they are done with; of more, the oldest is forgotten.
const MAX_OPEN: usize = 64;
/// The longest id of a page, in bytes.
const MAX_ID_BYTES: usize = 1_024;
/// How many of those who agreed to open one page hear that it is done with; of more, the first
/// do not.
const MAX_HEAR: usize = 64;
/// How many pages one call may want.
const MAX_PAGES: usize = 16;
/// The most bytes of a page's address that a message has.
const MAX_SHOWN: usize = 500;
/// How long a call waits for somebody to be done at its pages.
const PATIENCE: Duration = if cfg!(test) {
    Duration::from_millis(50)
} else {
    Duration::from_secs(15 * 60)
};

/// The pages of one connection that somebody was shown and that are not done
/// with.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<Vec<Remembered>>);

/// A page that the server can say is done with.
#[derive(Debug)]
struct Remembered {
    page: Arc<Open>,
    /// How often somebody has agreed to open it, or is shown it now.
    shown: usize,
}

struct Open {
    id: Box<str>,
    done: watch::Sender<bool>,
    /// Who is to hear that it is done with: whoever has agreed.
    hear: Mutex<VecDeque<PageDone>>,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Open").field(&self.id).finish()
    }
}

impl Pages {
    /// Notes that somebody is shown a page: from now on the server can say that
    /// it is done with.
    pub(crate) fn show(self: &Arc<Self>, params: &Value) -> Option<Shown> {
        let id = params.get("elicitationId").and_then(Value::as_str)?;
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            return None;
        }
        let mut open = self.lock();
        // Shown once more, it is the same page: its end is that of all who wait for it.
        let before = open.iter().position(|open| *open.page.id == *id);
        let mut remembered = match before {
            Some(at) => open.remove(at),
            None => Remembered {
                page: Arc::new(Open {
                    id: id.into(),
                    done: watch::Sender::new(false),
                    hear: Mutex::default(),
                }),
                shown: 0,
            },
        };
        remembered.shown += 1;
        let page = Arc::clone(&remembered.page);
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push(remembered);
        Some(Shown {
            pages: Arc::clone(self),
            page,
            agreed: false,
        })
    }

    /// The server says that a page is done with. One that nobody was shown, or
    /// that was done with before, is none of its business.
    pub(crate) fn complete(&self, id: &str) {
        let done = {
            let mut open = self.lock();
            let at = open.iter().position(|open| &*open.page.id == id);
            at.map(|at| open.remove(at).page)
        };
        let Some(page) = done else {
            return;
        };
        page.done.send_replace(true);
        page.tell();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn hear(&self) -> MutexGuard<'_, VecDeque<PageDone>> {
        self.hear.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes one who is to hear. A server may show a page as often as it likes, and never be
    /// done with it.
    fn add(&self, hears: PageDone) {
        let mut hear = self.hear();
        if hear.len() >= MAX_HEAR {
            hear.pop_front();
        }
        hear.push_back(hears);
    }

    /// Tells those who have not been told yet.
    fn tell(&self) {
        let hear = std::mem::take(&mut *self.hear());
        hear.into_iter().for_each(|hears| hears());
    }

    fn is_done(&self) -> bool {
        *self.done.borrow()
    }
}

/// A page that somebody is shown. Dropped before they agree to open it, it is
/// forgotten, unless somebody else has agreed or is shown it, too.
pub(crate) struct Shown {
    pages: Arc<Pages>,
    page: Arc<Open>,
    agreed: bool,
}

impl Shown {
    /// Hears when it is done with.
    pub(crate) fn done(&self) -> watch::Receiver<bool> {
        self.page.done.subscribe()
    }

    /// What it is known by to the server.
    pub(crate) fn id(&self) -> &str {
        &self.page.id
    }

    /// Notes that they agreed, and who is to hear when the page is done with.
    pub(crate) fn agreed(mut self, hears: Option<PageDone>) {
        self.agreed = true;
        if let Some(hears) = hears {
            self.page.add(hears);
        }
        // It may have been, meanwhile; whoever takes it tells.
        if self.page.is_done() {
            self.page.tell();
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if !self.agreed {
            let mut open = self.pages.lock();
            open.retain_mut(|open| {
                if Arc::ptr_eq(&open.page, &self.page) {
                    open.shown -= 1;
                }
                open.shown > 0
            });
        }
    }
}

/// Whether a refusal says that pages have to be opened before the call.
pub(crate) fn are_required(error: &ErrorData) -> bool {
    i64::from(error.code.0) == PAGES_REQUIRED && !wanted(error).is_empty()
}

impl Session {
    /// Has the caller open the pages that a call was refused for, and waits until
    /// the server says that they are done with, or whoever opened them does.
    ///
    /// # Errors
    ///
    /// The refusal, with what became of the pages in its message; or that the connection is
    /// gone, on which the server would say so.
    pub(crate) async fn open_pages(
        &self,
        call: &Call<'_>,
        error: &ErrorData,
    ) -> Result<(), Failure> {
        let refused = |why: &str| {
            let mut error = error.clone();
            error.message = format!("{}; {why}", error.message).into();
            Failure::Refused(error)
        };
        let pages = wanted(error);
        if !(self.offers().url && call.caller.offers().url) {
            let shown: Vec<String> = pages.iter().map(|page| address(page)).collect();
            let shown = shown.join(" and ");
            return Err(refused(&format!(
                "there is nobody to ask, so open {shown} and call again"
            )));
        }
        let _asking = Asking::start(self);
        let mut lost = self.watch_lost();
        tokio::select! {
            biased;
            done = self.opened(call, &pages, &refused) => done,
            // As if it had gone on at once: what was refused was not done, so that it can be made
            // on another connection.
            lost = lost.wait_for(Option::is_some) => {
                let lost = lost.ok().and_then(|lost| lost.clone());
                let reason = lost.map_or_else(String::new, |lost| lost.reason);
                Err(Failure::Lost(LinkError::closed(reason, false)))
            }
        }
    }

    /// Has pages opened, and waits until they are done with.
    async fn opened(
        &self,
        call: &Call<'_>,
        pages: &[&Value],
        refused: &(dyn Fn(&str) -> Failure + Sync),
    ) -> Result<(), Failure> {
        let mut done = Vec::new();
        for params in pages {
            let ask = Ask {
                asks: Asks::Elicitation,
                server: &self.server,
                tool: Some(call.tool),
                key: None,
                params,
            };
            let answered = input::ask(ask, &*call.caller, &self.pages).await;
            let (answer, page) = answered.map_err(|error| {
                refused(&format!("its page could not be shown: {}", error.message))
            })?;
            match answer.get("action").and_then(Value::as_str) {
                Some("accept") => done.extend(page),
                Some("decline") => return Err(refused("the user declined to open its page")),
                _ => return Err(refused("the user did not open its page")),
            }
        }
        let opened = Opened {
            server: &self.server,
            tool: call.tool,
            pages: pages.len(),
            is_told: true,
        };
        let told = async {
            for done in &mut done {
                if done.wait_for(|done| *done).await.is_err() {
                    // It was forgotten, so the server will not be heard.
                    std::future::pending::<()>().await;
                }
            }
        };
        let over = async {
            tokio::select! {
                biased;
                () = told => Ok(()),
                back = call.caller.back_from(opened) => back,
            }
        };
        in_time(over).await.map_err(|why| refused(&why))
    }

    /// Waits until whoever agreed to open pages says that they are done there, in a revision
    /// in which the server does not say so.
    ///
    /// # Errors
    ///
    /// They gave it up, or it has taken too long.
    pub(crate) async fn done_at(&self, call: &Call<'_>, pages: usize) -> Result<(), Failure> {
        let _asking = Asking::start(self);
        let opened = Opened {
            server: &self.server,
            tool: call.tool,
            pages,
            is_told: false,
        };
        in_time(call.caller.back_from(opened))
            .await
            .map_err(Failure::Input)
    }
}

/// Waits until somebody is done at a page, or says why not.
async fn in_time(over: impl Future<Output = Result<(), Refusal>>) -> Result<(), String> {
    match timeout(PATIENCE, over).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_refusal)) => Err("the user gave its page up".to_owned()),
        Err(_late) => {
            let minutes = PATIENCE.as_secs() / 60;
            Err(format!(
                "nobody was done at its page within {minutes} minutes"
            ))
        }
    }
}

/// The pages that a refusal names; none if they are not as they must be.
fn wanted(error: &ErrorData) -> Vec<&Value> {
    let listed = error
        .data
        .as_ref()
        .and_then(|data| data.get("elicitations"));
    let listed = listed.and_then(Value::as_array);
    let pages: Vec<&Value> = listed.into_iter().flatten().collect();
    let text = |page: &Value, key: &str| page.get(key).and_then(Value::as_str).map(str::len);
    let is_page = |page: &&Value| {
        page.get("mode").and_then(Value::as_str) == Some("url")
            && address::fault(page).is_none()
            && text(page, "elicitationId").is_some_and(|id| (1..=MAX_ID_BYTES).contains(&id))
    };
    match pages.len() <= MAX_PAGES && pages.iter().all(is_page) {
        true => pages,
        false => Vec::new(),
    }
}

fn address(page: &Value) -> String {
    let url = page.get("url").and_then(Value::as_str).unwrap_or_default();
    let end = url.floor_char_boundary(MAX_SHOWN.min(url.len()));
    format!("{:?}", url.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests;
