//! Where a login may go, by where its server is.
//!
//! `https` only, but for loopback while the server itself is on loopback; and an
//! address that is private or loopback is refused unless the server itself is at
//! such a one. That a server is on this machine counts only where the
//! configuration says so: names are looked up in the DNS, where a server can say
//! anything of itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Origin, Url};

/// What a login may reach.
#[derive(Debug)]
pub(super) struct Reach {
    /// The server's own host, which the configuration names: it may be anywhere
    /// but where no server is.
    host: Option<Host>,
    class: Class,
    /// Whether the server has a name that leads to this machine, which its
    /// configuration does not say.
    is_named_here: bool,
}

/// How near an address is; a server may send a login as near as it is itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Public,
    Private,
    Loopback,
    /// Link-local, multicast and the like, where machines tell of themselves;
    /// and ways into other networks whose end cannot be told.
    Never,
}

impl Reach {
    /// Of the server at this URL.
    pub(super) async fn of(server: &Url) -> Self {
        let found = match server.host() {
            Some(Host::Domain(name)) if !is_localhost(name) => {
                let found = tokio::net::lookup_host((name, 0)).await;
                found
                    .into_iter()
                    .flatten()
                    .map(|found| found.ip())
                    .collect()
            }
            _ => Vec::new(),
        };
        Self::with(server, &found)
    }

    /// Of a server whose name leads to these addresses.
    fn with(server: &Url, found: &[IpAddr]) -> Self {
        let near = |class: Class| match class {
            Class::Never => Class::Public,
            other => other,
        };
        let classes = || found.iter().map(|ip| class(*ip));
        let class = match server.host() {
            Some(Host::Ipv4(ip)) => near(class(ip.into())),
            Some(Host::Ipv6(ip)) => near(class(ip.into())),
            Some(Host::Domain(name)) if is_localhost(name) => Class::Loopback,
            // A name that leads to many addresses is as far as the farthest, and none is
            // nearer than the next network.
            Some(Host::Domain(_)) => classes()
                .filter(|class| *class != Class::Never)
                .min()
                .map_or(Class::Public, |class| class.min(Class::Private)),
            None => Class::Public,
        };
        Self {
            host: server.host().map(|host| host.to_owned()),
            class,
            is_named_here: classes().any(|class| class == Class::Loopback),
        }
    }

    /// Whether the server is on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.class == Class::Loopback
    }

    /// Refuses a URL that a login must not go to, and says why.
    pub(super) fn check(&self, url: &Url) -> Result<(), String> {
        let refused = |why: &str| {
            let place = match url.origin() {
                Origin::Tuple(..) => url.origin().ascii_serialization(),
                Origin::Opaque(_) => format!("a {}: URL", url.scheme()),
            };
            Err(format!("a login must not go to {place}: {why}"))
        };
        let too_near = |why: &str| refused(&format!("{why}{}", self.hint()));
        let literal = match url.host() {
            Some(Host::Ipv4(ip)) => Some(IpAddr::from(ip)),
            Some(Host::Ipv6(ip)) => Some(ip.into()),
            Some(Host::Domain(_)) => None,
            None => return refused("it is no web address"),
        };
        let loopback = is_loopback(url);
        match url.scheme() {
            "https" => {}
            "http" if loopback && self.is_here() => {}
            "http" => return too_near("it is not https"),
            _ => return refused("it is no web address"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("it holds a user name");
        }
        if loopback && !self.is_here() {
            return too_near("it is this machine, and the server is not");
        }
        match literal {
            Some(ip) if !self.allows(url.host(), ip) => refused("it is a private address"),
            _ => Ok(()),
        }
    }

    /// Those of a name's addresses that a login may go to.
    pub(super) fn of_those(
        &self,
        name: &str,
        found: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, String> {
        let host = Host::parse(name).ok();
        let host = host.as_ref().map(|host| match host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(ip) => Host::Ipv4(*ip),
            Host::Ipv6(ip) => Host::Ipv6(*ip),
        });
        let mut allowed = found;
        allowed.retain(|address| self.allows(host.clone(), address.ip()));
        if allowed.is_empty() {
            let hint = self.hint();
            let why = "it leads to no address that a login may reach";
            return Err(format!("{why}{hint}"));
        }
        Ok(allowed)
    }

    fn allows(&self, host: Option<Host<&str>>, ip: IpAddr) -> bool {
        let class = class(ip);
        let own = || self.host.is_some() && host.map(|host| host.to_owned()) == self.host;
        class != Class::Never && (class <= self.class || own())
    }

    /// What a person can do whose server is on this machine by a name of its own.
    fn hint(&self) -> &'static str {
        match self.is_named_here {
            true => {
                "; for a server on this machine, write `localhost` or the address in its \"url\" \
                 instead of its name"
            }
            false => "",
        }
    }
}

