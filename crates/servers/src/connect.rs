//! Starts one server: its process or endpoint, the protocol revision, the first tool list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::time::Duration;

use callgate_auth::{AuthError, Authorization, Redact};
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, CustomNotification, ErrorCode, ErrorData, Extensions,
    InitializeRequest, InitializeRequestParams, InitializedNotification,
    InitializedNotificationMethod, ProtocolVersion,
};
use rmcp::service::serve_directly_with_ct;
use rmcp::transport::IntoTransport;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::call::{Round, ToolCall};
use crate::caller::Caller;
use crate::child::Child;
use crate::clock::{Asking, Clock, later};
use crate::failure::{CallFailure, FailureKind, Lost, Reader, Reason, StartError};
use crate::http::Http;
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::list::{CurrentList, Listing, USUALLY_FRESH};
use crate::questions::{Handler, Questions};
use crate::request::{Agreed, Request, Session, capabilities, program};
use crate::spec::{self, EraSetting, Revision, ServerSpec, Transport};
use crate::stdio::Stdio;
use crate::tap::{DISCOVER, INITIALIZE, Tap};
use crate::tool_list::{ServerInfo, ToolList};
use crate::watch::Notifications;

/// The time after which a server that ignores `server/discover` is greeted with `initialize`.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(2);
const DISCOVER_PATIENCE_HTTP: Duration = Duration::from_secs(5);
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
    pub(crate) notifications: Arc<Notifications>,
    child: Option<Child>,
    stop: CancellationToken,
    /// Cancelled when rmcp's service has ended.
    stopped: CancellationToken,
}

