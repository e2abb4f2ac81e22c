//! Pages that servers let the client's user open, and their completion notices (MCP 2025-11-25,
//! "Completion Notifications for URL Mode Elicitation").

use std::sync::{Mutex, MutexGuard, PoisonError};

use callgate::caller::PageDone;
use rmcp::model::{CustomNotification, ElicitRequestParams, InputRequest, ServerNotification};
use rmcp::service::{Peer, RoleServer};
use serde_json::json;
use uuid::Uuid;

/// The most pages of one run that are remembered.
const MAX_PAGES: usize = 64;

/// The pages of one run.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<Vec<Page>>);

#[derive(Debug)]
struct Page {
    server: String,
    /// The server's id of the page.
    server_id: String,
    /// The id that the client knows.
    client_id: String,
    /// The client that got the page in a request, and can be told of its end.
    sent_to: Option<Peer<RoleServer>>,
}

impl Pages {
    /// Adds a page, and returns the id for the client.
    pub(crate) fn add(&self, server: &str, server_id: &str) -> String {
        let client_id = Uuid::new_v4().simple().to_string();
        let mut pages = self.lock();
        if pages.len() >= MAX_PAGES {
            pages.remove(0);
        }
        pages.push(Page {
            server: server.to_owned(),
            server_id: server_id.to_owned(),
            client_id: client_id.clone(),
            sent_to: None,
        });
        client_id
    }

    /// Notes the client that a request was sent to.
    pub(crate) fn sent(&self, request: &InputRequest, to: &Peer<RoleServer>) {
        if let InputRequest::Elicitation(request) = request
            && let ElicitRequestParams::UrlElicitationParams { elicitation_id, .. } =
                &request.params
            && let Some(page) = self
                .lock()
                .iter_mut()
                .find(|page| page.client_id == *elicitation_id)
        {
            page.sent_to = Some(to.clone());
        }
    }

    /// The function that tells the client of a page's end, if the client got the page. Several
    /// calls may have sent one page, each under its own id.
    pub(crate) fn completion(&self, server: &str, server_id: &str) -> Option<PageDone> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let is_it = |page: &mut Page| {
            page.server == server && page.server_id == server_id && page.sent_to.is_some()
        };
        let sent: Vec<Page> = self.lock().extract_if(.., is_it).collect();
        if sent.is_empty() {
            return None;
        }
        Some(Box::new(move || {
            for Page {
                client_id, sent_to, ..
            } in sent
            {
                let Some(peer) = sent_to else { continue };
                let notification = ServerNotification::CustomNotification(CustomNotification::new(
                    "notifications/elicitation/complete",
                    Some(json!({ "elicitationId": client_id })),
                ));
                // A client that is gone is noticed elsewhere.
                runtime.spawn(async move { peer.send_notification(notification).await });
            }
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
