//! Numbers that are long enough to matter, and what becomes of them in a script: it reads
//! each as a double-precision number, and writes what is nearest to that and shortest
//! (ECMA-262, `Number::toString`). A number that it hands over as one is written anew on the
//! way to a server, by `serde_json`, which puts the same digits elsewhere.

use std::ops::Range;

use memchr::memmem;

use super::parts::{Part, Wanted, parts};

/// The fewest digits that matter.
pub(super) const MIN_DIGITS: u32 = 6;

/// The most digits of one number; longer ones are compared as text. A script writes so
/// many without an exponent.
const MAX_DIGITS: usize = 21;

/// The most digits that a script's number has for certain.
const EXACT_DIGITS: usize = 15;

/// How far a number's other parts are looked for around its digits, in bytes.
const MAX_PART: usize = 40;

/// The fewest digits before the zeros at a number's end: a million is no
/// secret.
const MIN_SIGNIFICANT: u32 = 4;

/// Calls `visit` with the value and the digits of each number in a text.
pub(super) fn numbers(text: &[u8], mut visit: impl FnMut(u64, &[u8])) {
    let wanted = Wanted {
        base64: false,
        digits: true,
    };
    parts(text, wanted, |part| {
        if let Part::Digits(digits) = part
            && let Some((value, digits)) = number(text, digits)
        {
            visit(value, digits);
        }
    });
}

/// Calls `visit` with the value of each number in what a server answered, and with those
/// of what is written in its place.
pub(super) fn answered(text: &[u8], mut visit: impl FnMut(u64)) {
    let wanted = Wanted {
        base64: false,
        digits: true,
    };
    parts(text, wanted, |part| {
        if let Part::Digits(digits) = part {
            if let Some(number) = rounded(text, digits.clone()) {
                written(number, |digits| {
                    value(digits).into_iter().for_each(&mut visit);
                });
            }
            if let Some((value, _)) = number(text, digits) {
                visit(value);
            }
        }
    });
}

/// Whether a text has these digits, and not within more of them.
pub(super) fn stands_in(digits: &[u8], text: &[u8]) -> bool {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    memmem::find_iter(text, digits).any(|at| {
        let is_longer = at.checked_sub(1).is_some_and(is_digit) || is_digit(at + digits.len());
        !is_longer
    })
}

/// The number around these digits as a script has it, if that may be written otherwise.
fn rounded(text: &[u8], digits: Range<usize>) -> Option<f64> {
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let digits_at = |at: usize| {
        let rest = text.get(at..).unwrap_or_default().iter();
        rest.take(MAX_PART).take_while(is_digit).count()
    };
    let byte = |at: usize| text.get(at).copied();
    let (mut start, mut end) = (digits.start, digits.end);
    let mut has_point = start > 0 && byte(start - 1) == Some(b'.');
    if has_point {
        let before = text.get(..start - 1).unwrap_or_default().iter().rev();
        start -= 1 + before.take(MAX_PART).take_while(is_digit).count();
    } else if byte(end) == Some(b'.') && digits_at(end + 1) > 0 {
        has_point = true;
        end += 1 + digits_at(end + 1);
    }
    let mut has_exponent = false;
    if let Some(b'e' | b'E') = byte(end) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'+' | b'-')));
        let exponent = digits_at(end + 1 + sign);
        has_exponent = exponent > 0;
        if has_exponent {
            end += 1 + sign + exponent;
        }
    }
    if !has_point && !has_exponent && digits.len() <= EXACT_DIGITS {
        return None;
    }
    let literal = std::str::from_utf8(text.get(start..end)?).ok()?;
    let number: f64 = literal.parse().ok()?;
    number.is_finite().then_some(number)
}

/// From here on arguments may have a number with an exponent: only integers that fit in 64
/// bits, with their sign, are kept as they are.
const LARGE: f64 = (1_u64 << 63) as f64;

/// A number with a lower exponent of ten has it in arguments, too.
const MIN_EXPONENT: i32 = -5;

