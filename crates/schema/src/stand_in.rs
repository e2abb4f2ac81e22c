//! Makes a small value that fits a schema, for a call that a dry run does not send.

use std::ptr;

use serde_json::{Map, Value};

use crate::bounds::target;

/// Maximum nesting of a value, tried in this order, so that a recursive schema ends early.
const LEVELS: [usize; 4] = [4, 8, 16, 32];
/// Maximum work for one try: parts of the schema, and bytes of the texts that are copied from it.
const MAX_WORK: usize = 64 << 10;

/// Values that fit the schema, if its keywords are as simple as those of most results: the
/// caller checks each. The preferred ones have the schema's own `default` and `examples`.
pub(crate) fn stand_ins(root: &Value) -> impl Iterator<Item = Value> + '_ {
    let tries = [true, false].into_iter();
    let tries = tries.flat_map(|examples| LEVELS.map(|levels| (examples, levels)));
    tries.filter_map(move |(examples, levels)| {
        let mut maker = Maker {
            root,
            examples,
            work: MAX_WORK,
        };
        maker.value(Vec::new(), vec![root], Vec::new(), levels)
    })
}

/// One try.
struct Maker<'a> {
    root: &'a Value,
    /// True if `default` and `examples` are used.
    examples: bool,
    /// The work that is left.
    work: usize,
}

impl<'a> Maker<'a> {
    /// Makes a value for schemas that all apply to it: the keywords of the schemas already read,
    /// those still to read, and the branches of which one applies.
    fn value(
        &mut self,
        mut read: Vec<&'a Map<String, Value>>,
        mut unread: Vec<&'a Value>,
        mut choices: Vec<&'a Vec<Value>>,
        levels: usize,
    ) -> Option<Value> {
        while let Some(schema) = unread.pop() {
            self.spend(1)?;
            let keywords = match schema {
                Value::Bool(true) => continue,
                Value::Object(keywords) => keywords,
                _ => return None,
            };
            if read.iter().any(|known| ptr::eq(*known, keywords)) {
                continue;
            }
            read.push(keywords);
            if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
                unread.push(target(self.root, reference).ok()?);
            }
            let also = keywords.get("allOf").and_then(Value::as_array);
            unread.extend(also.into_iter().flatten());
            let branches = ["anyOf", "oneOf"].map(|keyword| keywords.get(keyword));
            let branches = branches.into_iter().flatten();
            choices.extend(branches.filter_map(Value::as_array));
        }
        let Some(branches) = choices.pop() else {
            return self.plain(&read, levels);
        };
        branches.iter().find_map(|branch| {
            self.spend(read.len())?;
            self.value(read.clone(), vec![branch], choices.clone(), levels)
        })
    }

    fn spend(&mut self, work: usize) -> Option<()> {
        self.work = self.work.checked_sub(work)?;
        Some(())
    }

    /// Makes a value for these keywords, without references and branches.
    fn plain(&mut self, read: &[&'a Map<String, Value>], levels: usize) -> Option<Value> {
        let first = |keyword| all(read, keyword).next();
        let item = |keyword| first(keyword).and_then(|items| items.get(0));
        let sample = || {
            let sample = first("default").or_else(|| item("examples"));
            sample.or_else(|| first("example"))
        };
        let given = first("const").or_else(|| sample().filter(|_| self.examples));
        if let Some(given) = given.or_else(|| item("enum")) {
            self.spend(given.to_string().len())?;
            return Some(given.clone());
        }
        match kind(read) {
            "object" => self.object(read, levels.checked_sub(1)?),
            "array" => self.array(read, levels.checked_sub(1)?),
            "string" => self.string(read),
            "boolean" => Some(Value::Bool(false)),
            "integer" | "number" => number(read),
            _ => Some(Value::Null),
        }
    }

    /// An object with the required members.
    fn object(&mut self, read: &[&'a Map<String, Value>], levels: usize) -> Option<Value> {
        let mut object = Map::new();
        let required = all(read, "required").filter_map(Value::as_array).flatten();
        for name in required.filter_map(Value::as_str) {
            if object.contains_key(name) {
                continue;
            }
            self.spend(name.len())?;
            let properties = all(read, "properties");
            let mut schemas: Vec<&Value> = properties.filter_map(|it| it.get(name)).collect();
            if schemas.is_empty() {
                schemas = all(read, "additionalProperties").collect();
            }
            let member = self.value(Vec::new(), schemas, Vec::new(), levels)?;
            object.insert(name.to_owned(), member);
        }
        Some(object.into())
    }

    /// An array with as few items as it may have.
    fn array(&mut self, read: &[&'a Map<String, Value>], levels: usize) -> Option<Value> {
        let mut items = Vec::new();
        for place in 0..largest(read, "minItems")? {
            self.spend(1)?;
            let prefix = all(read, "prefixItems");
            let mut schemas: Vec<&Value> = prefix.filter_map(|it| it.get(place)).collect();
            if schemas.is_empty() {
                schemas = all(read, "items").collect();
            }
            items.push(self.value(Vec::new(), schemas, Vec::new(), levels)?);
        }
        Some(items.into())
    }

    /// The shortest text, or one of the format.
    fn string(&mut self, read: &[&'a Map<String, Value>]) -> Option<Value> {
        let format = all(read, "format").next().and_then(Value::as_str);
        let text = match format {
            Some("date-time") => "1970-01-01T00:00:00Z",
            Some("date") => "1970-01-01",
            Some("uri") => "https://example.invalid/",
            Some("uuid") => "00000000-0000-0000-0000-000000000000",
            _ => "",
        };
        let missing = largest(read, "minLength")?.saturating_sub(text.len());
        self.spend(missing)?;
        Some(format!("{text}{}", "x".repeat(missing)).into())
    }
}

/// The values of a keyword.
fn all<'a>(read: &[&'a Map<String, Value>], keyword: &str) -> impl Iterator<Item = &'a Value> {
    read.iter().filter_map(move |it| it.get(keyword))
}