/// The knowledge about a server that outlives its connections.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    authorization: Mutex<Authorization>,
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
        self.authorization.lock().pending()
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
    attempt.connect().await.map_err(|reason| StartError {
        server: spec.name.clone(),
        reason,
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

/// A server that does not start.
struct Failed {
    /// `None` if the connection ended.
    reason: Option<Reason>,
    /// Whether the connection ended at `server/discover`.
    at_discover: bool,
}

impl From<Reason> for Failed {
    fn from(reason: Reason) -> Self {
        Self {
            reason: Some(reason),
            at_discover: false,
        }
    }
}

/// A greeting that failed.
struct FailedGreeting {
    method: &'static str,
    failure: CallFailure,
}

impl Attempt<'_> {
    async fn connect(&mut self) -> Result<(Connection, ToolList), Reason> {
        let spec = self.spec;
        let values = timeout_at(self.deadline, spec.transport.look_up(&self.redact)).await;
        let values = values.map_err(|_| self.timed_out("looking up its secrets"))??;
        let connected = match &spec.transport {
            Transport::Http(http) => self.connect_http(&http.url, &values).await,
            Transport::Stdio(stdio) => match self.connect_stdio(stdio, &values, true).await {
                Err(failed) if failed.at_discover && Instant::now() < self.deadline => {
                    self.connect_stdio(stdio, &values, false).await
                }
                connected => connected,
            },
        };
        connected.map_err(|failed| failed.reason.unwrap_or_else(|| CLOSED_OUTPUT.into()))
    }

    async fn connect_stdio(
        &mut self,
        stdio: &spec::Stdio,
        env: &BTreeMap<String, String>,
        may_discover: bool,
    ) -> Result<(Connection, ToolList), Failed> {
        let started = Child::start(stdio, env, &self.name, &self.redact).await;
        let (child, stdin, stdout) = started?;
        let (exited, limit) = (child.exited(), self.spec.max_message_bytes);
        let transport = |tap| Ok((Stdio::new(stdout, stdin, exited, tap, limit), None));
        self.open(transport, Some(child), may_discover).await
    }

    async fn connect_http(
        &mut self,
        url: &str,
        headers: &BTreeMap<String, String>,
    ) -> Result<(Connection, ToolList), Failed> {
        // Without an endpoint nothing is authorized: a header is configured, or no login.
        let authorization = match self.spec.endpoint() {
            Ok(endpoint) => Authorization::new(&endpoint, &self.redact),
            Err(_) => Authorization::default(),
        };
        *self.memory.authorization.lock() = authorization.clone();
        let is_renewed = Arc::clone(&self.memory.is_renewed);
        let (redact, limit) = (self.redact.clone(), self.spec.max_message_bytes);
        let transport = |tap| {
            let endpoint = Http::new(url, headers, authorization, redact, tap, limit, is_renewed)?;
            Ok((endpoint.transport(), Some(endpoint)))
        };
        self.open(transport, None, true).await
    }

    /// Runs rmcp's service over a transport, greets the server and lists its tools.
    async fn open<T, E, A>(
        &mut self,
        transport: impl FnOnce(Arc<Tap>) -> Result<(T, Option<Http>), String>,
        child: Option<Child>,
        may_discover: bool,
    ) -> Result<(Connection, ToolList), Failed>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let asking = self.memory.asking.clone();
        let caller = Arc::clone(&self.spec.caller);
        let questions = Questions::new(Arc::clone(&self.name), caller, asking);
        let notifications = Arc::new(Notifications::new(
            Arc::clone(&self.name),
            self.redact.clone(),
            questions.pages.clone(),
            Arc::clone(&self.memory.reasons),
        ));
        let questions = Arc::new(questions);
        let tap = Tap::new(Arc::clone(&notifications));
        let (transport, http) = transport(Arc::clone(&tap)).map_err(Reason::from)?;
        let handler = Handler {
            questions: Arc::clone(&questions),
            tap: Arc::clone(&tap),
        };
        let stop = CancellationToken::new();
        // A start that is given up ends the service.
        let stopping = stop.clone().drop_guard();
        let running = serve_directly_with_ct(handler, transport, None, stop.clone());
        let mut session = Session {
            server: Arc::clone(&self.name),
            redact: self.redact.clone(),
            peer: running.peer().clone(),
            tap: Arc::clone(&tap),
            agreed: Agreed::default(),
            questions,
            http,
            logs: AtomicU8::new(u8::MAX),
        };
        let stopped = CancellationToken::new();
        let tell = stopped.clone();
        tokio::spawn(async move {
            let _ = running.waiting().await;
            tap.end("the connection was closed");
            tell.cancel();
        });
        let greeted = self.greet(&mut session, may_discover).await;
        let connection = Connection {
            session: Arc::new(session),
            notifications,
            child,
            stop: stopping.disarm(),
            stopped,
        };
        let failed = match greeted {
            Ok(()) => match self.list(&connection).await {
                Ok(list) => return Ok((connection, list)),
                Err(reason) => reason.into(),
            },
            Err(failed) => failed,
        };
        let mut reason: Reason = match (failed.reason, &self.spec.transport) {
            (Some(reason), _) => reason,
            (None, Transport::Http(http)) => {
                self.no_endpoint(http, "it ended the connection").into()
            }
            (None, Transport::Stdio(_)) => connection.end_of_process().await,
        };
        reason.push_str(&connection.session.tap.unused());
        self.stderr = connection.stderr();
        if let Some(http) = &connection.session.http {
            http.end();
        }
        connection.shut_down().await;
        Err(Failed {
            reason: Some(reason),
            ..failed
        })
    }

    /// Agrees with the server on a revision, in time.
    async fn greet(&self, session: &mut Session, may_discover: bool) -> Result<(), Failed> {
        let agreed = timeout_at(self.deadline, self.agree(session, may_discover)).await;
        session.agreed = match agreed {
            Ok(agreed) => agreed.map_err(|FailedGreeting { method, failure }| {
                let is_auto = self.spec.era == EraSetting::Auto;
                Failed {
                    reason: self.problem(method, &failure),
                    at_discover: method == DISCOVER && is_auto && failure.is_closed(),
                }
            })?,
            Err(_) => {
                let held_up = self.memory.held_up().map(|error| Reason::from(&error));
                let timed_out = || self.timed_out("waiting for its handshake");
                return Err(held_up.unwrap_or_else(timed_out).into());
            }
        };
        if session.is_stateless() {
            session.tap.set_stateless();
        } else {
            let _ = session.peer.send_notification(initialized()).await;
        }
        Ok(())
    }

    /// Asks for the newest revision by `server/discover`, then for the others by `initialize`,
    /// unless one is configured.
    async fn agree(
        &self,
        session: &mut Session,
        may_discover: bool,
    ) -> Result<Agreed, FailedGreeting> {
        let failed = |method, failure| FailedGreeting { method, failure };
        let fixed = self.fixed();
        let mut first = None;
        if may_discover && fixed.is_none_or(|version| !version.has_initialize()) {
            session.agreed.version = ProtocolVersion::LATEST;
            let patience = match &session.http {
                _ if fixed.is_some() => Duration::MAX,
                Some(_) => DISCOVER_PATIENCE_HTTP,
                None => DISCOVER_PATIENCE,
            };
            match timeout(patience, discover(session)).await {
                Ok(Ok(agreed)) => return Ok(agreed),
                Ok(Err(failure)) if speaks_newest(&failure) => {
                    let discovered = discover(session).await;
                    return discovered.map_err(|failure| failed(DISCOVER, failure));
                }
                Ok(Err(failure)) if fixed.is_some() || is_final(&failure) => {
                    return Err(failed(DISCOVER, failure));
                }
                Ok(Err(failure)) => first = Some(failure),
                Err(_) => {}
            }
        }
        let wanted = fixed.unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE);
        session.agreed.version = wanted.clone();
        let failure = match initialize(session, wanted).await {
            Ok(agreed) if is_usable(&agreed.version, fixed) => return Ok(agreed),
            Ok(agreed) => unsupported(&[agreed.version]),
            Err(failure) => failure,
        };
        if fixed.is_none() && speaks_newest(&failure) {
            // Its answer to `server/discover` came too late.
            session.agreed.version = ProtocolVersion::LATEST;
            let discovered = discover(session).await;
            return discovered.map_err(|failure| failed(DISCOVER, failure));
        }
        match first {
            // A server that speaks only other revisions says best what is wrong.
            Some(first) if is_unsupported(&first) => Err(failed(DISCOVER, first)),
            _ => Err(failed(INITIALIZE, failure)),
        }
    }

    /// The revision that is configured.
    fn fixed(&self) -> Option<&ProtocolVersion> {
        match &self.spec.era {
            EraSetting::Fixed(Revision(version)) => Some(version),
            EraSetting::Auto => None,
        }
    }

    /// The problem of a greeting that failed; `None` if the connection ended.
    fn problem(&self, method: &str, failure: &CallFailure) -> Option<Reason> {
        match &failure.kind {
            FailureKind::Refused(error) if is_unsupported(failure) => {
                Some(self.no_common(&supported(error)).into())
            }
            FailureKind::Lost(lost) => match &self.spec.transport {
                Transport::Http(http) => Some(self.out_of_reach(http, *lost, failure)),
                Transport::Stdio(_) => None,
            },
            _ => Some(self.unfit(method, failure)),
        }
    }

    /// The problem of an answer that is no success.
    fn unfit(&self, method: &str, failure: &CallFailure) -> Reason {
        let what = match &failure.kind {
            FailureKind::Refused(_) => format!("it refused {method}"),
            FailureKind::TooLarge(limit) => {
                let problem = format!("its answer to {method} is over the limit of {limit} bytes");
                return Reason::advise(&problem, "raise \"result\" under \"limits\"");
            }
            _ => format!("its answer to {method} is malformed"),
        };
        let reason = Reason::clone(&failure.reason);
        reason.map(|reason| format!("{what}: {}", self.redact.message(reason)))
    }

    async fn list(&self, connection: &Connection) -> Result<ToolList, Reason> {
        let session = &connection.session;
        let listed = session.list_tools(self.spec.start_timeout);
        let late = || self.timed_out("waiting for its list of tools");
        let listed = timeout_at(self.deadline, listed)
            .await
            .map_err(|_| late())?;
        let listing = match listed {
            Ok(listing) => listing,
            Err(failure) => match &failure.kind {
                FailureKind::Timeout(_) => return Err(late()),
                // It was asked all the same: some have tools and do not say so.
                FailureKind::Refused(_) if !session.agreed.tools => {
                    let mut none = Listing::default();
                    let reason = "it has no tools: it announces none, and refuses tools/list";
                    none.gaps.push(reason.to_owned());
                    none
                }
                FailureKind::Lost(lost) => {
                    return Err(match &self.spec.transport {
                        Transport::Http(http) => self.out_of_reach(http, *lost, &failure),
                        Transport::Stdio(_) => connection.end_of_process().await,
                    });
                }
                _ => return Err(self.unfit(LIST, &failure)),
            },
        };
        let agreed = &session.agreed;
        let before = ToolList {
            protocol_version: agreed.version.to_string(),
            server_info: agreed.server_info.clone(),
            instructions: agreed.instructions.clone(),
            ..ToolList::default()
        };
        let mut list = connection.tool_list(listing, &before);
        let unused = session.tap.take_unused();
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
    fn out_of_reach(&self, http: &spec::Http, lost: Lost, failure: &CallFailure) -> Reason {
        let reason = Reason::clone(&failure.reason);
        match lost {
            Lost::Unauthorized => {
                let url = self.redact.redact(&http.shown_url());
                Reason::advise(
                    &format!("{url} asks for authorization"),
                    "set an `Authorization` header for it",
                )
            }
            Lost::Authorization => reason,
            _ => reason.map(|it| self.no_endpoint(http, it)),
        }
    }

    fn no_common(&self, offered: &[ProtocolVersion]) -> String {
        let offered: Vec<_> = offered.iter().map(ProtocolVersion::as_str).collect();
        let offered = match offered.join(", ") {
            none if none.is_empty() => "none".to_owned(),
            offered => self.redact.message(&offered),
        };
        let wanted = self.fixed().unwrap_or(&ProtocolVersion::LATEST);
        format!("it does not speak protocol {wanted}; it offers {offered}")
    }
}

