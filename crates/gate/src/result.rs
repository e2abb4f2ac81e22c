//! From the `result` of `tools/call` to the JSON that a script gets.
//!
//! `structuredContent` if there is one, or `toolResult` of MCP 2024-10-07; else the one text block
//! as a JSON string; else `{ "content": […] }`; and `null` for a result with no content. If the
//! tool declares an output schema, the JSON in its text blocks. The server's text is cut out, not
//! parsed and printed.

use std::borrow::Cow;

use callgate_auth::cut_message;
use callgate_catalog::Tool;
use callgate_schema::{Declared, Fit, extent, read};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The most JSON values in a result's content.
const MAX_PARTS: u64 = 1 << 18;

/// Up to this size, in bytes of JSON, a result is held to its schema at once: that takes less than to
/// wake up another thread.
const SMALL: usize = 4 << 10;

/// From this size on, in bytes of JSON, only a few results of the whole process are held to their
/// schemas at a time: each takes up to 200 MB.
const LARGE: usize = 1 << 20;
static LARGE_RESULTS: Semaphore = Semaphore::const_new(2);

/// A server's result of `tools/call`.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The value for the script.
    Value {
        value: Box<RawValue>,
        /// True if it is `structuredContent`.
        is_structured: bool,
    },
    /// The tool failed.
    Failed {
        message: String,
        content: Box<RawValue>,
        structured_content: Option<Box<RawValue>>,
    },
    /// The server wants input first.
    InputRequired,
    /// It is no result of `tools/call`.
    Malformed(String),
}

impl Answer {
    /// Reads a result.
    pub(crate) fn of(result: &RawValue, declared: Option<&Declared>) -> Self {
        let whole = result;
        if !is_object(whole) {
            return Self::Malformed("it is not an object".to_owned());
        }
        let result: CallResult<'_> = match serde_json::from_str(whole.get()) {
            Ok(result) => result,
            Err(error) => return Self::Malformed(misfit(error)),
        };
        if result.result_type.as_deref() == Some("input_required") {
            return Self::InputRequired;
        }
        if result.is_error == Some(true) {
            let is_list = |content: &&RawValue| content.get().starts_with('[');
            return match failure_message(whole, &result) {
                Ok(message) => Self::Failed {
                    message,
                    content: (result.content.filter(is_list))
                        .map_or_else(|| raw("[]"), RawValue::to_owned),
                    structured_content: result.value().map(RawValue::to_owned),
                },
                Err(problem) => Self::Malformed(problem),
            };
        }
        if result.content.is_none() && result.value().is_none() {
            let problem = "it has neither content nor structuredContent";
            return Self::Malformed(problem.to_owned());
        }
        // Servers in Go write an empty list as null.
        let content = result.content.filter(|content| content.get() != "null");
        let blocks = match content.map_or(Ok(Vec::new()), blocks) {
            Ok(blocks) => blocks,
            Err(problem) => return Self::Malformed(format!("its content: {problem}")),
        };
        if let Some(value) = result.value() {
            return Self::Value {
                value: value.to_owned(),
                is_structured: result.structured_content.is_some(),
            };
        }
        let texts: Option<Vec<_>> = blocks.iter().map(Block::as_text).collect();
        let value = texts.map(|texts| text_value(&texts, declared));
        let in_whole = || {
            let content = content.map_or("[]", RawValue::get);
            raw(&format!(r#"{{"content":{content}}}"#))
        };
        match value.unwrap_or(Ok(None)) {
            Ok(value) => Self::Value {
                value: value.unwrap_or_else(in_whole),
                is_structured: false,
            },
            Err(error) => Self::Malformed(misfit(error)),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    content: Option<&'a RawValue>,
    /// `null` is a value, and not an absent member.
    #[serde(borrow, default, deserialize_with = "present")]
    structured_content: Option<&'a RawValue>,
    /// The whole result of a server of MCP 2024-10-07.
    #[serde(borrow, default, deserialize_with = "present")]
    tool_result: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

impl<'a> CallResult<'a> {
    /// The result as a value.
    fn value(&self) -> Option<&'a RawValue> {
        let older = self.tool_result.filter(|_| self.content.is_none());
        self.structured_content.or(older)
    }
}

fn present<'de, D: Deserializer<'de>>(json: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(json).map(Some)
}

/// A block of content.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    /// The text as a JSON string.
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

impl<'a> Block<'a> {
    fn as_text(&self) -> Option<&'a RawValue> {
        let is_text = |text: &&RawValue| self.kind == "text" && text.get().starts_with('"');
        self.text.filter(is_text)
    }
}

/// The blocks of a content, or the problem.
fn blocks(content: &RawValue) -> Result<Vec<Block<'_>>, String> {
    if extent(content.get()).parts > MAX_PARTS {
        return Err(format!("it has more than {MAX_PARTS} values"));
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).map_err(misfit)?;
    let read: Option<_> = blocks.into_iter().map(block).collect();
    read.ok_or_else(|| "a block of a wrong type".to_owned())
}

fn block(json: &RawValue) -> Option<Block<'_>> {
    let block = serde_json::from_str(json.get()).ok()?;
    is_object(json).then_some(block)
}

