//! Starts one server: its process or endpoint, the protocol revision, the first tool list.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use callgate_auth::{AuthError, Authorize, NoAuthorization, Redact};
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientConfig, ErrorCode, ErrorData, Implementation, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, serve_client_with_lifecycle_and_ct};
use rmcp::transport::IntoTransport;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::call::{Call, Round};
use crate::child::Child;
use crate::failure::{CallFailure, Lost, LostKind, Reader, Reason, StartError};
use crate::http::Http;
use crate::list::{Listing, USUALLY_FRESH, list_failure};
use crate::questions::{Handler, Questions};
use crate::request::{Agreed, Asking, Clock, Session, capabilities, later};
use crate::server_log;
use crate::spec::{self, EraSetting, ServerSpec, Transport};
use crate::stdio::Stdio;
use crate::tap::{Opening, Tap, supported};
use crate::tool_list::{ServerInfo, ToolList};
use crate::watch::Notifications;

/// The time after which a server that ignores `server/discover` is greeted with `initialize`.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(2);
/// The wait for the exit of a process that closed its output, for the message.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The wait for the end of rmcp's service; it ends HTTP sessions in that time.
const CLOSE_PATIENCE: Duration = Duration::from_secs(4);
const LIST: &str = "tools/list";
const CLOSED_OUTPUT: &str = "it closed its standard output; an MCP server speaks there";
/// The newest revision's key for the server's program.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A connected server. Dropping it ends the connection and the process.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) session: Arc<Session>,
    questions: Arc<Questions>,
    pub(crate) notifications: Arc<Notifications>,
    child: Option<Child>,
    stop: CancellationToken,
    /// Whether rmcp's service has ended.
    stopped: watch::Receiver<bool>,
}

/// The knowledge about a server that outlives its connections.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    authorize: Mutex<Option<Weak<dyn Authorize>>>,
    /// True if the last HTTP session was refused, and no call has gone through since.
    is_renewed: Arc<AtomicBool>,
    /// Counts the reasons for a new tool list: changes that the server told of, other logins, wishes
    /// of the host.
    pub(crate) reasons: Arc<watch::Sender<u64>>,
    /// The clocks of the server's requests.
    pub(crate) asking: Asking,
}

impl Memory {
    /// The login that a start waits for, if it does.
    pub(crate) fn held_up(&self) -> Option<AuthError> {
        let authorize = self.authorize.lock().as_ref().and_then(Weak::upgrade)?;
        authorize.pending()
    }
}

/// Starts a server within its time limit.
pub(crate) async fn start(
    spec: &ServerSpec,
    memory: &Memory,
) -> Result<(Connection, ToolList), StartError> {
    let mut attempt = Attempt {
        spec,
        memory,
        name: spec.name.as_str().into(),
        redact: spec.transport.redact(),
        deadline: later(Instant::now(), spec.start_timeout),
        stderr: String::new(),
    };
    let started = match attempt.connect().await {
        Ok(connection) => match attempt.list(&connection).await {
            Ok(list) => return Ok((connection, list)),
            Err(mut reason) => {
                attempt.stderr = connection.stderr();
                connection.shut_down().await;
                reason.push_str(&connection.session.tap.unused());
                reason
            }
        },
        Err(reason) => reason,
    };
    Err(StartError {
        server: spec.name.clone(),
        reason: started,
        stderr: attempt.redact.redact(&attempt.stderr),
    })
}

/// One attempt to start a server.
struct Attempt<'a> {
    spec: &'a ServerSpec,
    memory: &'a Memory,
    name: Arc<str>,
    redact: Redact,
    deadline: Instant,
    /// The end of the last process's stderr.
    stderr: String,
}

/// A greeting.
#[derive(Debug, Clone, PartialEq)]
enum Greeting {
    /// `server/discover`, then `initialize`.
    Auto,
    /// `server/discover` only.
    Discover,
    /// `initialize` with this revision.
    Initialize(ProtocolVersion),
}

impl Greeting {
    const OLDER: Self = Self::Initialize(ProtocolVersion::LATEST_WITH_INITIALIZE);

    fn mode(&self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        match self {
            Self::Auto => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Self::Discover => ClientLifecycleMode::Discover { preferred_versions },
            Self::Initialize(_) => ClientLifecycleMode::Initialize,
        }
    }

    /// The revision that is asked for first.
    fn wanted(&self) -> ProtocolVersion {
        match self {
            Self::Initialize(version) => version.clone(),
            _ => ProtocolVersion::LATEST,
        }
    }
}

/// The parts of a connection that is being made.
struct Parts {
    tap: Arc<Tap>,
    questions: Arc<Questions>,
    notifications: Arc<Notifications>,
}

