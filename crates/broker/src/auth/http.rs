//! The HTTP client of a login: what it may reach, and how much it takes.
//!
//! A server names the places that a login goes to, so it could send this
//! process anywhere: each is checked, as are the addresses that its name leads
//! to, and no redirect is followed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::header::WWW_AUTHENTICATE;
use http::{Request, Response, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
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
        if reach.is_here() {
            client = client.no_proxy();
        }
        let client = client
            .build()
            .map_err(|error| WebError(error.without_url().to_string()))?;
        Ok(Self { client, reach })
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
