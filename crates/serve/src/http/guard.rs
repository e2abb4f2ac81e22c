//! Which hosts and origins a request may name. A page whose name leads to
//! loopback (DNS rebinding) sends its own name, and is refused by it.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode};
use callgate::config::HttpConfig;
use url::Url;

use super::refusal::Refusal;

/// The names that are ours.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Vec<Name>,
    origins: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Name {
    /// In lower case; an IPv6 address in brackets.
    host: String,
    /// `None` for any: a port may be forwarded.
    port: Option<u16>,
}

impl Guard {
    /// For what listens at `bound`.
    pub(crate) fn new(bound: SocketAddr, config: &HttpConfig) -> Self {
        let any_port = |host: String| Name { host, port: None };
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
        let resource = resource.and_then(|url| Url::parse(url).ok());
        if let Some(name) = resource.as_ref().and_then(Url::host_str) {
            hosts.push(any_port(name.to_ascii_lowercase()));
        }
        hosts.extend(config.allowed_hosts.iter().filter_map(|text| name(text)));
        Self {
            hosts,
            origins: config.allowed_origins.clone(),
        }
    }

    /// Whether no request could pass.
    pub(crate) fn is_shut(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Looks at the names of a request; gives its origin, if it has one.
    pub(crate) fn check(&self, parts: &Parts) -> Result<Option<HeaderValue>, Refusal> {
        let mut named = parts.headers.get_all(HOST).iter();
        let host = match (named.next(), named.next()) {
            (Some(host), None) => host.to_str().ok(),
            // A proxy before us may have taken the other one.
            (Some(_), Some(_)) => return Err(Refusal::bad("the request has two Host headers")),
            (None, _) => None,
        };
        let Some(host) = host.and_then(name) else {
            return Err(Refusal::bad("the Host header is missing or not a host"));
        };
        let in_target = parts
            .uri
            .authority()
            .map(|authority| name(authority.as_str()));
        let target_is_ours = in_target.is_none_or(|name| name.is_some_and(|name| self.has(&name)));
        if !self.has(&host) || !target_is_ours {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "the Host header names a host that is not allowed; add it to \"allowedHosts\" if \
                 it is this one's",
            ));
        }
        let mut origins = parts.headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else {
            return Ok(None);
        };
        let text = origin.to_str().unwrap_or_default();
        if origins.next().is_some() || !(self.is_allowed(text) || is_same(text, &host)) {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "pages of this Origin are not allowed; add it to \"allowedOrigins\" if they may",
            ));
        }
        Ok(Some(origin.clone()))
    }

    fn has(&self, name: &Name) -> bool {
        let is_it = |ours: &Name| {
            ours.host == name.host && ours.port.is_none_or(|port| name.port == Some(port))
        };
        self.hosts.iter().any(is_it)
    }

    fn is_allowed(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed == origin)
    }
}

/// Whether a page is of the host that it sends to, which is one of ours.
fn is_same(origin: &str, host: &Name) -> bool {
    let rest = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    rest.and_then(name).is_some_and(|name| name == *host)
}

fn name(text: &str) -> Option<Name> {
    let authority: Authority = text.parse().ok()?;
    let host = authority.host();
    // What stands after it must be a port and nothing else.
    let port = match text.strip_prefix(host)?.strip_prefix(':') {
        Some(port) => Some(port.parse().ok()?),
        None if text.len() == host.len() => None,
        None => return None,
    };
    Some(Name {
        host: host.to_ascii_lowercase(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    /// What becomes of a request that names these, at this address.
    fn check(bound: &str, host: &[&[u8]], origin: Option<&str>) -> u16 {
        let mut config = HttpConfig::default();
        config.allowed_hosts = vec!["callgate.example".to_owned(), "one.example:8443".to_owned()];
        config.allowed_origins = vec!["https://app.example".to_owned()];
        let guard = Guard::new(bound.parse().expect("an address"), &config);
        let mut request = Request::builder().uri("/mcp");
        for value in host {
            request = request.header(HOST, *value);
        }
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        guard
            .check(&parts)
            .map_or_else(|refused| refused.status().as_u16(), |_| 200)
    }

    #[test]
    fn hosts() {
        let at = |host: &str| check("127.0.0.1:8080", &[host.as_bytes()], None);
        for ours in [
            "localhost:8080",
            "LocalHost",
            "127.0.0.1:9",
            "[::1]:8080",
            "callgate.example",
            "callgate.example:99",
            "one.example:8443",
        ] {
            assert_eq!(at(ours), 200, "{ours}");
        }
        for others in [
            "evil.example",
            "localhost.evil.example",
            "localhost.",
            "one.example",
            "one.example:80",
            "127.0.0.2",
            "0.0.0.0",
            "2130706433",
        ] {
            assert_eq!(at(others), 403, "{others}");
        }
        for wrong in [
            "",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "a@localhost",
            "localhost/",
            "localhost localhost",
            "evil.example:80@localhost",
        ] {
            assert_eq!(at(wrong), 400, "{wrong}");
        }
        assert_eq!(check("127.0.0.1:1", &[], None), 400);
        assert_eq!(
            check("127.0.0.1:1", &[b"localhost", b"localhost"], None),
            400
        );
        assert_eq!(check("127.0.0.1:1", &[b"localhost\xff"], None), 400);
        assert_eq!(check("0.0.0.0:1", &[b"localhost"], None), 403);
        assert_eq!(check("0.0.0.0:1", &[b"0.0.0.0"], None), 403);
        assert_eq!(check("10.0.0.7:1", &[b"10.0.0.7"], None), 200);
        assert_eq!(check("10.0.0.7:1", &[b"localhost"], None), 403);
    }

    #[test]
    fn origins() {
        let at = |origin: &str| check("127.0.0.1:8080", &[b"localhost:8080"], Some(origin));
        assert_eq!(at("https://app.example"), 200);
        // Our own pages, of which there are none.
        assert_eq!(at("http://localhost:8080"), 200);
        for others in [
            "null",
            "",
            "http://localhost:3000",
            "http://localhost",
            "http://app.example",
            "https://app.example:444",
            "https://app.example.evil.example",
            "http://localhost:8080@evil.example",
            "http://evil.example",
            "file://",
        ] {
            assert_eq!(at(others), 403, "{others}");
        }
    }

    #[test]
    fn the_target_counts_too() {
        let guard = Guard::new(
            "127.0.0.1:1".parse().expect("an address"),
            &HttpConfig::default(),
        );
        let check = |uri: &str| {
            let request = Request::builder().uri(uri).header(HOST, "localhost");
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            guard
                .check(&parts)
                .map_or_else(|refused| refused.status().as_u16(), |_| 200)
        };
        assert_eq!(check("http://localhost/mcp"), 200);
        assert_eq!(check("http://evil.example/mcp"), 403);
    }
}
