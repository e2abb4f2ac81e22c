//! Requests that the SDK could not read, and so takes for some of a method that it
//! does not know: which method there is not, or what is wrong with the params of one
//! that there is. Nothing of the params is quoted.

use rmcp::model::{CustomRequest, ErrorCode, ErrorData};
use serde_json::Value;

use crate::arguments::shown;
use crate::runs::level_of;

/// Methods of sessions, which requests on their own do not have.
const IN_SESSIONS: [&str; 3] = ["initialize", "logging/setLevel", "ping"];

/// A member of a method's params.
struct Member {
    name: &'static str,
    is_needed: bool,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Object,
}

/// The answer to such a request. `is_stateless` says whether it belongs to no session.
pub(crate) fn refusal(request: &CustomRequest, is_stateless: bool) -> ErrorData {
    let method = request.method.as_str();
    let is_there = !(is_stateless && IN_SESSIONS.contains(&method));
    match misfit(method, request.params.as_ref()).filter(|_| is_there) {
        Some(misfit) => ErrorData::invalid_params(misfit, None),
        None => no_method(method),
    }
}

/// The answer to a request of a method that there is not.
pub(crate) fn no_method(method: &str) -> ErrorData {
    let message = format!("there is no method {}", shown(method));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// What is wrong with params that do not have the form of their method; `None` if
/// there is no such method.
pub(crate) fn misfit(method: &str, params: Option<&Value>) -> Option<String> {
    let members = members(method)?;
    let mut wrong = Vec::new();
    for Member {
        name,
        is_needed,
        kind,
    } in members
    {
        let given = params.and_then(|params| params.get(name));
        let fits = match (given, kind) {
            (None, _) => !is_needed,
            (Some(value), Kind::Text) => value.is_string(),
            (Some(value), Kind::Object) => value.is_object(),
        };
        let kind = match kind {
            Kind::Text => "a string",
            Kind::Object => "an object",
        };
        match given {
            _ if fits => {}
            Some(_) => wrong.push(format!("{name:?} must be {kind}")),
            None => wrong.push(format!("{name:?} is missing, {kind}")),
        }
    }
    if method == "logging/setLevel"
        && let Some(level) = params.and_then(|params| params.get("level"))
        && let (true, Err(unknown)) = (level.is_string(), level_of(level))
    {
        wrong.push(unknown.message.into_owned());
    }
    let what = format!("the params of {method} do not have its form");
    Some(match wrong.is_empty() {
        // Something deeper down.
        true => what,
        false => format!("{what}: {}", wrong.join("; ")),
    })
}

/// What is looked at of the params of a method; `None` if there is no such method.
fn members(method: &str) -> Option<&'static [Member]> {
    use Kind::{Object, Text};
    Some(match method {
        "ping" | "server/discover" => &[],
        "initialize" => {
            const {
                &[
                    needed("protocolVersion", Text),
                    needed("capabilities", Object),
                    needed("clientInfo", Object),
                ]
            }
        }
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            const { &[optional("cursor", Text)] }
        }
        "tools/call" => {
            const {
                &[
                    needed("name", Text),
                    optional("arguments", Object),
                    optional("requestState", Text),
                    optional("inputResponses", Object),
                ]
            }
        }
        "prompts/get" => const { &[needed("name", Text), optional("arguments", Object)] },
        "resources/read" => const { &[needed("uri", Text)] },
        "completion/complete" => const { &[needed("ref", Object), needed("argument", Object)] },
        "logging/setLevel" => const { &[needed("level", Text)] },
        "tasks/get" | "tasks/cancel" => const { &[needed("taskId", Text)] },
        "tasks/update" => const { &[needed("taskId", Text), needed("inputResponses", Object)] },
        _ => return None,
    })
}

const fn needed(name: &'static str, kind: Kind) -> Member {
    Member {
        name,
        is_needed: true,
        kind,
    }
}

const fn optional(name: &'static str, kind: Kind) -> Member {
    Member {
        name,
        is_needed: false,
        kind,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(method: &str, params: Option<Value>, is_stateless: bool, expected: &str) {
        let error = refusal(&CustomRequest::new(method, params), is_stateless);
        assert_eq!(format!("{} {}", error.code.0, error.message), expected);
    }

    #[test]
    fn what_is_wrong_is_said_and_no_value() {
        let form = |method: &str| format!("-32602 the params of {method} do not have its form");
        let call = |params, wrong: &str| {
            check("tools/call", params, true, &(form("tools/call") + wrong));
        };
        call(None, ": \"name\" is missing, a string");
        call(
            Some(json!({ "name": 5, "arguments": [], "requestState": 5, "inputResponses": 5 })),
            ": \"name\" must be a string; \"arguments\" must be an object; \"requestState\" must \
             be a string; \"inputResponses\" must be an object",
        );
        // What is deeper down is not looked for.
        call(Some(json!({ "name": "run_script" })), "");
        check(
            "tasks/update",
            Some(json!({ "taskId": "t" })),
            true,
            &(form("tasks/update") + ": \"inputResponses\" is missing, an object"),
        );
        check(
            "logging/setLevel",
            Some(json!({ "level": 7 })),
            false,
            &(form("logging/setLevel") + ": \"level\" must be a string"),
        );
        check(
            "logging/setLevel",
            Some(json!({ "level": "loud" })),
            false,
            &(form("logging/setLevel")
                + ": this is no log level; they are debug, info, notice, warning, error, \
                   critical, alert and emergency"),
        );
        check(
            "initialize",
            Some(json!({ "protocolVersion": 7, "capabilities": {} })),
            false,
            &(form("initialize")
                + ": \"protocolVersion\" must be a string; \"clientInfo\" is missing, an object"),
        );
    }

    #[test]
    fn methods_that_there_are_not() {
        let none = "-32601 there is no method \"no/such\"";
        check("no/such", Some(json!([1])), false, none);
        let none = "-32601 there is no method \"logging/setLevel\"";
        check("logging/setLevel", Some(json!({})), true, none);
        let long = CustomRequest::new("m".repeat(10_000), None);
        assert!(refusal(&long, false).message.len() < 200);
    }
}
