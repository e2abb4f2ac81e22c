//! `serve`: how `callgate serve` serves, to whom, and what its clients see.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use callgate_auth::{Origin, Source, is_loopback};
use jsonc_parser::ast::{Object, Value};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use url::{Host, Url};

use super::fields;
use super::tree::Tree;
use super::users::UsersConfig;

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = serde_json::Value::deserialize(deserializer)?.as_f64();
    share
        .filter(is_share)
        .ok_or_else(|| D::Error::custom(format_args!(": {NO_SHARE}")))
}

/// `serve`: to whom it serves, and what clients see. Begins with the defaults.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ServeConfig {
    /// Ask the client about calls that the rules do not decide, if the client can ask a person
    /// (`elicitation`); otherwise the gate's asker is asked. Not in the file. Default: true.
    #[serde(skip)]
    pub asks: bool,
    /// `mode`: the tools of a client that does not choose itself. Default: [`ToolMode::Code`].
    pub mode: ToolMode,
    /// `context`: the context of the model, and the part of it for descriptions.
    pub context: ContextConfig,
    /// `toolsTtl`: how long clients without sessions may keep the list of tools. Default: 5
    /// minutes.
    pub tools_ttl: Duration,
    /// `wait`: how long a call waits for its script before it is answered that the script goes
    /// on. Default: 45 s, since clients commonly give up after 60.
    pub wait: Duration,
    /// `answerTime`: how long a question to a client's user waits for its answer. Default: 10
    /// minutes. Without an answer a client of 2025-11-25 has not answered; a newer client's parked
    /// run is cancelled.
    pub answer_time: Duration,
    /// `memory`: bytes that all scripts under way may take together. Default: half of the
    /// machine's memory, or of its control group's limit.
    #[serde(deserialize_with = "fields::memory")]
    pub memory: Option<u64>,
    /// `modes`: the modes that a client over HTTP may choose, besides `mode`. Default: all; none
    /// where there are flow rules, which see nothing outside of a script.
    pub modes: Option<Vec<ToolMode>>,
    /// `http`: how MCP is served over HTTP.
    pub http: HttpConfig,
    /// `users`: who may use what over HTTP.
    pub users: UsersConfig,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            asks: true,
            mode: ToolMode::default(),
            context: ContextConfig::default(),
            tools_ttl: Duration::from_secs(300),
            wait: Duration::from_secs(45),
            answer_time: Duration::from_secs(600),
            memory: None,
            modes: None,
            http: HttpConfig::default(),
            users: UsersConfig::default(),
        }
    }
}

/// `context` of `serve`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ContextConfig {
    /// `window`: the size of the model's context, in tokens. Default: 200,000.
    pub window: u64,
    /// `share`: the part of the context that the descriptions of tools may take, above 0 and at
    /// most 1. Default: 0.02.
    #[serde(deserialize_with = "share")]
    pub share: f64,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            window: 200_000,
            share: 0.02,
        }
    }
}

/// The tools that a client of `callgate serve` sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolMode {
    /// `run_script`, and the tools of search if its description does not declare all tools.
    #[default]
    Code,
    /// The tools that search and call tools one by one; no scripts.
    Discovery,
    /// The servers' own tools, passed through.
    Native,
}

impl ToolMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Code, Self::Discovery, Self::Native];

    /// The word for it in settings, on the command line, in headers and queries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Discovery => "discovery",
            Self::Native => "native",
        }
    }
}

impl fmt::Display for ToolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ToolMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| {
            // The sender gets it back: no more of it than a mode could be.
            let text: String = text.chars().take(40).collect();
            format!("{text:?} is not a mode; the modes are \"code\", \"discovery\" and \"native\"")
        })
    }
}

/// Reads a share of something: a number above 0 and at most 1.
///
/// # Errors
///
/// A text that says so, for any other text.
pub fn parse_share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse().ok();
    share.filter(is_share).ok_or(NO_SHARE)
}

fn is_share(share: &f64) -> bool {
    *share > 0.0 && *share <= 1.0
}

const NO_SHARE: &str = "a share is a number above 0 and at most 1, such as 0.02";

/// `http` of `serve`: MCP over HTTP. Begins with the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct HttpConfig {
    /// `address`: where `--http` listens if it is given no address; port 0
    /// takes a free one. Default: none.
    #[serde(deserialize_with = "address_of")]
    pub address: Option<SocketAddr>,
    /// `allowedHosts`: names, or `name:port`, that a request's `Host` may have
    /// besides the address itself and, on loopback, `localhost`.
    #[serde(deserialize_with = "hosts")]
    pub allowed_hosts: Vec<String>,
    /// `allowedOrigins`: origins (`https://app.example.com`) whose pages may
    /// send requests, besides our own. Default: none.
    #[serde(deserialize_with = "origins")]
    pub allowed_origins: Vec<String>,
    /// `bearer`: tokens, each under the name of its user.
    #[serde(deserialize_with = "fields::later")]
    pub bearer: Vec<(String, Source)>,
    /// `oauth`: the access tokens that are accepted.
    pub oauth: Option<ResourceConfig>,
    /// `maxBody`: the largest body of a request, in bytes. Default: 4 MiB.
    #[serde(deserialize_with = "fields::size")]
    pub max_body: u64,
    /// `requestTime`: how long a request's head, and then its body, may take to
    /// come, and a connection may wait for a request. Default: 30 s.
    pub request_time: Duration,
    /// `rate`: how many requests one identity may send.
    pub rate: RateConfig,
    /// `connections`: how many there may be at a time. Default: 1024. Further ones wait.
    pub connections: usize,
    /// `requests`: how many of one identity may be under way at a time, streams
    /// included. Default: 256. Over it: status 429.
    pub requests: usize,
    /// `sessions`: how many MCP sessions there may be. Default: 1024. Over it: status 503.
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
    /// The names of bearer tokens: those of `bearer`, and [`TOKEN_OF_ONE`], the name of a token
    /// of the command line.
    pub fn token_names(&self) -> impl Iterator<Item = &str> + Clone {
        let named = self.bearer.iter().map(|(name, _)| name.as_str());
        let flag = (!named.clone().any(|name| name == TOKEN_OF_ONE)).then_some(TOKEN_OF_ONE);
        named.chain(flag)
    }
}

