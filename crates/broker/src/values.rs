//! Values that are read from JSON text of others. A text of many small ones takes up to a
//! hundred times its length, so there is only so much room for all that are read at a time.

use std::fmt;
use std::ops::Deref;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::room::{Places, Room};

/// With names that begin so, serde_json passes on texts of its own: depending on how it was
/// built, it reads an object with one of them as what its text says. Rules would see one
/// value, and the server another.
const NOT_A_NAME: &str = "$serde_json::private::";

/// How many places are taken at once.
const PART: usize = 64;

/// A value in its room, which it leaves when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    value: Value,
    places: Option<Places>,
}

/// Why there is no value.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It has more than it may, whatever else is there.
    TooMany { most: u32 },
    /// The room is for so many, and others are there.
    Full { most: u32 },
    /// It is not what it should be.
    Unfit(serde_json::Error),
}

impl Room {
    /// Reads any value.
    pub(crate) fn value(&self, json: &str) -> Result<Held, Unread> {
        self.read(json, self.most(), |taking, json| {
            Any(taking).deserialize(json)
        })
    }

    /// Reads an object, or null for an empty one.
    pub(crate) fn object_or_null(&self, json: &str) -> Result<Held, Unread> {
        self.read(json, self.most(), |taking, json| {
            json.deserialize_option(Members(taking))
        })
    }

    /// Reads an object of at most so many values beside itself.
    pub(crate) fn object_of(&self, json: &str, most: u32) -> Result<Held, Unread> {
        self.read(json, most, |taking, json| {
            json.deserialize_map(Members(taking))
        })
    }

    fn read<F>(&self, json: &str, most: u32, read: F) -> Result<Held, Unread>
    where
        F: for<'de> FnOnce(
            &mut Taking<'_>,
            &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
        ) -> serde_json::Result<Value>,
    {
        let mut taking = Taking {
            room: self,
            most,
            read: 0,
            places: None,
            unused: 0,
            ended: None,
        };
        let mut text = serde_json::Deserializer::from_str(json);
        let value = read(&mut taking, &mut text);
        let value = value.and_then(|value| text.end().map(|()| value));
        match (value, taking.ended) {
            (Ok(value), _) => {
                let mut places = taking.places;
                if let Some(places) = &mut places {
                    places.give_back(taking.unused);
                }
                Ok(Held { value, places })
            }
            (Err(_), Some(ended)) => Err(ended),
            (Err(unfit), None) => Err(Unread::Unfit(unfit)),
        }
    }
}

impl Held {
    /// The value alone, which keeps its places for as long as there is the room.
    pub(crate) fn kept(self) -> Value {
        if let Some(places) = self.places {
            places.keep();
        }
        self.value
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
    /// How many it may.
    most: u32,
    /// How many it has so far.
    read: u32,
    places: Option<Places>,
    /// Of those.
    unused: usize,
    ended: Option<Unread>,
}

impl Taking<'_> {
    /// A place for one more.
    fn place<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let most = self.most;
        if self.read == most {
            return Err(self.end(Unread::TooMany { most }));
        }
        if self.unused == 0 {
            let room = self.room;
            let part = room.take(PART).map(|part| (part, PART));
            let Some((more, unused)) = part.or_else(|| Some((room.take(1)?, 1))) else {
                return Err(self.end(Unread::Full { most: room.most() }));
            };
            match &mut self.places {
                Some(places) => places.add(more),
                none => *none = Some(more),
            }
            self.unused = unused;
        }
        self.unused -= 1;
        self.read += 1;
        Ok(())
    }

    /// Nothing more is read.
    fn end<E: serde::de::Error>(&mut self, why: Unread) -> E {
        self.ended = Some(why);
        E::custom("too many values")
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
        let read = room.object_or_null(&format!(r#"{{"a":{}}}"#, many(256)));
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
        assert!(room.take(256).is_some());
    }

    #[test]
    fn a_value_leaves_no_more_places_than_it_has() {
        let room = Room::new(256);
        let free = |places: usize| room.take(places).is_some() && room.take(places + 1).is_none();
        let held = room.value(&many(65)).expect("there is room");
        assert!(free(191));
        drop(held);
        let object = |items: u32| format!(r#"{{"a":{}}}"#, many(items));
        let read = room.object_of(&object(101), 100);
        assert!(
            matches!(read, Err(Unread::TooMany { most: 100 })),
            "{read:?}"
        );
        assert!(free(256));
        for left in [156, 56] {
            let held = room.object_of(&object(100), 100).expect("there is room");
            assert_eq!(held.kept()["a"].as_array().map(Vec::len), Some(99));
            assert!(free(left));
        }
        let read = room.object_of(&object(57), 100);
        assert!(matches!(read, Err(Unread::Full { most: 256 })), "{read:?}");
        assert!(room.object_of(&object(56), 100).is_ok());
        for text in ["null", "[1]"] {
            let read = room.object_of(text, 100);
            assert!(matches!(read, Err(Unread::Unfit(_))), "{read:?}");
        }
    }

    #[test]
    fn what_is_no_object() {
        let room = Room::new(256);
        let check = |json: &str, expected: &str| {
            let shown = match room.object_or_null(json) {
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
                let unread = room.object_or_null(&text).expect_err("it is no name");
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
