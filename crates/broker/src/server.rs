//! One server of a broker, whatever becomes of its connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::backoff::MANY;
use crate::broker::{Ready, ServerState, Status};
use crate::caller::Caller;
use crate::calls::Call;
use crate::connection::Connection;
use crate::error::{StartError, StartErrorKind};
use crate::failure::Failure;
use crate::link::{LinkError, LinkErrorKind};
use crate::patience::Patience;
use crate::spec::ServerSpec;
use crate::start::start;
use crate::supervise::supervise;

/// A server. When it is dropped, its process is gone.
#[derive(Debug)]
pub(crate) struct Server {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

/// What calls and the task that keeps the server up have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) spec: ServerSpec,
    status: RwLock<Status>,
    pub(crate) state: watch::Sender<State>,
    /// A call waits for a server that is left down.
    pub(crate) wanted: Notify,
    /// How often somebody wished for a new list, and what the last one covers.
    pub(crate) wishes: watch::Sender<u64>,
    lists: Mutex<Lists>,
    /// The broker's.
    changes: Arc<watch::Sender<u64>>,
}

/// Whether there is a connection.
#[derive(Debug)]
pub(crate) enum State {
    Up(Arc<Connection>),
    Down(Down),
    /// It never was.
    Failed(StartError),
    /// It was ended from this side.
    Closed,
}

/// A server that ended and is to be started again.
#[derive(Debug, Clone)]
pub(crate) struct Down {
    /// How it ended, without secrets.
    pub(crate) reason: String,
    pub(crate) failures: u32,
    pub(crate) retry_at: Instant,
}

/// What the last list of tools covers.
#[derive(Debug)]
struct Lists {
    at: Instant,
    fresh_for: Option<Duration>,
    covered: Covered,
}

/// Reasons for a new list, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Covered {
    pub(crate) told: u64,
    pub(crate) wishes: u64,
}

impl Server {
    /// Starts a server, and keeps it up from then on. `changes` counts what
    /// changes about it.
    pub(crate) async fn start(
        spec: ServerSpec,
        unique: bool,
        changes: &Arc<watch::Sender<u64>>,
    ) -> Self {
        let started = if unique {
            start(&spec).await
        } else {
            Err(StartError {
                server: spec.name.clone(),
                kind: StartErrorKind::DuplicateName,
                stderr: String::new(),
            })
        };
        let (state, status, fresh_for) = match started {
            Ok((connection, ready)) => {
                let fresh_for = ready.fresh_for;
                let state = State::Up(Arc::new(connection));
                (state, Status::Ready(Arc::new(ready)), fresh_for)
            }
            Err(error) => {
                tracing::debug!(server = spec.name, %error, "a server did not start");
                (State::Failed(error.clone()), Status::Failed(error), None)
            }
        };
        let is_up = matches!(state, State::Up(_));
        let shared = Arc::new(Shared {
            spec,
            status: RwLock::new(status),
            state: watch::Sender::new(state),
            wanted: Notify::new(),
            wishes: watch::Sender::default(),
            lists: Mutex::new(Lists {
                at: Instant::now(),
                fresh_for,
                covered: Covered::default(),
            }),
            changes: Arc::clone(changes),
        });
        let stop = CancellationToken::new();
        if is_up {
            tokio::spawn(supervise(Arc::clone(&shared), stop.clone()));
        }
        Self { shared, stop }
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.spec.name
    }

    pub(crate) fn trusted(&self) -> bool {
        self.shared.spec.trusted
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience {
            idle: self.shared.spec.call_timeout,
            most: self.shared.spec.max_call_time,
        }
    }

    pub(crate) fn caller(&self) -> Arc<dyn Caller> {
        Arc::clone(&self.shared.spec.caller)
    }

    /// What there is of it now.
    pub(crate) fn state(&self) -> ServerState {
        ServerState {
            name: self.shared.spec.name.clone(),
            trusted: self.shared.spec.trusted,
            status: self.shared.status(),
        }
    }

