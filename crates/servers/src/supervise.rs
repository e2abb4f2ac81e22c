//! Keeps one server in its configured state, and its tool list up to date.
//!
//! A server that ended or did not start is started again after a wait that grows with its
//! failures. With many failures it stays down until a call asks for it, if its tools are known.
//! A server that is connected to for calls only is idle when it has not been used for a while.
//! A request that may have been sent is never sent again.

use std::sync::Arc;
use std::time::Duration;

use callgate_policy::DefinitionHash;
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::Backoff;
use crate::call::Call;
use crate::caller::Caller;
use crate::connect::{Connection, LastAttempt, later, start};
use crate::failure::{CallFailure, Changed, LostKind, StartError, StartErrorKind};
use crate::list::{CurrentList, Reasons, list_failure};
use crate::request::{Clock, Patience};
use crate::spec::{Connect, ServerSpec};
use crate::state::{Down, Phase, ServerState, Stand, State, Status};
use crate::watch::listen;

/// The wait for other changes before a list is asked for.
const TOGETHER: Duration = Duration::from_millis(20);
/// The least time between two lists.
const PAUSE: Duration = Duration::from_secs(1);
/// The time that a call waits for a list that is on its way.
const LIST_PATIENCE: Duration = Duration::from_secs(2);
/// The lists that one call asks for.
const MAX_LISTS: usize = 3;
/// The time that a start may take beyond its limit, to say that it failed.
const SAYING_SO: Duration = Duration::from_secs(1);
const DISABLED: &str = "the server is disabled";

/// A call as the host makes it.
#[derive(Debug, Clone)]
pub struct ToolCall<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// The definition that was decided on.
    pub definition: &'a DefinitionHash,
    /// A JSON object.
    pub arguments: &'a str,
    /// The caller; `None` for the server's own ([`ServerSpec::caller`]).
    pub caller: Option<Arc<dyn Caller>>,
    /// The longest the call may take, if that is less than the server's own limit.
    pub limit: Option<Duration>,
}

/// A server. Dropping it ends its process.
#[derive(Debug)]
pub(crate) struct Server {
    inner: Arc<Inner>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Inner {
    spec: ServerSpec,
    stand: Stand,
    list: CurrentList,
    last: LastAttempt,
    /// Counts the host's wishes for a new list.
    wishes: watch::Sender<u64>,
    /// Counts the changes of all servers.
    changes: Arc<watch::Sender<u64>>,
    /// The connections that are being ended. No other process is started meanwhile.
    endings: TaskTracker,
    /// Ends them without their grace.
    at_once: CancellationToken,
}

impl Server {
    /// Starts a server, if it is to be started now, and supervises it from then on.
    pub(crate) async fn start(
        spec: ServerSpec,
        is_unique: bool,
        changes: &Arc<watch::Sender<u64>>,
    ) -> Self {
        let endings = TaskTracker::new();
        endings.close();
        let inner = Arc::new(Inner {
            list: CurrentList::new(spec.remembered.as_ref()),
            stand: Stand::new(State::Starting),
            spec,
            last: LastAttempt::default(),
            wishes: watch::Sender::default(),
            changes: Arc::clone(changes),
            endings,
            at_once: CancellationToken::new(),
        });
        let mut backoff = Backoff::default();
        if !is_unique {
            inner.list.fail(StartError {
                server: inner.spec.name.clone(),
                kind: StartErrorKind::DuplicateName,
                stderr: String::new(),
            });
            inner.step(0, State::Closed);
        } else if inner.spec.connect == Connect::Manual {
            inner.step(0, State::Disabled);
        } else if inner.spec.starts_idle() {
            inner.step(0, State::Idle);
        } else {
            inner.start_once(0, &mut backoff).await;
        }
        let stop = CancellationToken::new();
        if is_unique {
            let supervised = Arc::clone(&inner);
            let supervise = async move { supervised.supervise(backoff).await };
            tokio::spawn(stop.clone().run_until_cancelled_owned(supervise));
        }
        Self { inner, stop }
    }

    pub(crate) fn name(&self) -> &str {
        &self.inner.spec.name
    }

    pub(crate) fn spec(&self) -> &ServerSpec {
        &self.inner.spec
    }

    pub(crate) fn state(&self) -> ServerState {
        self.inner.state()
    }

