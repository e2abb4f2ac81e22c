//! Comments on schemas: the author's description and, in one terse form after it, the bounds of the
//! values: `Page size (1–100, default 30)`.
//!
//! Only properties and declarations have a place for comments. Notes on parts between them, such as
//! the items of an array, are added there.

use serde_json::{Map, Value};

use super::literal::MAX_VALUES;
use super::mentioned::{
    described_choices, described_default, mentions_bound, mentions_default, mentions_word,
};
use super::scope::Dialect;
use super::values::{MAX_VALUE, SAFE_INTEGER, examples, head, number, value_text};
use super::{Lowering, MAX_DEPTH, Side};
use crate::degradation::Reason;
use crate::deprecated::deprecation;
use crate::ir::Doc;
use crate::text::{comment_text, prefix};

/// Bytes of a comment on a property or a type.
const MAX_COMMENT: usize = 4_000;
/// Bytes of the short facts of a property.
const MAX_FACTS: usize = 80;

impl<'a> Lowering<'a, '_> {
    /// The comment on a schema at `keys` from the present place, if there is anything to say. A
    /// title that only repeats `name` is left out.
    pub(super) fn comment(
        &mut self,
        keys: &[&'a str],
        name: Option<&str>,
        schema: &Value,
    ) -> Option<Doc> {
        let mut notes = Notes::default();
        self.collect(schema, name, 0, &mut notes);
        let (text, cut) = comment_text(&notes.text(), MAX_COMMENT);
        if cut {
            notes.shortened.push("description");
        }
        for keyword in notes.shortened {
            self.degrade_at(keys, Reason::Shortened { keyword });
        }
        (!text.is_empty()).then(|| Doc {
            comment: text,
            facts: self.facts(schema),
        })
    }

    /// The short facts of an input schema, even if its description has them too, and the facts that
    /// only its description has. A result needs no facts.
    fn facts(&self, schema: &Value) -> String {
        if self.side == Side::Output {
            return String::new();
        }
        let mut notes = Notes {
            is_short: true,
            ..Notes::default()
        };
        self.collect(schema, None, 0, &mut notes);
        let mut facts = notes.facts;
        facts.append(&mut notes.parts);
        if let Value::Object(map) = schema {
            let described = map.get("description").and_then(Value::as_str);
            let described = described.unwrap_or_default();
            if deprecation(described).is_some() && !facts.iter().any(|fact| fact == "deprecated") {
                facts.push("deprecated".to_owned());
            }
            if !map.contains_key("default") {
                facts.extend(described_default(described).map(|value| format!("default {value}")));
            }
            let is_text = map.get("type").is_none_or(|ty| ty == "string");
            let choices = described_choices(described);
            if is_text
                && !["enum", "const"]
                    .iter()
                    .any(|keyword| map.contains_key(*keyword))
            {
                facts.extend(choices);
            }
        }
        let mut text = String::new();
        for fact in facts {
            if text.len() + fact.len() > MAX_FACTS {
                continue;
            }
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(&fact);
        }
        comment_text(&text.replace('\n', " "), MAX_FACTS).0
    }

    /// Adds a schema's own notes, and the notes of parts without a comment of their own.
    fn collect(&self, schema: &Value, name: Option<&str>, depth: usize, notes: &mut Notes) {
        let Some(map) = schema.as_object() else {
            return;
        };
        if depth >= MAX_DEPTH {
            return;
        }
        let says = |keyword: &str| map.get(keyword).and_then(Value::as_str).map(str::trim);
        let described = says("description").filter(|text| !text.is_empty());
        let title = says("title").filter(|title| name.is_some_and(|name| !alike(title, name)));
        if let Some(text) = described.or(title).filter(|_| !notes.is_short) {
            notes.add_line(text);
        }
        if self.dialect != Dialect::Modern && map.contains_key("$ref") {
            return;
        }
        let described = described.filter(|_| !notes.is_short);
        add_notes(map, described.unwrap_or_default(), self.side, notes);
        for schema in list(map, "allOf") {
            self.collect_part(schema, "", depth, notes);
        }
        for keyword in ["anyOf", "oneOf"] {
            let choices = list(map, keyword);
            let not_null = |choice: &&Value| choice.get("type").is_none_or(|ty| ty != "null");
            let several = choices.iter().filter(not_null).nth(1).is_some();
            for choice in choices {
                let label = if several {
                    label(choice)
                } else {
                    String::new()
                };
                self.collect_part(choice, &label, depth, notes);
            }
        }
        for (keyword, label) in [
            ("items", "each"),
            ("additionalItems", "further"),
            ("additionalProperties", "values"),
            ("propertyNames", "keys"),
        ] {
            if let Some(part @ Value::Object(_)) = map.get(keyword) {
                self.collect_part(part, label, depth, notes);
            }
        }
        for keyword in ["prefixItems", "items"] {
            for (index, place) in list(map, keyword).iter().enumerate() {
                self.collect_part(place, &format!("[{index}]"), depth, notes);
            }
        }
        if let Some(Value::Object(patterns)) = map.get("patternProperties") {
            for (pattern, part) in patterns {
                let label = format!("keys /{}/", shortened(pattern, "patternProperties", notes));
                notes.add(label.clone());
                self.collect_part(part, &label, depth, notes);
            }
        }
    }

    /// Adds the notes of a part without a comment of its own, after its label.
    fn collect_part(&self, part: &Value, label: &str, depth: usize, notes: &mut Notes) {
        if self.is_declared(part) || notes.is_full() {
            return;
        }
        let mut inner = Notes {
            is_short: notes.is_short,
            ..Notes::default()
        };
        self.collect(part, None, depth + 1, &mut inner);
        notes.shortened.append(&mut inner.shortened);
        notes.size += inner.size + label.len();
        if label.is_empty() {
            for line in inner.lines {
                notes.add_line(&line);
            }
            for note in inner.facts {
                notes.add(note);
            }
            notes.parts.append(&mut inner.parts);
        } else if inner.lines.is_empty() && inner.parts.is_empty() {
            if !inner.facts.is_empty() {
                notes
                    .parts
                    .push(format!("{label} {}", inner.facts.join(", ")));
            }
        } else {
            notes.after.push(format!("{label}: {}", inner.text()));
        }
        notes.after.append(&mut inner.after);
    }
}

