//! The configuration of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use callgate_auth::{AuthError, Endpoint, OAuth, Redact, Source, url_secrets};
use futures::future::try_join_all;
use rmcp::model::ProtocolVersion;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use crate::caller::{Caller, NoCaller};
use crate::failure::Reason;
use crate::tool_list::ToolList;

/// Bytes that every message may have: a list of tools is longer than most results.
const MIN_MESSAGE_BYTES: usize = 1 << 20;

/// One server to start.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// The server's name in calls and messages, unique among the servers.
    pub name: String,
    /// The program or the endpoint.
    #[doc(hidden)]
    pub transport: Transport,
    /// The protocol revision to speak. Default: the newest that the server speaks.
    #[doc(hidden)]
    pub era: EraSetting,
    /// True if the server's hints about its tools (`readOnlyHint`) count in decisions. Default:
    /// false.
    pub trusted: bool,
    /// The time from the start until the tools are listed. Default: 30 s.
    pub start_timeout: Duration,
    /// The time limit of one `tools/call` without a result or progress. Default: 60 s.
    pub call_timeout: Duration,
    /// The total time limit of one `tools/call`. Default: 10 minutes.
    pub max_call_time: Duration,
    /// The maximum size of a tool result of the server, in bytes. Default: 64 MiB. Its other
    /// messages may have 1 MiB in any case.
    pub max_message_bytes: usize,
    /// The caller for requests that belong to no call; its offers are announced to the server.
    /// Default: [`NoCaller`].
    #[doc(hidden)]
    pub caller: Arc<dyn Caller>,
    /// The server's purpose, in one line. Default: none.
    pub description: Option<String>,
    /// When to connect the server. Default: at the start.
    #[doc(hidden)]
    pub connect: Connect,
    /// The time after which an unused server is disconnected, unless it is always connected; the
    /// next call connects it again. Default: 5 minutes.
    pub idle: Option<Duration>,
    /// The server's tool list from an earlier process, used until there is a newer one. Default:
    /// none.
    #[doc(hidden)]
    pub remembered: Option<Remembered>,
    /// The time to live of a tool list whose server does not name one. Default: 1 h.
    pub list_ttl: Duration,
}

/// When a server is connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Connect {
    /// At the start, and as long as it is enabled.
    #[default]
    Always,
    /// When it is called; at the start only if there is no remembered list, or an old one.
    Lazy,
    /// Not before it is enabled; then as `lazy`.
    Manual,
    /// Only for calls and requested lists, even without a remembered list. For hosts; not available
    /// in the configuration.
    #[serde(skip)]
    OnDemand,
}

/// A tool list from an earlier process.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// The list.
    pub list: Arc<ToolList>,
    /// The age of the list.
    pub age: Duration,
}

impl ServerSpec {
    /// A program to start with these arguments. Everything else has its default: the environment
    /// has only `PATH` and `HOME`.
    pub fn stdio(
        name: impl Into<String>,
        command: impl AsRef<Path>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let stdio = Stdio {
            command: command.as_ref().to_string_lossy().into_owned(),
            args: args.into_iter().map(Into::into).collect(),
            ..Stdio::default()
        };
        Self::new(name, Transport::Stdio(stdio))
    }

    /// A streamable HTTP endpoint. Everything else has its default.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let url = url.into();
        let http = Http {
            url,
            ..Http::default()
        };
        Self::new(name, Transport::Http(http))
    }

    /// Adds a variable of the program's environment, or a header of every request over HTTP.
    #[must_use]
    pub fn value(mut self, name: impl Into<String>, value: &str) -> Self {
        let values = match &mut self.transport {
            Transport::Stdio(stdio) => &mut stdio.env,
            Transport::Http(http) => &mut http.headers,
        };
        values.insert(name.into(), Source::text(value));
        self
    }

    /// A server with defaults for everything else.
    #[doc(hidden)]
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            era: EraSetting::default(),
            trusted: false,
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
            max_call_time: Duration::from_secs(600),
            max_message_bytes: 64 << 20,
            caller: Arc::new(NoCaller),
            description: None,
            connect: Connect::default(),
            idle: Some(Duration::from_secs(300)),
            remembered: None,
            list_ttl: Duration::from_secs(3_600),
        }
    }

    /// The time to live of this list while the server is not connected.
    #[doc(hidden)]
    pub fn list_ttl(&self, list: &ToolList) -> Duration {
        list.ttl.unwrap_or(self.list_ttl)
    }

    /// The endpoint for a login at this server. The error: [`AuthError`] if the server takes no
    /// login, or its URL is not valid.
    #[doc(hidden)]
    pub fn endpoint(&self) -> Result<Endpoint, AuthError> {
        let unfit = |reason: &str| Err(AuthError::no_login(&self.name, reason));
        let http = match &self.transport {
            Transport::Http(http) => http,
            Transport::Stdio(_) => {
                return unfit("it is a program to start; give it what it needs in \"env\"");
            }
        };
        if http.has_authorization() {
            return unfit("its \"Authorization\" header is configured; remove that to log in");
        }
        let Some(oauth) = &http.oauth else {
            return unfit("its \"oauth\" is false in the configuration; remove that to log in");
        };
        let url = Url::parse(&http.url)
            .map_err(|_| AuthError::settings(&self.name, "its URL is not valid"))?;
        Ok(Endpoint {
            server: self.name.clone(),
            url,
            oauth: oauth.clone(),
        })
    }

    /// The maximum size of a message, in bytes.
    pub(crate) fn message_bytes(&self) -> usize {
        self.max_message_bytes.max(MIN_MESSAGE_BYTES)
    }

    /// True if it is not connected at the start, but by the first call.
    pub(crate) fn starts_idle(&self) -> bool {
        let is_current = |it: &Remembered| it.age < self.list_ttl(&it.list);
        match self.connect {
            Connect::OnDemand => true,
            Connect::Lazy => self.remembered.as_ref().is_some_and(is_current),
            Connect::Always | Connect::Manual => false,
        }
    }
}

