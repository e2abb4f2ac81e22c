//! Reading the objects and arrays that others write, within bounds. What serde derives for a
//! struct takes an array, too: of its members, in their order. No server means that.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

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

/// The first elements of an array, `N` at the most. There is no room for the others: a text
/// may have millions of them.
#[derive(Debug)]
pub(crate) struct First<T, const N: usize> {
    pub(crate) first: Vec<T>,
    pub(crate) more: bool,
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for First<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

struct Elements<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
    type Value = First<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut first = Vec::new();
        while first.len() < N {
            match elements.next_element()? {
                Some(element) => first.push(element),
                None => return Ok(First { first, more: false }),
            }
        }
        let mut more = false;
        while elements.next_element::<IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok(First { first, more })
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

    #[test]
    fn no_more_elements_than_there_is_room_for() {
        let read = |json: &str| {
            let read: First<u8, 2> = serde_json::from_str(json).expect(json);
            (read.first, read.more)
        };
        assert_eq!(read("[]"), (vec![], false));
        assert_eq!(read("[1,2]"), (vec![1, 2], false));
        // Nobody looks at what the others are.
        assert_eq!(read(r#"[1,2,"three",[4]]"#), (vec![1, 2], true));
        for json in ["[1,2,", "[1,2,three]", "{}", "[300]"] {
            assert!(
                serde_json::from_str::<First<u8, 2>>(json).is_err(),
                "{json}"
            );
        }
    }
}