    /// Whether a call has to wait for the server to be connected to.
    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.inner.stand.now().state, State::Idle | State::Starting)
    }

    /// Makes a call. A server that is down is waited for as long as the call may take without a
    /// sign of work. A call that did not reach the server is made once more on another
    /// connection, or by a newer list; the tool has to be the one that was decided on.
    pub(crate) async fn call(&self, call: &ToolCall<'_>) -> Result<Box<RawValue>, CallFailure> {
        let inner = &self.inner;
        let _used = inner.stand.begin_use();
        let most = inner.spec.max_call_time;
        let most = call.limit.map_or(most, |limit| limit.min(most));
        let patience = Patience {
            idle: inner.spec.call_timeout,
            most,
        };
        let caller = call.caller.as_ref().unwrap_or(&inner.spec.caller);
        let made = Call {
            tool: call.tool,
            arguments: call.arguments,
            caller: Arc::clone(caller),
            definition: call.definition,
            list: &inner.list,
        };
        let mut spent = Duration::ZERO;
        let (mut reconnected, mut lists) = (false, 0);
        loop {
            let began = Instant::now();
            let patience = Patience {
                most: most.saturating_sub(spent),
                ..patience
            };
            let deadline = later(began, patience.idle.min(patience.most));
            let connection = self
                .connection(deadline)
                .await
                .map_err(|reason| CallFailure::closed(&reason, false))?;
            let mut clock = Clock::new(patience, &connection.session.asking);
            // A list that is on its way may have another tool of this name.
            self.settled(LIST_PATIENCE.min(patience.most)).await;
            clock.spend(began.elapsed());
            let failure = match connection.call(&made, &mut clock).await {
                Ok(result) => return Ok(result),
                Err(CallFailure::Timeout(limit)) if limit == patience.most => {
                    return Err(CallFailure::Timeout(most));
                }
                Err(failure) => failure,
            };
            spent = most.saturating_sub(clock.left());
            let is_new_list = match &failure {
                // The connection takes no more calls.
                CallFailure::Lost(lost) if lost.kind == LostKind::Closed && !lost.sent => {
                    if reconnected || inner.is_disabled() {
                        return Err(self.said(failure));
                    }
                    reconnected = true;
                    continue;
                }
                CallFailure::Lost(lost) => lost.kind == LostKind::OtherLogin,
                // The headers are not what the server's list asks for.
                CallFailure::Refused(error) => {
                    error.code == ErrorCode::HEADER_MISMATCH && connection.session.mirrors()
                }
                _ => false,
            };
            let is_other_login =
                matches!(&failure, CallFailure::Lost(lost) if lost.kind == LostKind::OtherLogin);
            lists += 1;
            if !is_new_list || lists > MAX_LISTS || lists > 1 && !is_other_login {
                if is_other_login {
                    let (what, sent) = (Changed::Login, false);
                    return Err(CallFailure::ToolChanged { what, sent });
                }
                return Err(self.said(failure));
            }
            let asked = Instant::now();
            self.refresh();
            let left = most.saturating_sub(spent).min(patience.idle);
            self.settled(left).await;
            spent = spent.saturating_add(asked.elapsed());
        }
    }

    /// A failure as the host gets it.
    fn said(&self, failure: CallFailure) -> CallFailure {
        match failure {
            CallFailure::Lost(mut lost) => {
                lost.reason = if self.inner.is_disabled() {
                    format!("{DISABLED} during the call")
                } else {
                    lost.reason
                };
                CallFailure::Lost(lost)
            }
            failure => failure,
        }
    }

    /// Connects to a server in use, unless it is connected.
    pub(crate) async fn connect(&self) -> Result<(), String> {
        let _used = self.inner.stand.begin_use();
        let limit = self.inner.spec.start_timeout.saturating_add(SAYING_SO);
        self.connection(later(Instant::now(), limit))
            .await
            .map(drop)
    }

    /// Takes a server into use and connects to it.
    pub(crate) async fn enable(&self) -> Result<(), String> {
        let _used = self.inner.stand.begin_use();
        let mut standing = self.inner.stand.watch();
        self.inner.stand.turn_on();
        self.inner.changed();
        // A start has a time limit of its own.
        loop {
            match &standing.borrow_and_update().state {
                State::Up(_) => return Ok(()),
                State::Down(down) => return Err(down.reason.clone()),
                State::Disabled => return Err("it was disabled meanwhile".to_owned()),
                State::Closed => return Err("it was shut down".to_owned()),
                State::Starting | State::Idle => {}
            }
            if standing.changed().await.is_err() {
                return Err("it was shut down".to_owned());
            }
        }
    }

    /// Takes a server out of use, and ends its connection and its process.
    pub(crate) async fn disable(&self) {
        self.inner.end(|| self.inner.stand.end(State::Disabled));
        self.inner.changed();
        self.inner.endings.wait().await;
    }

    /// Ends the connection and the process for good.
    pub(crate) async fn shut_down(&self) {
        self.stop.cancel();
        self.inner.end(|| self.inner.stand.end(State::Closed));
        self.inner.endings.wait().await;
    }

    /// Whether the tool list is the newest that is known of.
    pub(crate) fn is_settled(&self) -> bool {
        self.inner.is_settled()
    }

    /// The time since when a new list is waited for.
    pub(crate) fn awaited_since(&self) -> Option<Instant> {
        let connection = self.inner.stand.connection()?;
        self.inner
            .list
            .awaited_since(self.inner.reasons(&connection))
    }

    /// Waits until the tool list is the newest that is known of.
    async fn settled(&self, limit: Duration) {
        let mut changes = self.inner.changes.subscribe();
        let settled = async { while !self.is_settled() && changes.changed().await.is_ok() {} };
        let _ = timeout(limit, settled).await;
    }

    /// Asks for a new list, unless one is being asked for.
    fn refresh(&self) {
        if self.is_settled() {
            self.inner.wishes.send_modify(|wishes| *wishes += 1);
        }
    }

    /// Asks for a new list if this one is out of date by the server's own word. An idle server
    /// is connected to for that.
    pub(crate) fn refresh_if_stale(&self) {
        let Some(list) = self.inner.list.list() else {
            return;
        };
        let age = self.inner.list.freshness().age;
        let over = |limit: Duration| age.is_none_or(|age| age >= limit);
        let is_idle = matches!(self.inner.stand.now().state, State::Idle);
        if is_idle {
            if over(self.inner.spec.lists_hold(&list)) {
                self.inner.stand.send_for();
            }
        } else if list.fresh_for.is_some_and(over) && self.inner.stand.connection().is_some() {
            self.refresh();
        }
    }

    pub(crate) fn roots_changed(&self) {
        self.inner.stand.roots_changed();
    }

    /// A connection that takes calls, or why there is none. The server must be in use.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, String> {
        let inner = &self.inner;
        let mut standing = inner.stand.watch();
        let retry_at = |state: &State| match state {
            State::Down(down) => Some(down.retry_at),
            _ => None,
        };
        let before = retry_at(&standing.borrow().state);
        loop {
            let reason = match &standing.borrow_and_update().state {
                State::Up(connection) if connection.is_open() => return Ok(Arc::clone(connection)),
                State::Up(_) => "the server takes no more calls on its connection, and there is \
                     another when those that it has are over"
                    .to_owned(),
                State::Idle | State::Starting => "the server is being started".to_owned(),
                // A server that is started for a call and does not start is not tried for the
                // whole time of the call.
                state @ State::Down(down)
                    if inner.spec.connect != Connect::Always
                        && down.backoff.never_started()
                        && before != retry_at(state) =>
                {
                    return Err(down.reason.clone());
                }
                State::Down(down) if down.retry_at > deadline => return Err(down.to_string()),
                State::Down(down) => down.to_string(),
                State::Disabled => return Err(format!("{DISABLED}; enable it to call it")),
                State::Closed => {
                    return Err(match inner.list.failed() {
                        Some(error) => error.to_string(),
                        None => "the connection was closed before the call".to_owned(),
                    });
                }
            };
            if !matches!(timeout_at(deadline, standing.changed()).await, Ok(Ok(()))) {
                let held_up = inner.last.held_up();
                return Err(held_up.map_or(reason, |error| error.to_string()));
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        self.inner.at_once.cancel();
        drop(self.inner.stand.end(State::Closed));
    }
}

