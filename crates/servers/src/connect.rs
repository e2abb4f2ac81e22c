//! Starts one server: its process or endpoint, the protocol revision, the first tool list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8};

use callgate_auth::{AuthError, Authorization, Redact};
use callgate_text::{shown_duration, shown_size};
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::serve_directly_with_ct;
use rmcp::transport::IntoTransport;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::child::Child;
use crate::clock::{Asking, later};
use crate::connection::Connection;
use crate::endpoint::HttpEndpoint;
use crate::failure::{FailureKind, Lost, Reason};
use crate::greeting::{FailedRequest, greet, is_unsupported, supported};
use crate::http::HttpClient;
use crate::questions::Questions;
use crate::request::{Agreed, Session};
use crate::spec::{ServerSpec, Stdio, Transport};
use crate::stdio::StdioTransport;
use crate::tap::{DISCOVER, Tap};
use crate::tool_list::ToolList;

/// The state of a server that outlives its connections.
#[derive(Debug, Default)]
pub(crate) struct ServerHistory {
    authorization: Mutex<Authorization>,
    /// True if the last HTTP session was refused, and no call has succeeded since.
    is_renewed: Arc<AtomicBool>,
    /// Generation of the tool list: incremented on a `list_changed`, a new login, or a refresh by
    /// the host.
    pub(crate) generation: Arc<watch::Sender<u64>>,
    /// Stops the clocks of the server's requests.
    pub(crate) asking: Asking,
    /// The processes that have not ended.
    pub(crate) processes: TaskTracker,
}

impl ServerHistory {
    /// The login that a start waits for, if any.
    pub(crate) fn held_up(&self) -> Option<AuthError> {
        self.authorization.lock().pending()
    }
}

/// Starts a server within its time limit.
pub(crate) async fn start(
    spec: &ServerSpec,
    history: &ServerHistory,
) -> Result<(Connection, ToolList), Reason> {
    let mut attempt = Attempt {
        spec,
        history,
        name: spec.name.as_str().into(),
        redact: spec.transport.redact(),
        deadline: later(Instant::now(), spec.start_timeout),
        stderr: String::new(),
        ended_at_discover: false,
    };
    let connected = attempt.connect().await;
    connected.map_err(|reason| reason.of_start(&spec.name, &attempt.stderr))
}

/// One attempt to start a server.
struct Attempt<'a> {
    spec: &'a ServerSpec,
    history: &'a ServerHistory,
    name: Arc<str>,
    redact: Redact,
    deadline: Instant,
    /// The end of the last process's stderr.
    stderr: String,
    /// True if the last connection ended at `server/discover`.
    ended_at_discover: bool,
}

/// A failure after the transport was opened.
enum HandshakeError {
    Late(Reason),
    Failed(FailedRequest),
}

