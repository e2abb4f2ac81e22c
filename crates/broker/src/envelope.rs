//! The text of what is sent: JSON-RPC around it, and in the newest revision what
//! every request says of the client.
//!
//! Built as text, because the largest part of a call, its arguments, is text
//! already.

use rmcp::model::{ErrorData, Implementation, ProtocolVersion};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::caller::{LogLevel, Offers};

/// The extension by which a server may answer a call with a task (2026-07-28).
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Who the broker says it is.
pub(crate) fn implementation() -> Implementation {
    Implementation::new("callgate", env!("CARGO_PKG_VERSION"))
}

/// `_meta` of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meta<'a> {
    /// What the request says of the client: members made by [`stateless`].
    pub(crate) client: &'a str,
    /// The token of the progress that is asked for, if it is.
    pub(crate) progress: Option<u64>,
}

/// A request; `members` are those of `params` without `_meta`.
pub(crate) fn request(id: u64, method: &str, members: &str, meta: Meta<'_>) -> String {
    let mut text = String::with_capacity(members.len() + meta.client.len() + method.len() + 96);
    let mut number = Number::default();
    let id = number.of(id);
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    text.push_str(id);
    text.push_str(r#","method":""#);
    text.push_str(method);
    text.push('"');
    let has_meta = meta.progress.is_some() || !meta.client.is_empty();
    if has_meta || !members.is_empty() {
        text.push_str(r#","params":{"#);
        if has_meta {
            text.push_str(r#""_meta":{"#);
            if let Some(token) = meta.progress {
                text.push_str(r#""progressToken":"#);
                text.push_str(Number::default().of(token));
                if !meta.client.is_empty() {
                    text.push(',');
                }
            }
            text.push_str(meta.client);
            text.push('}');
            if !members.is_empty() {
                text.push(',');
            }
        }
        text.push_str(members);
        text.push('}');
    }
    text.push('}');
    text
}

/// A notification without parameters.
pub(crate) fn notification(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// What every request of the newest revision says of the client, as members of
/// its `_meta`.
pub(crate) fn stateless(
    version: &ProtocolVersion,
    offers: Offers,
    log: Option<LogLevel>,
) -> String {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": implementation(),
        "io.modelcontextprotocol/clientCapabilities": capabilities(offers, version),
    });
    if let (Some(level), Value::Object(meta)) = (log, &mut meta) {
        meta.insert(
            "io.modelcontextprotocol/logLevel".to_owned(),
            level.as_str().into(),
        );
    }
    let text = meta.to_string();
    let members = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    members.unwrap_or_default().to_owned()
}

/// What a caller offers, as capabilities of the client.
pub(crate) fn capabilities(offers: Offers, version: &ProtocolVersion) -> Value {
    let mut capabilities = serde_json::Map::new();
    let mut announce = |name: &str, value: Value| capabilities.insert(name.to_owned(), value);
    // Pages, and tools in sampling, came with it; forms had no name before.
    let is_older = version.as_str() < ProtocolVersion::V_2025_11_25.as_str();
    if is_older && offers.form {
        announce("elicitation", json!({}));
    } else if !is_older && (offers.form || offers.url) {
        let mut modes = serde_json::Map::new();
        for (mode, offered) in [("form", offers.form), ("url", offers.url)] {
            if offered {
                modes.insert(mode.to_owned(), json!({}));
            }
        }
        announce("elicitation", modes.into());
    }
    if offers.sampling {
        let sampling = if offers.sampling_tools && !is_older {
            json!({ "tools": {} })
        } else {
            json!({})
        };
        announce("sampling", sampling);
    }
    if offers.roots {
        // The newest revision has no notification that says that they are others.
        let roots = match version.has_initialize() {
            true => json!({ "listChanged": true }),
            false => json!({}),
        };
        announce("roots", roots);
    }
    if !version.has_initialize() {
        announce("extensions", json!({ TASKS_EXTENSION: {} }));
    }
    capabilities.into()
}

/// The answer to a request of the server's.
pub(crate) fn answer(id: &RawValue, answer: Result<Value, ErrorData>) -> String {
    let (member, value) = match answer {
        Ok(result) => ("result", result.to_string()),
        Err(error) => (
            "error",
            serde_json::to_string(&error).unwrap_or_else(|_| "{}".to_owned()),
        ),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#)
}

/// A number's digits, without an allocation.
#[derive(Default)]
struct Number([u8; 20]);

impl Number {
    fn of(&mut self, mut number: u64) -> &str {
        let mut at = self.0.len();
        loop {
            at -= 1;
            // The remainder of ten is a digit.
            if let Some(place) = self.0.get_mut(at) {
                *place = b'0' + u8::try_from(number % 10).unwrap_or_default();
            }
            number /= 10;
            if number == 0 {
                break;
            }
        }
        let digits = self.0.get(at..).unwrap_or_default();
        std::str::from_utf8(digits).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        let _: Value = serde_json::from_str(text).expect("it is JSON");
        expected.assert_eq(text);
    }

    #[test]
    fn requests() {
        let with = |client, progress| Meta { client, progress };
        check(
            &request(0, "a/b", "", with("", None)),
            expect![[r#"{"jsonrpc":"2.0","id":0,"method":"a/b"}"#]],
        );
        check(
            &request(u64::MAX, "a", r#""b":1"#, with("", None)),
            expect![[
                r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"a","params":{"b":1}}"#
            ]],
        );
        check(
            &request(10, "a", "", with("", Some(10))),
            expect![[
                r#"{"jsonrpc":"2.0","id":10,"method":"a","params":{"_meta":{"progressToken":10}}}"#
            ]],
        );
        check(
            &request(7, "a", r#""b":1"#, with(r#""c":2"#, Some(8))),
            expect![[
                r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"_meta":{"progressToken":8,"c":2},"b":1}}"#
            ]],
        );
    }

    #[test]
    fn capabilities_are_what_is_offered() {
        let check = |offers, expected: Expect| {
            let both = [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28]
                .map(|version| capabilities(offers, &version).to_string());
            expected.assert_eq(&both.join("\n"));
        };
        check(
            Offers::default(),
            expect![[r#"
                {}
                {"extensions":{"io.modelcontextprotocol/tasks":{}}}"#]],
        );
        check(
            Offers {
                form: true,
                url: true,
                sampling: true,
                sampling_tools: true,
                roots: true,
            },
            expect![[r#"
                {"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}
                {"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#]],
        );
    }
}
