//! The definition of a tool and its hash, which grants are bound to.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The members of a tool that define it. A change in any of them changes the definition.
const MEMBERS: [&str; 5] = [
    "annotations",
    "description",
    "inputSchema",
    "name",
    "outputSchema",
];

/// The SHA-256 of a tool's definition in canonical form. Its text is
/// `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionHash([u8; 32]);

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex::encode(self.0))
    }
}

impl fmt::Debug for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DefinitionHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let digits = text.strip_prefix("sha256:").ok_or(NotAHash)?;
        let mut hash = [0; 32];
        hex::decode_to_slice(digits, &mut hash).map_err(|_| NotAHash)?;
        // Capital letters would be a second text of the same hash.
        let is_written_so = hex::encode(hash) == digits;
        is_written_so.then_some(Self(hash)).ok_or(NotAHash)
    }
}

/// The error about a text that is not a definition's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a definition is \"sha256:\" and 64 digits of 0-9 and a-f")]
pub struct NotAHash;

/// A tool's definition: its hash, and a text to compare with other definitions.
#[derive(Clone, PartialEq, Eq)]
pub struct Definition {
    hash: DefinitionHash,
    text: String,
}

impl Definition {
    /// The definition of a tool, from its entry in `tools/list`. Only `name`,
    /// `description`, `inputSchema`, `outputSchema` and `annotations` count;
    /// the order of keys does not.
    pub fn of(tool: &Value) -> Self {
        let members = MEMBERS.iter().filter_map(|member| {
            let value = tool.get(member)?;
            Some(((*member).to_owned(), value.clone()))
        });
        let mut members: Value = members.collect::<Map<_, _>>().into();
        members.sort_all_objects();
        Self {
            hash: DefinitionHash(Sha256::digest(members.to_string()).into()),
            // The alternate form has one thing on each line.
            text: format!("{members:#}"),
        }
    }

    /// The hash over the canonical form.
    pub fn hash(&self) -> &DefinitionHash {
        &self.hash
    }

    /// The canonical form as indented JSON, so that two of them can be compared
    /// line by line. Written by a server: it may be long and may mislead.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Definition({})", self.hash)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn hash_ignores_key_order_and_other_members() {
        let one = Definition::of(&json!({
            "name": "read", "title": "Read", "icons": [], "_meta": { "a": 1 },
            "inputSchema": { "type": "object", "properties": { "b": {}, "a": { "x": 1, "y": [2] } } },
        }));
        let other = Definition::of(&json!({
            "inputSchema": { "properties": { "a": { "y": [2], "x": 1 }, "b": {} }, "type": "object" },
            "name": "read",
        }));
        assert_eq!(one, other);
        expect!["sha256:0320bf7c94f36ee5c27995a2c02d1929844d5e22f157f707500fb0ca4cbf2678"]
            .assert_eq(&one.hash().to_string());
        expect![[r#"
            {
              "inputSchema": {
                "properties": {
                  "a": {
                    "x": 1,
                    "y": [
                      2
                    ]
                  },
                  "b": {}
                },
                "type": "object"
              },
              "name": "read"
            }"#]]
        .assert_eq(one.text());
    }

    #[test]
    fn hash_covers_every_defining_member() {
        let tool = json!({
            "name": "read", "description": "reads", "inputSchema": { "type": "object" },
            "outputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true },
        });
        let hash = *Definition::of(&tool).hash();
        for member in MEMBERS {
            let mut changed = tool.clone();
            changed[member] = json!({ "other": [] });
            assert_ne!(*Definition::of(&changed).hash(), hash, "{member}");
            changed.as_object_mut().expect("an object").remove(member);
            assert_ne!(*Definition::of(&changed).hash(), hash, "{member}");
        }
        let mut reordered = tool.clone();
        reordered["inputSchema"] = json!({ "enum": [1, 2] });
        let before = *Definition::of(&reordered).hash();
        reordered["inputSchema"] = json!({ "enum": [2, 1] });
        assert_ne!(*Definition::of(&reordered).hash(), before);
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = *Definition::of(&json!({ "name": "read" })).hash();
        assert_eq!(hash.to_string().parse(), Ok(hash));
        let digits = "0".repeat(64);
        for text in [
            String::new(),
            digits.clone(),
            format!("sha256:{}", &digits[1..]),
            format!("sha256:{digits}0"),
            format!("SHA256:{digits}"),
            format!("sha256:{}A", &digits[1..]),
            format!("sha256:{}é", &digits[2..]),
        ] {
            assert_eq!(text.parse::<DefinitionHash>(), Err(NotAHash), "{text}");
        }
    }
}
