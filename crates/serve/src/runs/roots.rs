//! The folders that a client names for servers to work in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callgate::Gate;
use callgate::faces::Root;
use futures::future::{BoxFuture, Shared};
use parking_lot::{Mutex, MutexGuard};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;

use super::client::Client;

/// The time for a client to name its folders.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// A gate that may still be starting; the error if it cannot be made.
pub(crate) type PendingGate = Shared<BoxFuture<'static, Result<Arc<Gate>, ()>>>;

/// The folders that a client has named; `None` until it is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders(Arc<Mutex<Option<Vec<Root>>>>);

impl Folders {
    /// The folders of a client that has none.
    pub(crate) fn none() -> Self {
        Self(Arc::new(Mutex::new(Some(Vec::new()))))
    }

    pub(crate) fn named(&self) -> MutexGuard<'_, Option<Vec<Root>>> {
        self.0.lock()
    }
}

/// The folders of a client of 2025-11-25 and before: requested once in a session, and again after
/// a change. A newer client is asked only when a server asks, because a question ends its request.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    folders: Folders,
    /// True if there is only one client: then servers get the folders outside of calls, too.
    pub(crate) is_only_client: bool,
    /// True if the client was asked, and has announced no change since.
    is_asked: AtomicBool,
    /// One task asks at a time.
    asking: AsyncMutex<()>,
}

impl Roots {
    /// The folders of the only client.
    pub(crate) fn of_only_client() -> Self {
        Self {
            is_only_client: true,
            ..Self::default()
        }
    }

    /// The client's folders. Servers get them first, if this is the only client.
    pub(crate) async fn get(&self, client: &Client, gate: &Gate) -> Folders {
        if !client.capabilities.roots {
            return Folders::none();
        }
        if client.is_stateless {
            return Folders::default();
        }
        if self.ask_if_changed(client).await && self.is_only_client {
            gate.view().roots_changed();
        }
        self.folders.clone()
    }

    /// Sends servers the folders of the only client, at the start and after a change.
    pub(crate) async fn follow(&self, client: &Client, gate: PendingGate) {
        let has_roots = client.capabilities.roots && !client.is_stateless;
        // The client answers while servers start.
        if self.is_only_client
            && has_roots
            && self.ask_if_changed(client).await
            && let Ok(gate) = gate.await
        {
            gate.view().roots_changed();
        }
    }

    /// Notes that the folders have changed.
    pub(crate) fn changed(&self) {
        self.is_asked.store(false, Ordering::SeqCst);
    }

    /// The folders named so far.
    pub(crate) fn so_far(&self) -> Vec<Root> {
        self.folders.named().clone().unwrap_or_default()
    }

    /// Asks for the folders, unless the client was asked since the last change. True if they
    /// changed.
    async fn ask_if_changed(&self, client: &Client) -> bool {
        let _asking = self.asking.lock().await;
        if self.is_asked.swap(true, Ordering::SeqCst) {
            return false;
        }
        let answer = request(client).await;
        let mut named = self.folders.named();
        let before = named.get_or_insert_default();
        match answer {
            Ok(roots) => std::mem::replace(before, roots.clone()) != roots,
            Err(error) => {
                tracing::debug!(%error, "the client did not name its roots");
                false
            }
        }
    }
}

/// The folders in a `ListRootsResult`; `None` for other values.
pub(crate) fn named(result: &Value) -> Option<Vec<Root>> {
    let roots = result.get("roots")?.as_array()?;
    Some(roots.iter().filter_map(root).collect())
}

async fn request(client: &Client) -> Result<Vec<Root>, ServiceError> {
    let request = serde_json::from_value(json!({ "method": "roots/list" }))
        .map_err(|_unfit| ServiceError::UnexpectedResponse)?;
    let sent = client.peer.send_request(request);
    let late = ServiceError::Timeout {
        timeout: ANSWER_TIME,
    };
    let answer = tokio::time::timeout(ANSWER_TIME, sent)
        .await
        .map_err(|_| late)??;
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    named(&answer).ok_or(ServiceError::UnexpectedResponse)
}

/// A root with a `file://` URI. Servers get no others.
fn root(value: &Value) -> Option<Root> {
    const FILE: &str = "file://";
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let uri = text("uri")?;
    let scheme = uri.get(..FILE.len())?;
    scheme.eq_ignore_ascii_case(FILE).then(|| Root {
        uri,
        name: text("name"),
    })
}

#[cfg(test)]
mod tests;
