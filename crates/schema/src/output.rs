//! Holds the answers of a tool to its `outputSchema`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use crate::bounds::{Author, DATA, NAMED};
use crate::json_text::{Extent, extent, read};
use crate::schema::Schema;

/// The most values that are looked at, so that they take at most 200 MB while they are.
const MAX_PARTS: u64 = 2_000_000;
/// The most bytes that are looked at.
const MAX_BYTES: usize = 64 << 20;
const MAX_LEVELS: u32 = 127;
/// The most steps: parts of the schema times parts of the value, three times that for each level
/// of `unevaluatedProperties`.
const MAX_STEPS: u64 = 500_000_000;
/// The most comparisons of items for `uniqueItems`. Lists in lists can be made for one hash.
const MAX_PAIRS: u64 = 200_000_000;
/// The least parts of an item that differs from thousands with the same hash.
const LEAST_PARTS: u64 = 10;
/// The most levels of a recursive schema times levels of the value, so that no stack is too short.
const MAX_NESTING: usize = 2_000;
const MAX_PROBLEMS: usize = 5;

/// A tool's `outputSchema`. It is compiled when something is first held to it. Clones are the same.
#[derive(Clone)]
pub struct Declared(Arc<Inner>);

struct Inner {
    value: Value,
    compiled: OnceLock<Result<Schema, String>>,
}

/// The result of holding a value to a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// It fits.
    Fits,
    /// It does not.
    Wrong {
        /// Where, and what is wrong there, without the value's own words: at most
        /// five, and none where that would be too much work.
        problems: Vec<String>,
    },
    /// Not known, for this reason.
    Unknown(String),
}

impl Declared {
    /// A schema as a server wrote it, whatever it is.
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

    /// Holds a value, as JSON text, to the schema.
    pub fn fit(&self, json: &str) -> Fit {
        let schema = match self.compiled() {
            Ok(schema) => schema,
            Err(reason) => return Fit::Unknown(reason.clone()),
        };
        let of = extent(json);
        if let Some(reason) = too_much(schema, json.len(), of) {
            return Fit::Unknown(reason);
        }
        // No more can be read, by anybody who counts.
        if of.levels > MAX_LEVELS {
            return wrong(format!("it is nested deeper than {MAX_LEVELS} levels"));
        }
        let value = match read::<Value>(json) {
            Ok(value) => value,
            Err(reason) => return wrong(format!("it cannot be read: {reason}")),
        };
        let fit = || match schema.fits(&value) {
            true => Fit::Fits,
            false => Fit::Wrong {
                problems: schema.masked_problems(&value, (of.parts, of.levels), MAX_PROBLEMS),
            },
        };
        // jsonschema may panic: both the schema and the value come from the server.
        let fit = catch_unwind(AssertUnwindSafe(fit));
        fit.unwrap_or_else(|_panic| Fit::Unknown("the validator failed".to_owned()))
    }

    fn compiled(&self) -> &Result<Schema, String> {
        self.0.compiled.get_or_init(|| {
            let value = with_null(&self.0.value);
            let compile = || Schema::new(value, Author::Server);
            let compiled = catch_unwind(AssertUnwindSafe(compile));
            compiled.unwrap_or_else(|_panic| Err("the schema cannot be compiled".to_owned()))
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

/// Why a value is not looked at.
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
    let turns = if shape.loops > 0 { levels } else { 1 };
    let depth = turns.saturating_mul(u32::try_from(shape.unevaluated).unwrap_or(u32::MAX));
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
    let items = parts / LEAST_PARTS;
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
/// The schema with `null` where `nullable` allows it, as types have it too:
/// servers write this word of OpenAPI, and JSON Schema does not know it.
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
    // The others stay where references may lead to them.
    let (refusing, mut others): (Map<String, Value>, _) = members
        .into_iter()
        .partition(|(keyword, _)| OF_NULL.contains(&keyword.as_str()));
    others.insert("anyOf".to_owned(), json!([refusing, { "type": "null" }]));
    others.into()
}

#[cfg(test)]
mod tests;
