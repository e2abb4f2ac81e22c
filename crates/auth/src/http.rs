//! The HTTP client of a login, with limits on its destinations and on sizes.
//!
//! A server names the URLs of a login, so it could send this process anywhere. Each URL and the
//! addresses of its host are checked, and no redirect is followed. Only `https` is used, except on
//! loopback for a server on loopback; a private or loopback address is refused unless the server
//! itself has one. rmcp has similar checks, but only in its own client, which follows redirects and
//! cannot be extended.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use http::{Request, Response};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Origin, Url};

/// Bytes of a document.
const MAX_BODY: usize = 256 << 10;
/// The time limit of one exchange.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for the login at one server.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    client: reqwest::Client,
    allowed: Arc<Allowed>,
}

impl Web {
    /// A client for the server at this URL.
    pub(crate) async fn new(server: &Url) -> Result<Self, String> {
        let mut found = Vec::new();
        if let Some(Host::Domain(name)) = server.host()
            && !is_loopback(server)
            && let Ok(addresses) = tokio::net::lookup_host((name, 0)).await
        {
            found.extend(addresses.map(|address| address.ip()));
        }
        let allowed = Arc::new(Allowed::new(server, &found, proxy_hosts()));
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .dns_resolver(Arc::new(Resolver(Arc::clone(&allowed))));
        if allowed.nearness == Nearness::Loopback {
            builder = builder.no_proxy();
        }
        let client = builder.build();
        let client = client.map_err(|error| error.without_url().to_string())?;
        Ok(Self { client, allowed })
    }

    /// Refuses a URL that a login must not use.
    pub(crate) fn check(&self, url: &Url) -> Result<(), String> {
        self.allowed.check(url)
    }

    /// Sends a request and reads the whole answer, of any status.
    pub(crate) async fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, String> {
        let mut response = self.open(request).await?;
        let origin = response.url().origin().ascii_serialization();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| failed(&origin, e))? {
            if chunk.len() > MAX_BODY - bytes.len() {
                let limit = MAX_BODY >> 10;
                return Err(format!("{origin} answered with more than {limit} KiB"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let mut answer = Response::new(bytes);
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        Ok(answer)
    }

    /// Sends a request and awaits the head of the answer.
    pub(crate) async fn open(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<reqwest::Response, String> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|error| format!("a URL of the login cannot be used: {error}"))?;
        self.check(&url)?;
        let origin = url.origin().ascii_serialization();
        let request = self.client.request(parts.method, url);
        let sent = request.headers(parts.headers).body(body).send().await;
        sent.map_err(|error| failed(&origin, error))
    }
}

/// The innermost error, such as "connection refused", without the URL.
fn failed(origin: &str, error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    format!("{origin}: {innermost}")
}

/// Resolves names to the addresses that a login may reach.
struct Resolver(Arc<Allowed>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = Arc::clone(&self.0);
        async move {
            let name = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
            let found = allowed.filter(name, found)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        }
        .boxed()
    }
}

/// The hosts of the proxies in the environment. They may have any address, because no server names
/// them.
fn proxy_hosts() -> Vec<Host> {
    let names = ["http_proxy", "https_proxy", "all_proxy"];
    let both = |name: &&str| [(*name).to_owned(), name.to_uppercase()];
    let values = names.iter().flat_map(both).map(std::env::var);
    let urls = values.flatten().filter_map(|value| {
        let prefix = if value.contains("://") { "" } else { "http://" };
        Url::parse(&format!("{prefix}{value}")).ok()
    });
    urls.filter_map(|url| Host::parse(url.host_str()?).ok())
        .collect()
}

/// The addresses that a login at one server may reach.
#[derive(Debug)]
struct Allowed {
    /// The server's own host, from the configuration.
    own: Option<Host>,
    /// The nearness of the server, which is the maximum for a login.
    nearness: Nearness,
    proxies: Vec<Host>,
}

/// The distance of an address from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    Public,
    Private,
    Loopback,
    /// Link-local, multicast and other addresses without a login, and tunnels with an unknown end.
    Never,
}

