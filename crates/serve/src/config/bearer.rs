//! `bearer` of `http`: the tokens that requests may have.

use std::fmt;

use callgate::faces::Origin;
use callgate::faces::Source;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer as _, MapAccess, Visitor};

use super::values::InvalidValue;

/// The name of the user of the only token.
pub const TOKEN_OF_ONE: &str = "default";

/// The minimum length of a token, in bytes: a shorter one can be guessed.
pub const MIN_TOKEN: usize = 16;

/// Reads one token, whose user is named `default`, or several under the names of their users.
pub(super) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, Source)>, D::Error> {
    // As a string, in which a configuration has variables.
    deserializer.deserialize_string(Tokens)
}

/// Reads one token.
pub(super) fn read_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Source, D::Error> {
    Ok(Token::deserialize(deserializer)?.0)
}

/// True if a user or an operator can have this name.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

pub(super) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let token = generator.subschema_for::<Source>();
    let tokens = json_schema!({ "type": "object", "additionalProperties": token });
    json_schema!({ "anyOf": [token, tokens] })
}

/// A token. The length of one that is looked up is checked when it is known.
struct Token(Source);

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let token = Source::deserialize(deserializer)?;
        match &token.origin {
            Origin::Text(text) if text.len() < MIN_TOKEN => Err(D::Error::custom(format_args!(
                "is a token of fewer than {MIN_TOKEN} characters and could be guessed; use one \
                 such as `openssl rand -hex 32` prints"
            ))),
            _ => Ok(Self(token)),
        }
    }
}

/// A key of the object: one of a token that is looked up, or the name of a user.
#[derive(Deserialize)]
#[serde(try_from = "String")]
enum Key {
    Source(String),
    User(String),
}

impl TryFrom<String> for Key {
    type Error = InvalidValue;

    fn try_from(name: String) -> Result<Self, InvalidValue> {
        if matches!(&*name, "command" | "keyring" | "prefix" | "timeout") {
            return Ok(Self::Source(name));
        }
        if !is_name(&name) {
            return Err(InvalidValue(format!(
                ": {name:?} is not a name for a user; use up to 64 letters, digits and . _ - @"
            )));
        }
        Ok(Self::User(name))
    }
}

struct Tokens;

impl<'de> Visitor<'de> for Tokens {
    type Value = Vec<(String, Source)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token, or an object of tokens")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let token = Token::deserialize(text.into_deserializer())?;
        Ok(vec![(TOKEN_OF_ONE.to_owned(), token.0)])
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut tokens = Vec::new();
        while let Some(key) = map.next_key()? {
            match key {
                Key::User(name) => tokens.push((name, map.next_value::<Token>()?.0)),
                Key::Source(first) if tokens.is_empty() => {
                    let keys = WithFirst {
                        first: Some(first),
                        rest: map,
                    };
                    let token = Token::deserialize(MapAccessDeserializer::new(keys))?;
                    return Ok(vec![(TOKEN_OF_ONE.to_owned(), token.0)]);
                }
                Key::Source(name) => tokens.push((name, map.next_value::<Token>()?.0)),
            }
        }
        Ok(tokens)
    }
}

/// An object whose first key is read already.
struct WithFirst<A> {
    first: Option<String>,
    rest: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithFirst<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(first) => seed.deserialize(StringDeserializer::new(first)).map(Some),
            None => self.rest.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.rest.next_value_seed(seed)
    }
}