/// The texts collected for one comment.
#[derive(Default)]
struct Notes {
    /// True if only the short facts are collected.
    is_short: bool,
    /// Descriptions.
    lines: Vec<String>,
    /// Constraints.
    facts: Vec<String>,
    /// Constraints of parts, each after its label.
    parts: Vec<String>,
    /// Descriptions of parts, each after its label.
    after: Vec<String>,
    /// Keywords whose text was cut.
    shortened: Vec<&'static str>,
    /// An upper bound of the bytes of all texts.
    size: usize,
}

impl Notes {
    fn add_line(&mut self, line: &str) {
        if self.is_full() {
            return;
        }
        self.size += line.len();
        if !self.lines.iter().any(|before| before == line) {
            self.lines.push(line.to_owned());
        }
    }

    /// True if the texts already exceed a comment.
    fn is_full(&self) -> bool {
        self.size > MAX_COMMENT
    }

    fn add(&mut self, note: String) {
        if self.is_full() {
            return;
        }
        self.size += note.len();
        if !self.facts.contains(&note) {
            self.facts.push(note);
        }
    }

    fn text(&self) -> String {
        let mut notes = self.facts.join(", ");
        for part in &self.parts {
            let semicolon = if notes.is_empty() { "" } else { "; " };
            notes.push_str(semicolon);
            notes.push_str(part);
        }
        let mut text = self.lines.join("\n");
        if text.is_empty() {
            text = notes;
        } else if !notes.is_empty() {
            if text.ends_with(')') {
                text.pop();
                text.push_str("; ");
            } else {
                text.push_str(" (");
            }
            text.push_str(&notes);
            text.push(')');
        }
        for line in &self.after {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line);
        }
        text
    }
}