impl Inner {
    /// Goes through the turns, which others begin.
    async fn supervise(&self, mut backoff: Backoff) {
        let mut standing = self.stand.watch();
        loop {
            let turn = standing.borrow_and_update().turn;
            tokio::select! {
                biased;
                turned = standing.wait_for(|standing| standing.turn != turn) => {
                    if turned.is_err() {
                        return;
                    }
                }
                () = self.keep(turn, &mut backoff) => {}
            }
            backoff = Backoff::default();
        }
    }

    /// Goes from state to state in one turn.
    async fn keep(&self, turn: u64, backoff: &mut Backoff) {
        enum Next {
            Follow(Arc<Connection>),
            Start,
            AwaitUse,
            Retry { at: Instant, for_call: bool },
            Nothing,
        }
        loop {
            let next = match &self.stand.now().state {
                State::Up(connection) => Next::Follow(Arc::clone(connection)),
                State::Starting => Next::Start,
                State::Idle => Next::AwaitUse,
                State::Down(down) => Next::Retry {
                    at: down.retry_at,
                    for_call: down.awaits_call,
                },
                State::Disabled | State::Closed => Next::Nothing,
            };
            match next {
                Next::Follow(connection) => {
                    let since = Instant::now();
                    if let Some(reason) = self.follow(turn, connection).await {
                        backoff.ended_after(since.elapsed());
                        tracing::warn!(server = self.spec.name, reason, "a server is gone");
                        self.down(turn, *backoff, reason);
                    }
                }
                Next::AwaitUse => {
                    self.wanted().await;
                    self.step(turn, State::Starting);
                }
                Next::Start => self.start_once(turn, backoff).await,
                Next::Retry { at, for_call } => {
                    sleep_until(at).await;
                    if for_call {
                        self.wanted().await;
                    }
                    self.start_once(turn, backoff).await;
                }
                Next::Nothing => return std::future::pending().await,
            }
        }
    }

