//! The envelope of JSON-RPC messages, read leniently, and the text of messages to the server.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, GetExtensions as _, GetMeta as _, NumberOrString,
    RequestId,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Bytes of parameters, error data and greetings that become JSON values.
pub(crate) const MAX_VALUE_BYTES: usize = 1 << 20;
/// Bytes kept of each end of a message over the limit.
pub(crate) const END_BYTES: usize = 512;

/// The members of a message.
#[derive(Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        // serde also reads a struct from an array.
        let is_object = text.starts_with('{');
        is_object.then(|| serde_json::from_str(text).ok()).flatten()
    }
}

/// The members of a request's `params` as text, without `_meta`.
#[derive(Debug, Clone)]
pub(crate) struct Members(pub(crate) Arc<str>);

/// The text of a message to the server.
pub(crate) fn text(message: &ClientJsonRpcMessage) -> Vec<u8> {
    if let ClientJsonRpcMessage::Request(sent) = message
        && let Some(Members(members)) = sent.request.extensions().get()
    {
        let id = sent.id.clone().into_json_value();
        let method = Value::from(sent.request.method());
        let meta = serde_json::to_string(sent.request.get_meta()).unwrap_or_default();
        let head =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{{"_meta":{meta},"#);
        return [head.as_bytes(), members.as_bytes(), b"}}"].concat();
    }
    serde_json::to_vec(message).unwrap_or_default()
}

/// The JSON value of a server's text; null if it is over [`MAX_VALUE_BYTES`] or not JSON.
pub(crate) fn bounded_value(text: &str) -> Value {
    let text = Some(text).filter(|text| text.len() <= MAX_VALUE_BYTES);
    let value = text.and_then(|text| serde_json::from_str(text).ok());
    value.unwrap_or_default()
}

/// Reads a JSON-RPC error leniently, because a malformed error is still an error.
pub(crate) fn read_error(error: &RawValue) -> ErrorData {
    let mut error = bounded_value(error.get());
    let code = error["code"].as_i64().and_then(|code| code.try_into().ok());
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    let message = error["message"].as_str().or(error.as_str());
    let message = message.unwrap_or("the server gave an error without a message");
    let message = message.to_owned();
    let data = error.get_mut("data").map(Value::take);
    ErrorData::new(code, message, data.filter(|data| !data.is_null()))
}

/// Reads the id of an answer. A server may have changed a number to a text or to a decimal number.
pub(crate) fn read_id(id: &str) -> Option<RequestId> {
    let number = unquoted(id);
    let whole = match number.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
        _ => number,
    };
    match whole.parse() {
        Ok(number) => Some(NumberOrString::Number(number)),
        Err(_) => serde_json::from_str(id).ok(),
    }
}

/// The digits of a number that may be written as a text.
pub(crate) fn unquoted(number: &str) -> &str {
    number.trim_matches('"').trim()
}

/// A message without white space and a byte order mark around it.
pub(crate) fn bare(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}')
}

/// The messages of a line: one, a batch, or several in a row. `None` if it is not JSON or has no
/// object.
pub(crate) fn split(text: &str) -> Option<Vec<&str>> {
    let mut all = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let value = value.ok()?;
        let batch: Option<Vec<&RawValue>> = serde_json::from_str(value.get()).ok();
        all.extend(batch.unwrap_or_else(|| vec![value]));
    }
    let all: Vec<_> = all.into_iter().map(RawValue::get).collect();
    let has_message = all.is_empty() || all.iter().any(|one| one.starts_with('{'));
    has_message.then_some(all)
}

/// True if an unreadable text is a request or a notification.
pub(crate) fn has_method(text: &[u8]) -> bool {
    memchr::memmem::find(text, br#""method":"#).is_some_and(|at| at < END_BYTES)
}

/// Finds the id in an unreadable text: before its result or error, or else at its end.
pub(crate) fn find_id(text: &[u8]) -> Option<RequestId> {
    if has_method(text) {
        return None;
    }
    let find = |needle: &[u8]| memchr::memmem::find(text, needle);
    let body = [find(br#""result":"#), find(br#""error":"#)]
        .into_iter()
        .flatten()
        .min();
    let first = find(br#""id":"#).filter(|at| body.is_none_or(|body| *at < body));
    let at = first.or_else(|| memchr::memmem::rfind(text, br#""id":"#))?;
    let digits: String = text
        .get(at + 5..)?
        .iter()
        .map(|byte| char::from(*byte))
        .skip_while(|character| character.is_ascii_whitespace() || *character == '"')
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok().map(NumberOrString::Number)
}
