//! A server's JSON-RPC error, read leniently: the message is for people, and a
//! server that fails should not fail twice.

use rmcp::model::ErrorData;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::object::{MAX_VALUE_BYTES, object};
use callgate_auth::Redact;

/// The code that stands for one that is missing or no number.
const INTERNAL_ERROR: i32 = -32603;

/// The `error` member of an answer. Nothing in it is checked, and nothing
/// redacted. Data that are too long are left off.
pub(crate) fn error_data(error: &RawValue) -> ErrorData {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Lenient<'a> {
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let Lenient {
        code,
        message,
        data,
    } = object(error.get()).unwrap_or_default();
    let code = code
        .and_then(|code| code.get().parse().ok())
        .unwrap_or(INTERNAL_ERROR);
    let message = message
        .and_then(|message| serde_json::from_str(message.get()).ok())
        .unwrap_or_else(|| "the server gave an error without a message".to_owned());
    let data: Option<Value> = data
        .filter(|data| data.get().len() <= MAX_VALUE_BYTES)
        .and_then(|data| serde_json::from_str(data.get()).ok());
    ErrorData::new(rmcp::model::ErrorCode(code), message, data)
}

/// An error as it may be passed on: without secrets, and its message no longer than it should
/// be.
pub(crate) fn fit(mut error: ErrorData, secrets: &Redact) -> ErrorData {
    error.message = secrets.message(&error.message).into();
    if let Some(data) = &mut error.data {
        secrets.redact_value(data);
    }
    error
}
