//! MCP over streamable HTTP: rmcp's transport over reqwest, with a layer that
//! takes results out of the stream as text (see [`crate::results`]).

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientJsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService};
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::value::to_raw_value;
use sse_stream::Sse;

use crate::client::Client;
use crate::error::StartErrorKind;
use crate::results::{Answer, Results};
use crate::secrets::Secrets;
use crate::spec::{EraSetting, Http, Revision};
use crate::stdio_old::{frame, woken};

/// POSTs in flight together on one connection. rmcp's own default would hold
/// the seventeenth call of a `Promise.all` back.
const CONCURRENT_POSTS: usize = 1024;
/// How long a TCP or TLS connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often, and after what pause, a broken result stream is resumed. A server
/// that is gone must not keep a call waiting.
const RESUME_TIMES: usize = 3;
const RESUME_PAUSE: Duration = Duration::from_millis(100);
/// How long the newest revision has to answer before the older handshake is
/// tried on a connection of its own.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(5);

/// Connects and shakes hands. Has no time limit of its own.
pub(crate) async fn connect(
    server: &Arc<str>,
    http: &Http,
    era: &EraSetting,
    results: &Arc<Results>,
    max_message_bytes: usize,
    secrets: &Secrets,
) -> Result<RunningService<RoleClient, Client>, StartErrorKind> {
    let endpoint = Endpoint::new(http, results, max_message_bytes)?;
    let explain = |error| explain(error, http, secrets);
    let serve = |mode, version| {
        let client = Client {
            server: Arc::clone(server),
            version,
        };
        rmcp::service::serve_client_with_lifecycle(client, endpoint.transport(), mode)
    };
    match era {
        EraSetting::Fixed(Revision(version)) if version.has_initialize() => {
            let service = serve(ClientLifecycleMode::Initialize, version.clone());
            let service = service.await.map_err(explain)?;
            let spoken = service
                .peer_info()
                .map(|info| info.protocol_version.clone());
            match spoken {
                Some(spoken) if spoken != *version => Err(StartErrorKind::NoCommonRevision {
                    wanted: version.to_string(),
                    offered: spoken.to_string(),
                }),
                _ => Ok(service),
            }
        }
        EraSetting::Fixed(Revision(version)) => {
            let mode = ClientLifecycleMode::Discover {
                preferred_versions: vec![version.clone()],
            };
            serve(mode, version.clone()).await.map_err(explain)
        }
        EraSetting::Auto => {
            let mode = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            };
            let newest = serve(mode, ProtocolVersion::LATEST);
            match tokio::time::timeout(DISCOVER_PATIENCE, newest).await {
                Ok(Ok(service)) => return Ok(service),
                Ok(Err(error)) if error.is_authorization_required() => return Err(explain(error)),
                Ok(Err(error)) => {
                    tracing::debug!(%server, reason = %explain(error), "falling back")
                }
                Err(_) => tracing::debug!(%server, "no answer to server/discover, falling back"),
            }
            serve(
                ClientLifecycleMode::Initialize,
                ProtocolVersion::LATEST_WITH_INITIALIZE,
            )
            .await
            .map_err(explain)
        }
    }
}

/// What a failed HTTP exchange says, without what must not be shown.
pub(crate) fn describe(error: &(dyn std::error::Error + 'static), secrets: &Secrets) -> String {
    // Each error of the chain tends to repeat the next one; the innermost says
    // it best ("connection refused").
    let mut innermost = error;
    loop {
        // rmcp does not call its client's error a source.
        let client = match innermost.downcast_ref::<Error>() {
            Some(StreamableHttpError::Client(client)) => Some(client as _),
            _ => None,
        };
        match client.or_else(|| innermost.source()) {
            Some(source) => innermost = source,
            None => break,
        }
    }
    secrets.message(&innermost.to_string())
}

fn explain(error: ClientInitializeError, http: &Http, secrets: &Secrets) -> StartErrorKind {
    let url = http.shown_url();
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        return StartErrorKind::Unauthorized { url };
    }
    match error {
        ClientInitializeError::JsonRpcError(error) => StartErrorKind::Refused {
            method: "initialize",
            code: i64::from(error.code.0),
            message: secrets.message(&error.message),
        },
        ClientInitializeError::NoCompatibleProtocolVersion {
            client_supported,
            server_supported,
        } => {
            let list = |versions: &[ProtocolVersion]| {
                let versions: Vec<_> = versions.iter().map(ProtocolVersion::as_str).collect();
                versions.join(", ")
            };
            StartErrorKind::NoCommonRevision {
                wanted: list(&client_supported),
                offered: list(&server_supported),
            }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            explain(*fallback, http, secrets)
        }
        ClientInitializeError::TransportError { error, .. } => {
            let reason = describe(error.error.as_ref(), secrets);
            StartErrorKind::Http { url, reason }
        }
        other => StartErrorKind::Http {
            url,
            reason: secrets.message(&other.to_string()),
        },
    }
}

