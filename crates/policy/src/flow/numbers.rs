//! Numbers that are long enough to matter.

use std::ops::Range;

use super::parts::{Part, Wanted, parts};

/// The fewest digits that matter.
pub(super) const MIN_DIGITS: u32 = 6;

/// The most digits of one number; longer ones are compared as text.
const MAX_DIGITS: usize = 19;

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
    let long = value >= 10_u64.pow(MIN_DIGITS - 1);
    (long && significant >= 10_u64.pow(MIN_SIGNIFICANT - 1)).then_some(value)
}

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
            "18446744073709551615 9999999999999999999",
            &[9_999_999_999_999_999_999],
        );
    }

    /// The numbers, byte by byte.
    fn found_plainly(text: &str) -> Vec<u64> {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let digits = words.filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        digits.filter_map(|word| value(word.as_bytes())).collect()
    }

    proptest! {
        #[test]
        fn every_number_is_found(text in "([0-9]{5,21}|[a-z_ .,:]{1,9}|[a-z ]{60,90}){0,9}") {
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
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..100)) {
            numbers(&text, |_, _| {});
        }
    }
}
