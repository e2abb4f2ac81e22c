//! Values of settings and flags, as texts.

use std::net::SocketAddr;

use url::{Host, Url};

/// A text that is not a value of its setting. It says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(pub(super) String);

/// The message about a number that is not a share.
pub(super) const SHARE: &str = "a share is a number above 0 and at most 1, such as 0.02";

/// Reads a share: a number above 0 and at most 1.
///
/// # Errors
///
/// [`InvalidValue`] for any other text.
pub fn parse_share(text: &str) -> Result<f64, InvalidValue> {
    let share = text.parse().ok();
    share
        .filter(is_share)
        .ok_or_else(|| InvalidValue(SHARE.to_owned()))
}

pub(super) fn is_share(share: &f64) -> bool {
    *share > 0.0 && *share <= 1.0
}

/// Reads an address to listen on.
///
/// # Errors
///
/// [`InvalidValue`] for any other text.
pub fn address(text: &str) -> Result<SocketAddr, InvalidValue> {
    let named = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    named.parse().map_err(|_| {
        InvalidValue(format!(
            "{text:?} is not an address to listen on; write an IP address and a port, such as \
             \"127.0.0.1:8080\""
        ))
    })
}

/// Reads a name for the `Host` header. It is in lower case, as it is compared.
///
/// # Errors
///
/// [`InvalidValue`] for any other text.
pub fn host(text: &str) -> Result<String, InvalidValue> {
    let fits = Url::parse(&format!("http://{text}/")).is_ok_and(|url| {
        url.path() == "/"
            && url.username().is_empty()
            && url.password().is_none()
            && matches!(url.host(), Some(Host::Domain(name)) if !name.contains('*'))
            || matches!(url.host(), Some(Host::Ipv4(_) | Host::Ipv6(_)))
    });
    if fits && !text.contains(['/', '@', '?', '#']) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(InvalidValue(format!(
        "{text:?} is not a host; write a name, such as \"callgate.example.com\", or one with a port"
    )))
}

/// Reads an origin, as browsers write it.
///
/// # Errors
///
/// [`InvalidValue`] for any other text.
pub fn origin(text: &str) -> Result<String, InvalidValue> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
    });
    match url {
        Some(url) => Ok(url.origin().ascii_serialization()),
        None => Err(InvalidValue(format!(
            "{text:?} is not an origin; write scheme and host, such as \"https://app.example.com\""
        ))),
    }
}

/// Reads a scope, as it may stand in a header (RFC 6749, section 3.3).
pub(super) fn scope(text: &str) -> Result<String, InvalidValue> {
    let fits = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    if !text.is_empty() && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err(InvalidValue(format!(
        "{text:?} is not a scope; it must be one word of plain letters"
    )))
}
