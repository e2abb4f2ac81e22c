//! The arguments of a call: parsed, checked, and written again in one canonical form.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most levels of nesting that serde_json parses.
const MAX_LEVELS: u32 = 127;
/// The most values in the arguments of one call. Small values take up to a hundred times as much
/// memory as their text.
const MAX_VALUES: u32 = 1 << 20;
/// The most digits of a number that a message shows.
const SHOWN_DIGITS: usize = 40;
/// serde_json may read an object with such a name as the JSON in its text: rules would see one
/// value, and the server another.
const PRIVATE_NAMES: &str = "$serde_json::private::";

/// The arguments of a call. Rules, askers, reviewers, the ledger and the server see the same
/// text, however the script wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    text: Arc<str>,
}

impl Arguments {
    /// Parses a JSON object, or null for an empty one. `noun` names it in the error.
    ///
    /// # Errors
    ///
    /// The problem, and what to do.
    pub(crate) fn parse(given: &str, noun: &str) -> Result<Self, String> {
        let mut left = MAX_VALUES;
        let mut json = serde_json::Deserializer::from_str(given);
        let object = json.deserialize_option(Object(&mut left));
        let object = object.and_then(|object| json.end().map(|()| object));
        let text = match object.and_then(|object| serde_json::to_string(&object)) {
            Ok(text) => text,
            Err(_) if left == 0 => {
                return Err(format!(
                    "the {noun} must have at most {MAX_VALUES} values, and have more; give some of \
                     them as text, or in parts"
                ));
            }
            Err(error) if error.to_string().starts_with("recursion limit exceeded") => {
                return Err(format!(
                    "the {noun} must be nested at most {MAX_LEVELS} levels deep; give what is \
                     deeper as text, or in parts"
                ));
            }
            Err(error) => return Err(format!("the {noun} must be one JSON object: {error}")),
        };
        match inexact_integer(given) {
            Some(number) if text != given => {
                let shown: String = number.chars().take(SHOWN_DIGITS).collect();
                let more = if shown.len() < number.len() {
                    "…"
                } else {
                    ""
                };
                Err(format!(
                    "the {noun} have an integer that would not be kept exactly: {shown}{more}; \
                     give it as text, or with an exponent"
                ))
            }
            _ => Ok(Self { text: text.into() }),
        }
    }

    /// The arguments as they are sent.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The arguments as a value. It is not kept, since calls that wait for an asker would hold
    /// many of them.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Reads any value. Counts down the values that may still come.
struct Any<'a>(&'a mut u32);

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        let left = self.0.checked_sub(1);
        *self.0 = left.ok_or_else(|| D::Error::custom("too many values"))?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(Any(&mut *self.0))? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Value, A::Error> {
        Object(self.0).visit_map(members)
    }
}

/// Reads an object, or null for an empty one.
struct Object<'a>(&'a mut u32);

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Object(Map::new()))
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.starts_with(PRIVATE_NAMES) {
                return Err(A::Error::custom(format!(
                    "a name in it begins with {PRIVATE_NAMES:?}, which many programs in Rust do \
                     not read as a name; name it otherwise"
                )));
            }
            let member = members.next_value_seed(Any(&mut *self.0))?;
            read.insert(name, member);
        }
        Ok(Value::Object(read))
    }
}

/// The first integer of a JSON text that is neither one of 64 bits nor exactly a double, as
/// written in full or as JavaScript writes it.
fn inexact_integer(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = rest.get(at..)?;
        if rest.starts_with('"') {
            rest = rest.get(string_bytes(rest.as_bytes())..)?;
            continue;
        }
        let is_part = |c: char| matches!(c, '+' | '-' | '.' | 'e' | 'E') || c.is_ascii_digit();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (number, behind) = rest.split_at_checked(end)?;
        if is_inexact(number) {
            return Some(number);
        }
        rest = behind;
    }
    None
}

/// The length of the string at the beginning, with its quotation marks.
fn string_bytes(text: &[u8]) -> usize {
    let mut at = 1;
    loop {
        match text.get(at) {
            None => return text.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

fn is_inexact(number: &str) -> bool {
    if number.contains(['.', 'e', 'E'])
        || number.parse::<i64>().is_ok()
        || number.parse::<u64>().is_ok()
    {
        return false;
    }
    let is_written = |double: f64| double.to_string() == number || format!("{double:.0}") == number;
    !number.parse().is_ok_and(is_written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_kept_exactly_or_refused() {
        let check = |json: &str, expected: Option<&str>| {
            assert_eq!(inexact_integer(json), expected, "{json}");
        };
        check(
            r#"{"id": 12345678901234567890123, "e": 1E5}"#,
            Some("12345678901234567890123"),
        );
        check("[0,-18446744073709551616]", None);
        check("[0,-18446744073709551617]", Some("-18446744073709551617"));
        check(
            "[18446744073709551615,-9223372036854775808,-0,1.5,1e400]",
            None,
        );
        // As JavaScript writes 2 to the power of 69.
        check("590295810358705700000", None);
        check("590295810358705651712", None);
        check("590295810358705700001", Some("590295810358705700001"));
        check(r#"["\"12345678901234567890123", "\\"]"#, None);
        check(r#"{"12345678901234567890123":1}"#, None);
        check(r#"["open"#, None);
    }

    #[test]
    fn arguments_have_one_form_or_a_problem() {
        let parse = |json: &str| match Arguments::parse(json, "arguments") {
            Ok(arguments) => {
                assert_eq!(arguments.value().to_string(), **arguments.text());
                arguments.text.to_string()
            }
            Err(problem) => problem,
        };
        let private = r#"{"a":{"\u0024serde_json::private::RawValue":"{}"}}"#;
        for (json, expected) in [
            ("null", "{}"),
            (r#"{"a": 1,"a":2, "b":"\u0041"}"#, r#"{"a":2,"b":"A"}"#),
            (
                r#"{"a":1e400}"#,
                "must be one JSON object: number out of range",
            ),
            ("[]", "must be one JSON object: invalid type: sequence"),
            ("{} {}", "must be one JSON object: trailing characters"),
            (&"{\"a\":".repeat(200), "nested at most 127 levels deep"),
            (
                &format!(r#"{{"a":[{}0]}}"#, "0,".repeat(1 << 20)),
                "at most 1048576 values",
            ),
            (private, "a name in it begins with"),
        ] {
            let parsed = parse(json);
            assert!(parsed.contains(expected), "{parsed}");
        }
    }
}