/// Whether an older revision that a server names can be spoken with it.
fn is_usable(version: &ProtocolVersion, fixed: Option<&ProtocolVersion>) -> bool {
    let is_known = version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(version);
    is_known && fixed.is_none_or(|fixed| fixed == version)
}

/// Whether a server that fails so names the newest revision as one that it speaks.
fn speaks_newest(failure: &CallFailure) -> bool {
    matches!(&failure.kind, FailureKind::Refused(error)
        if supported(error).contains(&ProtocolVersion::LATEST))
}

/// Whether a server that fails so would fail at another greeting, too: it is not reached.
fn is_final(failure: &CallFailure) -> bool {
    matches!(&failure.kind, FailureKind::Lost(lost) if !matches!(lost, Lost::Status(_)))
}

/// The failure of a greeting at a server that speaks only these revisions.
fn unsupported(versions: &[ProtocolVersion]) -> CallFailure {
    let data = json!({ "supported": versions });
    let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
    let message = "another protocol revision";
    CallFailure::refused(ErrorData::new(code, message, Some(data)))
}

/// The revisions in the data of an unsupported-version error.
fn supported(error: &ErrorData) -> Vec<ProtocolVersion> {
    let supported = error.data.as_ref().and_then(|data| data.get("supported"));
    let supported = supported.and_then(|supported| serde_json::from_value(supported.clone()).ok());
    supported.unwrap_or_default()
}

