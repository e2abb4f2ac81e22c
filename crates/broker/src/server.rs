//! One server of a broker, whatever becomes of its connection.

mod shared;

use std::sync::Arc;
use std::time::Duration;

use callgate_policy::DefinitionHash;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

pub(crate) use self::shared::Shared;
use crate::backoff::Backoff;
use crate::broker::ServerState;
use crate::caller::Caller;
use crate::calls::Call;
use crate::connection::Connection;
use crate::ends::Ends;
use crate::error::{StartError, StartErrorKind};
use crate::failure::Failure;
use crate::link::{LinkError, LinkErrorKind};
use crate::listed::{Covered, Decided, Listed};
use crate::patience::{Patience, soon};
use crate::spec::{Connect, ServerSpec};
use crate::start::{Admission, start};
use crate::state::{Down, Stand, State};
use crate::supervise::supervise;
use crate::usage::Usage;

/// A server. When it is dropped, its process is gone.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) shared: Arc<Shared>,
    stop: CancellationToken,
}

impl Server {
    /// Starts a server, where it is to be started now, and keeps it as it is to
    /// be from then on. `changes` counts what changes about it; `launch` is held
    /// until its process has been started, or there is none to start.
    pub(crate) async fn start(
        spec: ServerSpec,
        unique: bool,
        changes: &Arc<watch::Sender<u64>>,
        launch: watch::Receiver<()>,
    ) -> Self {
        let listed = Arc::new(Listed::new(spec.remembered.as_ref()));
        let mut backoff = Backoff::default();
        let admission = Admission::default();
        let state = if !unique {
            listed.fail(StartError {
                server: spec.name.clone(),
                kind: StartErrorKind::DuplicateName,
                stderr: String::new(),
            });
            State::Closed
        } else if spec.starts_disabled() {
            State::Disabled
        } else if spec.starts_idle() {
            State::Idle
        } else {
            match start(&spec, &admission, Some(launch)).await {
                Ok((connection, ready)) => {
                    listed.take(ready, Covered::default());
                    State::Up(Arc::new(connection))
                }
                Err(error) => {
                    tracing::debug!(server = spec.name, %error, "a server did not start");
                    let reason = error.to_string();
                    listed.fail(error);
                    backoff.did_not_start();
                    State::Down(Down::new(reason, &backoff, spec.connect, listed.is_known()))
                }
            }
        };
        let shared = Arc::new(Shared {
            spec,
            stand: Stand::new(state),
            ends: Ends::default(),
            usage: Usage::default(),
            admission,
            listed,
            wishes: watch::Sender::default(),
            changes: Arc::clone(changes),
        });
        let stop = CancellationToken::new();
        if unique {
            tokio::spawn(supervise(Arc::clone(&shared), backoff, stop.clone()));
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
        self.shared.state()
    }

    /// Whether a call has to wait for it to be connected to.
    pub(crate) fn is_resting(&self) -> bool {
        let standing = self.shared.stand.now();
        matches!(standing.state, State::Idle | State::Starting)
    }

    /// Calls a tool. A server that is down is waited for as long as the call may
    /// take without a sign of work, and a call that certainly did not reach a
    /// connection is made on the next one; no other is made twice. Whichever connection it
    /// is, the tool has to be what was decided about.
    ///
    /// # Errors
    ///
    /// The failure, and one clause about it without secrets.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Box<RawValue>, (Failure, String)> {
        let began = Instant::now();
        let _used = self.shared.usage.begin();
        let patience = call.patience.idle.min(call.patience.most);
        let mut deadline = soon(patience);
        // For how long somebody was asked on connections that did not take it.
        let mut asked = Duration::ZERO;
        // Whether the server had gone over to another revision, once a connection has not taken it.
        let mut tried = None;
        loop {
            let connection = match self.connection(deadline).await {
                Ok(found) => found,
                Err(reason) => {
                    let failure = Failure::Lost(LinkError::closed(reason.clone(), false));
                    return Err((failure, reason));
                }
            };
            if tried == Some(true) {
                connection.session().asked_again();
            }
            // What it took to have a connection is time of the call.
            let Patience { idle, most } = call.patience;
            let before = began.elapsed().saturating_sub(asked);
            let left = most.saturating_sub(before);
            let timed = Call {
                patience: Patience { idle, most: left },
                ..call.clone()
            };
            let asked_before = connection.session().asked.time();
            match connection.call(&timed).await {
                Ok(result) => return Ok(result),
                Err(Failure::Timeout(limit)) if limit == left => {
                    let failure = Failure::Timeout(most);
                    let said = connection.describe(&failure);
                    return Err((failure, said));
                }
                Err(Failure::Lost(error))
                    if error.kind == LinkErrorKind::Closed && !error.sent && tried.is_none() =>
                {
                    // That connection takes no more calls now. It is not held: its process is to end
                    // before there is another.
                    tried = Some(connection.session().is_left());
                    // Somebody at a page for it took time of their own.
                    let time = connection.session().asked.time();
                    let time = time.saturating_sub(asked_before);
                    asked += time;
                    deadline += time;
                }
                Err(mut failure) => {
                    if let Failure::Changed { spent, .. } = &mut failure {
                        *spent = spent.saturating_add(before);
                    }
                    let mut said = connection.describe(&failure);
                    if matches!(failure, Failure::Lost(_)) && self.is_disabled() {
                        said = format!("{DISABLED} during the call");
                    }
                    return Err((failure, said));
                }
            }
        }
    }

    /// What a call of a tool with this definition was decided on.
    pub(crate) fn decided(&self, definition: DefinitionHash) -> Decided {
        Decided {
            definition,
            listed: Arc::clone(&self.shared.listed),
        }
    }

