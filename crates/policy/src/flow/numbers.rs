//! Numbers that are long enough to matter.

/// The fewest digits that matter.
pub(super) const MIN_DIGITS: usize = 6;

/// The most digits of one number; longer ones are compared as text.
const MAX_DIGITS: usize = 19;

/// The fewest digits before the zeros at a number's end: a million is no
/// secret.
const MIN_SIGNIFICANT: u32 = 4;

/// Calls `visit` with the value and the digits of each number in a text. A row
/// of digits with a letter, a digit or `_` beside it is no number.
pub(super) fn numbers(text: &[u8], mut visit: impl FnMut(u64, &[u8])) {
    // One byte in each stretch of the fewest digits is enough to look at.
    let mut at = MIN_DIGITS - 1;
    let mut looked_at = 0;
    while let Some(byte) = text.get(at) {
        // Most texts have few digits.
        if at >= looked_at
            && let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk::<64>)
        {
            looked_at = at + block.len();
            if !has_digit(block) {
                at += block.len() + MIN_DIGITS - 1;
                continue;
            }
        }
        if !byte.is_ascii_digit() {
            at += MIN_DIGITS;
            continue;
        }
        let (before, after) = text.split_at(at);
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let start = at - before.iter().rev().take_while(is_digit).count();
        let end = at + after.iter().take_while(is_digit).count();
        let digits = text.get(start..end).unwrap_or_default();
        let alone = !before.get(start.wrapping_sub(1)).is_some_and(is_word)
            && !text.get(end).is_some_and(is_word);
        if alone && let Some(value) = value(digits) {
            visit(value, digits);
        }
        at = end + MIN_DIGITS;
    }
}

/// Written so that many bytes are compared at once.
fn has_digit(block: &[u8; 64]) -> bool {
    let digits = block
        .iter()
        .map(|byte| u8::from(byte.wrapping_sub(b'0') < 10));
    digits.fold(0, |any, digit| any | digit) != 0
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// The value, if it is long enough to matter.
fn value(digits: &[u8]) -> Option<u64> {
    if !(MIN_DIGITS..=MAX_DIGITS).contains(&digits.len()) {
        return None;
    }
    let value: u64 = digits
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit & 0x0F));
    let mut significant = value;
    while significant != 0 && significant.is_multiple_of(10) {
        significant /= 10;
    }
    let long = value >= 10_u64.pow(MIN_DIGITS as u32 - 1);
    (long && significant >= 10_u64.pow(MIN_SIGNIFICANT - 1)).then_some(value)
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
