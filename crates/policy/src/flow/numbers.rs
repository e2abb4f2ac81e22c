//! Numbers of six digits and more, and the forms that a script gives them.
//!
//! A script reads each number in double precision (ECMA-262, `Number::toString`) and writes it
//! with as few digits as possible. A number among the arguments of a call is written again by
//! `serde_json`, which uses exponents for other magnitudes.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

/// The minimum number of digits that count.
const MIN_DIGITS: usize = 6;

/// The maximum number of digits of one number.
const MAX_DIGITS: usize = 21;

/// The digits that double precision keeps in any case.
const EXACT_DIGITS: usize = 15;

/// The smallest number of six digits.
const MIN_VALUE: u128 = 100_000;

/// The minimum value without the zeros at the end: a million is not specific data.
const MIN_SIGNIFICANT: u128 = 1_000;

/// The maximum number of digits of an exponent.
const MAX_EXPONENT: usize = 3;

static LITERAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u)[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?").ok());

/// Calls `visit` with the value and the place of each number in a text.
pub(super) fn each_number(text: &[u8], mut visit: impl FnMut(u128, Range<usize>)) {
    let mut start = 0;
    for word in text.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_')) {
        if word.len() >= MIN_DIGITS
            && let Some(digits) = digits_of(word)
            && let Some(value) = value(digits)
        {
            visit(value, start..start + digits.len());
        }
        start += word.len() + 1;
    }
}

/// Calls `visit` with each number in a server's text, and with the numbers that a script makes of
/// it.
pub(super) fn each_answered_number(text: &[u8], mut visit: impl FnMut(u128)) {
    each_number(text, |value, _| visit(value));
    let literals = LITERAL.as_ref().map(|literal| literal.find_iter(text));
    for literal in literals.into_iter().flatten() {
        let literal = literal.as_bytes();
        if literal.len() > EXACT_DIGITS || !literal.iter().all(u8::is_ascii_digit) {
            for form in script_forms(literal) {
                each_number(form.as_bytes(), |value, _| visit(value));
            }
        }
    }
}

/// True if a text has these digits, and not within more of them.
pub(super) fn has_digits(text: &[u8], digits: &[u8]) -> bool {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    memmem::find_iter(text, digits).any(|at| {
        let follows_digit = at.checked_sub(1).is_some_and(is_digit);
        !follows_digit && !is_digit(at + digits.len())
    })
}

/// A number as a script writes it, and as `serde_json` writes that.
fn script_forms(literal: &[u8]) -> Vec<String> {
    let literal = std::str::from_utf8(literal).unwrap_or_default();
    let number = literal.parse::<f64>().ok();
    let Some(number) = number.filter(|number| number.is_finite()) else {
        return Vec::new();
    };
    let script = match number.abs() {
        1e-6..1e21 => format!("{number}"),
        _ => format!("{number:e}"),
    };
    let negative = format!("-{script}");
    let arguments = [&script, &negative].map(|form| {
        let value = serde_json::from_str::<serde_json::Value>(form);
        value.map_or_else(|_| String::new(), |value| value.to_string())
    });
    [script].into_iter().chain(arguments).collect()
}

/// The digits that a word starts with, if it ends there or with an exponent.
fn digits_of(word: &[u8]) -> Option<&[u8]> {
    let count = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = word.split_at(count);
    let is_number = match rest {
        [] => true,
        [b'e' | b'E', exponent @ ..] => {
            exponent.len() <= MAX_EXPONENT && exponent.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    is_number.then_some(digits)
}

/// The value of these digits, if it is long enough to count.
fn value(digits: &[u8]) -> Option<u128> {
    if !(MIN_DIGITS..=MAX_DIGITS).contains(&digits.len()) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + u128::from(digit & 0x0F));
    let mut significant = value;
    while significant != 0 && significant.is_multiple_of(10) {
        significant /= 10;
    }
    (value >= MIN_VALUE && significant >= MIN_SIGNIFICANT).then_some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<u128> {
        let mut found = Vec::new();
        each_number(text.as_bytes(), |value, _| found.push(value));
        found
    }

    fn answered(text: &str) -> Vec<u128> {
        let mut found = Vec::new();
        each_answered_number(text.as_bytes(), |value| found.push(value));
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn numbers_inside_words_are_not_found() {
        let check = |text: &str, expected: &[u128]| assert_eq!(found(text), expected, "{text}");
        check("123456", &[123_456]);
        check("12345", &[]);
        check("call 4915112345678 now", &[4_915_112_345_678]);
        check("[123456,7,654321]", &[123_456, 654_321]);
        check("x123456 123456y _123456 0x123456", &[]);
        check("-1234567.1234567", &[1_234_567, 1_234_567]);
        check("000000123456 000000000123", &[123_456]);
        check("1000000 100000 123000 1234000", &[1_234_000]);
        check("1234567890123456789012", &[]);
        check(
            "1.234567e8 1.234567E+8 7654321e-9",
            &[234_567, 234_567, 7_654_321],
        );
        check("123456ef 123456e1f 123456e1234 123456f7", &[]);
    }

    #[test]
    fn numbers_are_known_in_script_notation() {
        let check = |text: &str, expected: &[u128]| assert_eq!(answered(text), expected, "{text}");
        check("123456789012345", &[123_456_789_012_345]);
        check(
            "9007199254740993",
            &[9_007_199_254_740_992, 9_007_199_254_740_993],
        );
        check("31.415926535000001", &[415_926_535, 415_926_535_000_001]);
        check("123456789e-3", &[123_456, 123_456_789]);
        check("1.23456789e30", &[23_456_789]);
        check("1234567e999 1234567.", &[1_234_567]);
        check("0.0000012345678", &[2_345_678, 12_345_678]);
        // The literal has too many digits, but the script's form of the number does not.
        check("1234567890123456789012345", &[2_345_678_901_234_568]);
    }

    proptest! {
        #[test]
        fn number_is_known_in_any_notation(
            digits in 1_000_001_i64..1 << 53, exponent in -40..24, is_negative in any::<bool>(),
        ) {
            prop_assume!(digits % 10 != 0);
            let sign = if is_negative { "-" } else { "" };
            let number: f64 = format!("{sign}{digits}e{exponent}").parse().expect("a number");
            let script = match number.abs() {
                1e-6..1e21 => format!("{number}"),
                _ => format!("{number:e}"),
            };
            let anew: serde_json::Value = serde_json::from_str(&script).expect("JSON");
            let forms = [script, anew.to_string(), format!("{number:e}")];
            for answer in &forms {
                let known = answered(answer);
                for sent in &forms[..2] {
                    let unknown = found(sent).into_iter().find(|value| !known.contains(value));
                    prop_assert_eq!(unknown, None, "{} for {}", sent, answer);
                }
            }
        }
    }
}
