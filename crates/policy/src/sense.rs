//! Whether what a rule says of the arguments can be so: its tests together, and each
//! for what the tools declare.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::condition::{Condition, Test};
use crate::equality::{Judged, order};
use crate::pointer::Pointer;

/// What is wrong with tests of one condition that nobody can mean; the rest of them,
/// [`never_together`] finds.
pub(crate) fn contradiction(tests: &[Test]) -> Option<String> {
    if tests.len() > 1 && tests.contains(&Test::Exists(false)) {
        let message = "a condition says \"exists\": false and tests the value, too; leave \
            \"exists\" out, or the other tests";
        return Some(message.to_owned());
    }
    let (min, max) = reversed(tests.iter())?;
    Some(format!(
        "a condition has \"min\" {min} above \"max\" {max}, and no number is both; swap them"
    ))
}

/// A least number that is above a greatest one.
fn reversed<'t>(tests: impl Iterator<Item = &'t Test> + Clone) -> Option<(&'t Number, &'t Number)> {
    let least = tests.clone().filter_map(|test| match test {
        Test::Min(least) => Some(least),
        _ => None,
    });
    let most = tests.filter_map(|test| match test {
        Test::Max(most) => Some(most),
        _ => None,
    });
    let mut pairs = least.flat_map(|least| most.clone().map(move |most| (least, most)));
    pairs.find(|(least, most)| order(least, most) == Some(Ordering::Greater))
}

/// The places at which no value is as all conditions want it.
pub(crate) fn never_together(conditions: &[Condition]) -> impl Iterator<Item = &Pointer> {
    let places = conditions.iter().map(Condition::at);
    places
        .enumerate()
        .filter(|(index, at)| {
            let before = conditions.iter().take(*index);
            !before.map(Condition::at).any(|other| other == *at)
        })
        .map(|(_, at)| at)
        .filter(|at| {
            let here = conditions.iter().filter(|condition| condition.at() == *at);
            let tests = here.flat_map(Condition::tests);
            reversed(tests.clone()).is_some() || fits_none(tests)
        })
}

/// Of conditions that are [`never_together`] at a place: whether calls with nothing there are
/// among those that they cannot judge, and whether such with something there are.
pub(crate) fn never_judged(conditions: &[Condition], at: &Pointer) -> (bool, bool) {
    let here = conditions.iter().filter(|condition| condition.at() == at);
    let tests = || here.clone().flat_map(Condition::tests);
    let unclear = |value: Option<&Value>| tests().all(|test| test.judge(value) != Judged::Fails);
    // All arguments are always there; and null is what no test of a value can fail.
    let without = !at.as_str().is_empty() && unclear(None);
    (without, unclear(Some(&Value::Null)))
}

/// Whether these tests name values, and the others let none of them be.
fn fits_none<'t>(tests: impl Iterator<Item = &'t Test> + Clone) -> bool {
    let named = tests.clone().filter_map(|test| match test {
        Test::Equals(value) => Some(std::slice::from_ref(value)),
        Test::In(values) => Some(values.as_slice()),
        _ => None,
    });
    let Some(fewest) = named.min_by_key(|values| values.len()) else {
        return false;
    };
    fewest.iter().all(|value| {
        let mut tests = tests.clone();
        tests.any(|test| test.judge(Some(value)) == Judged::Fails)
    })
}

/// What a test wants that is of another type than a schema declares at its place.
pub(crate) struct Misfit {
    pub(crate) wanted: &'static str,
    pub(crate) declared: String,
}

/// A test of this condition that nothing of the declared type can pass.
pub(crate) fn misfit(condition: &Condition, schema: Option<&Value>) -> Option<Misfit> {
    let mut declared = schema?;
    for token in condition.at().tokens() {
        declared = declared.get("properties")?.get(token)?;
    }
    let types: Vec<&str> = match declared.get("type")? {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    // What is no type, its server means in its own way.
    if types.is_empty() || !types.iter().all(|one| TYPES.contains(one)) {
        return None;
    }
    let mut unfit = condition.tests().iter().filter_map(|test| match test {
        Test::Exists(_) => None,
        Test::Min(_) | Test::Max(_) => unfit(&types, "number"),
        Test::Prefix(_) | Test::Glob(_) | Test::Regex(_) => unfit(&types, "string"),
        Test::Equals(value) => unfit(&types, type_of(value)),
        Test::In(values) => {
            let words: Option<Vec<_>> = values
                .iter()
                .map(|value| unfit(&types, type_of(value)))
                .collect();
            words?.first().copied()
        }
    });
    Some(Misfit {
        wanted: unfit.next()?,
        declared: types.join(" or "),
    })
}

/// The types of JSON Schema.
const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "integer", "string",
];

/// What a type is called in a sentence, if these have no value of it.
fn unfit(types: &[&str], wanted: &str) -> Option<&'static str> {
    let has = |one: &&str| *one == wanted || wanted == "number" && *one == "integer";
    if types.iter().any(has) {
        return None;
    }
    Some(match wanted {
        "null" => "null",
        "boolean" => "true or false",
        "object" => "an object",
        "array" => "an array",
        "number" => "a number",
        _ => "a text",
    })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
