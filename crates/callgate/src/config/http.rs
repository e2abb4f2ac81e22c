//! `http` of `serve`: where MCP is served over HTTP, to whom, and how much of
//! it.

use std::net::SocketAddr;
use std::time::Duration;

use callgate_broker::{Origin, Source};
use jsonc_parser::ast::{Object, ObjectProp};
use jsonc_parser::common::Ranged as _;
use url::{Host, Url};

use super::error::ConfigErrorKind;
use super::keys::Keys;
use super::reader::{Reader, name_range};
use super::resource::{self, ResourceConfig};
use super::source::source;

/// Keys of `http`.
const HTTP: Keys = Keys {
    ours: &[
        "address",
        "allowedHosts",
        "allowedOrigins",
        "bearer",
        "oauth",
        "maxBody",
        "rate",
        "requestTime",
        "connections",
        "requests",
        "sessions",
        "sessionsPerUser",
        "sessionIdle",
        "shutdownTime",
    ],
    others: &[
        ("port", "write \"address\", such as \"127.0.0.1:8080\""),
        ("tls", "put a proxy with TLS before it; see docs/http.md"),
    ],
};

/// Keys of `rate`.
const RATE: Keys = Keys {
    ours: &["perSecond", "burst"],
    others: &[],
};

/// How MCP is served over HTTP. Begins with the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpConfig {
    /// `address`: where `--http` listens if it is given no address; port 0
    /// takes a free one. Default: none.
    pub address: Option<SocketAddr>,
    /// `allowedHosts`: names, or `name:port`, that a request's `Host` may have
    /// besides the address itself and, on loopback, `localhost`.
    pub allowed_hosts: Vec<String>,
    /// `allowedOrigins`: origins (`https://app.example.com`) whose pages may
    /// send requests, besides our own. Default: none.
    pub allowed_origins: Vec<String>,
    /// `bearer`: tokens, each under the name of whoever has it.
    pub bearer: Vec<(String, Source)>,
    /// `oauth`: whose access tokens are taken.
    pub oauth: Option<ResourceConfig>,
    /// `maxBody`: the largest body of a request, in bytes. Default: 4 MiB.
    pub max_body: u64,
    /// `requestTime`: how long a request's head, and then its body, may take to
    /// come, and a connection may wait for a request. Default: 30 s.
    pub request_time: Duration,
    /// `rate`: how many requests one identity may send.
    pub rate: RateConfig,
    /// `connections`: how many there may be at a time. Default: 1024. Further
    /// ones wait.
    pub connections: usize,
    /// `requests`: how many of one identity may be under way at a time, streams
    /// included. Default: 256. Over it: status 429.
    pub requests: usize,
    /// `sessions`: how many MCP sessions there may be. Default: 1024. Over it:
    /// status 503.
    pub sessions: usize,
    /// `sessionsPerUser`: how many of them may be one identity's. Default: 128.
    pub sessions_per_user: usize,
    /// `sessionIdle`: after how long without a message a session ends. Default:
    /// 30 minutes. A session in which a run reports progress is not idle.
    pub session_idle: Duration,
    /// `shutdownTime`: how long runs may go on when the process is told to end.
    /// Default: 10 s. After it they are cancelled, and their reports delivered.
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
    /// The names that whoever has a bearer token can have: those of `bearer`, and
    /// [`TOKEN_OF_ONE`], which a token has that the command line brings.
    pub fn token_names(&self) -> impl Iterator<Item = &str> + Clone {
        let named = self.bearer.iter().map(|(name, _)| name.as_str());
        let flag = (!named.clone().any(|name| name == TOKEN_OF_ONE)).then_some(TOKEN_OF_ONE);
        named.chain(flag)
    }
}

/// How many requests one identity may send; where there is none, one address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateConfig {
    /// `perSecond`: requests a second in the long run. Default: 500.
    pub per_second: u32,
    /// `burst`: requests at once. Default: 1000. Over it: status 429.
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

/// Reads `http`.
pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>, of: &str) -> HttpConfig {
    let mut http = HttpConfig::default();
    let Some(object) = reader.object(property, of) else {
        return http;
    };
    let what = format!("\"http\" in {of}");
    let what = what.as_str();
    for property in reader.properties(object, what, &HTTP) {
        match property.name.as_str() {
            "address" => http.address = reader.parsed(property, what, address),
            "allowedHosts" => http.allowed_hosts = words(reader, property, what, host),
            "allowedOrigins" => http.allowed_origins = words(reader, property, what, origin),
            "bearer" => http.bearer = bearer(reader, property, what),
            "oauth" => http.oauth = resource::read(reader, property, what),
            "maxBody" => set(&mut http.max_body, reader.size(property, what)),
            "requestTime" => set(&mut http.request_time, reader.duration(property, what)),
            "rate" => rate(reader, property, what, &mut http.rate),
            "connections" => set(&mut http.connections, count(reader, property, what)),
            "requests" => set(&mut http.requests, count(reader, property, what)),
            "sessions" => set(&mut http.sessions, count(reader, property, what)),
            "sessionsPerUser" => set(&mut http.sessions_per_user, count(reader, property, what)),
            "sessionIdle" => {
                set(&mut http.session_idle, reader.duration(property, what));
            }
            "shutdownTime" => {
                set(&mut http.shutdown_time, reader.duration(property, what));
            }
            _ => {}
        }
    }
    http
}

