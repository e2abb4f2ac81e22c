//! Answers to requests that rmcp does not recognize: the method is unknown, or its params do not
//! match. They contain no value of the params.

use rmcp::model::{CustomRequest, ErrorCode, ErrorData};

use crate::arguments::quoted;
use crate::message::{is_served, wrong_params};

/// Methods that exist in sessions only.
const IN_SESSIONS: [&str; 3] = ["initialize", "logging/setLevel", "ping"];

/// The error for such a request.
pub(crate) fn refusal(request: &CustomRequest, is_stateless: bool) -> ErrorData {
    let method = request.method.as_str();
    if !is_served(method) || is_stateless && IN_SESSIONS.contains(&method) {
        return no_method(method);
    }
    let why = wrong_params(method, request.params.as_ref());
    ErrorData::invalid_params(why, None)
}

/// The error for an unknown method.
pub(crate) fn no_method(method: &str) -> ErrorData {
    let message = format!("unknown method {}", quoted(method));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusal_omits_params_and_distinguishes_methods() {
        let wrong = CustomRequest::new("tools/call", Some(json!({ "name": 5 })));
        let level = CustomRequest::new("logging/setLevel", Some(json!({})));
        let long = CustomRequest::new("m".repeat(10_000), None);
        for (request, is_stateless, code) in [
            (&wrong, true, -32602),
            (&level, false, -32602),
            (&level, true, -32601),
            (&long, false, -32601),
        ] {
            let error = refusal(request, is_stateless);
            assert_eq!(error.code.0, code, "{error:?}");
            assert!(error.message.len() < 200);
        }
    }
}
