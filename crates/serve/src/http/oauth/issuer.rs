//! The authorization server: where its keys are, and when they are asked for.
//!
//! Keys are kept. They are asked for anew after an hour, and when a token names
//! one that is not known, but never more often than every ten seconds: whoever
//! makes names up costs the server nothing.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jsonwebtoken::Algorithm;
use serde::Deserialize;
use url::{Host, Url};

use super::keys::{self, Away, Key};

/// After this keys are asked for anew.
const FRESH: Duration = Duration::from_secs(3600);
/// After this keys that could not be asked for anew are used no more.
const OLD: Duration = Duration::from_secs(24 * 3600);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_secs(10);
/// How long one exchange may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest document, in bytes.
const MAX_DOCUMENT: usize = 256 << 10;
/// The most keys that a token without a key's name is tried with.
const MAX_TRIED: usize = 4;

/// An authorization server.
#[derive(Debug)]
pub(super) struct Issuer {
    name: String,
    url: Url,
    algorithms: Vec<Algorithm>,
    client: reqwest::Client,
    known: RwLock<Known>,
    /// The time between two attempts.
    pub(super) pause: Duration,
    /// Held by whoever asks; with when that was begun last, and what came of it.
    asking: tokio::sync::Mutex<Option<(Instant, Result<(), Away>)>>,
}

#[derive(Debug, Clone, Default)]
struct Known {
    keys: Arc<Vec<Key>>,
    since: Option<Instant>,
}

/// What is read of the metadata (RFC 8414, section 2).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Issuer {
    pub(super) fn new(name: &str, algorithms: &[String]) -> Result<Self, String> {
        let url = Url::parse(name).map_err(|error| format!("the issuer is no URL: {error}"))?;
        if !is_secure(&url) {
            return Err("the issuer must be an https URL (http on loopback only)".to_owned());
        }
        let algorithms: Result<Vec<Algorithm>, _> =
            algorithms.iter().map(|name| name.parse()).collect();
        let mut client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT);
        if is_loopback(&url) {
            client = client.no_proxy();
        }
        Ok(Self {
            name: name.to_owned(),
            algorithms: algorithms.map_err(|_| "an algorithm is not known".to_owned())?,
            client: client
                .build()
                .map_err(|error| error.without_url().to_string())?,
            url,
            known: RwLock::default(),
            pause: PAUSE,
            asking: tokio::sync::Mutex::default(),
        })
    }

    /// As its tokens have it in `iss`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// With what a token may be signed.
    pub(super) fn algorithms(&self) -> &[Algorithm] {
        &self.algorithms
    }

    /// The keys that a token may be signed with: none, if it names one that the
    /// server does not have.
    pub(super) async fn keys(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<Key>, Away> {
        let (fitting, age) = self.known(kid, algorithm);
        if !fitting.is_empty() && age.is_some_and(|age| age < FRESH) {
            return Ok(fitting);
        }
        // In a task: whoever comes, and goes away at once, must not have the
        // server asked again and again.
        let this = Arc::clone(self);
        let asked = tokio::spawn(async move { this.ask().await }).await;
        let asked = asked.unwrap_or_else(|_| Err(Away("it could not be asked".to_owned())));
        let (fitting, age) = self.known(kid, algorithm);
        match asked {
            Ok(()) => Ok(fitting),
            // Better keys of some hours ago than nobody let in.
            Err(_) if !fitting.is_empty() && age.is_some_and(|age| age < OLD) => Ok(fitting),
            Err(away) => Err(away),
        }
    }

    fn known(&self, kid: Option<&str>, algorithm: Algorithm) -> (Vec<Key>, Option<Duration>) {
        let known = self
            .known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let fitting = known.keys.iter().filter(|key| key.fits(kid, algorithm));
        let fitting = fitting.take(MAX_TRIED).cloned().collect();
        (fitting, known.since.map(|since| since.elapsed()))
    }

    /// Asks for the keys, unless that was done just now.
    async fn ask(&self) -> Result<(), Away> {
        let mut last = self.asking.lock().await;
        if let Some((at, outcome)) = &*last
            && at.elapsed() < self.pause
        {
            return outcome.clone();
        }
        let begun = Instant::now();
        let fetched = tokio::time::timeout(2 * TIMEOUT, self.fetch()).await;
        let fetched = fetched.unwrap_or_else(|_| Err("it does not answer in time".to_owned()));
        let outcome = match fetched {
            Ok(keys) => {
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                known.keys = Arc::new(keys);
                known.since = Some(begun);
                Ok(())
            }
            Err(why) => {
                tracing::warn!(
                    issuer = self.name,
                    why,
                    "the keys of the issuer cannot be had"
                );
                Err(Away(why))
            }
        };
        *last = Some((begun, outcome.clone()));
        outcome
    }

    async fn fetch(&self) -> Result<Vec<Key>, String> {
        let mut why = String::new();
        for url in self.metadata_urls() {
            let metadata = match self.get(url).await {
                Ok(document) => serde_json::from_slice::<Metadata>(&document),
                Err(error) => {
                    why = error;
                    continue;
                }
            };
            let Ok(metadata) = metadata else {
                "its metadata has no \"issuer\" or \"jwks_uri\"".clone_into(&mut why);
                continue;
            };
            // RFC 8414, section 3.3.
            if metadata.issuer != self.name {
                "its metadata is of another issuer".clone_into(&mut why);
                continue;
            }
            let keys = Url::parse(&metadata.jwks_uri).ok();
            let Some(keys) = keys.filter(|keys| self.may_reach(keys)) else {
                return Err("its keys are at no https URL".to_owned());
            };
            return keys::parse(&self.get(keys).await?, &self.algorithms);
        }
        Err(why)
    }

    /// Where the metadata may be, in the order of MCP 2026-07-28,
    /// "Authorization Server Metadata Discovery".
    fn metadata_urls(&self) -> Vec<Url> {
        let path = self.url.path().trim_end_matches('/');
        let oauth = format!("/.well-known/oauth-authorization-server{path}");
        let inserted = format!("/.well-known/openid-configuration{path}");
        let appended = format!("{path}/.well-known/openid-configuration");
        let mut paths = vec![oauth, inserted, appended];
        paths.dedup();
        let at = |path: String| {
            let mut url = self.url.clone();
            url.set_path(&path);
            url
        };
        paths.into_iter().map(at).collect()
    }

    fn may_reach(&self, url: &Url) -> bool {
        url.scheme() == "https" || (is_loopback(&self.url) && is_secure(url))
    }

    async fn get(&self, url: Url) -> Result<Vec<u8>, String> {
        let failed = |error: reqwest::Error| format!("it cannot be reached: {}", plain(&error));
        let mut response = self.client.get(url).send().await.map_err(failed)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(format!(
                "it answers with status {}",
                response.status().as_u16()
            ));
        }
        let mut document = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if chunk.len() > MAX_DOCUMENT - document.len() {
                return Err(format!("it answers with more than {MAX_DOCUMENT} bytes"));
            }
            document.extend_from_slice(&chunk);
        }
        Ok(document)
    }
}

/// The kind of failure, without a place.
fn plain(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it does not answer in time"
    } else if error.is_connect() {
        "there is no connection"
    } else {
        "the exchange failed"
    }
}

fn is_secure(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
