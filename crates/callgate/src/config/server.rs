//! `mcpServers`: the entry of a server becomes a [`ServerSpec`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_auth::{Grant, OAuth, Origin, Source};
use callgate_servers::{Connect, EraSetting, Http, ServerSpec, Stdio, Transport};
use indexmap::IndexMap;
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use url::{ParseError, Url};

use super::expand::unreplaced;
use super::fields::{self, Switch};
use super::foreign::MAX_DESCRIPTION;
use super::itself::is_itself;
use super::settings::Config;
use super::tree::{Tree, get};
use super::units::parse_duration;

/// An entry of `mcpServers`: `command` for a program to start, or `url` for a server to connect to.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Server")]
pub(super) struct ServerKeys {
    /// The transport. Default: by `command` or `url`.
    // It holds the key that goes with the type.
    #[serde(rename = "type", deserialize_with = "key_of_type")]
    #[schemars(extend("enum" = ["stdio", "http", "streamable-http"]))]
    kind: Option<String>,
    /// The program: a name in `PATH`, or a path relative to the folder of this file.
    command: Option<String>,
    /// The arguments of `command`. Default: none.
    args: Vec<String>,
    /// Variables of `command` besides `PATH`, `HOME` and `CALLGATE_DEPTH`; each a text, or looked
    /// up. Default: none.
    env: BTreeMap<String, Source>,
    /// The folder that `command` starts in, relative to that of this file. Default: the current
    /// folder.
    #[serde(deserialize_with = "fields::path")]
    cwd: Option<PathBuf>,
    /// The `http` or `https` URL of a streamable HTTP endpoint.
    #[serde(deserialize_with = "url")]
    url: Option<String>,
    /// Headers of every request to `url`; values as in `env`. Default: none.
    headers: BTreeMap<String, Source>,
    /// The login at `url`: `false` for none, an object for its settings. Default: `true`.
    #[serde(deserialize_with = "oauth")]
    oauth: Option<Switch<OAuth>>,
    /// One line of at most 200 characters for lists of servers. Default: the server's own words.
    #[serde(deserialize_with = "description")]
    description: Option<String>,
    /// When the server is connected to. Default: `always`.
    connect: Connect,
    /// The time without calls until a `lazy` or `manual` server is disconnected, or `never`.
    /// Default: 5m.
    #[serde(deserialize_with = "idle")]
    #[schemars(with = "Option<String>")]
    idle: Option<Option<Duration>>,
    /// Turn the server off. Default: `false`.
    disabled: bool,
    /// Believe the server's `readOnlyHint`. Default: `false`.
    trusted: bool,
    /// Labels of the results of its tools. Default: none.
    #[serde(deserialize_with = "fields::labels")]
    labels: Vec<String>,
    /// The MCP revision, such as `2025-11-25`; `auto` to find it out. Default: `auto`.
    #[serde(deserialize_with = "protocol")]
    #[schemars(with = "String")]
    protocol: EraSetting,
    /// The time from the start until the tools are listed. Default: `30s`.
    start_timeout: Option<Duration>,
    /// The time of a call without an answer or progress. Default: `60s`.
    call_timeout: Option<Duration>,
    /// The time of a call in all. Default: `10m`.
    max_call_time: Option<Duration>,
}

/// Reads the name of a transport, which clients write in many ways, such as "streamableHttp".
/// Returns the key that goes with it.
fn key_of_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let plain = text.to_ascii_lowercase().replace(['-', '_', ' '], "");
    match plain.as_str() {
        "stdio" | "local" => Ok(Some("command".to_owned())),
        "http" | "streamablehttp" => Ok(Some("url".to_owned())),
        "sse" => Err(D::Error::custom(
            "is \"sse\", a transport that MCP deprecated in its version 2025-03-26; write \
             \"http\", and the server's streamable HTTP URL as \"url\"",
        )),
        _ => Err(D::Error::custom(format_args!(
            "is the unknown \"{text}\"; write \"stdio\" or \"http\""
        ))),
    }
}

