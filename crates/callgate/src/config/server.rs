//! One server of the configuration.

use std::collections::BTreeMap;
use std::path::Path;

use callgate_auth::OAuth;
use callgate_broker::{EraSetting, Http, ServerSpec, Stdio, Transport};
use callgate_policy::nearest;
use jsonc_parser::ast::ObjectProp;
use jsonc_parser::common::{Range, Ranged};
use url::{ParseError, Url};

use super::connect;
use super::error::ConfigErrorKind;
use super::keys;
use super::oauth;
use super::reader::{Reader, name_range};
use super::source::values;

/// What to write where a URL does not say how to get there.
const WITH_SCHEME: &str = "must begin with https:// or http://";

/// What the file says of one server.
pub(super) enum Entry {
    Enabled(Box<ServerSpec>),
    Disabled(String),
}

/// Reads one server. `None` if something about it is wrong, which is then
/// noted.
pub(super) fn read<'t>(reader: &mut Reader<'_>, property: &ObjectProp<'t>) -> Option<Entry> {
    let name = property.name.as_str().to_owned();
    let what = format!("server \"{name}\"");
    let Some(object) = property.value.as_object() else {
        reader.error(
            property.value.range(),
            ConfigErrorKind::Value,
            format!("{what} must be an object, such as {{ \"command\": \"…\" }}"),
        );
        return None;
    };
    let problems_before = reader.problems.len();
    let properties = reader.properties(object, &what, &keys::SERVER);
    let get = |key: &str| properties.iter().copied().find(|p| p.name.as_str() == key);

    // A disabled server needs no variables, so nothing else of it is read.
    if let Some(property) = get("disabled")
        && reader.boolean(property, &what)?
    {
        return Some(Entry::Disabled(name));
    }

    // A misspelt "command" is not a missing one as well.
    let misspelt = reader.problems.len() > problems_before;
    let kind = transport_kind(reader, &what, name_range(property), misspelt, &get);
    let transport = kind.and_then(|kind| match kind {
        Kind::Stdio => stdio(reader, &what, &get),
        Kind::Http => http(reader, &what, &get),
    });
    let trusted = get("trusted")
        .and_then(|p| reader.boolean(p, &what))
        .unwrap_or(false);
    let era = get("protocol").and_then(|p| reader.parsed(p, &what, str::parse::<EraSetting>));
    let start_timeout = get("startTimeout").and_then(|p| reader.duration(p, &what));
    let call_timeout = get("callTimeout").and_then(|p| reader.duration(p, &what));
    let max_call_time = get("maxCallTime").and_then(|p| reader.duration(p, &what));
    let mut spec = ServerSpec::new(name, transport?);
    spec.trusted = trusted;
    spec.era = era.unwrap_or_default();
    spec.start_timeout = start_timeout.unwrap_or(spec.start_timeout);
    spec.call_timeout = call_timeout.unwrap_or(spec.call_timeout);
    spec.max_call_time = max_call_time.unwrap_or(spec.max_call_time);
    connect::read(reader, &what, &get, &mut spec);
    (reader.problems.len() == problems_before).then_some(Entry::Enabled(Box::new(spec)))
}

#[derive(Clone, Copy)]
enum Kind {
    Stdio,
    Http,
}

/// Which transport a server means, by `type` and by the keys it has.
fn transport_kind<'o, 't: 'o>(
    reader: &mut Reader<'_>,
    what: &str,
    range: Range,
    misspelt: bool,
    get: &impl Fn(&str) -> Option<&'o ObjectProp<'t>>,
) -> Option<Kind> {
    let declared = match get("type") {
        None => None,
        Some(property) => {
            let text = reader.string(property, what)?;
            match text {
                "stdio" => Some((text, Kind::Stdio)),
                "http" | "streamable-http" => Some((text, Kind::Http)),
                _ => {
                    unknown_type(reader, what, text, property.value.range());
                    return None;
                }
            }
        }
    };
    let declared_kind = declared.map(|(_, kind)| kind);
    match (get("command"), get("url")) {
        (Some(_), Some(url)) => {
            reader.error(
                name_range(url),
                ConfigErrorKind::Key,
                format!(
                    "{what} has both \"command\" and \"url\"; keep \"command\" for a program to \
                     start, or \"url\" for a server to connect to"
                ),
            );
            return None;
        }
        (None, None) if misspelt => return None,
        (None, None) => {
            let message = match declared_kind {
                None => format!(
                    "{what} has neither \"command\" nor \"url\"; write \"command\" for a program \
                     to start, or \"url\" for a server to connect to"
                ),
                Some(Kind::Stdio) => {
                    format!("{what} has no \"command\"; write the program to start")
                }
                Some(Kind::Http) => {
                    format!("{what} has no \"url\"; write the server's streamable HTTP URL")
                }
            };
            reader.error(range, ConfigErrorKind::Value, message);
            return None;
        }
        _ => {}
    }
    let kind = if get("command").is_some() {
        Kind::Stdio
    } else {
        Kind::Http
    };
    let foreign: &[&str] = match kind {
        Kind::Stdio => &["url", "headers", "oauth"],
        Kind::Http => &["command", "args", "env", "cwd"],
    };
    let of = match kind {
        Kind::Stdio => "\"command\"",
        Kind::Http => "\"url\"",
    };
    for property in foreign.iter().filter_map(|key| get(key)) {
        reader.error(
            name_range(property),
            ConfigErrorKind::Key,
            format!(
                "key \"{}\" in {what} does not go with {of}; remove it",
                property.name.as_str()
            ),
        );
    }
    match (declared, kind) {
        (Some((text, Kind::Stdio)), Kind::Http) | (Some((text, Kind::Http)), Kind::Stdio) => {
            reader.error(
                range,
                ConfigErrorKind::Value,
                format!("{what} has \"type\": \"{text}\" and {of}; remove one of them"),
            );
            None
        }
        _ => Some(kind),
    }
}

