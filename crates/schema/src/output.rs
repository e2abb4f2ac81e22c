//! Validates the results of a tool against its `outputSchema`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use crate::bounds::{Author, DATA, NAMED, SchemaError};
use crate::json_text::{Extent, extent, read};
use crate::schema::Schema;
use crate::stand_in::stand_ins;

/// Maximum values that are validated, so that they take at most 200 MB meanwhile.
const MAX_PARTS: u64 = 2_000_000;
/// Maximum bytes that are validated.
const MAX_BYTES: usize = 64 << 20;
const MAX_LEVELS: u32 = 127;
/// Maximum steps: parts of the schema times parts of the value, three times that for each level of
/// `unevaluatedProperties`.
const MAX_STEPS: u64 = 500_000_000;
/// Maximum comparisons of items for `uniqueItems`. Nested lists can be made with equal hashes.
const MAX_PAIRS: u64 = 200_000_000;
/// Minimum parts of each of thousands of different items with the same hash.
const MIN_PARTS: u64 = 10;
/// Maximum levels of a recursive schema times levels of the value, so that the stack suffices.
const MAX_NESTING: usize = 2_000;
const MAX_PROBLEMS: usize = 5;

/// A tool's `outputSchema`, compiled on first use. Clones share it.
#[derive(Clone)]
pub struct Declared(Arc<Inner>);

struct Inner {
    value: Value,
    compiled: OnceLock<Result<Schema, SchemaError>>,
}

/// The result of validating a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    Fits,
    Wrong {
        /// Places and faults, without the value's own words: at most five, and none if finding them
        /// would be too much work.
        problems: Vec<String>,
    },
    /// The value was not validated, for this reason.
    Unknown(String),
}

impl Declared {
    /// Takes any JSON value.
    pub fn new(value: Value) -> Self {
        Self(Arc::new(Inner {
            value,
            compiled: OnceLock::new(),
        }))
    }

    /// The schema as the server wrote it.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Validates a value, as JSON text.
    pub fn fit(&self, json: &str) -> Fit {
        let schema = match self.compiled() {
            Ok(schema) => schema,
            Err(reason) => return Fit::Unknown(reason.to_string()),
        };
        let of = extent(json);
        if let Some(reason) = too_much(schema, json.len(), of) {
            return Fit::Unknown(reason);
        }
        // The parser refuses deeper values.
        if of.levels > MAX_LEVELS {
            return wrong(format!("it is nested deeper than {MAX_LEVELS} levels"));
        }
        let value = match read::<Value>(json) {
            Ok(value) => value,
            Err(reason) => return wrong(format!("it cannot be read: {reason}")),
        };
        let fit = || {
            if schema.fits(&value) {
                return Fit::Fits;
            }
            Fit::Wrong {
                problems: schema.masked_problems(&value, (of.parts, of.levels), MAX_PROBLEMS),
            }
        };
        // jsonschema may panic: both the schema and the value come from the server.
        let fit = catch_unwind(AssertUnwindSafe(fit));
        fit.unwrap_or_else(|_panic| Fit::Unknown("the validator failed".to_owned()))
    }

    /// A small value that fits the schema: required members, first choices, empty lists and texts.
    /// `None` if none is found, as for a text with a pattern.
    pub fn stand_in(&self) -> Option<Value> {
        let schema = self.compiled().as_ref().ok()?;
        stand_ins(schema.value()).find(|value| self.fit(&value.to_string()) == Fit::Fits)
    }

    fn compiled(&self) -> &Result<Schema, SchemaError> {
        self.0.compiled.get_or_init(|| {
            let value = with_null(&self.0.value);
            let compile = || Schema::new(value, Author::Server);
            let compiled = catch_unwind(AssertUnwindSafe(compile));
            compiled.unwrap_or_else(|_panic| {
                Err(SchemaError("the schema cannot be compiled".to_owned()))
            })
        })
    }
}

