//! Keeps one server in its configured state, and its tool list up to date.
//!
//! A server that ended or did not start is started again after a wait that grows with its
//! failures. After many failures, if its tools are known, only a call starts it.
//! A server that is connected only for calls becomes idle when it is not used for a while.
//! A request that may have been sent is never sent again.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::{STABLE, awaits_call, backoff};
use crate::clock::{Clock, later};
use crate::connect::{ServerHistory, start};
use crate::connection::Connection;
use crate::current_list::CurrentList;
use crate::failure::{CallFailure, FailureKind, Reason};
use crate::listen::listen;
use crate::spec::{Connect, ServerSpec};
use crate::state::{Down, Lifecycle, Phase, ServerState, Stage, Status, StatusCell};
use crate::tool_call::ToolCall;

/// Changes within this time lead to one request for a new list.
const RELIST_DEBOUNCE: Duration = Duration::from_millis(20);
/// The minimum time between two requests for a list.
const MIN_RELIST_INTERVAL: Duration = Duration::from_secs(1);
/// Extra time for a failed start to report its error.
const START_GRACE: Duration = Duration::from_secs(10);
/// The time limit for ending the processes of abandoned starts, SIGKILL included.
const LAST_PROCESSES: Duration = Duration::from_secs(2);
const DISABLED: &str = "the server is disabled";
const NOT_YET: &str = "the server is being started";

/// A server and the task that supervises it. Dropping it ends the server's process.
#[derive(Debug)]
pub(crate) struct Supervised {
    server: Arc<Server>,
    stop: CancellationToken,
}

/// A server and its current state.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) spec: ServerSpec,
    status: StatusCell,
    pub(crate) list: CurrentList,
    history: ServerHistory,
    /// Counts the changes of the folders.
    roots: AtomicU64,
    /// The connections that are being ended. No new process is started meanwhile.
    endings: TaskTracker,
}

impl Supervised {
    /// Supervises a server, and starts it now if its configuration says so.
    pub(crate) fn start(
        spec: ServerSpec,
        is_unique: bool,
        changes: &Arc<watch::Sender<u64>>,
    ) -> Self {
        let endings = TaskTracker::new();
        endings.close();
        let list = CurrentList::new(spec.remembered.as_ref());
        let stage = match spec.connect {
            _ if !is_unique => {
                let problem = "another server has this name";
                let reason = Reason::advise(problem, "give each server a name of its own");
                list.fail(reason.of_start(&spec.name, ""));
                Stage::Closed
            }
            Connect::Manual => Stage::Disabled,
            _ if spec.starts_idle() => Stage::Idle,
            _ => Stage::Starting,
        };
        let server = Arc::new(Server {
            list,
            status: StatusCell::new(stage, Arc::clone(changes)),
            spec,
            history: ServerHistory::default(),
            roots: AtomicU64::new(0),
            endings,
        });
        let stop = CancellationToken::new();
        let (supervised, stopping) = (Arc::clone(&server), stop.clone());
        let supervise = async move { supervised.supervise().await };
        tokio::spawn(stopping.run_until_cancelled_owned(supervise));
        Self { server, stop }
    }

    /// Ends the connection and the process for good.
    pub(crate) async fn shut_down(&self) {
        self.stop.cancel();
        self.end(|| self.status.end(Stage::Closed));
        self.endings.wait().await;
        // An abandoned start ends its process, too.
        self.history.processes.close();
        let _ = timeout(LAST_PROCESSES, self.history.processes.wait()).await;
    }
}

impl Deref for Supervised {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.stop.cancel();
        drop(self.status.end(Stage::Closed));
    }
}

impl Server {
    /// True if a call has to wait for the connection.
    pub(crate) fn needs_connect(&self) -> bool {
        matches!(self.status.now().stage, Stage::Idle | Stage::Starting)
    }

