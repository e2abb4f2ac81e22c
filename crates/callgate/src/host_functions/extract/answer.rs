//! What a model answered: the JSON in it, and whether that fits.

use callgate_schema::Schema;
use serde_json::value::{RawValue, to_raw_value};

use crate::models::Said;

/// What became of an answer.
#[derive(Debug)]
pub(super) enum Fit {
    /// It is this value.
    Fits(Box<RawValue>),
    /// It is none that fits.
    Wrong {
        text: String,
        /// At least one.
        problems: Vec<String>,
    },
}

impl Fit {
    /// Holds an answer to a schema; tells at most so many problems.
    pub(super) fn of(said: Said, schema: &Schema, most: usize) -> Self {
        let wrong = |text, problem: &str| Fit::Wrong {
            text,
            problems: vec![problem.to_owned()],
        };
        let value = said.json();
        let text = said.text;
        let Some(value) = value else {
            let problem = match said.cut {
                true => "the answer was cut off at the limit of tokens; make it shorter",
                false => "the answer is no JSON value",
            };
            return wrong(text, problem);
        };
        let problems = schema.problems(&value, text.len(), most);
        if !problems.is_empty() {
            return Fit::Wrong { text, problems };
        }
        match to_raw_value(&value) {
            Ok(value) => Fit::Fits(value),
            Err(_) => wrong(text, "the answer is no JSON value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use callgate_schema::Author;
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[test]
    fn answers() {
        let schema = json!({
            "type": "object",
            "properties": { "id": { "type": "integer" }, "tags": { "items": { "type": "string" } } },
            "required": ["id"],
        });
        let schema = Schema::new(schema, Author::Script).unwrap();
        let check = |text: &str, expected: Expect| {
            let said = Said {
                text: text.to_owned(),
                cut: text.ends_with(':'),
            };
            let shown = match Fit::of(said, &schema, 2) {
                Fit::Fits(value) => value.get().to_owned(),
                Fit::Wrong { problems, .. } => format!("{problems:#?}"),
            };
            expected.assert_eq(&shown);
        };
        check(r#"{"id": 1}"#, expect![[r#"{"id":1}"#]]);
        check("```json\n{\"id\": 1}\n```\n", expect![[r#"{"id":1}"#]]);
        check(
            "Here you are:\n\n{\"id\": 1, \"tags\": [\"}\"]}\n\nAnything else?",
            expect![[r#"{"id":1,"tags":["}"]}"#]],
        );
        check(
            "",
            expect![[r#"
            [
                "the answer is no JSON value",
            ]"#]],
        );
        check(
            "I cannot do this",
            expect![[r#"
            [
                "the answer is no JSON value",
            ]"#]],
        );
        check(
            "{\"id\":",
            expect![[r#"
            [
                "the answer was cut off at the limit of tokens; make it shorter",
            ]"#]],
        );
        check(
            "[1]",
            expect![[r#"
            [
                "the value: [1] is not of type \"object\"",
            ]"#]],
        );
        check(
            r#"{"tags": [1, 2, 3]}"#,
            expect![[r#"
            [
                "the value: \"id\" is a required property",
                "/tags/0: 1 is not of type \"string\"",
            ]"#]],
        );
        check(
            &format!(r#"{{"id": "{}"}}"#, "x".repeat(1000)),
            expect![[r#"
                [
                    "/id: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                ]"#]],
        );
        // So many errors there may be that only the first is made.
        let parts: Vec<_> = (0..2_000)
            .map(|_| json!({ "items": { "type": "string" } }))
            .collect();
        let many = Schema::new(json!({ "allOf": parts }), Author::Script).unwrap();
        let said = Said {
            text: format!("[{}0]", "0,".repeat(5_000)),
            cut: false,
        };
        let Fit::Wrong { problems, .. } = Fit::of(said, &many, 10) else {
            panic!("it fits");
        };
        assert_eq!(problems, ["/0: 0 is not of type \"string\""]);
        check(
            &"[".repeat(100_000),
            expect![[r#"
            [
                "the answer is no JSON value",
            ]"#]],
        );
    }
}
