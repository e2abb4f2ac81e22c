//! From the `result` of `tools/call` to the JSON a script gets.
//!
//! `structuredContent` where there is one; else the text blocks, joined with
//! line feeds, as a JSON string, or as the JSON they hold if the tool declares
//! an output schema; else, if there is anything but text, `{ "content": […] }`;
//! and `null` for a result with no content. Text stays text on the way: what
//! the server sent is cut out, not parsed and printed.

use std::borrow::Cow;

use callgate_auth::cut_message;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::inbox::present;
use crate::misfit;
use crate::object::{First, Object, object};

/// The most blocks of a result's content.
const MAX_BLOCKS: usize = 1 << 16;

/// What a result says.
#[derive(Debug)]
pub(crate) enum Shaped {
    /// The value for the script.
    Value {
        value: Box<RawValue>,
        /// Whether it is `structuredContent`.
        structured: bool,
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

/// Shapes a result.
pub(crate) fn shape(result: &RawValue, has_output_schema: bool) -> Shaped {
    let result: CallResult<'_> = match object(result.get()) {
        Ok(result) => result,
        Err(error) => return Shaped::Malformed(misfit::describe(&error)),
    };
    if result.result_type.as_deref() == Some("input_required") {
        return Shaped::InputRequired;
    }
    let blocks = match result.content.map_or(Ok(Vec::new()), blocks) {
        Ok(blocks) => blocks,
        Err(fault) => return Shaped::Malformed(format!("its content: {fault}")),
    };
    if result.is_error == Some(true) {
        return Shaped::Failed {
            message: failure_message(&blocks),
            content: result.content.map_or_else(|| raw("[]"), RawValue::to_owned),
            structured_content: result.structured_content.map(RawValue::to_owned),
        };
    }
    if let Some(structured) = result.structured_content {
        return Shaped::Value {
            value: structured.to_owned(),
            structured: true,
        };
    }
    match texts(&blocks) {
        _ if blocks.is_empty() => unstructured(raw("null")),
        Some(texts) => text_value(&texts, has_output_schema),
        None => {
            let content = result.content.map_or("[]", RawValue::get);
            unstructured(raw(&format!("{{\"content\":{content}}}")))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    /// The text as a JSON string.
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

fn blocks(content: &RawValue) -> Result<Vec<Block<'_>>, String> {
    let blocks: First<Object<Block<'_>>, MAX_BLOCKS> =
        serde_json::from_str(content.get()).map_err(|error| misfit::describe(&error))?;
    if blocks.more {
        return Err(format!("it has more than {MAX_BLOCKS} blocks"));
    }
    Ok(blocks
        .first
        .into_iter()
        .map(|Object(block)| block)
        .collect())
}

/// The texts, still as JSON strings, if there is nothing else.
fn texts<'a>(blocks: &[Block<'a>]) -> Option<Vec<&'a RawValue>> {
    let text = |block: &Block<'a>| {
        block
            .text
            .filter(|text| block.kind == "text" && text.get().starts_with('"'))
    };
    blocks.iter().map(text).collect()
}

fn text_value(texts: &[&RawValue], has_output_schema: bool) -> Shaped {
    if let [text] = texts
        && !has_output_schema
    {
        return unstructured((*text).to_owned());
    }
    let joined = match joined(texts) {
        Ok(joined) => joined,
        Err(error) => return Shaped::Malformed(misfit::describe(&error)),
    };
    if has_output_schema && let Ok(value) = serde_json::from_str::<Box<RawValue>>(&joined) {
        return unstructured(value);
    }
    match to_raw_value(&joined) {
        Ok(value) => unstructured(value),
        Err(error) => Shaped::Malformed(misfit::describe(&error)),
    }
}

fn unstructured(value: Box<RawValue>) -> Shaped {
    Shaped::Value {
        value,
        structured: false,
    }
}

fn joined(texts: &[&RawValue]) -> serde_json::Result<String> {
    let texts: Vec<Cow<'_, str>> = texts
        .iter()
        .map(|text| serde_json::from_str(text.get()))
        .collect::<Result<_, _>>()?;
    Ok(texts.join("\n"))
}

