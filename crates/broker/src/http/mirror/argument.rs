//! Reading single arguments of a call. No values are made of the others: nobody has counted
//! them.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// An argument that a header can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    Text(String),
    Truth(bool),
    /// Also one that is written with a fraction of nothing, as `42.0` is.
    Integer(i128),
}

/// Which arguments are wanted, from one object on.
#[derive(Debug, Default)]
pub(super) struct Wanted<'a> {
    /// The number by which it is known itself.
    number: Option<usize>,
    members: FxHashMap<&'a str, Wanted<'a>>,
}

impl<'a> Wanted<'a> {
    /// Adds the one that these names lead to.
    pub(super) fn add(&mut self, number: usize, path: impl IntoIterator<Item = &'a str>) {
        let mut at = self;
        for name in path {
            at = at.members.entry(name).or_default();
        }
        at.number = Some(number);
    }

    /// Those that are there, by their numbers, which are below `count`. Of members of one
    /// name, the last holds. In what is no JSON object, there are none.
    pub(super) fn read(&self, arguments: &str, count: usize) -> Vec<Option<Argument>> {
        let mut found = vec![None; count];
        let reading = Reading {
            wanted: self,
            found: &mut found,
        };
        let mut json = serde_json::Deserializer::from_str(arguments);
        let read = reading.deserialize(&mut json).and_then(|()| json.end());
        match read {
            Ok(()) => found,
            Err(_) => vec![None; count],
        }
    }

    /// Forgets what was found from here on.
    fn clear(&self, found: &mut [Option<Argument>]) {
        if let Some(found) = self.number.and_then(|number| found.get_mut(number)) {
            *found = None;
        }
        for member in self.members.values() {
            member.clear(found);
        }
    }
}

struct Reading<'a> {
    wanted: &'a Wanted<'a>,
    found: &'a mut [Option<Argument>],
}

impl Reading<'_> {
    fn is(self, argument: Argument) {
        let number = self.wanted.number;
        if let Some(found) = number.and_then(|number| self.found.get_mut(number)) {
            *found = Some(argument);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<(), E> {
        self.is(Argument::Truth(truth));
        Ok(())
    }

    fn visit_i64<E>(self, integer: i64) -> Result<(), E> {
        self.is(Argument::Integer(integer.into()));
        Ok(())
    }

    fn visit_u64<E>(self, integer: u64) -> Result<(), E> {
        self.is(Argument::Integer(integer.into()));
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        if number.fract() == 0.0 {
            // What is beyond is the largest one there is.
            self.is(Argument::Integer(number as i128));
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.is(Argument::Text(text.to_owned()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            let Some(wanted) = self.wanted.members.get(name.as_str()) else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            wanted.clear(self.found);
            members.next_value_seed(Reading {
                wanted,
                found: &mut *self.found,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: &[Option<Argument>]) {
        let mut wanted = Wanted::default();
        for (number, path) in [&["a"][..], &["a", "b"], &["c"]].into_iter().enumerate() {
            wanted.add(number, path.iter().copied());
        }
        assert_eq!(wanted.read(arguments, 3), expected, "{arguments}");
    }

    #[test]
    fn of_arguments_what_is_wanted() {
        let text = |text: &str| Some(Argument::Text(text.to_owned()));
        let integer = |integer| Some(Argument::Integer(integer));
        check("{}", &[None, None, None]);
        check(
            r#"{"x":[[{"c":1}],{"c":2}],"a":"1\n","b":3,"c":true}"#,
            &[text("1\n"), None, Some(Argument::Truth(true))],
        );
        check(
            r#"{"a":{"b":-7,"c":1},"c":42.0}"#,
            &[None, integer(-7), integer(42)],
        );
        for none in ["null", "1.5", "[\"x\"]", r#"{"d":"x"}"#] {
            check(&format!(r#"{{"c":{none}}}"#), &[None, None, None]);
        }
        check(
            r#"{"c":18446744073709551615,"a":1e300}"#,
            &[integer(i128::MAX), None, integer(u64::MAX.into())],
        );
    }

    #[test]
    fn of_members_of_one_name_the_last_holds() {
        let one = Some(Argument::Integer(1));
        check(r#"{"a":{"b":1},"a":{"x":1}}"#, &[None, None, None]);
        check(
            r#"{"a":1,"a":{"b":1},"c":2,"c":1}"#,
            &[None, one.clone(), one.clone()],
        );
        check(r#"{"a":{"b":1},"a":1}"#, &[one, None, None]);
    }

    #[test]
    fn what_is_no_object_has_none() {
        for arguments in [
            "",
            "1",
            "[1]",
            r#"{"c":1"#,
            r#"{"c":1} 2"#,
            r#"{"c":1,"x":[}"#,
        ] {
            check(arguments, &[None, None, None]);
        }
    }
}
