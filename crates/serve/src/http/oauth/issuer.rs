//! The authorization server's keys (RFC 7517), fetched and kept.
//!
//! Keys are fetched again after an hour, and when a token names an unknown key, but at most every
//! ten seconds, so that invented names cost the server nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_auth::is_loopback;
use jsonwebtoken::Algorithm;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

/// After this time keys are fetched again.
const FRESH: Duration = Duration::from_secs(3600);
/// After this time, keys that could not be fetched again are no longer used.
const OLD: Duration = Duration::from_secs(24 * 3600);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_secs(10);
/// The time for one exchange.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest document, in bytes.
const MAX_DOCUMENT: usize = 256 << 10;
const MAX_KEYS: usize = 64;
/// The limit of keys that are tried for a token without a key id.
const MAX_TRIED: usize = 4;

#[derive(Debug)]
pub(crate) struct Issuer {
    /// The `iss` of its tokens.
    pub(crate) name: String,
    url: Url,
    /// The algorithms that tokens may be signed with.
    pub(super) algorithms: Vec<Algorithm>,
    client: reqwest::Client,
    known: RwLock<Known>,
    /// The time between two attempts.
    pub(super) pause: Duration,
    /// The last attempt. Locked during an attempt.
    last: tokio::sync::Mutex<Option<Attempt>>,
}

#[derive(Debug, Default)]
struct Known {
    keys: Vec<Jwk>,
    since: Option<Instant>,
}

/// An attempt to fetch keys: its start and its result.
type Attempt = (Instant, Result<(), String>);

