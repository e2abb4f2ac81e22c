//! JSON pointers (RFC 6901).

use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;

/// A place in the arguments of a call. The empty pointer is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pointer(String);

impl Pointer {
    /// The pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names and indexes on the way, unescaped.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = String> {
        let tokens = self.0.split('/').skip(1);
        tokens.map(|token| token.replace("~1", "/").replace("~0", "~"))
    }

    /// The value at this place, if there is one.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        value.pointer(&self.0)
    }
}

impl FromStr for Pointer {
    type Err = String;

    /// Reads a pointer such as `/path` or `/files/0/name`.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.to_owned();
        if !text.is_empty() && !text.starts_with('/') {
            return Err(format!(
                "{text:?} is not a JSON pointer; did you mean \"/{text}\"?"
            ));
        }
        if text.replace("~0", "").replace("~1", "").contains('~') {
            let message =
                "it is not a JSON pointer; write \"~0\" for \"~\" and \"~1\" for \"/\" in a name";
            return Err(message.to_owned());
        }
        Ok(Self(text))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[test]
    fn follows_names_and_indexes() {
        let value = json!({
            "a": { "b": [10, { "c": null }] }, "": 1, "x/y": 2, "m~n": 3, "0": 4, "~1": 5,
        });
        let check = |pointer: &str, expected: Option<Value>| {
            let found = pointer
                .parse::<Pointer>()
                .expect(pointer)
                .find(&value)
                .cloned();
            assert_eq!(found, expected, "{pointer}");
        };
        check("", Some(value.clone()));
        check("/a/b/0", Some(json!(10)));
        check("/a/b/1/c", Some(json!(null)));
        check("/", Some(json!(1)));
        check("/x~1y", Some(json!(2)));
        check("/m~0n", Some(json!(3)));
        check("/~01", Some(json!(5)));
        check("/0", Some(json!(4)));
        check("/a/b/01", None);
        check("/a/b/+1", None);
        check("/a/b/-", None);
        check("/a/b/2", None);
        check("/a/b/99999999999999999999999", None);
        check("/a/b/1/c/d", None);
        check("/missing", None);
    }

    #[test]
    fn invalid_pointers_are_refused() {
        let check = |text: &str, message: Expect| {
            message.assert_eq(&text.parse::<Pointer>().expect_err(text).to_string());
        };
        check(
            "path",
            expect![[r#""path" is not a JSON pointer; did you mean "/path"?"#]],
        );
        check(
            "/a~2",
            expect![[r#"it is not a JSON pointer; write "~0" for "~" and "~1" for "/" in a name"#]],
        );
        check(
            "/a~",
            expect![[r#"it is not a JSON pointer; write "~0" for "~" and "~1" for "/" in a name"#]],
        );
    }
}
