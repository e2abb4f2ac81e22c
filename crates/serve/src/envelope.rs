//! What a message must be before the protocol is read: one JSON-RPC message that is not
//! too deep. The same over HTTP and over stdio.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// JSON-RPC 2.0, section 5.1.
const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;

/// How deep objects and arrays may be in one another.
const MAX_DEPTH: usize = 100;

/// How many values a message may have: they may take a hundred times as much as their text.
const MAX_VALUES: usize = 1 << 20;

/// What is wrong with a message that has an envelope, and not what its method wants.
pub(crate) const NOT_ITS_FORM: &str = "the message does not have the form of its method";

/// What is read of a message before the protocol is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// Its `id`, if it is a request.
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
}

/// Why something is no message that can be served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Of a JSON-RPC error.
    pub(crate) code: i32,
    /// The `id` of the request, if it could be read.
    pub(crate) id: Option<Value>,
    pub(crate) message: Cow<'static, str>,
}

impl Malformed {
    /// It is JSON, but not what it should be.
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: INVALID_REQUEST,
            id: None,
            message: message.into(),
        }
    }

    /// `what` is no JSON.
    pub(crate) fn no_json(what: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        Self {
            code: PARSE_ERROR,
            ..Self::new(format!("{what} is not JSON (line {line}, column {column})"))
        }
    }

    /// A request whose params do not fit its method.
    pub(crate) fn unfit(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: INVALID_PARAMS,
            ..Self::new(message)
        }
    }

    /// The request has this `id`.
    pub(crate) fn to(mut self, id: Option<Value>) -> Self {
        self.id = id;
        self
    }
}

/// Looks whether this is one JSON-RPC message. `what` it is called where it is no JSON.
pub(crate) fn envelope(what: &str, bytes: &[u8]) -> Result<Envelope, Malformed> {
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
    // Raw values are read without recursion, however deep they are.
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| Malformed::no_json(what, &error))?;
    match raw.get().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => {
            return Err(Malformed::new(
                "batches are not part of MCP since 2025-06-18; send one message in a request",
            ));
        }
        _ => return Err(Malformed::new("a JSON-RPC message is an object")),
    }
    let message: Message<'_> = serde_json::from_str(raw.get()).map_err(|_| {
        Malformed::new("the message is not of JSON-RPC's form, or has a member twice")
    })?;
    // Nothing that has values in it is read: how many those are is not known yet.
    let plain = |id: &RawValue| match id.get().starts_with(['{', '[']) {
        true => None,
        false => serde_json::from_str::<Value>(id.get()).ok(),
    };
    let id = match message.id.map(plain) {
        None => None,
        Some(Some(id @ Value::String(_))) => Some(id),
        Some(Some(Value::Number(number))) if number.is_i64() || number.is_u64() => {
            Some(Value::Number(number))
        }
        _ => return Err(Malformed::new("\"id\" must be a string or a whole number")),
    };
    let answers = usize::from(message.result.is_some()) + usize::from(message.error.is_some());
    // The `id` of an answer is not the sender's own: an error to it would be taken for
    // that of another request.
    let asked = id.clone().filter(|_| answers == 0);
    let refuse = |why: &'static str| Err(Malformed::new(why).to(asked.clone()));
    if message.jsonrpc.as_deref() != Some("2.0") {
        return refuse("\"jsonrpc\" must be \"2.0\"");
    }
    if usize::from(message.method.is_some()) + answers != 1 {
        return refuse("a message has one of \"method\", \"result\" and \"error\"");
    }
    if message
        .params
        .is_some_and(|params| !params.get().starts_with('{'))
    {
        return refuse("\"params\" must be an object");
    }
    bounded(text).map_err(|over| over.to(asked))?;
    Ok(Envelope {
        id,
        method: message.method.map(Cow::into_owned),
    })
}

/// What is sent, as text.
pub(crate) fn text<'a>(what: &str, bytes: &'a [u8]) -> Result<&'a str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed {
        code: PARSE_ERROR,
        ..Malformed::new(format!("{what} is not UTF-8"))
    })
}