struct Endpoint {
    client: RawHttp,
    url: Arc<str>,
    headers: HashMap<HeaderName, HeaderValue>,
    max_message_bytes: usize,
}

impl Endpoint {
    fn new(
        http: &Http,
        results: &Arc<Results>,
        max_message_bytes: usize,
    ) -> Result<Self, StartErrorKind> {
        let bad_url = |reason: &str| StartErrorKind::BadUrl {
            reason: reason.to_owned(),
        };
        let url = reqwest::Url::parse(&http.url)
            .map_err(|error| bad_url(&format!("{error}; write it as https://host/path")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad_url(
                "its scheme is neither http nor https; write it as https://host/path",
            ));
        }
        let mut headers = HashMap::new();
        for (name, value) in &http.headers {
            let bad = |reason: &str| StartErrorKind::BadHeader {
                name: name.clone(),
                reason: reason.to_owned(),
            };
            let parsed = HeaderName::from_str(name).map_err(|_| bad("its name is not allowed"))?;
            if [
                "accept",
                "mcp-session-id",
                "mcp-protocol-version",
                "last-event-id",
            ]
            .contains(&parsed.as_str())
            {
                return Err(bad("the protocol sets it itself; leave it out"));
            }
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| bad("its value has characters that headers cannot have"))?;
            value.set_sensitive(true);
            headers.insert(parsed, value);
        }
        let mut client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect could carry the headers to another host.
            .redirect(reqwest::redirect::Policy::none())
            // rmcp does so too: a pooled connection whose last body was not
            // read to its end stalls the next request.
            .pool_max_idle_per_host(0);
        if is_loopback(&url) {
            client = client.no_proxy();
        }
        let client = client
            .build()
            .map_err(|error| bad_url(&error.without_url().to_string()))?;
        Ok(Self {
            client: RawHttp {
                client,
                results: Arc::clone(results),
            },
            url: http.url.as_str().into(),
            headers,
            max_message_bytes,
        })
    }

    fn transport(&self) -> StreamableHttpClientTransport<RawHttp> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&self.url))
            .custom_headers(self.headers.clone())
            .max_concurrent_requests(CONCURRENT_POSTS)
            .max_sse_event_size(self.max_message_bytes);
        let mut resume = FixedInterval::default();
        resume.max_times = Some(RESUME_TIMES);
        resume.duration = RESUME_PAUSE;
        config.retry_config = Arc::new(resume);
        StreamableHttpClientTransport::with_client(self.client.clone(), config)
    }
}

fn is_loopback(url: &reqwest::Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse()
            .is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback()),
        None => false,
    }
}

/// reqwest as rmcp uses it, but for the results.
#[derive(Clone)]
struct RawHttp {
    client: reqwest::Client,
    results: Arc<Results>,
}

