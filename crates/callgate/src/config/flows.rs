//! Labels, and the rules over data that goes from one server to another.

use callgate_policy::flow::{FlowEnd, FlowRule, FlowRules};
use callgate_policy::{Pattern, Verdict};
use jsonc_parser::ast::{Object, ObjectProp};
use jsonc_parser::common::{Range, Ranged};

use super::error::ConfigErrorKind;
use super::keys;
use super::reader::{Reader, name_range};

/// Reads `flows`: a list of rules.
pub(super) fn flows(reader: &mut Reader<'_>, property: &ObjectProp<'_>, rules: &mut FlowRules) {
    let Some(array) = property.value.as_array() else {
        reader.wrong_type(property, "the file", "an array of rules");
        return;
    };
    for element in &array.elements {
        match element.as_object() {
            Some(object) => {
                if let Some(rule) = rule(reader, object) {
                    rules.push(rule);
                }
            }
            None => reader.error(
                element.range(),
                ConfigErrorKind::Value,
                "a rule in \"flows\" must be an object, such as { \"from\": \"crm\", \"to\": \
                 \"*\", \"action\": \"deny\" }",
            ),
        }
    }
}

/// Reads `toolLabels`: patterns over generated names, each with its labels.
pub(super) fn tool_labels(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    rules: &mut FlowRules,
) {
    let what = "\"toolLabels\"";
    let Some(object) = reader.object(property, "the file") else {
        return;
    };
    reader.no_duplicates(object, what);
    for property in &object.properties {
        match Pattern::new(property.name.as_str()) {
            Ok(pattern) => {
                for label in labels(reader, property, what) {
                    rules.label_tools(pattern.clone(), label);
                }
            }
            Err(error) => reader.error(
                name_range(property),
                ConfigErrorKind::Pattern,
                error.to_string(),
            ),
        }
    }
}

/// Reads the `labels` of a server, if it has any.
pub(super) fn server_labels(
    reader: &mut Reader<'_>,
    server: &ObjectProp<'_>,
    rules: &mut FlowRules,
) {
    let name = server.name.as_str();
    let properties = server.value.as_object().map(|object| &object.properties);
    let mut properties = properties.into_iter().flatten();
    if let Some(property) = properties.find(|property| property.name.as_str() == "labels") {
        for label in labels(reader, property, &format!("server \"{name}\"")) {
            rules.label_server(name, label);
        }
    }
}

fn labels<'o>(reader: &mut Reader<'_>, property: &'o ObjectProp<'_>, what: &str) -> Vec<&'o str> {
    let mut labels = Vec::new();
    for (label, range) in reader.strings(property, what) {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if label.is_empty() || !label.chars().all(is_plain) {
            reader.error(
                range,
                ConfigErrorKind::Value,
                format!("{label:?} is no label; use letters, digits, \"-\", \"_\" and \".\""),
            );
        } else {
            labels.push(label);
        }
    }
    labels
}

fn rule(reader: &mut Reader<'_>, object: &Object<'_>) -> Option<FlowRule> {
    let what = "a rule in \"flows\"";
    let before = reader.problems.len();
    let properties = reader.properties(object, what, &keys::FLOW);
    let get = |key: &str| properties.iter().copied().find(|p| p.name.as_str() == key);
    let misspelt = reader.problems.len() > before;
    let mut end = |key: &str| match get(key) {
        Some(property) => end(reader, property, what),
        None => {
            if !misspelt {
                missing(
                    reader,
                    object.range,
                    key,
                    "a server, a tool or \"label:NAME\"",
                );
            }
            None
        }
    };
    let (from, to) = (end("from"), end("to"));
    let action = match get("action") {
        Some(property) => reader.parsed(property, what, action),
        None => {
            if !misspelt {
                let wanted = "\"allow\", \"ask\" or \"deny\"";
                missing(reader, object.range, "action", wanted);
            }
            None
        }
    };
    let min_bytes = get("minBytes").and_then(|property| reader.count(property, what));
    Some(FlowRule {
        from: from?,
        to: to?,
        min_bytes: min_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        action: action?,
    })
}

fn end(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> Option<FlowEnd> {
    let text = reader.string(property, what)?;
    let end = FlowEnd::parse(text);
    if end.is_none() {
        let key = property.name.as_str();
        reader.error(
            property.value.range(),
            ConfigErrorKind::Value,
            format!("\"{key}\" in {what} names nothing; write \"*\" for everything"),
        );
    }
    end
}

fn missing(reader: &mut Reader<'_>, range: Range, key: &str, wanted: &str) {
    let message = format!("a rule in \"flows\" has no \"{key}\"; write {wanted}");
    reader.error(range, ConfigErrorKind::Key, message);
}

fn action(text: &str) -> Result<Verdict, String> {
    match text {
        "allow" => Ok(Verdict::Allow),
        "ask" => Ok(Verdict::Ask),
        "deny" => Ok(Verdict::Deny),
        _ => Err(format!(
            "{text:?} is no action; write \"allow\", \"ask\" or \"deny\""
        )),
    }
}
