//! Answers to requests that are refused.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use rmcp::model::{ErrorCode, RequestId};
use serde_json::{Value, json};

use crate::message::Malformed;

/// A refused request: a status with a JSON-RPC error or problem details. The text contains nothing
/// that the client may not know.
#[derive(Debug, Clone)]
pub(crate) struct HttpRefusal {
    status: StatusCode,
    code: ErrorCode,
    message: String,
    /// The request's id, if it could be read.
    id: Option<RequestId>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl HttpRefusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            code: if status.is_server_error() {
                ErrorCode::INTERNAL_ERROR
            } else {
                ErrorCode::INVALID_REQUEST
            },
            message: message.into(),
            id: None,
            headers: Vec::new(),
        }
    }

    /// A malformed request.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A failure that may be gone after these seconds.
    pub(crate) fn unavailable(message: impl Into<String>, seconds: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
            .with(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// The refusal with the `id` of its request.
    pub(crate) fn to(mut self, id: Option<RequestId>) -> Self {
        self.id = id;
        self
    }

    /// The refusal with one more header.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The answer in the form of this path.
    pub(crate) fn at(self, path: &str) -> Response<Body> {
        if path == "/v1" || path.starts_with("/v1/") {
            self.into_response()
        } else {
            self.json_rpc()
        }
    }

    /// The answer of MCP: a JSON-RPC error.
    pub(crate) fn json_rpc(self) -> Response<Body> {
        let error = json!({ "code": self.code, "message": self.message });
        let mut body = json!({ "jsonrpc": "2.0", "error": error });
        // MCP's schema has no null here, unlike JSON-RPC.
        if let Some(id) = self.id {
            body["id"] = id.into_json_value();
        }
        answer(self.status, "application/json", &body, self.headers)
    }
}

/// The answer of REST: problem details (RFC 9457).
impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response<Body> {
        let status = self.status;
        let body = json!({
            "type": "about:blank",
            "title": status.canonical_reason().unwrap_or_default(),
            "status": status.as_u16(),
            "detail": self.message,
        });
        answer(status, "application/problem+json", &body, self.headers)
    }
}

impl From<Malformed> for HttpRefusal {
    fn from(malformed: Malformed) -> Self {
        let Malformed { code, id, message } = malformed;
        Self {
            code,
            ..Self::bad(message).to(id)
        }
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
