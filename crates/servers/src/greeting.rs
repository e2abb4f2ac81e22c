//! The handshakes of both lifecycles, which agree on a protocol revision.

use std::time::Duration;

use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, InitializeRequest,
    InitializeRequestParams, InitializedNotification, ProtocolVersion,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::failure::{CallFailure, FailureKind, Lost};
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::request::{Agreed, Request, Session, capabilities, program};
use crate::tap::{DISCOVER, INITIALIZE};

/// The time after which a server that ignores `server/discover` gets `initialize`.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(2);
const DISCOVER_PATIENCE_HTTP: Duration = Duration::from_secs(5);
/// The key of the server's name and version in the newest revision.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A failed request of a start.
pub(crate) struct FailedRequest {
    pub(crate) method: &'static str,
    pub(crate) failure: CallFailure,
}

/// Agrees with a server on its newest revision, or on the configured one.
pub(crate) async fn greet(
    session: &mut Session,
    fixed: Option<&ProtocolVersion>,
    may_discover: bool,
) -> Result<(), FailedRequest> {
    session.agreed = agree(session, fixed, may_discover).await?;
    if session.is_stateless() {
        session.tap.set_stateless();
    } else {
        let initialized = InitializedNotification::default();
        let initialized = ClientNotification::InitializedNotification(initialized);
        let _ = session.peer.send_notification(initialized).await;
    }
    Ok(())
}

/// Requests the newest revision by `server/discover`, then older ones by `initialize`.
async fn agree(
    session: &mut Session,
    fixed: Option<&ProtocolVersion>,
    may_discover: bool,
) -> Result<Agreed, FailedRequest> {
    let mut refused = None;
    if may_discover && fixed.is_none_or(|version| !version.has_initialize()) {
        let patience = match &session.http {
            _ if fixed.is_some() => Duration::MAX,
            Some(_) => DISCOVER_PATIENCE_HTTP,
            None => DISCOVER_PATIENCE,
        };
        match timeout(patience, discover(session)).await {
            Ok(Err(failed)) if speaks_newest(&failed) => return discover(session).await,
            Ok(Err(failed)) if fixed.is_none() && !is_final(&failed) => refused = Some(failed),
            Ok(greeted) => return greeted,
            Err(_) => {}
        }
    }
    let failed = match initialize(session, fixed).await {
        // The server ignored `server/discover`, or answered too late.
        Err(failed) if fixed.is_none() && speaks_newest(&failed) => return discover(session).await,
        Err(failed) => failed,
        agreed => return agreed,
    };
    // The error about revisions is the more useful one.
    Err(refused.filter(is_unsupported).unwrap_or(failed))
}

/// True if the server's error lists the newest revision as supported.
fn speaks_newest(failed: &FailedRequest) -> bool {
    matches!(&failed.failure.kind, FailureKind::Refused(error)
        if supported(error).contains(&ProtocolVersion::LATEST))
}

/// True if `initialize` would fail, too, because the server cannot be reached.
fn is_final(failed: &FailedRequest) -> bool {
    matches!(&failed.failure.kind, FailureKind::Lost(lost) if !matches!(lost, Lost::Status(_)))
}

/// The failure of a handshake with a server that supports only these revisions.
fn unsupported(versions: &[ProtocolVersion]) -> CallFailure {
    let data = json!({ "supported": versions });
    let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
    let message = "the protocol revision is not supported";
    CallFailure::refused(ErrorData::new(code, message, Some(data)))
}

/// The supported revisions in the data of an error.
pub(crate) fn supported(error: &ErrorData) -> Vec<ProtocolVersion> {
    let supported = error.data.as_ref().and_then(|data| data.get("supported"));
    let supported = supported.and_then(|supported| serde_json::from_value(supported.clone()).ok());
    supported.unwrap_or_default()
}

/// True if the server does not support the requested revision.
pub(crate) fn is_unsupported(failed: &FailedRequest) -> bool {
    matches!(&failed.failure.kind, FailureKind::Refused(error)
        if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION)
}

/// The handshake of the newest revision.
async fn discover(session: &mut Session) -> Result<Agreed, FailedRequest> {
    session.agreed.version = ProtocolVersion::LATEST;
    let result = async {
        let request = Request::new(DISCOVER, json!({}));
        let greeting = read_greeting(&session.send(request, None).await?.0)?;
        let versions = greeting["supportedVersions"].clone();
        let versions: Vec<ProtocolVersion> = serde_json::from_value(versions)
            .map_err(|_| CallFailure::malformed("it lists no protocol revisions"))?;
        if !versions.contains(&ProtocolVersion::LATEST) {
            return Err(unsupported(&versions));
        }
        let info = &greeting["_meta"][SERVER_INFO];
        Ok(agreed(&greeting, info, ProtocolVersion::LATEST))
    };
    result.await.map_err(|failure| FailedRequest {
        method: DISCOVER,
        failure,
    })
}

/// The handshake of older revisions.
async fn initialize(
    session: &mut Session,
    fixed: Option<&ProtocolVersion>,
) -> Result<Agreed, FailedRequest> {
    let wanted = fixed.unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE);
    session.agreed.version = wanted.clone();
    let result = async {
        let params =
            InitializeRequestParams::new(capabilities(session.questions.offers), program());
        let params = params.with_protocol_version(wanted.clone());
        let request = ClientRequest::InitializeRequest(InitializeRequest::new(params));
        let greeting = read_greeting(&session.send(Request::of(request), None).await?.0)?;
        let version = serde_json::from_value(greeting["protocolVersion"].clone());
        let version: ProtocolVersion =
            version.map_err(|_| CallFailure::malformed("it names no protocol revision"))?;
        let is_known =
            version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(&version);
        if !is_known || fixed.is_some_and(|fixed| *fixed != version) {
            return Err(unsupported(&[version]));
        }
        Ok(agreed(&greeting, &greeting["serverInfo"], version))
    };
    result.await.map_err(|failure| FailedRequest {
        method: INITIALIZE,
        failure,
    })
}

fn read_greeting(result: &RawValue) -> Result<Value, CallFailure> {
    if result.get().len() > MAX_VALUE_BYTES {
        return Err(CallFailure::malformed("it is too long"));
    }
    let greeting: Value = serde_json::from_str(result.get()).unwrap_or_default();
    if greeting.is_object() {
        Ok(greeting)
    } else {
        Err(CallFailure::malformed("it is not an object"))
    }
}

/// Reads the result of a handshake leniently.
fn agreed(greeting: &Value, info: &Value, version: ProtocolVersion) -> Agreed {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let has = |pointer: &str| {
        let found = greeting["capabilities"].pointer(pointer);
        found.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
    };
    Agreed {
        version,
        title: text(&info["title"]),
        instructions: text(&greeting["instructions"]),
        tools: has("/tools"),
        tools_changes: has("/tools/listChanged"),
        logging: has("/logging"),
    }
}
