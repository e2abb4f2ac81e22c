//! Finding out which protocol a server speaks, and agreeing on it.
//!
//! The newest revision opens with `server/discover`, all older ones with
//! `initialize`. What real servers do with a `server/discover` they do not
//! know: most answer with an error, some exit, a few say nothing. So:
//!
//! * an answer decides at once, and an error that only a newer server gives says
//!   which revisions it has; any other one is followed by `initialize`;
//! * silence is followed by `initialize` on the same connection after a while,
//!   and whichever request succeeds first decides. A slow starter finds both in
//!   its input and answers them in order, so waiting longer would gain nothing;
//! * an exit is the caller's to handle, by a new process and `initialize` only.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::model::{ErrorData, ProtocolVersion};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::{Sleep, sleep};

use crate::envelope;
use crate::error::StartErrorKind;
use crate::failure::Failure;
use crate::greeting;
use crate::inbox::Answer;
use crate::link::LinkError;
use crate::session::{Agreed, Request, Session};

/// How long an answer to `server/discover` is waited for over stdio before
/// `initialize` is sent after it. Only servers that ignore what they do not know
/// cost this time.
pub(crate) const DISCOVER_PATIENCE: Duration = Duration::from_secs(1);

/// The same over HTTP, where a request that is not answered holds up no other
/// one, and a server that is far away may be slow.
pub(crate) const DISCOVER_PATIENCE_HTTP: Duration = Duration::from_secs(5);

pub(crate) const DISCOVER: &str = "server/discover";
pub(crate) const INITIALIZE: &str = "initialize";

/// Errors that only a server of the newest revision gives (basic, "error
/// codes"), the last of which lists what it speaks instead.
const NEWER_ERRORS: std::ops::RangeInclusive<i32> = -32022..=-32020;
const UNSUPPORTED_VERSION: i32 = -32022;

/// Whether a server refuses a request because it does not speak the revision that was agreed
/// on, as when another version of it answers now. It has to say which one that we know it
/// speaks instead, and, if it says what was requested, the one agreed on: the code alone may be
/// one that it passes on, or, before the newest revision, one of its own.
pub(crate) fn is_left(agreed: &ProtocolVersion, error: &ErrorData) -> bool {
    let known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(version);
    let data = error.data.as_ref();
    let speaks = greeting::supported(data);
    let requested = data.and_then(|data| data.get("requested"));
    error.code.0 == UNSUPPORTED_VERSION
        && !speaks.contains(agreed)
        && speaks.iter().any(known)
        && requested.is_none_or(|requested| requested == agreed.as_str())
}

/// What to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    /// `server/discover`, then `initialize`.
    Both,
    /// `server/discover` only, for this revision.
    Discover(ProtocolVersion),
    /// `initialize` only, asking for this revision; `exact` refuses another.
    Initialize {
        version: ProtocolVersion,
        exact: bool,
    },
}

impl Opening {
    /// `initialize`, with whatever older revision the server prefers.
    pub(crate) fn initialize() -> Self {
        Self::Initialize {
            version: ProtocolVersion::LATEST_WITH_INITIALIZE,
            exact: false,
        }
    }
}

/// Why there is no agreement.
#[derive(Debug)]
pub(crate) enum Disagreement {
    /// The connection ended, or never was.
    Lost(LinkError),
    /// Anything else.
    Start(StartErrorKind),
}

/// Shakes hands: afterwards the session has [`Session::agreed`]. Has no time
/// limit of its own; `patience` is that with a server that does not answer
/// `server/discover`.
pub(crate) async fn shake(
    session: &Session,
    opening: &Opening,
    patience: Duration,
) -> Result<(), Disagreement> {
    let mut state = State {
        session,
        wanted: match opening {
            Opening::Both => ProtocolVersion::LATEST,
            Opening::Discover(version) | Opening::Initialize { version, .. } => version.clone(),
        },
        exact: matches!(opening, Opening::Initialize { exact: true, .. }),
        may_fall_back: *opening == Opening::Both,
        may_ask_again: true,
        discovering: None,
        initializing: None,
        refusal: None,
    };
    match opening {
        Opening::Both | Opening::Discover(_) => state.discover(),
        Opening::Initialize { version, .. } => state.initialize(version.clone()),
    }
    let agreed = state.run(patience).await?;
    let has_initialize = agreed.version.has_initialize();
    session.agree(agreed);
    if has_initialize {
        session
            .tell("notifications/initialized")
            .await
            .map_err(Disagreement::Lost)?;
    }
    Ok(())
}

