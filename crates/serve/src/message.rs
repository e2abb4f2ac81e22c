//! Checks of an incoming message, made before the protocol is read. The same over HTTP and
//! stdio.

use std::borrow::Cow;

use callgate_schema::{extent, present};
use callgate_text::label;
use rmcp::model::{ErrorCode, RequestId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// U+FEFF, which some clients write first.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// The header with the id of an MCP session over HTTP.
pub(crate) const SESSION_HEADER: &str = "mcp-session-id";
/// The limit of nesting of objects and arrays.
const MAX_DEPTH: u32 = 100;
/// The limit of values in a message: in memory they take up to a hundred times their text.
pub(crate) const MAX_VALUES: u64 = 1 << 18;

/// The limit of a method's name in an error, in characters.
const MAX_METHOD: usize = 80;

/// A member of params as a JSON pointer, its type, and whether it is required.
type Member = (&'static str, &'static str, bool);

/// Members that the params of any request may have.
const COMMON: [Member; 3] = [
    ("/_meta", "an object", false),
    ("/inputResponses", "an object", false),
    ("/requestState", "a string", false),
];

/// The members of the params of a method that is served.
fn members(method: &str) -> Option<&'static [Member]> {
    let members: &[Member] = match method {
        "tools/call" | "prompts/get" => &[
            ("/name", "a string", true),
            ("/arguments", "an object", false),
        ],
        "resources/read" => &[("/uri", "a string", true)],
        "logging/setLevel" => &[("/level", "a string", true)],
        "tasks/cancel" | "tasks/get" | "tasks/update" => &[("/taskId", "a string", true)],
        "initialize" => &[
            ("/protocolVersion", "a string", true),
            ("/capabilities", "an object", true),
            ("/clientInfo", "an object", true),
            ("/clientInfo/name", "a string", true),
            ("/clientInfo/version", "a string", true),
        ],
        "completion/complete" | "ping" | "server/discover" => &[],
        "prompts/list" | "resources/list" | "resources/templates/list" | "tools/list" => &[],
        _ => return None,
    };
    Some(members)
}

/// True if requests with this method are served.
pub(crate) fn is_served(method: &str) -> bool {
    members(method).is_some()
}

/// The error message for params that do not match the method. It names the wrong member if it is
/// known, and contains no value.
pub(crate) fn wrong_params(method: &str, params: Option<&Value>) -> String {
    let params = params.unwrap_or(&Value::Null);
    let members = members(method).unwrap_or_default();
    let wrong = members.iter().chain(&COMMON).find_map(|member| {
        let (pointer, kind, is_required) = *member;
        let name = pointer.trim_start_matches('/').replace('/', ".");
        let is_right = match params.pointer(pointer) {
            None if is_required => return Some(format!("{name:?} is missing; it is {kind}")),
            None => true,
            Some(Value::Null) => !is_required,
            Some(Value::String(_)) => kind == "a string",
            Some(Value::Object(_)) => kind == "an object",
            Some(_) => false,
        };
        (!is_right).then(|| format!("{name:?} must be {kind}"))
    });
    let wrong = wrong.map_or_else(String::new, |wrong| format!(": {wrong}"));
    format!(
        "the params do not match {}{wrong}",
        label(method, MAX_METHOD)
    )
}

/// [`wrong_params`] of a message that passed [`envelope`].
pub(crate) fn wrong_params_of(method: &str, message: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Message {
        params: Option<Value>,
    }
    let message = serde_json::from_slice::<Message>(message);
    wrong_params(method, message.ok().and_then(|it| it.params).as_ref())
}

/// The outer members of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The `id` of a request or an answer.
    pub(crate) id: Option<RequestId>,
    pub(crate) method: Option<String>,
}

/// The reason why a message cannot be served.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) code: ErrorCode,
    /// The `id` of the request, if it could be read.
    pub(crate) id: Option<RequestId>,
    pub(crate) message: Cow<'static, str>,
}

impl Malformed {
    /// JSON that is not a valid message.
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: ErrorCode::INVALID_REQUEST,
            id: None,
            message: message.into(),
        }
    }

    /// Text that is not JSON; `what` names the text.
    pub(crate) fn not_json(what: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        Self {
            code: ErrorCode::PARSE_ERROR,
            ..Self::new(format!("{what} is not JSON (line {line}, column {column})"))
        }
    }

    /// The error with the `id` of its request.
    pub(crate) fn to(mut self, id: Option<RequestId>) -> Self {
        self.id = id;
        self
    }
}

/// Checks that the bytes are one JSON-RPC message; `what` names them in an error.
pub(crate) fn envelope(what: &str, bytes: &[u8]) -> Result<Envelope, Malformed> {
    // Raw values are read without recursion, so that no nesting is too deep.
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        jsonrpc: Option<Cow<'a, str>>,
        #[serde(borrow, default, deserialize_with = "present")]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let text = text(what, bytes)?;
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| Malformed::not_json(what, &error))?;
    if raw.get().starts_with('[') {
        return Err(Malformed::new(
            "batches are not part of MCP since 2025-06-18; send one message in a request",
        ));
    }
    if !raw.get().starts_with('{') {
        return Err(Malformed::new("a JSON-RPC message is an object"));
    }
    let message: Message<'_> = serde_json::from_str(raw.get()).map_err(|_| {
        Malformed::new("the message is not a JSON-RPC message, or has a duplicate member")
    })?;
    let id = message.id.map(read_id).transpose()?;
    let answers = usize::from(message.result.is_some()) + usize::from(message.error.is_some());
    let is_object = |params: &RawValue| params.get().starts_with('{');
    let checked = if message.jsonrpc.as_deref() != Some("2.0") {
        Err(Malformed::new("\"jsonrpc\" must be \"2.0\""))
    } else if usize::from(message.method.is_some()) + answers != 1 {
        let why = "a message has one of \"method\", \"result\" and \"error\"";
        Err(Malformed::new(why))
    } else if !message.params.is_none_or(is_object) {
        Err(Malformed::new("\"params\" must be an object"))
    } else {
        bounded(text)
    };
    // The id of an answer is that of our request: an error with it would end a request of the
    // client.
    checked.map_err(|why| why.to(id.clone().filter(|_| answers == 0)))?;
    Ok(Envelope {
        id,
        method: message.method.map(Cow::into_owned),
    })
}