/// The most requests of one identity, or of one address where there are no identities.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
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

/// The access tokens that are accepted (MCP 2026-07-28, "Authorization"): JWTs that one
/// authorization server signs for this resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ResourceConfig {
    /// `issuer`: the authorization server, as `iss` in its tokens has it.
    #[serde(deserialize_with = "secure_url")]
    pub issuer: String,
    /// `resource`: our own URL, for which clients request tokens. Default: the URL of the
    /// address, which works on loopback only.
    #[serde(default, deserialize_with = "secure_url")]
    pub resource: Option<String>,
    /// `audience`: `aud` of tokens. Default: the resource.
    #[serde(default, deserialize_with = "audience")]
    pub audience: Option<String>,
    /// `scopes`: all the scopes that a token must have. Default: none.
    #[serde(default, deserialize_with = "scopes")]
    pub scopes: Vec<String>,
    /// `algorithms`: the algorithms that tokens may be signed with. Default: all of [`ALGORITHMS`].
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
    address(&text)
        .map(Some)
        .map_err(|error| D::Error::custom(format_args!(": {error}")))
}

fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    fields::each(deserializer, host)
}

fn origins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    fields::each(deserializer, origin)
}

fn scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    fields::each(deserializer, scope)
}

fn algorithms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let algorithms = fields::each(deserializer, algorithm)?;
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

/// Reads an address to listen on.
///
/// # Errors
///
/// A text that says what to write instead.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let named = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    named.parse().map_err(|_| {
        format!(
            "{text:?} is not an address to listen on; write an IP address and a port, such as \
             \"127.0.0.1:8080\""
        )
    })
}

/// Reads a name for the `Host` header, in lower case, as it is compared.
///
/// # Errors
///
/// A text that says what to write instead.
pub fn host(text: &str) -> Result<String, String> {
    let fits = Url::parse(&format!("http://{text}/")).is_ok_and(|url| {
        url.path() == "/"
            && url.username().is_empty()
            && url.password().is_none()
            && matches!(url.host(), Some(Host::Domain(name)) if !name.contains('*'))
            || matches!(url.host(), Some(Host::Ipv4(_) | Host::Ipv6(_)))
    });
    if fits && !text.contains(['/', '@', '?', '#']) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(format!(
        "{text:?} is not a host; write a name, such as \"callgate.example.com\", or one with a port"
    ))
}

/// Reads an origin, as browsers write it.
///
/// # Errors
///
/// A text that says what to write instead.
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
            "{text:?} is not an origin; write scheme and host, such as \"https://app.example.com\""
        )),
    }
}

/// A scope, as it may stand in a header (RFC 6749, section 3.3).
fn scope(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    if !text.is_empty() && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{text:?} is not a scope; it must be one word of plain letters"
    ))
}

fn algorithm(text: &str) -> Result<String, String> {
    if ALGORITHMS.contains(&text) {
        return Ok(text.to_owned());
    }
    // With a symmetric one, who checks a token can also make one.
    let known = ALGORITHMS.join(", ");
    Err(format!("{text:?} is not accepted; write one of {known}"))
}

/// The name of the user of the only token.
pub const TOKEN_OF_ONE: &str = "default";

/// The fewest bytes of a token: a shorter one can be guessed.
pub const LEAST_TOKEN: usize = 16;

/// Reads one token, whose user is named `default`, or several under the names of their users.
pub(super) fn bearer(tree: &Tree<'_>, section: &Value<'_>) -> Vec<(String, Source)> {
    let is_source =
        |object: &Object<'_>| object.get("command").is_some() || object.get("keyring").is_some();
    if section.as_object().is_none_or(is_source) {
        let token = token(tree, section);
        return token
            .map(|token| (TOKEN_OF_ONE.to_owned(), token))
            .into_iter()
            .collect();
    }
    let mut tokens = Vec::new();
    for member in tree.members(section) {
        let name = member.name.as_str();
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            let clause = format!(
                ": {name:?} is not a name for a user; use up to 64 letters, digits and . _ - @"
            );
            tree.wrong(section, &clause);
        } else if let Some(token) = token(tree, &member.value) {
            tokens.push((name.to_owned(), token));
        }
    }
    tokens
}

/// Reads the source of a token. One that is looked up is measured when it is known.
fn token(tree: &Tree<'_>, value: &Value<'_>) -> Option<Source> {
    let token: Source = tree.read(value)?;
    if let Origin::Text(text) = &token.origin
        && text.len() < LEAST_TOKEN
    {
        let clause = format!(
            "is a token of fewer than {LEAST_TOKEN} characters and could be guessed; use one such \
             as `openssl rand -hex 32` prints"
        );
        tree.wrong(value, &clause);
    }
    Some(token.in_folder(tree.variables.folder))
}
