//! Bounds of a schema: its size and depth with references expanded, and its circular references.

use std::collections::HashMap;
use std::ptr;

use percent_encoding::percent_decode_str;
use regex::RegexBuilder;
use serde_json::{Map, Value};

/// Maximum nesting of a schema, with references expanded.
const MAX_LEVELS: usize = 64;
/// Maximum different patterns of a schema: each takes up to [`MAX_PATTERN`] bytes.
const MAX_PATTERNS: usize = 256;
/// Maximum bytes of a compiled pattern.
pub(crate) const MAX_PATTERN: usize = 256 << 10;
/// Maximum bytes of a compiled light pattern. The time of a pattern for a byte of text is
/// proportional to its size.
const LIGHT_PATTERN: usize = 32 << 10;
/// Maximum characters of a reference in a message.
const SHOWN: usize = 80;

/// Keywords whose value is data, not a schema.
pub(crate) const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Keywords whose value is an object of schemas.
pub(crate) const NAMED: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords whose schemas apply to a part of the value, not to the whole.
const INTO_PARTS: [&str; 10] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The author of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// A script, for a value from a model. Its schema must not refer to itself.
    Script,
    /// A server, for the results of its tool.
    Server,
}

impl Author {
    /// Refuses a schema of too many bytes of JSON.
    pub fn check_size(self, bytes: usize) -> Result<(), SchemaError> {
        let limit: usize = match self {
            Self::Script => 64 << 10,
            Self::Server => 1 << 20,
        };
        if bytes > limit {
            let message = format!("the schema has {bytes} bytes, over the limit of {limit}");
            return Err(SchemaError(message));
        }
        Ok(())
    }

    /// Maximum values of a schema, with references expanded.
    pub(crate) fn max_nodes(self) -> u64 {
        match self {
            Self::Script => 20_000,
            Self::Server => 100_000,
        }
    }
}

/// The reason why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(pub(crate) String);

/// The size of a schema or a part of one, with references expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Values. A part that refers to itself counts once.
    pub(crate) nodes: u64,
    /// Levels, counted in the same way.
    pub(crate) levels: usize,
    /// References to an enclosing part, each for a part of the value.
    pub(crate) loops: u64,
    /// Patterns, by weight: each may read each byte of the value.
    pub(crate) patterns: u64,
    /// Levels with `unevaluatedItems` or `unevaluatedProperties`: each applies those below it up to
    /// three times.
    pub(crate) unevaluated: usize,
    /// Number of `uniqueItems`: each may compare all pairs of parts of the value.
    pub(crate) unique: u64,
}

impl Shape {
    const ONE: Self = Self {
        nodes: 1,
        levels: 1,
        loops: 0,
        patterns: 0,
        unevaluated: 0,
        unique: 0,
    };

    /// Measures a schema. The error: the reason why it is refused.
    pub(crate) fn of(root: &Value, author: Author) -> Result<Self, String> {
        let mut walk = Walk {
            root,
            author,
            known: HashMap::new(),
            open: vec![root],
            patterns: HashMap::new(),
        };
        let shape = walk.size(root, 0)?;
        if shape.loops > 0 {
            let seen = HashMap::new();
            Circles { root, seen }.check(root)?;
        }
        Ok(shape)
    }

    /// Adds the shape of a part one level below.
    fn add_part(&mut self, part: Self) {
        self.nodes = self.nodes.saturating_add(part.nodes);
        self.levels = self.levels.max(part.levels + 1);
        self.loops = self.loops.saturating_add(part.loops);
        self.patterns = self.patterns.saturating_add(part.patterns);
        self.unevaluated = self.unevaluated.max(part.unevaluated);
        self.unique = self.unique.saturating_add(part.unique);
    }
}

struct Walk<'a> {
    root: &'a Value,
    author: Author,
    /// The shapes of referenced parts, by address.
    known: HashMap<*const Value, Shape>,
    /// The root, and the targets of the references on the current path.
    open: Vec<&'a Value>,
    /// The weights of patterns.
    patterns: HashMap<&'a str, u64>,
}

impl<'a> Walk<'a> {
    /// Measures a schema that is `down` levels below the root.
    fn size(&mut self, value: &'a Value, down: usize) -> Result<Shape, String> {
        let mut size = Shape::ONE;
        fits_below(down, size)?;
        match value {
            Value::Array(items) => {
                for item in items {
                    size.add_part(self.size(item, down + 1)?);
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    size.add_part(self.member(value, key, member, down + 1)?);
                }
                let keywords = ["unevaluatedItems", "unevaluatedProperties"];
                if keywords.iter().any(|it| members.contains_key(*it)) {
                    size.unevaluated += 1;
                }
            }
            _ => {}
        }
        Ok(size)
    }

