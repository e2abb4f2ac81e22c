//! The `permissions` of a file: three lists of rules, each a pattern or an
//! object.

use callgate_policy::{Effect, Rule, RuleProblem, RuleProblemKind, Rules, Step};
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use serde_json::Value as Json;

use super::error::ConfigErrorKind;
use super::expand::FOLDER;
use super::keys;
use super::reader::{Reader, name_range};

/// Reads the section into `rules`.
pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>, rules: &mut Rules) {
    let what = "\"permissions\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    for property in reader.properties(object, what, &keys::PERMISSIONS) {
        let effect = match property.name.as_str() {
            "allow" => Effect::Allow,
            "ask" => Effect::Ask,
            _ => Effect::Deny,
        };
        let Some(array) = property.value.as_array() else {
            reader.wrong_type(property, what, "an array of rules");
            continue;
        };
        for element in &array.elements {
            no_duplicates(reader, element);
            if !are_numbers(reader, element) {
                continue;
            }
            let mut entry = json(element);
            let has_folder = expand(reader, &mut entry);
            match Rule::parse(effect, &entry) {
                Ok(rule) => {
                    if has_folder && effect != Effect::Allow {
                        warn_of_alias(reader, element.range());
                    }
                    rules.push(rule);
                }
                Err(problems) => {
                    for problem in problems {
                        let range = place(element, &problem);
                        reader.error(range, kind(problem.kind), problem.message);
                    }
                }
            }
        }
    }
}

/// The same value, without places.
fn json(value: &Value<'_>) -> Json {
    match value {
        Value::StringLit(text) => text.value.as_ref().into(),
        // Every one of them is: see `are_numbers`.
        Value::NumberLit(number) => number.value.parse().map_or(Json::Null, Json::Number),
        Value::BooleanLit(boolean) => boolean.value.into(),
        Value::NullKeyword(_) => Json::Null,
        Value::Array(array) => array.elements.iter().map(json).collect(),
        Value::Object(object) => {
            let members = object.properties.iter();
            let members =
                members.map(|property| (property.name.as_str().to_owned(), json(&property.value)));
            Json::Object(members.collect())
        }
    }
}

/// Of two members of one name only one would count, and people see the other.
fn no_duplicates(reader: &mut Reader<'_>, value: &Value<'_>) {
    match value {
        Value::Object(object) => {
            reader.no_duplicates(object, "a rule");
            for property in &object.properties {
                no_duplicates(reader, &property.value);
            }
        }
        Value::Array(array) => {
            for element in &array.elements {
                no_duplicates(reader, element);
            }
        }
        _ => {}
    }
}

/// Whether every number is one that arguments can have. One beyond any float is not:
/// no rule could mean it.
fn are_numbers(reader: &mut Reader<'_>, value: &Value<'_>) -> bool {
    match value {
        Value::NumberLit(number) => {
            let is_one = number.value.parse::<serde_json::Number>().is_ok();
            if !is_one {
                let message = format!(
                    "{} in a rule is beyond any number that arguments can have; write one from \
                     -1.7e308 to 1.7e308",
                    number.value
                );
                reader.error(number.range, ConfigErrorKind::Value, message);
            }
            is_one
        }
        Value::Object(object) => {
            let each = object.properties.iter().map(|property| &property.value);
            each.filter(|value| !are_numbers(reader, value)).count() == 0
        }
        Value::Array(array) => {
            let each = array.elements.iter();
            each.filter(|value| !are_numbers(reader, value)).count() == 0
        }
        _ => true,
    }
}

/// Puts the file's folder into prefixes and globs that begin with its name.
/// Nothing else is replaced: a rule that was granted for exact arguments must
/// be read as it was written. Whether there was anything to replace.
fn expand(reader: &Reader<'_>, entry: &mut Json) -> bool {
    let folder = reader.variables.folder.to_string_lossy();
    let mut has_folder = false;
    let conditions = entry.get_mut("arguments").and_then(Json::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        for key in ["prefix", "glob"] {
            // A sign in the folder's name would mean something in a glob.
            if key == "glob" && folder.contains(['*', '?', '[', ']', '{', '}', '\\']) {
                continue;
            }
            if let Some(Json::String(text)) = condition.get_mut(key)
                && let Some(rest) = text.strip_prefix(FOLDER)
            {
                *text = format!("{}{rest}", reader.variables.folder_before(rest));
                has_folder = true;
            }
        }
    }
    has_folder
}

/// Whoever named the file by a link may well name files so, and no rule sees through
/// links. A rule that does not match such a text lets the call through.
fn warn_of_alias(reader: &mut Reader<'_>, range: Range) {
    if let Some(alias) = reader.variables.alias {
        let message = format!(
            "\"{FOLDER}\" in this rule is {:?}, and not {alias:?}, the link by which the file \
             was named; write a rule for texts that begin with that, too",
            reader.variables.folder
        );
        reader.warning(range, ConfigErrorKind::Value, message);
    }
}

/// Where in the file a problem of an entry is.
fn place(entry: &Value<'_>, problem: &RuleProblem) -> Range {
    let mut value = entry;
    let mut steps = problem.at.iter().peekable();
    while let Some(step) = steps.next() {
        value = match (step, value) {
            (Step::Key(key), Value::Object(object)) => {
                // The last of two counts, as in what was read.
                let mut properties = object.properties.iter().rev();
                let found = properties.find(|property| property.name.as_str() == key);
                let Some(property) = found else { break };
                if problem.on_key && steps.peek().is_none() {
                    return name_range(property);
                }
                &property.value
            }
            (Step::Index(index), Value::Array(array)) => match array.elements.get(*index) {
                Some(element) => element,
                None => break,
            },
            _ => break,
        };
    }
    value.range()
}

fn kind(kind: RuleProblemKind) -> ConfigErrorKind {
    match kind {
        RuleProblemKind::Key => ConfigErrorKind::Key,
        RuleProblemKind::Pattern => ConfigErrorKind::Pattern,
        _ => ConfigErrorKind::Value,
    }
}
