//! The body of a request, bounded in size and time.

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use callgate::config::HttpConfig;
use serde_json::{Map, Value};

use super::refusal::Refusal;
use crate::message::{self, Malformed};

/// The name of a body in errors.
pub(crate) const BODY: &str = "the body";

/// Reads a body that is declared as JSON, within the limits of size and time.
pub(crate) async fn read(
    config: &HttpConfig,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, Refusal> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must have the Content-Type application/json",
        ));
    }
    let too_large = || {
        let max = config.max_body;
        let message = format!("the body has more than {max} bytes; \"maxBody\" is the limit");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.size_hint().lower() > config.max_body {
        return Err(too_large());
    }
    let max = usize::try_from(config.max_body).unwrap_or(usize::MAX);
    match tokio::time::timeout(config.request_time, to_bytes(body, max)).await {
        // Of a body that breaks off, the client is gone.
        Ok(read) => read.map_err(|_| too_large()),
        Err(_late) => {
            let seconds = config.request_time.as_secs_f32();
            let message = format!("the body did not come within {seconds} s");
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

/// The members of a body that is one JSON object.
pub(crate) fn object(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    let text = message::text(BODY, bytes)?;
    message::bounded(text)?;
    let no_json = |error| Malformed::no_json(BODY, &error);
    match serde_json::from_str(text).map_err(no_json)? {
        Value::Object(members) => Ok(members),
        _ => Err(Refusal::bad("the body must be a JSON object")),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[tokio::test]
    async fn sizes() {
        let mut config = HttpConfig::default();
        config.max_body = 10;
        let kind = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
        let read = |bytes: usize| read(&config, &headers, Body::from(vec![b'x'; bytes]));
        assert_eq!(read(10).await.expect("it fits").len(), 10);
        let refused = read(11).await.expect_err("it does not");
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