/// The problem of a result, without a word of the server in it: a parser's own message quotes
/// what it found.
fn misfit(error: serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    format!("a value of a wrong type at line {line} column {column}")
}

fn is_object(json: &RawValue) -> bool {
    json.get().starts_with('{')
}

/// The value of a content that is text alone; `None` for one that is left to the script.
fn text_value(
    texts: &[&RawValue],
    declared: Option<&Declared>,
) -> serde_json::Result<Option<Box<RawValue>>> {
    let Some(declared) = declared else {
        return Ok(match texts {
            [] => Some(raw("null")),
            [text] => Some((*text).to_owned()),
            _ => None,
        });
    };
    let is_list = declared.fit("[]") == Fit::Fits && declared.fit("null") != Fit::Fits;
    let texts = texts.iter().map(|text| serde_json::from_str(text.get()));
    let texts: Vec<Cow<'_, str>> = texts.collect::<Result<_, _>>()?;
    let joined = texts.join("\n");
    if let Ok(value) = serde_json::from_str::<&RawValue>(&joined)
        && (value.get().starts_with('[') || !is_list)
    {
        return Ok(Some(value.to_owned()));
    }
    // Many servers send each element of a list as a block of its own.
    let values = texts.iter().map(|text| serde_json::from_str(text));
    let values: serde_json::Result<Vec<&RawValue>> = values.collect();
    match values {
        Ok(values) if is_list || !values.is_empty() => to_raw_value(&values).map(Some),
        Ok(_) => Ok(Some(raw("null"))),
        Err(_) => to_raw_value(&joined).map(Some),
    }
}

/// The members in which tools say why they failed, the most telling first.
const WORDS: [&str; 9] = [
    "text",
    "message",
    "error",
    "detail",
    "msg",
    "reason",
    "description",
    "errors",
    "resource",
];

/// The tool's own words for its failure, from wherever it put them.
fn failure_message(whole: &RawValue, result: &CallResult<'_>) -> Result<String, String> {
    if extent(whole.get()).parts > MAX_PARTS {
        return Err(format!("it has more than {MAX_PARTS} values"));
    }
    let all: Value = read(whole.get()).map_err(misfit)?;
    let member = |part: Option<&RawValue>, name| part.and_then(|_| all.get(name));
    let content = member(result.content, "content").and_then(words);
    let value = member(result.structured_content, "structuredContent")
        .or_else(|| member(result.tool_result, "toolResult"));
    let is_empty =
        |value: &Value| value.is_null() || [json!({}), json!([]), json!("")].contains(value);
    let mut message = content
        .or_else(|| value.and_then(words))
        .or_else(|| Some(value.filter(|value| !is_empty(value))?.to_string()))
        .or_else(|| words(&all))
        .unwrap_or_else(|| "the tool failed and did not say why".to_owned());
    cut_message(&mut message);
    Ok(message)
}

/// The words in a value: a text, those of a list's elements, or of an object's first member of
/// [`WORDS`] that has any.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.trim().is_empty()).then(|| text.clone()),
        Value::Array(list) => {
            let all: Vec<String> = list.iter().filter_map(words).collect();
            (!all.is_empty()).then(|| all.join("\n"))
        }
        Value::Object(object) => WORDS.iter().find_map(|name| words(object.get(*name)?)),
        _ => None,
    }
}

