//! The body of a request, bounded in size and time.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, header};
use futures::StreamExt as _;
use serde_json::{Map, Value};

use super::refusal::Refusal;
use crate::message::{self, Malformed};

/// The name of a body in errors.
pub(crate) const BODY: &str = "the body";

/// Reads a body of at most `max` bytes within `time`.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    max: u64,
    time: Duration,
) -> Result<Bytes, Refusal> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let too_large = || {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {max} bytes; \"maxBody\" is the limit"),
        )
    };
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|bytes| bytes > max) {
        return Err(too_large());
    }
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    let collect = async {
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| Refusal::bad("the body did not come to its end"))?;
            if chunk.len() > max - bytes.len() {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(())
    };
    let collected = tokio::time::timeout(time, collect).await;
    collected.unwrap_or_else(|_| {
        let message = format!("the body did not come within {} s", time.as_secs_f32());
        Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message))
    })?;
    Ok(bytes.into())
}

/// Refuses a body that is not declared as JSON.
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let content = headers.get(CONTENT_TYPE);
    let content = content
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = content.split(';').next().unwrap_or_default();
    if kind.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the body must have the Content-Type application/json",
    ))
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
    use super::*;

    #[tokio::test]
    async fn sizes() {
        let headers = HeaderMap::new();
        let read = |bytes: usize| read(&headers, Body::from(vec![b'x'; bytes]), 10, Duration::MAX);
        assert_eq!(read(10).await.expect("it fits").len(), 10);
        let refused = read(11).await.expect_err("it does not");
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