    /// Makes a call. Repeats it once on a new connection if it was not sent, and once with a new
    /// list if the server refused its headers.
    pub(crate) async fn call(&self, call: &ToolCall<'_>) -> Result<Box<RawValue>, CallFailure> {
        let _used = self.status.begin_use();
        let max_bytes = self.spec.max_message_bytes;
        let max = self.spec.max_call_time;
        let max = call.limit.map_or(max, |limit| limit.min(max));
        let mut clock = Clock::new(self.spec.call_timeout, max, &self.history.asking);
        let caller = call.caller.as_ref().unwrap_or(&self.spec.caller);
        let (mut reconnected, mut relisted) = (false, false);
        loop {
            let deadline = clock.deadline();
            let connection = clock.wait(self.connection(deadline)).await;
            let connection = connection.unwrap_or_else(|| Err(NOT_YET.into()));
            let connection = connection.map_err(|reason| CallFailure::closed(reason, false))?;
            let failure = match connection.call(call, caller, &self.list, &mut clock).await {
                Ok(result) if result.get().len() > max_bytes => {
                    return Err(CallFailure::too_large(max_bytes));
                }
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            match &failure.kind {
                // The limit of other messages may be higher.
                FailureKind::TooLarge(_) => return Err(CallFailure::too_large(max_bytes)),
                // The connection accepts no more calls.
                _ if failure.is_closed() && !failure.sent => {
                    if reconnected || self.is_disabled() {
                        return Err(self.explain(failure));
                    }
                    reconnected = true;
                    continue;
                }
                // The headers do not match the server's current list.
                FailureKind::Refused(error)
                    if error.code == ErrorCode::HEADER_MISMATCH
                        && connection.session.mirrors_arguments()
                        && !relisted => {}
                _ => return Err(self.explain(failure)),
            }
            relisted = true;
            self.refresh();
            clock.wait(self.listed(self.generation())).await;
        }
    }

    /// Replaces the reason of a failure if the server was disabled.
    fn explain(&self, mut failure: CallFailure) -> CallFailure {
        if matches!(failure.kind, FailureKind::Lost(_)) && self.is_disabled() {
            *failure.reason = format!("{DISABLED} during the call").into();
        }
        failure
    }

    /// Connects to a server in use, unless it is connected.
    pub(crate) async fn connect(&self) -> Result<(), Reason> {
        let _used = self.status.begin_use();
        let limit = self.spec.start_timeout.saturating_add(START_GRACE);
        let connected = self.connection(later(Instant::now(), limit));
        connected.await.map(drop)
    }

    /// Takes a server into use and connects to it.
    pub(crate) async fn enable(&self) -> Result<(), Reason> {
        let _used = self.status.begin_use();
        self.status.start_now();
        self.connect().await
    }

    /// Takes a server out of use, and ends its connection and its process.
    pub(crate) async fn disable(&self) {
        self.end(|| self.status.end(Stage::Disabled));
        self.endings.wait().await;
    }

    /// The current generation of the list.
    pub(crate) fn generation(&self) -> u64 {
        *self.history.generation.borrow()
    }

    /// Waits for a list of this generation. Does not wait without a connection, because a new
    /// connection lists the tools again.
    pub(crate) async fn listed(&self, generation: u64) {
        let mut changes = self.status.changes.subscribe();
        let is_listed = || {
            self.list.state().covered_generation >= generation || self.status.connection().is_none()
        };
        while !is_listed() && changes.changed().await.is_ok() {}
    }

    /// Requests a new list, unless a request is pending.
    fn refresh(&self) {
        if self.is_settled() {
            self.history
                .generation
                .send_modify(|generation| *generation += 1);
        }
    }

    /// Requests a new list if the time to live of this one is over.
    pub(crate) fn refresh_if_stale(&self) {
        let Some(list) = self.list.list() else {
            return;
        };
        let age = self.list.state().age();
        let over = |limit: Duration| age.is_none_or(|age| age >= limit);
        let is_idle = matches!(self.status.now().stage, Stage::Idle);
        if is_idle {
            if over(self.spec.list_ttl(&list)) {
                self.status.wake();
            }
        } else if let Some(connection) = self.status.connection()
            && connection.list_ttl(&list).is_some_and(over)
        {
            self.refresh();
        }
    }

    /// Notifies the server of changed folders, now or as soon as it is connected.
    pub(crate) fn roots_changed(&self) {
        self.roots.fetch_add(1, Ordering::Relaxed);
        if let Some(connection) = self.status.connection() {
            connection.roots_changed();
        }
    }

    /// Waits for a connection that accepts calls. Requires a use of the server.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Reason> {
        let mut lifecycle = self.status.watch();
        let retry_at = |stage: &Stage| match stage {
            Stage::Down(down) => Some(down.retry_at),
            _ => None,
        };
        let before = retry_at(&lifecycle.borrow().stage);
        loop {
            let reason: Reason = match &lifecycle.borrow_and_update().stage {
                Stage::Up(connection) if connection.is_open() => return Ok(Arc::clone(connection)),
                Stage::Up(_) => "the server accepts no more calls on its connection, and gets a \
                     new one when its current calls are over"
                    .into(),
                Stage::Idle | Stage::Starting => NOT_YET.into(),
                // The start for this call failed.
                stage @ Stage::Down(down) if down.did_not_start && before != retry_at(stage) => {
                    return Err(down.reason.clone());
                }
                Stage::Down(down) if down.retry_at > deadline => return Err(down.whole_reason()),
                Stage::Down(down) => down.whole_reason(),
                Stage::Disabled => return Err(format!("{DISABLED}; enable it to call it").into()),
                Stage::Closed => {
                    let failed = self.list.state().failed.clone();
                    return Err(failed
                        .unwrap_or_else(|| "the connection was closed before the call".into()));
                }
            };
            if !matches!(timeout_at(deadline, lifecycle.changed()).await, Ok(Ok(()))) {
                let held_up = self.history.held_up();
                return Err(held_up.map_or(reason, |error| Reason::from(&error)));
            }
        }
    }