/// A program or an endpoint. `Debug` names variables and headers but shows no values, omits
/// arguments, and cuts a URL before its query, because all of these may hold secrets.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "each server has only one")]
pub enum Transport {
    /// A child process that speaks over its standard input and output.
    Stdio(Stdio),
    /// A streamable HTTP endpoint.
    Http(Http),
}

impl Transport {
    /// A redaction of the transport's secrets, without those that are looked up later.
    pub(crate) fn redact(&self) -> Redact {
        let mut values: Vec<(String, String)> = Vec::new();
        for (name, source) in self.sources() {
            let Some(value) = source.known() else {
                continue;
            };
            match (self, value.split_once(' ')) {
                (Self::Stdio(_), _) if name == "PATH" || name == "HOME" => continue,
                // Servers repeat a token without its scheme.
                (Self::Http(_), Some((_scheme, token))) => {
                    values.push((name.clone(), token.to_owned()));
                }
                _ => {}
            }
            values.push((name.clone(), value));
        }
        let (secrets, parts) = match self {
            Self::Stdio(stdio) => (&stdio.secrets, Vec::new()),
            Self::Http(http) => {
                if let Some((_, query)) = http.url.split_once('?') {
                    values.push(("URL query".to_owned(), query.to_owned()));
                }
                (&http.secrets, url_secrets(&http.url))
            }
        };
        for (name, value) in secrets.clone().into_iter().chain(parts) {
            // A secret that is also a whole value is shown by the value's name.
            if !values.iter().any(|(_, given)| *given == value) {
                values.push((name, value));
            }
        }
        Redact::new(values)
    }

    fn sources(&self) -> &BTreeMap<String, Source> {
        match self {
            Self::Stdio(stdio) => &stdio.env,
            Self::Http(http) => &http.headers,
        }
    }

    /// Looks up the values of the environment or the headers. `redact` then hides them.
    pub(crate) async fn look_up(
        &self,
        redact: &Redact,
    ) -> Result<BTreeMap<String, String>, Reason> {
        let looked_up = self.sources().iter().map(|(name, source)| async move {
            let value = match source.known() {
                Some(value) => value,
                None => {
                    let value = source.resolve(name, redact).await;
                    value.map_err(|error| format!("there is no value for {name:?}: {error}"))?
                }
            };
            if let (Self::Http(_), Some((_scheme, token))) = (self, value.split_once(' ')) {
                redact.learn(name, token).await;
            }
            Ok::<_, Reason>((name.clone(), value))
        });
        Ok(try_join_all(looked_up).await?.into_iter().collect())
    }
}

/// A child process to start.
#[derive(Clone, Default)]
pub struct Stdio {
    /// A program: a path, or a name looked up in `PATH`.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The whole environment, except for `PATH` and `HOME`, which default to the host's. Values are
    /// looked up at each start.
    pub env: BTreeMap<String, Source>,
    /// Other secrets, by the names that are shown instead: parts of the arguments or of the
    /// environment.
    pub secrets: BTreeMap<String, String>,
    /// The working directory. Default: the host's.
    pub cwd: Option<PathBuf>,
}

/// An HTTP endpoint to connect to.
#[derive(Clone)]
pub struct Http {
    /// An `http` or `https` URL.
    pub url: String,
    /// Headers sent with every request, such as `Authorization`. Values are looked up at each
    /// start.
    pub headers: BTreeMap<String, Source>,
    /// Other secrets, as in [`Stdio::secrets`]: parts of the URL or of headers.
    pub secrets: BTreeMap<String, String>,
    /// The settings of logins; `None` if the server takes no login. Default: whatever the server
    /// requires, with an existing login.
    pub oauth: Option<OAuth>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            url: String::new(),
            headers: BTreeMap::new(),
            secrets: BTreeMap::new(),
            oauth: Some(OAuth::default()),
        }
    }
}

