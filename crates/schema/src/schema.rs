//! A bounded schema, compiled to a validator.

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::bounds::{Author, MAX_PATTERN, SchemaError, Shape};

/// If more errors than this are possible, only the first is reported.
const MAX_ERRORS: u64 = 1_000_000;
/// Maximum characters of one problem.
const MAX_PROBLEM: usize = 200;
/// Maximum levels of `unevaluatedProperties` in a schema of a script.
const MAX_UNEVALUATED: usize = 4;
/// Maximum bytes of a value times weights of the schema's patterns: a light one takes up to 5 µs for
/// each byte.
const MAX_MATCHED: u64 = 4 << 20;

/// A schema and its compiled validator. Clones share both.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    value: Value,
    text: String,
    validator: Validator,
    shape: Shape,
}

/// The reason why a value is not a schema of draft 2020-12; `None` if it is one.
pub fn not_2020_12(schema: &Value) -> Option<String> {
    let error = jsonschema::draft202012::meta::validate(schema).err()?;
    Some(fault(&error))
}

impl Schema {
    /// Compiles a schema, which may take a while.
    /// The error: the value is no schema, refers to another document, or exceeds the bounds.
    pub fn new(value: Value, author: Author) -> Result<Self, SchemaError> {
        let text = value.to_string();
        author.check_size(text.len())?;
        let shape = bounded(&value, author).map_err(SchemaError)?;
        let patterns = PatternOptions::regex()
            .size_limit(MAX_PATTERN)
            .dfa_size_limit(MAX_PATTERN);
        let options = jsonschema::options()
            .offline()
            .with_pattern_options(patterns);
        let options = match author {
            Author::Script => options,
            // TypeScript types have no formats, and servers use them loosely.
            Author::Server => options.should_validate_formats(false),
        };
        let validator = options.build(&value).map_err(|error| {
            let fault = fault(&error);
            SchemaError(format!("the schema is not a valid JSON Schema, {fault}"))
        })?;
        Ok(Self(Arc::new(Inner {
            value,
            text,
            validator,
            shape,
        })))
    }

    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The schema as JSON text.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The problems of a value of `bytes` bytes of JSON: none if the value fits, else at most `max`,
    /// with the value's own words.
    pub fn problems(&self, value: &Value, bytes: usize, max: usize) -> Vec<String> {
        if !self.can_match(bytes) {
            return vec!["the value is too long for the patterns of the schema".to_owned()];
        }
        let validator = &self.0.validator;
        let Err(first) = validator.validate(value) else {
            return Vec::new();
        };
        // The validator collects all errors before it returns the first, and each part of the schema
        // may have an error for each part of the value.
        if self.0.shape.nodes.saturating_mul(bytes as u64) > MAX_ERRORS {
            return vec![problem(&first, &first)];
        }
        let errors = validator.iter_errors(value).take(max);
        errors.map(|error| problem(&error, &error)).collect()
    }

    /// True if the patterns may be matched against a value of these bytes.
    pub(crate) fn can_match(&self, bytes: usize) -> bool {
        self.0.shape.patterns.saturating_mul(bytes as u64) <= MAX_MATCHED
    }

    pub(crate) fn shape(&self) -> Shape {
        self.0.shape
    }

    /// True if a value fits. The time is proportional to the parts of the schema and those of the
    /// value, also for a recursive schema.
    pub(crate) fn fits(&self, value: &Value) -> bool {
        self.0.validator.is_valid(value)
    }

    /// The problems of a value of these parts and levels that does not fit: at most `max`,
    /// without the value's own words, and none if there could be more than [`MAX_ERRORS`].
    pub(crate) fn masked_problems(
        &self,
        value: &Value,
        (parts, levels): (u64, u32),
        max: usize,
    ) -> Vec<String> {
        let Shape { nodes, loops, .. } = self.0.shape;
        // Each loop is followed once more at each level.
        let errors = nodes.saturating_mul(loops.max(1).saturating_pow(levels));
        if errors.saturating_mul(parts) > MAX_ERRORS {
            return Vec::new();
        }
        let errors = self.0.validator.iter_errors(value).take(max);
        errors
            .map(|error| problem(&error, &error.masked()))
            .collect()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// Measures a schema, and refuses one over the limits.
fn bounded(value: &Value, author: Author) -> Result<Shape, String> {
    let draft = value.get("$schema").and_then(Value::as_str);
    if draft.is_some_and(|draft| draft.contains("draft-04")) {
        // In draft 4, any `id` changes the base of references.
        return Err("the schema is of draft 4; write one of 2020-12".to_owned());
    }
    let shape = Shape::of(value, author)?;
    let limit = author.max_nodes();
    if shape.nodes > limit {
        return Err(format!(
            "the schema has more than {limit} parts with all references expanded"
        ));
    }
    if author == Author::Script && shape.unevaluated > MAX_UNEVALUATED {
        return Err(format!(
            "the schema has \"unevaluatedProperties\" or \"unevaluatedItems\" on more than \
             {MAX_UNEVALUATED} levels"
        ));
    }
    Ok(shape)
}

/// The place and the fault of a schema, without the schema's own words.
fn fault(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let shown = error.masked().to_string();
    let shown: String = shown.chars().take(MAX_PROBLEM).collect();
    format!("at {place:?}: {shown}")
}

/// One line: the place in the value, and the problem.
fn problem(error: &ValidationError<'_>, words: &dyn fmt::Display) -> String {
    let path = error.instance_path().to_string();
    let place = if path.is_empty() { "the value" } else { &path };
    let problem = format!("{place}: {words}");
    problem.chars().take(MAX_PROBLEM).collect()
}

#[cfg(test)]
mod tests;
