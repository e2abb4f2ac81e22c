//! A server's JSON-RPC error, read leniently: the message is for people, and a
//! server that fails should not fail twice.

use rmcp::model::ErrorData;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::object::object;

/// The code that stands for one that is missing or no number.
const INTERNAL_ERROR: i32 = -32603;

/// The `error` member of an answer. Nothing in it is checked, and nothing
/// redacted.
pub(crate) fn error_data(error: &RawValue) -> ErrorData {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Lenient {
        code: Value,
        message: Value,
        data: Value,
    }
    let Lenient {
        code,
        message,
        data,
    } = object(error.get()).unwrap_or_default();
    let code = code
        .as_i64()
        .and_then(|code| i32::try_from(code).ok())
        .unwrap_or(INTERNAL_ERROR);
    let message = match message {
        Value::String(message) => message,
        _ => "the server gave an error without a message".to_owned(),
    };
    let data = (!data.is_null()).then_some(data);
    ErrorData::new(rmcp::model::ErrorCode(code), message, data)
}
