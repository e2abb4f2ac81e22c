//! Starting one server: connect, agree on a protocol, list the tools.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::broker::Ready;
use crate::connection::Connection;
use crate::error::{StartError, StartErrorKind};
use crate::failure::Failure;
use crate::handshake::{DISCOVER_PATIENCE, DISCOVER_PATIENCE_HTTP, Disagreement, Opening, shake};
use crate::http::{Endpoint, HttpLink};
use crate::inbox::Inbox;
use crate::link::{Link, LinkError, LinkErrorKind};
use crate::listing::Listing;
use crate::patience::soon;
use crate::process::{Process, Started};
use crate::session::Session;
use crate::spec::{EraSetting, Http, Revision, ServerSpec, Stdio, Transport};
use crate::stdio::StdioLink;
use callgate_auth::Redact;
use callgate_auth::{AuthError, Authorize, NoAuthorization};

/// How long a server that closed its output has to exit, for the message.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What the last attempt to start a server asks about authorization.
#[derive(Debug, Default)]
pub(crate) struct Admission(Mutex<Option<Weak<dyn Authorize>>>);

impl Admission {
    /// Why it is not let in yet, if what it waits for is to be authorized.
    pub(crate) fn held_up(&self) -> Option<AuthError> {
        let authorize = self.lock().as_ref().and_then(Weak::upgrade)?;
        authorize.pending()
    }

    fn is_by(&self, authorize: &Arc<dyn Authorize>) {
        *self.lock() = Some(Arc::downgrade(authorize));
    }

    fn lock(&self) -> MutexGuard<'_, Option<Weak<dyn Authorize>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a server within its time limit. `launch` is held until its process has been
/// started.
pub(crate) async fn start(
    spec: &ServerSpec,
    admission: &Admission,
    launch: Option<watch::Receiver<()>>,
) -> Result<(Connection, Ready), StartError> {
    let mut attempt = Attempt {
        spec,
        admission,
        launch,
        name: spec.name.as_str().into(),
        secrets: spec.transport.redact(),
        deadline: soon(spec.start_timeout),
        stderr: String::new(),
    };
    let failed = |attempt: &Attempt<'_>, kind| StartError {
        server: spec.name.clone(),
        kind: sayable(kind, &attempt.secrets),
        stderr: attempt.secrets.redact(&attempt.stderr),
    };
    let connection = match attempt.connect().await {
        Ok(connection) => connection,
        Err(kind) => return Err(failed(&attempt, kind)),
    };
    match attempt.list(&connection).await {
        Ok(ready) => Ok((connection, ready)),
        Err(kind) => {
            attempt.stderr = connection.stderr();
            let error = failed(&attempt, kind);
            connection.shut_down().await;
            Err(error)
        }
    }
}

/// The problem, with what the server said of it made fit to be passed on.
fn sayable(kind: StartErrorKind, secrets: &Redact) -> StartErrorKind {
    match kind {
        StartErrorKind::Refused {
            method,
            code,
            message,
        } => StartErrorKind::Refused {
            method,
            code,
            message: secrets.message(&message),
        },
        StartErrorKind::NoCommonRevision { wanted, offered } => StartErrorKind::NoCommonRevision {
            wanted,
            offered: secrets.message(&offered),
        },
        StartErrorKind::Malformed { method, reason } => StartErrorKind::Malformed {
            method,
            reason: secrets.message(&reason),
        },
        StartErrorKind::Unauthorized { url } => StartErrorKind::Unauthorized {
            url: secrets.redact(&url),
        },
        StartErrorKind::Http { url, reason } => StartErrorKind::Http {
            url: secrets.redact(&url),
            reason,
        },
        other => other,
    }
}

/// What a link's error says of an endpoint that is being started.
fn out_of_reach(http: &Http, error: LinkError) -> StartErrorKind {
    let url = http.shown_url();
    match error.kind {
        LinkErrorKind::Unauthorized => StartErrorKind::Unauthorized { url },
        LinkErrorKind::Authorization(error) => StartErrorKind::Authorization(error),
        LinkErrorKind::Closed
        | LinkErrorKind::Unreachable
        | LinkErrorKind::Status(_)
        | LinkErrorKind::Changed(_) => {
            let reason = error.reason;
            StartErrorKind::Http { url, reason }
        }
    }
}

struct Attempt<'a> {
    spec: &'a ServerSpec,
    admission: &'a Admission,
    launch: Option<watch::Receiver<()>>,
    name: Arc<str>,
    secrets: Redact,
    deadline: Instant,
    /// What the last process wrote to stderr.
    stderr: String,
}

