//! The folders that a client names for servers to work in.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::Root;
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use super::client::{Client, Way};

/// How long a client has to name its folders before a run goes without.
const PATIENCE: Duration = Duration::from_secs(5);

/// The folders of a client of 2025-11-25 and before, asked for once in a session.
///
/// A newer client is asked by an answer that ends its request, so only once a
/// server wants to know.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    known: Mutex<Option<Vec<Root>>>,
}

impl Roots {
    /// What this client named; `None` if it has not been asked.
    pub(crate) async fn of(&self, client: &Client) -> Option<Vec<Root>> {
        match client.way {
            _ if !client.can.roots => return Some(Vec::new()),
            Way::Rounds => return None,
            Way::Requests => {}
        }
        let known = self.known().clone();
        if known.is_some() {
            return known;
        }
        match ask(client).await {
            Ok(roots) => {
                *self.known() = Some(roots.clone());
                Some(roots)
            }
            Err(error) => {
                tracing::debug!(%error, "the client names no roots");
                Some(Vec::new())
            }
        }
    }

    /// The client says that they have changed.
    pub(crate) fn forget(&self) {
        *self.known() = None;
    }

    fn known(&self) -> MutexGuard<'_, Option<Vec<Root>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folders in a `ListRootsResult`; `None` if it is none.
pub(crate) fn named(result: &Value) -> Option<Vec<Root>> {
    let roots = result.get("roots")?.as_array()?;
    Some(roots.iter().filter_map(root).collect())
}

async fn ask(client: &Client) -> Result<Vec<Root>, ServiceError> {
    let request = serde_json::from_value(json!({ "method": "roots/list" }))
        .map_err(|_unfit| ServiceError::UnexpectedResponse)?;
    let asked = client.peer.send_request(request);
    let answer = tokio::time::timeout(PATIENCE, asked)
        .await
        .map_err(|_late| ServiceError::Timeout { timeout: PATIENCE })??;
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    Ok(named(&answer).unwrap_or_default())
}

fn root(value: &Value) -> Option<Root> {
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    Some(Root {
        uri: text("uri")?,
        name: text("name"),
    })
}
