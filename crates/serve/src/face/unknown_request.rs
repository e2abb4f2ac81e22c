//! Answers to requests that rmcp could not type: the method is unknown, or its params do not
//! fit. No value of the params is repeated.

use rmcp::model::{CustomRequest, ErrorCode, ErrorData};
use serde_json::Value;

use crate::arguments::quoted;
use crate::runs::log_level;

/// Methods that exist in sessions only.
const IN_SESSIONS: [&str; 3] = ["initialize", "logging/setLevel", "ping"];

/// The error for such a request.
pub(crate) fn refusal(request: &CustomRequest, is_stateless: bool) -> ErrorData {
    let method = request.method.as_str();
    if is_stateless && IN_SESSIONS.contains(&method) {
        return no_method(method);
    }
    match unfit(method, request.params.as_ref()) {
        Some(why) => ErrorData::invalid_params(why, None),
        None => no_method(method),
    }
}

/// The error for an unknown method.
pub(crate) fn no_method(method: &str) -> ErrorData {
    let message = format!("there is no method {}", quoted(method));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Problems of params that do not fit their method. `None` if there is no such method.
pub(crate) fn unfit(method: &str, params: Option<&Value>) -> Option<String> {
    let mut problems = Vec::new();
    for member in members(method)?.split_whitespace() {
        let (is_object, member) = match member.strip_prefix("{}") {
            Some(member) => (true, member),
            None => (false, member),
        };
        let (is_needed, name) = match member.strip_suffix('?') {
            Some(name) => (false, name),
            None => (true, member),
        };
        let kind = if is_object { "an object" } else { "a string" };
        match params.and_then(|params| params.get(name)) {
            None if is_needed => problems.push(format!("{name:?} is missing, {kind}")),
            Some(value)
                if !(if is_object {
                    value.is_object()
                } else {
                    value.is_string()
                }) =>
            {
                problems.push(format!("{name:?} must be {kind}"));
            }
            Some(level) if method == "logging/setLevel" => {
                problems.extend(log_level(level).err().map(|why| why.message.into_owned()));
            }
            _ => {}
        }
    }
    let mut text = format!("the params of {method} do not have its form");
    if !problems.is_empty() {
        text += &format!(": {}", problems.join("; "));
    }
    Some(text)
}

/// The members that are checked: strings, or objects after `{}`; `?` marks optional ones.
fn members(method: &str) -> Option<&'static str> {
    Some(match method {
        "ping" | "server/discover" => "",
        "initialize" => "protocolVersion {}capabilities {}clientInfo",
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => "cursor?",
        "tools/call" => "name {}arguments? requestState? {}inputResponses?",
        "prompts/get" => "name {}arguments?",
        "resources/read" => "uri",
        "completion/complete" => "{}ref {}argument",
        "logging/setLevel" => "level",
        "tasks/get" | "tasks/cancel" => "taskId",
        "tasks/update" => "taskId {}inputResponses",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn problems_are_listed_without_values() {
        for (method, params, problems) in [
            (
                "tools/call",
                json!({ "name": 5, "arguments": [], "requestState": 5, "inputResponses": 5 }),
                ": \"name\" must be a string; \"arguments\" must be an object; \"requestState\" \
                 must be a string; \"inputResponses\" must be an object",
            ),
            ("tools/call", json!(null), ": \"name\" is missing, a string"),
            ("tools/call", json!({ "name": "run_script" }), ""),
            (
                "logging/setLevel",
                json!({ "level": "loud" }),
                ": this is not a log level; they are debug, info, notice, warning, error, critical, \
                 alert and emergency",
            ),
            (
                "initialize",
                json!({ "protocolVersion": 7, "capabilities": {} }),
                ": \"protocolVersion\" must be a string; \"clientInfo\" is missing, an object",
            ),
        ] {
            let error = refusal(&CustomRequest::new(method, Some(params)), false);
            let expected = format!("the params of {method} do not have its form{problems}");
            assert_eq!((error.code.0, &*error.message), (-32602, &*expected));
        }
    }

    #[test]
    fn unknown_methods() {
        let level = CustomRequest::new("logging/setLevel", Some(json!({})));
        let long = CustomRequest::new("m".repeat(10_000), None);
        for (request, is_stateless) in [(level, true), (long, false)] {
            let error = refusal(&request, is_stateless);
            assert_eq!(error.code.0, -32601);
            assert!(error.message.len() < 200);
        }
    }
}
