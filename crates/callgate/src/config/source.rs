//! Values that stand in the file, and values that are looked up when a server
//! starts.

use std::collections::BTreeMap;

use callgate_broker::{Origin, Source};
use jsonc_parser::ast::{Object, ObjectProp};
use jsonc_parser::common::Ranged as _;

use super::error::ConfigErrorKind;
use super::keys;
use super::reader::{Reader, name_range};
use super::server::expanded;

/// `env` or `headers`: what is known, and what is looked up.
#[derive(Default)]
pub(super) struct Values {
    pub(super) known: BTreeMap<String, String>,
    pub(super) from: BTreeMap<String, Source>,
}

/// Reads `env` or `headers`, whose values are never shown. `check` is given
/// each name, and the value where it is known.
pub(super) fn values(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    what: &str,
    check: impl Fn(&str, &str) -> Result<(), String>,
) -> Values {
    let mut values = Values::default();
    let Some(object) = reader.object(property, what) else {
        return values;
    };
    let what = format!("\"{}\" in {what}", property.name.as_str());
    reader.no_duplicates(object, &what);
    for property in &object.properties {
        let name = property.name.as_str().to_owned();
        let entry = format!("\"{name}\" of {what}");
        let Some(source) = source(reader, property, &what) else {
            continue;
        };
        let known = match &source.origin {
            Origin::Text(text) => text.as_str(),
            _ => &source.prefix,
        };
        if let Err(message) = check(&name, known) {
            let message = format!("{entry} {message}");
            reader.error(name_range(property), ConfigErrorKind::Value, message);
            continue;
        }
        match source.origin {
            Origin::Text(text) => drop(values.known.insert(name, text)),
            _ => drop(values.from.insert(name, source)),
        }
    }
    values
}

/// One value: a text, or an object that says where it comes from.
pub(super) fn source(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    what: &str,
) -> Option<Source> {
    let entry = format!("\"{}\" of {what}", property.name.as_str());
    if let Some(text) = property.value.as_string_lit() {
        let text = reader.expand(text.value.as_ref(), property.value.range(), &entry)?;
        return Some(Source::text(text));
    }
    let Some(object) = property.value.as_object() else {
        let wanted = "a string, or an object with \"command\" or \"keyring\"";
        reader.wrong_type(property, what, wanted);
        return None;
    };
    let properties = reader.properties(object, &entry, &keys::SOURCE);
    let get = |key: &str| properties.iter().copied().find(|p| p.name.as_str() == key);
    let origin = match (get("command"), get("keyring")) {
        (Some(property), None) => command(reader, property, get("timeout"), &entry)?,
        (None, Some(property)) => {
            if let Some(timeout) = get("timeout") {
                reader.error(
                    name_range(timeout),
                    ConfigErrorKind::Key,
                    format!("key \"timeout\" in {entry} does not go with \"keyring\"; remove it"),
                );
            }
            keyring(reader, property, &entry)?
        }
        (both, _) => {
            let message = match both {
                Some(_) => format!("{entry} has both \"command\" and \"keyring\"; keep one"),
                None => format!(
                    "{entry} has neither \"command\" nor \"keyring\"; write where its value comes \
                     from"
                ),
            };
            reader.error(property.value.range(), ConfigErrorKind::Value, message);
            return None;
        }
    };
    let mut source = Source::new(origin);
    if let Some(property) = get("prefix") {
        source.prefix = expanded(reader, property, &entry)?;
    }
    Some(source)
}

fn command(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    timeout: Option<&ObjectProp<'_>>,
    entry: &str,
) -> Option<Origin> {
    let problems = reader.problems.len();
    let what = format!("\"command\" in {entry}");
    let mut words: Vec<String> = Vec::new();
    for (text, range) in reader.strings(property, entry) {
        words.extend(reader.expand(text, range, &what));
    }
    if reader.problems.len() > problems {
        return None;
    }
    let folder = reader.variables.folder.to_owned();
    match words.first_mut() {
        Some(program) if !program.trim().is_empty() => {
            if program.contains('/') {
                *program = folder.join(&*program).to_string_lossy().into_owned();
            }
        }
        _ => {
            reader.error(
                property.value.range(),
                ConfigErrorKind::Value,
                format!("{what} is empty; write the program and its arguments"),
            );
            return None;
        }
    }
    let mut origin = Source::command(words).origin;
    if let Origin::Command {
        cwd,
        timeout: limit,
        ..
    } = &mut origin
    {
        *cwd = Some(folder);
        if let Some(property) = timeout {
            *limit = reader.duration(property, entry)?;
        }
    }
    Some(origin)
}

fn keyring(reader: &mut Reader<'_>, property: &ObjectProp<'_>, entry: &str) -> Option<Origin> {
    let object: &Object<'_> = reader.object(property, entry)?;
    let what = format!("\"keyring\" in {entry}");
    let properties = reader.properties(object, &what, &keys::KEYRING);
    let mut word = |key: &str| {
        let found = properties.iter().copied().find(|p| p.name.as_str() == key);
        match found {
            Some(property) => expanded(reader, property, &what).filter(|text| !text.is_empty()),
            None => {
                reader.error(
                    property.value.range(),
                    ConfigErrorKind::Value,
                    format!("{what} has no \"{key}\"; write that of the keyring's entry"),
                );
                None
            }
        }
    };
    let (service, account) = (word("service"), word("account"));
    Some(Source::keyring(service?, account?).origin)
}
