//! Values of a schema as notes show them: as a script would write them, and short.

use serde_json::{Map, Value};

use crate::text::{prefix, push_property_key, push_string_literal};

/// Bytes of one value or pattern in a note.
pub(super) const MAX_VALUE: usize = 160;
/// Bytes of the values that stand for an enumeration too long for a type.
const MAX_HEAD: usize = 120;
/// Bytes of the examples in a note.
const MAX_EXAMPLES: usize = 80;
/// The largest integer whose neighbours a double can represent. Generators write it as a bound that
/// means no bound.
pub(super) const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// A value as script text. A long value is cut soon after the limit, and deeply nested parts are
/// replaced by `…`.
pub(super) fn value_text(value: &Value) -> String {
    let mut text = String::new();
    push_value(value, 0, &mut text);
    text
}

fn push_value(value: &Value, depth: usize, text: &mut String) {
    const MAX_NESTED: usize = 4;
    if text.len() > MAX_VALUE {
        return;
    }
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(boolean) => text.push_str(if *boolean { "true" } else { "false" }),
        Value::Number(_) => text.push_str(&number(value).unwrap_or_default()),
        Value::String(string) => push_string_literal(prefix(string, 2 * MAX_VALUE), text),
        Value::Array(items) if items.is_empty() => text.push_str("[]"),
        Value::Object(entries) if entries.is_empty() => text.push_str("{}"),
        _ if depth == MAX_NESTED => text.push('…'),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                push_value(item, depth + 1, text);
                if text.len() > MAX_VALUE {
                    return;
                }
            }
            text.push(']');
        }
        Value::Object(entries) => {
            text.push_str("{ ");
            for (index, (key, value)) in entries.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                push_property_key(prefix(key, 2 * MAX_VALUE), text);
                text.push_str(": ");
                push_value(value, depth + 1, text);
                if text.len() > MAX_VALUE {
                    return;
                }
            }
            text.push_str(" }");
        }
    }
}

/// A number as text: `1.0` as `1`.
pub(super) fn number(value: &Value) -> Option<String> {
    let double = value.as_f64()?;
    if double.fract() == 0.0 && double.abs() < SAFE_INTEGER {
        // Without the sign of a negative zero.
        Some(format!("{}", double + 0.0))
    } else {
        Some(value.to_string())
    }
}

/// The first examples, as many as are short together and not in the description.
pub(super) fn examples(map: &Map<String, Value>, described: &str) -> Option<String> {
    let several = map.get("examples").and_then(Value::as_array);
    let several = several.into_iter().flatten();
    let mut text = String::new();
    for example in several.chain(map.get("example")).take(5) {
        let example = value_text(example);
        if described.contains(example.trim_matches('"')) || text.contains(&example) {
            continue;
        }
        if text.len() + example.len() > MAX_EXAMPLES {
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&example);
    }
    (!text.is_empty()).then_some(text)
}

/// The first values of a long enumeration, and a mark for the others.
pub(super) fn head(values: &[Value]) -> String {
    let mut text = String::new();
    for value in values {
        let value = value_text(value);
        if text.len() + value.len() > MAX_HEAD {
            break;
        }
        text.push_str(&value);
        text.push_str(", ");
    }
    text.push('…');
    text
}