    /// Has a server in use connected to, unless it is, and waits for that.
    ///
    /// # Errors
    ///
    /// Why it is not, without secrets.
    pub(crate) async fn connect(&self) -> Result<(), String> {
        let _used = self.shared.usage.begin();
        // A start that takes too long says so itself.
        let deadline = self.shared.spec.start_timeout.saturating_add(SAYING_SO);
        self.connection(soon(deadline)).await.map(drop)
    }

    /// Takes a server into use, and connects to it at once, unless it is
    /// connected to; waits for that.
    ///
    /// # Errors
    ///
    /// Why it does not start, without secrets. It is tried again.
    pub(crate) async fn enable(&self) -> Result<(), String> {
        let _used = self.shared.usage.begin();
        let mut standing = self.shared.stand.watch();
        if self.shared.stand.turn_on() {
            self.shared.changed();
        }
        // Its start has a time limit of its own.
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

    /// Takes a server out of use: ends its connection and its process.
    pub(crate) async fn disable(&self) {
        self.shared.ends.end(|| self.shared.stand.turn_off());
        self.shared.changed();
        self.shared.ends.over().await;
    }

    /// Whether its list of tools is the newest that is known of.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared.is_settled()
    }

    /// Whether its list was asked for with the login that requests go with now, if there is one.
    /// A new connection lists its tools with that.
    pub(crate) fn is_listed_by_login(&self) -> bool {
        let connection = self.shared.stand.connection();
        let login = connection.and_then(|connection| connection.session().login());
        login.is_none_or(|login| self.shared.listed.is_of(Some(&login)))
    }

    /// Since when its list has been waited for; `None` where it need not be.
    pub(crate) fn awaited_since(&self) -> Option<Instant> {
        // Without one, its tools are what they were.
        let connection = self.shared.stand.connection()?;
        let reasons = self.shared.reasons(&connection);
        self.shared.listed.awaited_since(reasons)
    }

    /// Asks for its list anew, unless it is being asked for.
    pub(crate) fn refresh(&self) {
        if self.shared.is_settled() {
            self.shared.wishes.send_modify(|wishes| *wishes += 1);
        }
    }

    /// Asks for its list anew if that is out of date by the server's own word; a
    /// server that is idle is connected to for that.
    pub(crate) fn refresh_if_stale(&self) {
        let Some(ready) = self.shared.listed.ready() else {
            return;
        };
        let age = self.shared.listed.freshness().age;
        let over = |limit: Duration| age.is_none_or(|age| age >= limit);
        if self.is_idle() {
            if over(self.shared.spec.lists_hold(&ready)) {
                self.shared.usage.send_for();
            }
        } else if ready.fresh_for.is_some_and(over) && self.shared.stand.connection().is_some() {
            self.refresh();
        }
    }

    /// Ends the connection and the process.
    pub(crate) async fn shut_down(&self) {
        self.stop.cancel();
        self.shared.ends.end(|| self.shared.stand.close());
        self.shared.ends.over().await;
    }

    /// Whether it is connected to for calls alone.
    fn is_for_calls(&self) -> bool {
        self.shared.spec.connect != Connect::Always
    }

    fn is_idle(&self) -> bool {
        matches!(self.shared.stand.now().state, State::Idle)
    }

    fn is_disabled(&self) -> bool {
        matches!(self.shared.stand.now().state, State::Disabled)
    }

    /// A connection that is up and takes calls, or why there is none. Only to be called
    /// while the server is in use.
    async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, String> {
        let mut standing = self.shared.stand.watch();
        // When it was to be tried again if it was down before: after another failure it is another
        // time.
        let before = match &standing.borrow().state {
            State::Down(down) => Some(down.retry_at),
            _ => None,
        };
        loop {
            let (reason, wants) = {
                let standing = standing.borrow_and_update();
                match &standing.state {
                    State::Up(connection) => {
                        if connection.takes_calls() {
                            return Ok(Arc::clone(connection));
                        }
                        // Whoever keeps it up hears of it when what it works on has ended.
                        let reason = "the server takes no more calls on its connection, and there is \
                            another when those that it has are over";
                        (reason.to_owned(), false)
                    }
                    State::Idle | State::Starting => {
                        ("the server is being started".to_owned(), true)
                    }
                    // What is started for a call, and does not start, is not tried for its whole
                    // time.
                    State::Down(down)
                        if self.is_for_calls()
                            && down.is_of_starts()
                            && before != Some(down.retry_at) =>
                    {
                        return Err(down.reason.clone());
                    }
                    State::Down(down) if down.retry_at > deadline => return Err(down.to_string()),
                    State::Down(down) => (down.to_string(), true),
                    State::Disabled => return Err(format!("{DISABLED}; enable it to call it")),
                    State::Closed => {
                        return Err(match self.shared.listed.failed() {
                            Some(error) => error.to_string(),
                            None => "the connection was closed before the call".to_owned(),
                        });
                    }
                }
            };
            if wants {
                self.shared.usage.want();
            }
            match timeout_at(deadline, standing.changed()).await {
                Ok(Ok(())) => {}
                _ => {
                    let held_up = wants.then(|| self.shared.admission.held_up()).flatten();
                    return Err(held_up.map_or(reason, |error| error.to_string()));
                }
            }
        }
    }
}

const DISABLED: &str = "the server is disabled";

/// What a start may take beyond its time, to say that it has.
const SAYING_SO: Duration = Duration::from_secs(1);

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        self.shared.ends.at_once();
        drop(self.shared.stand.close());
    }
}
