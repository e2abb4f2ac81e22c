//! One connection to a server, whatever carries it: requests, answers, and what
//! the server says of its own accord.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::asked::Asked;
use crate::broker::ServerInfo;
use crate::caller::{Caller, LogLevel, Offers};
use crate::envelope::{self, Meta};
use crate::failure::Failure;
use crate::flight::Flight;
use crate::flood::FloodGate;
use crate::inbox::{Answer, Inbox, Who};
use crate::incoming::Incoming;
use crate::link::{Link, LinkError, Outgoing};
use crate::listed::Decided;
use crate::logging;
use crate::pages::Pages;
use crate::patience::{Clock, Patience};
use crate::refusal::fit;
use crate::tasks::GivenUp;
use crate::tools::Tools;
use callgate_auth::Redact;

/// How long a server has to take the level of its log messages before the call whose
/// caller hears them is sent all the same.
const LOGS_PATIENCE: Duration = Duration::from_secs(1);

/// For how long a server is not taken to have gone over to another revision after what it had
/// refused for its revision was asked for again.
const AGREED_FOR: Duration = Duration::from_secs(60);

/// A connection. It ends with [`Session::close`], or with the link.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) server: Arc<str>,
    pub(crate) secrets: Redact,
    pub(crate) link: Arc<dyn Link>,
    pub(crate) inbox: Arc<Inbox>,
    /// The server's own requests.
    pub(crate) asked: Asked,
    /// What it has somebody open.
    pub(crate) pages: Arc<Pages>,
    /// What its list says of how tools are called.
    pub(crate) tools: Tools,
    /// Calls that asked for a task and were given up.
    pub(crate) given_up: GivenUp,
    /// What the caller offered when the connection was made.
    offers: Offers,
    agreed: OnceLock<Agreed>,
    /// Since when it is asked for what was refused on an earlier connection, if it is.
    again: OnceLock<Instant>,
    /// Whether it takes no more requests because the server has gone over to another revision.
    left: AtomicBool,
    /// What each request says of the client in the newest revision, for
    /// `offers`.
    client: OnceLock<String>,
    /// The least important log messages that a server of an older revision was
    /// asked for.
    logs: AtomicU8,
    /// Bounds its log messages, in the host's log and to callers.
    pub(crate) flood: FloodGate,
    pub(crate) changes: watch::Sender<Changes>,
}

/// What client and server agreed on, and what the server said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) version: ProtocolVersion,
    pub(crate) server_info: Option<ServerInfo>,
    pub(crate) instructions: Option<String>,
    pub(crate) abilities: Abilities,
}

/// What a server announced that the client makes use of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Abilities {
    /// It has tools.
    pub(crate) tools: bool,
    /// It tells when its list of tools has changed.
    pub(crate) tools_changes: bool,
    /// It sends log messages.
    pub(crate) logging: bool,
    /// It takes a call as a task (2025-11-25; later ones do so unasked).
    pub(crate) tasks: bool,
    /// It cancels tasks (2025-11-25; later ones always do).
    pub(crate) cancels_tasks: bool,
}

/// What a server has told without being asked, counted, so that nothing is lost
/// and nothing piles up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Changes {
    /// How often the list of tools changed, or may have.
    pub(crate) tools: u64,
    /// The id of the last `subscriptions/listen` that was acknowledged with
    /// `toolsListChanged`.
    pub(crate) acknowledged: Option<u64>,
    /// How often requests have come to go with another login.
    pub(crate) logins: u64,
}

/// A request to send.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// The members of `params` as JSON, without braces and without `_meta`.
    pub(crate) members: &'a str,
    /// The tool's name or the task's id, for HTTP.
    pub(crate) name: Option<&'a str>,
    /// Arguments that are headers too, for HTTP.
    pub(crate) parameters: &'a [(String, String)],
    /// What the tool was decided about as, where it was.
    pub(crate) decided: Option<&'a Decided>,
    /// On whose behalf, if somebody's: what comes with it is for them.
    pub(crate) who: Option<Who>,
    /// Whether progress is asked for, to be told to them.
    pub(crate) progress: bool,
    /// The token of the progress, if it is not the request's id: that of a request
    /// that asks for a task. It is not cancelled; what is cancelled is the task.
    pub(crate) token: Option<u64>,
    /// The revision it is written in, if not the one agreed on.
    pub(crate) version: Option<&'a ProtocolVersion>,
}

impl<'a> Request<'a> {
    /// On nobody's behalf.
    pub(crate) fn new(method: &'a str, members: &'a str) -> Self {
        Self {
            method,
            members,
            name: None,
            parameters: &[],
            decided: None,
            who: None,
            progress: false,
            token: None,
            version: None,
        }
    }
}

