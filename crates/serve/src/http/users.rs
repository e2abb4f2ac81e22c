//! The users, each with a gate, runs and sessions.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use callgate::Gate;
use callgate_sandbox::{MemoryBudget, MemoryShare};
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, TryFutureExt as _};
use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::auth::Identity;
use super::limits::Rates;
use super::refusal::HttpRefusal;
use crate::config::{HttpConfig, ServeConfig};
use crate::face::{Service, Session};
use crate::runs::{Answerer, Outside, Records};

/// The longest and the shortest time between two searches for idle users.
const SWEEP: Duration = Duration::from_secs(10);
const SHORTEST_SWEEP: Duration = Duration::from_millis(10);
/// Memory for the bodies of all requests that are read and answered; one user gets at most half.
const BODY_BYTES: u64 = 256 << 20;
/// The time for the servers of a user to end.
const SERVERS_END: Duration = Duration::from_secs(10);

/// Makes the gate of a user; `None` if the user's roles include no server. Errors are logged, and
/// not shown to the user.
pub type MakeGate = Box<dyn Fn(&Identity) -> Option<MakingGate> + Send + Sync>;

/// A gate that is being made.
pub type MakingGate = BoxFuture<'static, Result<Arc<Gate>, Box<dyn Error + Send + Sync>>>;

pub(crate) struct Users {
    make: MakeGate,
    config: ServeConfig,
    records: Records,
    known: Mutex<HashMap<Identity, Arc<User>>>,
    /// Memory for the bodies of all requests.
    memory: Arc<MemoryBudget>,
    pub(crate) rates: Rates,
    /// Requests that are being answered, without streams of sessions.
    pub(crate) answering: TaskTracker,
    ending: TaskTracker,
}

pub(crate) struct User {
    pub(crate) service: Arc<Service>,
    pub(crate) mcp: StreamableHttpService<Session, LocalSessionManager>,
    /// The MCP sessions (2025-11-25 and before).
    pub(crate) sessions: Arc<LocalSessionManager>,
    /// Ends sessions and streams, at the user's end or if the gate cannot be made.
    stop: CancellationToken,
    /// The task that makes the gate.
    _making: AbortOnDropHandle<()>,
    /// Free places for requests.
    requests: Arc<Semaphore>,
    max_requests: usize,
    /// Memory for the bodies of requests.
    pub(crate) memory: MemoryShare,
    last: Mutex<Instant>,
}

/// A user during a request.
pub(crate) struct Lease {
    pub(crate) user: Arc<User>,
    _place: OwnedSemaphorePermit,
}

impl Users {
    pub(crate) fn new(make: MakeGate, records: Records, config: ServeConfig) -> Arc<Self> {
        Arc::new(Self {
            make,
            records,
            rates: Rates::new(&config.http.rate),
            config,
            known: Mutex::default(),
            memory: MemoryBudget::new(BODY_BYTES),
            answering: TaskTracker::new(),
            ending: TaskTracker::new(),
        })
    }

    /// The user of a request. The first request starts the gate.
    pub(crate) fn lease(&self, identity: &Identity) -> Result<Lease, HttpRefusal> {
        let mut known = self.known.lock();
        let user = self.user(&mut known, identity)?;
        let place = Arc::clone(&user.requests).try_acquire_owned();
        let place = place.map_err(|_| {
            let max = self.config.http.requests;
            let message =
                format!("you already have {max} requests and streams open; end some first");
            HttpRefusal::new(StatusCode::TOO_MANY_REQUESTS, message)
        })?;
        Ok(Lease {
            user,
            _place: place,
        })
    }

    /// A share of the memory for bodies.
    pub(crate) fn memory(&self) -> MemoryShare {
        self.memory.share(true)
    }

    /// True if the user can start one more session.
    pub(crate) async fn has_session_room(&self, user: &User) -> bool {
        let users: Vec<_> = self.known.lock().values().cloned().collect();
        let counts = join_all(users.iter().map(|user| user.session_count())).await;
        user.session_count().await < self.config.http.sessions_per_user
            && counts.iter().sum::<usize>() < self.config.http.sessions
    }

    /// Ends idle users and forgets idle senders, at intervals.
    pub(crate) async fn sweep(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(self.config.users.idle.clamp(SHORTEST_SWEEP, SWEEP));
        loop {
            ticks.tick().await;
            let max = self.config.users.idle;
            let is_idle =
                |_: &Identity, user: &mut Arc<User>| user.idle().is_some_and(|it| it >= max);
            self.rates.forget_idle();
            for (identity, user) in self.known.lock().extract_if(is_idle) {
                tracing::info!(user = identity.user, "an idle user was ended");
                self.end_later(user);
            }
        }
    }

    /// Cancels the runs of all users. Their reports are still sent.
    pub(crate) async fn end_runs(&self) {
        let users: Vec<_> = self.known.lock().values().cloned().collect();
        join_all(users.iter().map(|user| user.service.runs.end())).await;
    }

    /// True if any user has a run in progress.
    pub(crate) fn has_running(&self) -> bool {
        let known = self.known.lock();
        known.values().any(|user| user.service.runs.has_running())
    }

    /// Ends all users, and waits for it.
    pub(crate) async fn end(&self) {
        let users = std::mem::take(&mut *self.known.lock());
        for user in users.into_values() {
            self.end_later(user);
        }
        self.ending.close();
        let _ = tokio::time::timeout(2 * SERVERS_END, self.ending.wait()).await;
    }

