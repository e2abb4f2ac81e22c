//! Compares JSON values; a wrong answer would let a call through.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whole numbers up to here are exact as a float.
const EXACT: i128 = 1 << 53;
/// Whole numbers from here on, or from its negative down, have more than 64 bits.
const LONG: f64 = 9_223_372_036_854_775_808.0;

/// The outcome of a test. Of several tests that must all pass, the least outcome counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Judged {
    /// The value fails, for every reader.
    Fails,
    /// It depends on the reader: the value is absent, or of a type that some servers convert.
    Unclear,
    /// The value passes.
    Holds,
}

impl Judged {
    pub(crate) fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}

/// True if two values are the same. `1` and `1.0` are; `1` and `"1"`, or two
/// whole numbers that become one as a float, are unclear.
pub(crate) fn same(left: &Value, right: &Value) -> Judged {
    match (left, right) {
        (Value::Null, Value::Null) => Judged::Holds,
        (Value::Bool(left), Value::Bool(right)) => Judged::of(left == right),
        (Value::String(left), Value::String(right)) => Judged::of(left == right),
        (Value::Number(left), Value::Number(right)) => same_number(left, right),
        (Value::Array(left), Value::Array(right)) if left.len() != right.len() => Judged::Fails,
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right);
            let judged = pairs.map(|(left, right)| same(left, right));
            judged.min().unwrap_or(Judged::Holds)
        }
        (Value::Object(left), Value::Object(right)) => {
            let members = left.iter().map(|(key, left)| match right.get(key) {
                Some(right) => same(left, right),
                None => Judged::Unclear,
            });
            let all = members.min().unwrap_or(Judged::Holds);
            // Members that only one of them has may be the other's defaults.
            let has_more = right.len() > left.len();
            if has_more {
                all.min(Judged::Unclear)
            } else {
                all
            }
        }
        _ => Judged::Unclear,
    }
}

fn same_number(left: &Number, right: &Number) -> Judged {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) if left == right => Judged::Holds,
        (Some(_), Some(_)) if left.as_f64() == right.as_f64() => Judged::Unclear,
        (Some(_), Some(_)) => Judged::Fails,
        (None, None) if left.as_f64() != right.as_f64() => Judged::Fails,
        // Integers of more than 64 bits are also read as floats.
        (None, None) if left.as_f64().is_some_and(|float| float.abs() >= LONG) => Judged::Unclear,
        (None, None) => Judged::Holds,
        (Some(_), None) | (None, Some(_)) if left.as_f64() != right.as_f64() => Judged::Fails,
        (Some(whole), None) | (None, Some(whole)) if whole.abs() <= EXACT => Judged::Holds,
        _ => Judged::Unclear,
    }
}

/// The order of two numbers, exact if both are whole. `None` if it is unclear: between a whole number
/// that is not exact as a float, and that float.
pub(crate) fn order(left: &Number, right: &Number) -> Option<Ordering> {
    let (left_whole, right_whole) = (left.as_i128(), right.as_i128());
    if let (Some(left), Some(right)) = (left_whole, right_whole) {
        return Some(left.cmp(&right));
    }
    let order = left.as_f64()?.partial_cmp(&right.as_f64()?)?;
    let whole = left_whole.or(right_whole);
    let is_rounded = match whole {
        Some(whole) => whole.abs() > EXACT,
        None => left.as_f64()?.abs() >= LONG,
    };
    (order.is_ne() || !is_rounded).then_some(order)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn number_order_does_not_depend_on_rounding() {
        let check = |left: Value, right: Value, expected: Option<Ordering>| {
            let numbers = (left.as_number(), right.as_number());
            let (Some(left), Some(right)) = numbers else {
                panic!("{left} and {right} are numbers");
            };
            assert_eq!(order(left, right), expected, "{left} and {right}");
            let reverse = expected.map(Ordering::reverse);
            assert_eq!(order(right, left), reverse, "{right} and {left}");
        };
        let whole = |last: i64| json!(9_007_199_254_740_990 + last);
        let float = |last: i64| json!((9_007_199_254_740_990 + last) as f64);
        check(whole(2), float(2), Some(Ordering::Equal));
        check(whole(3), whole(4), Some(Ordering::Less));
        // As floats, 5 and 6 are one.
        check(whole(5), float(6), None);
        check(whole(6), float(6), None);
        check(whole(5), float(8), Some(Ordering::Less));
        check(whole(5), float(2), Some(Ordering::Greater));
        check(json!(u64::MAX), json!(u64::MAX as f64), None);
        check(json!(i64::MIN), json!(i64::MIN as f64), None);
        check(json!(5), json!(5.5), Some(Ordering::Less));
        check(json!(1e20), json!(1e20), None);
        check(json!(-1e20), json!(1e20), Some(Ordering::Less));
        check(json!(-0.0), json!(0), Some(Ordering::Equal));
    }

    #[test]
    fn equality_holds_only_for_every_reader() {
        let check = |left: Value, right: Value, expected: Judged| {
            assert_eq!(same(&left, &right), expected, "{left} and {right}");
            assert_eq!(same(&right, &left), expected, "{right} and {left}");
        };
        check(json!(1), json!(1.0), Judged::Holds);
        check(json!(-0.0), json!(0), Judged::Holds);
        check(json!(1), json!(2), Judged::Fails);
        check(json!(1), json!(1.5), Judged::Fails);
        check(json!(u64::MAX), json!(u64::MAX), Judged::Holds);
        check(json!(u64::MAX), json!(u64::MAX - 1), Judged::Unclear);
        check(
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_992_i64),
            Judged::Unclear,
        );
        check(
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_992.0),
            Judged::Unclear,
        );
        check(json!(1e20), json!(1e20), Judged::Unclear);
        check(json!(1e20), json!(2e20), Judged::Fails);
        check(json!(1.5), json!(1.5), Judged::Holds);
        check(json!(1), json!("1"), Judged::Unclear);
        check(json!(true), json!("true"), Judged::Unclear);
        check(json!(null), json!(""), Judged::Unclear);
        check(json!("a"), json!("A"), Judged::Fails);
        check(json!([1, 2]), json!([1, 2]), Judged::Holds);
        check(json!([1, 2]), json!([2, 1]), Judged::Fails);
        check(json!([1]), json!([1, 2]), Judged::Fails);
        check(json!([1, "a"]), json!(["1", "a"]), Judged::Unclear);
        check(json!([1, "a"]), json!(["1", "b"]), Judged::Fails);
        check(
            json!({ "a": 1, "b": 2 }),
            json!({ "b": 2, "a": 1 }),
            Judged::Holds,
        );
        check(
            json!({ "a": 1 }),
            json!({ "a": 1, "b": 2 }),
            Judged::Unclear,
        );
        check(
            json!({ "a": 1, "c": 2 }),
            json!({ "a": 1, "b": 2 }),
            Judged::Unclear,
        );
        check(json!({ "a": 1 }), json!({ "a": 2 }), Judged::Fails);
    }
}
