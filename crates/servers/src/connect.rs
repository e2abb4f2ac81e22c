//! Starts one server: its process or endpoint, the protocol revision, the first tool list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8};

use callgate_auth::{AuthError, Authorization, Redact};
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
use crate::endpoint::Endpoint;
use crate::failure::{FailureKind, Lost, Reason};
use crate::greeting::{Unmet, greet, is_unsupported, supported};
use crate::http::Http;
use crate::questions::{Handler, Questions};
use crate::request::{Agreed, Session};
use crate::spec::{self, ServerSpec, Transport};
use crate::stdio::Stdio;
use crate::tap::{DISCOVER, Tap};
use crate::tool_list::ToolList;
use crate::watch::Notifications;

const LIST: &str = "tools/list";

/// The knowledge about a server that outlives its connections.
#[derive(Debug, Default)]
pub(crate) struct ServerHistory {
    authorization: Mutex<Authorization>,
    /// True if the last HTTP session was refused, and no call has gone through since.
    is_renewed: Arc<AtomicBool>,
    /// Generation of the tool list: incremented on a `list_changed`, a new login, or a refresh by
    /// the host.
    pub(crate) generation: Arc<watch::Sender<u64>>,
    /// The clocks of the server's requests.
    pub(crate) asking: Asking,
    /// The processes that have not ended.
    pub(crate) processes: TaskTracker,
}

impl ServerHistory {
    /// The login that a start waits for, if it does.
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
}

/// A server that does not start.
struct Failed {
    reason: Reason,
    /// True if the connection ended at `server/discover`.
    at_discover: bool,
}

impl From<Reason> for Failed {
    fn from(reason: Reason) -> Self {
        let at_discover = false;
        Self {
            reason,
            at_discover,
        }
    }
}

impl Attempt<'_> {
    async fn connect(&mut self) -> Result<(Connection, ToolList), Reason> {
        let spec = self.spec;
        let values = spec.transport.look_up(&self.redact);
        let values = self.in_time("looking up its secrets", values).await??;
        let connected = match &spec.transport {
            Transport::Http(http) => self.connect_http(&http.url, &values).await,
            Transport::Stdio(stdio) => match self.connect_stdio(stdio, &values, true).await {
                Err(failed) if failed.at_discover && Instant::now() < self.deadline => {
                    self.connect_stdio(stdio, &values, false).await
                }
                connected => connected,
            },
        };
        connected.map_err(|failed| failed.reason)
    }

    async fn connect_stdio(
        &mut self,
        stdio: &spec::Stdio,
        env: &BTreeMap<String, String>,
        may_discover: bool,
    ) -> Result<(Connection, ToolList), Failed> {
        let processes = &self.history.processes;
        let started = Child::start(stdio, env, &self.name, &self.redact, processes).await;
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
        *self.history.authorization.lock() = authorization.clone();
        let is_renewed = Arc::clone(&self.history.is_renewed);
        let (redact, limit) = (self.redact.clone(), self.spec.max_message_bytes);
        let transport = |tap| {
            let endpoint =
                Endpoint::new(url, headers, authorization, redact, tap, limit, is_renewed)?;
            let http = Http(Arc::new(endpoint));
            Ok((http.transport(), Some(http)))
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
        let asking = self.history.asking.clone();
        let caller = Arc::clone(&self.spec.caller);
        let questions = Questions::new(Arc::clone(&self.name), caller, asking);
        let notifications = Arc::new(Notifications::new(
            Arc::clone(&self.name),
            self.redact.clone(),
            questions.pages.clone(),
            Arc::clone(&self.history.generation),
        ));
        let questions = Arc::new(questions);
        let tap = Tap::new(Arc::clone(&notifications));
        let (transport, http) = transport(Arc::clone(&tap)).map_err(Reason::from)?;
        let handler = Handler {
            questions: Arc::clone(&questions),
            tap: Arc::clone(&tap),
        };
        let stop = CancellationToken::new();
        let running = serve_directly_with_ct(handler, transport, None, stop.clone());
        // A start that is given up ends the service.
        let guard = stop.clone().drop_guard();
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
        let fixed = self.spec.era.fixed();
        let greeted = greet(&mut session, fixed, may_discover);
        let greeted = self.in_time("waiting for its handshake", greeted).await;
        let connection = Connection {
            session: Arc::new(session),
            notifications,
            child,
            stop,
            _stop: guard,
            stopped,
        };
        let listed = match greeted {
            Ok(Ok(())) => {
                let listed = self.list(&connection);
                self.in_time("waiting for its list of tools", listed).await
            }
            Ok(Err(unmet)) => Ok(Err(unmet)),
            Err(late) => Err(late),
        };
        let mut failed = match listed {
            Ok(Ok(list)) => return Ok((connection, list)),
            Ok(Err(unmet)) => Failed {
                at_discover: unmet.method == DISCOVER
                    && fixed.is_none()
                    && unmet.failure.is_closed(),
                reason: self.problem(&connection, &unmet).await,
            },
            Err(late) => late.into(),
        };
        failed
            .reason
            .push_str(&connection.session.tap.take_unused());
        self.stderr = connection.stderr();
        connection.shut_down().await;
        Err(failed)
    }

    /// Awaits a part of the start within the time limit of the whole.
    async fn in_time<T>(&self, part: &str, done: impl Future<Output = T>) -> Result<T, Reason> {
        let limit = self.spec.start_timeout.as_millis();
        let late = || match self.history.held_up() {
            Some(error) => Reason::from(&error),
            None => Reason::advise(
                &format!("it was not ready within {limit} ms ({part})"),
                "raise its `startTimeout` if it is slow to start",
            ),
        };
        timeout_at(self.deadline, done).await.map_err(|_| late())
    }

    async fn list(&self, connection: &Connection) -> Result<ToolList, Unmet> {
        let session = &connection.session;
        let listed = session.list_tools(self.spec.start_timeout).await;
        let listed = listed.map_err(|failure| Unmet {
            method: LIST,
            failure,
        });
        let mut list = listed?.list;
        let unused = session.tap.take_unused();
        if !unused.is_empty() && connection.child.is_some() {
            let unused = unused.trim_start_matches("; ");
            list.warnings
                .push(format!("{unused}; it should log to stderr"));
        }
        Ok(list)
    }

    /// Why the server cannot be used.
    async fn problem(&self, connection: &Connection, unmet: &Unmet) -> Reason {
        let Unmet { method, failure } = unmet;
        let reason = Reason::clone(&failure.reason);
        let what = match (&failure.kind, &self.spec.transport) {
            (FailureKind::Refused(error), _) if is_unsupported(unmet) => {
                return self.no_common(&supported(error)).into();
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
                let problem = format!("its answer to {method} is over the limit of {limit} bytes");
                return Reason::advise(&problem, "raise \"result\" under \"limits\"");
            }
            (FailureKind::Refused(_), _) => format!("it refused {method}"),
            _ => format!("its answer to {method} is malformed"),
        };
        reason.map(|reason| format!("{what}: {}", self.redact.message(reason)))
    }

    fn no_common(&self, offered: &[ProtocolVersion]) -> String {
        let offered: Vec<_> = offered.iter().map(ProtocolVersion::as_str).collect();
        let offered = match offered.join(", ") {
            none if none.is_empty() => "none".to_owned(),
            offered => self.redact.message(&offered),
        };
        let wanted = self.spec.era.fixed().unwrap_or(&ProtocolVersion::LATEST);
        format!("it does not speak protocol {wanted}; it offers {offered}")
    }
}
