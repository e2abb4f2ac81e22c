//! The HTTP client of a login: what it may reach, and how much it takes.
//!
//! A server names the places that a login goes to, so it could send this
//! process anywhere: each is checked, as are the addresses that its name leads
//! to, and no redirect is followed. What goes by the environment's proxy has its name looked
//! up there; the proxy itself may be anywhere, as no server names it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::header::WWW_AUTHENTICATE;
use http::{Request, Response, StatusCode};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::Url;

use super::reach::Reach;

/// The largest document taken, in bytes.
const MAX_BODY: usize = 256 << 10;
/// How long one exchange may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for one server's login.
#[derive(Debug, Clone)]
pub(super) struct Web {
    /// Goes nowhere but where its name leads.
    direct: reqwest::Client,
    /// The environment's proxy, where it has one and the server is not on this machine.
    proxy: Option<Arc<Proxy>>,
    reach: Arc<Reach>,
}

/// The way by a proxy.
#[derive(Debug)]
struct Proxy {
    /// What goes that way.
    matcher: Matcher,
    /// Goes to the proxy alone, for what goes that way.
    client: reqwest::Client,
}

/// Why an exchange failed. Its `Display` names an origin and no more of a URL.
#[derive(Debug)]
pub(super) struct WebError(String);

impl Web {
    /// For the server at this URL.
    pub(super) async fn new(server: &Url) -> Result<Self, WebError> {
        let reach = Reach::of(server).await;
        // Both read the environment alike: reqwest has its proxies of the same matcher.
        let proxy = (!reach.is_here()).then(|| (Matcher::from_system(), builder()));
        Self::with(reach, proxy)
    }

    fn with(
        reach: Reach,
        proxy: Option<(Matcher, reqwest::ClientBuilder)>,
    ) -> Result<Self, WebError> {
        let build = |client: reqwest::ClientBuilder| {
            let built = client.build();
            built.map_err(|error| WebError(error.without_url().to_string()))
        };
        let reach = Arc::new(reach);
        let resolver = Arc::new(Resolver(Arc::clone(&reach)));
        let direct = build(builder().no_proxy().dns_resolver(resolver))?;
        let proxy = match proxy {
            Some((matcher, client)) => {
                let client = build(client)?;
                Some(Arc::new(Proxy { matcher, client }))
            }
            None => None,
        };
        Ok(Self {
            direct,
            proxy,
            reach,
        })
    }

    /// Refuses a URL that this client would not go to.
    pub(super) fn check(&self, url: &Url) -> Result<(), WebError> {
        self.reach.check(url).map_err(WebError)
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
        self.way_to(&url)
            .request(parts.method, url)
            .headers(parts.headers)
            .body(body)
            .send()
            .await
            .map_err(|error| failed(&origin, error))
    }

    fn way_to(&self, url: &Url) -> &reqwest::Client {
        let by = |proxy: &&Arc<Proxy>| {
            let uri = url.as_str().parse();
            uri.is_ok_and(|uri| proxy.matcher.intercept(&uri).is_some())
        };
        match self.proxy.as_ref().filter(by) {
            Some(proxy) => &proxy.client,
            None => &self.direct,
        }
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
}

/// Looks names up and leaves out the addresses that a login must not reach.
struct Resolver(Arc<Reach>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = Arc::clone(&self.0);
        async move {
            let name = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
            let allowed = reach.of_those(name, found).map_err(WebError)?;
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
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::TcpListener;

    use super::*;

    /// A client of a server far away, with this proxy for all but `direct.example`.
    async fn behind(proxy: &str) -> Web {
        let matcher = Matcher::builder().https(proxy).no("direct.example").build();
        let all = reqwest::Proxy::all(proxy).expect("a proxy");
        let server = Url::parse("https://93.184.216.34/mcp").expect("a URL");
        let reach = Reach::of(&server).await;
        Web::with(reach, Some((matcher, builder().proxy(all)))).expect("a client")
    }

    #[tokio::test]
    async fn a_proxy_may_have_a_name_of_this_machine() {
        let listener = TcpListener::bind("localhost:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let web = behind(&format!("http://localhost:{port}")).await;
        let request = Request::get("https://as.example/token").body(Vec::new());
        let sent = web.send(request.expect("a request"));
        let asked = async {
            let (stream, _) = listener.accept().await.expect("a connection");
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).await.expect("a line");
            let answer = b"HTTP/1.1 502 Bad Gateway\r\n\r\n";
            stream.write_all(answer).await.expect("it is taken");
            line
        };
        let both = tokio::time::timeout(TIMEOUT, futures::future::join(sent, asked));
        let (sent, asked) = both.await.expect("in time");
        assert_eq!(asked, "CONNECT as.example:443 HTTP/1.1\r\n");
        let error = sent.expect_err("there is no way").to_string();
        assert!(error.starts_with("https://as.example: "), "{error}");
    }

    #[tokio::test]
    async fn a_proxy_is_no_way_to_where_a_login_must_not_go() {
        let web = behind("http://localhost:1").await;
        let goes_by_proxy = |url: &str| {
            let way = web.way_to(&Url::parse(url).expect("a URL"));
            std::ptr::eq(way, &web.proxy.as_ref().expect("a proxy").client)
        };
        assert!(goes_by_proxy("https://as.example/"));
        // Its name is looked up here.
        assert!(!goes_by_proxy("https://direct.example/"));
        for url in ["https://localhost:1/", "https://10.0.0.1/"] {
            let request = Request::get(url).body(Vec::new()).expect("a request");
            let refused = web.send(request).await.expect_err("it is too near");
            let refused = refused.to_string();
            assert!(refused.starts_with("a login must not go to"), "{refused}");
        }
    }
}