/// A greeting that failed.
struct Failed {
    reason: Reason,
    /// Another greeting that may succeed, on another connection.
    next: Option<Greeting>,
}

impl From<Reason> for Failed {
    fn from(reason: Reason) -> Self {
        Self { reason, next: None }
    }
}

impl Attempt<'_> {
    async fn connect(&mut self) -> Result<Connection, Reason> {
        let transport = self.spec.transport.resolve(&self.redact);
        let transport = timeout_at(self.deadline, transport).await;
        let transport = transport.map_err(|_| self.timed_out("looking up its secrets"))??;
        let greeting = match &self.spec.era {
            EraSetting::Fixed(revision) if revision.0.has_initialize() => {
                Greeting::Initialize(revision.0.clone())
            }
            EraSetting::Fixed(_) => Greeting::Discover,
            EraSetting::Auto => Greeting::Auto,
        };
        let stdio = match &transport {
            Transport::Http(http) => return self.connect_http(http, &greeting).await,
            Transport::Stdio(stdio) => stdio,
        };
        let connection = match self.connect_stdio(stdio, &greeting).await {
            Err(Failed {
                next: Some(next), ..
            }) if Instant::now() < self.deadline => self.connect_stdio(stdio, &next).await,
            connected => connected,
        };
        connection.map_err(|failed| failed.reason)
    }

    async fn connect_stdio(
        &mut self,
        stdio: &spec::Stdio,
        greeting: &Greeting,
    ) -> Result<Connection, Failed> {
        let started = Child::start(stdio, &self.name, &self.redact).await;
        let (child, stdin, stdout) = started?;
        let parts = self.parts(greeting);
        let limit = self.spec.max_message_bytes;
        let discover = (*greeting == Greeting::Auto).then_some(DISCOVER_PATIENCE);
        let tap = Arc::clone(&parts.tap);
        let transport = Stdio::new(
            stdout,
            stdin,
            child.exited(),
            Arc::clone(&tap),
            limit,
            discover,
        );
        let input = transport.input();
        let greeted = self.greet(transport, parts, greeting, None).await;
        let reason = match greeted {
            Ok(mut connection) => {
                connection.child = Some(child);
                return Ok(connection);
            }
            Err(reason) => reason,
        };
        let opening = tap.opening();
        let next = match opening.failures.last() {
            Some((_, CallFailure::Refused(error)))
                if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
                    && supported(error).contains(&ProtocolVersion::LATEST) =>
            {
                // Its answer to `server/discover` came too late.
                Some(Greeting::Discover)
            }
            Some((_, CallFailure::Lost(_))) | None => Some(Greeting::OLDER),
            _ => None,
        };
        let next = next.filter(|_| *greeting == Greeting::Auto);
        let mut reason = match reason {
            Some(reason) => reason,
            None => end_of(&child).await,
        };
        reason.push_str(&tap.unused());
        // A server that is still running has closed its output by its own will.
        drop(input);
        self.stderr = child.stderr_tail();
        child.shut_down().await;
        Err(Failed { reason, next })
    }

    async fn connect_http(
        &mut self,
        http: &spec::Http,
        greeting: &Greeting,
    ) -> Result<Connection, Reason> {
        let parts = self.parts(greeting);
        let tap = Arc::clone(&parts.tap);
        // Without an endpoint nothing is authorized: a header is configured, or no login.
        let authorize: Arc<dyn Authorize> = match self.spec.endpoint() {
            Ok(endpoint) => callgate_auth::authorize(&endpoint, &self.redact),
            Err(_) => Arc::new(NoAuthorization),
        };
        *self.memory.authorize.lock() = Some(Arc::downgrade(&authorize));
        let endpoint = Http::new(
            http,
            authorize,
            self.redact.clone(),
            Arc::clone(&parts.tap),
            self.spec.max_message_bytes,
            Arc::clone(&self.memory.is_renewed),
        );
        let endpoint = endpoint?;
        let transport = endpoint.transport();
        let greeted = self.greet(transport, parts, greeting, Some(endpoint.clone()));
        greeted.await.map_err(|reason| {
            endpoint.end();
            let ended = || self.no_endpoint(http, "it ended the connection").into();
            let mut reason = reason.unwrap_or_else(ended);
            reason.push_str(&tap.unused());
            reason
        })
    }

    fn parts(&self, greeting: &Greeting) -> Parts {
        let asking = self.memory.asking.clone();
        let caller = Arc::clone(&self.spec.caller);
        let questions = Questions::new(Arc::clone(&self.name), caller, asking);
        let notifications = Arc::new(Notifications::new(
            Arc::clone(&self.name),
            self.redact.clone(),
            Arc::clone(&questions.pages),
            Arc::clone(&self.memory.reasons),
            questions.ended(),
        ));
        Parts {
            tap: Tap::new(
                Arc::clone(&notifications) as _,
                self.redact.clone(),
                *greeting == Greeting::Auto,
            ),
            questions: Arc::new(questions),
            notifications,
        }
    }

    /// Runs rmcp's handshake and service.
    async fn greet<T, E, A>(
        &self,
        transport: T,
        parts: Parts,
        greeting: &Greeting,
        http: Option<Http>,
    ) -> Result<Connection, Option<Reason>>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let offers = self.spec.caller.offers();
        let program = Implementation::new("callgate", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(capabilities(offers), program);
        config.protocol_version = match greeting {
            Greeting::Initialize(version) => version.clone(),
            _ => ProtocolVersion::LATEST_WITH_INITIALIZE,
        };
        let handler = Handler {
            questions: Arc::clone(&parts.questions),
            tap: Arc::clone(&parts.tap),
            config,
        };
        let stop = CancellationToken::new();
        let serving =
            serve_client_with_lifecycle_and_ct(handler, transport, greeting.mode(), stop.clone());
        let served = timeout_at(self.deadline, serving).await;
        let opening = parts.tap.opening();
        let running = match served {
            Ok(Ok(running)) => running,
            Ok(Err(error)) => {
                tracing::debug!(server = %self.name, ?error, "a handshake failed");
                return Err(self.problem(&opening, greeting));
            }
            Err(_) => {
                return Err(Some(match self.memory.held_up() {
                    Some(error) => Reason::from(&error),
                    None => self.timed_out("waiting for its handshake"),
                }));
            }
        };
        let peer = running.peer().clone();
        let agreed = self.agree(&opening, greeting).map_err(Reason::from)?;
        if !agreed.version.has_initialize() {
            parts.tap.set_stateless();
        }
        let (tell, stopped) = watch::channel(false);
        let tap = Arc::clone(&parts.tap);
        tokio::spawn(async move {
            let _ = running.waiting().await;
            tap.end("the connection was closed");
            tell.send_replace(true);
        });
        let session = Arc::new(Session {
            server: Arc::clone(&self.name),
            redact: self.redact.clone(),
            peer,
            tap: parts.tap,
            agreed,
            offers,
            asking: self.memory.asking.clone(),
            http,
            logs: AtomicU8::new(u8::MAX),
        });
        let is_older = session.agreed.logging && !session.is_stateless();
        if let Some(level) = server_log::level().filter(|_| is_older) {
            let request = Session::log_request(level);
            session.logs.store(level as u8, Ordering::Relaxed);
            session.send_off("logging/setLevel", request.params);
        }
        Ok(Connection {
            session,
            questions: parts.questions,
            notifications: parts.notifications,
            child: None,
            stop,
            stopped,
        })
    }

    /// The problem of a handshake; `None` if the connection ended.
    fn problem(&self, opening: &Opening, greeting: &Greeting) -> Option<Reason> {
        let is_unsupported =
            |error: &ErrorData| error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
        // A server that speaks only other revisions says best what is wrong; otherwise the last
        // greeting is the one that it knows.
        let (method, failure) = match opening.failures.first()? {
            first @ (_, CallFailure::Refused(error)) if is_unsupported(error) => first,
            _ => opening.failures.last()?,
        };
        match failure {
            CallFailure::Refused(error) if is_unsupported(error) => {
                Some(self.no_common(greeting, &supported(error)).into())
            }
            CallFailure::Lost(lost) => match &self.spec.transport {
                Transport::Http(http) => Some(self.out_of_reach(http, lost)),
                Transport::Stdio(_) => None,
            },
            failure => Some(self.unfit(method, failure).into()),
        }
    }

    /// The problem of an answer that is no success.
    fn unfit(&self, method: &str, failure: &CallFailure) -> String {
        let reason = match failure {
            CallFailure::Refused(error) => {
                let message = self.redact.message(&error.message);
                return format!("it refused {method}: {message} (code {})", error.code.0);
            }
            CallFailure::Malformed(reason) if method != LIST => reason.clone(),
            failure if method == LIST => list_failure(failure),
            CallFailure::TooLarge(limit) => format!("it is over the limit of {limit} bytes"),
            other => other.to_string(),
        };
        let reason = self.redact.message(&reason);
        format!("its answer to {method} is malformed: {reason}")
    }

    async fn list(&self, connection: &Connection) -> Result<ToolList, Reason> {
        let listed = connection.session.list_tools(self.spec.start_timeout);
        let listing = match timeout_at(self.deadline, listed).await {
            Ok(Ok(listing)) => listing,
            Err(_) | Ok(Err(CallFailure::Timeout { .. })) => {
                return Err(self.timed_out("waiting for its list of tools"));
            }
            // It was asked all the same: some have tools and do not say so.
            Ok(Err(CallFailure::Refused(_))) if !connection.session.agreed.tools => {
                let mut none = Listing::default();
                let reason = "it has no tools: it announces none, and refuses tools/list";
                none.gaps.push(reason.to_owned());
                none
            }
            Ok(Err(CallFailure::Lost(lost))) => {
                return Err(match (&self.spec.transport, &connection.child) {
                    (Transport::Http(http), _) => self.out_of_reach(http, &lost),
                    (_, Some(child)) => end_of(child).await,
                    (_, None) => CLOSED_OUTPUT.into(),
                });
            }
            Ok(Err(failure)) => return Err(self.unfit(LIST, &failure).into()),
        };
        let agreed = &connection.session.agreed;
        let before = ToolList {
            protocol_version: agreed.version.to_string(),
            server_info: agreed.server_info.clone(),
            instructions: agreed.instructions.clone(),
            ..ToolList::default()
        };
        let mut list = connection.tool_list(listing, &before);
        let unused = connection.session.tap.unused();
        if !unused.is_empty() && connection.child.is_some() {
            let unused = unused.trim_start_matches("; ");
            list.warnings
                .push(format!("{unused}; it should log to stderr"));
        }
        Ok(list)
    }

    fn timed_out(&self, stage: &str) -> Reason {
        let limit = self.spec.start_timeout.as_millis();
        Reason::advise(
            &format!("it was not ready within {limit} ms ({stage})"),
            "raise its `startTimeout` if it is slow to start",
        )
    }

    fn no_endpoint(&self, http: &spec::Http, reason: &str) -> String {
        let url = self.redact.redact(&http.shown_url());
        format!("{url} did not answer as an MCP endpoint: {reason}")
    }

    /// The problem of an endpoint that is being connected to.
    fn out_of_reach(&self, http: &spec::Http, lost: &Lost) -> Reason {
        match &lost.kind {
            LostKind::Unauthorized => {
                let url = self.redact.redact(&http.shown_url());
                Reason::advise(
                    &format!("{url} asks for authorization"),
                    "set an `Authorization` header for it",
                )
            }
            LostKind::Authorization(error) => Reason::from(error),
            _ => {
                let reason = Reason::clone(&lost.reason);
                reason.map(|it| self.no_endpoint(http, it))
            }
        }
    }

    fn no_common(&self, greeting: &Greeting, offered: &[ProtocolVersion]) -> String {
        let offered: Vec<_> = offered.iter().map(ProtocolVersion::as_str).collect();
        let offered = match offered.join(", ") {
            none if none.is_empty() => "none".to_owned(),
            offered => self.redact.message(&offered),
        };
        format!(
            "it does not speak protocol {}; it offers {offered}",
            greeting.wanted()
        )
    }

    /// The agreement in an accepted greeting, read leniently.
    fn agree(&self, opening: &Opening, greeting: &Greeting) -> Result<Agreed, String> {
        let said = opening.greeting.clone().unwrap_or_default();
        let is_newest = said.get("supportedVersions").is_some();
        let version = if is_newest {
            ProtocolVersion::LATEST
        } else {
            let version = said.get("protocolVersion").cloned().unwrap_or_default();
            let unknown = |_| self.no_common(greeting, &[]);
            let version: ProtocolVersion = serde_json::from_value(version).map_err(unknown)?;
            let is_known =
                version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            let is_exact = self.spec.era != EraSetting::Auto;
            if !is_known || is_exact && version != greeting.wanted() {
                return Err(self.no_common(greeting, &[version]));
            }
            version
        };
        let info = if is_newest {
            &said["_meta"][SERVER_INFO]
        } else {
            &said["serverInfo"]
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let server_info = text(&info["name"]).map(|name| ServerInfo {
            name,
            title: text(&info["title"]),
            version: text(&info["version"]).unwrap_or_default(),
        });
        let has = |pointer: &str| {
            let found = said["capabilities"].pointer(pointer);
            found.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
        };
        Ok(Agreed {
            version,
            server_info,
            instructions: text(&said["instructions"]),
            tools: has("/tools"),
            tools_changes: has("/tools/listChanged"),
            logging: has("/logging"),
        })
    }
}

