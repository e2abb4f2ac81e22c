//! The body of a request, bounded in size and time.

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use callgate_sandbox::{MemoryShare, TakenMemory};
use callgate_schema::extent;
use callgate_text::shown_size;
use serde_json::{Map, Value};

use super::refusal::HttpRefusal;
use crate::config::HttpConfig;
use crate::message::{self, BYTE_ORDER_MARK, MAX_VALUES, Malformed};

/// The name of a body in errors.
pub(crate) const BODY: &str = "the body";

/// Bytes that a JSON value takes in memory, in addition to its text, while its message is read and
/// answered: measured with objects of one member.
const VALUE_BYTES: u64 = 512;
/// The limit of an encoding's name in an error, in characters.
const MAX_ENCODING: usize = 40;
/// Seconds after which there may be memory again.
const RETRY_SECONDS: u64 = 2;

/// Reads a body that is declared as JSON, within the limits of size and time. The second part
/// reserves the memory for its bytes and values; drop it with them.
pub(crate) async fn read(
    config: &HttpConfig,
    memory: &MemoryShare,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, TakenMemory), HttpRefusal> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(HttpRefusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must have the Content-Type application/json",
        ));
    }
    if let Some(encoding) = encoding(headers) {
        let message = format!(
            "the body has the Content-Encoding {encoding:?}, which is not supported; send it \
             uncompressed and without Content-Encoding"
        );
        let refused = HttpRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        let identity = HeaderValue::from_static("identity");
        return Err(refused.with(ACCEPT_ENCODING, identity));
    }
    let too_large = || {
        let max = shown_size(config.max_body);
        let message = format!("the body has more than {max}; \"maxBody\" is the limit");
        HttpRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.size_hint().lower() > config.max_body {
        return Err(too_large());
    }
    let busy = || {
        let message = "the server's memory for requests is in use; retry later";
        HttpRefusal::unavailable(message, RETRY_SECONDS)
    };
    let max = body.size_hint().exact().unwrap_or(config.max_body);
    let taking = tokio::time::timeout(config.request_time, memory.take(max)).await;
    let mut taken = taking.map_err(|_late| busy())?;
    let max = usize::try_from(config.max_body).unwrap_or(usize::MAX);
    let Ok(read) = tokio::time::timeout(config.request_time, to_bytes(body, max)).await else {
        let seconds = config.request_time.as_secs_f32();
        let message = format!("the body did not arrive within {seconds} s");
        return Err(HttpRefusal::new(StatusCode::REQUEST_TIMEOUT, message));
    };
    // A body that breaks off fails, too, but then the client is gone.
    let mut bytes = read.map_err(|_| too_large())?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes = bytes.slice(BYTE_ORDER_MARK.len()..);
    }
    // A text that is not UTF-8 or has too many values is refused later, before it is parsed.
    let values = std::str::from_utf8(&bytes).map_or(0, |text| extent(text).parts);
    let values = if values > MAX_VALUES { 0 } else { values };
    let needed = (bytes.len() as u64).saturating_add(values.saturating_mul(VALUE_BYTES));
    if !taken.try_resize(needed) {
        return Err(busy());
    }
    Ok((bytes, taken))
}

/// The first encoding of a body that is encoded.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let mut encodings = values.flat_map(|value| value.to_str().unwrap_or("?").split(','));
    let encoded = encodings.find(|it| !matches!(it.trim(), "" | "identity"))?;
    Some(encoded.trim().chars().take(MAX_ENCODING).collect())
}

/// The members of a body that is one JSON object.
pub(crate) fn object(bytes: &[u8]) -> Result<Map<String, Value>, HttpRefusal> {
    let text = message::text(BODY, bytes)?;
    message::bounded(text)?;
    let not_json = |error| Malformed::not_json(BODY, &error);
    match serde_json::from_str(text).map_err(not_json)? {
        Value::Object(members) => Ok(members),
        _ => Err(HttpRefusal::bad("the body must be a JSON object")),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use callgate_sandbox::MemoryBudget;

    use super::*;

    #[tokio::test]
    async fn body_over_the_limit_is_refused() {
        let config = HttpConfig {
            max_body: 10,
            ..HttpConfig::default()
        };
        let kind = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
        let memory = MemoryBudget::new(1 << 20).share(true);
        let read = |bytes: usize| read(&config, &memory, &headers, Body::from(vec![b'x'; bytes]));
        assert_eq!(read(10).await.expect("it fits").0.len(), 10);
        let refused = read(11).await.expect_err("it does not");
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
