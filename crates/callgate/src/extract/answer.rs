//! What a model answered: the JSON in it, and whether that fits.

use serde_json::value::{RawValue, to_raw_value};

use super::schema::Schema;
use crate::models::Said;

/// The most characters of one problem.
const MAX_PROBLEM: usize = 200;

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

impl Schema {
    /// Holds an answer to the schema; tells at most so many problems.
    pub(super) fn fit(&self, said: Said, most: usize) -> Fit {
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
        let errors = self.validator().iter_errors(&value).take(most);
        let problems: Vec<String> = errors
            .map(|error| {
                let path = error.instance_path().to_string();
                let place = if path.is_empty() { "the value" } else { &path };
                let problem = format!("{place}: {error}");
                problem.chars().take(MAX_PROBLEM).collect()
            })
            .collect();
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
        let schema = Schema::read(&schema.to_string()).unwrap();
        let check = |text: &str, expected: Expect| {
            let said = Said {
                text: text.to_owned(),
                cut: text.ends_with(':'),
            };
            let shown = match schema.fit(said, 2) {
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
        check(
            &"[".repeat(100_000),
            expect![[r#"
            [
                "the answer is no JSON value",
            ]"#]],
        );
    }
}