impl PartialEq for Declared {
    fn eq(&self, other: &Self) -> bool {
        self.0.value == other.0.value
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Declared({})", self.0.value)
    }
}

fn wrong(problem: String) -> Fit {
    Fit::Wrong {
        problems: vec![problem],
    }
}

/// The reason why a value is not validated.
fn too_much(schema: &Schema, bytes: usize, Extent { parts, levels }: Extent) -> Option<String> {
    let shape = schema.shape();
    if bytes > MAX_BYTES {
        return Some(format!(
            "it has {bytes} bytes, over the limit of {MAX_BYTES}"
        ));
    }
    if parts > MAX_PARTS {
        return Some(format!("it has more than {MAX_PARTS} values"));
    }
    let repeats = if shape.loops > 0 { levels } else { 1 };
    let depth = repeats.saturating_mul(u32::try_from(shape.unevaluated).unwrap_or(u32::MAX));
    let each = 3_u64.saturating_pow(depth).saturating_mul(shape.nodes);
    if each.saturating_mul(parts) > MAX_STEPS {
        let nodes = shape.nodes;
        return Some(format!(
            "its {parts} values are too many for the {nodes} parts of the schema"
        ));
    }
    if !schema.can_match(bytes) {
        return Some(format!(
            "its {bytes} bytes are too many for the patterns of the schema"
        ));
    }
    let items = parts / MIN_PARTS;
    if shape.unique.saturating_mul(items.saturating_mul(items) / 2) > MAX_PAIRS {
        return Some(format!(
            "its {parts} values are too many to be compared with each other (\"uniqueItems\")"
        ));
    }
    let nesting = shape.levels.saturating_mul(levels as usize);
    (shape.loops > 0 && levels <= MAX_LEVELS && nesting > MAX_NESTING)
        .then(|| format!("it is nested too deep for the schema, with {levels} levels"))
}

/// Keywords that can refuse `null`.
const OF_NULL: [&str; 13] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "else",
    "enum",
    "if",
    "not",
    "oneOf",
    "then",
    "type",
];
/// Adds `null` where `nullable` allows it, like the types of results: servers write this keyword of
/// OpenAPI, which JSON Schema does not have.
fn with_null(schema: &Value) -> Value {
    let members = match schema {
        Value::Array(items) => return items.iter().map(with_null).collect(),
        Value::Object(members) => members,
        other => return other.clone(),
    };
    let named = |(name, member): (&String, &Value)| (name.clone(), with_null(member));
    let members = members.iter().map(|(keyword, member)| {
        let member = match member {
            data if DATA.contains(&keyword.as_str()) => data.clone(),
            Value::Object(schemas) if NAMED.contains(&keyword.as_str()) => {
                schemas.iter().map(named).collect()
            }
            schema => with_null(schema),
        };
        (keyword.clone(), member)
    });
    let mut members: Map<String, Value> = members.collect();
    if members.get("nullable") != Some(&Value::Bool(true)) {
        return members.into();
    }
    let is_refusing =
        |keyword: &str| OF_NULL.contains(&keyword) && !matches!(keyword, "type" | "enum");
    if !members.keys().any(|keyword| is_refusing(keyword)) {
        if let Some(kind @ Value::String(_)) = members.get_mut("type") {
            *kind = json!([kind]);
        }
        for (keyword, null) in [("type", json!("null")), ("enum", Value::Null)] {
            if let Some(Value::Array(values)) = members.get_mut(keyword)
                && !values.contains(&null)
            {
                values.push(null);
            }
        }
        return members.into();
    }
    // The other keywords stay where references may lead to them.
    let (refusing, mut others): (Map<String, Value>, _) = members
        .into_iter()
        .partition(|(keyword, _)| OF_NULL.contains(&keyword.as_str()));
    others.insert("anyOf".to_owned(), json!([refusing, { "type": "null" }]));
    others.into()
}

#[cfg(test)]
mod tests;