    /// Waits until the server is used.
    async fn wanted(&self) {
        let mut standing = self.stand.watch();
        let _ = standing.wait_for(|standing| standing.is_wanted()).await;
    }

    /// Starts the server, once.
    async fn start_once(&self, turn: u64, backoff: &mut Backoff) {
        // Two processes of it could be in each other's way.
        self.endings.wait().await;
        self.stand.starts();
        let wishes = *self.wishes.borrow();
        match start(&self.spec, &self.last).await {
            Ok((connection, list)) => {
                tracing::info!(server = self.spec.name, "a server was started");
                // Changes that it told of before the list are counted again: they cost a list.
                self.list.take(list, Reasons { told: 0, wishes });
                self.step(turn, State::Up(Arc::new(connection)));
            }
            Err(error) => {
                tracing::warn!(server = self.spec.name, %error, "a server does not start");
                let reason = error.to_string();
                self.list.fail(error);
                backoff.did_not_start();
                self.down(turn, *backoff, reason);
            }
        }
    }

    /// Leaves a server down until it is time to start it again.
    fn down(&self, turn: u64, backoff: Backoff, reason: String) {
        let down = Down::new(reason, backoff, self.spec.connect, self.list.is_known());
        self.step(turn, State::Down(down));
    }

    /// Keeps the tool list of a connection up to date until the connection ends, and says how it
    /// ended; `None` if the server became idle.
    async fn follow(&self, turn: u64, connection: Arc<Connection>) -> Option<String> {
        let session = Arc::clone(&connection.session);
        let notifications = Arc::clone(connection.notifications());
        let ended = connection.ended();
        // Only the state and the calls hold the connection: a server that is dropped ends at once.
        let weak = Arc::downgrade(&connection);
        drop(connection);
        tokio::select! {
            biased;
            () = ended => {}
            () = self.rested(turn) => {
                tracing::info!(server = self.spec.name, "a server is idle");
                self.changed();
                return None;
            }
            () = self.keep_listed(&notifications.changes, &session) => {}
            () = listen(&session, &notifications.changes, &self.wishes) => {}
        }
        let connection = weak.upgrade();
        let reason = match &connection {
            Some(connection) => connection.epitaph().await,
            None => "the connection was closed".to_owned(),
        };
        if let Some(connection) = connection {
            self.end(|| Some(connection));
        }
        Some(reason)
    }