impl Http {
    /// True if an `Authorization` header is configured.
    pub(crate) fn has_authorization(&self) -> bool {
        let mut names = self.headers.keys();
        names.any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// The URL for messages: without query and user information.
    pub(crate) fn shown_url(&self) -> String {
        let plain = self.url.split(['?', '#']).next().unwrap_or_default();
        match plain.split_once("://") {
            Some((scheme, rest)) => {
                let (authority, path) = match rest.find('/') {
                    Some(at) => rest.split_at(at),
                    None => (rest, ""),
                };
                let host = authority.rsplit('@').next().unwrap_or_default();
                format!("{scheme}://{host}{path}")
            }
            None => plain.to_owned(),
        }
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("command", &self.command)
            .field("env", &self.env)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("url", &self.shown_url())
            .field("headers", &self.headers)
            .field("oauth", &self.oauth)
            .finish_non_exhaustive()
    }
}

/// The protocol revision to speak with a server. Default: the newest that the server speaks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EraSetting(Option<ProtocolVersion>);

impl EraSetting {
    /// The configured revision.
    pub(crate) fn fixed(&self) -> Option<&ProtocolVersion> {
        self.0.as_ref()
    }
}

/// The name of a protocol revision that Callgate does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision {0:?}; write \"auto\" or one of {known}", known = known_revisions())]
pub struct UnknownRevision(String);

fn known_revisions() -> String {
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().rev();
    let known = known.map(|known| format!("{:?}", known.as_str()));
    known.collect::<Vec<_>>().join(", ")
}

impl FromStr for EraSetting {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
        match known.find(|known| known.as_str() == text) {
            Some(version) => Ok(Self(Some(version.clone()))),
            None if text == "auto" => Ok(Self(None)),
            None => Err(UnknownRevision(text.to_owned())),
        }
    }
}

impl fmt::Display for EraSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.fixed().map_or("auto", ProtocolVersion::as_str))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn debug_shows_no_secrets() {
        let mut spec = ServerSpec::new(
            "a",
            Transport::Stdio(Stdio {
                command: "npx".to_owned(),
                args: vec!["--token=hunter2".to_owned()],
                env: BTreeMap::from([("TOKEN".to_owned(), Source::text("hunter2"))]),
                secrets: BTreeMap::from([("KEY".to_owned(), "hunter2".to_owned())]),
                cwd: None,
            }),
        );
        let stdio = format!("{spec:?}");
        spec.transport = Transport::Http(Http {
            url: "https://me:hunter2@example.com/mcp?key=hunter2".to_owned(),
            headers: BTreeMap::from([
                ("Authorization".to_owned(), Source::text("hunter2")),
                ("X-Key".to_owned(), Source::command(["echo", "hunter2"])),
            ]),
            secrets: BTreeMap::from([("KEY".to_owned(), "hunter2".to_owned())]),
            oauth: Some(OAuth {
                client_secret: Some(Source::text("hunter2")),
                ..OAuth::default()
            }),
        });
        let http = format!("{spec:?}");
        assert!(
            !stdio.contains("hunter2") && !http.contains("hunter2"),
            "{stdio}{http}"
        );
        assert!(http.contains("https://example.com/mcp\""), "{http}");
    }

    #[test]
    fn era_setting_is_parsed() {
        for text in ["auto", "2026-07-28", "2025-11-25", "2024-11-05"] {
            assert_eq!(
                text.parse::<EraSetting>().map(|era| era.to_string()),
                Ok(text.to_owned())
            );
        }
        expect![[r#"unknown protocol revision "2020"; write "auto" or one of "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05""#]]
            .assert_eq(&"2020".parse::<EraSetting>().unwrap_err().to_string());
    }

    #[test]
    fn secret_parts_of_arguments_and_urls_are_redacted() {
        let map = |pairs: &[(&str, &str)]| {
            let owned = pairs.iter();
            let owned = owned.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            owned.collect::<BTreeMap<_, _>>()
        };
        let sources = |pairs: &[(&str, &str)]| {
            let sources = pairs.iter();
            let sources = sources.map(|(name, value)| ((*name).to_owned(), Source::text(*value)));
            sources.collect::<BTreeMap<_, _>>()
        };
        let stdio = Transport::Stdio(Stdio {
            args: vec!["--token=s3cr3t-token".to_owned()],
            env: sources(&[("DSN", "db://u:pa55word@h"), ("T", "s3cr3t-token")]),
            secrets: map(&[("A", "s3cr3t-token"), ("P", "pa55word"), ("N", "1")]),
            ..Stdio::default()
        });
        assert_eq!(
            stdio
                .redact()
                .redact("1 argv: --token=s3cr3t-token db://u:pa55word@h pa55word"),
            "1 argv: --token=[T] [DSN] [P]"
        );
        let http = Transport::Http(Http {
            headers: sources(&[("Authorization", "Bearer s3cr3t-token")]),
            url: "https://h/k-1234567/mcp?v=1&key=k-7654321".to_owned(),
            secrets: map(&[("IN_PATH", "k-1234567"), ("IN_QUERY", "k-7654321")]),
            ..Http::default()
        });
        assert_eq!(
            http.redact()
                .redact("/k-1234567/mcp?v=1&key=k-7654321 k-7654321 s3cr3t-token"),
            "/[IN_PATH]/mcp?[URL query] [IN_QUERY] [Authorization]"
        );
    }
}