/// `text`, which is JSON, as a raw value.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Checks a value against its tool's `outputSchema`, and gives it back.
pub(crate) async fn check_output(tool: &Tool, value: Box<RawValue>) -> (Box<RawValue>, Fit) {
    let Some(declared) = &tool.definition.output_schema else {
        return (value, Fit::Fits);
    };
    let bytes = value.get().len();
    if bytes <= SMALL {
        let fit = declared.fit(value.get());
        return (value, fit);
    }
    let permit = if bytes >= LARGE {
        // The semaphore is never closed.
        LARGE_RESULTS.acquire().await.ok()
    } else {
        None
    };
    let schema = declared.clone();
    let fitted = spawn_blocking(move || {
        let _permit = permit;
        let fit = schema.fit(value.get());
        (value, fit)
    });
    fitted.await.unwrap_or_else(|_| {
        let ending = Fit::Unknown("the host is ending".to_owned());
        (RawValue::NULL.to_owned(), ending)
    })
}

#[cfg(test)]
mod tests {
    use callgate_auth::MAX_MESSAGE_BYTES;

    use super::*;

    fn answer(result: &str, schema: Option<&Value>) -> Answer {
        let result = RawValue::from_string(result.to_owned()).expect("JSON");
        let declared = schema.cloned().map(Declared::new);
        Answer::of(&result, declared.as_ref())
    }

    fn check(result: &str, schema: Option<&Value>, expected: &str) {
        match answer(result, schema) {
            Answer::Value { value, .. } => assert_eq!(value.get(), expected, "{result}"),
            other => panic!("{result}: {other:?}"),
        }
    }