impl Allowed {
    /// The rules for a server with a name that resolves to the addresses `found`.
    fn new(server: &Url, found: &[IpAddr], proxies: Vec<Host>) -> Self {
        let literal = |ip: IpAddr| match nearness(ip) {
            Nearness::Never => Nearness::Public,
            other => other,
        };
        let nearness = match server.host() {
            _ if is_loopback(server) => Nearness::Loopback,
            Some(Host::Ipv4(ip)) => literal(ip.into()),
            Some(Host::Ipv6(ip)) => literal(ip.into()),
            // The farthest of its addresses counts. DNS is not trusted, so a name is never
            // considered to be on this machine.
            _ => {
                let all = found.iter().map(|ip| nearness(*ip));
                let farthest = all.filter(|near| *near != Nearness::Never).min();
                farthest.map_or(Nearness::Public, |near| near.min(Nearness::Private))
            }
        };
        Self {
            own: server.host().map(|host| host.to_owned()),
            nearness,
            proxies,
        }
    }

    fn check(&self, url: &Url) -> Result<(), String> {
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => Some(IpAddr::from(ip)),
            Some(Host::Ipv6(ip)) => Some(ip.into()),
            _ => None,
        };
        let host = url.host().map(|host| host.to_owned());
        let (is_here, may_be_here) = (is_loopback(url), self.nearness == Nearness::Loopback);
        let why = match url.scheme() {
            "http" if !(is_here && may_be_here) => "it is not https",
            "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
                "it holds a user name"
            }
            "https" if is_here && !may_be_here => "it is this machine, and the server is not",
            "http" | "https" if ip.is_some_and(|ip| !self.allows(host.as_ref(), ip)) => {
                "it is a private address"
            }
            "http" | "https" => return Ok(()),
            _ => "it is not a web address",
        };
        let place = match url.origin() {
            Origin::Tuple(..) => url.origin().ascii_serialization(),
            Origin::Opaque(_) => format!("a {}: URL", url.scheme()),
        };
        Err(format!("a login must not go to {place}: {why}"))
    }

    /// The addresses of a name that a login may reach.
    fn filter(&self, name: &str, mut found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
        let host = Host::parse(name).ok();
        if host.iter().any(|host| self.proxies.contains(host)) {
            return Ok(found);
        }
        found.retain(|address| self.allows(host.as_ref(), address.ip()));
        if found.is_empty() {
            return Err("it leads to no address that a login may reach".to_owned());
        }
        Ok(found)
    }

    fn allows(&self, host: Option<&Host>, ip: IpAddr) -> bool {
        let near = nearness(ip);
        let is_own = host.is_some() && host == self.own.as_ref();
        near != Nearness::Never && (near <= self.nearness || is_own)
    }
}

/// True if a URL names this machine, without a DNS query.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(ip)) => nearness(ip.into()) == Nearness::Loopback,
        Some(Host::Ipv6(ip)) => nearness(ip.into()) == Nearness::Loopback,
        None => false,
    }
}

fn nearness(ip: IpAddr) -> Nearness {
    match ip {
        IpAddr::V4(ip) => nearness_v4(ip),
        IpAddr::V6(ip) => nearness_v6(ip),
    }
}

fn nearness_v4(ip: Ipv4Addr) -> Nearness {
    match ip.octets() {
        [127, ..] => Nearness::Loopback,
        // "This network", link-local, protocol assignments, multicast, reserved, broadcast.
        [0, ..] | [169, 254, ..] | [192, 0, 0, _] | [224..=255, ..] => Nearness::Never,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Nearness::Private,
        // Between a provider and its customers, and for measurements.
        [100, 64..=127, ..] | [198, 18..=19, ..] => Nearness::Private,
        _ => Nearness::Public,
    }
}

