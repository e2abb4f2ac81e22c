//! Types of single values: sizes, paths, labels, switches.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use callgate_policy::Pattern;
use callgate_servers::Root;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use url::Url;

use super::expand::plain as plain_path;
use super::units::{ValueError, parse_bytes, parse_memory};

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

/// A path; relative ones start at the folder of this file. `${NAME}` is replaced.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FolderPath(pub(super) PathBuf);

/// Reads a path, from the file's folder.
pub(super) fn path<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PathBuf>, D::Error> {
    FolderPath::deserialize(deserializer).map(|path| Some(path.0))
}

/// Reads folders. They need not exist: a server may make one.
pub(super) fn roots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Root>, D::Error> {
    let paths = Vec::<FolderPath>::deserialize(deserializer)?.into_iter();
    let roots = paths.filter_map(|FolderPath(path)| {
        let path = plain_path(&path);
        let name = path.file_name().map(|name| name.to_string_lossy().into());
        let uri = Url::from_file_path(&path).ok()?.into();
        Some(Root { uri, name })
    });
    Ok(roots.collect())
}

/// `false` turns the part off; an object has its settings.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "SwitchOf{T}")]
pub(super) enum Switch<T> {
    Is(bool),
    Settings(T),
}

impl<T: Default> Switch<T> {
    /// The settings; `None` if it is switched off.
    pub(super) fn settings(self) -> Option<T> {
        match self {
            Self::Is(on) => on.then(T::default),
            Self::Settings(settings) => Some(settings),
        }
    }
}

impl<T> Default for Switch<T> {
    fn default() -> Self {
        Self::Is(true)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Switch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SwitchVisitor(PhantomData))
    }
}

struct SwitchVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for SwitchVisitor<T> {
    type Value = Switch<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or an object")
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Switch<T>, E> {
        Ok(Switch::Is(on))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Switch<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Switch::Settings)
    }
}

/// A size: a number and B, KB (1000 bytes), KiB (1024 bytes), MB, MiB, GB or GiB.
pub struct Size;

impl Size {
    /// Reads a number of bytes.
    ///
    /// # Errors
    ///
    /// An error of the deserializer, with advice.
    pub fn deserialize<'de, D: Deserializer<'de>, T: From<u64>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        sized(deserializer, "a string such as \"1MiB\"", parse_bytes)
    }

    /// Reads the size of a script's memory.
    ///
    /// # Errors
    ///
    /// An error of the deserializer, with advice.
    pub fn deserialize_memory<'de, D: Deserializer<'de>, T: From<u64>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        sized(deserializer, "a string such as \"128MiB\"", parse_memory)
    }
}

fn sized<'de, D: Deserializer<'de>, T: From<u64>>(
    deserializer: D,
    wanted: &str,
    parse: fn(&str) -> Result<u64, ValueError>,
) -> Result<T, D::Error> {
    let size = parse(&plain(deserializer, wanted)?).map(T::from);
    size.map_err(|error| D::Error::custom(format_args!(": {error}")))
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([KkMmGg][Ii]?)?[Bb]\s*$",
            "examples": ["128MiB", "16KiB", "1GB"],
        })
    }
}

/// A key that is a pattern over the names of functions.
#[derive(PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct PatternKey(pub(super) Pattern);

impl TryFrom<String> for PatternKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let pattern = Pattern::new(&text).map(Self);
        pattern.map_err(|error| format!(": {error}"))
    }
}

/// A list of labels.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Labels(#[serde(deserialize_with = "labels")] pub(super) Vec<String>);

/// Reads a list of labels.
pub(super) fn labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let labels = Vec::<String>::deserialize(deserializer)?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_label = |label: &str| !label.is_empty() && label.chars().all(is_plain);
    match labels.iter().find(|label| !is_label(label)) {
        None => Ok(labels),
        Some(label) => Err(D::Error::custom(format_args!(
            ": {label:?} is not a label; use letters, digits, \"-\", \"_\" and \".\""
        ))),
    }
}
