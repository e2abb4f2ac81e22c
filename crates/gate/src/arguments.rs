//! The arguments of a call: parsed, checked, and written again in one canonical form.

use std::sync::Arc;

use callgate_schema::extent;
use serde_json::{Map, Value};

/// The most levels of nesting that serde_json parses.
const MAX_LEVELS: u32 = 127;
/// The most values in the arguments of one call. Small values take up to a hundred times as much
/// memory as their text.
const MAX_VALUES: u64 = 1 << 20;
/// The most digits of a number that a message shows.
const SHOWN_DIGITS: usize = 40;
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
        let text = value.to_string();
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
