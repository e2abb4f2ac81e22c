//! The hosts and origins that a request may name. A web page whose host name resolves to loopback
//! (DNS rebinding) sends that name, and is refused.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode};
use url::Url;

use super::refusal::HttpRefusal;
use crate::config::HttpConfig;

/// The limit of a request's head, in bytes; a larger head gets status 431. The guard counts it,
/// because hyper reads up to twice as much before it does.
pub(super) const MAX_HEAD: usize = 64 << 10;
/// Headers that a request may have only once: a proxy before this server may have read the other
/// value.
const ONCE: [&str; 9] = [
    "authorization",
    "content-type",
    "host",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "origin",
    "x-mcp-tool-mode",
];

#[derive(Debug)]
pub(crate) struct Guard {
    /// Without hosts, every request is refused.
    pub(crate) hosts: Vec<HostName>,
    origins: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostName {
    /// In lower case; an IPv6 address in brackets.
    host: String,
    /// `None` for any port, because a port may be forwarded.
    port: Option<u16>,
}

impl Guard {
    /// The names of a server that listens at `bound`.
    pub(crate) fn new(bound: SocketAddr, config: &HttpConfig) -> Self {
        let any_port = |host: String| HostName { host, port: None };
        let mut hosts = Vec::new();
        if bound.ip().is_loopback() {
            let ours = ["localhost", "127.0.0.1", "[::1]"];
            hosts.extend(ours.map(|name| any_port(name.to_owned())));
        }
        if !bound.ip().is_unspecified() {
            hosts.push(any_port(match bound.ip() {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            }));
        }
        let resource = config
            .oauth
            .as_ref()
            .and_then(|oauth| oauth.resource.as_ref());
        let urls = resource.into_iter().chain(&config.public_url);
        let urls: Vec<Url> = urls.filter_map(|url| Url::parse(url).ok()).collect();
        let names = urls.iter().filter_map(Url::host_str);
        hosts.extend(names.map(|name| any_port(name.to_ascii_lowercase())));
        // A proxy may send a host of its own with the origin of the public URL.
        let public = config.public_url.as_deref().map(Url::parse);
        let public = public.and_then(|url| Some(url.ok()?.origin().ascii_serialization()));
        let origins = config.allowed_origins.iter().cloned().chain(public);
        hosts.extend(config.allowed_hosts.iter().filter_map(|text| name(text)));
        Self {
            hosts,
            origins: origins.collect(),
        }
    }

    /// Checks the head of a request: its size and its names. Returns its origin, if it has one.
    pub(crate) fn check(&self, parts: &Parts) -> Result<Option<HeaderValue>, HttpRefusal> {
        if head_size(parts) > MAX_HEAD {
            let max = MAX_HEAD >> 10;
            let message =
                format!("the headers have more than {max} KiB; send fewer or shorter ones");
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(HttpRefusal::new(status, message));
        }
        let is_twice = |name: &&&str| parts.headers.get_all(**name).iter().nth(1).is_some();
        if let Some(name) = ONCE.iter().find(is_twice) {
            let message = format!("the request has two {name} headers; send one");
            return Err(HttpRefusal::bad(message));
        }
        let host = parts.headers.get(HOST);
        let host = host.and_then(|host| name(host.to_str().ok()?));
        let Some(host) = host else {
            return Err(HttpRefusal::bad("the Host header is missing or not a host"));
        };
        let in_target = parts
            .uri
            .authority()
            .map(|authority| name(authority.as_str()));
        let target_is_ours = in_target.is_none_or(|name| name.is_some_and(|name| self.has(&name)));
        if !self.has(&host) || !target_is_ours {
            return Err(HttpRefusal::new(
                StatusCode::FORBIDDEN,
                "the Host header names a host that is not allowed; add it to \"allowedHosts\" if \
                 it is a name of this server",
            ));
        }
        let Some(origin) = parts.headers.get(ORIGIN) else {
            return Ok(None);
        };
        let text = origin.to_str().unwrap_or_default();
        if !(self.origins.iter().any(|allowed| allowed == text) || is_same_host(text, &host)) {
            return Err(HttpRefusal::new(
                StatusCode::FORBIDDEN,
                "pages of this Origin are not allowed; add it to \"allowedOrigins\" to allow them",
            ));
        }
        Ok(Some(origin.clone()))
    }