    #[test]
    fn values_are_cut_out_of_results() {
        let image = r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#;
        let hologram = r#"{"content":[{"type":"text","text":"a"},{"type":"hologram"}]}"#;
        let number = r#"{"content":[{"type":"text","text":7}]}"#;
        let two = r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"\"b\""}]}"#;
        let object = r#"{"content":[{"type":"text","text":"{\"a\": 1}"}]}"#;
        for (result, expected) in [
            (r#"{"structuredContent":[],"isError":false}"#, "[]"),
            (r#"{"structuredContent":null}"#, "null"),
            (
                r#"{"content":[{"type":"text","text":"a\u00e9\n"}]}"#,
                r#""a\u00e9\n""#,
            ),
            (object, r#""{\"a\": 1}""#),
            (r#"{"content":[]}"#, "null"),
            (r#"{"content":null}"#, "null"),
            (two, two),
            (image, image),
            (number, number),
            (r#"{"toolResult":{"a": 1.0}}"#, r#"{"a": 1.0}"#),
            (r#"{"toolResult":"a","_meta":{}}"#, r#""a""#),
            (r#"{"toolResult":null,"isError":false}"#, "null"),
            (r#"{"toolResult":1,"structuredContent":2}"#, "2"),
            (r#"{"toolResult":1,"content":[]}"#, "null"),
        ] {
            check(result, None, expected);
        }
        for (result, expected) in [
            (
                r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"b": 1.0, "a":1e400}}"#,
                r#"{"b": 1.0, "a":1e400}"#,
            ),
            (object, r#"{"a": 1}"#),
            (r#"{"content":[{"type":"text","text":"{a"}]}"#, r#""{a""#),
            (two, r#""a\n\"b\"""#),
            (hologram, hologram),
        ] {
            check(result, Some(&json!({})), expected);
        }
    }

    #[test]
    fn declared_array_is_read_from_any_block_count() {
        let list = json!({ "$ref": "#/$defs/l", "$defs": { "l": { "type": "array" } } });
        for (texts, as_list, as_any) in [
            (json!([]), "[]", "null"),
            (json!([r#"{"a":1}"#]), r#"[{"a":1}]"#, r#"{"a":1}"#),
            (json!([r#"[{"a":1}]"#]), r#"[{"a":1}]"#, r#"[{"a":1}]"#),
            (
                json!(["12345678901234567890"]),
                "[12345678901234567890]",
                "12345678901234567890",
            ),
            (
                json!([r#"{"a":1}"#, r#"{"a":2}"#]),
                r#"[{"a":1},{"a":2}]"#,
                r#"[{"a":1},{"a":2}]"#,
            ),
            (json!(["[1,", "2]"]), "[1,\n2]", "[1,\n2]"),
            (json!(["a", "2"]), r#""a\n2""#, r#""a\n2""#),
        ] {
            let texts = texts.as_array().expect("texts").iter();
            let blocks: Vec<_> = texts
                .map(|text| json!({ "type": "text", "text": text }))
                .collect();
            let result = json!({ "content": blocks }).to_string();
            check(&result, Some(&list), as_list);
            check(&result, Some(&json!({})), as_any);
        }
    }

    #[test]
    fn malformed_answers_give_no_value() {
        let many = format!(r#"{{"content":[{}{{}}]}}"#, "{},".repeat(1 << 17));
        for (result, expected) in [
            (r#"{"resultType":"input_required"}"#, "InputRequired"),
            ("7", "it is not an object"),
            ("[[]]", "it is not an object"),
            ("null", "it is not an object"),
            ("{}", "it has neither content nor structuredContent"),
            (
                r#"{"isError":false}"#,
                "it has neither content nor structuredContent",
            ),
            (
                r#"{"content":[["text","a"]]}"#,
                "its content: a block of a wrong type",
            ),
            (
                r#"{"isError":"a secret"}"#,
                "a value of a wrong type at line 1 column 21",
            ),
            (
                r#"{"content":{}}"#,
                "its content: a value of a wrong type at line 1 column 0",
            ),
            (&many, "its content: it has more than 262144 values"),
        ] {
            let said = format!("{:?}", answer(result, None));
            assert!(said.contains(expected), "{result:.80}: {said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn tool_error_text_becomes_the_failure_message() {
        for (result, expected) in [
            (
                json!({ "content": [{ "type": "text", "text": "no" }], "structuredContent": { "message": "a" } }),
                "no",
            ),
            (
                json!({ "content": [{ "type": "error", "text": "amount must be a number" }] }),
                "amount must be a number",
            ),
            (
                json!({ "content": [{ "type": "error", "error": { "message": "a" } }, { "type": "text", "text": "b" }] }),
                "a\nb",
            ),
            (
                json!({ "content": [{ "type": "resource", "resource": { "uri": "a:b", "text": "log" } }] }),
                "log",
            ),
            (json!({ "content": "not found" }), "not found"),
            (
                json!({ "content": [], "structuredContent": { "message": "quota used up" } }),
                "quota used up",
            ),
            (
                json!({ "content": [{ "type": "text", "text": " \n" }], "structuredContent": { "error": { "code": 1, "message": "a" } } }),
                "a",
            ),
            (
                json!({ "structuredContent": { "detail": [{ "loc": ["n"], "msg": "required" }, { "msg": "late" }] } }),
                "required\nlate",
            ),
            (
                json!({ "structuredContent": { "code": 7 } }),
                r#"{"code":7}"#,
            ),
            (json!({ "structuredContent": ["a", "b"] }), "a\nb"),
            (json!({ "toolResult": "no room" }), "no room"),
            (json!({ "error": "gone" }), "gone"),
            (
                json!({ "content": [{ "type": "image", "data": "AA==", "mimeType": "image/png" }], "structuredContent": {} }),
                "the tool failed and did not say why",
            ),
            (json!({}), "the tool failed and did not say why"),
        ] {
            let mut failed = result.clone();
            failed["isError"] = true.into();
            match answer(&failed.to_string(), None) {
                Answer::Failed {
                    message, content, ..
                } => {
                    assert_eq!(message, expected, "{result}");
                    assert!(content.get().starts_with('['), "{content}");
                }
                other => panic!("{result}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_long_failure_is_cut_between_characters() {
        let text = "é".repeat(MAX_MESSAGE_BYTES);
        let result = r#"{"isError":true,"content":[{"type":"text","text":"a"#.to_owned() + &text;
        match answer(&(result + r#""}]}"#), None) {
            Answer::Failed { message, .. } => {
                assert_eq!(message.len(), MAX_MESSAGE_BYTES - 1 + "…".len());
            }
            other => panic!("{other:?}"),
        }
    }
}