    /// Runs the state machine, and restarts it when another task begins a new epoch.
    async fn supervise(&self) {
        let mut lifecycle = self.status.watch();
        loop {
            let epoch = lifecycle.borrow_and_update().epoch;
            tokio::select! {
                biased;
                changed = lifecycle.wait_for(|lifecycle| lifecycle.epoch != epoch) => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = self.drive(epoch) => {}
            }
        }
    }

    /// Runs the state machine for one epoch.
    async fn drive(&self, epoch: u64) {
        let mut failures = 0;
        loop {
            let stage = self.status.now().stage.clone();
            match stage {
                Stage::Up(connection) => {
                    let since = Instant::now();
                    if let Some(reason) = self.follow(epoch, connection).await {
                        tracing::warn!(server = self.spec.name, %reason, "a server is gone");
                        if since.elapsed() >= STABLE {
                            failures = 0;
                        }
                        failures += 1;
                        self.down(epoch, failures, reason, false);
                    }
                }
                Stage::Idle => {
                    self.until_wanted().await;
                    self.status.step(epoch, Stage::Starting);
                }
                Stage::Starting => self.start_once(epoch, &mut failures).await,
                Stage::Down(down) => {
                    sleep_until(down.retry_at).await;
                    if down.awaits_call {
                        self.until_wanted().await;
                    }
                    self.start_once(epoch, &mut failures).await;
                }
                Stage::Disabled | Stage::Closed => return std::future::pending().await,
            }
        }
    }

    /// Waits until the server is used, or started for its list.
    async fn until_wanted(&self) {
        let mut lifecycle = self.status.watch();
        let is_wanted = |lifecycle: &Lifecycle| {
            lifecycle.uses > 0 || matches!(lifecycle.stage, Stage::Starting)
        };
        let _ = lifecycle.wait_for(is_wanted).await;
    }

    /// Makes one attempt to start the server.
    async fn start_once(&self, epoch: u64, failures: &mut u32) {
        // Two processes of one server may conflict.
        self.endings.wait().await;
        let roots = self.roots.load(Ordering::Relaxed);
        let generation = self.generation();
        match start(&self.spec, &self.history).await {
            Ok((connection, list)) => {
                tracing::info!(server = self.spec.name, "a server was started");
                // Changes that the server reported before this list lead to one more request.
                self.list.take(list, generation);
                let connection = Arc::new(connection);
                self.status.step(epoch, Stage::Up(Arc::clone(&connection)));
                if self.roots.load(Ordering::Relaxed) != roots {
                    connection.roots_changed();
                }
            }
            Err(reason) => {
                tracing::warn!(server = self.spec.name, error = %reason, "a server does not start");
                self.list.fail(reason.clone());
                *failures += 1;
                self.down(epoch, *failures, reason, true);
            }
        }
    }

    /// Leaves a server down until its next start.
    fn down(&self, epoch: u64, failures: u32, reason: Reason, did_not_start: bool) {
        let is_known = self.list.list().is_some();
        let down = Down {
            reason,
            did_not_start,
            retry_at: Instant::now() + backoff(failures, is_known),
            awaits_call: is_known && awaits_call(failures, self.spec.connect),
        };
        self.status.step(epoch, Stage::Down(down));
    }

