//! `mcpServers`: the entry of a server becomes a [`ServerSpec`].

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use callgate_auth::{Grant, OAuth, Origin, Source, TokenPlace};
use callgate_policy::flow::FlowRules;
use callgate_policy::nearest;
use callgate_servers::{Connect, EraSetting, Http, ServerSpec, Stdio, Transport};
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny};
use url::{ParseError, Url};

use super::fields;
use super::foreign::MAX_DESCRIPTION;
use super::permissions;
use super::tree::{Tree, get};
use super::units::parse_duration;

/// An entry of `mcpServers`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Server {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    #[serde(rename = "env")]
    _env: IgnoredAny,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(rename = "headers")]
    _headers: IgnoredAny,
    #[serde(rename = "oauth")]
    _oauth: IgnoredAny,
    #[serde(deserialize_with = "description")]
    description: Option<String>,
    connect: Connect,
    #[serde(deserialize_with = "idle")]
    idle: Option<Option<Duration>>,
    disabled: bool,
    trusted: bool,
    #[serde(deserialize_with = "permissions::labels")]
    labels: Vec<String>,
    #[serde(deserialize_with = "protocol")]
    protocol: EraSetting,
    start_timeout: Option<Duration>,
    call_timeout: Option<Duration>,
    max_call_time: Option<Duration>,
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

/// The servers of a file.
#[derive(Default)]
pub(super) struct ServerList {
    pub(super) enabled: Vec<ServerSpec>,
    /// Names of disabled servers.
    pub(super) disabled: Vec<String>,
}

impl ServerList {
    /// The names of all servers.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let enabled = self.enabled.iter().map(|server| &server.name);
        enabled.chain(&self.disabled).map(String::as_str)
    }
}

/// Reads `mcpServers`, and the labels of servers into `flows`.
pub(super) fn read(
    tree: &Tree<'_>,
    section: &Value<'_>,
    servers: &mut ServerList,
    flows: &mut FlowRules,
) {
    for member in tree.members(section) {
        let name = member.name.as_str();
        if name.is_empty() {
            let message = "a server's name is empty; give it one";
            tree.error(member.range.start, message);
            continue;
        }
        if servers.names().any(|known| known == name) {
            let message = format!("server \"{name}\" is also in \"mcpServers\"; remove one");
            tree.error(member.range.start, &message);
        }
        if leave_out_disabled(tree, &member.value) {
            servers.disabled.push(name.to_owned());
        }
        let Some(server) = tree.read::<Server>(&member.value) else {
            continue;
        };
        for label in &server.labels {
            flows.label_server(name, label);
        }
        if !server.disabled {
            servers.enabled.extend(spec(tree, member, server));
        }
    }
}

/// Leaves out the texts of a disabled server, which needs no variables. Returns whether it is
/// disabled.
fn leave_out_disabled(tree: &Tree<'_>, server: &Value<'_>) -> bool {
    let Some(object) = server.as_object() else {
        return false;
    };
    let disabled = object.get_boolean("disabled");
    let disabled = disabled.is_some_and(|disabled| disabled.value);
    let members = object.properties.iter().filter(|member| {
        disabled && matches!(member.name.as_str(), "command" | "args" | "cwd" | "url")
    });
    let starts = members.map(|member| member.range.start);
    tree.left_out.borrow_mut().extend(starts);
    disabled
}

fn spec(tree: &Tree<'_>, member: &ObjectProp<'_>, server: Server) -> Option<ServerSpec> {
    let transport = match transport_kind(tree, member, &server)? {
        Kind::Stdio => stdio(tree, &member.value, &server),
        Kind::Http => http(tree, &member.value, &server)?,
    };
    let mut spec = ServerSpec::new(member.name.as_str(), transport);
    spec.trusted = server.trusted;
    spec.era = server.protocol;
    spec.start_timeout = server.start_timeout.unwrap_or(spec.start_timeout);
    spec.call_timeout = server.call_timeout.unwrap_or(spec.call_timeout);
    spec.max_call_time = server.max_call_time.unwrap_or(spec.max_call_time);
    spec.description = server.description;
    spec.connect = server.connect;
    spec.idle = server.idle.unwrap_or(spec.idle);
    if let Some(idle) = get(&member.value, "idle")
        && server.connect == Connect::Always
    {
        let clause = "goes with \"connect\": \"lazy\" or \"manual\" only; remove it";
        tree.wrong(idle, clause);
    }
    Some(spec)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
}

