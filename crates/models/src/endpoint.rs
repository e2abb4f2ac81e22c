//! One endpoint: its URL, the allowed transport, and the limits of its answers' size and time.

use std::fmt;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use url::{Host, Url};

use crate::error::{Kind, ModelError};

/// The time that a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 3;
/// The first wait between two of them; the next is four times it.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait that an endpoint may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The most bytes of an answer that is an error.
const MAX_ERROR: usize = 64 << 10;
/// The most characters of an endpoint's own message that an error repeats.
const MAX_SAID: usize = 200;

/// The revision of the Anthropic API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The API of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Api {
    /// `POST /chat/completions` and `POST /embeddings`, as of OpenAI.
    #[default]
    OpenAi,
    /// `POST /messages`, as of Anthropic.
    Anthropic,
}

/// An endpoint of an API, and how it is asked.
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
    /// An endpoint by its base URL, such as `https://api.example.com/v1`, to
    /// which the API's path is added unless it ends with it. `timeout` is for one
    /// request with all its retries and the whole answer.
    /// The error: for a URL that is neither `https` nor `http` on loopback, that holds a user
    /// name or a fragment, and for a key that no header can hold.
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
            let advice = "the URL holds a user name or password; use a key";
            return Err(unusable(advice));
        }
        if base.fragment().is_some() {
            return Err(unusable("the URL has a fragment; remove it"));
        }
        let headers = headers(api, key.as_deref());
        let unfit = "the key holds characters that no header can hold";
        let mut client = Client::builder()
            .default_headers(headers.ok_or_else(|| unusable(unfit))?)
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

    /// The whole URL. It holds no key.
    pub(crate) fn url(&self) -> &str {
        self.base.as_str()
    }

    /// The error about an answer that does not follow the API.
    pub(crate) fn malformed(&self, what: &str) -> ModelError {
        self.error(Kind::Unusable, format!("the answer {what}"))
    }

    fn error(&self, kind: Kind, message: String) -> ModelError {
        ModelError::new(&self.origin, kind, message)
    }

    /// Posts JSON to the API's path, again if the endpoint says that it is busy,
    /// and gives the JSON of a good answer of at most `max` bytes.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &Value,
        max: usize,
    ) -> Result<Value, ModelError> {
        let asked = self.ask(path, body.to_string(), max);
        timeout(self.timeout, asked).await.unwrap_or_else(|_| {
            let message = format!("gave no answer within {} ms", self.timeout.as_millis());
            Err(self.error(Kind::Late, message))
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
                Kind::Status(429 | 500.., asked) => asked.unwrap_or(wait),
                _ => return Err(error),
            };
            // The endpoint's own words say more than that the time was over.
            if pause > LONGEST_WAIT || Instant::now() + pause >= end {
                return Err(error);
            }
            tracing::debug!(%error, attempt, "asking once more");
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

    /// The error for a status, with a line of the endpoint's message.
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
        } else if let Some(said) = self.said(response).await {
            message.push_str(&format!(": {said}"));
        }
        self.error(kind, message)
    }

    /// The message in an error's body: both APIs have `error.message`. Endpoints
    /// repeat parts of what they were sent, so the key is looked for.
    async fn said(&self, response: Response) -> Option<String> {
        let bytes = self.read(response, MAX_ERROR).await.ok()?;
        let body: Value = serde_json::from_slice(&bytes).ok()?;
        let said = body.pointer("/error/message").or_else(|| body.get("error"));
        let mut said = said.and_then(Value::as_str)?.to_owned();
        if !self.key.is_empty() {
            said = said.replace(&self.key, "…");
        }
        let plain = said.chars().map(|c| if c.is_control() { ' ' } else { c });
        Some(plain.take(MAX_SAID).collect())
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

/// The headers of each request; `None` if the key fits in none.
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
