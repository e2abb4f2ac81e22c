//! Integers in JSON text that nobody who parses it here could write again.

/// The first integer of a JSON text that is neither one of 64 bits nor a double, be it
/// written in full or as JavaScript writes it.
pub(crate) fn inexact(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        match byte {
            b'"' => at += string_bytes(rest),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let end = at + rest.iter().take_while(|byte| is_part(byte)).count();
                let number = json.get(at..end)?;
                if is_inexact(number) {
                    return Some(number);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    None
}

/// How long the string is that begins here, with its quotation marks.
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
    fn integers() {
        let check = |json: &str, expected: Option<&str>| {
            assert_eq!(inexact(json), expected, "{json}");
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
}
