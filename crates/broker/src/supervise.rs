//! Keeping a server up, and its list of tools up to date.
//!
//! A server whose process or connection ends is started again after a while that
//! grows with its failures. One that fails time and again is left down until a
//! call wants it. Nothing that was sent is sent again.
//!
//! A server may say that its list has changed (all revisions but the newest in a
//! notification, the newest to those who listen), or for how long it holds. Then
//! it is asked for anew: once for what comes together, one list at a time, and
//! with a pause between lists, however often it says so.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::backoff::{Backoff, MANY};
use crate::broker::{Ready, Status};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::server::{Covered, Down, Shared, State};
use crate::session::{Request, Session};
use crate::start::start;

/// How long other changes are waited for before a list is asked for.
const TOGETHER: Duration = Duration::from_millis(20);
/// The least time between two lists.
const PAUSE: Duration = Duration::from_secs(1);
/// The wait before a server is listened to again; it doubles up to the longest.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
const LISTEN_AGAIN_AT_MOST: Duration = Duration::from_secs(60);

/// Keeps a server that is up so until it is stopped.
pub(crate) async fn supervise(shared: Arc<Shared>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = keep_up(&shared) => {}
    }
}

async fn keep_up(shared: &Shared) {
    let mut backoff = Backoff::default();
    while let Some(connection) = shared.connection() {
        let since = Instant::now();
        let reason = follow(shared, connection).await;
        backoff.ended_after(since.elapsed());
        tracing::warn!(server = shared.spec.name, reason, "a server is gone");
        restart(shared, &mut backoff, reason).await;
    }
}

/// Starts the server again, however often that takes.
async fn restart(shared: &Shared, backoff: &mut Backoff, mut reason: String) {
    loop {
        let retry_at = Instant::now() + backoff.wait();
        let failures = backoff.failures();
        shared.state.send_replace(State::Down(Down {
            reason,
            failures,
            retry_at,
        }));
        sleep_until(retry_at).await;
        if failures >= MANY {
            shared.wanted.notified().await;
        }
        match start(&shared.spec).await {
            Ok((connection, ready)) => {
                tracing::info!(server = shared.spec.name, "a server was started again");
                // Its notifications are counted from 0; wishes go on.
                let wishes = *shared.wishes.borrow();
                shared.listed(ready, Covered { told: 0, wishes });
                shared.state.send_replace(State::Up(Arc::new(connection)));
                return;
            }
            Err(error) => {
                tracing::warn!(server = shared.spec.name, %error, "a server does not come back");
                reason = error.to_string();
            }
        }
    }
}

/// Keeps the list of a connection's tools up to date until it ends; says how it
/// ended.
async fn follow(shared: &Shared, connection: Arc<Connection>) -> String {
    let session = Arc::clone(connection.session());
    let ended = {
        let (mut lost, exited) = (session.watch_lost(), connection.exited());
        async move {
            tokio::select! {
                // An error means that nobody is there to say so any more.
                _ = lost.wait_for(Option::is_some) => {}
                () = exited => {}
            }
        }
    };
    // What a call in flight does not hold, only the state does: a server that is
    // dropped ends at once.
    let weak = Arc::downgrade(&connection);
    drop(connection);
    tokio::select! {
        biased;
        () = ended => {}
        () = keep_listed(shared, &session) => {}
        () = listen(shared, &session) => {}
    }
    match weak.upgrade() {
        Some(connection) => connection.epitaph().await,
        None => "the connection was closed".to_owned(),
    }
}

/// Asks for the list of tools whenever there is reason to.
async fn keep_listed(shared: &Shared, session: &Session) {
    let mut changes = session.watch_changes();
    let mut wishes = shared.wishes.subscribe();
    let mut next = Instant::now();
    loop {
        let covered = match shared.connection() {
            Some(connection) if !shared.is_settled() => Some(shared.reasons(&connection)),
            _ => None,
        };
        if covered.is_none() {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return std::future::pending().await; },
                _ = wishes.changed() => {}
            }
            continue;
        }
        sleep_until(next.max(Instant::now() + TOGETHER)).await;
        list(shared).await;
        next = Instant::now() + PAUSE;
    }
}

/// Asks for the list of tools once. What is there stays if it does not come.
async fn list(shared: &Shared) {
    let (Some(connection), Status::Ready(before)) = (shared.connection(), shared.status()) else {
        return;
    };
    // Before the request: what changes while it is answered is another reason.
    let covered = shared.reasons(&connection);
    let limit = shared.spec.start_timeout;
    let failed = match tokio::time::timeout(limit, connection.list_tools(limit)).await {
        Ok(Ok(listing)) if listing.whole => {
            let ready = Ready {
                fresh_for: connection.fresh_for(&listing),
                tools: listing.tools,
                warnings: listing.warnings,
                ..(*before).clone()
            };
            shared.listed(ready, covered);
            return;
        }
        Ok(Ok(listing)) => listing.warnings.join("; "),
        Ok(Err(failure)) => connection.describe(&failure),
        Err(_) => connection.describe(&Failure::Timeout(limit)),
    };
    tracing::warn!(
        server = shared.spec.name,
        reason = failed,
        "a server's list of tools stays as it was"
    );
    shared.not_listed(covered);
}

/// Listens for changes, where that is how a server tells of them.
async fn listen(shared: &Shared, session: &Session) {
    let tells = session.is_stateless()
        && session
            .agreed()
            .is_some_and(|agreed| agreed.abilities.tools_changes);
    let mut wait = LISTEN_AGAIN;
    loop {
        let began = Instant::now();
        let ended = match tells {
            true => subscribe(session).await,
            false => std::future::pending().await,
        };
        match ended {
            Err(Failure::Refused(error)) if error.code.0 == -32601 => {
                return std::future::pending().await;
            }
            Err(failure) => {
                let reason = session.secrets.redact(&failure.to_string());
                tracing::debug!(server = shared.spec.name, reason, "a subscription ended");
            }
            Ok(()) => tracing::debug!(server = shared.spec.name, "a subscription was ended"),
        }
        if began.elapsed() > LISTEN_AGAIN_AT_MOST {
            wait = LISTEN_AGAIN;
        }
        sleep(wait).await;
        wait = (wait * 2).min(LISTEN_AGAIN_AT_MOST);
        // What changed meanwhile was told to nobody.
        shared.wishes.send_modify(|wishes| *wishes += 1);
    }
}

/// Listens until the server ends it.
async fn subscribe(session: &Session) -> Result<(), Failure> {
    let members = r#""notifications":{"toolsListChanged":true}"#;
    let request = Request::new("subscriptions/listen", members);
    let mut flight = session.open(&request)?;
    session.send(&mut flight, &request).await?;
    flight.answer().await.map(drop)
}