    fn has(&self, name: &HostName) -> bool {
        let is_it = |ours: &HostName| {
            ours.host == name.host && ours.port.is_none_or(|port| name.port == Some(port))
        };
        self.hosts.iter().any(is_it)
    }
}

/// The size of a head as it was sent, without optional spaces, in bytes.
fn head_size(parts: &Parts) -> usize {
    let line = parts.method.as_str().len() + parts.uri.to_string().len();
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    line + "  HTTP/1.1\r\n\r\n".len() + headers.sum::<usize>()
}

/// True if the origin is the host that the request names.
fn is_same_host(origin: &str, host: &HostName) -> bool {
    let rest = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    rest.and_then(name).is_some_and(|name| name == *host)
}

fn name(text: &str) -> Option<HostName> {
    let authority: Authority = text.parse().ok()?;
    let host = authority.host();
    // Only a port may follow.
    let port = match text.strip_prefix(host)?.strip_prefix(':') {
        Some(port) => Some(port.parse().ok()?),
        None if text.len() == host.len() => None,
        None => return None,
    };
    Some(HostName {
        host: host.to_ascii_lowercase(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    /// The status for a request with these names to a server at this address.
    fn check(bound: &str, uri: &str, host: &[&[u8]], origin: Option<&str>) -> u16 {
        let config = HttpConfig {
            allowed_hosts: vec!["callgate.example".to_owned(), "one.example:8443".to_owned()],
            allowed_origins: vec!["https://app.example".to_owned()],
            ..HttpConfig::default()
        };
        let guard = Guard::new(bound.parse().expect("an address"), &config);
        let mut request = Request::builder().uri(uri);
        for value in host {
            request = request.header(HOST, *value);
        }
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let checked = guard.check(&parts);
        checked.map_or_else(|refused| refused.status().as_u16(), |_| 200)
    }

    #[test]
    fn foreign_host_headers_are_refused() {
        for (hosts, status) in [
            (
                "localhost:8080|LocalHost|127.0.0.1:9|[::1]:8080|one.example:8443",
                200,
            ),
            ("callgate.example|callgate.example:99", 200),
            (
                "evil.example|localhost.evil.example|localhost.|one.example",
                403,
            ),
            ("one.example:80|127.0.0.2|0.0.0.0|2130706433", 403),
            ("|localhost:|localhost:x|localhost:99999|a@localhost", 400),
            (
                "localhost/|localhost localhost|evil.example:80@localhost",
                400,
            ),
        ] {
            for host in hosts.split('|') {
                let checked = check("127.0.0.1:8080", "/mcp", &[host.as_bytes()], None);
                assert_eq!(checked, status, "{host}");
            }
        }
        for (bound, hosts, status) in [
            ("127.0.0.1:1", &[][..], 400),
            ("127.0.0.1:1", &[&b"localhost"[..], b"localhost"], 400),
            ("127.0.0.1:1", &[b"localhost\xff"], 400),
            ("0.0.0.0:1", &[b"localhost"], 403),
            ("0.0.0.0:1", &[b"0.0.0.0"], 403),
            ("10.0.0.7:1", &[b"10.0.0.7"], 200),
            ("10.0.0.7:1", &[b"localhost"], 403),
        ] {
            assert_eq!(
                check(bound, "/mcp", hosts, None),
                status,
                "{bound} {hosts:?}"
            );
        }
        let target = |uri: &str| check("127.0.0.1:1", uri, &[b"localhost"], None);
        assert_eq!(target("http://localhost/mcp"), 200);
        assert_eq!(target("http://evil.example/mcp"), 403);
    }

    #[test]
    fn foreign_origins_are_refused() {
        let at = |origin: &str| check("127.0.0.1:8080", "/mcp", &[b"localhost:8080"], Some(origin));
        assert_eq!(at("https://app.example"), 200);
        assert_eq!(at("http://localhost:8080"), 200);
        for other in [
            "null",
            "",
            "http://localhost:3000",
            "http://localhost",
            "http://app.example",
            "https://app.example:444",
            "https://app.example.evil.example",
            "http://localhost:8080@evil.example",
            "file://",
        ] {
            assert_eq!(at(other), 403, "{other}");
        }
    }
}