/// The end of a process that was expected to go on.
async fn end_of(child: &Child) -> Reason {
    match child.ended(LAST_WORDS).await {
        Some(status) => Reason::advise(
            &format!("it ended with {status}"),
            "run its command by hand to see why",
        ),
        None => CLOSED_OUTPUT.into(),
    }
}

impl Connection {
    /// Makes a call and returns the `result` of its last answer.
    pub(crate) async fn call(
        &self,
        call: &Call<'_>,
        clock: &mut Clock,
    ) -> Result<Box<RawValue>, CallFailure> {
        let mut round = Round {
            session: &self.session,
            questions: &self.questions,
            call,
            taken: false,
        };
        let result = round.run(clock).await;
        match result {
            Err(CallFailure::Lost(mut lost)) => {
                // The call reached the server, whichever request of it did not.
                lost.sent |= round.taken;
                if lost.kind == LostKind::Closed {
                    let when = if lost.sent { "during" } else { "before" };
                    let when = format!(" {when} the call");
                    let reason = lost.reason.to(Reader::Operator);
                    lost.reason = Box::new(self.last_words(reason, &when).await.into());
                }
                Err(CallFailure::Lost(lost))
            }
            // Made once more, a call of several rounds would ask the person again.
            Err(CallFailure::Refused(error)) if round.taken => Err(match error.code {
                ErrorCode::HEADER_MISMATCH => CallFailure::Input(error.message.into_owned()),
                _ => CallFailure::Refused(error),
            }),
            result => result,
        }
    }

