//! Deserializers of single values: sizes, and texts that are taken as they are.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny};

use super::units::{parse_bytes, parse_memory};

/// Reads a string whose `${…}` are not replaced; `wanted` describes it.
pub(super) fn plain<'de, D>(deserializer: D, wanted: &str) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => Ok(text),
        _ => Err(D::Error::custom(format_args!("must be {wanted}"))),
    }
}

/// A string whose `${…}` are not replaced.
#[derive(Deserialize)]
struct Plain(#[serde(deserialize_with = "plain_text")] String);

fn plain_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    plain(deserializer, "a string")
}

/// Reads texts whose `${…}` are not replaced.
pub(super) fn plain_texts<'de, D>(deserializer: D) -> Result<Vec<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts = Vec::<Plain>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|text| text.0).collect())
}

/// Reads a path, which may not be empty.
pub(super) fn path<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PathBuf>, D::Error> {
    let path = String::deserialize(deserializer)?;
    if path.is_empty() {
        return Err(D::Error::custom("is empty; write a path"));
    }
    Ok(Some(path.into()))
}

/// Reads an array of texts with `parse`.
pub(super) fn each<'de, D: Deserializer<'de>>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parsed: Result<Vec<String>, String> = texts.iter().map(|text| parse(text)).collect();
    parsed.map_err(|error| D::Error::custom(format_args!(": {error}")))
}

/// Reads a number of bytes.
pub(super) fn size<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<u64>,
{
    let text = plain(deserializer, "a string such as \"1MiB\"")?;
    let size = parse_bytes(&text).map(T::from);
    size.map_err(|error| D::Error::custom(format_args!(": {error}")))
}

/// Reads the size of a script's memory.
pub(super) fn memory<'de, D>(deserializer: D) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = plain(deserializer, "a string such as \"128MiB\"")?;
    let size = parse_memory(&text).map(Some);
    size.map_err(|error| D::Error::custom(format_args!(": {error}")))
}

/// Leaves the default: the value is read from the tree, once the rest is known.
pub(super) fn later<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default,
{
    IgnoredAny::deserialize(deserializer).map(|_| T::default())
}