struct State<'a> {
    session: &'a Session,
    wanted: ProtocolVersion,
    exact: bool,
    may_fall_back: bool,
    may_ask_again: bool,
    /// The requests whose answers are still to come.
    discovering: Option<BoxFuture<'a, Answer>>,
    initializing: Option<BoxFuture<'a, Answer>>,
    /// Why one of the two was refused, should the other fail too.
    refusal: Option<StartErrorKind>,
}

enum Event {
    Discovered(Answer),
    Initialized(Answer),
    Silence,
}

impl State<'_> {
    async fn run(mut self, patience: Duration) -> Result<Agreed, Disagreement> {
        let mut patience = std::pin::pin!(sleep(patience));
        loop {
            let event = poll_fn(|cx| self.poll(patience.as_mut(), cx)).await;
            let agreed = match event {
                Event::Discovered(answer) => {
                    self.discovering = None;
                    self.on_discovered(answer)?
                }
                Event::Initialized(answer) => {
                    self.initializing = None;
                    self.on_initialized(answer)?
                }
                Event::Silence => {
                    self.fall_back();
                    None
                }
            };
            if let Some(agreed) = agreed {
                return Ok(agreed);
            }
        }
    }

    fn poll(&mut self, patience: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(discovering) = &mut self.discovering
            && let Poll::Ready(answer) = discovering.as_mut().poll(cx)
        {
            return Poll::Ready(Event::Discovered(answer));
        }
        if let Some(initializing) = &mut self.initializing
            && let Poll::Ready(answer) = initializing.as_mut().poll(cx)
        {
            return Poll::Ready(Event::Initialized(answer));
        }
        if self.may_fall_back && patience.poll(cx).is_ready() {
            return Poll::Ready(Event::Silence);
        }
        Poll::Pending
    }

    fn on_discovered(&mut self, answer: Answer) -> Result<Option<Agreed>, Disagreement> {
        let offered = match answer {
            Ok(result) => match greeting::discovered(&result) {
                Ok(discovered) if discovered.versions.contains(&self.wanted) => {
                    return Ok(Some(discovered.agreed(self.wanted.clone())));
                }
                Ok(discovered) => discovered.versions,
                Err(reason) => {
                    self.refused(malformed(DISCOVER, reason))?;
                    self.fall_back();
                    return Ok(None);
                }
            },
            Err(Failure::Refused(error)) if NEWER_ERRORS.contains(&error.code.0) => {
                if error.code.0 != UNSUPPORTED_VERSION {
                    return Err(Disagreement::Start(refused(DISCOVER, error)));
                }
                greeting::supported(error.data.as_ref())
            }
            Err(failure) => {
                let problem = self.problem(DISCOVER, failure)?;
                self.refused(problem)?;
                self.fall_back();
                return Ok(None);
            }
        };
        // It refused the very revision it lists: once more may do.
        if offered.contains(&self.wanted) && std::mem::take(&mut self.may_ask_again) {
            self.discover();
            return Ok(None);
        }
        // It is a newer server: what it does not list it does not speak.
        let older = offered
            .iter()
            .filter(|version| is_known_older(version))
            .max_by(|one, other| one.as_str().cmp(other.as_str()));
        let problem = self.no_common(&offered);
        match older {
            Some(older) if std::mem::take(&mut self.may_fall_back) => {
                // What becomes of that one is what counts.
                let older = older.clone();
                self.initialize(older);
                Ok(None)
            }
            Some(_) if self.initializing.is_some() => Ok(None),
            _ => {
                self.may_fall_back = false;
                self.refused(problem)?;
                Ok(None)
            }
        }
    }

    fn on_initialized(&mut self, answer: Answer) -> Result<Option<Agreed>, Disagreement> {
        let problem = match answer {
            Ok(result) => match greeting::initialized(&result) {
                Ok(agreed) => {
                    let version = &agreed.version;
                    let exact = self.exact && *version != self.wanted;
                    if is_known_older(version) && !exact {
                        return Ok(Some(agreed));
                    }
                    self.no_common(std::slice::from_ref(version))
                }
                Err(reason) => malformed(INITIALIZE, reason),
            },
            Err(failure) => self.problem(INITIALIZE, failure)?,
        };
        self.refused(problem)?;
        Ok(None)
    }

    /// Ends the handshake unless there is another request to wait for.
    fn refused(&mut self, problem: StartErrorKind) -> Result<(), Disagreement> {
        if self.may_go_on() {
            self.refusal.get_or_insert(problem);
            return Ok(());
        }
        // A server that refused both says more by what it said of the handshake
        // it does know; one that speaks only other revisions says it best.
        let problem = match (self.refusal.take(), problem) {
            (Some(first @ StartErrorKind::NoCommonRevision { .. }), _) => first,
            (_, last) => last,
        };
        Err(Disagreement::Start(problem))
    }

    /// Whether there is another request to send, or to wait for.
    fn may_go_on(&self) -> bool {
        self.may_fall_back || self.discovering.is_some() || self.initializing.is_some()
    }

    fn fall_back(&mut self) {
        if std::mem::take(&mut self.may_fall_back) {
            self.initialize(ProtocolVersion::LATEST_WITH_INITIALIZE);
        }
    }

    fn no_common(&self, offered: &[ProtocolVersion]) -> StartErrorKind {
        let offered: Vec<_> = offered.iter().map(ProtocolVersion::as_str).collect();
        StartErrorKind::NoCommonRevision {
            wanted: self.wanted.to_string(),
            offered: if offered.is_empty() {
                "none".to_owned()
            } else {
                offered.join(", ")
            },
        }
    }

    fn discover(&mut self) {
        let (session, version) = (self.session, self.wanted.clone());
        self.discovering = Some(Box::pin(async move {
            let mut request = Request::new(DISCOVER, "");
            request.version = Some(&version);
            session.request_patiently(&request).await
        }));
    }

    fn initialize(&mut self, version: ProtocolVersion) {
        let session = self.session;
        self.initializing = Some(Box::pin(async move {
            let members = initialize_members(session, &version);
            session
                .request_patiently(&Request::new(INITIALIZE, &members))
                .await
        }));
    }

    /// What a failure says of the server; the connection's end ends it all.
    fn problem(
        &self,
        method: &'static str,
        failure: Failure,
    ) -> Result<StartErrorKind, Disagreement> {
        match failure {
            Failure::Refused(error) | Failure::Left(error) | Failure::Headers(error, _) => {
                Ok(refused(method, error))
            }
            // An older HTTP server refuses what it does not know by its status, or ends its
            // answer to that without one.
            Failure::Lost(error)
                if self.may_go_on()
                    && (error.is_status() || method == DISCOVER && error.is_unanswered()) =>
            {
                Ok(malformed(method, error.reason))
            }
            Failure::Lost(error) => Err(Disagreement::Lost(error)),
            Failure::TooLarge(limit) => Ok(malformed(
                method,
                format!("it is over the limit of {limit} bytes"),
            )),
            Failure::Timeout(_) => Ok(malformed(method, "there was none".to_owned())),
            Failure::Malformed(reason) | Failure::Input(reason) => Ok(malformed(method, reason)),
            // A handshake calls no tool.
            call @ (Failure::Changed { .. } | Failure::Unfit(_)) => {
                Ok(malformed(method, call.to_string()))
            }
        }
    }
}

fn initialize_members(session: &Session, version: &ProtocolVersion) -> String {
    let capabilities = envelope::capabilities(session.offers(), version);
    let info = to_raw_value(&envelope::implementation());
    let info = info.unwrap_or_else(|_| RawValue::NULL.to_owned());
    let version = Value::from(version.as_str());
    format!(r#""protocolVersion":{version},"capabilities":{capabilities},"clientInfo":{info}"#)
}

fn is_known_older(version: &ProtocolVersion) -> bool {
    version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(version)
}

fn malformed(method: &'static str, reason: String) -> StartErrorKind {
    StartErrorKind::Malformed { method, reason }
}

fn refused(method: &'static str, error: ErrorData) -> StartErrorKind {
    StartErrorKind::Refused {
        method,
        code: i64::from(error.code.0),
        message: error.message.into_owned(),
    }
}