fn nearness_v6(ip: Ipv6Addr) -> Nearness {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let v4 = Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] => nearness_v4(v4),
        _ if ip.is_loopback() => Nearness::Loopback,
        // NAT64. The loopback of a gateway is not this machine.
        [0x64, 0xff9b, 0, 0, 0, 0] if v4.is_loopback() => Nearness::Never,
        [0x64, 0xff9b, 0, 0, 0, 0] => nearness_v4(v4),
        // Other forms that contain an IPv4 address: `::/96`, translated, NAT64 with a network's own
        // prefix, Teredo, 6to4.
        [0, 0, 0, 0, 0 | 0xffff, 0] | [0x64, 0xff9b, 1, ..] => Nearness::Never,
        [0x2001, 0, ..] | [0x2002, ..] => Nearness::Never,
        // Link-local, multicast.
        [0xfe80..=0xfebf, ..] | [0xff00..=0xffff, ..] => Nearness::Never,
        // Unique local, and the deprecated site-local.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Nearness::Private,
        _ => Nearness::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(server: &str, found: &[&str]) -> Allowed {
        let found: Vec<IpAddr> = found.iter().map(|ip| ip.parse().expect("an IP")).collect();
        let proxy = Host::parse("proxy.example").expect("a host");
        Allowed::new(&Url::parse(server).expect("a URL"), &found, vec![proxy])
    }

    #[test]
    fn addresses_are_loopback_private_or_public() {
        for (expected, all) in [
            (Nearness::Loopback, "127.255.0.1 ::1 ::ffff:127.0.0.1"),
            (
                Nearness::Private,
                "10.0.0.1 172.31.255.255 192.168.0.1 100.64.0.1 198.19.0.1 fd00::1 fec0::1 \
                 ::ffff:10.0.0.1 64:ff9b::10.0.0.1",
            ),
            (
                Nearness::Public,
                "172.15.0.1 100.128.0.1 192.0.2.1 2001:4860:4860::8888 64:ff9b::8.8.8.8",
            ),
            (
                Nearness::Never,
                "0.0.0.0 169.254.169.254 192.0.0.192 224.0.0.1 255.255.255.255 :: fe80::1 \
                 ff02::1 ::127.0.0.1 ::ffff:169.254.169.254 64:ff9b::127.0.0.1 2002:808:808::1 ::8.8.8.8 \
                 64:ff9b:1::8.8.8.8 2001:0:808:808::1",
            ),
        ] {
            for ip in all.split_whitespace() {
                assert_eq!(nearness(ip.parse().expect("an IP")), expected, "{ip}");
            }
        }
    }

    #[test]
    fn names_must_not_resolve_nearer_than_the_server() {
        let filter = |allowed: &Allowed, name: &str, ip: &str| {
            let address = SocketAddr::new(ip.parse().expect("an IP"), 0);
            allowed.filter(name, vec![address]).is_ok()
        };
        // A name that resolves to loopback is not considered to be on this machine.
        let named = allowed("https://mcp.example/mcp", &["127.0.0.1"]);
        assert!(!filter(&named, "as.example", "127.0.0.1"));
        assert!(filter(&named, "as.example", "10.0.0.1"));
        assert!(filter(&named, "mcp.example", "127.0.0.1"));
        assert!(!filter(&named, "mcp.example", "169.254.169.254"));
        // The farthest address counts.
        let far = allowed("https://mcp.example/mcp", &["10.0.0.1", "8.8.8.8"]);
        assert!(!filter(&far, "as.example", "10.0.0.1"));
        assert!(filter(&far, "as.example", "8.8.4.4"));
        assert!(filter(&far, "proxy.example", "127.0.0.1"));
    }

    #[test]
    fn insecure_or_nearer_login_urls_are_refused() {
        let far = "https://93.184.216.34/mcp";
        let here = "http://localhost:9/mcp";
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
                "https://a.LocalHost./",
                "it is this machine, and the server is not",
            ),
            (
                far,
                "https://[::ffff:127.0.0.1]/",
                "it is this machine, and the server is not",
            ),
            (far, "https://10.0.0.1/", "it is a private address"),
            (
                far,
                "https://[64:ff9b::a9fe:a9fe]/",
                "it is a private address",
            ),
            (far, "https://me:pw@as.example/", "it holds a user name"),
            (far, "file:///etc/passwd", "it is not a web address"),
            (far, "ftp://as.example/", "it is not a web address"),
            ("https://10.1.2.3/mcp", "https://10.0.0.1/", "yes"),
            (
                "https://10.1.2.3/mcp",
                "https://169.254.169.254/",
                "it is a private address",
            ),
            (here, "http://127.0.0.1:1/token", "yes"),
            (here, "http://as.example/token", "it is not https"),
            (here, "https://localhost.example/token", "yes"),
        ] {
            let checked = allowed(server, &[]).check(&Url::parse(url).expect("a URL"));
            let answer = checked.err().unwrap_or_else(|| "yes".to_owned());
            assert!(answer.ends_with(expected), "{server} {url}: {answer}");
        }
    }
}