fn is_unsupported(failure: &CallFailure) -> bool {
    matches!(&failure.kind, FailureKind::Refused(error)
        if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION)
}

fn initialized() -> ClientNotification {
    ClientNotification::InitializedNotification(InitializedNotification {
        method: InitializedNotificationMethod,
        extensions: Extensions::new(),
    })
}

/// Greets a server of the newest revision.
async fn discover(session: &Session) -> Result<Agreed, CallFailure> {
    let request = Request::new(DISCOVER, json!({}));
    let said = read_greeting(&session.send(request, None).await?.0)?;
    let versions = said["supportedVersions"].clone();
    let versions: Vec<ProtocolVersion> = serde_json::from_value(versions)
        .map_err(|_| CallFailure::malformed("it lists no protocol revisions"))?;
    if !versions.contains(&ProtocolVersion::LATEST) {
        return Err(unsupported(&versions));
    }
    let info = &said["_meta"][SERVER_INFO];
    Ok(agreed(&said, info, ProtocolVersion::LATEST))
}

/// Greets a server of an older revision.
async fn initialize(session: &Session, wanted: &ProtocolVersion) -> Result<Agreed, CallFailure> {
    let params = InitializeRequestParams::new(capabilities(session.questions.offers), program());
    let params = params.with_protocol_version(wanted.clone());
    let request = ClientRequest::InitializeRequest(InitializeRequest::new(params));
    let said = read_greeting(&session.send(Request::of(request), None).await?.0)?;
    let version = serde_json::from_value(said["protocolVersion"].clone());
    let version = version.map_err(|_| CallFailure::malformed("it names no protocol revision"))?;
    Ok(agreed(&said, &said["serverInfo"], version))
}

