//! Keeps one server in its configured state, and its tool list up to date.
//!
//! A server that ended or did not start is started again after a wait that grows with its
//! failures. With many failures it stays down until a call asks for it, if its tools are known.
//! A server that is connected to for calls only is idle when it has not been used for a while.
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

use crate::backoff::{STABLE, backoff, is_patient};
use crate::call::ToolCall;
use crate::clock::{Clock, later};
use crate::connect::{ServerHistory, start};
use crate::connection::Connection;
use crate::failure::{CallFailure, FailureKind, Reason};
use crate::list::{CurrentList, listen};
use crate::spec::{Connect, ServerSpec};
use crate::state::{Down, Lifecycle, Phase, ServerState, State, Status, StatusCell};

/// Time in which several changes lead to one new list.
const RELIST_DEBOUNCE: Duration = Duration::from_millis(20);
/// The least time between two lists.
const MIN_RELIST_INTERVAL: Duration = Duration::from_secs(1);
/// Extra time for a failed start to report its error.
const START_GRACE: Duration = Duration::from_secs(10);
/// The time that processes of starts that were given up have to end, SIGKILL included.
const LAST_PROCESSES: Duration = Duration::from_secs(2);
const DISABLED: &str = "the server is disabled";
const NOT_YET: &str = "the server is being started";

/// A server and the task that supervises it. Dropping it ends the server's process.
#[derive(Debug)]
pub(crate) struct Supervised {
    server: Arc<Server>,
    stop: CancellationToken,
}

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) spec: ServerSpec,
    status: StatusCell,
    list: CurrentList,
    history: ServerHistory,
    /// Counts the changes of the folders.
    roots: AtomicU64,
    /// The connections that are being ended. No other process is started meanwhile.
    endings: TaskTracker,
}