    /// The tool list of a listing; what the server said of itself is as `before`.
    pub(crate) fn tool_list(&self, listing: Listing, before: &ToolList) -> ToolList {
        ToolList {
            ttl: listing.ttl(),
            login: listing.login,
            tools: listing.tools,
            gaps: listing.gaps,
            ..before.clone()
        }
    }

    /// The time after which the list is asked for again although the server says nothing. Before
    /// 2026-07-28 servers tell of changes.
    pub(crate) fn list_holds(&self, list: &ToolList) -> Option<Duration> {
        let acknowledged = self.notifications.acknowledged();
        let is_told = acknowledged.is_some_and(|id| self.session.tap.is_listening(&id));
        let unsaid = || (!is_told).then_some(USUALLY_FRESH);
        let says = self.session.is_stateless();
        says.then(|| list.ttl.or_else(unsaid)).flatten()
    }

    /// Tells the server that the folders are others now, if it was offered folders.
    pub(crate) fn roots_changed(&self) {
        if !self.session.is_stateless() && self.session.offers.roots {
            self.session.notify("notifications/roots/list_changed");
        }
    }

    /// Whether it can take calls.
    pub(crate) fn is_open(&self) -> bool {
        self.session.tap.closed().is_none()
    }

    /// The end of its stderr, without secrets.
    pub(crate) fn stderr(&self) -> String {
        let tail = self.child.as_ref().map(Child::stderr_tail);
        self.session.redact.redact(&tail.unwrap_or_default())
    }

