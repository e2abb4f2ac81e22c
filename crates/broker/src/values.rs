//! Values that are read from JSON text of others. A text of many small ones takes up to a
//! hundred times its length, so there is only so much room for all that are read at a time.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// With names that begin so, serde_json passes on texts of its own: depending on how it was
/// built, it reads an object with one of them as what its text says. Rules would see one
/// value, and the server another.
const NOT_A_NAME: &str = "$serde_json::private::";

/// How many places are taken at once.
const PART: u32 = 64;

/// Room for so many values.
#[derive(Debug)]
pub(crate) struct Room {
    most: u32,
    left: Arc<Semaphore>,
}

/// A value in its room, which it leaves when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    value: Value,
    _places: Option<OwnedSemaphorePermit>,
}

/// Why there is no value.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It has more than this room is for.
    TooMany { most: u32 },
    /// The room is for so many, and others are there.
    Full { most: u32 },
    /// It is not what it should be.
    Unfit(serde_json::Error),
}

impl Room {
    /// `most` is whole parts of [`PART`].
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            left: Arc::new(Semaphore::new(most as usize)),
        }
    }

    /// Reads any value.
    pub(crate) fn value(&self, json: &str) -> Result<Held, Unread> {
        self.read(json, |taking, json| Any(taking).deserialize(json))
    }

    /// Reads an object, or null for an empty one.
    pub(crate) fn object(&self, json: &str) -> Result<Held, Unread> {
        self.read(json, |taking, json| {
            json.deserialize_option(Members(taking))
        })
    }

    fn read<F>(&self, json: &str, read: F) -> Result<Held, Unread>
    where
        F: for<'de> FnOnce(
            &mut Taking<'_>,
            &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
        ) -> serde_json::Result<Value>,
    {
        let mut taking = Taking {
            room: self,
            places: None,
            unused: 0,
            ended: None,
        };
        let mut text = serde_json::Deserializer::from_str(json);
        let value = read(&mut taking, &mut text);
        let value = value.and_then(|value| text.end().map(|()| value));
        match (value, taking.ended) {
            (Ok(value), _) => Ok(Held {
                value,
                _places: taking.places,
            }),
            (Err(_), Some(ended)) => Err(ended),
            (Err(unfit), None) => Err(Unread::Unfit(unfit)),
        }
    }
}

impl Deref for Held {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

/// The places that a text takes, as it is read.
struct Taking<'a> {
    room: &'a Room,
    places: Option<OwnedSemaphorePermit>,
    /// Of those.
    unused: u32,
    ended: Option<Unread>,
}

impl Taking<'_> {
    /// A place for one more.
    fn place<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.unused == 0 {
            let left = Arc::clone(&self.room.left);
            let Ok(more) = left.try_acquire_many_owned(PART) else {
                let taken = self.places.as_ref().map_or(0, |taken| taken.num_permits());
                let most = self.room.most;
                self.ended = Some(match taken >= most as usize {
                    true => Unread::TooMany { most },
                    false => Unread::Full { most },
                });
                return Err(E::custom("too many values"));
            };
            match &mut self.places {
                Some(places) => places.merge(more),
                none => *none = Some(more),
            }
            self.unused = PART;
        }
        self.unused -= 1;
        Ok(())
    }
}

/// Reads any value.
struct Any<'a, 'room>(&'a mut Taking<'room>);

impl<'de> DeserializeSeed<'de> for Any<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        self.0.place()?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(Any(&mut *self.0))? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Value, A::Error> {
        Members(self.0).visit_map(members)
    }
}

/// Reads an object, or null for an empty one.
struct Members<'a, 'room>(&'a mut Taking<'room>);

impl<'de> Visitor<'de> for Members<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Object(Map::new()))
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.starts_with(NOT_A_NAME) {
                return Err(A::Error::custom(format!(
                    "a name in it begins with {NOT_A_NAME:?}, which many programs in Rust do not \
                     read as a name; name it otherwise"
                )));
            }
            let member = members.next_value_seed(Any(&mut *self.0))?;
            read.insert(name, member);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn many(values: u32) -> String {
        format!("[{}0]", "0,".repeat(values as usize - 2))
    }

    #[test]
    fn there_is_room_for_so_many_and_again_when_they_are_gone() {
        let room = Room::new(256);
        let all = room.value(&many(256)).expect("there is room");
        assert!(matches!(room.value("0"), Err(Unread::Full { most: 256 })));
        drop(all);
        let read = room.object(&format!(r#"{{"a":{}}}"#, many(256)));
        assert!(read.is_ok(), "the arguments themselves are none: {read:?}");
        drop(read);
        // Nothing after the first that has none is read.
        for text in [many(257), format!("[{}", "{},".repeat(256))] {
            let read = room.value(&text);
            assert!(
                matches!(read, Err(Unread::TooMany { most: 256 })),
                "{read:?}"
            );
        }
        assert_eq!(room.left.available_permits(), 256);
    }

    #[test]
    fn what_is_no_object() {
        let room = Room::new(256);
        let check = |json: &str, expected: &str| {
            let shown = match room.object(json) {
                Ok(held) => held.to_string(),
                Err(Unread::Unfit(error)) => error.to_string(),
                Err(other) => format!("{other:?}"),
            };
            assert_eq!(shown, expected, "{json}");
        };
        check(" null ", "{}");
        check(r#"{"a":1,"a":2}"#, r#"{"a":2}"#);
        check(
            "[1]",
            "invalid type: sequence, expected a map at line 1 column 0",
        );
        check("{} 1", "trailing characters at line 1 column 4");
        check(r#"{"a"}"#, "expected `:` at line 1 column 5");
        for name in [
            "$serde_json::private::RawValue",
            "\\u0024serde_json::private::Number",
        ] {
            for text in [
                format!(r#"{{"{name}":"[1]"}}"#),
                format!(r#"{{"v":[{{"{name}":"[1]"}}]}}"#),
            ] {
                let unread = room.object(&text).expect_err("it is no name");
                let Unread::Unfit(error) = unread else {
                    panic!("{unread:?}");
                };
                let begins = "a name in it begins with \"$serde_json::private::\", which";
                assert!(error.to_string().starts_with(begins), "{error}");
            }
        }
        check(r#"{"$serde_json":1}"#, r#"{"$serde_json":1}"#);
    }

    fn text() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|it| it.to_string()),
            any::<i64>().prop_map(|it| it.to_string()),
            any::<u64>().prop_map(|it| it.to_string()),
            any::<f64>().prop_map(|it| Value::from(it).to_string()),
            "-?[0-9]{1,30}",
            any::<String>().prop_map(|it| Value::from(it).to_string()),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[{}]", items.join(" ,"))),
                proptest::collection::vec(("[a-c]", inner), 0..4).prop_map(|members| {
                    let members = members.iter().map(|(name, it)| format!("\"{name}\": {it}"));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_others_read(text in text(), cut in any::<prop::sample::Index>()) {
            let room = Room::new(1 << 10);
            let broken = &text[..text.floor_char_boundary(cut.index(text.len()))];
            for text in [text.as_str(), broken] {
                match (room.value(text), serde_json::from_str::<Value>(text)) {
                    (Ok(held), Ok(value)) => prop_assert_eq!(&*held, &value),
                    (Err(Unread::Unfit(ours)), Err(theirs)) => {
                        prop_assert_eq!(ours.to_string(), theirs.to_string());
                    }
                    other => prop_assert!(false, "{text}: {other:?}"),
                }
            }
        }
    }
}
