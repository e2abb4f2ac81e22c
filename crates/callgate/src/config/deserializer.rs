//! Deserializes values of a file's tree, and places mistakes.

use std::collections::HashSet;
use std::fmt::Display;

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged as _};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer as _, MapAccess,
    SeqAccess, Unexpected, Visitor, value::SeqDeserializer, value::StrDeserializer,
};
use serde::forward_to_deserialize_any;

use super::error::Wrong;
use super::foreign::type_of;
use super::tree::Tree;
use super::units::parse_duration;

/// The maximum length of a wrong word in a message, in characters.
const MAX_FOUND: usize = 40;

/// A mistake that serde found. It never holds a value of the file.
#[derive(Debug, thiserror::Error)]
#[error("{wrong:?}")]
pub(super) struct Mistake {
    pub(super) wrong: Wrong,
    /// The value with the mistake.
    pub(super) range: Option<Range>,
    /// The start of the member or element that the mistake is in.
    pub(super) entry: Option<usize>,
}

impl From<Wrong> for Mistake {
    fn from(wrong: Wrong) -> Self {
        Self {
            wrong,
            range: None,
            entry: None,
        }
    }
}

impl Mistake {
    fn of_type(value: &Value<'_>, wanted: &str) -> Self {
        let found = type_of(value);
        serde::de::Error::custom(format!("must be {wanted}, and this is {found}"))
    }

    /// Sets the value, and the start of its member or element, unless a closer place is known.
    pub(super) fn placed(mut self, range: Range, entry: Option<usize>) -> Self {
        self.range.get_or_insert(range);
        self.entry = self.entry.or(entry);
        self
    }
}

impl serde::de::Error for Mistake {
    fn custom<T: Display>(clause: T) -> Self {
        Wrong::Clause(clause.to_string()).into()
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let wanted = wanted.to_string();
        let wanted = match wanted.as_str() {
            "a map" => "an object",
            "a sequence" => "an array",
            "a boolean" => "true or false",
            "path string" => "a string",
            wanted => wanted,
        };
        let found = match found {
            Unexpected::Str(_) => "a string",
            Unexpected::Bool(_) => "a boolean",
            Unexpected::Seq => "an array",
            Unexpected::Map => "an object",
            Unexpected::Unit => "null",
            _ => "a number",
        };
        Self::custom(format!("must be {wanted}, and this is {found}"))
    }

    fn invalid_value(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let max = if wanted.to_string() == "u16" {
            u32::from(u16::MAX)
        } else {
            u32::MAX
        };
        Self::custom(format!("is over {max}"))
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        let found: String = found.chars().take(MAX_FOUND).collect();
        let known: Vec<String> = known.iter().map(|known| format!("\"{known}\"")).collect();
        Self::custom(format!(
            "must be {}, and this is {found:?}",
            known.join(" or ")
        ))
    }

    fn unknown_field(key: &str, ours: &'static [&'static str]) -> Self {
        let key = key.to_owned();
        Wrong::Key { key, ours }.into()
    }

    fn missing_field(key: &'static str) -> Self {
        Self::custom(format!("has no \"{key}\"; write it"))
    }
}

