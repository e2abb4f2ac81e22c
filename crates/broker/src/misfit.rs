//! Why an answer could not be read, without a word of the server's in it: what
//! a parser says quotes what it found, and that may be a secret.

/// One clause: what is wrong, and where.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    // A parser's own message quotes nothing; one of a type that did not fit does.
    if !error.is_data() {
        return said;
    }
    let said = said.strip_suffix(&place).unwrap_or(&said);
    let place = if error.line() > 0 {
        place
    } else {
        String::new()
    };
    for ours in [
        "missing field `",
        "duplicate field `",
        "a name in it begins with ",
    ] {
        if said.starts_with(ours) {
            return format!("{said}{place}");
        }
    }
    // The found is quoted, and what was expected comes after all of it.
    let Some((found, expected)) = said.rsplit_once(", expected ") else {
        return format!("a value does not fit{place}");
    };
    let found = found
        .split(['"', '`'])
        .next()
        .unwrap_or_default()
        .trim_end();
    format!("{found}, expected {expected}{place}")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde::Deserialize;
    use serde::de::Error as _;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "they are only read")]
    struct Known {
        #[serde(default)]
        flag: bool,
        kind: Kind,
        #[serde(default, deserialize_with = "own")]
        own: (),
    }

    fn own<'de, D: serde::Deserializer<'de>>(text: D) -> Result<(), D::Error> {
        let text = String::deserialize(text)?;
        Err(D::Error::custom(format!("{text} is not wanted")))
    }

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let error = serde_json::from_str::<Known>(text).expect_err("it does not fit");
        let described = describe(&error);
        assert!(!described.contains("s3cret"), "{described}");
        expected.assert_eq(&described);
    }

    #[test]
    fn no_value_is_quoted() {
        check(
            r#"{"flag":"s3cret"}"#,
            expect!["invalid type: string, expected a boolean at line 1 column 16"],
        );
        check(
            r#"{"flag":"a\", expected s3cret"}"#,
            expect!["invalid type: string, expected a boolean at line 1 column 30"],
        );
        check(
            r#"{"flag":7}"#,
            expect!["invalid type: integer, expected a boolean at line 1 column 9"],
        );
        check(
            r#"{"kind":"s3cret, expected `s3cret`"}"#,
            expect!["unknown variant, expected `one` at line 1 column 35"],
        );
        check(
            r#"{"s3cret":1}"#,
            expect!["unknown field, expected one of `flag`, `kind`, `own` at line 1 column 9"],
        );
        check(
            r#"{"own":"s3cret"}"#,
            expect!["a value does not fit at line 1 column 16"],
        );
        check(
            r#""s3cret""#,
            expect!["invalid type: string, expected struct Known at line 1 column 8"],
        );
        check("{}", expect!["missing field `kind` at line 1 column 2"]);
        check(
            r#"{"flag":true,"flag":true}"#,
            expect!["duplicate field `flag` at line 1 column 19"],
        );
        check(
            r#"{"flag":s3cret}"#,
            expect!["expected value at line 1 column 9"],
        );
        let value = serde_json::json!({ "flag": "s3cret" });
        let error = serde_json::from_value::<Known>(value).expect_err("it does not fit");
        expect!["invalid type: string, expected a boolean"].assert_eq(&describe(&error));
    }
}