    fn user(
        &self,
        known: &mut HashMap<Identity, Arc<User>>,
        identity: &Identity,
    ) -> Result<Arc<User>, HttpRefusal> {
        match known.get(identity) {
            Some(user) if !user.failed() => return Ok(Arc::clone(user)),
            Some(_) => self.remove(known, identity),
            None => {}
        }
        let gate = (self.make)(identity).ok_or_else(|| {
            let message = "your token has no role on this server; ask its operator";
            HttpRefusal::new(StatusCode::FORBIDDEN, message)
        })?;
        if known.len() >= self.config.users.max {
            let idle = known
                .iter()
                .filter_map(|(identity, user)| Some((user.idle()?, identity)));
            let longest = idle.max_by_key(|(idle, _)| *idle).ok_or_else(|| {
                let message = "the server has reached its user limit; retry later";
                HttpRefusal::unavailable(message, 30)
            })?;
            let longest = longest.1.clone();
            self.remove(known, &longest);
        }
        let user = self.new_user(identity, gate);
        known.insert(identity.clone(), Arc::clone(&user));
        Ok(user)
    }

    fn remove(&self, known: &mut HashMap<Identity, Arc<User>>, identity: &Identity) {
        if let Some(user) = known.remove(identity) {
            self.end_later(user);
        }
    }

    fn new_user(&self, identity: &Identity, gate: MakingGate) -> Arc<User> {
        let stop = CancellationToken::new();
        let made = {
            let (stop, name) = (stop.clone(), identity.user.clone());
            gate.map_err(move |error| {
                tracing::error!(user = name, error = %error, "the gate of a user cannot be made");
                stop.cancel();
            })
        };
        let has_operators = !self.config.operators.is_empty();
        let outside = Outside {
            records: self.records.clone(),
            by: has_operators.then_some(Answerer::Operator),
            user: identity.user.clone().unwrap_or_default(),
        };
        let service = Service::new(made.boxed(), None, self.config.clone(), None, outside);
        let making = service.gate.clone().map(drop);
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(self.config.http.session_idle);
        let sessions = Arc::new(sessions);
        let mcp = StreamableHttpService::new(
            {
                let service = Arc::clone(&service);
                move || Ok(service.session())
            },
            Arc::clone(&sessions),
            transport(&self.config.http, stop.clone()),
        );
        let max_requests = self.config.http.requests.min(Semaphore::MAX_PERMITS);
        Arc::new(User {
            service,
            mcp,
            sessions,
            stop,
            _making: AbortOnDropHandle::new(tokio::spawn(making)),
            requests: Arc::new(Semaphore::new(max_requests)),
            max_requests,
            memory: self.memory(),
            last: Mutex::new(Instant::now()),
        })
    }

    fn end_later(&self, user: Arc<User>) {
        self.ending.spawn(async move { user.end().await });
    }
}

impl User {
    /// Resolves when the user ends, or the gate cannot be made.
    pub(crate) async fn ended(&self) {
        self.stop.cancelled().await;
    }

    /// True if the gate could not be made.
    pub(crate) fn failed(&self) -> bool {
        matches!(self.service.gate.peek(), Some(Err(())))
    }

    /// The refusal of requests for a user that has ended.
    pub(crate) fn gone(&self) -> HttpRefusal {
        if self.failed() {
            let message = "your servers could not be started; the operator's log has the reason";
            return HttpRefusal::unavailable(message, 10);
        }
        HttpRefusal::unavailable("the server is shutting down; retry later", 5)
    }

    /// Waits for the gate.
    pub(crate) async fn made_gate(&self) -> Result<Arc<Gate>, HttpRefusal> {
        tokio::select! {
            gate = self.service.gate.clone() => gate.map_err(|()| self.gone()),
            () = self.ended() => Err(self.gone()),
        }
    }

    /// Waits for the gate, and for a short time for the tool lists of its servers.
    pub(crate) async fn listed_gate(&self) -> Result<Arc<Gate>, HttpRefusal> {
        let gate = self.made_gate().await?;
        self.service.listed.clone().await;
        Ok(gate)
    }

    async fn session_count(&self) -> usize {
        self.sessions.sessions.read().await.len()
    }

    /// The time that the user has been idle; `None` if the user is active.
    fn idle(&self) -> Option<Duration> {
        // The map of sessions is locked while a session starts or ends.
        let sessions = self.sessions.sessions.try_read();
        let busy = self.requests.available_permits() < self.max_requests
            || sessions.map_or(true, |sessions| !sessions.is_empty())
            || self.service.runs.is_busy();
        (!busy).then(|| self.last.lock().elapsed())
    }

    async fn end(&self) {
        self.service.runs.end().await;
        self.stop.cancel();
        if let Some(Ok(gate)) = self.service.gate.peek() {
            let _ = tokio::time::timeout(SERVERS_END, gate.shutdown()).await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.user.last.lock() = Instant::now();
    }
}

/// The settings of rmcp's transport, without the checks that the door does.
fn transport(config: &HttpConfig, stop: CancellationToken) -> StreamableHttpServerConfig {
    let mut transport = StreamableHttpServerConfig::default().disable_allowed_hosts();
    transport.cancellation_token = stop;
    transport.max_request_body_bytes = usize::try_from(config.max_body).unwrap_or(usize::MAX);
    transport
}
