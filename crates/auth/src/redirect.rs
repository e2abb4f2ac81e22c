//! The loopback address that the browser comes back to (RFC 8252, section 7.3).
//!
//! Every program on this machine and every page in the person's browser can send requests here. A
//! request must name this host, have no foreign origin, and carry the login's state.

use std::io;
use std::net::Ipv4Addr;

use axum::Router;
use axum::extract::Query;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{Html, IntoResponse as _};
use axum::routing::get;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A listener for one login.
#[derive(Debug)]
pub(crate) struct Redirect {
    listener: TcpListener,
    port: u16,
}

/// The authorization server's answer in the request of the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Callback {
    /// The code, or an error code.
    pub(crate) outcome: Result<String, String>,
    /// The issuer of the answer (RFC 9207).
    pub(crate) issuer: Option<String>,
}

impl Redirect {
    /// Listens on a port of 127.0.0.1. Default: any free port.
    pub(crate) async fn listen(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The redirect URI for the authorization request.
    pub(crate) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    /// Waits for a request with this state, without a time limit.
    pub(crate) async fn callback(self, state: &str) -> Callback {
        let (received, mut callbacks) = mpsc::channel(1);
        let state = state.to_owned();
        let host = format!("127.0.0.1:{}", self.port);
        let callback = get(async move |uri: Uri, headers: HeaderMap| {
            let callback = parse(&uri, &state).filter(|_| is_own(&headers, &host));
            let (status, text) = match &callback {
                Some(Callback { outcome: Ok(_), .. }) => (
                    StatusCode::OK,
                    "Callgate has received the answer. You can close this window.",
                ),
                Some(_) => (
                    StatusCode::OK,
                    "The login was refused. You can close this window; the terminal says more.",
                ),
                None => (StatusCode::NOT_FOUND, "Not found."),
            };
            if let Some(callback) = callback {
                // Only the first callback counts.
                let _ = received.try_send(callback);
            }
            let headers = [
                (CACHE_CONTROL, "no-store"),
                (CONTENT_SECURITY_POLICY, "default-src 'none'"),
                (REFERRER_POLICY, "no-referrer"),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            let page = format!("<!doctype html><title>Callgate</title><p>{text}</p>\n");
            (status, headers, Html(page)).into_response()
        });
        let router = Router::new().route("/callback", callback);
        // A graceful shutdown lets the browser get its answer.
        let (done, ended) = tokio::sync::oneshot::channel::<()>();
        let server = axum::serve(self.listener, router).with_graceful_shutdown(async {
            let _ = ended.await;
        });
        tokio::spawn(server.into_future());
        let callback = callbacks.recv().await;
        drop(done);
        match callback {
            Some(callback) => callback,
            None => std::future::pending().await,
        }
    }
}

/// The query of a callback. No parameter may be repeated (RFC 6749, section 3.1).
#[derive(Deserialize)]
struct Answer {
    code: Option<String>,
    error: Option<String>,
    state: Option<String>,
    iss: Option<String>,
}

/// True if a request names this host and has no foreign origin. A host name that a page rebinds to
/// this address does not match.
fn is_own(headers: &HeaderMap, host: &str) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let mut origins = headers.get_all(ORIGIN).iter();
    let own_origin = format!("http://{host}");
    hosts.next().is_some_and(|named| named == host)
        && hosts.next().is_none()
        && origins.all(|origin| origin == own_origin.as_str())
}

/// Parses a query; `None` if it is not this login's callback.
fn parse(uri: &Uri, state: &str) -> Option<Callback> {
    let Query(answer) = Query::<Answer>::try_from_uri(uri).ok()?;
    if answer.state? != state {
        return None;
    }
    let outcome = match (answer.error, answer.code) {
        (Some(error), _) => Err(error),
        (None, Some(code)) if !code.is_empty() => Ok(code),
        _ => return None,
    };
    Some(Callback {
        outcome,
        issuer: answer.iss,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_accepts_only_its_own_host_and_origin() {
        let host = "127.0.0.1:7000";
        for (named, expected) in [
            ("host: 127.0.0.1:7000", true),
            ("host: 127.0.0.1:7000 origin: http://127.0.0.1:7000", true),
            ("host: 127.0.0.1:7000 origin: http://127.0.0.1:7001", false),
            ("host: 127.0.0.1:7000 origin: https://127.0.0.1:7000", false),
            ("host: 127.0.0.1:7000 origin: null", false),
            ("host: 127.0.0.1:7000 host: evil.example", false),
            ("host: 127.0.0.1", false),
            ("host: localhost:7000", false),
            ("host: rebound.example:7000", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            let words: Vec<&str> = named.split(' ').collect();
            for pair in words.chunks_exact(2) {
                let name = if pair[0] == "host:" { HOST } else { ORIGIN };
                headers.append(name, pair[1].parse().expect("a value"));
            }
            assert_eq!(is_own(&headers, host), expected, "{named}");
        }
    }

    #[test]
    fn redirect_query_is_parsed() {
        for (query, expected) in [
            (
                "code=a%2Fb&state=st8&iss=https%3A%2F%2Fas",
                Some((Ok("a/b"), Some("https://as"))),
            ),
            (
                "error=access_denied&state=st8&error_description=x",
                Some((Err("access_denied"), None)),
            ),
            ("code=a&state=st8&error=x", Some((Err("x"), None))),
            ("code=a&state=other", None),
            ("code=a", None),
            ("state=st8", None),
            ("code=&state=st8", None),
            ("code=a&code=b&state=st8", None),
            ("code=a&state=st8&state=st8", None),
            ("", None),
        ] {
            let expected = expected.map(|(outcome, issuer): (Result<&str, &str>, _)| Callback {
                outcome: outcome.map(str::to_owned).map_err(str::to_owned),
                issuer: issuer.map(str::to_owned),
            });
            let uri = format!("/callback?{query}").parse().expect("a URI");
            assert_eq!(parse(&uri, "st8"), expected, "{query}");
        }
    }
}
