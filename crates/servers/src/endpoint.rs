//! Single exchanges with an HTTP endpoint: configured headers, redirects, authorization, body
//! limits.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use callgate_auth::{Authorization, Prompt, Refused, is_loopback};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use rmcp::model::{ErrorData, RequestId};
use tokio::sync::watch;

use crate::failure::{CallFailure, Lost, Reason};
use crate::http::SESSION;
use crate::json_rpc::{self, Envelope};
use crate::slot::Slot;
use crate::tap::Tap;

/// The time limit for opening a TCP or TLS connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that an unused connection is kept for the next request.
const KEEP_IDLE: Duration = Duration::from_secs(3);
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 3;
/// Repetitions of a refused request: the server may refuse the token first and its scope then.
const MAX_REFUSALS: usize = 2;
/// Bytes of an error's body.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Headers that the protocol sets.
const RESERVED: [&str; 7] = [
    "accept",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// An HTTP endpoint, the client for it, and the state of its session.
pub(crate) struct HttpEndpoint {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) authorization: Authorization,
    /// The host and port of the proxy that the environment names for the URL.
    proxy: Option<String>,
    pub(crate) tap: Arc<Tap>,
    /// Bytes of a message.
    pub(crate) limit: usize,
    /// True if the request for the session's own stream was answered.
    pub(crate) stream: watch::Sender<bool>,
    /// True if the stream has been open.
    pub(crate) has_stream: AtomicBool,
    /// The login at the time of the tool list. Requests with a different login need a new
    /// connection, because a different person may have different tools.
    pub(crate) login: OnceLock<Option<Arc<str>>>,
    /// True if the session replaces a refused one, and no call has succeeded since.
    pub(crate) is_renewed: Arc<AtomicBool>,
}