/// Reads a URL. A message does not show it, for it may hold a key.
fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = match Url::parse(&text) {
        Err(error) if error != ParseError::RelativeUrlWithoutBase => {
            format!("is not a valid URL: {error}")
        }
        // The parser takes the first word of "localhost:3000/mcp" for a scheme.
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            if url.username().is_empty() && url.password().is_none() {
                return Ok(Some(text));
            }
            "holds a user name or password; write an \"Authorization\" header instead".to_owned()
        }
        _ => "must begin with https:// or http://".to_owned(),
    };
    Err(D::Error::custom(wrong))
}

/// Reads `oauth`.
fn oauth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Switch<OAuth>>, D::Error> {
    let oauth = Switch::<OAuth>::deserialize(deserializer)?;
    let Switch::Settings(login) = &oauth else {
        return Ok(Some(oauth));
    };
    let (id, secret) = (login.client_id.is_some(), login.client_secret.is_some());
    let missing = if secret && !id {
        "has a \"clientSecret\" and no \"clientId\"; write both"
    } else if secret && login.issuer.is_none() {
        "has a \"clientSecret\" and no \"issuer\"; write the issuer of the authorization server \
         that the secret is for"
    } else if login.grant == Grant::ClientCredentials && !secret {
        "has the grant of client credentials; write \"clientId\" and \"clientSecret\""
    } else {
        return Ok(Some(oauth));
    };
    Err(D::Error::custom(missing))
}

fn description<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = fields::plain(deserializer, "a string")?;
    let is_line = !text.contains(char::is_control) && !text.trim().is_empty();
    if !is_line || text.chars().count() > MAX_DESCRIPTION {
        let clause = format!("must be one line of at most {MAX_DESCRIPTION} characters");
        return Err(D::Error::custom(clause));
    }
    Ok(Some(text.trim().to_owned()))
}

fn protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EraSetting, D::Error> {
    let text = fields::plain(deserializer, "a string")?;
    text.parse()
        .map_err(|error| D::Error::custom(format_args!(": {error}")))
}

/// Reads a duration, or `never`.
fn idle<'de, D>(deserializer: D) -> Result<Option<Option<Duration>>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = fields::plain(deserializer, "a string such as \"5m\", or \"never\"")?;
    if matches!(text.as_str(), "never" | "none" | "0") {
        return Ok(Some(None));
    }
    let idle = parse_duration(&text).map(|idle| Some(Some(idle)));
    idle.map_err(|error| D::Error::custom(format_args!(": {error}, or write \"never\"")))
}

/// The sections of servers. The second one is the name that VS Code has for the first.
pub(super) const SECTIONS: [&str; 2] = ["mcpServers", "servers"];

/// Takes over the servers of a section, the names of disabled ones, and the labels of both.
pub(super) fn add(
    tree: &Tree<'_>,
    under: &str,
    servers: IndexMap<String, ServerKeys>,
    config: &mut Config,
) {
    for (name, server) in servers {
        let Some(member) = tree.member(&[under, &name]) else {
            continue;
        };
        let at = member.range.start;
        if name.is_empty() {
            tree.error(at, "a server's name is empty; give it one");
            continue;
        }
        if config.server_names().any(|known| known == name) {
            let message = format!("server \"{name}\" is also in \"mcpServers\"; remove one");
            tree.error(at, &message);
        }
        for label in &server.labels {
            config.flows.label_server(&name, label);
        }
        if server.disabled {
            config.disabled.push(name);
            continue;
        }
        warn_of_unreplaced(tree, &member.value);
        let spec = spec(tree, member, server, config.limits.reply_bytes);
        let transport = spec.as_ref().map(|spec| &spec.transport);
        if matches!(transport, Some(Transport::Stdio(it)) if is_itself(it, &config.path)) {
            let message = format!(
                "server \"{name}\" is Callgate itself with this configuration; it is left out"
            );
            tree.warning(at, &message);
            config.disabled.push(name);
        } else {
            config.servers.extend(spec);
        }
    }
}

