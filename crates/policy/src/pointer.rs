//! JSON pointers (RFC 6901), read once and followed often.

use std::fmt;

use serde_json::Value;

/// A place in the arguments of a call. The empty pointer is all of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    tokens: Vec<String>,
}

impl Pointer {
    /// The pointer to all of the arguments.
    pub fn whole() -> Self {
        Self {
            text: String::new(),
            tokens: Vec::new(),
        }
    }

    /// Reads a pointer such as `/path` or `/files/0/name`.
    ///
    /// # Errors
    ///
    /// [`PointerError`] when it neither is empty nor begins with `/`, or has a
    /// `~` that is not `~0` or `~1`.
    pub fn new(text: &str) -> Result<Self, PointerError> {
        if text.is_empty() {
            return Ok(Self::whole());
        }
        let Some(tokens) = text.strip_prefix('/') else {
            let text = text.to_owned();
            return Err(PointerError::NoSlash { text });
        };
        if text.replace("~0", "").replace("~1", "").contains('~') {
            return Err(PointerError::Tilde);
        }
        let tokens = tokens.split('/');
        let tokens = tokens.map(|token| token.replace("~1", "/").replace("~0", "~"));
        Ok(Self {
            text: text.to_owned(),
            tokens: tokens.collect(),
        })
    }

    /// The pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names and indexes on the way, unescaped.
    pub(crate) fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The value at this place, if there is one.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.tokens
            .iter()
            .try_fold(value, |value, token| match value {
                Value::Object(members) => members.get(token),
                Value::Array(elements) => elements.get(index(token)?),
                _ => None,
            })
    }
}

/// An array index as RFC 6901 writes it: no sign, no leading zero.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with('0');
    let digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    (plain && digits).then(|| token.parse().ok()).flatten()
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// A text that is no JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointerError {
    /// It does not begin with `/`.
    #[error("{text:?} is no JSON pointer; did you mean \"/{text}\"?")]
    NoSlash {
        /// The text.
        text: String,
    },
    /// It has a `~` that escapes nothing.
    #[error("it is no JSON pointer; write \"~0\" for \"~\" and \"~1\" for \"/\" in a name")]
    Tilde,
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn follows_names_and_indexes() {
        let value = json!({
            "a": { "b": [10, { "c": null }] }, "": 1, "x/y": 2, "m~n": 3, "0": 4, "~1": 5,
        });
        let check = |pointer: &str, expected: Option<Value>| {
            let found = Pointer::new(pointer).expect(pointer).find(&value).cloned();
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
    fn texts_that_are_no_pointer() {
        let check = |text: &str, message: Expect| {
            message.assert_eq(&Pointer::new(text).expect_err(text).to_string());
        };
        check(
            "path",
            expect![[r#""path" is no JSON pointer; did you mean "/path"?"#]],
        );
        check(
            "/a~2",
            expect![[r#"it is no JSON pointer; write "~0" for "~" and "~1" for "/" in a name"#]],
        );
        check(
            "/a~",
            expect![[r#"it is no JSON pointer; write "~0" for "~" and "~1" for "/" in a name"#]],
        );
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in "(/([ab~01/]|~0|~1){0,3}){0,3}") {
            let value = json!({ "a": [{ "b": 1 }, [2]], "b": { "~": 3, "/": [4], "0": 5 }, "": { "": 6 } });
            if let Ok(pointer) = Pointer::new(&text) {
                prop_assert_eq!(pointer.find(&value), value.pointer(&text));
            }
        }

        #[test]
        fn takes_any_text(text in any::<String>()) {
            if let Ok(pointer) = Pointer::new(&text) {
                pointer.find(&json!({ "a": [1] }));
            }
        }
    }
}
