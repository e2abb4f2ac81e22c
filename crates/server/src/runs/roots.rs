//! The folders that a client names for servers to work in.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::Root;
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use super::client::{Client, Way};

/// How long a client has to name its folders before a run goes without.
const PATIENCE: Duration = Duration::from_secs(5);

/// The folders of a client of 2025-11-25 and before, asked for once.
///
/// A newer client could be asked only by an answer that ends its request, before
/// anyone wants to know, so its folders are not.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    known: Mutex<Option<Vec<Root>>>,
}

impl Roots {
    /// What this client named.
    pub(crate) async fn of(&self, client: &Client) -> Vec<Root> {
        if !client.can.roots || client.way != Way::Requests {
            return Vec::new();
        }
        let known = self.known().clone();
        if let Some(roots) = known {
            return roots;
        }
        match ask(client).await {
            Ok(roots) => {
                *self.known() = Some(roots.clone());
                roots
            }
            Err(error) => {
                tracing::debug!(%error, "the client names no roots");
                Vec::new()
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

async fn ask(client: &Client) -> Result<Vec<Root>, ServiceError> {
    let request = serde_json::from_value(json!({ "method": "roots/list" }))
        .map_err(|_unfit| ServiceError::UnexpectedResponse)?;
    let asked = client.peer.send_request(request);
    let answer = tokio::time::timeout(PATIENCE, asked)
        .await
        .map_err(|_late| ServiceError::Timeout { timeout: PATIENCE })??;
    let answer = serde_json::to_value(&answer).unwrap_or_default();
    let roots = answer.get("roots").and_then(Value::as_array);
    Ok(roots.into_iter().flatten().filter_map(root).collect())
}

fn root(value: &Value) -> Option<Root> {
    let text = |key: &str| Some(value.get(key)?.as_str()?.to_owned());
    Some(Root {
        uri: text("uri")?,
        name: text("name"),
    })
}