/// The largest value of a keyword that is a count; zero without one.
fn largest(read: &[&Map<String, Value>], keyword: &str) -> Option<usize> {
    let counts = all(read, keyword).filter_map(Value::as_u64);
    usize::try_from(counts.max().unwrap_or_default()).ok()
}

/// The first type that all schemas allow; without any, the type that their keywords are about.
fn kind(read: &[&Map<String, Value>]) -> &'static str {
    const KINDS: [(&str, &[&str]); 7] = [
        (
            "object",
            &["properties", "required", "additionalProperties"],
        ),
        ("array", &["items", "prefixItems", "minItems"]),
        ("string", &["format", "maxLength", "minLength", "pattern"]),
        ("integer", &[]),
        (
            "number",
            &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
        ),
        ("boolean", &[]),
        ("null", &[]),
    ];
    let names = |types: &Value, kind: &str| match types {
        Value::Array(types) => types.iter().any(|it| it == kind),
        single => single == kind || (single == "number" && kind == "integer"),
    };
    let has_type = all(read, "type").next().is_some();
    let mut kinds = KINDS.into_iter();
    let found = kinds.find(|(kind, keywords)| {
        if has_type {
            all(read, "type").all(|types| names(types, kind))
        } else {
            keywords
                .iter()
                .any(|keyword| all(read, keyword).next().is_some())
        }
    });
    found.map_or("null", |(kind, _)| kind)
}

/// The number within the bounds that is nearest to zero.
fn number(read: &[&Map<String, Value>]) -> Option<Value> {
    let bounds = |keyword| all(read, keyword).filter_map(Value::as_f64);
    let above = bounds("exclusiveMinimum").map(|it| it + 1.0);
    let below = bounds("exclusiveMaximum").map(|it| it - 1.0);
    let low = bounds("minimum")
        .chain(above)
        .fold(f64::NEG_INFINITY, f64::max);
    let high = bounds("maximum").chain(below).fold(f64::INFINITY, f64::min);
    let mut number = if low > high {
        f64::midpoint(low, high)
    } else {
        0.0_f64.max(low).min(high)
    };
    if let Some(step) = bounds("multipleOf").find(|step| *step > 0.0) {
        number = (number / step).ceil() * step;
    }
    // A whole number is written without a fraction.
    serde_json::from_str(&format!("{number}")).ok()
}
