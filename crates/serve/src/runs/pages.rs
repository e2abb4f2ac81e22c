//! Pages that servers let the client's user open, and their completion notices (MCP 2025-11-25,
//! "Completion Notifications for URL Mode Elicitation").

use callgate::faces::PageDone;
use parking_lot::Mutex;
use rmcp::model::{CustomNotification, ElicitRequestParams, InputRequest, ServerNotification};
use rmcp::service::{Peer, RoleServer};
use serde_json::json;
use uuid::Uuid;

/// The limit of pages of one run. Further pages replace the oldest.
const MAX_PAGES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<Vec<SentPage>>);

#[derive(Debug)]
struct SentPage {
    server: String,
    /// The server's id of the page.
    server_id: String,
    /// The id that the client knows.
    client_id: String,
    /// The client that got the page in a request, and can be notified.
    sent_to: Option<Peer<RoleServer>>,
}

impl Pages {
    /// Adds a page, and returns the id for the client.
    pub(crate) fn add(&self, server: &str, server_id: &str) -> String {
        let client_id = Uuid::new_v4().simple().to_string();
        let mut pages = self.0.lock();
        if pages.len() >= MAX_PAGES {
            pages.remove(0);
        }
        pages.push(SentPage {
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
                .0
                .lock()
                .iter_mut()
                .find(|page| page.client_id == *elicitation_id)
        {
            page.sent_to = Some(to.clone());
        }
    }

    /// The function that notifies the client of a page's completion, if the client got the page.
    /// Several calls may have sent one page, each with its own id.
    pub(crate) fn completion(&self, server: &str, server_id: &str) -> Option<PageDone> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let is_it = |page: &mut SentPage| {
            page.server == server && page.server_id == server_id && page.sent_to.is_some()
        };
        let sent: Vec<SentPage> = self.0.lock().extract_if(.., is_it).collect();
        if sent.is_empty() {
            return None;
        }
        Some(Box::new(move || {
            for SentPage {
                client_id, sent_to, ..
            } in sent
            {
                let Some(peer) = sent_to else { continue };
                let notification = ServerNotification::CustomNotification(CustomNotification::new(
                    "notifications/elicitation/complete",
                    Some(json!({ "elicitationId": client_id })),
                ));
                // A lost client is detected elsewhere.
                runtime.spawn(async move { peer.send_notification(notification).await });
            }
        }))
    }
}