/// An address to listen on.
///
/// # Errors
///
/// What to write instead.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let named = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    named.parse().map_err(|_| {
        format!("{text:?} is no address to listen on; write an IP address and a port, such as \"127.0.0.1:8080\"")
    })
}

/// A name that `Host` may have, as it is compared: in lower case.
///
/// # Errors
///
/// What to write instead.
pub fn host(text: &str) -> Result<String, String> {
    let fits = Url::parse(&format!("http://{text}/")).is_ok_and(|url| {
        url.path() == "/"
            && url.username().is_empty()
            && url.password().is_none()
            && matches!(url.host(), Some(Host::Domain(name)) if !name.contains('*'))
            || matches!(url.host(), Some(Host::Ipv4(_) | Host::Ipv6(_)))
    });
    match fits && !text.contains(['/', '@', '?', '#']) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!(
            "{text:?} is no host; write a name, such as \"callgate.example.com\", or one with a port"
        )),
    }
}

/// An origin, as browsers write it.
///
/// # Errors
///
/// What to write instead.
pub fn origin(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
    });
    match url {
        Some(url) => Ok(url.origin().ascii_serialization()),
        None => Err(format!(
            "{text:?} is no origin; write scheme and host, such as \"https://app.example.com\""
        )),
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn count(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> Option<usize> {
    let count = reader.count(property, what)?;
    usize::try_from(count).ok()
}

/// Texts, each as `parse` has it.
pub(super) fn words(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    what: &str,
    parse: impl Fn(&str) -> Result<String, String>,
) -> Vec<String> {
    let mut words = Vec::new();
    let entry = format!("\"{}\" in {what}", property.name.as_str());
    for (text, range) in reader.strings(property, what) {
        let Some(text) = reader.expand(text, range, &entry) else {
            continue;
        };
        match parse(&text) {
            Ok(word) => words.push(word),
            Err(wrong) => reader.error(range, ConfigErrorKind::Value, format!("{entry}: {wrong}")),
        }
    }
    words
}

fn rate(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str, rate: &mut RateConfig) {
    let Some(object) = reader.object(property, what) else {
        return;
    };
    let what = format!("\"rate\" in {what}");
    for property in reader.properties(object, &what, &RATE) {
        let Some(count) = reader.count(property, &what) else {
            continue;
        };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        match property.name.as_str() {
            "perSecond" => rate.per_second = count,
            _ => rate.burst = count,
        }
    }
}

/// The name of whoever has the only token.
pub const TOKEN_OF_ONE: &str = "default";

/// The fewest bytes of a token: what is shorter can be guessed.
pub const LEAST_TOKEN: usize = 16;

/// One token, whose owner is named `default`, or several under their names.
fn bearer(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> Vec<(String, Source)> {
    let is_source = |object: &Object<'_>| {
        let mut keys = object.properties.iter();
        keys.any(|property| matches!(property.name.as_str(), "command" | "keyring"))
    };
    let object = match property.value.as_object() {
        Some(object) if !is_source(object) => object,
        _ => {
            let token = token(reader, property, what);
            return token
                .map(|token| (TOKEN_OF_ONE.to_owned(), token))
                .into_iter()
                .collect();
        }
    };
    let what = format!("\"bearer\" in {what}");
    reader.no_duplicates(object, &what);
    let mut tokens = Vec::new();
    for property in &object.properties {
        let name = property.name.as_str();
        if let Err(wrong) = identity_name(name) {
            let message = format!("{what}: {wrong}");
            reader.error(name_range(property), ConfigErrorKind::Key, message);
            continue;
        }
        if let Some(token) = token(reader, property, &what) {
            tokens.push((name.to_owned(), token));
        }
    }
    tokens
}

/// Where a token comes from. One that is looked up later is measured then.
fn token(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> Option<Source> {
    let token = source(reader, property, what)?;
    match &token.origin {
        Origin::Text(text) if text.len() < LEAST_TOKEN => {
            reader.error(
                property.value.range(),
                ConfigErrorKind::Value,
                format!(
                    "\"{}\" in {what} is a token of fewer than {LEAST_TOKEN} characters and could \
                     be guessed; take one such as `openssl rand -hex 32` gives",
                    property.name.as_str()
                ),
            );
            None
        }
        _ => Some(token),
    }
}

/// Whether somebody can have this name.
fn identity_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    match !name.is_empty() && name.len() <= 64 && name.chars().all(fits) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is no name for whoever has a token; use up to 64 letters, digits and . _ - @"
        )),
    }
}
