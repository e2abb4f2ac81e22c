//! An endpoint as configured, and single exchanges with it: authorization,
//! redirects, and what may be said of a failure.

use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Client, Response, Url};
use rustc_hash::FxHashSet;
use tokio::sync::watch;
use tokio::time::timeout;

use super::posts::not_taken;
use crate::error::StartErrorKind;
use crate::link::{LinkError, LinkErrorKind};
use crate::listed::Decided;
use crate::spec::Http;
use callgate_auth::Redact;
use callgate_auth::{AuthError, Authorize, Prompt, Refused, TryAgain, is_loopback};

/// How long a TCP or TLS connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next request. Servers close theirs
/// after 5 s of quiet or more, and one that is being closed takes a request
/// along of which nobody knows whether it was read.
const KEEP_IDLE: Duration = Duration::from_secs(3);
/// How often a dead peer is looked for on a connection that says nothing.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// How many redirects within its own origin an endpoint may make.
const MAX_REDIRECTS: usize = 3;
/// How often a request is sent again because of what it was authorized with:
/// the token may be refused first and its scope then.
const MAX_CHALLENGES: usize = 2;
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

/// Where to send requests, and what goes with each.
#[derive(Debug)]
pub(crate) struct Endpoint {
    client: Client,
    url: Secret<Url>,
    headers: HeaderMap,
    authorize: Arc<dyn Authorize>,
    /// The requests that wait to be authorized, by their ids.
    waiting: Mutex<FxHashSet<u64>>,
    /// The last `Authorization` with which the server took a request.
    accepted: watch::Sender<Option<HeaderValue>>,
    secrets: Redact,
}

/// One request, and what is to be known of it.
pub(crate) struct Exchange<'a> {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) waits: Prompt,
    /// How long the server has to answer each time; what is done for a token does not count.
    pub(crate) limit: Option<Duration>,
    /// What it is known by to [`Endpoint::held_up`].
    pub(crate) id: Option<u64>,
    /// What the tool of this name was decided about as, if it is such a call.
    pub(crate) decided: Option<(&'a Decided, &'a str)>,
}

impl Exchange<'_> {
    /// One that has as long as it takes, and about which nothing was decided.
    pub(crate) fn new(method: Method, headers: HeaderMap, body: Bytes, waits: Prompt) -> Self {
        Self {
            method,
            headers,
            body,
            waits,
            limit: None,
            id: None,
            decided: None,
        }
    }
}