type Stream = BoxStream<'static, Result<Sse, SseError>>;
type Error = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl RawHttp {
    /// Takes the results out of a stream. `request` is the request whose answer
    /// it brings, if it was opened for one.
    fn keep_results(&self, stream: Stream, request: Option<RequestId>, max_bytes: usize) -> Stream {
        let results = Arc::clone(&self.results);
        let kept = stream.map(move |event| match event {
            Ok(mut event) => {
                if let Some(woken) = event.data.as_deref().and_then(|data| keep(data, &results)) {
                    event.data = Some(woken);
                }
                Ok(event)
            }
            Err(error) if is_too_large(&error) => {
                let woken = request
                    .as_ref()
                    .and_then(|id| too_large(id, &results, max_bytes));
                woken.ok_or(error)
            }
            // The URL, which may hold a secret, is in the error's debug form,
            // and rmcp logs that.
            Err(SseError::Body(error)) => Err(SseError::Body(error.to_string().into())),
            Err(error) => Err(error),
        });
        kept.boxed()
    }
}

fn is_too_large(error: &SseError) -> bool {
    // The type behind it is private to rmcp.
    matches!(error, SseError::Body(error) if error.to_string().contains("maximum size"))
}

/// The event that ends a call whose result is over the limit.
fn too_large(id: &RequestId, results: &Results, max_bytes: usize) -> Option<Sse> {
    if !results.arrived(id, Answer::TooLarge(max_bytes)) {
        return None;
    }
    let woken = serde_json::to_string(&woken(id.clone())).ok()?;
    Some(Sse::default().data(woken))
}

/// Keeps the result in `data` if somebody waits for it, and returns the message
/// to put in its place. Lists of tools pass through as well: rmcp looks in them
/// for arguments that it has to send as headers.
fn keep(data: &str, results: &Results) -> Option<String> {
    let message = frame(data.as_bytes())?;
    let (id, result) = (message.id?, message.result?);
    if message.method.is_some() || message.error.is_some() {
        return None;
    }
    if !results.arrived(&id, Answer::Result(result.to_owned())) || is_tool_list(result.get()) {
        return None;
    }
    serde_json::to_string(&woken(id)).ok()
}

fn is_tool_list(result: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct List {
        #[serde(rename = "tools")]
        _tools: serde::de::IgnoredAny,
    }
    serde_json::from_str::<List>(result).is_ok()
}

/// rmcp logs its client's errors, and a URL may hold a secret.
fn without_url(error: Error) -> Error {
    match error {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        other => other,
    }
}

impl StreamableHttpClient for RawHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let max = StreamableHttpClientTransportConfig::default().max_sse_event_size;
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            headers,
            max,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.results.expect(&message);
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let response = self
            .client
            .post_message_with_max_sse_event_size(
                uri,
                message,
                session_id,
                auth_header,
                headers,
                max_sse_event_size,
            )
            .await;
        let response = match (response, &request) {
            (Err(StreamableHttpError::ResponseBodyTooLarge { max_size }), Some(id))
                if self.results.arrived(id, Answer::TooLarge(max_size)) =>
            {
                return Ok(StreamableHttpPostResponse::Json(woken(id.clone()), None));
            }
            (response, _) => response.map_err(without_url)?,
        };
        Ok(match response {
            StreamableHttpPostResponse::Sse(stream, session_id) => {
                let stream = self.keep_results(stream, request, max_sse_event_size);
                StreamableHttpPostResponse::Sse(stream, session_id)
            }
            StreamableHttpPostResponse::Json(message, session_id) => {
                // rmcp has parsed this one already; back to text it goes.
                if let ServerJsonRpcMessage::Response(response) = &message
                    && self.results.expects(&response.id)
                {
                    let answer = match to_raw_value(&response.result) {
                        Ok(result) => Answer::Result(result),
                        Err(error) => Answer::Malformed(error.to_string()),
                    };
                    self.results.arrived(&response.id, answer);
                    if !matches!(response.result, ServerResult::ListToolsResult(_)) {
                        let woken = woken(response.id.clone());
                        return Ok(StreamableHttpPostResponse::Json(woken, session_id));
                    }
                }
                StreamableHttpPostResponse::Json(message, session_id)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        self.client
            .delete_session(uri, session_id, auth_header, headers)
            .await
            .map_err(without_url)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<Stream, Error> {
        let max = StreamableHttpClientTransportConfig::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            headers,
            max,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<Stream, Error> {
        let stream = self
            .client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                headers,
                max_sse_event_size,
            )
            .await
            .map_err(without_url)?;
        Ok(self.keep_results(stream, None, max_sse_event_size))
    }
}