/// The transport of a server, by `type` and by its keys.
fn transport_kind(tree: &Tree<'_>, member: &ObjectProp<'_>, server: &Server) -> Option<Kind> {
    let value = &member.value;
    let wrong = |clause: &str| {
        let at = get(value, "type").unwrap_or(value).range().start;
        let server = tree.subject(value.range().start);
        tree.error(at, &format!("{server} {clause}"));
    };
    // Clients write one transport in many ways, such as "streamableHttp".
    let spelled = |text: &str| text.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let text = server.kind.as_deref().unwrap_or_default();
    let declared = match spelled(text).as_str() {
        "" if server.kind.is_none() => None,
        "stdio" | "local" => Some(Kind::Stdio),
        "http" | "streamablehttp" => Some(Kind::Http),
        "sse" => {
            wrong(
                "has \"type\": \"sse\", a transport that MCP deprecated in its version \
                 2025-03-26; write \"type\": \"http\" and the server's streamable HTTP URL",
            );
            return None;
        }
        _ => {
            let advice = match nearest(text, ["stdio", "http", "streamable-http"]) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => "write \"stdio\" or \"http\"".to_owned(),
            };
            let clause = format!("has the unknown type \"{text}\"; {advice}");
            wrong(&clause);
            return None;
        }
    };
    let (kind, of, foreign) = match (get(value, "command"), get(value, "url")) {
        (Some(_), Some(_)) => {
            wrong(
                "has both \"command\" and \"url\"; keep \"command\" for a program to start, or \
                 \"url\" for a server to connect to",
            );
            return None;
        }
        (None, None) => {
            // A misspelt "command" is not a missing one as well.
            if !tree.has_mistake(value.range()) {
                wrong(match declared {
                    None => {
                        "has neither \"command\" nor \"url\"; write \"command\" for a program \
                             to start, or \"url\" for a server to connect to"
                    }
                    Some(Kind::Stdio) => "has no \"command\"; write the program to start",
                    Some(Kind::Http) => "has no \"url\"; write the server's streamable HTTP URL",
                });
            }
            return None;
        }
        (Some(_), None) => (Kind::Stdio, "command", &["headers", "oauth"][..]),
        (None, Some(_)) => (Kind::Http, "url", &["args", "env", "cwd"][..]),
    };
    for foreign in foreign.iter().filter_map(|key| value.as_object()?.get(key)) {
        let of_server = tree.subject(value.range().start);
        let message = format!(
            "key \"{}\" in {of_server} does not go with \"{of}\"; remove it",
            foreign.name.as_str()
        );
        if tree.is_shared {
            tree.warning(foreign.range.start, &message);
        } else {
            tree.error(foreign.range.start, &message);
        }
    }
    if declared.is_some_and(|declared| declared != kind) {
        let clause = format!("has \"type\": \"{text}\" and \"{of}\"; remove one of them");
        wrong(&clause);
    }
    Some(kind)
}