impl HttpEndpoint {
    /// Checks the configuration, without connecting.
    pub(crate) fn new(
        url: &str,
        headers: &BTreeMap<String, String>,
        authorization: Authorization,
        tap: Arc<Tap>,
        limit: usize,
        is_renewed: Arc<AtomicBool>,
    ) -> Result<Self, Reason> {
        let bad_url = |reason: &str| Reason::from(format!("its URL cannot be used: {reason}"));
        let url = Url::parse(url)
            .map_err(|error| bad_url(&format!("{error}; write it as https://host/path")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad_url(
                "its scheme is neither http nor https; write it as https://host/path",
            ));
        }
        let mut client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEP_ALIVE)
            .pool_idle_timeout(KEEP_IDLE)
            .redirect(redirects(authorization.clone()));
        let mut proxy = None;
        if is_loopback(&url) {
            client = client.no_proxy();
        } else {
            proxy = proxy_of(&url);
        }
        let client = client
            .build()
            .map_err(|error| bad_url(&innermost(&error.without_url())))?;
        Ok(Self {
            client,
            url,
            headers: configured(headers)?,
            authorization,
            proxy,
            tap,
            limit,
            stream: watch::Sender::new(false),
            has_stream: AtomicBool::new(false),
            login: OnceLock::new(),
            is_renewed,
        })
    }

    /// Sends a request and awaits the head of the response, of any status. A request that is
    /// refused for its authorization is sent again with a new token.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        own: HeaderMap,
        body: Bytes,
        prompt: Prompt,
        slot: Option<&Slot>,
    ) -> Result<Response, CallFailure> {
        let mut headers = self.headers.clone();
        headers.extend(own);
        let mut refusals = 0;
        loop {
            let bearer = waiting(slot, self.authorization.header(prompt)).await?;
            if let Some(login) = self.login.get()
                && *login != self.authorization.login_id()
            {
                let reason = "the login has changed since the tools were listed";
                self.tap.close(reason);
                return Err(CallFailure::closed(reason, false));
            }
            let has_login = bearer.is_some();
            match bearer.or_else(|| self.headers.get(AUTHORIZATION).cloned()) {
                Some(bearer) => drop(headers.insert(AUTHORIZATION, bearer)),
                None => drop(headers.remove(AUTHORIZATION)),
            }
            let request = self.client.request(method.clone(), self.url.clone());
            let request = request.headers(headers.clone()).body(body.clone());
            let response = request.send().await.map_err(|error| self.unsent(error))?;
            let status = response.status().as_u16();
            let sent = headers.get(AUTHORIZATION);
            if !matches!(status, 401 | 403) {
                sent.inspect(|sent| self.authorization.accepted(sent));
                return Ok(response);
            }
            let is_challenge = response.headers().contains_key(WWW_AUTHENTICATE);
            let is_about_login = is_challenge || status == 403 || has_login;
            if refusals == MAX_REFUSALS || (!is_about_login && self.may_be_forgotten(&headers)) {
                return Ok(response);
            }
            let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
            let challenges: Vec<_> = challenges.filter_map(|value| value.to_str().ok()).collect();
            let challenges = challenges.join(", ");
            let refused = Refused {
                status,
                challenge: Some(challenges).filter(|text| !text.is_empty()),
                sent: sent.cloned(),
                is_again: refusals > 0,
            };
            let refused = self.authorization.refused(refused, prompt);
            refusals += 1;
            if !waiting(slot, refused).await? {
                return Ok(response);
            }
        }
    }

    /// True if a 401 without a challenge may mean that the server has lost the session, in which
    /// it needed no login. In a new session it means a login.
    fn may_be_forgotten(&self, headers: &HeaderMap) -> bool {
        let is_first = !self.is_renewed.load(Ordering::Relaxed) || self.tap.closed().is_some();
        headers.contains_key(SESSION) && self.login.get().is_some() && is_first
    }

    /// The failure for a request without a response.
    fn unsent(&self, error: reqwest::Error) -> CallFailure {
        if error.is_redirect() {
            let kind = Lost::Status(StatusCode::TEMPORARY_REDIRECT.as_u16());
            let reason = self.tap.redact.message(&innermost(&error.without_url()));
            return CallFailure::lost(kind, reason, false);
        }
        let sent = !(error.is_connect() || error.is_builder());
        self.lost(error, sent)
    }

    fn lost(&self, error: reqwest::Error, sent: bool) -> CallFailure {
        let reason = self.tap.redact.message(&innermost(&error.without_url()));
        let reason = unreachable(&reason, self.proxy.as_deref());
        CallFailure::lost(Lost::Unreachable, reason, sent)
    }

    pub(crate) async fn read(
        &self,
        mut response: Response,
        limit: usize,
    ) -> Result<Vec<u8>, CallFailure> {
        let announced = response.content_length().unwrap_or(0);
        if usize::try_from(announced).unwrap_or(usize::MAX) > limit {
            return Err(CallFailure::too_large(limit));
        }
        let mut body = Vec::new();
        let broken = |error| self.lost(error, true);
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if body.len() + chunk.len() > limit {
                return Err(CallFailure::too_large(limit));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The JSON-RPC error in the body of a refusal, if there is one, and its id.
    pub(crate) async fn rpc_error(
        &self,
        response: Response,
    ) -> Option<(ErrorData, Option<RequestId>)> {
        let body = self.read(response, MAX_ERROR_BYTES).await.ok()?;
        let body = String::from_utf8_lossy(&body);
        let message = Envelope::read(json_rpc::bare(&body))?;
        // `{"error": "invalid_token"}` is not JSON-RPC.
        let error = message.error.filter(|error| error.get().starts_with('{'))?;
        let id = message.id.and_then(|id| json_rpc::read_id(id.get()));
        Some((json_rpc::read_error(error), id))
    }
}

/// Awaits an authorization. The slot shows meanwhile that the request waits for it.
async fn waiting<T>(slot: Option<&Slot>, authorized: impl Future<Output = T>) -> T {
    let set = |is_waiting| {
        if let Some(slot) = slot {
            slot.is_waiting.store(is_waiting, Ordering::Relaxed);
        }
    };
    set(true);
    let authorized = authorized.await;
    set(false);
    authorized
}

/// Follows only redirects that keep the method and the origin, so credentials go nowhere else.
fn redirects(authorization: Authorization) -> Policy {
    Policy::custom(move |attempt| {
        let (next, before) = (attempt.url(), attempt.previous());
        let is_own = before
            .last()
            .is_some_and(|before| before.origin() == next.origin());
        let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
        if before.len() > MAX_REDIRECTS {
            attempt.error(format!("it redirects more than {MAX_REDIRECTS} times"))
        } else if is_own && keeps_method && authorization.may_follow(next) {
            attempt.follow()
        } else {
            let (origin, path) = (next.origin().ascii_serialization(), next.path());
            let reason = format!(
                "it redirects to {origin}{path}, where credentials do not follow it; if that is \
                 right, make it the server's URL"
            );
            attempt.error(reason)
        }
    })
}

/// The host and port of the proxy for a URL, by the rules of the client.
fn proxy_of(url: &Url) -> Option<String> {
    let uri: Uri = url.as_str().parse().ok()?;
    let proxy = Matcher::from_system().intercept(&uri)?;
    let host = proxy.uri().host()?;
    Some(match proxy.uri().port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

/// Errors of TLS: a part of the text, what it means, and what to do.
const TLS_ERRORS: [(&str, &str, &str); 3] = [
    (
        "InvalidContentType",
        "it does not speak TLS at this address",
        "write http:// in its \"url\", or the port that speaks TLS",
    ),
    (
        "UnknownIssuer",
        "the authority (CA) of its certificate is not known here",
        "name the authority's certificate, a PEM file, in the environment variable SSL_CERT_FILE, \
         and the system's folder (/etc/ssl/certs) in SSL_CERT_DIR to keep the known authorities",
    ),
    (
        "CaUsedAsEndEntity",
        "its certificate is that of an authority (CA), and not of a server",
        "give the server a certificate that the authority has issued for it",
    ),
];

/// Why a server cannot be reached, and what to do if the cause is known.
fn unreachable(reason: &str, proxy: Option<&str>) -> Reason {
    let through = proxy.map(|proxy| format!(" through the proxy {proxy}"));
    let through = through.unwrap_or_default();
    let mut errors = TLS_ERRORS.iter();
    if let Some((_, meaning, advice)) = errors.find(|(part, ..)| reason.contains(part)) {
        let problem = format!("the server cannot be reached{through}: {meaning} ({reason})");
        return Reason::advise(&problem, advice);
    }
    let problem = format!("the server cannot be reached{through}: {reason}");
    if proxy.is_none() {
        return problem.into();
    }
    let advice = "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names the proxy; NO_PROXY names hosts to \
                  reach without it";
    Reason::advise(&problem, advice)
}

/// The innermost error of a chain, such as "connection refused".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn configured(values: &BTreeMap<String, String>) -> Result<HeaderMap, Reason> {
    let mut headers = HeaderMap::new();
    for (name, value) in values {
        let bad = |reason: &str| Reason::from(format!("header {name:?} cannot be sent: {reason}"));
        let parsed = HeaderName::from_str(name).map_err(|_| bad("its name is not allowed"))?;
        if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-param-") {
            return Err(bad("the protocol sets it itself; leave it out"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| bad("its value has characters that headers cannot have"))?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_error_contains_advice() {
        for (reason, meaning, advice) in [
            (
                "received corrupt message of type InvalidContentType",
                "does not speak TLS",
                "http://",
            ),
            (
                "invalid peer certificate: UnknownIssuer",
                "authority (CA)",
                "SSL_CERT_FILE",
            ),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "not of a server",
                "certificate",
            ),
        ] {
            let said = unreachable(reason, None).to_string();
            let parts = [reason, meaning, advice];
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }
}
