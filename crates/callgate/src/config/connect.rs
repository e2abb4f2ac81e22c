//! When a server is connected to, and what it is for.

use std::time::Duration;

use callgate_broker::{Connect, ServerSpec};
use jsonc_parser::ast::ObjectProp;
use jsonc_parser::common::Ranged as _;

use super::error::ConfigErrorKind;
use super::reader::{Reader, name_range};
use super::units::parse_duration;

/// The most characters of a server's description.
const MAX_DESCRIPTION: usize = 200;

/// What `idle` is written as.
const IDLE: &str = "a string such as \"5m\", or \"never\"";

/// Reads `description`, `connect` and `idle` of a server.
pub(super) fn read<'o, 't: 'o>(
    reader: &mut Reader<'_>,
    what: &str,
    get: &impl Fn(&str) -> Option<&'o ObjectProp<'t>>,
    spec: &mut ServerSpec,
) {
    if let Some(property) = get("description") {
        spec.description = description(reader, property, what);
    }
    if let Some(property) = get("connect") {
        spec.connect = reader
            .parsed(property, what, connect)
            .unwrap_or(spec.connect);
    }
    if let Some(property) = get("idle") {
        if spec.connect == Connect::Always {
            reader.error(
                name_range(property),
                ConfigErrorKind::Key,
                format!(
                    "key \"idle\" in {what} goes with \"connect\": \"lazy\" or \"manual\" only; \
                     remove it"
                ),
            );
        } else if let Some(idle) = reader.parsed_from(IDLE, property, what, idle) {
            spec.idle = idle;
        }
    }
}

fn description(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> Option<String> {
    let text = reader.string(property, what)?;
    let is_line = !text.contains(char::is_control) && !text.trim().is_empty();
    if !is_line || text.chars().count() > MAX_DESCRIPTION {
        reader.error(
            property.value.range(),
            ConfigErrorKind::Value,
            format!(
                "\"description\" in {what} must be one line of at most {MAX_DESCRIPTION} characters"
            ),
        );
        return None;
    }
    Some(text.trim().to_owned())
}

fn connect(text: &str) -> Result<Connect, String> {
    match text {
        "always" => Ok(Connect::Always),
        "lazy" => Ok(Connect::Lazy),
        "manual" => Ok(Connect::Manual),
        _ => Err(format!(
            "{text:?} is no time to connect; write \"always\", \"lazy\" or \"manual\""
        )),
    }
}

/// A duration, or `None` for never.
fn idle(text: &str) -> Result<Option<Duration>, String> {
    if matches!(text, "never" | "none" | "0") {
        return Ok(None);
    }
    let parsed = parse_duration(text).map(Some);
    parsed.map_err(|error| format!("{error}, or write \"never\""))
}