fn failure_message(blocks: &[Block<'_>]) -> String {
    let texts: Vec<_> = blocks
        .iter()
        .filter_map(|block| block.text.filter(|_| block.kind == "text"))
        .filter(|text| text.get().starts_with('"'))
        .collect();
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

#[cfg(test)]
mod tests {
    use callgate_auth::MAX_MESSAGE_BYTES;
    use expect_test::{Expect, expect};

    use super::*;

    fn check(result: &str, has_output_schema: bool, expected: Expect) {
        let result: Box<RawValue> = serde_json::from_str(result).expect("JSON");
        let shown = match shape(&result, has_output_schema) {
            Shaped::Value { value, .. } => value.to_string(),
            other => format!("{other:?}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn structured_content_wins_and_is_not_reprinted() {
        check(
            r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"b": 1.0, "a":1e400}}"#,
            true,
            expect![[r#"{"b": 1.0, "a":1e400}"#]],
        );
        check(r#"{"structuredContent":null}"#, true, expect!["null"]);
        check(
            r#"{"structuredContent":[],"isError":false}"#,
            false,
            expect!["[]"],
        );
    }

    #[test]
    fn text() {
        check(
            r#"{"content":[{"type":"text","text":"a\u00e9\n"}]}"#,
            false,
            expect![[r#""a\u00e9\n""#]],
        );
        check(
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"\"b\""}]}"#,
            false,
            expect![[r#""a\n\"b\"""#]],
        );
        check(
            r#"{"content":[{"type":"text","text":"{\"a\": 1}"}]}"#,
            false,
            expect![[r#""{\"a\": 1}""#]],
        );
        check(
            r#"{"content":[{"type":"text","text":"{\"a\": 1}"}]}"#,
            true,
            expect![[r#"{"a": 1}"#]],
        );
        check(
            r#"{"content":[{"type":"text","text":"{a"}]}"#,
            true,
            expect![[r#""{a""#]],
        );
    }

    #[test]
    fn nothing_and_other_things() {
        check(r#"{"content":[]}"#, false, expect!["null"]);
        check(r#"{}"#, false, expect!["null"]);
        check(
            r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#,
            false,
            expect![[r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#]],
        );
        check(
            r#"{"content":[{"type":"text","text":"a"},{"type":"hologram"}]}"#,
            true,
            expect![[r#"{"content":[{"type":"text","text":"a"},{"type":"hologram"}]}"#]],
        );
        check(
            r#"{"content":[{"type":"text","text":7}]}"#,
            false,
            expect![[r#"{"content":[{"type":"text","text":7}]}"#]],
        );
    }

    #[test]
    fn failures() {
        check(
            r#"{"isError":true,"content":[{"type":"text","text":"no"}],"structuredContent":{"a":1}}"#,
            true,
            expect![[
                r#"Failed { message: "no", content: RawValue([{"type":"text","text":"no"}]), structured_content: Some(RawValue({"a":1})) }"#
            ]],
        );
        check(
            r#"{"isError":true}"#,
            false,
            expect![[
                r#"Failed { message: "the tool failed and did not say why", content: RawValue([]), structured_content: None }"#
            ]],
        );
        check(
            r#"{"resultType":"input_required"}"#,
            false,
            expect!["InputRequired"],
        );
        check(
            "7",
            false,
            expect![[
                r#"Malformed("invalid type: integer, expected an object at line 1 column 1")"#
            ]],
        );
        check(
            "[]",
            false,
            expect![[
                r#"Malformed("invalid type: sequence, expected an object at line 1 column 0")"#
            ]],
        );
        check(
            r#"[[{"type":"text","text":"a"}]]"#,
            false,
            expect![[
                r#"Malformed("invalid type: sequence, expected an object at line 1 column 0")"#
            ]],
        );
        check(
            r#"{"content":[["text","a"]]}"#,
            false,
            expect![[
                r#"Malformed("its content: invalid type: sequence, expected an object at line 1 column 1")"#
            ]],
        );
        check(
            r#"{"isError":"a token, expected"}"#,
            false,
            expect![[
                r#"Malformed("invalid type: string, expected a boolean at line 1 column 30")"#
            ]],
        );
        check(
            r#"{"content":{}}"#,
            false,
            expect![[
                r#"Malformed("its content: invalid type: map, expected a sequence at line 1 column 0")"#
            ]],
        );
    }

    #[test]
    fn a_result_has_so_many_blocks_and_no_more() {
        let shaped = |blocks: usize| {
            let content = vec!["{}"; blocks].join(",");
            let result = format!(r#"{{"content":[{content}],"structuredContent":1}}"#);
            let result: Box<RawValue> = serde_json::from_str(&result).expect("JSON");
            format!("{:?}", shape(&result, false))
        };
        let value = "Value { value: RawValue(1), structured: true }";
        assert_eq!(shaped(MAX_BLOCKS), value);
        let malformed = r#"Malformed("its content: it has more than 65536 blocks")"#;
        assert_eq!(shaped(MAX_BLOCKS + 1), malformed);
    }

    #[test]
    fn a_long_failure_is_cut_between_characters() {
        let text = "é".repeat(MAX_MESSAGE_BYTES);
        let result =
            format!(r#"{{"isError":true,"content":[{{"type":"text","text":"a{text}"}}]}}"#);
        let result: Box<RawValue> = serde_json::from_str(&result).expect("JSON");
        match shape(&result, false) {
            Shaped::Failed { message, .. } => {
                assert_eq!(message.len(), MAX_MESSAGE_BYTES - 1 + "…".len());
            }
            other => panic!("{other:?}"),
        }
    }
}
