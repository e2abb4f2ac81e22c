//! Listening to a server that tells of changes to those who ask for that (2026-07-28).
//!
//! A subscription is one request, which is answered when it ends. It belongs to the login
//! that it was sent with: after another one, the server is asked anew.

use std::time::Duration;

use rmcp::model::ErrorCode;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::backoff::spread;
use crate::failure::Failure;
use crate::flight::LISTEN;
use crate::http::is_for_good;
use crate::session::{Changes, Request, Session};

/// The wait before a server is listened to again; it doubles up to the longest.
const AGAIN: Duration = Duration::from_secs(1);
const AGAIN_AT_MOST: Duration = Duration::from_secs(60);
/// The longest for a server that refuses to be listened to, and may not do so for good.
const REFUSED_AT_MOST: Duration = Duration::from_secs(60 * 60);

/// Listens for changes, where that is how a server tells of them. What nobody was told of is
/// among the `wishes` for a list.
pub(crate) async fn listen(server: &str, wishes: &watch::Sender<u64>, session: &Session) {
    let tells = session.is_stateless()
        && session
            .agreed()
            .is_some_and(|agreed| agreed.abilities.tools_changes);
    if !tells {
        return std::future::pending().await;
    }
    let mut waits = Waits::default();
    loop {
        let began = Instant::now();
        let Changes {
            acknowledged: before,
            logins,
            ..
        } = *session.changes.borrow();
        let ended = tokio::select! {
            ended = subscribe(session) => ended,
            () = another_login(session, logins) => {
                tracing::debug!(server, "a subscription was another login's");
                waits = Waits::default();
                continue;
            }
        };
        let last = session.changes.borrow().acknowledged;
        let is_refused = match ended {
            Err(failure) if last.is_none() && is_refusal(&failure) => {
                another_login(session, logins).await;
                continue;
            }
            Err(failure) => {
                let reason = session.secrets.redact(&failure.to_string());
                tracing::debug!(server, reason, "a subscription ended");
                last == before && matches!(failure, Failure::Refused(_))
            }
            Ok(()) => {
                tracing::debug!(server, "a subscription was ended");
                false
            }
        };
        let wait = waits.after(began.elapsed(), is_refused);
        tokio::select! {
            () = sleep(spread(wait)) => {}
            () = another_login(session, logins) => waits = Waits::default(),
        }
        if last != before {
            // What changed meanwhile was told to nobody.
            wishes.send_modify(|wishes| *wishes += 1);
        }
    }
}

/// Listens until the server ends it.
async fn subscribe(session: &Session) -> Result<(), Failure> {
    let members = r#""notifications":{"toolsListChanged":true}"#;
    let request = Request::new(LISTEN, members);
    session.request_patiently(&request).await.map(drop)
}

/// Waits until requests go with another login than when there had been so many.
async fn another_login(session: &Session, logins: u64) {
    let mut changes = session.watch_changes();
    // The sender lives as long as the session.
    let _changed = changes.wait_for(|changes| changes.logins != logins).await;
}

/// Whether a server will refuse to be listened to however often it is asked.
fn is_refusal(failure: &Failure) -> bool {
    match failure {
        Failure::Refused(error) => matches!(
            error.code,
            ErrorCode::METHOD_NOT_FOUND | ErrorCode::INVALID_PARAMS
        ),
        Failure::Lost(error) => error.is_status() && is_for_good(&error.kind),
        _ => false,
    }
}

/// How long to wait before a server is listened to again.
#[derive(Debug)]
struct Waits {
    next: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self { next: AGAIN }
    }
}

impl Waits {
    /// The wait after a subscription that lasted so long, or was refused.
    fn after(&mut self, lasted: Duration, is_refused: bool) -> Duration {
        if lasted > AGAIN_AT_MOST && !is_refused {
            self.next = AGAIN;
        }
        let most = match is_refused {
            true => REFUSED_AT_MOST,
            false => AGAIN_AT_MOST,
        };
        let wait = self.next.min(most);
        self.next = wait.saturating_mul(2).min(most);
        wait
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorData;

    use super::*;
    use crate::link::{LinkError, LinkErrorKind};

    #[test]
    fn who_does_not_listen_is_not_asked_again_and_who_fails_is() {
        let refused = |code| {
            let error = ErrorData::new(ErrorCode(code), "m", None);
            is_refusal(&Failure::Refused(error))
        };
        let lost = |kind| {
            let reason = "m".to_owned();
            let sent = true;
            is_refusal(&Failure::Lost(LinkError { kind, reason, sent }))
        };
        assert!(refused(-32601) && refused(-32602));
        assert!(!refused(-32603) && !refused(-32000));
        for (status, expected) in [(400, true), (404, true), (429, false), (503, false)] {
            assert_eq!(lost(LinkErrorKind::Status(status)), expected, "{status}");
        }
        // Somebody may log in, or it may come back.
        assert!(!lost(LinkErrorKind::Unauthorized));
        assert!(!lost(LinkErrorKind::Unreachable));
    }

    #[test]
    fn who_refuses_is_asked_ever_more_seldom() {
        let seconds = |waits: &mut Waits, lasted, is_refused| {
            let wait = waits.after(Duration::from_secs(lasted), is_refused);
            wait.as_secs()
        };
        let mut waits = Waits::default();
        let refused: Vec<_> = (0..14).map(|_| seconds(&mut waits, 0, true)).collect();
        assert_eq!(
            refused,
            [
                1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600
            ]
        );
        // However long that takes it.
        assert_eq!(seconds(&mut waits, 3_600, true), 3_600);
        // One that does not answer may come back at any time.
        assert_eq!(seconds(&mut waits, 0, false), 60);
        assert_eq!(seconds(&mut waits, 0, false), 60);
        assert_eq!(seconds(&mut waits, 61, false), 1);
        assert_eq!(seconds(&mut waits, 0, true), 2);
    }
}