impl Supervised {
    /// Begins to start a server, if it is to be started now, and supervises it from then on.
    pub(crate) fn start(
        spec: ServerSpec,
        is_unique: bool,
        changes: &Arc<watch::Sender<u64>>,
    ) -> Self {
        let endings = TaskTracker::new();
        endings.close();
        let list = CurrentList::new(spec.remembered.as_ref());
        let state = match spec.connect {
            _ if !is_unique => {
                let twin = "another server has this name";
                let reason = Reason::advise(twin, "give each server a name of its own");
                list.fail(reason.of_start(&spec.name, ""));
                State::Closed
            }
            Connect::Manual => State::Disabled,
            _ if spec.starts_idle() => State::Idle,
            _ => State::Starting,
        };
        let server = Arc::new(Server {
            list,
            status: StatusCell::new(state, Arc::clone(changes)),
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
        self.end(|| self.status.end(State::Closed));
        self.endings.wait().await;
        // A start that is given up ends its process, too.
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
        drop(self.status.end(State::Closed));
    }
}

impl Server {
    /// True if a call has to wait for the server to be connected to.
    pub(crate) fn needs_connect(&self) -> bool {
        matches!(self.status.now().state, State::Idle | State::Starting)
    }

    pub(crate) async fn call(&self, call: &ToolCall<'_>) -> Result<Box<RawValue>, CallFailure> {
        let _used = self.status.begin_use();
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
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            match &failure.kind {
                // The connection takes no more calls.
                _ if failure.is_closed() && !failure.sent => {
                    if reconnected || self.is_disabled() {
                        return Err(self.said(failure));
                    }
                    reconnected = true;
                    continue;
                }
                // The headers are not what the server's list asks for.
                FailureKind::Refused(error)
                    if error.code == ErrorCode::HEADER_MISMATCH
                        && connection.session.mirrors()
                        && !relisted => {}
                _ => return Err(self.said(failure)),
            }
            relisted = true;
            self.refresh();
            clock.wait(self.listed(self.generation())).await;
        }
    }

    /// A failure as the host gets it.
    fn said(&self, mut failure: CallFailure) -> CallFailure {
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
        self.end(|| self.status.end(State::Disabled));
        self.endings.wait().await;
    }

    /// The current generation of the list.
    pub(crate) fn generation(&self) -> u64 {
        *self.history.generation.borrow()
    }

    /// Waits for a list of this generation, unless the server is not connected:
    /// a new connection lists the tools again.
    pub(crate) async fn listed(&self, generation: u64) {
        let mut changes = self.status.changes.subscribe();
        let is_listed = || {
            self.list.state().covered_generation >= generation || self.status.connection().is_none()
        };
        while !is_listed() && changes.changed().await.is_ok() {}
    }

    /// Asks for a new list, unless one is being asked for.
    fn refresh(&self) {
        if self.is_settled() {
            self.history
                .generation
                .send_modify(|generation| *generation += 1);
        }
    }

    /// Asks for a new list if this one is out of date by the server's own word.
    pub(crate) fn refresh_if_stale(&self) {
        let Some(list) = self.list.list() else {
            return;
        };
        let age = self.list.state().age();
        let over = |limit: Duration| age.is_none_or(|age| age >= limit);
        let is_idle = matches!(self.status.now().state, State::Idle);
        if is_idle {
            if over(self.spec.list_ttl(&list)) {
                self.status.wake();
            }
        } else if let Some(connection) = self.status.connection()
            && connection.list_holds(&list).is_some_and(over)
        {
            self.refresh();
        }
    }

    /// Tells the server that its folders changed, now or as soon as it is connected.
    pub(crate) fn roots_changed(&self) {
        self.roots.fetch_add(1, Ordering::Relaxed);
        if let Some(connection) = self.status.connection() {
            connection.roots_changed();
        }
    }

    /// A connection that takes calls, or why there is none. The server must be in use.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Reason> {
        let mut lifecycle = self.status.watch();
        let retry_at = |state: &State| match state {
            State::Down(down) => Some(down.retry_at),
            _ => None,
        };
        let before = retry_at(&lifecycle.borrow().state);
        loop {
            let reason: Reason = match &lifecycle.borrow_and_update().state {
                State::Up(connection) if connection.is_open() => return Ok(Arc::clone(connection)),
                State::Up(_) => "the server takes no more calls on its connection, and there is \
                     another when those that it has are over"
                    .into(),
                State::Idle | State::Starting => NOT_YET.into(),
                // It was started for this and did not start.
                state @ State::Down(down) if down.did_not_start && before != retry_at(state) => {
                    return Err(down.reason.clone());
                }
                State::Down(down) if down.retry_at > deadline => return Err(down.whole_reason()),
                State::Down(down) => down.whole_reason(),
                State::Disabled => return Err(format!("{DISABLED}; enable it to call it").into()),
                State::Closed => {
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
            let state = self.status.now().state.clone();
            match state {
                State::Up(connection) => {
                    let since = Instant::now();
                    if let Some(reason) = self.follow(epoch, connection).await {
                        tracing::warn!(server = self.spec.name, reason, "a server is gone");
                        if since.elapsed() >= STABLE {
                            failures = 0;
                        }
                        failures += 1;
                        self.down(epoch, failures, reason.into(), false);
                    }
                }
                State::Idle => {
                    self.wanted().await;
                    self.status.step(epoch, State::Starting);
                }
                State::Starting => self.start_once(epoch, &mut failures).await,
                State::Down(down) => {
                    sleep_until(down.retry_at).await;
                    if down.awaits_call {
                        self.wanted().await;
                    }
                    self.start_once(epoch, &mut failures).await;
                }
                State::Disabled | State::Closed => return std::future::pending().await,
            }
        }
    }

    /// Waits until the server is used, or started for its list.
    async fn wanted(&self) {
        let mut lifecycle = self.status.watch();
        let is_wanted = |lifecycle: &Lifecycle| {
            lifecycle.uses > 0 || matches!(lifecycle.state, State::Starting)
        };
        let _ = lifecycle.wait_for(is_wanted).await;
    }

    /// Starts the server, once.
    async fn start_once(&self, epoch: u64, failures: &mut u32) {
        // Two processes of it could be in each other's way.
        self.endings.wait().await;
        let roots = self.roots.load(Ordering::Relaxed);
        let generation = self.generation();
        match start(&self.spec, &self.history).await {
            Ok((connection, list)) => {
                tracing::info!(server = self.spec.name, "a server was started");
                // Changes that it told of before the list cost another list.
                self.list.take(list, generation);
                let connection = Arc::new(connection);
                self.status.step(epoch, State::Up(Arc::clone(&connection)));
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
            awaits_call: is_known && is_patient(failures, self.spec.connect),
        };
        self.status.step(epoch, State::Down(down));
    }

    /// Keeps the tool list of a connection up to date until the connection ends, and says how it
    /// ended; `None` if the server became idle.
    async fn follow(&self, epoch: u64, connection: Arc<Connection>) -> Option<String> {
        tokio::select! {
            biased;
            () = connection.ended() => {}
            () = self.rested(epoch) => {
                tracing::info!(server = self.spec.name, "a server is idle");
                return None;
            }
            () = self.keep_listed() => {}
            () = listen(&connection.session, &connection.notifications) => {}
        }
        let reason = connection.exit_reason().await;
        self.end(|| Some(connection));
        Some(reason)
    }

    /// Waits until the server has been unused for as long as it may be. It is idle then.
    async fn rested(&self, epoch: u64) {
        let limit = self.spec.idle;
        let Some(limit) = limit.filter(|_| self.spec.connect != Connect::Always) else {
            return std::future::pending().await;
        };
        while !self.end(|| self.status.make_idle(epoch, limit)) {
            sleep((limit / 8).max(Duration::from_millis(1))).await;
        }
    }

    /// Asks for the tool list whenever there is reason to.
    async fn keep_listed(&self) {
        let mut generation = self.history.generation.subscribe();
        loop {
            let is_new = |generation: &u64| *generation != self.list.state().covered_generation;
            // The guard of the result holds the channel's lock.
            drop(generation.wait_for(is_new).await);
            sleep(RELIST_DEBOUNCE).await;
            self.ask_for_list().await;
            sleep(MIN_RELIST_INTERVAL).await;
        }
    }

    /// Asks for the tool list once. The old one stays if it does not come.
    async fn ask_for_list(&self) {
        let (Some(connection), Some(before)) = (self.status.connection(), self.list.list()) else {
            return;
        };
        // A change during the request is another reason.
        let covered_generation = self.generation();
        let limit = self.spec.start_timeout;
        let listed = timeout(limit, connection.session.list_tools(limit)).await;
        let failed = match listed.unwrap_or(Err(CallFailure::timeout(limit))) {
            Ok(mut listing) if !listing.breaks_off => {
                listing.list.warnings.clone_from(&before.warnings);
                self.list.take(listing.list, covered_generation);
                return self.status.tell();
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
        self.list.miss(covered_generation);
        self.status.tell();
    }

    /// Ends the connection that is taken out here, and its process; false if there is none.
    fn end(&self, take: impl FnOnce() -> Option<Arc<Connection>>) -> bool {
        // A start that sees the new state waits for this end already.
        let _token = self.endings.token();
        let Some(connection) = take() else {
            return false;
        };
        self.endings
            .spawn(async move { connection.shut_down().await });
        true
    }

    /// True if the tool list is the newest that is known of.
    pub(crate) fn is_settled(&self) -> bool {
        self.list.state().covered_generation == self.generation()
            || self.status.connection().is_none()
    }

    fn is_disabled(&self) -> bool {
        matches!(self.status.now().state, State::Disabled)
    }

    pub(crate) fn state(&self) -> ServerState {
        let known = self.list.state().clone();
        let (age, list) = (known.age(), known.list);
        let phase = match &self.status.now().state {
            State::Up(_) => Phase::Up,
            State::Starting => Phase::Starting,
            State::Idle => Phase::Idle,
            State::Down(down) => Phase::Down(down.reason.clone()),
            State::Disabled => Phase::Disabled,
            State::Closed => Phase::Closed,
        };
        let is_over = list.as_ref().is_some_and(|list| {
            let holds = self.spec.list_ttl(list);
            phase != Phase::Up && age.is_none_or(|age| age >= holds)
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
            heard: known.heard,
            age,
            stale: matches!(phase, Phase::Down(_)) || is_over || known.missed,
            phase,
        }
    }
}
