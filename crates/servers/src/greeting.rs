//! The greetings of both lifecycles, which agree on a protocol revision.

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

/// The time after which a server that ignores `server/discover` is greeted with `initialize`.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(2);
const DISCOVER_PATIENCE_HTTP: Duration = Duration::from_secs(5);
/// The newest revision's key for the server's program.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A request of a start that failed.
pub(crate) struct Unmet {
    pub(crate) method: &'static str,
    pub(crate) failure: CallFailure,
}

/// Agrees with a server on the newest revision that it speaks, or on the fixed one.
pub(crate) async fn greet(
    session: &mut Session,
    fixed: Option<&ProtocolVersion>,
    may_discover: bool,
) -> Result<(), Unmet> {
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

/// Asks for the newest revision by `server/discover`, then for the others by `initialize`.
async fn agree(
    session: &mut Session,
    fixed: Option<&ProtocolVersion>,
    may_discover: bool,
) -> Result<Agreed, Unmet> {
    let mut refused = None;
    if may_discover && fixed.is_none_or(|version| !version.has_initialize()) {
        let patience = match &session.http {
            _ if fixed.is_some() => Duration::MAX,
            Some(_) => DISCOVER_PATIENCE_HTTP,
            None => DISCOVER_PATIENCE,
        };
        match timeout(patience, discover(session)).await {
            Ok(Err(unmet)) if speaks_newest(&unmet) => return discover(session).await,
            Ok(Err(unmet)) if fixed.is_none() && !is_final(&unmet) => refused = Some(unmet),
            Ok(greeted) => return greeted,
            Err(_) => {}
        }
    }
    let unmet = match initialize(session, fixed).await {
        // Its answer to `server/discover` came too late.
        Err(unmet) if fixed.is_none() && speaks_newest(&unmet) => return discover(session).await,
        Err(unmet) => unmet,
        agreed => return agreed,
    };
    // A server that speaks only other revisions says best what is wrong.
    Err(refused.filter(is_unsupported).unwrap_or(unmet))
}

/// True if a server that fails so names the newest revision as one that it speaks.
fn speaks_newest(unmet: &Unmet) -> bool {
    matches!(&unmet.failure.kind, FailureKind::Refused(error)
        if supported(error).contains(&ProtocolVersion::LATEST))
}

/// True if a server that fails so would fail at another greeting, too: it is not reached.
fn is_final(unmet: &Unmet) -> bool {
    matches!(&unmet.failure.kind, FailureKind::Lost(lost) if !matches!(lost, Lost::Status(_)))
}

/// The failure of a greeting at a server that speaks only these revisions.
fn unsupported(versions: &[ProtocolVersion]) -> CallFailure {
    let data = json!({ "supported": versions });
    let code = ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
    let message = "another protocol revision";
    CallFailure::refused(ErrorData::new(code, message, Some(data)))
}

/// The revisions in the data of an unsupported-version error.
pub(crate) fn supported(error: &ErrorData) -> Vec<ProtocolVersion> {
    let supported = error.data.as_ref().and_then(|data| data.get("supported"));
    let supported = supported.and_then(|supported| serde_json::from_value(supported.clone()).ok());
    supported.unwrap_or_default()
}

/// True if the server does not speak the revision that it was asked for.
pub(crate) fn is_unsupported(unmet: &Unmet) -> bool {
    matches!(&unmet.failure.kind, FailureKind::Refused(error)
        if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION)
}

/// Greets a server of the newest revision.
async fn discover(session: &mut Session) -> Result<Agreed, Unmet> {
    session.agreed.version = ProtocolVersion::LATEST;
    let greeted = async {
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
    };
    greeted.await.map_err(|failure| Unmet {
        method: DISCOVER,
        failure,
    })
}

/// Greets a server of an older revision.
async fn initialize(
    session: &mut Session,
    fixed: Option<&ProtocolVersion>,
) -> Result<Agreed, Unmet> {
    let wanted = fixed.unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE);
    session.agreed.version = wanted.clone();
    let greeted = async {
        let params =
            InitializeRequestParams::new(capabilities(session.questions.offers), program());
        let params = params.with_protocol_version(wanted.clone());
        let request = ClientRequest::InitializeRequest(InitializeRequest::new(params));
        let said = read_greeting(&session.send(Request::of(request), None).await?.0)?;
        let version = serde_json::from_value(said["protocolVersion"].clone());
        let version: ProtocolVersion =
            version.map_err(|_| CallFailure::malformed("it names no protocol revision"))?;
        let is_known =
            version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(&version);
        if !is_known || fixed.is_some_and(|fixed| *fixed != version) {
            return Err(unsupported(&[version]));
        }
        Ok(agreed(&said, &said["serverInfo"], version))
    };
    greeted.await.map_err(|failure| Unmet {
        method: INITIALIZE,
        failure,
    })
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
        title: text(&info["title"]),
        instructions: text(&said["instructions"]),
        tools: has("/tools"),
        tools_changes: has("/tools/listChanged"),
        logging: has("/logging"),
    }
}
