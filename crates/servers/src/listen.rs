//! Listening for changes of a tool list in a subscription (2026-07-28).

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::backoff::spread;
use crate::failure::{FailureKind, Lost};
use crate::in_flight::LISTEN;
use crate::request::{Request, Session};

/// The wait before a new subscription. It doubles with each failure, up to [`MAX_WAIT`].
const MIN_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(5 * 60);

/// Subscribes to changes of the tool list, again and again. Does nothing where servers notify
/// without a subscription.
pub(crate) async fn listen(session: &Session) {
    let tap = &session.tap;
    if !(session.is_stateless() && session.agreed.tools_changes) {
        return std::future::pending().await;
    }
    let mut wait = MIN_WAIT;
    loop {
        let before = tap.acknowledged();
        let params = json!({ "notifications": { "toolsListChanged": true } });
        let ended = session.send(Request::new(LISTEN, params), None).await;
        let acknowledged = tap.acknowledged();
        if let Err(failure) = &ended {
            tracing::debug!(server = %tap.server, %failure, "a subscription ended");
            let is_refused = matches!(
                failure.kind,
                FailureKind::Refused(_) | FailureKind::Lost(Lost::Status(300..=499))
            );
            // A subscription that has worked may be refused while the server restarts.
            if acknowledged.is_none() && is_refused {
                return std::future::pending().await;
            }
        }
        let has_worked = acknowledged != before;
        if has_worked {
            wait = MIN_WAIT;
        }
        sleep(spread(wait)).await;
        wait = wait.saturating_mul(2).min(MAX_WAIT);
        if has_worked {
            tap.list_changed();
        }
    }
}
