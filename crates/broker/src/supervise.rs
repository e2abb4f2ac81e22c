//! Keeping a server as it is to be, and its list of tools up to date.
//!
//! A server whose process or connection ends, or that did not start, is started
//! again after a while that grows with its failures. One that fails time and again
//! is left down until a call wants it, if its tools are known; else it is tried
//! again and again, ever more seldom. One that is to be connected to only when it
//! is called is idle when nobody has called it for a while. Nothing that was sent
//! is sent again.
//!
//! A server may say that its list has changed (all revisions but the newest in a
//! notification, the newest to those who listen), or for how long it holds. Then
//! it is asked for anew: once for what comes together, one list at a time, and
//! with a pause between lists, however often it says so.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::link::LinkError;
use crate::listed::Covered;
use crate::server::Shared;
use crate::session::Session;
use crate::start::start;
use crate::state::{Down, State};
use crate::subscription::listen;

/// How long the answers are waited for that a server wrote before it ended. They are there by
/// then; a process that left its group may hold the stream open.
const LAST_ANSWERS: Duration = Duration::from_millis(250);
/// The least time after which it is looked again whether a server is unused.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How long other changes are waited for before a list is asked for.
const TOGETHER: Duration = Duration::from_millis(20);
/// The least time between two lists.
const PAUSE: Duration = Duration::from_secs(1);

/// Keeps a server as it is to be until it is stopped. `backoff` has the failures
/// there were before.
pub(crate) async fn supervise(shared: Arc<Shared>, backoff: Backoff, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = keep(&shared, backoff) => {}
    }
}

/// Goes through the turns, which others begin.
async fn keep(shared: &Shared, mut backoff: Backoff) {
    let mut standing = shared.stand.watch();
    loop {
        let turn = standing.borrow_and_update().turn;
        tokio::select! {
            biased;
            turned = standing.wait_for(|standing| standing.turn != turn) => {
                if turned.is_err() {
                    return;
                }
            }
            () = keep_in_turn(shared, turn, &mut backoff) => {}
        }
        backoff = Backoff::default();
    }
}

/// Goes from state to state in one turn, for as long as that lasts.
async fn keep_in_turn(shared: &Shared, turn: u64, backoff: &mut Backoff) {
    /// What to do next, with what the state says.
    enum Next {
        Follow(Arc<Connection>),
        Start,
        AwaitUse,
        Await { retry_at: Instant, call: bool },
        Nothing,
    }
    loop {
        let next = match &shared.stand.now().state {
            State::Up(connection) => Next::Follow(Arc::clone(connection)),
            State::Starting => Next::Start,
            State::Idle => Next::AwaitUse,
            State::Down(down) => Next::Await {
                retry_at: down.retry_at,
                call: down.awaits_call,
            },
            State::Disabled | State::Closed => Next::Nothing,
        };
        match next {
            Next::Follow(connection) => {
                let since = Instant::now();
                let Some(reason) = follow(shared, turn, connection).await else {
                    // It is idle.
                    continue;
                };
                backoff.ended_after(since.elapsed());
                tracing::warn!(server = shared.spec.name, reason, "a server is gone");
                down(shared, turn, backoff, reason);
            }
            Next::AwaitUse => {
                shared.usage.wanted().await;
                shared.step(turn, State::Starting);
            }
            Next::Start => start_once(shared, turn, backoff).await,
            Next::Await { retry_at, call } => {
                sleep_until(retry_at).await;
                if call {
                    shared.usage.wanted().await;
                }
                start_once(shared, turn, backoff).await;
            }
            Next::Nothing => return std::future::pending().await,
        }
    }
}

