//! One endpoint: where it is, what it may be sent over, and how much and how long it may answer.

use std::fmt;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};
use url::{Host, Url};

use crate::error::{ErrorKind, ModelError};
use crate::key::Key;

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

/// An endpoint of an API, and how it is asked.
#[derive(Clone)]
pub struct Endpoint {
    client: Client,
    base: Url,
    origin: String,
    key: Option<Key>,
    timeout: Duration,
}

impl Endpoint {
    /// An endpoint by its base URL, such as `https://api.example.com/v1`, to
    /// which the API's path is added unless it ends with it. `timeout` is for one
    /// request with all its retries and the whole answer.
    /// The error: [`ErrorKind::Unfit`] for a URL that is neither `https` nor `http` on loopback,
    /// that holds a user name or a fragment, and for a key that no header can hold.
    pub fn new(url: &str, key: Option<Key>, timeout: Duration) -> Result<Self, ModelError> {
        let unfit =
            |origin: &str, message: &str| Err(ModelError::new(origin, ErrorKind::Unfit, message));
        let Ok(base) = Url::parse(url) else {
            return unfit(
                "",
                "this is not a URL; write one such as https://api.example.com/v1",
            );
        };
        let origin = base.origin().ascii_serialization();
        let local = is_loopback(&base);
        match base.scheme() {
            "https" => {}
            "http" if local => {}
            _ => return unfit(&origin, "the URL must be https, or http on loopback"),
        }
        if !base.username().is_empty() || base.password().is_some() {
            return unfit(&origin, "the URL holds a user name or password; use a key");
        }
        if base.fragment().is_some() {
            return unfit(&origin, "the URL has a fragment; remove it");
        }
        if key.as_ref().is_some_and(|key| bearer(key).is_err()) {
            return unfit(&origin, "the key holds characters that no header can hold");
        }
        let mut client = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        if local {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| {
            ModelError::new(&origin, ErrorKind::Unfit, error.without_url().to_string())
        })?;
        Ok(Self {
            client,
            base,
            origin,
            key,
            timeout,
        })
    }

    /// The whole URL. It holds no key.
    pub fn url(&self) -> &str {
        self.base.as_str()
    }

    pub(crate) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(&self.origin, kind, message)
    }

    /// The key as `Authorization: Bearer`.
    pub(crate) fn bearer(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(Ok(value)) = self.key.as_ref().map(bearer) {
            headers.insert(reqwest::header::AUTHORIZATION, value);
        }
        headers
    }

    pub(crate) fn key_in(&self, name: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(Ok(value)) = self.key.as_ref().map(|key| sensitive(key.as_str())) {
            headers.insert(HeaderName::from_static(name), value);
        }
        headers
    }

    /// Posts JSON to the API's path, again if the endpoint says that it is busy,
    /// and gives the JSON of a good answer of at most `max` bytes.
    pub(crate) async fn post(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: &Value,
        max: usize,
    ) -> Result<Value, ModelError> {
        let deadline = Instant::now() + self.timeout;
        let text = body.to_string();
        let mut wait = FIRST_WAIT;
        let mut attempt = 1;
        loop {
            let once = self.post_once(path, headers, text.clone(), max);
            let (error, asked) = match timeout_at(deadline, once).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failed)) => failed,
                Err(_elapsed) => return Err(self.late()),
            };
            let pause = asked.unwrap_or(wait);
            let again = attempt < ATTEMPTS
                && error.is_transient()
                && pause <= LONGEST_WAIT
                && Instant::now() + pause < deadline;
            if !again {
                return Err(error);
            }
            tracing::debug!(%error, attempt, "asking once more");
            sleep(pause).await;
            attempt += 1;
            wait *= 4;
        }
    }

    /// One request; with an error, how long the endpoint asks to wait.
    async fn post_once(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: String,
        max: usize,
    ) -> Result<Value, (ModelError, Option<Duration>)> {
        let request = self
            .client
            .post(self.at(path))
            .headers(headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let response = request
            .send()
            .await
            .map_err(|error| (self.broken(error), None))?;
        let status = response.status();
        if !status.is_success() {
            let wait = retry_after(response.headers());
            return Err((self.refused(status, response).await, wait));
        }
        let bytes = self
            .read(response, max)
            .await
            .map_err(|error| (error, None))?;
        serde_json::from_slice(&bytes).map_err(|_| {
            (
                self.error(ErrorKind::Malformed, "the answer is not JSON"),
                None,
            )
        })
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
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(error))? {
            if chunk.len() > max.saturating_sub(bytes.len()) {
                let message = format!("the answer has more than {max} bytes");
                return Err(self.error(ErrorKind::TooLarge, message));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// The error for a status, with a line of what the endpoint says.
    async fn refused(&self, status: StatusCode, response: Response) -> ModelError {
        let mut message = format!("it answered {}", status.as_u16());
        if let Some(reason) = status.canonical_reason() {
            message.push_str(&format!(" {reason}"));
        }
        if matches!(status.as_u16(), 401 | 403) {
            message.push_str("; is the key right?");
        } else if let Some(said) = self.said(response).await {
            message.push_str(&format!(": {said}"));
        }
        self.error(ErrorKind::Status(status.as_u16()), message)
    }

    /// What an error's body says: both APIs have `error.message`. Endpoints
    /// repeat parts of what they were sent, so the key is looked for.
    async fn said(&self, response: Response) -> Option<String> {
        let bytes = self.read(response, MAX_ERROR).await.ok()?;
        let body: Value = serde_json::from_slice(&bytes).ok()?;
        let said = body.pointer("/error/message").or_else(|| body.get("error"));
        let said = said.and_then(Value::as_str)?.to_owned();
        let said = match &self.key {
            Some(key) if !key.as_str().is_empty() => said.replace(key.as_str(), "…"),
            _ => said,
        };
        let plain = said.chars().map(|c| if c.is_control() { ' ' } else { c });
        Some(plain.take(MAX_SAID).collect())
    }

    fn broken(&self, error: reqwest::Error) -> ModelError {
        if error.is_timeout() {
            return self.late();
        }
        let message = if error.is_connect() {
            "cannot be reached"
        } else {
            "the connection broke"
        };
        self.error(ErrorKind::Unreachable, message)
    }

    fn late(&self) -> ModelError {
        let message = format!("gave no answer within {} ms", self.timeout.as_millis());
        self.error(ErrorKind::TimedOut, message)
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

fn bearer(key: &Key) -> Result<HeaderValue, reqwest::header::InvalidHeaderValue> {
    sensitive(&format!("Bearer {}", key.as_str()))
}

fn sensitive(text: &str) -> Result<HeaderValue, reqwest::header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The wait that the endpoint asks for, if it says so in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}