fn stdio(tree: &Tree<'_>, entry: &Value<'_>, server: &Server) -> Transport {
    let command = server.command.clone().unwrap_or_default();
    if let Some(value) = get(entry, "command").filter(|_| server.command.is_some())
        && command.trim().is_empty()
    {
        let clause = "is empty; write the program to start";
        tree.wrong(value, clause);
    }
    let (args, env) = (get(entry, "args"), get(entry, "env"));
    let values = env
        .map(|env| values(tree, env, check_variable))
        .unwrap_or_default();
    let folder = tree.variables.folder;
    let is_path = command.contains('/') || command.contains(std::path::MAIN_SEPARATOR);
    Transport::Stdio(Stdio {
        command: if is_path {
            folder.join(command).to_string_lossy().into_owned()
        } else {
            command
        },
        args: server.args.clone(),
        env: values,
        secrets: secrets(tree.used_in(&[args, env])),
        cwd: server.cwd.as_ref().map(|cwd| folder.join(cwd)),
    })
}

fn http(tree: &Tree<'_>, entry: &Value<'_>, server: &Server) -> Option<Transport> {
    let headers = get(entry, "headers");
    let values = headers
        .map(|headers| values(tree, headers, check_header))
        .unwrap_or_default();
    let is_authorized = values
        .keys()
        .any(|name| name.eq_ignore_ascii_case("authorization"));
    let oauth = match get(entry, "oauth") {
        None => Some(OAuth::default()),
        Some(value) => {
            let oauth = login(tree, value)?;
            if is_authorized && oauth.is_some() {
                let message = format!(
                    "{} has \"oauth\" and an \"Authorization\" header; keep one",
                    tree.subject(entry.range().start)
                );
                tree.error(value.range().start, &message);
            }
            oauth
        }
    };
    let (url, value) = (server.url.clone()?, get(entry, "url")?);
    // The URL itself is not shown: it may hold a key.
    let wrong = match Url::parse(&url) {
        Err(error) if error != ParseError::RelativeUrlWithoutBase => {
            Some(format!("is not a valid URL: {error}"))
        }
        // The parser takes the first word of "localhost:3000/mcp" for a scheme.
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            let has_user = !url.username().is_empty() || url.password().is_some();
            let clause = "holds a user name or password; write an \"Authorization\" header instead";
            has_user.then(|| clause.to_owned())
        }
        _ => Some("must begin with https:// or http://".to_owned()),
    };
    if let Some(wrong) = wrong {
        tree.wrong(value, &wrong);
    }
    // The host has to be seen in messages.
    let behind_host = url.splitn(4, '/').nth(3).unwrap_or_default();
    let mut used = tree.used_in(&[Some(value)]);
    used.retain(|_, value| behind_host.contains(value.as_str()));
    used.extend(tree.used_in(&[headers]));
    Some(Transport::Http(Http {
        url,
        headers: values,
        secrets: secrets(used),
        oauth,
    }))
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

/// Reads `env` or `headers`. `check` gets each name, and the part of the value that is known.
fn values(
    tree: &Tree<'_>,
    section: &Value<'_>,
    check: impl Fn(&str, &str) -> Result<(), &'static str>,
) -> BTreeMap<String, Source> {
    let mut values = BTreeMap::new();
    for member in tree.members(section) {
        let name = member.name.as_str();
        let Some(source) = source(tree, &member.value) else {
            continue;
        };
        let known = match &source.origin {
            Origin::Text(text) => text,
            _ => &source.prefix,
        };
        if let Err(clause) = check(name, known) {
            tree.wrong(&member.value, clause);
        }
        values.insert(name.to_owned(), source);
    }
    values
}

/// A value that is looked up.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LookUp {
    command: Option<Vec<String>>,
    #[serde(default)]
    timeout: Option<Duration>,
    keyring: Option<Keyring>,
    #[serde(default)]
    prefix: String,
}

/// An entry of the system's keyring.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keyring {
    service: String,
    account: String,
}

