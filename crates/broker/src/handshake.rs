//! Finding out which protocol a stdio server speaks, and agreeing on it.
//!
//! The newest revision opens with `server/discover`, all older ones with
//! `initialize`. What real servers do with a `server/discover` they do not
//! know: most answer with an error, some exit, a few say nothing. So:
//!
//! * an answer decides at once, and an error is followed by `initialize`;
//! * silence is followed by `initialize` on the same connection after
//!   [`DISCOVER_PATIENCE`], and whichever request succeeds first decides. A slow
//!   starter finds both in its input and answers them in order, so waiting
//!   longer would gain nothing;
//! * an exit is the caller's to handle, by a new process and `initialize` only.

use std::time::Duration;

use rmcp::model::{DiscoverResult, InitializeResult, ProtocolVersion, ServerPeerInfo};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::implementation;
use crate::error::StartErrorKind;
use crate::lines::Line;
use crate::stdio_old::{Streams, error_data, frame, note_junk};

/// How long an answer to `server/discover` is waited for before `initialize`
/// is sent after it. Only servers that ignore what they do not know cost this
/// time.
pub(crate) const DISCOVER_PATIENCE: Duration = Duration::from_secs(1);

// rmcp counts its ids up from 0, so these cannot meet one of its own.
const DISCOVER_ID: i64 = 2_000_000_001;
const INITIALIZE_ID: i64 = 2_000_000_002;

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

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
pub(crate) enum Failure {
    /// The stream ended.
    Ended,
    /// Anything else.
    Start(StartErrorKind),
}

impl From<StartErrorKind> for Failure {
    fn from(kind: StartErrorKind) -> Self {
        Self::Start(kind)
    }
}

/// Shakes hands and returns what the server said of itself. Has no time limit
/// of its own.
pub(crate) async fn shake(
    server: &str,
    streams: &mut Streams,
    opening: &Opening,
) -> Result<ServerPeerInfo, Failure> {
    let mut state = State {
        server,
        streams,
        wanted: match opening {
            Opening::Both => ProtocolVersion::LATEST,
            Opening::Discover(version) | Opening::Initialize { version, .. } => version.clone(),
        },
        exact: matches!(opening, Opening::Initialize { exact: true, .. }),
        may_fall_back: *opening == Opening::Both,
        discovering: false,
        initializing: false,
        refusal: None,
    };
    match opening {
        Opening::Both | Opening::Discover(_) => state.send_discover().await?,
        Opening::Initialize { .. } => state.send_initialize().await?,
    }
    state.run().await
}

struct State<'a> {
    server: &'a str,
    streams: &'a mut Streams,
    wanted: ProtocolVersion,
    exact: bool,
    may_fall_back: bool,
    /// Whether an answer to the request is still to come.
    discovering: bool,
    initializing: bool,
    /// Why one of the two was refused, should the other fail too.
    refusal: Option<StartErrorKind>,
}