/// Calls `visit` with the rows of digits in what a script writes for a number, and in what
/// arguments have then.
fn written(number: f64, mut visit: impl FnMut(&[u8])) {
    // The shortest digits, as there.
    let shortest = format!("{:e}", number.abs());
    let Some((mantissa, exponent)) = shortest.split_once('e') else {
        return;
    };
    let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if number.abs() >= LARGE || exponent < MIN_EXPONENT {
        visit(digits.get(1..).unwrap_or_default());
    }
    // How many digits are before the point.
    match usize::try_from(exponent + 1) {
        Ok(whole) if (1..=MAX_DIGITS).contains(&whole) => {
            digits.resize(digits.len().max(whole), b'0');
            let (whole, fraction) = digits.split_at(whole);
            visit(whole);
            visit(fraction);
        }
        Ok(0) | Err(_) if exponent >= -6 => {
            let zeros = usize::try_from(-1 - exponent).unwrap_or_default();
            digits.splice(..0, std::iter::repeat_n(b'0', zeros));
            visit(&digits);
        }
        // A script writes the exponent, too.
        _ => {}
    }
}

/// The number that these digits of a text are, if it matters, and they.
pub(super) fn number(text: &[u8], digits: Range<usize>) -> Option<(u64, &[u8])> {
    let digits = text.get(digits)?;
    Some((value(digits)?, digits))
}

/// The value, if it is long enough to matter.
fn value(digits: &[u8]) -> Option<u64> {
    if !(MIN_DIGITS as usize..=MAX_DIGITS).contains(&digits.len()) {
        return None;
    }
    let (beyond, digits) = digits.split_at(digits.len().saturating_sub(U64_DIGITS));
    let (rest, eights) = digits.as_rchunks();
    let rest = rest
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit & 0x0F));
    let value = eights
        .iter()
        .fold(rest, |value, digits| value * 100_000_000 + eight(*digits));
    let mut significant = value;
    while significant != 0 && significant.is_multiple_of(10) {
        significant /= 10;
    }
    let beyond = beyond
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit & 0x0F));
    let long = beyond > 0 || value >= 10_u64.pow(MIN_DIGITS - 1);
    let several = significant >= 10_u64.pow(MIN_SIGNIFICANT - 1);
    // Which number it is may be told from less than its value.
    (long && several).then_some(value ^ beyond << 60)
}

/// How many digits a value of 64 bits has room for.
const U64_DIGITS: usize = 19;