/// Adds the constraints of a schema that its type does not show and that its
/// description does not mention.
fn add_notes(map: &Map<String, Value>, described: &str, side: Side, notes: &mut Notes) {
    add_kind_notes(map, described, side, notes);
    add_size_notes(map, described, notes);
    add_content_notes(map, described, notes);
    add_value_notes(map, described, notes);
    for (keyword, note) in [
        ("deprecated", "deprecated"),
        ("readOnly", "read-only"),
        ("writeOnly", "write-only"),
    ] {
        if is_true(map, keyword) && !mentions_word(described, note) {
            notes.add(note.to_owned());
        }
    }
}

/// `integer`, and formats.
fn add_kind_notes(map: &Map<String, Value>, described: &str, side: Side, notes: &mut Notes) {
    // A script that reads a number need not know that it is whole.
    let is_noted = side == Side::Input && is_integer(map) && !notes.is_short;
    if is_noted && !mentions_word(described, "integer") {
        notes.add("integer".to_owned());
    }
    for keyword in ["format", "contentEncoding", "contentMediaType"] {
        if let Some(name) = text(map, keyword)
            && !mentions_word(described, name)
        {
            let name = shortened(name, keyword, notes);
            notes.add(name);
        }
    }
}

/// The bounds of numbers, lengths and counts.
fn add_size_notes(map: &Map<String, Value>, described: &str, notes: &mut Notes) {
    if let Some(range) = range(map, described) {
        notes.add(range);
    }
    if let Some(divisor) = map.get("multipleOf").and_then(number)
        && divisor != "1"
    {
        notes.add(format!("multiple of {divisor}"));
    }
    for (min, max, unit) in [
        ("minLength", "maxLength", "char"),
        ("minItems", "maxItems", "item"),
        ("minProperties", "maxProperties", "key"),
    ] {
        let count = |keyword: &str| map.get(keyword).and_then(Value::as_u64);
        if let Some(size) = size(count(min), count(max), unit, described) {
            notes.add(size);
        }
    }
}

/// `unique`, patterns, long lists of values, and properties that need others.
fn add_content_notes(map: &Map<String, Value>, described: &str, notes: &mut Notes) {
    if is_true(map, "uniqueItems") && !mentions_word(described, "unique") {
        notes.add("unique".to_owned());
    }
    if let Some(pattern) = text(map, "pattern")
        && !described.contains(pattern)
    {
        let pattern = shortened(pattern, "pattern", notes);
        notes.add(format!("/{pattern}/"));
    }
    if let Some(Value::Array(values)) = map.get("enum")
        && values.len() > MAX_VALUES
    {
        notes.add(format!("one of {}: {}", values.len(), head(values)));
    }
    for keyword in ["dependentRequired", "dependencies"] {
        let Some(Value::Object(needs)) = map.get(keyword) else {
            continue;
        };
        for (key, needed) in needs {
            let names = needed.as_array().into_iter().flatten();
            let names: Vec<&str> = names.filter_map(Value::as_str).collect();
            if !names.is_empty() {
                let note = format!("{key} needs {}", names.join(" and "));
                let note = shortened(&note, keyword, notes);
                notes.add(note);
            }
        }
    }
}

/// The default and examples.
fn add_value_notes(map: &Map<String, Value>, described: &str, notes: &mut Notes) {
    if let Some(default) = map.get("default").filter(|default| !default.is_null()) {
        let text = value_text(default);
        if !mentions_default(described, &text) {
            let text = shortened(&text, "default", notes);
            notes.add(format!("default {text}"));
        }
    }
    if let Some(examples) = examples(map, described).filter(|_| !notes.is_short) {
        notes.add(format!("e.g. {examples}"));
    }
}

fn text<'v>(map: &'v Map<String, Value>, keyword: &str) -> Option<&'v str> {
    map.get(keyword).and_then(Value::as_str)
}

fn is_true(map: &Map<String, Value>, keyword: &str) -> bool {
    map.get(keyword) == Some(&Value::Bool(true))
}

/// True if the values are integers, and the type would not say so: it is `number` for all of them.
fn is_integer(map: &Map<String, Value>) -> bool {
    let named = match map.get("type") {
        Some(Value::Array(names)) => {
            names.iter().any(|name| name == "integer") && !names.iter().any(|name| name == "number")
        }
        Some(name) => name == "integer",
        None => false,
    };
    let whole = map.get("type").is_some_and(|ty| ty == "number")
        && map.get("multipleOf").and_then(Value::as_f64) == Some(1.0);
    (named || whole) && !map.contains_key("enum") && !map.contains_key("const")
}