fn unknown_type(reader: &mut Reader<'_>, what: &str, text: &str, range: Range) {
    let (kind, message) = if text == "sse" {
        (
            ConfigErrorKind::Unsupported,
            format!(
                "{what} has \"type\": \"sse\", a transport that MCP deprecated in its version \
                 2025-03-26; write \"type\": \"http\" and the server's streamable HTTP URL"
            ),
        )
    } else {
        let advice = match nearest(text, ["stdio", "http", "streamable-http"]) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => "write \"stdio\" or \"http\"".to_owned(),
        };
        (
            ConfigErrorKind::Value,
            format!("{what} has the unknown type \"{text}\"; {advice}"),
        )
    };
    reader.error(range, kind, message);
}

fn stdio<'o, 't: 'o>(
    reader: &mut Reader<'_>,
    what: &str,
    get: &impl Fn(&str) -> Option<&'o ObjectProp<'t>>,
) -> Option<Transport> {
    let command = get("command").and_then(|property| expanded(reader, property, what));
    if let (Some(command), Some(property)) = (&command, get("command"))
        && command.trim().is_empty()
    {
        reader.error(
            property.value.range(),
            ConfigErrorKind::Value,
            format!("\"command\" in {what} is empty; write the program to start"),
        );
    }
    reader.used.clear();
    let args = get("args").map(|property| {
        let strings = reader.strings(property, what);
        let what = format!("\"args\" in {what}");
        strings
            .into_iter()
            .filter_map(|(text, range)| reader.expand(text, range, &what))
            .collect()
    });
    let env = get("env").map(|property| values(reader, property, what, check_variable));
    let secrets = secrets(std::mem::take(&mut reader.used));
    let folder = reader.variables.folder.to_owned();
    let cwd = get("cwd").and_then(|property| expanded(reader, property, what));
    let command = command?;
    let env = env.unwrap_or_default();
    let is_path = command.contains('/') || command.contains(std::path::MAIN_SEPARATOR);
    Some(Transport::Stdio(Stdio {
        command: if is_path {
            folder.join(command).to_string_lossy().into_owned()
        } else {
            command
        },
        args: args.unwrap_or_default(),
        env: env.known,
        env_from: env.from,
        secrets,
        cwd: cwd.map(|cwd| folder.join(cwd)),
    }))
}

fn http<'o, 't: 'o>(
    reader: &mut Reader<'_>,
    what: &str,
    get: &impl Fn(&str) -> Option<&'o ObjectProp<'t>>,
) -> Option<Transport> {
    reader.used.clear();
    let headers = get("headers").map(|property| values(reader, property, what, check_header));
    let mut used = std::mem::take(&mut reader.used);
    let property = get("url")?;
    let url = expanded(reader, property, what)?;
    // Which host it is must be seen in messages.
    let behind_host = url.splitn(4, '/').nth(3).unwrap_or_default();
    let of_url = std::mem::take(&mut reader.used).into_iter();
    used.extend(of_url.filter(|(_, value)| behind_host.contains(value)));
    // The URL itself is not shown: it may hold a key.
    let wrong = match Url::parse(&url) {
        Err(ParseError::RelativeUrlWithoutBase) => Some(WITH_SCHEME.to_owned()),
        // The first word of "localhost:3000/mcp" is one for a parser.
        Ok(url) if !matches!(url.scheme(), "http" | "https") => Some(WITH_SCHEME.to_owned()),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => Some(
            "holds a user name or password; write an \"Authorization\" header instead".to_owned(),
        ),
        Ok(_) => None,
        Err(error) => Some(format!("is not a valid URL: {error}")),
    };
    if let Some(wrong) = wrong {
        reader.error(
            property.value.range(),
            ConfigErrorKind::Value,
            format!("\"url\" in {what} {wrong}"),
        );
        return None;
    }
    let headers = headers.unwrap_or_default();
    let mut names = headers.known.keys().chain(headers.from.keys());
    let authorized = names.any(|name| name.eq_ignore_ascii_case("authorization"));
    let oauth = match get("oauth") {
        None => Some(OAuth::default()),
        Some(property) => {
            let oauth = oauth::read(reader, property, what)?;
            if authorized && oauth.is_some() {
                reader.error(
                    name_range(property),
                    ConfigErrorKind::Key,
                    format!("{what} has \"oauth\" and an \"Authorization\" header; keep one"),
                );
            }
            oauth
        }
    };
    Some(Transport::Http(Http {
        url,
        headers: headers.known,
        headers_from: headers.from,
        secrets: secrets(used),
        oauth,
    }))
}

/// What of the values that were put in may be secret. A place on this machine is
/// none, and messages are of no use without it.
fn secrets(used: Vec<(String, String)>) -> BTreeMap<String, String> {
    let is_place = |value: &str| {
        let path = Path::new(value);
        path.is_absolute() && path.exists()
    };
    let secret = used
        .into_iter()
        .filter(|(name, value)| name != "PATH" && name != "HOME" && !is_place(value));
    secret.collect()
}

/// A string property with its references replaced.
pub(super) fn expanded(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    what: &str,
) -> Option<String> {
    let text = reader.string(property, what)?;
    let what = format!("\"{}\" in {what}", property.name.as_str());
    reader.expand(text, property.value.range(), &what)
}

fn check_variable(name: &str, _value: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("is no name for an environment variable; use letters, digits and _".into());
    }
    Ok(())
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err("is no name for an HTTP header; use letters, digits and -".into());
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err("has a control character in its value, such as a line break; remove it".into());
    }
    Ok(())
}