/// Warns about forms of other programs for variables, which are passed on as they are.
fn warn_of_unreplaced(tree: &Tree<'_>, entry: &Value<'_>) {
    for key in ["command", "args", "env", "cwd", "url", "headers"] {
        let values: Vec<&Value<'_>> = match get(entry, key) {
            None => continue,
            Some(Value::Array(array)) => array.elements.iter().collect(),
            Some(Value::Object(object)) => {
                let members = object.properties.iter();
                members.map(|member| &member.value).collect()
            }
            Some(value) => vec![value],
        };
        for value in values {
            let Value::StringLit(text) = value else {
                continue;
            };
            // An argument with spaces may be a script of a shell, which has these forms itself.
            if key == "args" && text.value.contains(char::is_whitespace) {
                continue;
            }
            if let Some(form) = unreplaced(&text.value) {
                let ours = if form == "~/" {
                    "${userHome}/"
                } else {
                    "${NAME}"
                };
                let at = value.range().start;
                let key = tree.subject(at);
                let message = format!(
                    "{key} has the form \"{form}\", which is not replaced; write \"{ours}\""
                );
                tree.warning(at, &message);
            }
        }
    }
}

/// The keys that go with "command", and those that go with "url".
const OF_COMMAND: &[&str] = &["args", "env", "cwd"];
const OF_URL: &[&str] = &["headers", "oauth"];

/// Keeps the keys that a server is not started with from being read, since they need no variables:
/// of a disabled server all of them, else those of the other transport.
pub(super) fn leave_out_unused(tree: &Tree<'_>) {
    let sections = SECTIONS.into_iter();
    let sections = sections.filter_map(|under| tree.find(&[under])?.as_object());
    for entry in sections.flat_map(|section| &section.properties) {
        let server = &entry.value;
        let has = |key: &str| get(server, key).is_some();
        let disabled = get(server, "disabled").and_then(Value::as_boolean_lit);
        let unused = match (disabled, has("command"), has("url")) {
            (Some(it), ..) if it.value => [&["command", "url"], OF_COMMAND, OF_URL].concat(),
            (_, true, false) => OF_URL.to_vec(),
            (_, false, true) => OF_COMMAND.to_vec(),
            _ => Vec::new(),
        };
        let members = unused.iter().filter_map(|key| server.as_object()?.get(key));
        let starts = members.map(|member| (member.range.start, false));
        tree.left_out.borrow_mut().extend(starts);
    }
}

fn spec(
    tree: &Tree<'_>,
    member: &ObjectProp<'_>,
    mut server: ServerKeys,
    max_message_bytes: u64,
) -> Option<ServerSpec> {
    let entry = &member.value;
    let transport = match (server.command.take(), server.url.take()) {
        (Some(command), None) => stdio(tree, entry, &mut server, command),
        (None, Some(url)) => http(tree, entry, &mut server, url),
        (Some(_), Some(_)) => {
            let clause = "has both \"command\" and \"url\"; keep \"command\" for a program to \
                          start, or \"url\" for a server to connect to";
            tree.wrong(entry, clause);
            return None;
        }
        (None, None) => {
            // A misspelt "command" is not a missing one as well.
            if !tree.has_mistake(entry.range()) {
                let clause = match server.kind {
                    Some(key) => format!("has no \"{key}\", which its \"type\" needs; write it"),
                    None => "has neither \"command\" nor \"url\"; write \"command\" for a program \
                             to start, or \"url\" for a server to connect to"
                        .to_owned(),
                };
                tree.wrong(entry, &clause);
            }
            return None;
        }
    };
    let (of, others) = match &transport {
        Transport::Stdio(_) => ("command", OF_URL),
        Transport::Http(_) => ("url", OF_COMMAND),
    };
    for other in others.iter().filter_map(|key| get(entry, key)) {
        let at = other.range().start;
        let key = tree.subject(at);
        let message = format!("{key} does not go with \"{of}\"; remove it");
        tree.error_unless(tree.is_shared, at, &message);
    }
    if server.kind.is_some_and(|key| key != of) {
        let clause = format!("does not go with \"{of}\"; remove one of them");
        tree.wrong_at(entry, &["type"], &clause);
    }
    if server.idle.is_some() && server.connect == Connect::Always {
        let clause = "goes with \"connect\": \"lazy\" or \"manual\" only; remove it";
        tree.wrong_at(entry, &["idle"], clause);
    }
    let mut spec = ServerSpec::new(member.name.as_str(), transport);
    spec.max_message_bytes = usize::try_from(max_message_bytes).unwrap_or(usize::MAX);
    spec.trusted = server.trusted;
    spec.era = server.protocol;
    spec.start_timeout = server.start_timeout.unwrap_or(spec.start_timeout);
    spec.call_timeout = server.call_timeout.unwrap_or(spec.call_timeout);
    spec.max_call_time = server.max_call_time.unwrap_or(spec.max_call_time);
    spec.description = server.description;
    spec.connect = server.connect;
    spec.idle = server.idle.unwrap_or(spec.idle);
    Some(spec)
}

