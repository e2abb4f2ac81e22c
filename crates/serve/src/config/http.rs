//! `http` of `serve`: MCP over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use callgate::config::Size;
use callgate::faces::Source;
use callgate_auth::is_loopback;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use url::Url;

use super::bearer::{self, TOKEN_OF_ONE};
use super::values::{self, InvalidValue};

/// `http` of `serve`: MCP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Http")]
pub struct HttpConfig {
    /// The IP address, or `localhost`, and the port where `--http` listens; port 0 takes a free
    /// one. Flag: `--http ADDRESS`. Default: none.
    #[serde(deserialize_with = "address_of")]
    #[schemars(with = "Option<String>")]
    pub address: Option<SocketAddr>,
    /// Names, or `name:port`, that a `Host` header may have besides the address and, on loopback,
    /// `localhost`. Flag: `--allowed-host`. Default: none.
    #[serde(deserialize_with = "hosts")]
    pub allowed_hosts: Vec<String>,
    /// Origins, such as `https://app.example.com`, whose pages may send requests. Flag:
    /// `--allowed-origin`. Default: none.
    #[serde(deserialize_with = "origins")]
    pub allowed_origins: Vec<String>,
    /// A token of at least 16 characters, or tokens by the names of their users; each a text, or
    /// looked up. Flag: `--bearer-env NAME`. Default: none.
    #[serde(deserialize_with = "bearer::read")]
    #[schemars(schema_with = "bearer::schema")]
    pub bearer: Vec<(String, Source)>,
    /// The access tokens that are accepted. Default: none.
    pub oauth: Option<ResourceConfig>,
    /// The URL of this server for other machines, without `/mcp`. With it, a question to the webhook
    /// has a link that answers it. Default: none.
    #[serde(deserialize_with = "public_url")]
    pub public_url: Option<String>,
    /// The largest body of a request. Default: `4MiB`.
    #[serde(deserialize_with = "Size::deserialize")]
    #[schemars(with = "Size")]
    pub max_body: u64,
    /// The time for a request's head (10 s at most), then for its body, and of a connection without
    /// a request. Default: `30s`.
    pub request_time: Duration,
    /// The rate of requests of one user, or of one address where there are no users.
    pub rate: RateConfig,
    /// Connections at a time; further ones wait. Default: `1024`.
    pub connections: usize,
    /// Requests and streams of one user at a time; over it, the status is 429. Default: `256`.
    pub requests: usize,
    /// MCP sessions in all; over it, the status is 503. Default: `1024`.
    pub sessions: usize,
    /// MCP sessions of one user. Default: `128`.
    pub sessions_per_user: usize,
    /// The life of a session without messages or progress. Default: `30m`.
    pub session_idle: Duration,
    /// The time that runs have at the end of the process. Then they are cancelled. Default: `10s`.
    pub shutdown_time: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            address: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            bearer: Vec::new(),
            oauth: None,
            public_url: None,
            max_body: 4 << 20,
            request_time: Duration::from_secs(30),
            rate: RateConfig::default(),
            connections: 1024,
            requests: 256,
            sessions: 1024,
            sessions_per_user: 128,
            session_idle: Duration::from_secs(30 * 60),
            shutdown_time: Duration::from_secs(10),
        }
    }
}

impl HttpConfig {
    /// The names of bearer tokens: those of `bearer`, and [`TOKEN_OF_ONE`], the name of a token
    /// of the command line.
    pub fn token_names(&self) -> impl Iterator<Item = &str> + Clone {
        let named = self.bearer.iter().map(|(name, _)| name.as_str());
        let flag = (!named.clone().any(|name| name == TOKEN_OF_ONE)).then_some(TOKEN_OF_ONE);
        named.chain(flag)
    }
}

/// The rate of requests of one user, or of one address where there are no users.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Rate")]
pub struct RateConfig {
    /// Requests per second in the long run. Default: `500`.
    pub per_second: u32,
    /// Requests at once; over it, the status is 429. Default: `1000`.
    pub burst: u32,
}

impl Default for RateConfig {
    fn default() -> Self {
        Self {
            per_second: 500,
            burst: 1000,
        }
    }
}

/// The access tokens that are accepted (MCP 2026-07-28, "Authorization"): JWTs that one
/// authorization server signs for this resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Resource")]
pub struct ResourceConfig {
    /// The authorization server, as `iss` in its tokens names it: an `https` URL (`http` on loopback
    /// only).
    #[serde(deserialize_with = "secure_url")]
    pub issuer: String,
    /// The URL of this server, for which clients request tokens. Default: the URL of the address,
    /// which works on loopback only.
    #[serde(default, deserialize_with = "secure_url")]
    pub resource: Option<String>,
    /// The `aud` of tokens. Default: the resource.
    #[serde(default, deserialize_with = "audience")]
    pub audience: Option<String>,
    /// The scopes that a token must have, all of them. Default: none.
    #[serde(default, deserialize_with = "scopes")]
    pub scopes: Vec<String>,
    /// The algorithms that tokens may be signed with: RS256 to RS512, PS256 to PS512, ES256, ES384,
    /// EdDSA. Default: all.
    #[serde(default = "all_algorithms", deserialize_with = "algorithms")]
    pub algorithms: Vec<String>,
}

/// The algorithms that a token may be signed with, all asymmetric.
pub const ALGORITHMS: [&str; 9] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
];

fn all_algorithms() -> Vec<String> {
    ALGORITHMS.map(str::to_owned).to_vec()
}

fn address_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    values::address(&text)
        .map(Some)
        .map_err(|error| D::Error::custom(format_args!(": {error}")))
}

fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, values::host)
}

fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, values::origin)
}

fn scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    each(deserializer, values::scope)
}

fn algorithms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let algorithms = each(deserializer, algorithm)?;
    if algorithms.is_empty() {
        return Err(D::Error::custom("is empty; leave \"algorithms\" out"));
    }
    Ok(algorithms)
}

fn audience<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let audience = String::deserialize(deserializer)?;
    Ok(Some(audience).filter(|audience| !audience.is_empty()))
}

/// Reads a URL that is `https`, or on loopback; without query, fragment or user.
fn secure_url<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<String>,
{
    let text = String::deserialize(deserializer)?;
    let is_secure =
        |url: &Url| url.scheme() == "https" || url.scheme() == "http" && is_loopback(url);
    let is_plain =
        |url: &Url| url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !Url::parse(&text).is_ok_and(|url| is_secure(&url) && is_plain(&url)) {
        return Err(D::Error::custom(
            "must be an https URL without query or fragment (http on loopback only)",
        ));
    }
    Ok(text.into())
}

fn public_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    secure_url(deserializer).map(Some)
}

fn algorithm(text: &str) -> Result<String, InvalidValue> {
    if ALGORITHMS.contains(&text) {
        return Ok(text.to_owned());
    }
    // Who can check a token with a symmetric algorithm can also make one.
    let known = ALGORITHMS.join(", ");
    Err(InvalidValue(format!(
        "{text:?} is not accepted; write one of {known}"
    )))
}

/// Reads an array of texts with `parse`.
fn each<'de, D: Deserializer<'de>>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<String, InvalidValue>,
) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parsed: Result<Vec<String>, InvalidValue> = texts.iter().map(|text| parse(text)).collect();
    parsed.map_err(|error| D::Error::custom(format_args!(": {error}")))
}