impl Attempt<'_> {
    async fn connect(&mut self) -> Result<Connection, StartErrorKind> {
        let transport = self.spec.transport.resolve(&self.secrets);
        let transport = tokio::time::timeout_at(self.deadline, transport)
            .await
            .map_err(|_| self.timed_out("looking up its secrets"))??;
        match &transport {
            Transport::Stdio(stdio) => self.connect_stdio(stdio).await,
            Transport::Http(http) => {
                self.launch = None;
                self.connect_http(http).await
            }
        }
    }

    async fn connect_http(&self, http: &Http) -> Result<Connection, StartErrorKind> {
        let opening = match &self.spec.era {
            EraSetting::Fixed(Revision(version)) if version.has_initialize() => {
                Opening::Initialize {
                    version: version.clone(),
                    exact: true,
                }
            }
            EraSetting::Fixed(Revision(version)) => Opening::Discover(version.clone()),
            EraSetting::Auto => Opening::Both,
        };
        let inbox = Inbox::new(Arc::clone(&self.name), self.spec.max_message_bytes);
        // Without an endpoint nothing is authorized: a header is configured, or no login.
        let authorize: Arc<dyn Authorize> = match self.spec.endpoint() {
            Ok(endpoint) => callgate_auth::authorize(&endpoint, &self.secrets),
            Err(_) => Arc::new(NoAuthorization),
        };
        self.admission.is_by(&authorize);
        let endpoint = Endpoint::new(http, authorize, self.secrets.clone())?;
        let link = HttpLink::new(Arc::clone(&self.name), endpoint, Arc::clone(&inbox));
        let session = self.session(inbox, Arc::new(link));
        let shaken = shake(&session, &opening, DISCOVER_PATIENCE_HTTP);
        let problem = match tokio::time::timeout_at(self.deadline, shaken).await {
            Ok(Ok(())) => {
                session.ask_for_logs();
                return Ok(Connection::new(session, None));
            }
            Ok(Err(Disagreement::Start(kind))) => kind,
            Ok(Err(Disagreement::Lost(error))) => out_of_reach(http, error),
            Err(_) => match self.admission.held_up() {
                Some(error) => StartErrorKind::Authorization(error),
                None => self.timed_out("waiting for its handshake"),
            },
        };
        session.close().await;
        Err(problem)
    }

    async fn connect_stdio(&mut self, stdio: &Stdio) -> Result<Connection, StartErrorKind> {
        let openings = match &self.spec.era {
            EraSetting::Fixed(Revision(version)) if version.has_initialize() => {
                vec![Opening::Initialize {
                    version: version.clone(),
                    exact: true,
                }]
            }
            EraSetting::Fixed(Revision(version)) => vec![Opening::Discover(version.clone())],
            EraSetting::Auto if remembered_as_older(stdio) => {
                vec![Opening::initialize(), Opening::Both]
            }
            // The second is for servers that exit on what they do not know.
            EraSetting::Auto => vec![Opening::Both, Opening::initialize()],
        };
        let mut problem = StartErrorKind::ClosedOutput;
        for opening in openings {
            let attempted = self.open(stdio, &opening).await;
            match attempted {
                Ok(connection) => {
                    if self.spec.era == EraSetting::Auto {
                        let older = connection
                            .agreed()
                            .is_some_and(|agreed| agreed.version.has_initialize());
                        remember(stdio, older);
                    }
                    return Ok(connection);
                }
                // A server that ended may have ended because of the opening. One
                // that answered has, unless it was asked one thing only, been
                // asked all there is.
                Err(kind @ (StartErrorKind::Exited { .. } | StartErrorKind::ClosedOutput)) => {
                    problem = kind;
                }
                Err(kind) if opening != Opening::Both => problem = kind,
                Err(kind) => return Err(kind),
            }
        }
        Err(problem)
    }

    async fn open(
        &mut self,
        stdio: &Stdio,
        opening: &Opening,
    ) -> Result<Connection, StartErrorKind> {
        let started = Process::start(stdio, &self.name, &self.secrets).await;
        self.launch = None;
        let Started {
            process,
            stdin,
            stdout,
        } = started?;
        let inbox = Inbox::new(Arc::clone(&self.name), self.spec.max_message_bytes);
        let link = StdioLink::new(stdin, stdout, Arc::clone(&inbox));
        let session = self.session(inbox, link);
        let shaken = shake(&session, opening, DISCOVER_PATIENCE);
        let problem = match tokio::time::timeout_at(self.deadline, shaken).await {
            Ok(Ok(())) => {
                session.ask_for_logs();
                return Ok(Connection::new(session, Some(process)));
            }
            Ok(Err(Disagreement::Start(kind))) => kind,
            Ok(Err(Disagreement::Lost(_))) => match process.ended(LAST_WORDS).await {
                Some(status) => StartErrorKind::Exited { status },
                None => StartErrorKind::ClosedOutput,
            },
            Err(_) => self.timed_out("waiting for its handshake"),
        };
        session.close().await;
        self.stderr = process.stderr_tail();
        Err(problem)
    }

    fn session(&self, inbox: Arc<Inbox>, link: Arc<dyn Link>) -> Arc<Session> {
        Session::new(
            Arc::clone(&self.name),
            inbox,
            link,
            Arc::clone(&self.spec.caller),
            self.secrets.clone(),
        )
    }

    async fn list(&self, connection: &Connection) -> Result<Ready, StartErrorKind> {
        let listed = connection.list_tools(self.spec.start_timeout);
        let listing = match tokio::time::timeout_at(self.deadline, listed).await {
            Ok(Ok(listing)) => listing,
            Err(_) | Ok(Err(Failure::Timeout(_))) => {
                return Err(self.timed_out("waiting for its list of tools"));
            }
            // It was asked all the same: some have tools and do not say so.
            Ok(Err(Failure::Refused(_))) if !connection.announces_tools() => {
                let mut none = Listing::new();
                let reason = "it has no tools: it announces none, and refuses tools/list";
                none.warnings.push(reason.to_owned());
                none
            }
            Ok(Err(Failure::Refused(error))) => {
                return Err(StartErrorKind::Refused {
                    method: "tools/list",
                    code: i64::from(error.code.0),
                    message: error.message.into_owned(),
                });
            }
            Ok(Err(Failure::Lost(error))) => {
                return Err(match (&self.spec.transport, connection.status().await) {
                    (Transport::Http(http), _) => out_of_reach(http, error),
                    (Transport::Stdio(_), Some(status)) => StartErrorKind::Exited { status },
                    (Transport::Stdio(_), None) => StartErrorKind::ClosedOutput,
                });
            }
            Ok(Err(failure)) => {
                return Err(StartErrorKind::Malformed {
                    method: "tools/list",
                    reason: connection.describe_list(&failure),
                });
            }
        };
        let fresh_for = connection.fresh_for(&listing);
        let (ttl, login) = (listing.ttl(), listing.login);
        let mut warnings = listing.warnings;
        let junk = connection.junk();
        if junk > 0 {
            warnings.push(format!(
                "{junk} lines on its standard output were no MCP messages and were ignored; a \
                 server should log to stderr"
            ));
        }
        // Nobody makes calls on it yet.
        connection.session().tools.take(listing.specials, || {});
        let agreed = connection.agreed();
        let version = agreed.as_ref().map(|agreed| &agreed.version);
        Ok(Ready {
            tools: listing.tools,
            protocol_version: version.unwrap_or(&ProtocolVersion::LATEST).to_string(),
            server_info: agreed
                .as_ref()
                .and_then(|agreed| agreed.server_info.clone()),
            instructions: agreed.and_then(|agreed| agreed.instructions),
            warnings,
            fresh_for,
            ttl,
            login,
        })
    }

    fn timed_out(&self, stage: &'static str) -> StartErrorKind {
        StartErrorKind::TimedOut {
            limit: self.spec.start_timeout,
            stage,
        }
    }
}

/// How many servers' eras are remembered; beyond that, none is added.
const REMEMBERED: usize = 1_024;

/// Which commands turned out to know only the `initialize` handshake, for the
/// life of the host process. A hint about where to begin, no more: if it fails,
/// the other way is tried.
fn eras() -> MutexGuard<'static, HashMap<u64, bool>> {
    static ERAS: OnceLock<Mutex<HashMap<u64, bool>>> = OnceLock::new();
    ERAS.get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn remembered_as_older(stdio: &Stdio) -> bool {
    eras().get(&key(stdio)).copied().unwrap_or(false)
}

fn remember(stdio: &Stdio, older: bool) {
    let mut eras = eras();
    if eras.len() < REMEMBERED || eras.contains_key(&key(stdio)) {
        eras.insert(key(stdio), older);
    }
}

fn key(stdio: &Stdio) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&stdio.command, &stdio.args, &stdio.cwd).hash(&mut hasher);
    hasher.finish()
}