/// One value of the tree, for serde.
#[derive(Clone, Copy)]
pub(super) struct Node<'t> {
    pub(super) value: &'t Value<'t>,
    pub(super) tree: &'t Tree<'t>,
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.value {
            Value::StringLit(text) => visitor.visit_str(&text.value),
            Value::BooleanLit(boolean) => visitor.visit_bool(boolean.value),
            Value::NullKeyword(_) => visitor.visit_unit(),
            Value::NumberLit(number) => {
                let text = number.value;
                if let Ok(number) = text.parse() {
                    return visitor.visit_u64(number);
                }
                if let Ok(number) = text.parse() {
                    return visitor.visit_i64(number);
                }
                match text.parse::<f64>() {
                    Ok(number) if number.is_finite() => visitor.visit_f64(number),
                    _ => Err(Mistake::custom(format!(
                        "has the number {text}, which is beyond any number that arguments can \
                         have; write one from -1.7e308 to 1.7e308"
                    ))),
                }
            }
            Value::Array(array) => visitor.visit_seq(Elements {
                rest: array.elements.iter(),
                tree: self.tree,
            }),
            Value::Object(object) => visitor.visit_map(Members {
                rest: object.properties.iter(),
                value: None,
                seen: HashSet::new(),
                tree: self.tree,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    /// A value of another type, a path from the file's folder, or a text of a rule with that
    /// folder put in.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match self.value {
            Value::StringLit(text) if matches!(name, "FolderText" | "FolderGlob") => {
                let variables = &self.tree.variables;
                let text = variables.in_folder(&text.value, name == "FolderGlob");
                visitor.visit_newtype_struct(text.into_deserializer())
            }
            Value::StringLit(text) if name == "FolderPath" => {
                let path = self.tree.expand(&text.value, text.range.start)?;
                if path.trim().is_empty() {
                    return Err(Mistake::custom("is empty; write a path"));
                }
                let path = self.tree.variables.folder.join(path);
                visitor.visit_newtype_struct(path.to_string_lossy().into_deserializer())
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    /// A string with its references replaced, or any other value that the visitor takes.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.value {
            Value::StringLit(text) => {
                visitor.visit_string(self.tree.expand(&text.value, text.range.start)?)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_u64(visitor)
    }

    /// A whole number above zero.
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let number = self.value.as_number_lit();
        match number.and_then(|number| number.value.parse().ok()) {
            None | Some(0) => Err(Mistake::custom("must be a whole number above zero")),
            Some(number) => visitor.visit_u64(number),
        }
    }

    /// An object, or a [`Duration`] as people write it.
    ///
    /// [`Duration`]: std::time::Duration
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match self.value {
            Value::StringLit(text) if name == "Duration" => {
                let parsed = parse_duration(&text.value);
                let duration = parsed.map_err(|error| Mistake::custom(format!(": {error}")))?;
                let parts = [duration.as_secs(), u64::from(duration.subsec_nanos())];
                visitor.visit_seq(SeqDeserializer::new(parts.into_iter()))
            }
            value if name == "Duration" => Err(Mistake::of_type(value, "a string such as \"30s\"")),
            Value::Object(_) => self.deserialize_any(visitor),
            // A derived visitor would take an array, too.
            value => Err(Mistake::of_type(value, "an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match self.value {
            Value::StringLit(text) => visitor.visit_enum(StrDeserializer::new(&text.value)),
            value => Err(Mistake::of_type(value, "a string")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u128 f32 f64 char str bytes byte_buf unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Elements<'t> {
    rest: std::slice::Iter<'t, Value<'t>>,
    tree: &'t Tree<'t>,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mistake> {
        let tree = self.tree;
        let Some(value) = self.rest.find(|value| tree.is_read(value.range().start)) else {
            return Ok(None);
        };
        let (element, range) = (seed.deserialize(Node { value, tree }), value.range());
        let placed = |mistake: Mistake| mistake.placed(range, Some(range.start));
        element.map(Some).map_err(placed)
    }
}

struct Members<'t> {
    rest: std::slice::Iter<'t, ObjectProp<'t>>,
    value: Option<&'t ObjectProp<'t>>,
    seen: HashSet<&'t str>,
    tree: &'t Tree<'t>,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mistake> {
        let tree = self.tree;
        self.value = self.rest.find(|member| tree.is_read(member.range.start));
        let Some(member) = self.value else {
            return Ok(None);
        };
        let name = member.name.as_str();
        let placed = |mistake: Mistake| mistake.placed(member.range, Some(member.range.start));
        if !self.seen.insert(name) {
            return Err(placed(Wrong::Twice(name.to_owned()).into()));
        }
        let key = seed.deserialize(StrDeserializer::new(name));
        key.map(Some).map_err(placed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Mistake> {
        let Some(member) = self.value.take() else {
            return Err(Mistake::custom("has no value"));
        };
        let (value, tree) = (&member.value, self.tree);
        let (read, range) = (seed.deserialize(Node { value, tree }), value.range());
        read.map_err(|mistake| mistake.placed(range, Some(member.range.start)))
    }
}
