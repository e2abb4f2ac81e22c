//! The HTTP client of a login: what it may reach, and how much it takes.
//!
//! A server names the places that a login goes to, so it could send this
//! process anywhere. Therefore: `https` only, but for loopback while the server
//! itself is on loopback; no redirect is followed; and a name that leads to a
//! private or loopback address is refused unless the server itself is at one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::header::WWW_AUTHENTICATE;
use http::{Request, Response, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use url::{Host, Origin, Url};

/// The largest document taken, in bytes.
const MAX_BODY: usize = 256 << 10;
/// How long one exchange may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for one server's login.
#[derive(Debug, Clone)]
pub(super) struct Web {
    client: reqwest::Client,
    reach: Arc<Reach>,
}

/// Why an exchange failed. Its `Display` names an origin and no more of a URL.
#[derive(Debug)]
pub(super) struct WebError(String);

impl Web {
    /// For the server at this URL.
    pub(super) async fn new(server: &Url) -> Result<Self, WebError> {
        let reach = Arc::new(Reach::of(server).await);
        let mut client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .dns_resolver(Arc::new(Resolver(Arc::clone(&reach))));
        if reach.class == Class::Loopback {
            client = client.no_proxy();
        }
        let client = client
            .build()
            .map_err(|error| WebError(error.without_url().to_string()))?;
        Ok(Self { client, reach })
    }

    /// Refuses a URL that this client would not go to.
    pub(super) fn check(&self, url: &Url) -> Result<(), WebError> {
        self.reach.check(url)
    }

    /// Sends a request to the server itself and gives the challenge of a 401,
    /// the values of its headers joined. Nothing of a body is read.
    pub(super) async fn challenge(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Option<String>, WebError> {
        let response = self.open(request).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(None);
        }
        let values = response.headers().get_all(WWW_AUTHENTICATE);
        let values: Vec<_> = values
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        Ok((!values.is_empty()).then(|| values.join(", ")))
    }

    /// Sends a request and reads the whole answer, whatever its status.
    pub(super) async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, WebError> {
        let mut response = self.open(request).await?;
        let origin = response.url().origin().ascii_serialization();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| failed(&origin, e))? {
            if chunk.len() > MAX_BODY - bytes.len() {
                let limit = MAX_BODY >> 10;
                return Err(WebError(format!(
                    "{origin} answered with more than {limit} KiB"
                )));
            }
            bytes.extend_from_slice(&chunk);
        }
        let mut answer = Response::new(bytes);
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        Ok(answer)
    }

    async fn open(&self, request: Request<Vec<u8>>) -> Result<reqwest::Response, WebError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|error| WebError(format!("a URL of the login cannot be used: {error}")))?;
        self.check(&url)?;
        let origin = url.origin().ascii_serialization();
        self.client
            .request(parts.method, url)
            .headers(parts.headers)
            .body(body)
            .send()
            .await
            .map_err(|error| failed(&origin, error))
    }
}

impl OAuthHttpClient for Web {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let sent = self.send(request.request);
        async move { Ok(sent.await?) }.boxed()
    }
}

/// What a login may reach, by what its server is.
#[derive(Debug)]
struct Reach {
    /// The server's own host, which the configuration names: it may be anywhere.
    host: Option<Host>,
    class: Class,
}

/// How near an address is; a server may send a login as near as it is itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Public,
    Private,
    Loopback,
    /// Link-local, multicast and the like: where machines tell of themselves.
    Never,
}

impl Reach {
    async fn of(server: &Url) -> Self {
        let class = match server.host() {
            Some(Host::Ipv4(ip)) => class(ip.into()),
            Some(Host::Ipv6(ip)) => class(ip.into()),
            Some(Host::Domain(name)) if is_localhost(name) => Class::Loopback,
            Some(Host::Domain(name)) => {
                let found = tokio::net::lookup_host((name, 0)).await;
                // A name that leads to many addresses is as far as the farthest.
                let classes = found.into_iter().flatten().map(|found| class(found.ip()));
                classes.min().unwrap_or(Class::Public)
            }
            None => Class::Public,
        };
        Self {
            host: server.host().map(|host| host.to_owned()),
            class,
        }
    }

