//! Pages that servers have the client's user open, and the news that what is done
//! there is done (MCP 2025-11-25, "Completion Notifications for URL Mode
//! Elicitation").

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use callgate::PageDone;
use rmcp::model::{CustomNotification, ElicitRequestParams, InputRequest, ServerNotification};
use rmcp::service::{Peer, RoleServer};
use serde_json::json;

use super::seal::random;

/// How many pages of one run are remembered.
const MANY: usize = 64;

/// The pages of one run.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<Vec<Page>>);

#[derive(Debug)]
struct Page {
    server: String,
    /// The server's own name for it.
    theirs: String,
    /// What the client knows it by.
    ours: String,
    /// Who was sent it in a request, and so can be told of its end.
    asked: Option<Peer<RoleServer>>,
}

impl Pages {
    /// A name for a page that no other page has.
    ///
    /// # Errors
    ///
    /// If the system gives no random bytes.
    pub(crate) fn name(&self, server: &str, theirs: &str) -> std::io::Result<String> {
        let mut ours = String::new();
        for byte in random::<16>()? {
            let _ = write!(ours, "{byte:02x}");
        }
        let mut shown = self.lock();
        if shown.len() >= MANY {
            shown.remove(0);
        }
        shown.push(Page {
            server: server.to_owned(),
            theirs: theirs.to_owned(),
            ours: ours.clone(),
            asked: None,
        });
        Ok(ours)
    }

    /// Notes whom a request was sent to.
    pub(crate) fn sent(&self, request: &InputRequest, to: &Peer<RoleServer>) {
        let InputRequest::Elicitation(request) = request else {
            return;
        };
        let ElicitRequestParams::UrlElicitationParams { elicitation_id, .. } = &request.params
        else {
            return;
        };
        let mut shown = self.lock();
        if let Some(page) = shown.iter_mut().find(|page| page.ours == *elicitation_id) {
            page.asked = Some(to.clone());
        }
    }

    /// What tells the client that a page is done with, if it was sent it: under each name that
    /// it has had it under, as several calls may want one page.
    pub(crate) fn opened(&self, server: &str, theirs: &str) -> Option<PageDone> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let is_it = |page: &mut Page| {
            page.server == server && page.theirs == theirs && page.asked.is_some()
        };
        let sent: Vec<Page> = self.lock().extract_if(.., is_it).collect();
        if sent.is_empty() {
            return None;
        }
        Some(Box::new(move || {
            for Page { ours, asked, .. } in sent {
                let Some(peer) = asked else { continue };
                let params = json!({ "elicitationId": ours });
                let news =
                    CustomNotification::new("notifications/elicitation/complete", Some(params));
                let news = ServerNotification::CustomNotification(news);
                // A client that is gone shows elsewhere.
                runtime.spawn(async move { peer.send_notification(news).await });
            }
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
