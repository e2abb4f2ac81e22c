//! Finds keys that stand twice in one object of a JSON text. Only one of the two members would
//! count, and a person may read the other.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::problem::{RuleProblem, Step};

/// One problem for each such key, at every depth of a rule.
pub(crate) fn duplicate_keys(rule: &str) -> serde_json::Result<Vec<RuleProblem>> {
    let mut problems = Vec::new();
    let rule: Node = serde_json::from_str(rule)?;
    rule.check(&mut Vec::new(), &mut problems);
    Ok(problems)
}

/// A JSON value that keeps all members of its objects.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Node {
    Object(Members),
    Array(Vec<Node>),
    Other(IgnoredAny),
}

struct Members(Vec<(String, Node)>);

impl Node {
    fn check(&self, at: &mut Vec<Step>, problems: &mut Vec<RuleProblem>) {
        match self {
            Self::Object(Members(members)) => {
                let mut seen = HashSet::new();
                for (key, value) in members {
                    at.push(Step::Key(key.clone()));
                    if !seen.insert(key) {
                        problems.push(RuleProblem {
                            at: at.clone(),
                            on_key: true,
                            message: format!("key \"{key}\" stands twice in a rule; remove one"),
                        });
                    }
                    value.check(at, problems);
                    at.pop();
                }
            }
            Self::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    at.push(Step::Index(index));
                    element.check(at, problems);
                    at.pop();
                }
            }
            Self::Other(_) => {}
        }
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AllMembers;

        impl<'de> Visitor<'de> for AllMembers {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(AllMembers)
    }
}