    /// Keeps the tool list of a connection up to date until the connection ends, and returns why it
    /// ended; `None` if the server became idle.
    async fn follow(&self, epoch: u64, connection: Arc<Connection>) -> Option<Reason> {
        tokio::select! {
            biased;
            () = connection.ended() => {}
            () = self.until_idle(epoch) => {
                tracing::info!(server = self.spec.name, "a server is idle");
                return None;
            }
            () = self.keep_listed() => {}
            () = listen(&connection.session) => {}
        }
        let reason = connection.exit_reason().await;
        self.end(|| Some(connection));
        Some(reason)
    }

    /// Makes the server idle when it has not been used for its idle time.
    async fn until_idle(&self, epoch: u64) {
        let limit = self.spec.idle;
        let Some(limit) = limit.filter(|_| self.spec.connect != Connect::Always) else {
            return std::future::pending().await;
        };
        while !self.end(|| self.status.make_idle(epoch, limit)) {
            sleep((limit / 8).max(Duration::from_millis(1))).await;
        }
    }

    /// Requests the tool list in each new generation.
    async fn keep_listed(&self) {
        let mut generation = self.history.generation.subscribe();
        loop {
            let is_new = |generation: &u64| *generation != self.list.state().covered_generation;
            // The guard of the result holds the channel's lock.
            drop(generation.wait_for(is_new).await);
            sleep(RELIST_DEBOUNCE).await;
            self.relist().await;
            sleep(MIN_RELIST_INTERVAL).await;
        }
    }

    /// Requests the tool list once. If that fails, the old list stays.
    async fn relist(&self) {
        let (Some(connection), Some(before)) = (self.status.connection(), self.list.list()) else {
            return;
        };
        // A change during the request begins a new generation.
        let covered_generation = self.generation();
        let limit = self.spec.start_timeout;
        let listed = timeout(limit, connection.session.list_tools(limit)).await;
        let failed = match listed.unwrap_or(Err(CallFailure::timeout(limit))) {
            Ok(mut listing) if !listing.breaks_off => {
                listing.list.warnings.clone_from(&before.warnings);
                self.list.take(listing.list, covered_generation);
                return self.status.notify();
            }
            Ok(listing) => listing.list.gaps.join("; "),
            Err(failure) => failure.to_string(),
        };
        let server = &self.spec.name;
        tracing::warn!(
            server,
            reason = failed,
            "a server's list of tools stays as it was"
        );
        self.list.record_failure(covered_generation);
        self.status.notify();
    }

    /// Ends the connection that `take` returns, and its process; false if it returns none.
    fn end(&self, take: impl FnOnce() -> Option<Arc<Connection>>) -> bool {
        // With this token, a start that sees the new stage waits for the end of the connection.
        let _token = self.endings.token();
        let Some(connection) = take() else {
            return false;
        };
        self.endings
            .spawn(async move { connection.shut_down().await });
        true
    }

    /// True if no newer tool list is known to exist.
    pub(crate) fn is_settled(&self) -> bool {
        self.list.state().covered_generation == self.generation()
            || self.status.connection().is_none()
    }

    fn is_disabled(&self) -> bool {
        matches!(self.status.now().stage, Stage::Disabled)
    }

    pub(crate) fn state(&self) -> ServerState {
        let known = self.list.state().clone();
        let (age, list) = (known.age(), known.list);
        let phase = match &self.status.now().stage {
            Stage::Up(_) => Phase::Up,
            Stage::Starting => Phase::Starting,
            Stage::Idle => Phase::Idle,
            Stage::Down(down) => Phase::Down(down.reason.clone()),
            Stage::Disabled => Phase::Disabled,
            Stage::Closed => Phase::Closed,
        };
        let is_over = list.as_ref().is_some_and(|list| {
            let ttl = self.spec.list_ttl(list);
            phase != Phase::Up && age.is_none_or(|age| age >= ttl)
        });
        ServerState {
            name: self.spec.name.clone(),
            description: self.spec.description.clone(),
            trusted: self.spec.trusted,
            status: match (list, &known.failed) {
                (Some(list), _) => Status::Ready(list),
                (None, Some(reason)) => Status::Failed(reason.clone()),
                (None, None) => Status::Unknown,
            },
            failed: known.failed,
            received: known.received,
            age,
            stale: matches!(phase, Phase::Down(_)) || is_over || known.relist_failed,
            phase,
        }
    }
}