/// Refuses a text that is too deep, or would be too many values.
pub(crate) fn bounded(text: &str) -> Result<(), Malformed> {
    match excess(text) {
        Some(excess) => Err(Malformed::new(format!("the message {excess}"))),
        None => Ok(()),
    }
}

/// A member that is there, be it null.
fn present<'de, D: Deserializer<'de>>(member: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(member).map(Some)
}

/// Whether brackets are too deep in one another, or values too many; a text that is no
/// JSON may be taken for either. Empty objects and arrays count twice.
fn excess(text: &str) -> Option<String> {
    let (mut depth, mut values) = (0_usize, 1_usize);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                values += 1;
                if depth > MAX_DEPTH {
                    return Some(format!("is nested deeper than {MAX_DEPTH} levels"));
                }
            }
            b',' => values += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => drop(bytes.next()),
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    (values > MAX_VALUES).then(|| format!("has more than {MAX_VALUES} values"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        let out = match envelope("the line", text.as_bytes()) {
            Ok(envelope) => format!("{envelope:?}"),
            Err(Malformed { code, id, message }) => format!("{code} to {id:?}: {message}"),
        };
        expected.assert_eq(&out);
    }

    #[test]
    fn messages() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            expect![[r#"Envelope { id: Some(Number(1)), method: Some("ping") }"#]],
        );
        check(
            r#" {"id":"a","result":{},"jsonrpc":"2.0"} "#,
            expect![[r#"Envelope { id: Some(String("a")), method: None }"#]],
        );
        check(
            "",
            expect!["-32700 to None: the line is not JSON (line 1, column 0)"],
        );
        check(
            "{\n\"secret\": hunter2",
            expect!["-32700 to None: the line is not JSON (line 2, column 11)"],
        );
        check(
            "[]",
            expect![
                "-32600 to None: batches are not part of MCP since 2025-06-18; send one message in a request"
            ],
        );
        check(
            "1",
            expect!["-32600 to None: a JSON-RPC message is an object"],
        );
        check(
            r#"{"id":1,"method":"ping"}"#,
            expect![[r#"-32600 to Some(Number(1)): "jsonrpc" must be "2.0""#]],
        );
        check(
            r#"{"id":1,"result":{}}"#,
            expect![[r#"-32600 to None: "jsonrpc" must be "2.0""#]],
        );
        for wrong in [
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping","id":2}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        ] {
            let refused = envelope("the line", wrong.as_bytes()).expect_err(wrong);
            assert_eq!(refused.code, INVALID_REQUEST, "{wrong}");
        }
    }

    #[test]
    fn depth() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{{\"a\":{open}{close}}}}}"
            )
        };
        let check = |text: &str| envelope("the line", text.as_bytes());
        assert!(check(&nested(98)).is_ok());
        for deep in [99, 1 << 20] {
            let refused = check(&nested(deep)).expect_err("it is too deep");
            assert_eq!(
                refused.message,
                "the message is nested deeper than 100 levels"
            );
            assert_eq!(refused.id, Some(Value::from(1)));
        }
        assert!(check(&"[".repeat(1 << 20)).is_err());
        let text = format!("\"{}\\\"[\"", "[".repeat(200));
        assert_eq!(excess(&text), None, "brackets in a text are none");
    }

    #[test]
    fn values() {
        let many = |items: usize| {
            let items = vec!["0"; items].join(",");
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":[{items}]}}}}"#)
        };
        let check = |items: usize| envelope("the line", many(items).as_bytes());
        // The others are the message, its four members, and the one of its params.
        let most = MAX_VALUES - 6;
        assert!(check(most).is_ok());
        let refused = check(most + 1).expect_err("they are too many");
        assert_eq!(refused.message, "the message has more than 1048576 values");
        assert_eq!(refused.id, Some(Value::from(1)));
    }
}