fn read_greeting(result: &RawValue) -> Result<Value, CallFailure> {
    if result.get().len() > MAX_VALUE_BYTES {
        return Err(CallFailure::malformed("it is too long"));
    }
    let said: Value = serde_json::from_str(result.get()).unwrap_or_default();
    if said.is_object() {
        Ok(said)
    } else {
        Err(CallFailure::malformed("it is not an object"))
    }
}

/// The agreement in a greeting, read leniently.
fn agreed(said: &Value, info: &Value, version: ProtocolVersion) -> Agreed {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let has = |pointer: &str| {
        let found = said["capabilities"].pointer(pointer);
        found.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
    };
    Agreed {
        version,
        server_info: text(&info["name"]).map(|name| ServerInfo {
            name,
            title: text(&info["title"]),
            version: text(&info["version"]).unwrap_or_default(),
        }),
        instructions: text(&said["instructions"]),
        tools: has("/tools"),
        tools_changes: has("/tools/listChanged"),
        logging: has("/logging"),
    }
}

impl Connection {
    /// Makes a call and returns the `result` of its last answer.
    pub(crate) async fn call(
        &self,
        call: &ToolCall<'_>,
        caller: &Arc<dyn Caller>,
        list: &CurrentList,
        clock: &mut Clock,
    ) -> Result<Box<RawValue>, CallFailure> {
        let mut round = Round {
            session: &self.session,
            call,
            caller,
            list,
            taken: false,
        };
        let mut failure = match round.run(clock).await {
            Ok(result) => return Ok(result),
            Err(failure) => failure,
        };
        match &failure.kind {
            // Made once more, a call of several rounds would ask the person again.
            FailureKind::Refused(error)
                if round.taken && error.code == ErrorCode::HEADER_MISMATCH =>
            {
                return Err(CallFailure::input(error.message.clone().into_owned()));
            }
            FailureKind::Lost(_) => {}
            _ => return Err(failure),
        }
        // The call reached the server, whichever request of it did not.
        failure.sent |= round.taken;
        if failure.is_closed() {
            let when = if failure.sent { "during" } else { "before" };
            let when = format!(" {when} the call");
            let reason = failure.reason.to(Reader::Operator);
            *failure.reason = self.last_words(reason, &when).await.into();
        }
        Err(failure)
    }

    /// The tool list of a listing; what the server said of itself is as `before`.
    pub(crate) fn tool_list(&self, listing: Listing, before: &ToolList) -> ToolList {
        ToolList {
            ttl: listing.ttl(),
            login: self.session.login(),
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
        if self.session.is_stateless() || !self.session.questions.offers.roots {
            return;
        }
        let peer = self.session.peer.clone();
        // Without parameters rmcp would send `null`, which the official servers ignore.
        let method = "notifications/roots/list_changed";
        let changed = CustomNotification::new(method, Some(json!({})));
        tokio::spawn(async move {
            let _ = peer.send_notification(changed.into()).await;
        });
    }

    /// Whether it can take calls.
    pub(crate) fn is_open(&self) -> bool {
        self.session.tap.closed().is_none()
    }

    /// The end of a process that was expected to go on.
    async fn end_of_process(&self) -> Reason {
        let status = match &self.child {
            Some(child) => child.ended(LAST_WORDS).await,
            None => None,
        };
        status.map_or(CLOSED_OUTPUT.into(), |status| {
            let ended = format!("it ended with {status}");
            Reason::advise(&ended, "run its command by hand to see why")
        })
    }

    /// The end of its stderr, without secrets.
    pub(crate) fn stderr(&self) -> String {
        let tail = self.child.as_ref().map(Child::stderr_tail);
        self.session.redact.redact(&tail.unwrap_or_default())
    }

    /// Waits for the end of the connection, which ends with its process.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut lost = self.session.tap.lost();
        async move {
            let _ = lost.wait_for(Option::is_some).await;
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
        let stopped = timeout(CLOSE_PATIENCE, self.stopped.cancelled());
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
