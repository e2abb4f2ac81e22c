//! The folders that a client names for servers to work in.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::{Gate, Root};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};

use super::client::{Client, Way};
use crate::service::ComingGate;

/// How long a client has to name its folders before a run goes without.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a client has named, for all who tell servers of it; `None` while it may have some and
/// was not asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders(Arc<Mutex<Option<Vec<Root>>>>);

impl Folders {
    /// Those of a client that has none.
    pub(crate) fn none() -> Self {
        Self(Arc::new(Mutex::new(Some(Vec::new()))))
    }

    pub(crate) fn named(&self) -> MutexGuard<'_, Option<Vec<Root>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folders of a client of 2025-11-25 and before, asked for once in a session, and again
/// when it says that they have changed. Until it answers, they are what they were.
///
/// A newer client is asked by an answer that ends its request, so only once a
/// server wants to know.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    folders: Folders,
    /// Whether servers are told of them outside of calls, too: there is no other client.
    alone: bool,
    /// How often they have changed, by the client's word.
    changes: AtomicU64,
    /// How often it was asked, and has answered or had the time to.
    asked: AtomicU64,
    /// Whether somebody is about to ask who does it for all that is said meanwhile.
    follows: AtomicBool,
    /// One asks at a time.
    asking: AsyncMutex<Asking>,
}

/// What has come of asking.
#[derive(Debug, Default)]
struct Asking {
    /// How often they had changed when it was asked last.
    since: Option<u64>,
    failed: bool,
    /// Whether servers have yet to be told.
    untold: bool,
}

impl Roots {
    /// Those of the one client that there is.
    pub(crate) fn alone() -> Self {
        Self {
            alone: true,
            ..Self::default()
        }
    }

    /// What this client names, and servers of the gate have been told of if it is alone.
    pub(crate) async fn of(&self, client: &Client, gate: &Gate) -> Folders {
        match client.way {
            _ if !client.can.roots => return Folders::none(),
            Way::Rounds => return Folders::default(),
            Way::Requests => {}
        }
        let asking = self.ask(client).await;
        self.tell(asking, gate);
        self.folders.clone()
    }

    /// Whether there is no other client.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Has servers told of what the client names now, if it is alone: it has begun a session,
    /// or has said that they have changed.
    pub(crate) async fn follow(&self, client: &Client, gate: ComingGate) {
        let asks = self.alone && client.can.roots && client.way == Way::Requests;
        if !asks || self.follows.swap(true, Ordering::AcqRel) {
            return;
        }
        // While the servers are being started.
        drop(self.ask(client).await);
        let gate = gate.await;
        self.follows.store(false, Ordering::Release);
        let turn = self.asking.lock().await;
        let asking = self.ask_in_turn(turn, client, true).await;
        self.tell(asking, &gate);
    }

    /// The client says that they have changed.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// What has been named so far.
    pub(crate) fn so_far(&self) -> Vec<Root> {
        self.folders.named().clone().unwrap_or_default()
    }

    /// Asks for them, unless it has named them since they changed. Whoever waited while
    /// another asked, in vain, does not ask for the same again.
    async fn ask(&self, client: &Client) -> AsyncMutexGuard<'_, Asking> {
        let asked = self.asked.load(Ordering::Acquire);
        let turn = self.asking.lock().await;
        let has_waited = asked != self.asked.load(Ordering::Acquire);
        self.ask_in_turn(turn, client, has_waited).await
    }

    /// Asks for them, unless it has named them since they changed, or was asked since then
    /// and that `is_enough`.
    async fn ask_in_turn<'a>(
        &self,
        mut asking: AsyncMutexGuard<'a, Asking>,
        client: &Client,
        is_enough: bool,
    ) -> AsyncMutexGuard<'a, Asking> {
        let changes = self.changes.load(Ordering::Acquire);
        if asking.since == Some(changes) && (is_enough || !asking.failed) {
            return asking;
        }
        let answer = request(client).await;
        self.asked.fetch_add(1, Ordering::AcqRel);
        asking.since = Some(changes);
        asking.failed = answer.is_err();
        let mut named = self.folders.named();
        let before = named.get_or_insert_default();
        match answer {
            Ok(roots) if roots != *before => {
                *before = roots;
                asking.untold = true;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the client names no roots"),
        }
        drop(named);
        asking
    }

    /// Has servers told, where that is for this one to say and they have not been.
    fn tell(&self, mut asking: AsyncMutexGuard<'_, Asking>, gate: &Gate) {
        if self.alone && std::mem::take(&mut asking.untold) {
            gate.roots_changed();
        }
    }
}

/// The folders in a `ListRootsResult`; `None` if it is none.
pub(crate) fn named(result: &Value) -> Option<Vec<Root>> {
    let roots = result.get("roots")?.as_array()?;
    Some(roots.iter().filter_map(root).collect())
}

async fn request(client: &Client) -> Result<Vec<Root>, ServiceError> {
    let request = serde_json::from_value(json!({ "method": "roots/list" }))
        .map_err(|_unfit| ServiceError::UnexpectedResponse)?;
    let asked = client.peer.send_request(request);
    let answer = tokio::time::timeout(PATIENCE, asked)
        .await
        .map_err(|_late| ServiceError::Timeout { timeout: PATIENCE })??;
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    named(&answer).ok_or(ServiceError::UnexpectedResponse)
}

/// A folder, if it is one by its URL: servers are named no others.
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
