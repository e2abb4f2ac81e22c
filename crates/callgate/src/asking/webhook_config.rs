//! `asking.webhook`: the program that answers questions over HTTP.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use callgate_auth::{Source, is_loopback};
use hmac::{Hmac, KeyInit as _};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use sha2::Sha256;
use url::Url;

/// The start of a secret whose rest is Base64, as Standard Webhooks has it.
const ENCODED: &str = "whsec_";

/// The program that answers questions over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Webhook")]
#[non_exhaustive]
pub struct WebhookConfig {
    /// The URL that questions are posted to; `http` on loopback only. `${NAME}` is replaced.
    pub url: WebhookUrl,
    /// The secret that signs each request: `whsec_` with Base64, or a text of any other form.
    pub secret: Source,
    /// Send the call's arguments and the script's line, not only their hash and its number.
    /// Default: `true`.
    #[serde(default = "sends_arguments")]
    pub arguments: bool,
    /// The time after which a question is posted again if the answer was `later`. Default: `10s`.
    #[serde(default = "poll")]
    pub poll: Duration,
}

fn sends_arguments() -> bool {
    true
}

fn poll() -> Duration {
    Duration::from_secs(10)
}

impl WebhookConfig {
    /// False if the secret is known and has no key.
    pub(crate) fn may_have_key(&self) -> bool {
        let known = self.secret.known();
        known.is_none_or(|secret| signing_key(&secret).is_some())
    }
}

/// The key in a secret: the Base64 after `whsec_`, or else the text itself.
pub(super) fn signing_key(secret: &str) -> Option<Hmac<Sha256>> {
    let key = match secret.strip_prefix(ENCODED) {
        Some(encoded) => BASE64_STANDARD.decode(encoded).ok()?,
        None => secret.as_bytes().to_vec(),
    };
    if key.is_empty() {
        return None;
    }
    Hmac::new_from_slice(&key).ok()
}

/// The URL of a webhook. Its `Debug` form shows the origin alone, since the rest may hold a secret.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
pub struct WebhookUrl(#[schemars(with = "String")] pub(crate) Url);

impl<'de> Deserialize<'de> for WebhookUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |clause| Err(D::Error::custom(clause));
        let Ok(url) = Url::parse(&String::deserialize(deserializer)?) else {
            return wrong("is not a URL; write one such as https://policy.example.com/callgate");
        };
        if !(url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url)) {
            return wrong("must be https, or http on loopback");
        }
        Ok(Self(url))
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.origin().ascii_serialization())
    }
}
