//! From the `result` of `tools/call` to the JSON that a script gets.
//!
//! `structuredContent` if there is one; else the text blocks, joined with line feeds, as a JSON
//! string, or as the JSON in them if the tool declares an output schema; else, if there is
//! anything but text, `{ "content": […] }`; and `null` for a result with no content. The server's
//! text is cut out, not parsed and printed.

use std::borrow::Cow;

use callgate_auth::cut_message;
use callgate_catalog::Tool;
use callgate_schema::{Declared, Fit, extent};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The most JSON values in a result's content.
const MAX_PARTS: u64 = 1 << 18;

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
    pub(crate) fn of(result: &RawValue, has_output_schema: bool) -> Self {
        if !is_object(result) {
            return Self::Malformed("it is no object".to_owned());
        }
        let result: CallResult<'_> = match serde_json::from_str(result.get()) {
            Ok(result) => result,
            Err(error) => return Self::Malformed(misfit(error)),
        };
        if result.result_type.as_deref() == Some("input_required") {
            return Self::InputRequired;
        }
        let blocks = match result.content.map_or(Ok(Vec::new()), blocks) {
            Ok(blocks) => blocks,
            Err(problem) => return Self::Malformed(format!("its content: {problem}")),
        };
        if result.is_error == Some(true) {
            return Self::Failed {
                message: failure_message(&blocks),
                content: result.content.map_or_else(|| raw("[]"), RawValue::to_owned),
                structured_content: result.structured_content.map(RawValue::to_owned),
            };
        }
        if let Some(structured) = result.structured_content {
            return Self::Value {
                value: structured.to_owned(),
                is_structured: true,
            };
        }
        let texts: Option<Vec<_>> = blocks.iter().map(Block::as_text).collect();
        let value = match texts {
            _ if blocks.is_empty() => raw("null"),
            Some(texts) => match text_value(&texts, has_output_schema) {
                Ok(value) => value,
                Err(error) => return Self::Malformed(misfit(error)),
            },
            None => {
                let content = result.content.map_or("[]", RawValue::get);
                raw(&format!("{{\"content\":{content}}}"))
            }
        };
        Self::Value {
            value,
            is_structured: false,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    /// `null` is a value, and not an absent member.
    #[serde(borrow, default, deserialize_with = "present")]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
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

fn text_value(texts: &[&RawValue], has_output_schema: bool) -> serde_json::Result<Box<RawValue>> {
    if let [text] = texts
        && !has_output_schema
    {
        return Ok((*text).to_owned());
    }
    let joined = joined(texts)?;
    if has_output_schema && let Ok(value) = serde_json::from_str::<Box<RawValue>>(&joined) {
        return Ok(value);
    }
    to_raw_value(&joined)
}

fn joined(texts: &[&RawValue]) -> serde_json::Result<String> {
    let texts: Vec<Cow<'_, str>> = texts
        .iter()
        .map(|text| serde_json::from_str(text.get()))
        .collect::<Result<_, _>>()?;
    Ok(texts.join("\n"))
}

fn failure_message(blocks: &[Block<'_>]) -> String {
    let texts: Vec<_> = blocks.iter().filter_map(Block::as_text).collect();
    let mut message = joined(&texts).unwrap_or_default();
    if message.trim().is_empty() {
        return "the tool failed and did not say why".to_owned();
    }
    cut_message(&mut message);
    message
}

/// `text`, which is JSON, as a raw value.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The check of a result against its tool's `outputSchema`.
#[derive(Debug)]
pub(crate) enum Checked {
    /// It fits, or there is no schema.
    Fits,
    /// It does not fit.
    Mismatch { message: String, problems: Value },
    /// It was not checked, for this reason.
    Unchecked(String),
}

/// Checks a value against its tool's schema, and gives it back. `is_structured` says whether it
/// was answered as `structuredContent`, as it must be if there is a schema.
pub(crate) async fn check_output(
    tool: &Tool,
    value: Box<RawValue>,
    is_structured: bool,
) -> (Box<RawValue>, Checked) {
    let Some(declared) = &tool.output_schema else {
        return (value, Checked::Fits);
    };
    let (value, fit) = fit(tool, declared, value).await;
    let checked = match fit {
        Fit::Fits => Checked::Fits,
        Fit::Unknown(reason) => Checked::Unchecked(reason),
        Fit::Wrong { problems } => {
            let what = if is_structured {
                "the call was made, and its result does not fit the tool's outputSchema"
            } else {
                "the call was made; the tool has an outputSchema and answered without \
                 structuredContent, and what it answered does not fit"
            };
            let first = problems.first().map(|first| format!(": {first}"));
            Checked::Mismatch {
                message: format!("{what}{}", first.unwrap_or_default()),
                problems: problems.into(),
            }
        }
    };
    (value, checked)
}

async fn fit(tool: &Tool, declared: &Declared, value: Box<RawValue>) -> (Box<RawValue>, Fit) {
    let bytes = value.get().len();
    if declared.is_quick(bytes) {
        let fit = declared.fit(value.get());
        return (value, fit);
    }
    let permit = if bytes >= LARGE {
        // The semaphore is never closed.
        LARGE_RESULTS.acquire().await.ok()
    } else {
        None
    };
    let is_new = !declared.is_compiled();
    let schema = declared.clone();
    let fitted = spawn_blocking(move || {
        let _permit = permit;
        let fit = schema.fit(value.get());
        (value, fit)
    });
    let fitted = fitted.await;
    if let Some(fault) = declared.fault().filter(|_| is_new) {
        tracing::warn!(
            server = tool.server,
            tool = tool.name,
            reason = fault,
            "results are not held to an outputSchema that is not taken"
        );
    }
    fitted.unwrap_or_else(|_| {
        let ending = Fit::Unknown("the host is ending".to_owned());
        (RawValue::NULL.to_owned(), ending)
    })
}

#[cfg(test)]
mod tests {
    use callgate_auth::MAX_MESSAGE_BYTES;

    use super::*;

    fn read(result: &str, has_output_schema: bool) -> Answer {
        let result = RawValue::from_string(result.to_owned()).expect("JSON");
        Answer::of(&result, has_output_schema)
    }

    #[test]
    fn values_are_cut_out_of_results() {
        let image = r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#;
        let hologram = r#"{"content":[{"type":"text","text":"a"},{"type":"hologram"}]}"#;
        for (result, has_output_schema, expected) in [
            (
                r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"b": 1.0, "a":1e400}}"#,
                true,
                r#"{"b": 1.0, "a":1e400}"#,
            ),
            (r#"{"structuredContent":null}"#, true, "null"),
            (r#"{"structuredContent":[],"isError":false}"#, false, "[]"),
            (
                r#"{"content":[{"type":"text","text":"a\u00e9\n"}]}"#,
                false,
                r#""a\u00e9\n""#,
            ),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"\"b\""}]}"#,
                false,
                r#""a\n\"b\"""#,
            ),
            (
                r#"{"content":[{"type":"text","text":"{\"a\": 1}"}]}"#,
                false,
                r#""{\"a\": 1}""#,
            ),
            (
                r#"{"content":[{"type":"text","text":"{\"a\": 1}"}]}"#,
                true,
                r#"{"a": 1}"#,
            ),
            (
                r#"{"content":[{"type":"text","text":"{a"}]}"#,
                true,
                r#""{a""#,
            ),
            (r#"{"content":[]}"#, false, "null"),
            ("{}", false, "null"),
            (image, false, image),
            (hologram, true, hologram),
            (
                r#"{"content":[{"type":"text","text":7}]}"#,
                false,
                r#"{"content":[{"type":"text","text":7}]}"#,
            ),
        ] {
            match read(result, has_output_schema) {
                Answer::Value { value, .. } => assert_eq!(value.get(), expected),
                other => panic!("{result}: {other:?}"),
            }
        }
    }

    #[test]
    fn other_answers_are_no_values() {
        let many = format!(r#"{{"content":[{}{{}}]}}"#, "{},".repeat(1 << 17));
        for (result, expected) in [
            (
                r#"{"isError":true,"content":[{"type":"text","text":"no"}],"structuredContent":{"a":1}}"#,
                r#"Failed { message: "no", content: RawValue([{"type":"text","text":"no"}]), structured_content: Some(RawValue({"a":1})) }"#,
            ),
            (
                r#"{"isError":true}"#,
                r#"Failed { message: "the tool failed and did not say why", content: RawValue([]), structured_content: None }"#,
            ),
            (r#"{"resultType":"input_required"}"#, "InputRequired"),
            ("7", r#"Malformed("it is no object")"#),
            ("[[]]", r#"Malformed("it is no object")"#),
            (
                r#"{"content":[["text","a"]]}"#,
                r#"Malformed("its content: a block of a wrong type")"#,
            ),
            (
                r#"{"isError":"a secret"}"#,
                r#"Malformed("a value of a wrong type at line 1 column 21")"#,
            ),
            (
                r#"{"content":{}}"#,
                r#"Malformed("its content: a value of a wrong type at line 1 column 0")"#,
            ),
            (
                &many,
                r#"Malformed("its content: it has more than 262144 values")"#,
            ),
        ] {
            assert_eq!(
                format!("{:?}", read(result, false)),
                expected,
                "{result:.80}"
            );
        }
    }

    #[test]
    fn a_long_failure_is_cut_between_characters() {
        let text = "é".repeat(MAX_MESSAGE_BYTES);
        let result = r#"{"isError":true,"content":[{"type":"text","text":"a"#.to_owned() + &text;
        match read(&(result + r#""}]}"#), false) {
            Answer::Failed { message, .. } => {
                assert_eq!(message.len(), MAX_MESSAGE_BYTES - 1 + "…".len());
            }
            other => panic!("{other:?}"),
        }
    }
}
