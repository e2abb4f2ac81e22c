//! The body of a request: how much of it is read, and what it must be
//! before anything is made of it.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, header};
use futures::StreamExt as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::refusal::Refusal;

/// How deep objects and arrays may be in one another.
const MAX_DEPTH: usize = 100;

/// What is read of a message before the protocol is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// Its `id`, if it is a request.
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
}

/// Reads a body of so many bytes at most, that may take so long to come.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    max: u64,
    time: Duration,
) -> Result<Bytes, Refusal> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let too_large = || {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {max} bytes; \"maxBody\" is the limit"),
        )
    };
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    if announced
        .and_then(|text| text.parse::<usize>().ok())
        .is_some_and(|bytes| bytes > max)
    {
        return Err(too_large());
    }
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    let collect = async {
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| Refusal::bad("the body did not come to its end"))?;
            if chunk.len() > max - bytes.len() {
                return Err(too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(())
    };
    match tokio::time::timeout(time, collect).await {
        Ok(collected) => collected?,
        Err(_) => {
            return Err(Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("the body did not come within {} s", time.as_secs_f32()),
            ));
        }
    }
    Ok(bytes.into())
}

/// Refuses a body that does not say that it is JSON.
pub(crate) fn json_wanted(headers: &HeaderMap) -> Result<(), Refusal> {
    let content = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = content
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    match kind.trim().eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must have the Content-Type application/json",
        )),
    }
}

/// The members of a body that is one JSON object.
pub(crate) fn object(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_str(shallow(bytes)?).map_err(|error| no_json(&error))? {
        Value::Object(members) => Ok(members),
        _ => Err(Refusal::bad("the body must be a JSON object")),
    }
}

/// Looks whether a body is one JSON-RPC message.
pub(crate) fn envelope(bytes: &[u8]) -> Result<Envelope, Refusal> {
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
    let text = shallow(bytes)?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| no_json(&error))?;
    match raw.get().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => {
            return Err(Refusal::bad(
                "batches are not part of MCP since 2025-06-18; send one message in a request",
            ));
        }
        _ => return Err(Refusal::bad("a JSON-RPC message is an object")),
    }
    let message: Message<'_> = serde_json::from_str(raw.get()).map_err(|_| {
        Refusal::bad("the message is not of JSON-RPC's form, or has a member twice")
    })?;
    let id = match message.id.map(|id| serde_json::from_str::<Value>(id.get())) {
        None => None,
        Some(Ok(id @ Value::String(_))) => Some(id),
        Some(Ok(Value::Number(number))) if number.is_i64() || number.is_u64() => {
            Some(Value::Number(number))
        }
        _ => return Err(Refusal::bad("\"id\" must be a string or a whole number")),
    };
    let refuse = |why: &str| Err(Refusal::bad(why).to(id.clone().unwrap_or_default()));
    if message.jsonrpc.as_deref() != Some("2.0") {
        return refuse("\"jsonrpc\" must be \"2.0\"");
    }
    let answers = usize::from(message.result.is_some()) + usize::from(message.error.is_some());
    if usize::from(message.method.is_some()) + answers != 1 {
        return refuse("a message has one of \"method\", \"result\" and \"error\"");
    }
    if message
        .params
        .is_some_and(|params| !params.get().starts_with('{'))
    {
        return refuse("\"params\" must be an object");
    }
    Ok(Envelope {
        id,
        method: message.method.map(Cow::into_owned),
    })
}

/// The text of a body that is not too deep.
fn shallow(bytes: &[u8]) -> Result<&str, Refusal> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| Refusal::unreadable("the body is not UTF-8"))?;
    match is_deep(text) {
        true => Err(Refusal::bad(format!(
            "the message is nested deeper than {MAX_DEPTH} levels"
        ))),
        false => Ok(text),
    }
}

fn no_json(error: &serde_json::Error) -> Refusal {
    let (line, column) = (error.line(), error.column());
    Refusal::unreadable(format!(
        "the body is not JSON (line {line}, column {column})"
    ))
}

/// A member that is there, be it null.
fn present<'de, D: Deserializer<'de>>(member: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(member).map(Some)
}

/// Whether brackets are too deep in one another; a text that is no JSON may be
/// taken for either.
fn is_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
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
    false
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    async fn said(refused: Refusal) -> String {
        let status = refused.status().as_u16();
        let body = refused.response().into_body();
        let body = axum::body::to_bytes(body, 4096).await.expect("a body");
        format!("{status} {}", String::from_utf8_lossy(&body))
    }

    async fn check(text: &str, expected: Expect) {
        let out = match envelope(text.as_bytes()) {
            Ok(envelope) => format!("{envelope:?}"),
            Err(refused) => said(refused).await,
        };
        expected.assert_eq(&out);
    }

    #[tokio::test]
    async fn messages() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            expect![[r#"Envelope { id: Some(Number(1)), method: Some("ping") }"#]],
        )
        .await;
        check(
            r#" {"id":"a","result":{},"jsonrpc":"2.0"} "#,
            expect![[r#"Envelope { id: Some(String("a")), method: None }"#]],
        )
        .await;
        check(
            "",
            expect![[r#"400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the body is not JSON (line 1, column 0)"}}"#]],
        )
        .await;
        check(
            "{\n\"secret\": hunter2",
            expect![[r#"400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the body is not JSON (line 2, column 11)"}}"#]],
        )
        .await;
        check(
            "[]",
            expect![[r#"400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not part of MCP since 2025-06-18; send one message in a request"}}"#]],
        )
        .await;
        check(
            "1",
            expect![[r#"400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a JSON-RPC message is an object"}}"#]],
        )
        .await;
        for wrong in [
            r#"{"id":1,"method":"ping"}"#,
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
            let refused = envelope(wrong.as_bytes()).expect_err(wrong);
            assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{wrong}");
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
        assert!(envelope(nested(98).as_bytes()).is_ok());
        assert!(envelope(nested(99).as_bytes()).is_err());
        assert!(envelope("[".repeat(1 << 20).as_bytes()).is_err());
        let text = format!("\"{}\\\"[\"", "[".repeat(200));
        assert!(!is_deep(&text), "brackets in a text are none");
    }

    #[tokio::test]
    async fn sizes() {
        let headers = HeaderMap::new();
        let read = |bytes: usize| read(&headers, Body::from(vec![b'x'; bytes]), 10, Duration::MAX);
        assert_eq!(read(10).await.expect("it fits").len(), 10);
        let refused = read(11).await.expect_err("it does not");
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
