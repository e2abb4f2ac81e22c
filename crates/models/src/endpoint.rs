//! One endpoint: its URL and transport, and the limits of its answers.

use std::fmt;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use url::{Host, Url};

use crate::error::{Kind, ModelError};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 3;
/// Wait before the second attempt; each later wait is four times as long.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Maximum wait that an endpoint may request.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Maximum bytes of an error's body.
const MAX_ERROR: usize = 64 << 10;
/// Maximum characters of an endpoint's own message in an error.
const MAX_QUOTED: usize = 200;

/// The revision of the Anthropic API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The API of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Api {
    /// `POST /chat/completions` and `POST /embeddings`.
    #[default]
    OpenAi,
    /// `POST /messages`.
    Anthropic,
}

/// An endpoint of an API, with its key and time limit.
#[derive(Clone)]
pub struct Endpoint {
    client: Client,
    pub(crate) api: Api,
    base: Url,
    origin: String,
    key: String,
    timeout: Duration,
}

impl Endpoint {
    /// `url` is the base URL, such as `https://api.example.com/v1`, to which the API's path is added
    /// unless it ends with it. `timeout` is for one request with all its retries and the whole
    /// answer.
    ///
    /// # Errors
    ///
    /// The URL is neither `https` nor `http` on loopback, or has a user name or a fragment; or the
    /// key cannot be sent in a header.
    pub fn new(
        api: Api,
        url: &str,
        key: Option<String>,
        timeout: Duration,
    ) -> Result<Self, ModelError> {
        let unusable =
            |origin: &str, message: &str| ModelError::new(origin, Kind::Unusable, message);
        let base = Url::parse(url).map_err(|_| {
            let advice = "this is not a URL; write one such as https://api.example.com/v1";
            unusable("", advice)
        })?;
        let origin = base.origin().ascii_serialization();
        let unusable = |message: &str| unusable(&origin, message);
        let local = is_loopback(&base);
        if !(base.scheme() == "https" || base.scheme() == "http" && local) {
            return Err(unusable("the URL must be https, or http on loopback"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            let advice = "the URL has a user name or password; use a key";
            return Err(unusable(advice));
        }
        if base.fragment().is_some() {
            return Err(unusable("the URL has a fragment; remove it"));
        }
        let headers = headers(api, key.as_deref());
        let invalid = "the key has characters that a header cannot have";
        let mut client = Client::builder()
            .default_headers(headers.ok_or_else(|| unusable(invalid))?)
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        if local {
            client = client.no_proxy();
        }
        let client = client.build();
        let client = client.map_err(|error| unusable(&error.without_url().to_string()))?;
        Ok(Self {
            client,
            api,
            base,
            origin,
            key: key.unwrap_or_default(),
            timeout,
        })
    }

    /// The whole URL. It contains no key.
    pub(crate) fn url(&self) -> &str {
        self.base.as_str()
    }

    /// The error about an answer that does not follow the API.
    pub(crate) fn malformed(&self, fault: &str) -> ModelError {
        self.error(Kind::Unusable, format!("the answer {fault}"))
    }

    fn error(&self, kind: Kind, message: String) -> ModelError {
        ModelError::new(&self.origin, kind, message)
    }

    /// Posts JSON to the API's path, again if the endpoint is busy, and returns the JSON of a
    /// successful answer of at most `max` bytes.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &Value,
        max: usize,
    ) -> Result<Value, ModelError> {
        let asked = self.ask(path, body.to_string(), max);
        timeout(self.timeout, asked).await.unwrap_or_else(|_| {
            let message = format!("gave no answer within {} ms", self.timeout.as_millis());
            Err(self.error(Kind::Timeout, message))
        })
    }

    async fn ask(&self, path: &str, body: String, max: usize) -> Result<Value, ModelError> {
        let mut wait = FIRST_WAIT;
        let end = Instant::now() + self.timeout;
        for attempt in 1..ATTEMPTS {
            let error = match self.ask_once(path, body.clone(), max).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let pause = match error.kind {
                Kind::Unreachable => wait,
                Kind::Status(429 | 500.., requested) => requested.unwrap_or(wait),
                _ => return Err(error),
            };
            // The endpoint's own message is more useful than a timeout.
            if pause > MAX_WAIT || Instant::now() + pause >= end {
                return Err(error);
            }
            tracing::debug!(%error, attempt, "retrying the request");
            sleep(pause).await;
            wait *= 4;
        }
        self.ask_once(path, body, max).await
    }

    async fn ask_once(&self, path: &str, body: String, max: usize) -> Result<Value, ModelError> {
        let request = self.client.post(self.at(path)).body(body).send();
        let response = request.await.map_err(|error| self.broken(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let bytes = self.read(response, max).await?;
        serde_json::from_slice(&bytes).map_err(|_| self.malformed("is not JSON"))
    }

    /// The base with the path at its end.
    fn at(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let own = url.path().trim_end_matches('/').to_owned();
        if own.ends_with(path) {
            url.set_path(&own);
        } else {
            url.set_path(&format!("{own}{path}"));
        }
        url
    }

    async fn read(&self, mut response: Response, max: usize) -> Result<Vec<u8>, ModelError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.broken(&e))? {
            if chunk.len() > max.saturating_sub(bytes.len()) {
                return Err(self.malformed(&format!("has more than {max} bytes")));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// The error for a status, with the first part of the endpoint's message.
    async fn refused(&self, response: Response) -> ModelError {
        let status = response.status();
        let mut message = format!("it answered {}", status.as_u16());
        if let Some(reason) = status.canonical_reason() {
            message.push_str(&format!(" {reason}"));
        }
        let wait = response.headers().get(RETRY_AFTER);
        let wait = wait.and_then(|wait| wait.to_str().ok()?.trim().parse().ok());
        let kind = Kind::Status(status.as_u16(), wait.map(Duration::from_secs));
        if matches!(status.as_u16(), 401 | 403) {
            message.push_str("; is the key right?");
        } else if let Some(detail) = self.error_message(response).await {
            message.push_str(&format!(": {detail}"));
        }
        self.error(kind, message)
    }

    /// The message in an error's body: both APIs have `error.message`. Endpoints may repeat parts of
    /// the request, so the key is removed.
    async fn error_message(&self, response: Response) -> Option<String> {
        let bytes = self.read(response, MAX_ERROR).await.ok()?;
        let body: Value = serde_json::from_slice(&bytes).ok()?;
        let message = body.pointer("/error/message").or_else(|| body.get("error"));
        let mut message = message.and_then(Value::as_str)?.to_owned();
        if !self.key.is_empty() {
            message = message.replace(&self.key, "…");
        }
        let plain = message
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c });
        Some(plain.take(MAX_QUOTED).collect())
    }

    fn broken(&self, error: &reqwest::Error) -> ModelError {
        let message = if error.is_connect() {
            "cannot be reached"
        } else {
            "the connection broke"
        };
        self.error(Kind::Unreachable, message.to_owned())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("origin", &self.origin)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The headers of each request; `None` if the key cannot be sent in a header.
fn headers(api: Api, key: Option<&str>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if api == Api::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert("anthropic-version", version);
    }
    if let Some(key) = key {
        let bearer = format!("Bearer {key}");
        let text = if api == Api::Anthropic { key } else { &bearer };
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        match api {
            Api::OpenAi => headers.insert(AUTHORIZATION, value),
            Api::Anthropic => headers.insert("x-api-key", value),
        };
    }
    Some(headers)
}