impl Attempt<'_> {
    async fn connect(&mut self) -> Result<(Connection, ToolList), Reason> {
        let spec = self.spec;
        let values = spec.transport.look_up(&self.redact);
        let values = self.in_time("looking up its secrets", values).await??;
        match &spec.transport {
            Transport::Http(http) => self.connect_http(&http.url, &values).await,
            Transport::Stdio(stdio) => match self.connect_stdio(stdio, &values, true).await {
                Err(_) if self.ended_at_discover && Instant::now() < self.deadline => {
                    self.connect_stdio(stdio, &values, false).await
                }
                connected => connected,
            },
        }
    }

    async fn connect_stdio(
        &mut self,
        stdio: &Stdio,
        env: &BTreeMap<String, String>,
        may_discover: bool,
    ) -> Result<(Connection, ToolList), Reason> {
        let processes = &self.history.processes;
        let started = Child::start(stdio, env, &self.name, &self.redact, processes);
        let (child, stdin, stdout) = started.await?;
        let (exited, limit) = (child.exited(), self.spec.message_bytes());
        let transport = |tap| {
            let transport = StdioTransport::new(stdout, stdin, exited, tap, limit);
            Ok((transport, None))
        };
        self.open(transport, Some(child), may_discover).await
    }

    async fn connect_http(
        &mut self,
        url: &str,
        headers: &BTreeMap<String, String>,
    ) -> Result<(Connection, ToolList), Reason> {
        // Without a login endpoint, requests have only the configured headers.
        let authorization = match self.spec.endpoint() {
            Ok(endpoint) => Authorization::new(&endpoint, &self.redact),
            Err(_) => Authorization::default(),
        };
        *self.history.authorization.lock() = authorization.clone();
        let is_renewed = Arc::clone(&self.history.is_renewed);
        let limit = self.spec.message_bytes();
        let transport = |tap| {
            let endpoint = HttpEndpoint::new(url, headers, authorization, tap, limit, is_renewed)?;
            let http = HttpClient(Arc::new(endpoint));
            Ok((http.transport(), Some(http)))
        };
        self.open(transport, None, true).await
    }

    /// Runs rmcp's service over a transport, greets the server and lists its tools.
    async fn open<T, E, A>(
        &mut self,
        transport: impl FnOnce(Arc<Tap>) -> Result<(T, Option<HttpClient>), Reason>,
        child: Option<Child>,
        may_discover: bool,
    ) -> Result<(Connection, ToolList), Reason>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let generation = Arc::clone(&self.history.generation);
        let tap = Tap::new(Arc::clone(&self.name), self.redact.clone(), generation);
        let (caller, asking) = (Arc::clone(&self.spec.caller), self.history.asking.clone());
        let questions = Arc::new(Questions::new(Arc::clone(&tap), caller, asking));
        let (transport, http) = transport(Arc::clone(&tap))?;
        let (stop, handler) = (CancellationToken::new(), Arc::clone(&questions));
        let running = serve_directly_with_ct(handler, transport, None, stop.clone());
        // Dropping this future ends the service.
        let guard = stop.clone().drop_guard();
        let mut session = Session {
            tap: Arc::clone(&tap),
            peer: running.peer().clone(),
            agreed: Agreed::default(),
            questions,
            http,
            logs: AtomicU8::new(u8::MAX),
        };
        let stopped = CancellationToken::new();
        let on_stop = stopped.clone();
        tokio::spawn(async move {
            let _ = running.waiting().await;
            tap.end("the connection was closed");
            on_stop.cancel();
        });
        let is_process = child.is_some();
        let handshake = self.handshake(&mut session, may_discover, is_process).await;
        let connection = Connection {
            session: Arc::new(session),
            child,
            stop,
            _stop: guard,
            stopped,
        };
        match handshake {
            Ok(list) => Ok((connection, list)),
            Err(error) => Err(self.give_up(&connection, error).await),
        }
    }

    /// Agrees on a protocol revision and lists the tools.
    async fn handshake(
        &self,
        session: &mut Session,
        may_discover: bool,
        is_process: bool,
    ) -> Result<ToolList, HandshakeError> {
        let greeted = greet(session, self.spec.era.fixed(), may_discover);
        let greeted = self.in_time("waiting for its handshake", greeted).await;
        greeted
            .map_err(HandshakeError::Late)?
            .map_err(HandshakeError::Failed)?;
        let listed = session.list_tools(self.spec.start_timeout);
        let listed = self.in_time("waiting for its list of tools", listed).await;
        let listed = listed.map_err(HandshakeError::Late)?.map_err(|failure| {
            HandshakeError::Failed(FailedRequest {
                method: "tools/list",
                failure,
            })
        });
        let mut list = listed?.list;
        let unused = session.tap.take_unused();
        if !unused.is_empty() && is_process {
            let unused = unused.trim_start_matches("; ");
            list.warnings
                .push(format!("{unused}; it should log to stderr"));
        }
        Ok(list)
    }

    /// Ends the connection of a failed attempt.
    async fn give_up(&mut self, connection: &Connection, error: HandshakeError) -> Reason {
        let mut reason = match error {
            HandshakeError::Late(reason) => reason,
            HandshakeError::Failed(request) => {
                self.ended_at_discover = request.method == DISCOVER
                    && self.spec.era.fixed().is_none()
                    && request.failure.is_closed();
                self.explain(connection, &request).await
            }
        };
        reason.push_str(&connection.session.tap.take_unused());
        self.stderr = connection.stderr();
        connection.shut_down().await;
        reason
    }

    /// Awaits one step of the start, within the time limit of the whole start.
    async fn in_time<T>(&self, step: &str, done: impl Future<Output = T>) -> Result<T, Reason> {
        let limit = shown_duration(self.spec.start_timeout);
        let late = || match self.history.held_up() {
            Some(error) => Reason::from(&error),
            None => Reason::advise(
                &format!("it was not ready within {limit} ({step})"),
                "raise its `startTimeout` if it is slow to start",
            ),
        };
        timeout_at(self.deadline, done).await.map_err(|_| late())
    }

    /// Why the server cannot be used.
    async fn explain(&self, connection: &Connection, request: &FailedRequest) -> Reason {
        let FailedRequest { method, failure } = request;
        let reason = Reason::clone(&failure.reason);
        let problem = match (&failure.kind, &self.spec.transport) {
            (FailureKind::Refused(error), _) if is_unsupported(request) => {
                return self.no_common_revision(&supported(error)).into();
            }
            (FailureKind::Lost(_), Transport::Stdio(_)) => {
                return connection.end_of_process().await;
            }
            (FailureKind::Lost(Lost::Authorization), _) => return reason,
            (FailureKind::Lost(lost), Transport::Http(http)) => {
                let url = self.redact.redact(&http.shown_url());
                if *lost == Lost::Unauthorized {
                    let problem = format!("{url} asks for authorization");
                    return Reason::advise(&problem, "set an `Authorization` header for it");
                }
                format!("{url} did not answer as an MCP endpoint")
            }
            (FailureKind::TooLarge(limit), _) => {
                let limit = shown_size(*limit as u64);
                let problem = format!("its answer to {method} is over the limit of {limit}");
                return Reason::advise(&problem, "raise \"result\" under \"limits\"");
            }
            (FailureKind::Refused(_), _) => format!("it refused {method}"),
            _ => format!("its answer to {method} is malformed"),
        };
        reason.map(|reason| format!("{problem}: {}", self.redact.message(reason)))
    }

    fn no_common_revision(&self, offered: &[ProtocolVersion]) -> String {
        let offered: Vec<_> = offered.iter().map(ProtocolVersion::as_str).collect();
        let offered = match offered.join(", ") {
            none if none.is_empty() => "none".to_owned(),
            offered => self.redact.message(&offered),
        };
        let wanted = self.spec.era.fixed().unwrap_or(&ProtocolVersion::LATEST);
        format!("it does not speak protocol {wanted}; it offers {offered}")
    }
}