/// Reads one value: a text, or an object that says where to look it up.
pub(super) fn source(tree: &Tree<'_>, value: &Value<'_>) -> Option<Source> {
    let wrong = |clause| tree.wrong(value, clause);
    match value {
        Value::StringLit(_) => {
            return tree.read::<String>(value).map(Source::text);
        }
        Value::Object(_) => {}
        _ => {
            tree.wrong_type(
                value,
                "a string, or an object with \"command\" or \"keyring\"",
            );
            return None;
        }
    }
    let look_up: LookUp = tree.read(value)?;
    let origin = match (look_up.command, look_up.keyring) {
        (Some(mut command), None) => {
            let folder = tree.variables.folder;
            match command.first_mut() {
                Some(program) if program.contains('/') => {
                    *program = folder.join(&*program).to_string_lossy().into_owned();
                }
                Some(program) if !program.trim().is_empty() => {}
                _ => {
                    let clause = "is empty; write the program and its arguments";
                    let command = get(value, "command").unwrap_or(value);
                    tree.wrong(command, clause);
                }
            }
            let mut origin = Source::command(command).origin;
            if let Origin::Command { cwd, timeout, .. } = &mut origin {
                *cwd = Some(folder.to_owned());
                *timeout = look_up.timeout.unwrap_or(*timeout);
            }
            origin
        }
        (None, Some(keyring)) => {
            if let Some(timeout) = get(value, "timeout") {
                let clause = "does not go with \"keyring\"; remove it";
                tree.wrong(timeout, clause);
            }
            Source::keyring(keyring.service, keyring.account).origin
        }
        (Some(_), Some(_)) => {
            wrong("has both \"command\" and \"keyring\"; keep one");
            return None;
        }
        (None, None) => {
            if !tree.has_mistake(value.range()) {
                wrong("has neither \"command\" nor \"keyring\"; write where its value comes from");
            }
            return None;
        }
    };
    let mut source = Source::new(origin);
    source.prefix = look_up.prefix;
    Some(source)
}

/// `oauth` of a server.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Login {
    client_id: Option<String>,
    issuer: Option<String>,
    #[serde(rename = "clientSecret")]
    _client_secret: IgnoredAny,
    #[serde(deserialize_with = "client_metadata_url")]
    client_metadata_url: Option<String>,
    #[serde(deserialize_with = "fields::plain_texts")]
    scopes: Vec<String>,
    grant: Grant,
    redirect_port: Option<u16>,
    tokens: TokenPlace,
}

fn client_metadata_url<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    match Url::parse(&text) {
        Ok(url) if url.scheme() == "https" && url.path() != "/" => Ok(Some(text)),
        _ => Err(D::Error::custom("must be an https URL with a path")),
    }
}

/// Reads `oauth`: `None` inside for a login that is switched off, `None` outside for a
/// mistake, which is reported.
fn login(tree: &Tree<'_>, value: &Value<'_>) -> Option<Option<OAuth>> {
    match value {
        Value::BooleanLit(on) => return Some(on.value.then(OAuth::default)),
        Value::Object(_) => {}
        _ => {
            tree.wrong_type(value, "true, false or an object");
            return None;
        }
    }
    let login: Login = tree.read(value)?;
    let secret = get(value, "clientSecret").map(|secret| source(tree, secret));
    let missing = match (&login.client_id, &secret) {
        _ if tree.has_mistake(value.range()) => None,
        (None, Some(_)) => Some("has a \"clientSecret\" and no \"clientId\"; write both"),
        (Some(_), Some(_)) if login.issuer.is_none() => Some(
            "has a \"clientSecret\" and no \"issuer\"; write the issuer of the authorization \
             server that the secret is for",
        ),
        (Some(_), Some(_)) => None,
        _ if login.grant == Grant::ClientCredentials => {
            Some("has the grant of client credentials; write \"clientId\" and \"clientSecret\"")
        }
        _ => None,
    };
    if let Some(missing) = missing {
        tree.wrong(value, missing);
    }
    Some(Some(OAuth {
        client_id: login.client_id,
        issuer: login.issuer,
        client_secret: secret.flatten(),
        client_metadata_url: login.client_metadata_url,
        scopes: login.scopes,
        grant: login.grant,
        redirect_port: login.redirect_port,
        place: login.tokens,
        ..OAuth::default()
    }))
}