/// Starts the server, once.
async fn start_once(shared: &Shared, turn: u64, backoff: &mut Backoff) {
    // Two of it could be in each other's way.
    shared.ends.over().await;
    shared.stand.starts();
    match start(&shared.spec, &shared.admission, None).await {
        Ok((connection, ready)) => {
            tracing::info!(server = shared.spec.name, "a server was started");
            // Its notifications are counted from 0; wishes go on.
            let wishes = *shared.wishes.borrow();
            shared.listed(ready, Covered { told: 0, wishes });
            shared.usage.touch();
            shared.step(turn, State::Up(Arc::new(connection)));
        }
        Err(error) => {
            tracing::warn!(server = shared.spec.name, %error, "a server does not start");
            let reason = error.to_string();
            shared.listed.fail(error);
            backoff.did_not_start();
            down(shared, turn, backoff, reason);
        }
    }
}

/// Leaves a server down until it is time to start it again.
fn down(shared: &Shared, turn: u64, backoff: &Backoff, reason: String) {
    let (connect, known) = (shared.spec.connect, shared.listed.is_known());
    let down = Down::new(reason, backoff, connect, known);
    shared.step(turn, State::Down(down));
}

/// Keeps the list of a connection's tools up to date until it ends, and says how
/// it ended; or until nobody has used it for a while, and ends it.
async fn follow(shared: &Shared, turn: u64, connection: Arc<Connection>) -> Option<String> {
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
        () = rested(shared, turn) => {
            tracing::info!(server = shared.spec.name, "a server is idle");
            shared.changed();
            return None;
        }
        () = keep_listed(shared, &session) => {}
        () = listen(&shared.spec.name, &shared.wishes, &session) => {}
    }
    // It takes no more calls, and may have answered some of those that it has.
    session
        .inbox
        .shut(LinkError::closed("the server ended", false));
    let reason = match weak.upgrade() {
        Some(connection) => connection.epitaph().await,
        None => "the connection was closed".to_owned(),
    };
    let mut lost = session.watch_lost();
    drop(timeout(LAST_ANSWERS, lost.wait_for(Option::is_some)).await);
    session
        .inbox
        .lost(LinkError::closed("the server ended", true));
    Some(reason)
}

/// Waits until nobody has used the server for as long as it may be unused; it is
/// idle then, and the connection that it had is being ended.
async fn rested(shared: &Shared, turn: u64) {
    let Some(limit) = shared.rests_after() else {
        return std::future::pending().await;
    };
    loop {
        match shared.usage.last().checked_add(limit) {
            Some(due) if due > Instant::now() => sleep_until(due).await,
            Some(_) => {
                // Whoever finds it idle waits for that end.
                if shared.ends.end(|| shared.stand.rest(turn, &shared.usage)) {
                    return;
                }
                // Somebody has just come.
                sleep(LOOK_AGAIN).await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Asks for the list of tools whenever there is reason to.
async fn keep_listed(shared: &Shared, session: &Session) {
    let mut changes = session.watch_changes();
    let mut wishes = shared.wishes.subscribe();
    let mut next = Instant::now();
    loop {
        if shared.is_settled() {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return std::future::pending().await; },
                _ = wishes.changed() => {}
            }
            continue;
        }
        if shared.is_told_of_changes() && shared.listed.outdate() {
            shared.changed();
        }
        sleep_until(next.max(Instant::now() + TOGETHER)).await;
        list(shared).await;
        next = Instant::now() + PAUSE;
    }
}

/// Asks for the list of tools once. What is there stays if it does not come.
async fn list(shared: &Shared) {
    let (Some(connection), Some(before)) = (shared.stand.connection(), shared.listed.ready())
    else {
        return;
    };
    // Before the request: what changes while it is answered is another reason.
    let covered = shared.reasons(&connection);
    let limit = shared.spec.start_timeout;
    let failed = match timeout(limit, connection.list_tools(limit)).await {
        Ok(Ok(listing)) if listing.whole => {
            connection.take(listing, &before, |ready| shared.listed(ready, covered));
            return;
        }
        Ok(Ok(listing)) => listing.warnings.join("; "),
        Ok(Err(failure)) => connection.describe_list(&failure),
        Err(_) => connection.describe(&Failure::Timeout(limit)),
    };
    tracing::warn!(
        server = shared.spec.name,
        reason = failed,
        "a server's list of tools stays as it was"
    );
    shared.not_listed(covered);
}