impl State<'_> {
    async fn run(mut self) -> Result<ServerPeerInfo, Failure> {
        let patience = tokio::time::sleep(DISCOVER_PATIENCE);
        tokio::pin!(patience);
        loop {
            tokio::select! {
                line = self.streams.lines.next() => {
                    let line = line.ok_or(Failure::Ended)?;
                    if let Some(info) = self.on_line(line).await? {
                        return Ok(info);
                    }
                }
                () = &mut patience, if self.may_fall_back => self.fall_back().await?,
            }
        }
    }

    async fn on_line(&mut self, line: Line) -> Result<Option<ServerPeerInfo>, Failure> {
        let Line::Whole(line) = line else {
            return Ok(None);
        };
        let Some(message) = frame(&line) else {
            note_junk(self.server, &self.streams.junk, &line);
            return Ok(None);
        };
        if let Some(method) = &message.method {
            if let Some(id) = &message.id {
                // Before the handshake, only a ping has an answer.
                let answer = if method == "ping" {
                    json!({ "jsonrpc": "2.0", "id": id, "result": {} })
                } else {
                    let error = json!({ "code": -32601, "message": "not before the handshake" });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                };
                self.send(&answer).await?;
            }
            return Ok(None);
        }
        let answer = match (message.result, message.error) {
            (_, Some(error)) => Err(error),
            (Some(result), None) => Ok(result),
            (None, None) => return Ok(None),
        };
        match message.id.map(|id| id.to_string()) {
            Some(id) if id == DISCOVER_ID.to_string() && self.discovering => {
                self.discovering = false;
                self.on_discovered(answer).await
            }
            Some(id) if id == INITIALIZE_ID.to_string() && self.initializing => {
                self.initializing = false;
                self.on_initialized(answer).await
            }
            _ => Ok(None),
        }
    }

    async fn on_discovered(
        &mut self,
        answer: Result<&RawValue, &RawValue>,
    ) -> Result<Option<ServerPeerInfo>, Failure> {
        let problem = match answer {
            Ok(result) => match parse::<DiscoverResult>(DISCOVER, result) {
                Ok(discovered) if discovered.supported_versions.contains(&self.wanted) => {
                    let info =
                        ServerPeerInfo::from_discover_result(self.wanted.clone(), discovered);
                    return Ok(Some(info));
                }
                Ok(discovered) => self.no_common(&discovered.supported_versions),
                Err(problem) => problem,
            },
            Err(error) => {
                let error = error_data(error);
                StartErrorKind::Refused {
                    method: DISCOVER,
                    code: i64::from(error.code.0),
                    message: error.message.into_owned(),
                }
            }
        };
        self.refused(problem)?;
        self.fall_back().await?;
        Ok(None)
    }

    async fn on_initialized(
        &mut self,
        answer: Result<&RawValue, &RawValue>,
    ) -> Result<Option<ServerPeerInfo>, Failure> {
        let problem = match answer {
            Ok(result) => match parse::<InitializeResult>(INITIALIZE, result) {
                Ok(initialized) => {
                    let version = &initialized.protocol_version;
                    let known = version.has_initialize()
                        && ProtocolVersion::KNOWN_VERSIONS.contains(version)
                        && !(self.exact && *version != self.wanted);
                    if known {
                        let note =
                            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                        self.send(&note).await?;
                        return Ok(Some(initialized.into()));
                    }
                    self.no_common(std::slice::from_ref(version))
                }
                Err(problem) => problem,
            },
            Err(error) => {
                let error = error_data(error);
                StartErrorKind::Refused {
                    method: INITIALIZE,
                    code: i64::from(error.code.0),
                    message: error.message.into_owned(),
                }
            }
        };
        self.refused(problem)?;
        Ok(None)
    }

    /// Ends the handshake unless there is another request to wait for.
    fn refused(&mut self, problem: StartErrorKind) -> Result<(), Failure> {
        if self.may_fall_back || self.discovering || self.initializing {
            self.refusal.get_or_insert(problem);
            return Ok(());
        }
        // A server that refused both says more by what it said of the handshake
        // it does know; one that speaks only other revisions says it best.
        let problem = match (self.refusal.take(), problem) {
            (Some(first @ StartErrorKind::NoCommonRevision { .. }), _) => first,
            (_, last) => last,
        };
        Err(problem.into())
    }

    async fn fall_back(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.may_fall_back) {
            self.send_initialize().await?;
        }
        Ok(())
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

    async fn send_discover(&mut self) -> Result<(), Failure> {
        self.discovering = true;
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": self.wanted,
            "io.modelcontextprotocol/clientInfo": implementation(),
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "_meta": meta });
        self.request(DISCOVER_ID, DISCOVER, params).await
    }

    async fn send_initialize(&mut self) -> Result<(), Failure> {
        self.initializing = true;
        let version = if self.wanted.has_initialize() {
            self.wanted.clone()
        } else {
            ProtocolVersion::LATEST_WITH_INITIALIZE
        };
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": implementation(),
        });
        self.request(INITIALIZE_ID, INITIALIZE, params).await
    }

    async fn request(&mut self, id: i64, method: &str, params: Value) -> Result<(), Failure> {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await
    }

    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        // A server that has closed its input is ending; its output tells when.
        let _closed = self.streams.writer.write(&message.to_string());
        Ok(())
    }
}

fn parse<T: DeserializeOwned>(
    method: &'static str,
    result: &RawValue,
) -> Result<T, StartErrorKind> {
    serde_json::from_str(result.get()).map_err(|error| StartErrorKind::Malformed {
        method,
        reason: error.to_string(),
    })
}