/// The value of eight digits: of pairs, of pairs of pairs, and of all.
fn eight(digits: [u8; 8]) -> u64 {
    let digits = u64::from_le_bytes(digits) & 0x0F0F_0F0F_0F0F_0F0F;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours * 10_000 + (fours >> 32)) & 0xFFFF_FFFF
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<u64> {
        let mut found = Vec::new();
        numbers(text.as_bytes(), |value, _| found.push(value));
        found
    }

    #[test]
    fn whole_numbers_only() {
        let check = |text: &str, expected: &[u64]| assert_eq!(found(text), expected, "{text}");
        check("123456", &[123_456]);
        check("12345", &[]);
        check("call 4915112345678 now", &[4_915_112_345_678]);
        check("[123456,7,654321]", &[123_456, 654_321]);
        check("x123456 123456y _123456 0x123456", &[]);
        check("-1234567.1234567", &[1_234_567, 1_234_567]);
        check("000000123456", &[123_456]);
        check("000000000123", &[]);
        check("1000000 100000 123000 1234000", &[1_234_000]);
        check(
            "9999999999999999999 1234567890123456789012",
            &[9_999_999_999_999_999_999],
        );
        assert_ne!(found("18446744073709551615"), found("28446744073709551615"));
        check(
            "1.234567e8 1.234567E+8 7654321e-9",
            &[234_567, 234_567, 7_654_321],
        );
        check("123456ef 123456e1f 123456e1234 123456f7", &[]);
    }

    #[test]
    fn what_a_script_writes_for_a_number_is_known() {
        let rows = |number| {
            let mut rows = Vec::new();
            written(number, |row| {
                rows.push(String::from_utf8_lossy(row).into_owned())
            });
            rows.retain(|row| !row.is_empty());
            rows.join(" ")
        };
        for (number, expected) in [
            (1_234_567_890_123_456_789.0, "1234567890123456800"),
            (-9_223_372_036_854_774_784.0, "9223372036854775000"),
            (
                -9_223_372_036_854_775_808.0,
                "223372036854776 9223372036854776000",
            ),
            (
                41_505_095_027_152_785_790.0,
                "150509502715279 41505095027152790000",
            ),
            (1e20, "100000000000000000000"),
            (1e21, ""),
            (1.234_567_89e30, "23456789"),
            (-1.234_567_89e-9, "23456789"),
            (0.000_012_345_678, "000012345678"),
            (0.000_009_876_543_21, "87654321 00000987654321"),
            (0.000_001_234_567_8, "2345678 0000012345678"),
            (0.000_000_123_4, "234"),
            (3_141_592.653, "3141592 653"),
            (0.0, "0"),
        ] {
            assert_eq!(rows(number), expected, "{number}");
        }
        let check = |text: &str, expected: &[u64]| {
            let mut found = Vec::new();
            answered(text.as_bytes(), |value| found.push(value));
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, expected, "{text}");
        };
        check("123456789012345", &[123_456_789_012_345]);
        check(
            "9007199254740993",
            &[9_007_199_254_740_992, 9_007_199_254_740_993],
        );
        check(
            "12.3456781234567812345",
            &[345_678_123_456_782, 3_456_781_234_567_812_345],
        );
        check("31.415926535000001", &[415_926_535, 415_926_535_000_001]);
        check("123456789e-3", &[123_456, 123_456_789]);
        check("1.23456789e30", &[23_456_789]);
        check("1234567e999 .1234567 1234567. e1234567", &[1_234_567]);
        check("0.0000012345678", &[2_345_678, 12_345_678]);
        // Of more digits than a row may have.
        check("1234567890123456789012345", &[2_345_678_901_234_568]);
    }

    /// A number as JavaScript writes it.
    fn in_script(number: f64) -> String {
        match number.abs() {
            1e-6..1e21 => format!("{number}"),
            _ => format!("{number:e}"),
        }
    }

    /// That as it is in arguments, once they are written anew.
    fn in_arguments(number: &str) -> String {
        let number: serde_json::Value = serde_json::from_str(number).expect("JSON");
        number.to_string()
    }

    /// The numbers, byte by byte.
    fn found_plainly(text: &str) -> Vec<u64> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let digits = words.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        digits.filter_map(|word| value(word.as_bytes())).collect()
    }

    proptest! {
        #[test]
        fn every_number_is_found(text in "([0-9]{5,23}|[a-df-z_ .,:]{1,9}|[a-df-z ]{60,90}){0,9}") {
            prop_assert_eq!(found(&text), found_plainly(&text));
        }

        #[test]
        fn a_number_is_found_wherever_it_stands(
            before in "[a-z :,]{0,20}", value in 1_000_001_u64..1_000_000_000, after in "[a-z,]{0,20}",
        ) {
            prop_assume!(!value.is_multiple_of(10));
            prop_assert_eq!(found(&format!("{before} {value} {after}")), vec![value]);
        }

        #[test]
        fn a_number_is_known_however_it_is_written(
            digits in 1_000_001_i64..1 << 53, exponent in -40..24, is_negative in any::<bool>(),
        ) {
            prop_assume!(digits % 10 != 0);
            let sign = if is_negative { "-" } else { "" };
            let number: f64 = format!("{sign}{digits}e{exponent}").parse().expect("a number");
            let script = in_script(number);
            let arguments = in_arguments(&script);
            let scientific = format!("{number:e}");
            for answer in [&script, &arguments, &scientific] {
                let mut known = Vec::new();
                answered(answer.as_bytes(), |value| known.push(value));
                for sent in [&script, &arguments] {
                    let unknown = found(sent).into_iter().find(|value| !known.contains(value));
                    prop_assert_eq!(unknown, None, "{} for {}", sent, answer);
                }
            }
        }

        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..100)) {
            numbers(&text, |_, _| {});
            answered(&text, |_| {});
        }
    }
}