/// The metadata (RFC 8414, section 2).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Issuer {
    pub(super) fn new(name: &str, algorithms: &[String]) -> Result<Self, String> {
        let url = Url::parse(name).map_err(|error| format!("the issuer is not a URL: {error}"))?;
        // The configuration accepts only known algorithms, and issuers at https or on loopback.
        let algorithms = algorithms.iter().filter_map(|name| name.parse().ok());
        let mut client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT);
        if is_loopback(&url) {
            client = client.no_proxy();
        }
        let client = client.build();
        Ok(Self {
            name: name.to_owned(),
            algorithms: algorithms.collect(),
            client: client.map_err(|error| error.without_url().to_string())?,
            url,
            known: RwLock::default(),
            pause: PAUSE,
            last: tokio::sync::Mutex::default(),
        })
    }

    /// The keys that a token may be signed with; empty if the server does not have the named key.
    pub(super) async fn keys(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<Jwk>, String> {
        let (fitting, age) = self.known(kid, algorithm);
        if !fitting.is_empty() && age < FRESH {
            return Ok(fitting);
        }
        // In a task, so that a client that disconnects does not interrupt the attempt.
        let this = Arc::clone(self);
        let refreshed = tokio::spawn(async move { this.refresh().await }).await;
        let refreshed = refreshed.unwrap_or_else(|_| Err("the request failed".to_owned()));
        let (fitting, age) = self.known(kid, algorithm);
        match refreshed {
            // Keys from some hours ago are still used.
            Err(away) if fitting.is_empty() || age >= OLD => Err(away),
            _ => Ok(fitting),
        }
    }

    /// The known keys that a token may be signed with, and the age of all of them.
    fn known(&self, kid: Option<&str>, algorithm: Algorithm) -> (Vec<Jwk>, Duration) {
        let is_named = |key: &Jwk| kid.is_none_or(|kid| key.common.key_id.as_deref() == Some(kid));
        let known = self.known.read();
        let fitting = known.keys.iter();
        let fitting = fitting.filter(|key| is_named(key) && verifies(key, algorithm));
        let age = known.since.map_or(Duration::MAX, |it| it.elapsed());
        (fitting.take(MAX_TRIED).cloned().collect(), age)
    }

    /// Fetches the keys, unless that was tried just now.
    async fn refresh(&self) -> Result<(), String> {
        let mut last = self.last.lock().await;
        if let Some((begun, outcome)) = &*last
            && begun.elapsed() < self.pause
        {
            return outcome.clone();
        }
        let begun = Instant::now();
        let fetched = tokio::time::timeout(2 * TIMEOUT, self.fetch()).await;
        let fetched = fetched.unwrap_or_else(|_| Err("it does not answer in time".to_owned()));
        let outcome = fetched.map(|keys| {
            *self.known.write() = Known {
                keys,
                since: Some(begun),
            };
        });
        if let Err(why) = &outcome {
            let issuer = &self.name;
            tracing::warn!(issuer, why, "the keys of the issuer cannot be fetched");
        }
        *last = Some((begun, outcome.clone()));
        outcome
    }

    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let mut why = String::new();
        for url in self.metadata_urls() {
            let document = match self.get(url).await {
                Ok(document) => document,
                Err(error) => {
                    why = error;
                    continue;
                }
            };
            let Ok(metadata) = serde_json::from_slice::<Metadata>(&document) else {
                "its metadata has no \"issuer\" or \"jwks_uri\"".clone_into(&mut why);
                continue;
            };
            // RFC 8414, section 3.3.
            if metadata.issuer != self.name {
                "its metadata is for a different issuer".clone_into(&mut why);
                continue;
            }
            let keys = Url::parse(&metadata.jwks_uri).ok();
            let Some(keys) = keys.filter(|keys| self.may_reach(keys)) else {
                return Err("the URL of its keys is not https".to_owned());
            };
            return self.parse(&self.get(keys).await?);
        }
        Err(why)
    }

    /// The usable keys of a document. Bad keys are ignored.
    fn parse(&self, text: &[u8]) -> Result<Vec<Jwk>, String> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document =
            serde_json::from_slice(text).map_err(|_| "its keys are not a JWK set".to_owned())?;
        let is_usable = |key: &Jwk| {
            let mut algorithms = self.algorithms.iter();
            algorithms.any(|algorithm| verifies(key, *algorithm))
        };
        let keys = document.keys.into_iter().take(MAX_KEYS);
        let keys = keys.filter_map(|key| serde_json::from_value(key).ok());
        let keys: Vec<Jwk> = keys.filter(is_usable).collect();
        if keys.is_empty() {
            return Err("it has no key for an accepted algorithm".to_owned());
        }
        Ok(keys)
    }

    /// The metadata's URLs, in the order of MCP 2026-07-28, "Authorization Server Metadata
    /// Discovery".
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
        url.scheme() == "https" || (is_loopback(&self.url) && is_loopback(url))
    }

    async fn get(&self, url: Url) -> Result<Vec<u8>, String> {
        let failed = |error: reqwest::Error| format!("it cannot be reached: {}", kind(&error));
        let mut response = self.client.get(url).send().await.map_err(failed)?;
        if response.status() != reqwest::StatusCode::OK {
            let status = response.status().as_u16();
            return Err(format!("it answers with status {status}"));
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

/// True if the type and the members of the key allow it to verify signatures of the algorithm. A
/// shared secret never does.
fn verifies(key: &Jwk, algorithm: Algorithm) -> bool {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let common = &key.common;
    let uses = common.public_key_use.as_ref();
    let operations = common.key_operations.as_ref();
    let named = common.key_algorithm.as_ref().map(ToString::to_string);
    let is_of_type = match &key.algorithm {
        AlgorithmParameters::RSA(_) => {
            matches!(algorithm, RS256 | RS384 | RS512 | PS256 | PS384 | PS512)
        }
        AlgorithmParameters::EllipticCurve(key) => matches!(
            (&key.curve, algorithm),
            (EllipticCurve::P256, ES256) | (EllipticCurve::P384, ES384)
        ),
        AlgorithmParameters::OctetKeyPair(key) => {
            key.curve == EllipticCurve::Ed25519 && algorithm == EdDSA
        }
        _ => false,
    };
    is_of_type
        && uses.is_none_or(|uses| *uses == PublicKeyUse::Signature)
        && operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify))
        && named.is_none_or(|named| named == format!("{algorithm:?}"))
}

/// The kind of a failure, without a URL.
fn kind(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it does not answer in time"
    } else if error.is_connect() {
        "there is no connection"
    } else {
        "the exchange failed"
    }
}
