//! A schema within bounds, compiled to a validator.

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::bounds::{Author, MAX_PATTERN, Shape};

/// The most possible errors of which more than the first is reported.
const MAX_ERRORS: u64 = 1_000_000;
/// The most characters of one problem.
const MAX_PROBLEM: usize = 200;
/// The most levels of `unevaluatedProperties` in a schema of a script.
const MAX_UNEVALUATED: usize = 4;
/// The most bytes of a value times patterns of the schema, by their weight: a light one takes up
/// to 5 µs for each byte.
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
    let (place, shown) = (error.instance_path(), error.masked().to_string());
    let shown: String = shown.chars().take(MAX_PROBLEM).collect();
    Some(format!("at {:?}: {shown}", place.to_string()))
}

impl Schema {
    /// Compiles a schema, which may take a while.
    /// The error: the value is no schema, refers to another document, or exceeds the bounds.
    pub fn new(value: Value, author: Author) -> Result<Self, String> {
        let text = value.to_string();
        author.takes(text.len())?;
        let draft = value.get("$schema").and_then(Value::as_str);
        if draft.is_some_and(|draft| draft.contains("draft-04")) {
            // There, any `id` moves what references are to.
            return Err("the schema is of draft 4; write one of 2020-12".to_owned());
        }
        let shape = Shape::of(&value, author)?;
        let limit = author.max_nodes();
        if shape.nodes > limit {
            return Err(format!(
                "the schema has more than {limit} parts with all references in place"
            ));
        }
        if author == Author::Script && shape.unevaluated > MAX_UNEVALUATED {
            return Err(format!(
                "the schema has \"unevaluatedProperties\" or \"unevaluatedItems\" on more than \
                 {MAX_UNEVALUATED} levels"
            ));
        }
        let patterns = PatternOptions::regex()
            .size_limit(MAX_PATTERN)
            .dfa_size_limit(MAX_PATTERN);
        let options = jsonschema::options()
            .offline()
            .with_pattern_options(patterns);
        let options = match author {
            Author::Script => options,
            // Types do not tell them apart, and servers mean them loosely.
            Author::Server => options.should_validate_formats(false),
        };
        let validator = options.build(&value).map_err(|error| {
            let place = error.instance_path().to_string();
            let shown: String = error.masked().to_string().chars().take(200).collect();
            format!("the schema is not a valid JSON Schema, at {place:?}: {shown}")
        })?;
        Ok(Self(Arc::new(Inner {
            value,
            text,
            validator,
            shape,
        })))
    }

    /// The schema.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The schema's JSON.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The problems of a value that came as `bytes` bytes of JSON: none if the value
    /// fits, else at most `max` of them, with the value's own words.
    pub fn problems(&self, value: &Value, bytes: usize, max: usize) -> Vec<String> {
        if !self.can_match(bytes) {
            return vec!["the value is too long for the patterns of the schema".to_owned()];
        }
        let validator = &self.0.validator;
        let Err(first) = validator.validate(value) else {
            return Vec::new();
        };
        // The validator makes all errors before it gives the first, and each part of
        // the schema may have an error for each part of the value.
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

    /// Its size with references in place.
    pub(crate) fn shape(&self) -> Shape {
        self.0.shape
    }

    /// True if a value fits. The time is in proportion to the parts of the schema and
    /// those of the value, also for a recursive schema.
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
        // Each loop is taken once more at each level.
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

/// One line: the place in the value, and the problem.
fn problem(error: &ValidationError<'_>, words: &dyn fmt::Display) -> String {
    let path = error.instance_path().to_string();
    let place = if path.is_empty() { "the value" } else { &path };
    let problem = format!("{place}: {words}");
    problem.chars().take(MAX_PROBLEM).collect()
}

#[cfg(test)]
mod tests;
