//! Bodies of bounded size, and what is in them.

use reqwest::Response;
use rmcp::model::ErrorData;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::object::Object;
use crate::refusal::error_data;

/// The longest body that is read where only an error may be in it, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Why there is no body.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is over the limit.
    TooLarge,
    /// It broke off.
    Broken(reqwest::Error),
}

/// What a body is, by its `Content-Type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// One JSON value.
    Json,
    /// Server-sent events.
    Events,
    /// Something else, as the server names it; cut, and fit to be shown.
    Other(String),
}

impl Content {
    /// What a response says its body is.
    pub(crate) fn of(response: &Response) -> Self {
        // None is asked for, and none can be read.
        let encoding = response.headers().get(http::header::CONTENT_ENCODING);
        let encoding = encoding.map_or("identity", |header| header.to_str().unwrap_or("?"));
        if !encoding.eq_ignore_ascii_case("identity") {
            let encoding: String = encoding.chars().take(60).collect();
            return Self::Other(format!("content encoding {encoding:?}"));
        }
        let header = response.headers().get(http::header::CONTENT_TYPE);
        let text = header.map_or("", |header| header.to_str().unwrap_or("?"));
        let essence = text.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if essence.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else if essence.is_empty() {
            Self::Other("no content type".to_owned())
        } else {
            let essence: String = essence.chars().take(60).collect();
            Self::Other(format!("content type {essence:?}"))
        }
    }
}

/// The whole body, of at most `max_bytes`.
pub(crate) async fn read(response: &mut Response, max_bytes: usize) -> Result<Vec<u8>, BodyError> {
    let announced = response.content_length().unwrap_or(0);
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    if announced > max_bytes {
        return Err(BodyError::TooLarge);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if body.len() + chunk.len() > max_bytes {
            return Err(BodyError::TooLarge);
        }
        if body.is_empty() {
            // What a server announces it may not keep; a little is taken on trust.
            body.reserve(announced.min(1 << 20).max(chunk.len()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The JSON-RPC error in the body of a response that is no success, if there is
/// one. Its id does not matter: the response belongs to one request.
pub(crate) async fn rpc_error(response: &mut Response) -> Option<ErrorData> {
    #[derive(Deserialize)]
    struct Error<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let body = read(response, MAX_ERROR_BYTES).await.ok()?;
    let Object(message) = serde_json::from_slice::<Object<Error<'_>>>(&body).ok()?;
    // `{"error": "invalid_token"}` and its like are no JSON-RPC.
    message
        .error
        .get()
        .starts_with('{')
        .then(|| error_data(message.error))
}
