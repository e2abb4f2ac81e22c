//! Answers that a client can keep and revalidate with their ETag.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The answer to a request with these headers: the value as JSON with a strong validator (RFC
/// 9110, section 8.8.3), or status 304 if the client has it.
pub(super) fn tagged(value: &Value, headers: &HeaderMap) -> Response {
    let body = value.to_string();
    let tag = tag(&body);
    let mut response = if is_known(headers, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let kind = HeaderValue::from_static("application/json");
        ([(CONTENT_TYPE, kind)], Body::from(body)).into_response()
    };
    let headers = response.headers_mut();
    // The answer is one user's, and may change at any time.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}

fn tag(body: &str) -> String {
    format!("\"{}\"", hex::encode(Sha256::digest(body)))
}

/// True if the client has the answer with this tag (RFC 9110, section 13.1.2).
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let fields = headers.get_all(IF_NONE_MATCH).iter();
    let mut tags = fields.flat_map(|field| field.to_str().unwrap_or_default().split(','));
    tags.any(|field| {
        let field = field.trim();
        field == "*" || field.strip_prefix("W/").unwrap_or(field) == tag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etag_in_request_header_is_recognized() {
        let tag = tag("1");
        assert_ne!(tag, super::tag("2"));
        let known = |field: &str| {
            let field = HeaderValue::from_bytes(field.as_bytes()).expect("a value");
            is_known(&HeaderMap::from_iter([(IF_NONE_MATCH, field)]), &tag)
        };
        for field in [
            &tag,
            &format!("W/{tag}"),
            &format!("\"other\" ,  {tag}"),
            "*",
        ] {
            assert!(known(field), "{field}");
        }
        for field in ["", tag.trim_matches('"'), "\"*\"", &format!("w/{tag}")] {
            assert!(!known(field), "{field}");
        }
        assert!(!is_known(&HeaderMap::new(), &tag));
    }
}
