//! Reading the objects that others write. What serde derives for a struct takes an array, too:
//! of its members, in their order. No server means that.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// The longest text of a server's that is read into values of any shape, in bytes: as
/// values it may take ninety times as much.
pub(crate) const MAX_VALUE_BYTES: usize = 1 << 20;

/// What is read from an object, and from nothing else.
pub(crate) struct Object<T>(pub(crate) T);

/// Reads JSON text that must be an object.
pub(crate) fn object<'de, T: Deserialize<'de>>(json: &'de str) -> serde_json::Result<T> {
    serde_json::from_str(json).map(|Object(value)| value)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(PhantomData))
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Read<'a> {
        #[serde(borrow)]
        a: &'a RawValue,
        #[serde(default)]
        b: Option<bool>,
    }

    #[test]
    fn objects_and_nothing_else() {
        let read: Read<'_> = object(r#" {"c":[],"a": [1.0, 2]}"#).expect("an object");
        assert_eq!((read.a.get(), read.b), ("[1.0, 2]", None));
        for json in ["[1,true]", "7", "null"] {
            let error = object::<Read<'_>>(json).expect_err(json).to_string();
            assert!(error.contains(", expected an object at line 1"), "{error}");
        }
    }
}
