//! The folders that a client names for servers to work in.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::{Gate, Root};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};

use super::client::{AskedBy, Client};
use crate::pending_gate::PendingGate;

/// How long a client has to name its folders.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The folders that a client has named; `None` until it is asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders(Arc<Mutex<Option<Vec<Root>>>>);

impl Folders {
    /// The folders of a client that has none.
    pub(crate) fn none() -> Self {
        Self(Arc::new(Mutex::new(Some(Vec::new()))))
    }

    pub(crate) fn named(&self) -> MutexGuard<'_, Option<Vec<Root>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folders of a client of 2025-11-25 and before: asked for once in a session, and again
/// when they have changed. A newer client is asked when a server wants to know, since that ends
/// its request.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    folders: Folders,
    /// There is no other client, so servers are told the folders outside of calls, too.
    is_only_client: bool,
    /// The number of changes that the client has announced.
    changes: AtomicU64,
    /// A task follows the changes.
    is_followed: AtomicBool,
    /// One task asks at a time.
    asked: AsyncMutex<Asked>,
}

/// The last time that the client was asked.
#[derive(Debug, Default)]
struct Asked {
    /// The number of changes then.
    changes: Option<u64>,
    failed: bool,
    /// Servers are to be told of other folders.
    is_news: bool,
}

impl Roots {
    /// The folders of the only client.
    pub(crate) fn of_only_client() -> Self {
        Self {
            is_only_client: true,
            ..Self::default()
        }
    }

    /// The client's folders. Servers are told them first, if this is the only client.
    pub(crate) async fn get(&self, client: &Client, gate: &Gate) -> Folders {
        if !client.capabilities.roots {
            return Folders::none();
        }
        if client.asked_by == AskedBy::Answers {
            return Folders::default();
        }
        let mut asked = self.asked.lock().await;
        self.ask_if_changed(&mut asked, client).await;
        self.tell(asked, gate);
        self.folders.clone()
    }

    pub(crate) fn is_only_client(&self) -> bool {
        self.is_only_client
    }

    /// Tells servers the folders of the only client, at the beginning and after a change.
    pub(crate) async fn follow(&self, client: &Client, gate: PendingGate) {
        let asks = self.is_only_client
            && client.capabilities.roots
            && client.asked_by == AskedBy::Requests;
        if !asks || self.is_followed.swap(true, Ordering::AcqRel) {
            return;
        }
        // The client answers while servers start.
        self.ask_if_changed(&mut *self.asked.lock().await, client)
            .await;
        let gate = gate.await;
        self.is_followed.store(false, Ordering::Release);
        let mut asked = self.asked.lock().await;
        let is_failed = asked.failed && asked.changes == Some(self.changes());
        if !is_failed {
            self.ask_if_changed(&mut asked, client).await;
        }
        self.tell(asked, &gate);
    }

    /// Notes that the folders have changed.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// The folders named so far.
    pub(crate) fn so_far(&self) -> Vec<Root> {
        self.folders.named().clone().unwrap_or_default()
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Asks for the folders, unless the client has named them since the last change. After a
    /// failure they stay as they are.
    async fn ask_if_changed(&self, asked: &mut Asked, client: &Client) {
        let changes = self.changes();
        if asked.changes == Some(changes) && !asked.failed {
            return;
        }
        let answer = request(client).await;
        asked.changes = Some(changes);
        asked.failed = answer.is_err();
        let mut named = self.folders.named();
        let before = named.get_or_insert_default();
        match answer {
            Ok(roots) if roots != *before => {
                *before = roots;
                asked.is_news = true;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the client names no roots"),
        }
    }

    fn tell(&self, mut asked: AsyncMutexGuard<'_, Asked>, gate: &Gate) {
        if self.is_only_client && std::mem::take(&mut asked.is_news) {
            gate.roots_changed();
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

/// A root that is a folder by its URL. Servers are named no others.
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