impl Session {
    /// A connection over which nothing has been said yet. `caller` is whom the
    /// server's requests go to when they belong to no call, and whose offers
    /// are announced where they are announced once.
    pub(crate) fn new(
        server: Arc<str>,
        inbox: Arc<Inbox>,
        link: Arc<dyn Link>,
        caller: Arc<dyn Caller>,
        secrets: Redact,
    ) -> Arc<Self> {
        Arc::new_cyclic(|session: &Weak<Self>| {
            let incoming: Weak<dyn Incoming> = session.clone();
            inbox.attach(incoming);
            Self {
                flood: FloodGate::new(Arc::clone(&server)),
                server,
                secrets,
                link,
                inbox,
                offers: caller.offers(),
                asked: Asked::new(session.clone(), caller),
                agreed: OnceLock::new(),
                again: OnceLock::new(),
                left: AtomicBool::new(false),
                pages: Arc::default(),
                tools: Tools::default(),
                given_up: GivenUp::default(),
                client: OnceLock::new(),
                logs: AtomicU8::new(u8::MAX),
                changes: watch::Sender::default(),
            }
        })
    }

    /// What was agreed on, once it was.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        self.agreed.get()
    }

    /// Sets what was agreed on; what is sent from now on is of that revision.
    pub(crate) fn agree(&self, agreed: Agreed) {
        self.link.agreed(&agreed.version);
        // A second agreement is a mistake of the code; the first stays.
        let _already = self.agreed.set(agreed);
    }

    /// Whether every request speaks for itself (2026-07-28).
    pub(crate) fn is_stateless(&self) -> bool {
        self.agreed()
            .is_some_and(|agreed| !agreed.version.has_initialize())
    }

    /// What the caller offered when the connection was made.
    pub(crate) fn offers(&self) -> Offers {
        self.offers
    }

    /// What the server tells without being asked.
    pub(crate) fn watch_changes(&self) -> watch::Receiver<Changes> {
        self.changes.subscribe()
    }

    /// The name of the login that requests go with now, where there is one.
    pub(crate) fn login(&self) -> Option<Arc<str>> {
        self.link.login()
    }

    /// Whether, and why, the connection is gone.
    pub(crate) fn watch_lost(&self) -> watch::Receiver<Option<LinkError>> {
        self.inbox.watch_lost()
    }

    /// Sends a request and waits for its answer. Dropping the future, or
    /// running out of patience, cancels the request.
    pub(crate) async fn request(
        &self,
        request: Request<'_>,
        patience: Patience,
    ) -> Result<Box<RawValue>, Failure> {
        let mut flight = self.open(&request)?;
        let token = request.token.unwrap_or(flight.id());
        let last_sign = || self.inbox.progressed_at(token);
        self.fly(&mut flight, &request, patience, last_sign).await
    }

    /// [`Session::request`] of which a flight has been opened. `last_sign` says when
    /// the server last showed that it works on it.
    pub(crate) async fn fly(
        &self,
        flight: &mut Flight,
        request: &Request<'_>,
        patience: Patience,
        last_sign: impl Fn() -> Option<Instant>,
    ) -> Result<Box<RawValue>, Failure> {
        let clock = Clock::start(patience, &self.asked);
        let id = flight.id();
        let answered = pin!(async {
            self.send(flight, request).await?;
            flight.answer().await
        });
        clock
            .limit(answered, last_sign, &self.asked)
            .await
            .map_err(|failure| self.failed(self.held_up(id, failure)))
    }

    /// A failure that says what a request has waited for, if its time was over before it
    /// was authorized.
    pub(crate) fn held_up(&self, id: u64, failure: Failure) -> Failure {
        let is_late = matches!(failure, Failure::Timeout(_));
        let held_up = is_late.then(|| self.link.held_up(id)).flatten();
        held_up.map_or(failure, |error| Failure::Lost(error.into()))
    }

    /// Sends a request and waits for its answer as long as it takes.
    pub(crate) async fn request_patiently(&self, request: &Request<'_>) -> Answer {
        let mut flight = self.open(request)?;
        self.send(&mut flight, request).await?;
        flight
            .answer()
            .await
            .map_err(|failure| self.failed(failure))
    }

    /// Sends a request whose answer nobody waits for. May be called from a
    /// `Drop`.
    pub(crate) fn send_off(&self, request: &Request<'_>) {
        if let Ok(id) = self.inbox.open(None, false) {
            self.inbox.forget(id);
            let text = self.text(id, request);
            self.link.post(request.method, request.name, text);
        }
    }

    /// Opens a flight for a request, which [`Session::send`] sends.
    pub(crate) fn open(&self, request: &Request<'_>) -> Result<Flight, Failure> {
        let who = request.who.clone();
        let flight = Flight::open(&self.inbox, &self.link, who, request.method);
        let mut flight = flight.map_err(Failure::Lost)?;
        if request.token.is_some() {
            flight.is_not_cancelled();
        }
        Ok(flight)
    }

    /// Sends the request that a flight was opened for.
    pub(crate) async fn send(
        &self,
        flight: &mut Flight,
        request: &Request<'_>,
    ) -> Result<(), Failure> {
        let text = self.text(flight.id(), request);
        let outgoing = Outgoing {
            text: &text,
            method: request.method,
            id: Some(flight.id()),
            name: request.name,
            parameters: request.parameters,
            decided: request.decided,
        };
        flight.send(outgoing).await
    }

    /// Sends a notification without parameters, before anything that is sent
    /// afterwards.
    pub(crate) async fn tell(&self, method: &str) -> Result<(), LinkError> {
        let text = envelope::notification(method);
        let outgoing = Outgoing {
            text: &text,
            method,
            id: None,
            name: None,
            parameters: &[],
            decided: None,
        };
        self.link.send(outgoing).await
    }

    /// Tells a server of an older revision that the folders it may ask for are others now,
    /// if it was offered any.
    pub(crate) fn roots_changed(&self) {
        let has_session = self.agreed().is_some() && !self.is_stateless();
        if has_session && self.offers.roots {
            self.asked.roots_changed();
            let method = "notifications/roots/list_changed";
            self.link.post(method, None, envelope::notification(method));
        }
    }

    /// Asks a server of an older revision for the log messages that the host's
    /// log takes.
    pub(crate) fn ask_for_logs(&self) {
        let logs = self.agreed().is_some_and(|agreed| agreed.abilities.logging);
        if let Some(level) = logging::level().filter(|_| logs && !self.is_stateless()) {
            self.logs.fetch_min(level as u8, Ordering::Relaxed);
            let members = format!(r#""level":"{}""#, level.as_str());
            self.send_off(&Request::new("logging/setLevel", &members));
        }
    }

    /// Asks a server of an older revision for the log messages that a caller hears, and
    /// waits a little for it to take that, no longer than for `most`. It is never asked for
    /// fewer, since others may hear them.
    pub(crate) async fn want_logs(&self, least: Option<LogLevel>, most: Duration) {
        let logs = self.agreed().is_some_and(|agreed| agreed.abilities.logging);
        let Some(level) = least.filter(|_| logs && !self.is_stateless()) else {
            return;
        };
        if self.logs.fetch_min(level as u8, Ordering::Relaxed) <= level as u8 {
            return;
        }
        let members = format!(r#""level":"{}""#, level.as_str());
        let patience = Patience::exactly(LOGS_PATIENCE.min(most));
        // One that does not do it logs what it did.
        let asked = self.request(Request::new("logging/setLevel", &members), patience);
        let _unheard = asked.await;
    }

    /// Ends the connection.
    pub(crate) async fn close(&self) {
        self.link.close().await;
    }

    fn text(&self, id: u64, request: &Request<'_>) -> String {
        let client = self.client(request);
        let meta = Meta {
            client: &client,
            progress: request.progress.then_some(request.token.unwrap_or(id)),
        };
        envelope::request(id, request.method, request.members, meta)
    }

    /// What a request says of the client.
    fn client(&self, request: &Request<'_>) -> Cow<'_, str> {
        let agreed = self.agreed();
        let version = request.version.or(agreed.map(|agreed| &agreed.version));
        let Some(version) = version.filter(|version| !version.has_initialize()) else {
            return Cow::Borrowed("");
        };
        let logging = agreed.is_some_and(|agreed| agreed.abilities.logging);
        let hosts = logging.then(logging::level).flatten();
        let (offers, callers) = match &request.who {
            Some(who) => (who.caller.offers(), who.caller.logs()),
            None => (self.offers, None),
        };
        let level = match (hosts, callers.filter(|_| logging)) {
            (Some(hosts), Some(callers)) => Some(hosts.min(callers)),
            (hosts, callers) => hosts.or(callers),
        };
        let stateless = || envelope::stateless(version, offers, level);
        if offers != self.offers || level != hosts || request.version.is_some() {
            return Cow::Owned(stateless());
        }
        Cow::Borrowed(self.client.get_or_init(stateless))
    }

    /// Notes that what was refused on an earlier connection is asked for on this one, which was
    /// agreed on since.
    pub(crate) fn asked_again(&self) {
        self.again.get_or_init(Instant::now);
    }

    /// Whether it takes no more requests because the server has gone over to another revision.
    pub(crate) fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Whether the server may have gone over to another revision. One that refuses what it has
    /// just agreed on contradicts itself, and would be connected to anew for ever.
    fn may_be_left(&self) -> bool {
        let again = self.again.get();
        again.is_none_or(|since| since.elapsed() >= AGREED_FOR)
    }

    /// A failure as it is passed on, without secrets and no longer than it should be. A server
    /// that no longer speaks the revision of the connection takes no more requests on it.
    pub(crate) fn failed(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Left(_) if self.may_be_left() => {
                // What it refused so it has not done; what it has taken before it may answer.
                let reason = "the server has gone over to another protocol revision";
                let left = LinkError::closed(reason, false);
                self.left.store(true, Ordering::Relaxed);
                self.inbox.shut(left.clone());
                Failure::Lost(left)
            }
            Failure::Refused(error) | Failure::Left(error) => {
                Failure::Refused(fit(error, &self.secrets))
            }
            Failure::Headers(error, rounds) => Failure::Headers(fit(error, &self.secrets), rounds),
            failure => failure,
        }
    }
}

#[cfg(test)]
mod tests;
