//! Keys that stand twice in one object of a JSON text. Of two members of one name only one
//! would count, and people see the other.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::problem::{RuleProblem, RuleProblemKind, Step};

/// One problem for each such key, at every depth of a rule.
pub(crate) fn duplicate_keys(rule: &str) -> serde_json::Result<Vec<RuleProblem>> {
    let mut look = Look {
        at: Vec::new(),
        problems: Vec::new(),
    };
    let mut json = serde_json::Deserializer::from_str(rule);
    (&mut look).deserialize(&mut json)?;
    json.end()?;
    Ok(look.problems)
}

struct Look {
    at: Vec<Step>,
    problems: Vec<RuleProblem>,
}

impl<'de> DeserializeSeed<'de> for &mut Look {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Look {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            self.at.push(Step::Key(key.clone()));
            if seen.contains(&key) {
                self.problems.push(RuleProblem {
                    at: self.at.clone(),
                    on_key: true,
                    kind: RuleProblemKind::Key,
                    message: format!("key \"{key}\" stands twice in a rule; remove one"),
                });
            }
            seen.insert(key);
            members.next_value_seed(&mut *self)?;
            self.at.pop();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        for index in 0.. {
            self.at.push(Step::Index(index));
            let element = elements.next_element_seed(&mut *self)?;
            self.at.pop();
            if element.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