fn stdio(
    tree: &Tree<'_>,
    entry: &Value<'_>,
    server: &mut ServerKeys,
    command: String,
) -> Transport {
    if command.trim().is_empty() {
        let clause = "is empty; write the program to start";
        tree.wrong_at(entry, &["command"], clause);
    }
    let sources = std::mem::take(&mut server.env);
    let env = values(tree, entry, "env", sources, check_variable);
    let is_path = command.contains('/') || command.contains(std::path::MAIN_SEPARATOR);
    Transport::Stdio(Stdio {
        command: if is_path {
            let path = tree.variables.folder.join(command);
            path.to_string_lossy().into_owned()
        } else {
            command
        },
        args: std::mem::take(&mut server.args),
        env,
        secrets: secrets(tree.used_in(&[get(entry, "args"), get(entry, "env")])),
        cwd: server.cwd.take(),
    })
}

fn http(tree: &Tree<'_>, entry: &Value<'_>, server: &mut ServerKeys, url: String) -> Transport {
    let sources = std::mem::take(&mut server.headers);
    let mut names = sources.keys();
    let is_authorized = names.any(|name| name.eq_ignore_ascii_case("authorization"));
    let is_set = server.oauth.is_some();
    let mut oauth = server.oauth.take().unwrap_or_default().settings();
    if is_authorized && is_set && oauth.is_some() {
        let clause = "has \"oauth\" and an \"Authorization\" header; keep one";
        tree.wrong(entry, clause);
    }
    let headers = values(tree, entry, "headers", sources, check_header);
    // The host has to be seen in messages.
    let behind_host = url.splitn(4, '/').nth(3).unwrap_or_default();
    let mut used = tree.used_in(&[get(entry, "url")]);
    used.retain(|_, value| behind_host.contains(value.as_str()));
    used.extend(tree.used_in(&[get(entry, "headers")]));
    if let Some(secret) = oauth.as_mut().and_then(|it| it.client_secret.as_mut()) {
        secret.start_in(tree.variables.folder);
    }
    Transport::Http(Http {
        url,
        headers,
        secrets: secrets(used),
        oauth,
    })
}

/// The values of environment variables that may be secret. A place on this machine is not,
/// and messages need it.
fn secrets(mut used: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_place = |value: &str| {
        let path = Path::new(value);
        path.is_absolute() && path.exists()
    };
    used.retain(|name, value| name != "PATH" && name != "HOME" && !is_place(value));
    used
}

fn check_variable(name: &str, _value: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("is not a name for an environment variable; use letters, digits and _");
    }
    Ok(())
}

fn check_header(name: &str, value: &str) -> Result<(), &'static str> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err("is not a name for an HTTP header; use letters, digits and -");
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err("has a control character in its value, such as a line break; remove it");
    }
    Ok(())
}

/// The values of `env` or `headers`. `check` gets each name, and the part of the value that is
/// known.
fn values(
    tree: &Tree<'_>,
    entry: &Value<'_>,
    key: &str,
    mut sources: BTreeMap<String, Source>,
    check: impl Fn(&str, &str) -> Result<(), &'static str>,
) -> BTreeMap<String, Source> {
    for (name, source) in &mut sources {
        let known = match &source.origin {
            Origin::Text(text) => text,
            _ => &source.prefix,
        };
        if let Err(clause) = check(name, known) {
            tree.wrong_at(entry, &[key, name], clause);
        }
        source.start_in(tree.variables.folder);
    }
    sources
}
