//! Whether a JSON text is written just as its value would be, told without writing all
//! of it anew: large arguments are long strings, and those are compared where they lie.

use std::io::Write as _;

use serde::Serialize;
use serde_json::Value;

/// How much of a string is compared at once, in bytes.
const PART: usize = 4 << 10;

/// Whether `serde_json` writes the value, which came out of JSON text, as this text.
pub(crate) fn is_written(value: &Value, text: &str) -> bool {
    let mut rest = Rest {
        text: text.as_bytes(),
        room: Vec::new(),
    };
    rest.value(value).is_some() && rest.text.is_empty()
}

/// What is left of the text.
struct Rest<'a> {
    text: &'a [u8],
    /// For what has to be written.
    room: Vec<u8>,
}

impl Rest<'_> {
    fn value(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::String(string) => self.string(string),
            Value::Array(items) => {
                self.bytes(b"[")?;
                for (place, item) in items.iter().enumerate() {
                    self.between(place)?;
                    self.value(item)?;
                }
                self.bytes(b"]")
            }
            Value::Object(members) => {
                self.bytes(b"{")?;
                for (place, (name, member)) in members.iter().enumerate() {
                    self.between(place)?;
                    self.string(name)?;
                    self.bytes(b":")?;
                    self.value(member)?;
                }
                self.bytes(b"}")
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.write(value)?;
                let Self { text, room } = self;
                *text = text.strip_prefix(room.as_slice())?;
                Some(())
            }
        }
    }

    fn between(&mut self, place: usize) -> Option<()> {
        match place {
            0 => Some(()),
            _ => self.bytes(b","),
        }
    }

    fn string(&mut self, string: &str) -> Option<()> {
        self.bytes(b"\"")?;
        let mut left = string;
        while !left.is_empty() {
            let (part, after) = left.split_at(left.floor_char_boundary(PART));
            left = after;
            if is_plain(part.as_bytes()) {
                self.bytes(part.as_bytes())?;
                continue;
            }
            self.write(part)?;
            let Self { text, room } = self;
            let written = room.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
            *text = text.strip_prefix(written)?;
        }
        self.bytes(b"\"")
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.text = self.text.strip_prefix(bytes)?;
        Some(())
    }

    fn write(&mut self, value: &(impl Serialize + ?Sized)) -> Option<()> {
        self.room.clear();
        serde_json::to_writer(self.room.by_ref(), value).ok()
    }
}

/// Whether a piece of a string has no escapes.
fn is_plain(bytes: &[u8]) -> bool {
    // Without a way out in between, many bytes are told at a time.
    bytes.iter().fold(true, |plain, byte| {
        plain & (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(|number| json!(number)),
            any::<String>().prop_map(Value::from),
            "[a-z\n\"\\\\é\u{1}]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_written(value in value()) {
            let text = value.to_string();
            prop_assert!(is_written(&value, &text));
            let longer = format!("{text} ");
            prop_assert!(!is_written(&value, &longer));
            prop_assert!(!is_written(&value, &text[..text.floor_char_boundary(text.len() - 1)]));
        }

        #[test]
        fn what_is_written_otherwise_is_not(
            value in value(), place in any::<prop::sample::Index>(), other in "[ 0a\\\\\"\n]",
        ) {
            let text = value.to_string();
            let at = text.floor_char_boundary(place.index(text.len()));
            let changed = format!("{}{other}{}", &text[..at], &text[at..]);
            // Whatever it is the text of, if of anything.
            for value in [Some(value), serde_json::from_str(&changed).ok()].into_iter().flatten() {
                let written = value.to_string();
                prop_assert_eq!(is_written(&value, &changed), written == changed);
            }
        }
    }

    #[test]
    fn long_strings_are_compared_part_by_part() {
        for escape in ["", "\n", "\u{1}", "\"", "é"] {
            for at in [0, PART - 1, PART, 3 * PART] {
                let mut string = "a".repeat(at);
                string.push_str(escape);
                string.push_str(&"b".repeat(2 * PART));
                let value = json!({ "text": string });
                let text = value.to_string();
                assert!(is_written(&value, &text));
                let mut other = text.clone();
                other.replace_range(text.len() - 3..text.len() - 2, "c");
                assert!(!is_written(&value, &other));
            }
        }
    }

    #[test]
    fn other_ways_to_write_the_same_are_told() {
        for text in [
            r#"{"a": 1}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a":1e0}"#,
            r#"{"a":-0}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u001F"}"#,
            r#"{"a":1} "#,
        ] {
            let value: Value = serde_json::from_str(text).expect("it is JSON");
            assert!(!is_written(&value, text), "{text}");
        }
    }
}