    fn check(&self, url: &Url) -> Result<(), WebError> {
        let refused = |why: &str| {
            let place = match url.origin() {
                Origin::Tuple(..) => url.origin().ascii_serialization(),
                Origin::Opaque(_) => format!("a {}: URL", url.scheme()),
            };
            Err(WebError(format!("a login must not go to {place}: {why}")))
        };
        let literal = match url.host() {
            Some(Host::Ipv4(ip)) => Some(IpAddr::from(ip)),
            Some(Host::Ipv6(ip)) => Some(ip.into()),
            Some(Host::Domain(_)) => None,
            None => return refused("it is no web address"),
        };
        let loopback = is_loopback(url);
        match url.scheme() {
            "https" => {}
            "http" if loopback && self.class == Class::Loopback => {}
            "http" => return refused("it is not https"),
            _ => return refused("it is no web address"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("it holds a user name");
        }
        if loopback && self.class != Class::Loopback {
            return refused("it is this machine, and the server is not");
        }
        match literal {
            Some(ip) if !self.allows(url.host(), ip) => refused("it is a private address"),
            _ => Ok(()),
        }
    }

    fn allows(&self, host: Option<Host<&str>>, ip: IpAddr) -> bool {
        let own = self.host.is_some() && host.map(|host| host.to_owned()) == self.host;
        own || class(ip) <= self.class && class(ip) != Class::Never
    }
}

/// Whether a URL leads to this machine by what it says, nothing being looked up.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(ip)) => class(ip.into()) == Class::Loopback,
        Some(Host::Ipv6(ip)) => class(ip.into()) == Class::Loopback,
        None => false,
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

fn class(ip: IpAddr) -> Class {
    match ip {
        IpAddr::V4(ip) => class_v4(ip),
        IpAddr::V6(ip) => match embedded(ip) {
            Some(ip) => class_v4(ip),
            None => class_v6(ip),
        },
    }
}

fn class_v4(ip: Ipv4Addr) -> Class {
    let [a, b, ..] = ip.octets();
    if ip.is_loopback() {
        Class::Loopback
    } else if ip.is_link_local() || ip.is_multicast() || ip.is_broadcast() || a == 0 || a >= 240 {
        Class::Never
    } else if ip.is_private() || (a == 100 && b & 0xc0 == 64) || (a == 198 && b & 0xfe == 18) {
        Class::Private
    } else {
        Class::Public
    }
}

fn class_v6(ip: Ipv6Addr) -> Class {
    if ip.is_loopback() {
        Class::Loopback
    } else if ip.is_unspecified() || ip.is_multicast() || ip.is_unicast_link_local() {
        Class::Never
    } else if ip.is_unique_local() {
        Class::Private
    } else {
        Class::Public
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, NAT64, 6to4.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => Some(join(g, h)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

/// Looks names up and leaves out the addresses that a login must not reach.
struct Resolver(Arc<Reach>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = Arc::clone(&self.0);
        async move {
            let name = name.as_str();
            let found = tokio::net::lookup_host((name, 0)).await?;
            let host = Host::parse(name).ok();
            let host = host.as_ref().map(|host| match host {
                Host::Domain(name) => Host::Domain(name.as_str()),
                Host::Ipv4(ip) => Host::Ipv4(*ip),
                Host::Ipv6(ip) => Host::Ipv6(*ip),
            });
            let allowed: Vec<SocketAddr> = found
                .filter(|address| reach.allows(host.clone(), address.ip()))
                .collect();
            if allowed.is_empty() {
                let why = "it leads to no address that a login may reach";
                return Err(Box::new(WebError(why.to_owned())) as _);
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        }
        .boxed()
    }
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WebError {}

/// What it comes down to, such as "connection refused", without the URL.
fn failed(origin: &str, error: reqwest::Error) -> WebError {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    WebError(format!("{origin}: {innermost}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(server: &str, url: &str) -> String {
        let reach = Reach::of(&Url::parse(server).unwrap()).await;
        match reach.check(&Url::parse(url).unwrap()) {
            Ok(()) => "yes".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn urls_of_this_machine() {
        for (host, here) in [
            ("localhost", true),
            ("LocalHost.", true),
            ("a.localhost", true),
            ("a.localhost.", true),
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("0x7f.1", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost.example", false),
            ("notlocalhost", false),
            ("10.0.0.1", false),
            ("[::ffff:10.0.0.1]", false),
            ("[fd00::1]", false),
        ] {
            let url = Url::parse(&format!("http://{host}:1/mcp")).unwrap();
            assert_eq!(is_loopback(&url), here, "{host}");
        }
    }

    #[tokio::test]
    async fn where_a_login_may_go() {
        let far = "https://93.184.216.34/mcp";
        for (server, url, expected) in [
            (far, "https://as.example/token", "yes"),
            (far, "http://as.example/token", "it is not https"),
            (far, "http://127.0.0.1:1/token", "it is not https"),
            (
                far,
                "https://127.0.0.1/",
                "it is this machine, and the server is not",
            ),
            (
                far,
                "https://localhost/",
                "it is this machine, and the server is not",
            ),
            (
                far,
                "https://a.localhost./",
                "it is this machine, and the server is not",
            ),
            (
                far,
                "https://[::1]/",
                "it is this machine, and the server is not",
            ),
            (
                far,
                "https://[::ffff:127.0.0.1]/",
                "it is this machine, and the server is not",
            ),
            (far, "https://10.0.0.1/", "it is a private address"),
            (far, "https://[fd00::1]/", "it is a private address"),
            (far, "https://169.254.169.254/", "it is a private address"),
            (
                far,
                "https://[64:ff9b::a9fe:a9fe]/",
                "it is a private address",
            ),
            (far, "https://me:pw@as.example/", "it holds a user name"),
            (far, "file:///etc/passwd", "it is no web address"),
            (far, "ftp://as.example/", "it is no web address"),
            ("https://10.1.2.3/mcp", "https://10.0.0.1/", "yes"),
            (
                "https://10.1.2.3/mcp",
                "https://169.254.169.254/",
                "it is a private address",
            ),
            ("http://127.0.0.1:9/mcp", "http://127.0.0.1:1/token", "yes"),
            ("http://localhost:9/mcp", "http://localhost:1/token", "yes"),
            (
                "http://127.0.0.1:9/mcp",
                "http://as.example/token",
                "it is not https",
            ),
            ("http://127.0.0.1:9/mcp", "https://as.example/token", "yes"),
        ] {
            let answer = check(server, url).await;
            assert!(answer.ends_with(expected), "{server} {url}: {answer}");
        }
    }
}
