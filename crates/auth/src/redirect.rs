//! The loopback address that the browser comes back to (RFC 8252, section 7.3).
//!
//! Every program on this machine can send requests here, and so can pages in the person's
//! browser. Only a request with the login's state counts.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// The longest request head, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// The time limit for a request head. Browsers open connections ahead of use.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The number of connections that are served at the same time.
const MAX_CONNECTIONS: usize = 32;

/// A listener for one login.
#[derive(Debug)]
pub(crate) struct Redirect {
    listener: TcpListener,
    port: u16,
}

/// The authorization server's answer, brought back by the browser.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Callback {
    /// The code, or the error in its place.
    pub(crate) outcome: Result<String, String>,
    /// The issuer of the answer (RFC 9207).
    pub(crate) issuer: Option<String>,
}

impl Redirect {
    /// Listens on a port of 127.0.0.1; any free one if none is given.
    pub(crate) async fn listen(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The redirect URI for the authorization request.
    pub(crate) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    /// Waits for the request that has this state. Never ends without one.
    pub(crate) async fn callback(&self, state: &str) -> Callback {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) => connections.push(tokio::time::timeout(
                            TIME_LIMIT,
                            serve(stream, state),
                        )),
                        // Out of descriptors, most likely: those at work go on.
                        Err(error) => {
                            tracing::debug!(%error, "a login's listener cannot accept");
                            tokio::task::yield_now().await;
                        }
                    }
                }
                Some(done) = connections.next() => {
                    if let Ok(Ok(Some(callback))) = done {
                        return callback;
                    }
                }
            }
        }
    }
}

/// Reads one request and answers it.
async fn serve(mut stream: TcpStream, state: &str) -> io::Result<Option<Callback>> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await?;
        if read == 0 || head.len() + read > MAX_HEAD {
            return Ok(None);
        }
        head.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).ok();
    let callback = line.and_then(|line| parse(line, state));
    let (status, text) = match &callback {
        Some(Callback { outcome: Ok(_), .. }) => (
            "200 OK",
            "Callgate has what it needs. You can close this window.",
        ),
        Some(_) => (
            "200 OK",
            "The login was refused. You can close this window; the terminal says more.",
        ),
        None => ("404 Not Found", "There is nothing here."),
    };
    let page = format!("<!doctype html><title>Callgate</title><p>{text}</p>\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n{page}",
        page.len()
    );
    // The callback counts even if the browser is gone.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    Ok(callback)
}

/// Parses a request line; `None` if it is not this login's callback.
fn parse(line: &str, state: &str) -> Option<Callback> {
    let target = line.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let query = target.strip_prefix("/callback?")?;
    let url = Url::parse(&format!("http://127.0.0.1/?{query}")).ok()?;
    let (mut code, mut error, mut received_state, mut issuer) = (None, None, None, None);
    for (name, value) in url.query_pairs() {
        let place = match name.as_ref() {
            "code" => &mut code,
            "error" => &mut error,
            "state" => &mut received_state,
            "iss" => &mut issuer,
            _ => continue,
        };
        // No parameter may stand twice (RFC 6749, section 3.1).
        if place.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    if received_state? != state {
        return None;
    }
    let outcome = match (error, code) {
        (Some(error), _) => Err(error),
        (None, Some(code)) if !code.is_empty() => Ok(code),
        _ => return None,
    };
    Some(Callback { outcome, issuer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(Result<&str, &str>, Option<&str>)>) {
        let expected = expected.map(|(outcome, issuer)| Callback {
            outcome: outcome.map(str::to_owned).map_err(str::to_owned),
            issuer: issuer.map(str::to_owned),
        });
        assert_eq!(parse(line, "st8"), expected, "{line}");
    }

    #[test]
    fn requests() {
        check(
            "GET /callback?code=a%2Fb&state=st8&iss=https%3A%2F%2Fas HTTP/1.1",
            Some((Ok("a/b"), Some("https://as"))),
        );
        check(
            "GET /callback?error=access_denied&state=st8&error_description=x HTTP/1.1",
            Some((Err("access_denied"), None)),
        );
        check(
            "GET /callback?code=a&state=st8&error=x HTTP/1.1",
            Some((Err("x"), None)),
        );
        check("GET /callback?code=a&state=other HTTP/1.1", None);
        check("GET /callback?code=a HTTP/1.1", None);
        check("GET /callback?state=st8 HTTP/1.1", None);
        check("GET /callback?code=&state=st8 HTTP/1.1", None);
        check("GET /callback?code=a&code=b&state=st8 HTTP/1.1", None);
        check("GET /callback?code=a&state=st8&state=st8 HTTP/1.1", None);
        check("GET /other?code=a&state=st8 HTTP/1.1", None);
        check("GET //evil/callback?code=a&state=st8 HTTP/1.1", None);
        check("POST /callback?code=a&state=st8 HTTP/1.1", None);
        check("GET /callback?code=a&state=st8", None);
        check("", None);
    }
}