    fn member(
        &mut self,
        parent: &'a Value,
        key: &'a str,
        member: &'a Value,
        down: usize,
    ) -> Result<Shape, String> {
        match (key, member) {
            ("$ref", Value::String(to)) => self.reference(to, down),
            // The `$id` of the root names the whole schema, and all references stay within it.
            ("$id", Value::String(_))
                if self.author == Author::Server && ptr::eq(parent, self.root) =>
            {
                Ok(Shape::ONE)
            }
            ("$dynamicRef" | "$recursiveRef" | "$id", Value::String(_)) => {
                Err(format!("the schema has {key:?}; remove it"))
            }
            (key, Value::Object(schemas)) if NAMED.contains(&key) => {
                let mut size = Shape::ONE;
                for (name, schema) in schemas {
                    size.add_part(self.size(schema, down + 1)?);
                    if key == "patternProperties" {
                        size.patterns = size.patterns.saturating_add(self.weight(name)?);
                    }
                }
                Ok(size)
            }
            ("pattern", Value::String(pattern)) => Ok(Shape {
                patterns: self.weight(pattern)?,
                ..Shape::ONE
            }),
            ("uniqueItems", Value::Bool(true)) => Ok(Shape {
                unique: 1,
                ..Shape::ONE
            }),
            (key, data) if DATA.contains(&key) => Ok(Shape {
                nodes: values(data),
                ..Shape::ONE
            }),
            _ => self.size(member, down),
        }
    }

    /// The weight of a pattern; light ones have 1.
    fn weight(&mut self, pattern: &'a str) -> Result<u64, String> {
        if let Some(known) = self.patterns.get(pattern) {
            return Ok(*known);
        }
        if self.patterns.len() == MAX_PATTERNS {
            return Err(format!(
                "the schema has more than {MAX_PATTERNS} different patterns"
            ));
        }
        let light = RegexBuilder::new(pattern).size_limit(LIGHT_PATTERN).build();
        let weight = light.map_or((MAX_PATTERN / LIGHT_PATTERN) as u64, |_| 1);
        self.patterns.insert(pattern, weight);
        Ok(weight)
    }

    fn reference(&mut self, to: &str, down: usize) -> Result<Shape, String> {
        let part = target(self.root, to)?;
        if self.open.iter().any(|open| ptr::eq(*open, part)) {
            if self.author == Author::Script {
                let shown = shown(to);
                return Err(format!(
                    "the schema refers to itself with {shown:?}; write its levels out"
                ));
            }
            return Ok(Shape {
                loops: 1,
                ..Shape::ONE
            });
        }
        if let Some(known) = self.known.get(&ptr::from_ref(part)) {
            return fits_below(down, *known);
        }
        self.open.push(part);
        let size = self.size(part, down)?;
        self.open.pop();
        self.known.insert(ptr::from_ref(part), size);
        Ok(size)
    }
}

/// Refuses a part that is `down` levels down and reaches below the deepest level.
fn fits_below(down: usize, size: Shape) -> Result<Shape, String> {
    if down + size.levels > MAX_LEVELS + 1 {
        return Err(format!(
            "the schema is nested deeper than {MAX_LEVELS} levels"
        ));
    }
    Ok(size)
}

/// Finds parts that refer to themselves for the same value, which would never end.
struct Circles<'a> {
    root: &'a Value,
    /// The referenced parts by address: true once a part is followed to its end.
    seen: HashMap<*const Value, bool>,
}

impl<'a> Circles<'a> {
    /// Follows references from a schema and from each schema in it.
    fn check(&mut self, value: &'a Value) -> Result<(), String> {
        self.follow(value)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.check(item)),
            Value::Object(members) => members.iter().try_for_each(|(key, member)| match member {
                Value::Object(schemas) if NAMED.contains(&key.as_str()) => {
                    schemas.values().try_for_each(|schema| self.check(schema))
                }
                _ if DATA.contains(&key.as_str()) => Ok(()),
                _ => self.check(member),
            }),
            _ => Ok(()),
        }
    }

    /// Follows the keywords of a schema that apply to its whole value.
    fn follow(&mut self, value: &'a Value) -> Result<(), String> {
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.follow(item)),
            Value::Object(members) => self.follow_members(members),
            _ => Ok(()),
        }
    }

    fn follow_members(&mut self, members: &'a Map<String, Value>) -> Result<(), String> {
        for (key, member) in members {
            match (key.as_str(), member) {
                ("$ref", Value::String(to)) => self.follow_reference(to)?,
                ("dependencies" | "dependentSchemas", Value::Object(schemas)) => {
                    schemas
                        .values()
                        .try_for_each(|schema| self.follow(schema))?;
                }
                (key, _)
                    if DATA.contains(&key) || NAMED.contains(&key) || INTO_PARTS.contains(&key) => {
                }
                (_, member) => self.follow(member)?,
            }
        }
        Ok(())
    }

    fn follow_reference(&mut self, to: &str) -> Result<(), String> {
        let part = target(self.root, to)?;
        match self.seen.get(&ptr::from_ref(part)) {
            Some(true) => Ok(()),
            Some(false) => {
                let shown = shown(to);
                Err(format!(
                    "the schema refers to itself with {shown:?} for the same value"
                ))
            }
            None => {
                self.seen.insert(ptr::from_ref(part), false);
                self.follow(part)?;
                self.seen.insert(ptr::from_ref(part), true);
                Ok(())
            }
        }
    }
}

/// The target of a reference, which must be a part of the schema.
pub(crate) fn target<'a>(root: &'a Value, to: &str) -> Result<&'a Value, String> {
    let decoded = |text| percent_decode_str(text).decode_utf8().ok();
    let pointer = to.strip_prefix('#').and_then(decoded);
    let part = pointer.and_then(|pointer| root.pointer(&pointer));
    part.ok_or_else(|| {
        let shown = shown(to);
        format!("the schema refers to {shown:?}, which is not a part of it; write \"#/$defs/NAME\"")
    })
}

fn shown(to: &str) -> String {
    to.chars().take(SHOWN).collect()
}

fn values(value: &Value) -> u64 {
    let within: u64 = match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    };
    within + 1
}