    /// Calls a tool. A server that is down is waited for as long as the call may
    /// take without a sign of work, and a call that certainly did not reach a
    /// connection is made on the next one; no other is made twice.
    ///
    /// # Errors
    ///
    /// The failure, and one clause about it without secrets.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Box<RawValue>, (Failure, String)> {
        let patience = call.patience.idle.min(call.patience.most);
        let deadline = Instant::now().checked_add(patience);
        let deadline = deadline.unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400));
        let mut tried = None;
        loop {
            let connection = match self.connection(tried.as_ref(), deadline).await {
                Ok(connection) => connection,
                Err(reason) => {
                    let failure = Failure::Lost(LinkError::closed(reason.clone(), false));
                    return Err((failure, reason));
                }
            };
            match connection.call(call).await {
                Ok(result) => return Ok(result),
                Err(Failure::Lost(error))
                    if error.kind == LinkErrorKind::Closed && !error.sent && tried.is_none() =>
                {
                    tried = Some(connection);
                }
                Err(failure) => {
                    let said = connection.describe(&failure);
                    return Err((failure, said));
                }
            }
        }
    }

    /// Whether its list of tools is the newest that is known of.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared.is_settled()
    }

    /// Asks for its list anew if that is out of date by the server's own word.
    pub(crate) fn refresh_if_stale(&self) {
        let is_stale = {
            let lists = self.shared.lists();
            let expires = lists
                .fresh_for
                .and_then(|fresh| lists.at.checked_add(fresh));
            expires.is_some_and(|expires| expires <= Instant::now())
        };
        if is_stale && self.shared.is_settled() && self.shared.connection().is_some() {
            self.shared.wishes.send_modify(|wishes| *wishes += 1);
        }
    }

    /// Ends the connection and the process.
    pub(crate) async fn shut_down(&self) {
        let connection = self.shared.connection();
        self.close();
        if let Some(connection) = connection {
            connection.shut_down().await;
        }
    }

    fn close(&self) {
        self.stop.cancel();
        self.shared.state.send_if_modified(|state| {
            let closes = !matches!(state, State::Failed(_));
            if closes {
                *state = State::Closed;
            }
            closes
        });
    }

    /// A connection that is up, and another than `tried`; or why there is none.
    async fn connection(
        &self,
        tried: Option<&Arc<Connection>>,
        deadline: Instant,
    ) -> Result<Arc<Connection>, String> {
        let mut state = self.shared.state.subscribe();
        loop {
            let reason = match &*state.borrow_and_update() {
                State::Up(connection) => {
                    let is_tried = tried.is_some_and(|tried| Arc::ptr_eq(tried, connection));
                    if !is_tried && !connection.is_lost() {
                        return Ok(Arc::clone(connection));
                    }
                    // Whoever keeps it up is about to hear of it.
                    "the server closed the connection before the call".to_owned()
                }
                State::Failed(error) => return Err(error.to_string()),
                State::Closed => {
                    return Err("the connection was closed before the call".to_owned());
                }
                State::Down(down) => {
                    if down.retry_at > deadline {
                        return Err(down.to_string());
                    }
                    self.shared.wanted.notify_one();
                    down.to_string()
                }
            };
            match timeout_at(deadline, state.changed()).await {
                Ok(Ok(())) => {}
                _ => return Err(reason),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Display for Down {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let wait = self.retry_at.saturating_duration_since(Instant::now());
        write!(f, "{}; ", self.reason)?;
        match (wait.is_zero(), self.failures >= MANY) {
            (true, _) => f.write_str("it is being started again"),
            (false, false) => write!(f, "it is started again in {} ms", wait.as_millis()),
            (false, true) => write!(
                f,
                "it ended {} times in a row and is started again by a call that waits {} ms",
                self.failures,
                wait.as_millis()
            ),
        }
    }
}

impl Shared {
    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        match &*self.state.borrow() {
            State::Up(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> Status {
        let status = self.status.read();
        status.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes a list that covers these reasons. One that says the same as the
    /// last is no change.
    pub(crate) fn listed(&self, ready: Ready, covered: Covered) {
        {
            let mut lists = self.lists();
            *lists = Lists {
                at: Instant::now(),
                fresh_for: ready.fresh_for,
                covered,
            };
        }
        let same = match &self.status() {
            Status::Ready(before) => **before == ready,
            _ => false,
        };
        if !same {
            let mut status = self.status.write().unwrap_or_else(PoisonError::into_inner);
            *status = Status::Ready(Arc::new(ready));
        }
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// There is no list for these reasons: nobody is to wait for it.
    pub(crate) fn not_listed(&self, covered: Covered) {
        self.lists().covered = covered;
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The reasons for a list that there are now.
    pub(crate) fn reasons(&self, connection: &Connection) -> Covered {
        Covered {
            told: connection.list_changes(),
            wishes: *self.wishes.borrow(),
        }
    }

    /// Whether the last list covers all the reasons there are for one.
    pub(crate) fn is_settled(&self) -> bool {
        match self.connection() {
            Some(connection) => self.reasons(&connection) == self.lists().covered,
            // Its tools are what they were; a new connection lists them anew.
            None => true,
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
