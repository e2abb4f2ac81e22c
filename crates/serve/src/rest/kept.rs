//! Answers that a client may keep, and ask for again by their tag.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::http::refusal::Refusal;

/// Bytes of the hash in a tag.
const TAG: usize = 16;

/// An answer, and its strong validator (RFC 9110, section 8.8.3).
#[derive(Debug)]
pub(super) struct Kept {
    body: String,
    tag: String,
}

impl Kept {
    /// What is made on a thread for what takes a while.
    pub(super) async fn made(
        make: impl FnOnce() -> Result<Value, Refusal> + Send + 'static,
    ) -> Result<Self, Refusal> {
        let making = tokio::task::spawn_blocking(move || make().map(|value| Self::of(&value)));
        match making.await {
            Ok(made) => made,
            // Nothing in it panics, so the runtime is shutting down, and this task
            // with it.
            Err(_) => std::future::pending().await,
        }
    }

    /// This, as JSON.
    fn of(value: &Value) -> Self {
        let body = value.to_string();
        let mut tag = "\"".to_owned();
        for byte in Sha256::digest(&body).iter().take(TAG) {
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');
        Self { body, tag }
    }

    /// The answer to a request with these headers: the whole, or that the client
    /// has it.
    pub(super) fn answer(self, headers: &HeaderMap) -> Response {
        let mut response = match is_known(headers, &self.tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => {
                let mut response = Response::new(Body::from(self.body));
                let kind = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
        };
        let headers = response.headers_mut();
        // It is one user's, and may be another one the next moment.
        let control = HeaderValue::from_static("private, no-cache");
        headers.insert(CACHE_CONTROL, control);
        if let Ok(tag) = HeaderValue::from_str(&self.tag) {
            headers.insert(ETAG, tag);
        }
        response
    }
}

/// Whether the client has what has this tag (RFC 9110, section 13.1.2).
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let mut fields = headers.get_all(IF_NONE_MATCH).iter();
    fields.any(|field| {
        let mut tags = field.to_str().unwrap_or_default().split(',').map(str::trim);
        tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_that_are_known() {
        let tag = Kept::of(&json!({ "a": 1 })).tag;
        assert_eq!(tag.len(), 2 * TAG + 2);
        assert_ne!(tag, Kept::of(&json!({ "a": 2 })).tag);
        let known = |fields: &[String]| {
            let mut headers = HeaderMap::new();
            for field in fields {
                let field = HeaderValue::from_bytes(field.as_bytes());
                headers.append(IF_NONE_MATCH, field.expect("a value"));
            }
            is_known(&headers, &tag)
        };
        let bare = tag.trim_matches('"').to_owned();
        for fields in [
            vec![tag.clone()],
            vec![format!("W/{tag}")],
            vec![format!("\"other\" ,  {tag}")],
            vec!["\"other\"".to_owned(), tag.clone()],
            vec!["*".to_owned()],
        ] {
            assert!(known(&fields), "{fields:?}");
        }
        for fields in [
            vec![],
            vec![String::new()],
            vec![bare],
            vec!["\"*\"".to_owned()],
            vec![format!("w/{tag}")],
            vec!["\"é\"".to_owned()],
        ] {
            assert!(!known(&fields), "{fields:?}");
        }
    }
}