/// Whether a URL leads to this machine by what it says, nothing being looked up.
pub fn is_loopback(url: &Url) -> bool {
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
        IpAddr::V6(ip) => class_v6(ip),
    }
}

fn class_v4(ip: Ipv4Addr) -> Class {
    match ip.octets() {
        [127, ..] => Class::Loopback,
        // "This network", link-local, protocol assignments, multicast, reserved, broadcast.
        [0, ..] | [169, 254, ..] | [192, 0, 0, _] | [224..=255, ..] => Class::Never,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Class::Private,
        // Between a provider and its customers, and for measurements.
        [100, 64..=127, ..] | [198, 18..=19, ..] => Class::Private,
        _ => Class::Public,
    }
}

fn class_v6(ip: Ipv6Addr) -> Class {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let carried =
        |high: u16, low: u16| class_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    // Who passes it on decides where that is: this machine's own addresses would be those of
    // another one.
    let passed_on = |high: u16, low: u16| match carried(high, low) {
        Class::Loopback => Class::Never,
        other => other,
    };
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] => carried(g, h),
        _ if ip.is_loopback() => Class::Loopback,
        // IPv4-compatible (`::` among them), IPv4-translated, NAT64 of the well-known prefix.
        [0, 0, 0, 0, 0, 0] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => {
            passed_on(g, h)
        }
        // 6to4.
        [0x2002, high, low, ..] => passed_on(high, low),
        // NAT64 of a network's own prefix, whose length is not told, and Teredo.
        [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] => Class::Never,
        // Link-local, multicast.
        [0xfe80..=0xfebf, ..] | [0xff00..=0xffff, ..] => Class::Never,
        // Unique local, and the site-local ones of old.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Class::Private,
        _ => Class::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(server: &str, found: &[&str]) -> Reach {
        let found: Vec<IpAddr> = found.iter().map(|ip| ip.parse().unwrap()).collect();
        Reach::with(&Url::parse(server).unwrap(), &found)
    }

    fn check(reach: &Reach, url: &str) -> String {
        match reach.check(&Url::parse(url).unwrap()) {
            Ok(()) => "yes".to_owned(),
            Err(error) => error,
        }
    }

    #[test]
    fn how_near_addresses_are() {
        for (ip, expected) in [
            ("127.255.0.1", Class::Loopback),
            ("0.0.0.0", Class::Never),
            ("169.254.169.254", Class::Never),
            ("192.0.0.192", Class::Never),
            ("224.0.0.1", Class::Never),
            ("255.255.255.255", Class::Never),
            ("172.16.0.1", Class::Private),
            ("172.31.255.255", Class::Private),
            ("192.168.0.1", Class::Private),
            ("100.64.0.1", Class::Private),
            ("100.127.0.1", Class::Private),
            ("198.19.0.1", Class::Private),
            ("172.15.0.1", Class::Public),
            ("172.32.0.1", Class::Public),
            ("100.63.0.1", Class::Public),
            ("100.128.0.1", Class::Public),
            ("198.17.0.1", Class::Public),
            ("192.0.2.1", Class::Public),
            ("223.255.255.255", Class::Public),
            ("::1", Class::Loopback),
            ("::", Class::Never),
            ("fe80::1", Class::Never),
            ("febf::1", Class::Never),
            ("ff02::1", Class::Never),
            ("fc00::1", Class::Private),
            ("fd00::1", Class::Private),
            ("fec0::1", Class::Private),
            ("2001:4860:4860::8888", Class::Public),
            // Those that carry an IPv4 address.
            ("::ffff:127.0.0.1", Class::Loopback),
            ("::ffff:10.0.0.1", Class::Private),
            ("::ffff:169.254.169.254", Class::Never),
            ("::ffff:8.8.8.8", Class::Public),
            ("::127.0.0.1", Class::Never),
            ("::10.0.0.1", Class::Private),
            ("::8.8.8.8", Class::Public),
            ("::ffff:0:10.0.0.1", Class::Private),
            ("64:ff9b::127.0.0.1", Class::Never),
            ("64:ff9b::10.0.0.1", Class::Private),
            ("64:ff9b::169.254.169.254", Class::Never),
            ("64:ff9b::8.8.8.8", Class::Public),
            ("2002:7f00:1::1", Class::Never),
            ("2002:a00:1::1", Class::Private),
            ("2002:a9fe:a9fe::1", Class::Never),
            ("2002:808:808::1", Class::Public),
            // Those of which nobody can tell.
            ("64:ff9b:1::8.8.8.8", Class::Never),
            ("2001:0:808:808::1", Class::Never),
        ] {
            assert_eq!(class(ip.parse().unwrap()), expected, "{ip}");
        }
    }

    #[test]
    fn a_name_says_nothing_of_this_machine() {
        let hint = "; for a server on this machine, write `localhost` or the address in its \
                    \"url\" instead of its name";
        let reach = with("https://mcp.example/mcp", &["127.0.0.1"]);
        assert!(!reach.is_here());
        assert_eq!(
            check(&reach, "http://127.0.0.1:1/token"),
            format!("a login must not go to http://127.0.0.1:1: it is not https{hint}")
        );
        assert_eq!(
            check(&reach, "https://localhost/token"),
            format!(
                "a login must not go to https://localhost: it is this machine, and the server is \
                 not{hint}"
            )
        );
        let of_those = |reach: &Reach, name: &str, ip: &str| {
            let address = SocketAddr::new(ip.parse().unwrap(), 0);
            reach.of_those(name, vec![address]).map(|found| found.len())
        };
        let none = "it leads to no address that a login may reach";
        let refused = Err(format!("{none}{hint}"));
        assert_eq!(of_those(&reach, "as.example", "127.0.0.1"), refused);
        assert_eq!(of_those(&reach, "as.example", "10.0.0.1"), Ok(1));
        // Its own host, whose certificate shows that it is that.
        assert_eq!(of_those(&reach, "mcp.example", "127.0.0.1"), Ok(1));
        assert_eq!(of_those(&reach, "mcp.example", "169.254.169.254"), refused);
        // Where no server is, it is near nothing.
        for server in [
            with("https://mcp.example/mcp", &["169.254.169.254"]),
            with("https://169.254.169.254/mcp", &[]),
        ] {
            let refused = Err(none.to_owned());
            for ip in ["127.0.0.1", "10.0.0.1", "169.254.169.254"] {
                assert_eq!(of_those(&server, "as.example", ip), refused, "{ip}");
            }
            assert_eq!(of_those(&server, "as.example", "8.8.8.8"), Ok(1));
        }
        // A name that leads to many addresses is as far as the farthest.
        let reach = with("https://mcp.example/mcp", &["10.0.0.1", "8.8.8.8"]);
        let refused = Err(none.to_owned());
        assert_eq!(of_those(&reach, "as.example", "10.0.0.1"), refused);
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
            ("[::127.0.0.1]", false),
            ("[64:ff9b::127.0.0.1]", false),
            ("[2002:7f00:1::1]", false),
        ] {
            let url = Url::parse(&format!("http://{host}:1/mcp")).unwrap();
            assert_eq!(is_loopback(&url), here, "{host}");
        }
    }

    #[test]
    fn where_a_login_may_go() {
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
            (
                "https://169.254.169.254/mcp",
                "https://169.254.169.254/token",
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
            let answer = check(&with(server, &[]), url);
            assert!(answer.ends_with(expected), "{server} {url}: {answer}");
        }
    }
}