    /// Waits for the end of the connection or the process.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut lost = self.session.tap.lost();
        let exited = self.child.as_ref().map(Child::exited);
        async move {
            let exited = async {
                match exited {
                    Some(exited) => exited.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = lost.wait_for(Option::is_some) => {}
                () = exited => {}
            }
        }
    }

    /// The way it ended, without secrets.
    pub(crate) async fn epitaph(&self) -> String {
        let lost = self.session.tap.lost().borrow().clone();
        let lost = lost.unwrap_or_else(|| "the server closed the connection".to_owned());
        self.last_words(&lost, "").await
    }

    async fn last_words(&self, reason: &str, when: &str) -> String {
        let Some(child) = &self.child else {
            return format!("{}{when}", self.session.redact.redact(reason));
        };
        let mut words = match child.ended(LAST_WORDS).await {
            Some(status) => format!("the server ended with {status}{when}"),
            None => format!("{reason}{when}"),
        };
        let stderr = self.stderr();
        if !stderr.is_empty() {
            words.push_str("; its last words on stderr: ");
            words.push_str(&stderr);
        }
        words
    }

    /// Ends the connection and the process.
    pub(crate) async fn shut_down(&self) {
        self.session.tap.end("the connection was closed");
        self.stop.cancel();
        let mut stopped = self.stopped.clone();
        let stopped = timeout(CLOSE_PATIENCE, stopped.wait_for(|stopped| *stopped));
        if stopped.await.is_err() {
            tracing::debug!(server = %self.session.server, "the connection did not close in time");
        }
        if let Some(http) = &self.session.http {
            http.end();
        }
        if let Some(child) = &self.child {
            child.shut_down().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