/// The bounds of a number: `1–100`, `≥ 1`, `> 0, < 1`.
fn range(map: &Map<String, Value>, described: &str) -> Option<String> {
    let bound = |inclusive: &str, exclusive: &str| {
        // Draft 4 has the exclusive keyword as a flag.
        let flag = map.get(exclusive) == Some(&Value::Bool(true));
        let bound = map.get(inclusive).and_then(real_bound);
        let strict = map.get(exclusive).and_then(real_bound);
        match (bound, strict) {
            (_, Some(strict)) => Some((strict, true)),
            (Some(bound), None) => Some((bound, flag)),
            (None, None) => None,
        }
    };
    let min = bound("minimum", "exclusiveMinimum");
    let max = bound("maximum", "exclusiveMaximum");
    let min = min.filter(|(min, _)| !mentions_bound(described, min, true));
    let max = max.filter(|(max, _)| !mentions_bound(described, max, false));
    Some(match (min, max) {
        (Some((min, false)), Some((max, false))) if min == max => format!("exactly {max}"),
        (Some((min, false)), Some((max, false))) => {
            let dash = if min.starts_with('-') { " to " } else { "–" };
            format!("{min}{dash}{max}")
        }
        (min, max) => {
            let mut bounds = Vec::new();
            if let Some((min, strict)) = min {
                bounds.push(format!("{} {min}", if strict { ">" } else { "≥" }));
            }
            if let Some((max, strict)) = max {
                bounds.push(format!("{} {max}", if strict { "<" } else { "≤" }));
            }
            if bounds.is_empty() {
                return None;
            }
            bounds.join(", ")
        }
    })
}

/// The bounds of a length or a count: `1–256 chars`, `≤ 10 items`, `non-empty`.
fn size(min: Option<u64>, max: Option<u64>, unit: &str, described: &str) -> Option<String> {
    let says = |count: u64, min| mentions_bound(described, &count.to_string(), min);
    let min = min.filter(|min| *min > 0 && !says(*min, true));
    let max = max.filter(|max| !says(*max, false));
    Some(match (min, max) {
        (None, None) => return None,
        (Some(1), None) => "non-empty".to_owned(),
        (Some(min), None) => format!("≥ {min} {unit}s"),
        (None, Some(max)) => format!("≤ {max} {unit}{}", plural(max)),
        (Some(min), Some(max)) if min == max => format!("{max} {unit}{}", plural(max)),
        (Some(min), Some(max)) => format!("{min}–{max} {unit}s"),
    })
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A bound that is meant as one: not the ends of the integers a double holds.
fn real_bound(value: &Value) -> Option<String> {
    let double = value.as_f64()?;
    if double.abs() >= SAFE_INTEGER {
        return None;
    }
    number(value)
}

/// The label of a choice: its only value, else its type, else `or`.
fn label(choice: &Value) -> String {
    if let Some(value) = choice.get("const") {
        return prefix(&value_text(value), MAX_VALUE).to_owned();
    }
    match (list_of(choice, "enum"), choice.get("type")) {
        ([value], _) => prefix(&value_text(value), MAX_VALUE).to_owned(),
        (_, Some(Value::String(ty))) => prefix(ty, MAX_VALUE).to_owned(),
        _ => "or".to_owned(),
    }
}

fn shortened(text: &str, keyword: &'static str, notes: &mut Notes) -> String {
    if text.len() <= MAX_VALUE {
        return text.to_owned();
    }
    notes.shortened.push(keyword);
    format!("{}…", prefix(text, MAX_VALUE))
}

/// True if a title says no more than a name: the same letters and digits.
fn alike(title: &str, name: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect()
    };
    plain(title) == plain(name)
}

fn list<'v>(map: &'v Map<String, Value>, keyword: &str) -> &'v [Value] {
    match map.get(keyword) {
        Some(Value::Array(list)) => list,
        _ => &[],
    }
}

fn list_of<'v>(schema: &'v Value, keyword: &str) -> &'v [Value] {
    schema.as_object().map_or(&[], |map| list(map, keyword))
}