/// Reads an `id`: a string or a whole number.
fn read_id(id: &RawValue) -> Result<RequestId, Malformed> {
    // Objects and arrays are refused unread, because their size is not checked yet.
    let id = Some(id.get()).filter(|id| !id.starts_with(['{', '[']));
    let id = id.and_then(|id| serde_json::from_str(id).ok());
    id.ok_or_else(|| Malformed::new("\"id\" must be a string or a whole number"))
}

pub(crate) fn text<'a>(what: &str, bytes: &'a [u8]) -> Result<&'a str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed {
        code: ErrorCode::PARSE_ERROR,
        ..Malformed::new(format!("{what} is not UTF-8"))
    })
}

/// Refuses a text that is nested too deep or has too many values.
pub(crate) fn bounded(text: &str) -> Result<(), Malformed> {
    let extent = extent(text);
    let excess = if extent.levels > MAX_DEPTH {
        format!("is nested deeper than {MAX_DEPTH} levels")
    } else if extent.parts > MAX_VALUES {
        format!("has more than {MAX_VALUES} values")
    } else {
        return Ok(());
    };
    Err(Malformed::new(format!("the message {excess}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_member_of_params_is_named_without_its_value() {
        let info = json!({ "name": "secret", "version": 2 });
        for (method, params, expected) in [
            (
                "tools/call",
                json!({ "name": "a", "arguments": "{\"secret\":1}" }),
                ": \"arguments\" must be an object",
            ),
            (
                "tools/call",
                json!({}),
                ": \"name\" is missing; it is a string",
            ),
            (
                "prompts/get",
                json!({ "name": null }),
                ": \"name\" must be a string",
            ),
            (
                "initialize",
                json!({ "protocolVersion": "1", "capabilities": {}, "clientInfo": info }),
                ": \"clientInfo.version\" must be a string",
            ),
            (
                "tools/list",
                json!({ "_meta": ["secret"] }),
                ": \"_meta\" must be an object",
            ),
            ("tools/list", json!({ "cursor": 1 }), ""),
        ] {
            let expected = format!("the params do not match {method}{expected}");
            assert_eq!(wrong_params(method, Some(&params)), expected);
            let message = json!({ "id": 1, "params": params }).to_string();
            assert_eq!(wrong_params_of(method, message.as_bytes()), expected);
        }
    }

    fn refused(text: &str) -> (ErrorCode, Option<RequestId>, String) {
        let refused = envelope("the line", text.as_bytes()).expect_err(text);
        (refused.code, refused.id, refused.message.into_owned())
    }

    #[test]
    fn messages_of_the_right_form_are_read() {
        let read = |text: &str| envelope("the line", text.as_bytes()).expect(text);
        let ping = read(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(
            (ping.id, ping.method.as_deref()),
            (Some(RequestId::Number(1)), Some("ping"))
        );
        let answer = read(r#" {"id":"a","result":{},"jsonrpc":"2.0"} "#);
        assert_eq!(
            (answer.id, answer.method),
            (Some(RequestId::String("a".into())), None)
        );
    }

    #[test]
    fn other_texts_are_refused() {
        let (code, _, message) = refused("{\n\"secret\": hunter2");
        assert_eq!(code, ErrorCode::PARSE_ERROR);
        assert_eq!(message, "the line is not JSON (line 2, column 11)");
        assert_eq!(
            refused(r#"{"id":1,"method":"ping"}"#).1,
            Some(RequestId::Number(1))
        );
        assert_eq!(refused(r#"{"id":1,"result":{}}"#).1, None, "the id is ours");
        for wrong in [
            "[]",
            "1",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
        ] {
            assert_eq!(refused(wrong).0, ErrorCode::INVALID_REQUEST, "{wrong}");
        }
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let with =
            |a: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{a}}}}}"#);
        let nested = |depth: usize| with(&("[".repeat(depth) + &"]".repeat(depth)));
        assert!(envelope("the line", nested(98).as_bytes()).is_ok());
        for deep in [99, 1 << 20] {
            let (_, id, message) = refused(&nested(deep));
            assert_eq!(message, "the message is nested deeper than 100 levels");
            assert_eq!(id, Some(RequestId::Number(1)));
        }
        refused(&"[".repeat(1 << 20));
        // Six values are outside of the array.
        let many = |items: u64| with(&format!("[{}]", vec!["0"; items as usize].join(",")));
        assert!(envelope("the line", many(MAX_VALUES - 6).as_bytes()).is_ok());
        let (_, _, message) = refused(&many(MAX_VALUES - 5));
        assert_eq!(message, "the message has more than 262144 values");
    }
}
