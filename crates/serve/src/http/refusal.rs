//! Answers to requests that are not served.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::envelope::{INVALID_REQUEST, Malformed};

/// Why a request is not served: a status, and a JSON-RPC error or problem details. It
/// tells nothing that whoever asked does not know or may not know.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    /// In a box: errors are moved around a lot.
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    status: StatusCode,
    code: i32,
    message: String,
    /// That of the request; null where it could not be read.
    id: Value,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// JSON-RPC 2.0, section 5.1.
const INTERNAL_ERROR: i32 = -32603;

impl Refusal {
    /// A request that is wrong in itself.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let inner = Inner {
            status,
            code: match status.is_server_error() {
                true => INTERNAL_ERROR,
                false => INVALID_REQUEST,
            },
            message: message.into(),
            id: Value::Null,
            headers: Vec::new(),
        };
        Self {
            inner: Box::new(inner),
        }
    }

    /// A malformed request.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Something on this side does not work, and may later.
    pub(crate) fn unavailable(message: impl Into<String>, seconds: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
            .with(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// The answer is to the request with this `id`.
    pub(crate) fn to(mut self, id: Value) -> Self {
        self.inner.id = id;
        self
    }

    /// The answer has this header, too.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.inner.headers.push((name, value));
        self
    }

    /// The status of the answer.
    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.inner.status
    }

    /// The answer of what is at this path.
    pub(crate) fn at(self, path: &str) -> Response<Body> {
        match path == "/v1" || path.starts_with("/v1/") {
            true => self.problem(),
            false => self.response(),
        }
    }

    /// The answer where no MCP is spoken: problem details (RFC 9457).
    pub(crate) fn problem(self) -> Response<Body> {
        let status = self.inner.status;
        let body = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or_default(),
            "status": status.as_u16(),
            "detail": self.inner.message,
        });
        answer(
            status,
            "application/problem+json",
            &body,
            self.inner.headers,
        )
    }

    /// The answer where MCP is spoken: a JSON-RPC error.
    pub(crate) fn response(self) -> Response<Body> {
        let Inner {
            status,
            code,
            message,
            id,
            headers: more,
        } = *self.inner;
        let mut body = json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": { "code": code, "message": message },
        });
        // JSON-RPC has null there. MCP's schema has no id that is null, and clients that
        // hold messages to it cannot read one that has.
        if let (true, Some(members)) = (id.is_null(), body.as_object_mut()) {
            members.remove("id");
        }
        answer(status, "application/json", &body, more)
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        let Malformed { code, id, message } = malformed;
        let mut refusal = Self::bad(message).to(id.unwrap_or_default());
        refusal.inner.code = code;
        refusal
    }
}

fn answer(
    status: StatusCode,
    kind: &'static str,
    body: &Value,
    more: Vec<(HeaderName, HeaderValue)>,
) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.extend(more);
    response
}