impl Endpoint {
    /// Checks the configuration; connects to nothing.
    pub(crate) fn new(
        http: &Http,
        authorize: Arc<dyn Authorize>,
        secrets: Redact,
    ) -> Result<Self, StartErrorKind> {
        let bad_url = |reason: &str| StartErrorKind::BadUrl {
            reason: reason.to_owned(),
        };
        let url = Url::parse(&http.url)
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
            // A redirect could carry the headers to another host.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&url) {
            client = client.no_proxy();
        }
        let client = client
            .build()
            .map_err(|error| bad_url(&innermost(&error.without_url())))?;
        Ok(Self {
            client,
            url: Secret(url),
            headers: configured(http)?,
            authorize,
            waiting: Mutex::default(),
            accepted: watch::Sender::default(),
            secrets,
        })
    }

    /// Tells when the server takes a request with another `Authorization` than before.
    pub(crate) fn watch_accepted(&self) -> watch::Receiver<Option<HeaderValue>> {
        self.accepted.subscribe()
    }

    /// The name of the login that requests go with now, where there is one.
    pub(crate) fn login(&self) -> Option<Arc<str>> {
        self.authorize.login_id()
    }

    /// Sends one request and waits for the headers of the answer, whatever its
    /// status. It may be sent again: with another token, if the server refused
    /// the one it had, and where the server redirects it to. One that was decided about is
    /// looked at after each wait for a token, which may take as long as a person does.
    pub(crate) async fn exchange(&self, exchange: Exchange<'_>) -> Result<Response, LinkError> {
        let Exchange {
            method,
            headers,
            body,
            waits,
            limit,
            id,
            decided,
        } = exchange;
        let mut all = self.headers.clone();
        all.extend(headers);
        let mut challenges = 0;
        loop {
            let held_up = self.hold_up(id);
            let bearer = self.authorize.header(waits).await?;
            drop(held_up);
            if let Some((decided, tool)) = decided {
                let still_is = match (self.login(), &bearer) {
                    // Without any, it is the server's to refuse, which says what is wanted.
                    (None, None) => decided.still_is(tool),
                    (login, _) => decided.still_is_with(login.as_deref(), tool),
                };
                still_is.map_err(LinkError::changed)?;
            }
            match bearer.or_else(|| self.headers.get(AUTHORIZATION).cloned()) {
                Some(bearer) => drop(all.insert(AUTHORIZATION, bearer)),
                // There was one, and it was taken back.
                None => drop(all.remove(AUTHORIZATION)),
            }
            let followed = self.follow(&method, &all, &body);
            let response = match limit {
                Some(limit) => timeout(limit, followed)
                    .await
                    .map_err(|_| not_taken(limit))??,
                None => followed.await?,
            };
            let refused = matches!(
                response.status(),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            );
            if !refused {
                self.accepts(all.get(AUTHORIZATION));
                return Ok(response);
            }
            let asked = response.headers().get_all(WWW_AUTHENTICATE).iter();
            let asked: Vec<_> = asked.filter_map(|value| value.to_str().ok()).collect();
            let asked = asked.join(", ");
            let refused = Refused {
                status: response.status().as_u16(),
                www_authenticate: Some(asked.as_str()).filter(|asked| !asked.is_empty()),
                sent: all.get(AUTHORIZATION),
                prompt: waits,
            };
            if challenges == MAX_CHALLENGES {
                self.authorize.refused_for_good(refused);
                return Ok(response);
            }
            challenges += 1;
            let held_up = self.hold_up(id);
            let again = self.authorize.refused(refused).await?;
            drop(held_up);
            if again == TryAgain::No {
                return Ok(response);
            }
        }
    }

    /// Why a request is not sent yet, if what it waits for is to be authorized.
    pub(crate) fn held_up(&self, id: u64) -> Option<AuthError> {
        let is = self.waiting().contains(&id);
        is.then(|| self.authorize.pending()).flatten()
    }

    fn hold_up(&self, id: Option<u64>) -> Option<HeldUp<'_>> {
        let id = id?;
        self.waiting().insert(id);
        Some(HeldUp { endpoint: self, id })
    }

    fn waiting(&self) -> MutexGuard<'_, FxHashSet<u64>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accepts(&self, sent: Option<&HeaderValue>) {
        let Some(sent) = sent else {
            return;
        };
        let is_other = self.accepted.send_if_modified(|accepted| {
            let is_other = accepted.as_ref() != Some(sent);
            if is_other {
                *accepted = Some(sent.clone());
            }
            is_other
        });
        if is_other {
            self.authorize.accepted(sent);
        }
    }

    /// What may be said of an exchange that broke off.
    pub(crate) fn broken(&self, error: reqwest::Error, sent: bool) -> LinkError {
        let reason = self.secrets.message(&innermost(&error.without_url()));
        LinkError {
            kind: LinkErrorKind::Unreachable,
            reason: format!("the server cannot be reached: {reason}"),
            sent,
        }
    }

    async fn follow(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response, LinkError> {
        let mut url = self.url.0.clone();
        for _ in 0..=MAX_REDIRECTS {
            let request = self
                .client
                .request(method.clone(), url.clone())
                .headers(headers.clone())
                .body(body.clone());
            let response = request.send().await.map_err(|error| {
                let sent = !(error.is_connect() || error.is_builder());
                self.broken(error, sent)
            })?;
            // 303 would turn a POST into a GET.
            if !matches!(response.status().as_u16(), 301 | 302 | 307 | 308) {
                return Ok(response);
            }
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|location| location.to_str().ok());
            let next = location.and_then(|location| url.join(location).ok());
            let status = response.status();
            let refused = |reason: String| LinkError {
                kind: LinkErrorKind::Status(status.as_u16()),
                reason: self.secrets.message(&reason),
                sent: false,
            };
            url = match next {
                Some(next) if next.origin() == url.origin() && self.authorize.may_follow(&next) => {
                    next
                }
                Some(next) => {
                    return Err(refused(format!(
                        "it redirects to {}, where credentials do not follow it; \
                         if that is right, make it the server's URL",
                        shown(&next)
                    )));
                }
                None => {
                    return Err(refused(format!(
                        "it answers with HTTP status {status} and no place to go"
                    )));
                }
            };
        }
        Err(LinkError {
            kind: LinkErrorKind::Status(StatusCode::LOOP_DETECTED.as_u16()),
            reason: format!("it redirects more than {MAX_REDIRECTS} times"),
            sent: false,
        })
    }
}

/// A request waits to be authorized as long as this is there.
struct HeldUp<'a> {
    endpoint: &'a Endpoint,
    id: u64,
}

impl Drop for HeldUp<'_> {
    fn drop(&mut self) {
        self.endpoint.waiting().remove(&self.id);
    }
}

/// A URL without the parts that may hold secrets.
fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// The innermost error of a chain: the outer ones repeat it, and it says it
/// best ("connection refused").
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn configured(http: &Http) -> Result<HeaderMap, StartErrorKind> {
    let mut headers = HeaderMap::new();
    for (name, value) in &http.headers {
        let bad = |reason: &str| StartErrorKind::BadHeader {
            name: name.clone(),
            reason: reason.to_owned(),
        };
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

/// Not shown by `Debug`.
struct Secret<T>(T);

impl<T> std::fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[not shown]")
    }
}
