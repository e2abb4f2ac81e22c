//! The `result` of `tools/call`, read as MCP defines it.
//!
//! The value for a script is `structuredContent`, or `toolResult` of MCP 2024-10-07; else the one
//! text block as a JSON string; else `{ "content": […] }`; and `null` for a result with no content.
//! If the tool declares an output schema, the JSON in its text blocks. The server's text is cut
//! out, not parsed and printed.

use std::borrow::Cow;

use callgate_schema::{Declared, Fit, extent, json_fault, present};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::failure_message::failure_message;

/// The limit of JSON values in a result's content.
const MAX_PARTS: u64 = 1 << 18;

/// A server's answer to `tools/call`.
#[derive(Debug)]
pub(crate) enum ServerAnswer {
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
    /// It is not a result of `tools/call`, for this reason.
    Malformed(String),
}

/// The members of a result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    content: Option<&'a RawValue>,
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

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    /// The text as a JSON string.
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

impl ServerAnswer {
    /// Reads a result of a tool whose output schema is `declared`.
    pub(crate) fn of(result: &RawValue, declared: Option<&Declared>) -> Self {
        Self::read(result, declared).unwrap_or_else(Self::Malformed)
    }

    fn read(whole: &RawValue, declared: Option<&Declared>) -> Result<Self, String> {
        if !is_object(whole) {
            return Err("it is not an object".to_owned());
        }
        let fault = |error: serde_json::Error| json_fault(&error);
        let result: CallResult<'_> = serde_json::from_str(whole.get()).map_err(fault)?;
        if result.result_type.as_deref() == Some("input_required") {
            return Ok(Self::InputRequired);
        }
        if result.is_error == Some(true) {
            check_extent(whole)?;
            let is_list = |content: &&RawValue| content.get().starts_with('[');
            return Ok(Self::Failed {
                message: failure_message(whole)?,
                content: (result.content.filter(is_list))
                    .map_or_else(|| raw("[]"), RawValue::to_owned),
                structured_content: result.value().map(RawValue::to_owned),
            });
        }
        if result.content.is_none() && result.value().is_none() {
            return Err("it has neither content nor structuredContent".to_owned());
        }
        // Servers in Go write an empty list as null.
        let content = result.content.filter(|content| content.get() != "null");
        let blocks = content.map_or(Ok(Vec::new()), blocks);
        let blocks = blocks.map_err(|problem| format!("its content: {problem}"))?;
        if let Some(value) = result.value() {
            return Ok(Self::Value {
                value: value.to_owned(),
                is_structured: result.structured_content.is_some(),
            });
        }
        let texts: Option<Vec<_>> = blocks.iter().map(Block::as_text).collect();
        let value = texts.map(|texts| text_value(&texts, declared));
        let value = value.transpose().map_err(fault)?.flatten();
        let whole_content = || {
            let content = content.map_or("[]", RawValue::get);
            raw(&format!(r#"{{"content":{content}}}"#))
        };
        Ok(Self::Value {
            value: value.unwrap_or_else(whole_content),
            is_structured: false,
        })
    }
}

impl<'a> CallResult<'a> {
    /// The result as a value.
    fn value(&self) -> Option<&'a RawValue> {
        let older = self.tool_result.filter(|_| self.content.is_none());
        self.structured_content.or(older)
    }
}

impl<'a> Block<'a> {
    fn as_text(&self) -> Option<&'a RawValue> {
        let is_text = |text: &&RawValue| self.kind == "text" && text.get().starts_with('"');
        self.text.filter(is_text)
    }
}

fn blocks(content: &RawValue) -> Result<Vec<Block<'_>>, String> {
    check_extent(content)?;
    let blocks: Vec<&RawValue> =
        serde_json::from_str(content.get()).map_err(|error| json_fault(&error))?;
    let read: Option<_> = blocks.into_iter().map(block).collect();
    read.ok_or_else(|| "a block has the wrong type".to_owned())
}

fn block(json: &RawValue) -> Option<Block<'_>> {
    let block = serde_json::from_str(json.get()).ok()?;
    is_object(json).then_some(block)
}

fn check_extent(json: &RawValue) -> Result<(), String> {
    if extent(json.get()).parts > MAX_PARTS {
        return Err(format!("it has more than {MAX_PARTS} values"));
    }
    Ok(())
}

fn is_object(json: &RawValue) -> bool {
    json.get().starts_with('{')
}

/// The value of a content that has text blocks only; `None` if the script gets the content itself.
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

/// A JSON text as a raw value.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(result: &str, schema: Option<&Value>) -> ServerAnswer {
        let result = RawValue::from_string(result.to_owned()).expect("JSON");
        let declared = schema.cloned().map(Declared::new);
        ServerAnswer::of(&result, declared.as_ref())
    }

    fn check(result: &str, schema: Option<&Value>, expected: &str) {
        match answer(result, schema) {
            ServerAnswer::Value { value, .. } => assert_eq!(value.get(), expected, "{result}"),
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
                "its content: a block has the wrong type",
            ),
            (
                r#"{"isError":"a secret"}"#,
                "a value has the wrong type at line 1 column 21",
            ),
            (
                r#"{"content":{}}"#,
                "its content: a value has the wrong type at line 1 column 0",
            ),
            (&many, "its content: it has more than 262144 values"),
        ] {
            let said = format!("{:?}", answer(result, None));
            assert!(said.contains(expected), "{result:.80}: {said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
