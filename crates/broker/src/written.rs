//! Whether a JSON text is written just as its value would be, told without writing all
//! of it anew: large arguments are long strings, and those are compared where they lie.

use serde_json::Value;

/// How many bytes of a string are told at once.
const CHUNK: usize = 32;

/// How many are looked at before they are compared: what is near at hand then.
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
    /// For numbers.
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
                self.room.clear();
                serde_json::to_writer(&mut self.room, value).ok()?;
                self.text = self.text.strip_prefix(self.room.as_slice())?;
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
        for part in string.as_bytes().chunks(PART) {
            let mut left = part;
            loop {
                let (plain, rest) = left.split_at(plain_bytes(left));
                self.bytes(plain)?;
                let Some((escaped, rest)) = rest.split_first() else {
                    break;
                };
                self.escape(*escaped)?;
                left = rest;
            }
        }
        self.bytes(b"\"")
    }

    /// A character that is written by another.
    fn escape(&mut self, byte: u8) -> Option<()> {
        let after = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0A => b'n',
            0x0C => b'f',
            0x0D => b'r',
            _ => {
                let digit = |half: u8| char::from_digit(u32::from(half), 16).map(|it| it as u8);
                let [high, low] = [digit(byte >> 4)?, digit(byte & 15)?];
                return self.bytes(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        };
        self.bytes(&[b'\\', after])
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.text = self.text.strip_prefix(bytes)?;
        Some(())
    }
}

/// How many bytes of a string come before the first that is escaped.
fn plain_bytes(bytes: &[u8]) -> usize {
    let (chunks, _) = bytes.as_chunks::<CHUNK>();
    let plain = chunks.iter().take_while(|chunk| is_plain(*chunk)).count() * CHUNK;
    let rest = bytes.get(plain..).unwrap_or_default();
    let end = rest.iter().position(|byte| !is_plain(&[*byte]));
    plain + end.unwrap_or(rest.len())
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
    fn escapes_are_told_wherever_they_are() {
        for escape in ["", "\n", "\u{1}", "\"", "é"] {
            for at in [0, CHUNK - 1, CHUNK, PART - 1, PART] {
                let mut string = "a".repeat(at);
                string.push_str(escape);
                string.push_str(&"b".repeat(PART + CHUNK));
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
    fn every_character_is_written_as_it_is() {
        for character in (0..0x200).filter_map(char::from_u32) {
            let value = json!(format!("{character}"));
            assert!(is_written(&value, &value.to_string()), "{character:?}");
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