    /// Waits until the server has been unused for as long as it may be. It is idle then.
    async fn rested(&self, turn: u64) {
        let idle = self
            .spec
            .idle
            .filter(|_| self.spec.connect != Connect::Always);
        let Some(limit) = idle else {
            return std::future::pending().await;
        };
        loop {
            let unused = self.stand.now().unused();
            if unused < limit {
                sleep(limit.saturating_sub(unused)).await;
            } else if self.end(|| self.stand.rest(turn, limit)) {
                return;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Asks for the tool list whenever there is reason to.
    async fn keep_listed(
        &self,
        changes: &watch::Sender<crate::watch::Changes>,
        session: &crate::request::Session,
    ) {
        let mut told = changes.subscribe();
        let mut wishes = self.wishes.subscribe();
        let mut logins = session.http.as_ref().map(|http| http.logins());
        let mut next = Instant::now();
        loop {
            if self.is_settled() {
                let login = async {
                    match &mut logins {
                        Some(logins) => drop(logins.changed().await),
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    _ = told.changed() => {}
                    _ = wishes.changed() => {}
                    () = login => {}
                }
                continue;
            }
            if self.is_told_of_changes() && self.list.outdate() {
                self.changed();
            }
            sleep_until(next.max(Instant::now() + TOGETHER)).await;
            self.ask_for_list().await;
            next = Instant::now() + PAUSE;
        }
    }

    /// Asks for the tool list once. The old one stays if it does not come.
    async fn ask_for_list(&self) {
        let (Some(connection), Some(before)) = (self.stand.connection(), self.list.list()) else {
            return;
        };
        // A change during the request is another reason.
        let covered = self.reasons(&connection);
        let limit = self.spec.start_timeout;
        let listed = timeout(limit, connection.session.list_tools(limit)).await;
        let failed = match listed.unwrap_or(Err(CallFailure::Timeout(limit))) {
            Ok(listing) if !listing.breaks_off => {
                self.list
                    .take(connection.tool_list(listing, &before), covered);
                return self.changed();
            }
            Ok(listing) => listing.warnings.join("; "),
            Err(failure) => list_failure(&failure),
        };
        let server = &self.spec.name;
        tracing::warn!(
            server,
            reason = failed,
            "a server's list of tools stays as it was"
        );
        self.list.miss(covered);
        self.changed();
    }

    /// Ends the connection that is taken out here, and its process; false if there is none.
    fn end(&self, take: impl FnOnce() -> Option<Arc<Connection>>) -> bool {
        // A start that sees the new state waits for this end already.
        let _token = self.endings.token();
        let Some(connection) = take() else {
            return false;
        };
        let at_once = self.at_once.clone();
        self.endings.spawn(async move {
            at_once.run_until_cancelled(connection.shut_down()).await;
        });
        true
    }

    fn step(&self, turn: u64, next: State) {
        self.stand.step(turn, next);
        self.changed();
    }

    /// Tells those who watch the servers.
    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The reasons for a list that there are now.
    fn reasons(&self, connection: &Connection) -> Reasons {
        Reasons {
            told: connection.list_changes(),
            wishes: *self.wishes.borrow(),
        }
    }

    fn is_settled(&self) -> bool {
        match self.stand.connection() {
            Some(connection) => self.reasons(&connection) == self.list.covered(),
            // A new connection lists the tools anew.
            None => true,
        }
    }

    fn is_told_of_changes(&self) -> bool {
        let connection = self.stand.connection();
        connection.is_some_and(|it| it.list_changes() != self.list.covered().told)
    }

    fn is_disabled(&self) -> bool {
        matches!(self.stand.now().state, State::Disabled)
    }

    fn state(&self) -> ServerState {
        let freshness = self.list.freshness();
        let failed = self.list.failed();
        let list = self.list.list();
        let phase = match &self.stand.now().state {
            State::Up(_) => Phase::Up,
            State::Starting => Phase::Starting,
            State::Idle => Phase::Idle,
            State::Down(down) => Phase::Down(down.reason.clone()),
            State::Disabled => Phase::Disabled,
            State::Closed => Phase::Closed,
        };
        let is_over = list.as_ref().is_some_and(|list| {
            let holds = self.spec.lists_hold(list);
            phase != Phase::Up && freshness.age.is_none_or(|age| age >= holds)
        });
        ServerState {
            name: self.spec.name.clone(),
            description: self.spec.description.clone(),
            trusted: self.spec.trusted,
            status: match (list, &failed) {
                (Some(list), _) => Status::Ready(list),
                (None, Some(error)) => Status::Failed(error.clone()),
                (None, None) => Status::Unknown,
            },
            failed,
            heard: freshness.heard,
            changed: freshness.changed,
            age: freshness.age,
            stale: matches!(phase, Phase::Down(_)) || is_over || freshness.missed,
            phase,
        }
    }
}
