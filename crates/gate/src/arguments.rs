//! The arguments of a call: parsed, checked, and written again in one canonical form.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use callgate_schema::extent;
use serde_json::{Map, Value};

/// The most levels of nesting that serde_json parses.
const MAX_LEVELS: u32 = 127;
/// The most values in the arguments of one call. Small values take up to a hundred times as much
/// memory as their text.
const MAX_VALUES: u64 = 1 << 20;
/// serde_json may read an object with such a name as the JSON in its text: without a limit of
/// depth, and as another value than a server does.
const PRIVATE_NAMES: &str = "$serde_json::private::";

/// The arguments of a call. Rules, askers, reviewers, the ledger and the server see the same
/// text, however the script wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    text: Arc<str>,
}

impl Arguments {
    /// Parses a JSON object, or null for an empty one. `noun` names it in the error.
    pub(crate) fn parse(given: &str, noun: &str) -> Result<Self, String> {
        if extent(given).parts > MAX_VALUES {
            return Err(format!(
                "the {noun} must have at most {MAX_VALUES} values, and have more; give some of \
                 them as text, or in parts"
            ));
        }
        if strings(given).any(is_private_name) {
            return Err(format!(
                "a text in the {noun} begins with {PRIVATE_NAMES:?}, which many programs in Rust do \
                 not read as a name; write it otherwise"
            ));
        }
        let value = match serde_json::from_str(given) {
            Ok(Value::Null) => Value::Object(Map::new()),
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return Err(format!("the {noun} must be one JSON object")),
            Err(error) if error.to_string().starts_with("recursion limit exceeded") => {
                return Err(format!(
                    "the {noun} must be nested at most {MAX_LEVELS} levels deep; give what is \
                     deeper as text, or in parts"
                ));
            }
            Err(error) => return Err(format!("the {noun} must be one JSON object: {error}")),
        };
        let text = exact(given).unwrap_or_else(|| value.to_string());
        Ok(Self { text: text.into() })
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

/// The strings of a JSON text, with their quotation marks.
fn strings(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let (_, string) = rest.split_once('"')?;
        let begins = json.len() - string.len() - 1;
        let string = json.get(begins..)?;
        let (string, behind) = string.split_at_checked(string_bytes(string.as_bytes()))?;
        rest = behind;
        Some(string)
    })
}

/// True if a string, as a name, is one of [`PRIVATE_NAMES`].
fn is_private_name(string: &str) -> bool {
    if !string.contains('\\') {
        return string
            .get(1..)
            .unwrap_or_default()
            .starts_with(PRIVATE_NAMES);
    }
    let text: Option<String> = serde_json::from_str(string).ok();
    text.is_some_and(|text| text.starts_with(PRIVATE_NAMES))
}

/// The canonical text of a JSON text with integers of more than 64 bits, which a [`Value`] does
/// not hold; `None` if there are none. They pass through the value as strings.
fn exact(given: &str) -> Option<String> {
    // Short whatever the text is, and so that no text can have it by intent.
    let mark = format!("\u{e000}{:016x}", RandomState::new().hash_one(given.len()));
    let mut marked = String::new();
    let mut rest = given;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, token) = rest.split_at_checked(at)?;
        let is_part = |c: char| matches!(c, '+' | '-' | '.' | 'e' | 'E') || c.is_ascii_digit();
        let is_string = token.starts_with('"');
        let end = if is_string {
            string_bytes(token.as_bytes())
        } else {
            token.find(|c| !is_part(c)).unwrap_or(token.len())
        };
        let (token, behind) = token.split_at_checked(end)?;
        marked.push_str(before);
        if !is_string && is_long(token) {
            marked.push_str(&format!("\"{mark}{token}\""));
        } else {
            marked.push_str(token);
        }
        rest = behind;
    }
    marked.push_str(rest);
    if !marked.contains(&mark) {
        return None;
    }
    let value: Value = serde_json::from_str(&marked).ok()?;
    let (written, begin) = (value.to_string(), format!("\"{mark}"));
    let mut parts = written.split(&begin);
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (number, behind) = part.split_once('"')?;
        text.push_str(number);
        text.push_str(behind);
    }
    Some(text)
}

fn is_long(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_their_digits() {
        for (given, expected) in [
            (
                r#"{"id": 1234567890123456789}"#,
                r#"{"id":1234567890123456789}"#,
            ),
            (
                r#"{"b": [-18446744073709551616, 12345678901234567890123], "b": {"\u0041": 99999999999999999999}}"#,
                r#"{"b":{"A":99999999999999999999}}"#,
            ),
            (
                r#"{"n": [-18446744073709551617, 590295810358705651712,1.50, 1e300]}"#,
                r#"{"n":[-18446744073709551617,590295810358705651712,1.5,1e+300]}"#,
            ),
            (
                "{\"\u{e000}1\": \"\\ue00012345678901234567890123\", \"12345678901234567890123\": 12345678901234567890123}",
                "{\"\u{e000}1\":\"\u{e000}12345678901234567890123\",\"12345678901234567890123\":12345678901234567890123}",
            ),
            (
                r#"{"s": "\"12345678901234567890123", "t": "\\"}"#,
                r#"{"s":"\"12345678901234567890123","t":"\\"}"#,
            ),
        ] {
            let parsed = Arguments::parse(given, "arguments").expect("arguments");
            assert_eq!(**parsed.text(), *expected);
        }
        let long = format!(
            "{{\"s\":\"{}\",\"n\":[{}0]}}",
            "\u{e000}".repeat(300_000),
            "12345678901234567890123,".repeat(10_000)
        );
        let parsed = Arguments::parse(&long, "arguments").expect("arguments");
        assert_eq!(**parsed.text(), *long);
    }

    #[test]
    fn arguments_are_normalized_or_refused() {
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
            ("[]", "must be one JSON object"),
            ("{} {}", "must be one JSON object: trailing characters"),
            (&"{\"a\":".repeat(200), "nested at most 127 levels deep"),
            (
                &format!(r#"{{"a":[{}0]}}"#, "0,".repeat(1 << 20)),
                "at most 1048576 values",
            ),
            (private, "a text in the arguments begins with"),
            (r#"{"$serde_json::private::Number":"1"}"#, "begins with"),
        ] {
            let parsed = parse(json);
            assert!(parsed.contains(expected), "{parsed}");
        }
    }
}
