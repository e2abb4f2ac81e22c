//! Reading the arguments of our own tools: every problem at once, in words that
//! a model can act on.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Bytes of a model's text that are said again.
const SHOWN: usize = 80;

/// The arguments of one call, as far as they were read.
pub(crate) struct Arguments<'a> {
    tool: &'static str,
    given: Option<&'a JsonObject>,
    known: Vec<&'static str>,
    problems: Vec<String>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn of(tool: &'static str, given: Option<&'a JsonObject>) -> Self {
        Self {
            tool,
            given,
            known: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, key: &'static str, what: &str) -> &'a str {
        match self.get(key) {
            Some(Value::String(text)) => return text,
            Some(other) => self.wrong(key, &format!("a string: {what}"), other),
            None => self.problem(format!("{key:?} is missing: {what}, a string")),
        }
        ""
    }

    /// A text that may be left out.
    pub(crate) fn optional_text(&mut self, key: &'static str, what: &str) -> Option<&'a str> {
        match self.get(key)? {
            Value::String(text) => return Some(text),
            other => self.wrong(key, &format!("a string: {what}"), other),
        }
        None
    }

    /// One of these words, the first if it is left out.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let Some(given) = self.get(key) else {
            return choices.first().map(|(_, choice)| *choice);
        };
        let found = choices.iter().find(|(word, _)| given == word);
        if found.is_none() {
            let words: Vec<String> = choices
                .iter()
                .map(|(word, _)| format!("{word:?}"))
                .collect();
            self.wrong(key, &format!("one of {}", words.join(", ")), given);
        }
        found.map(|(_, choice)| *choice)
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn count(&mut self, key: &'static str, most: usize, default: usize) -> usize {
        let Some(given) = self.get(key) else {
            return default;
        };
        let count = given.as_u64().and_then(|count| usize::try_from(count).ok());
        match count.filter(|count| (1..=most).contains(count)) {
            Some(count) => count,
            None => {
                self.wrong(key, &format!("a whole number from 1 to {most}"), given);
                default
            }
        }
    }

    /// One to `most` texts.
    pub(crate) fn texts(&mut self, key: &'static str, most: usize, what: &str) -> Vec<&'a str> {
        let wanted = format!("an array of 1 to {most} strings: {what}");
        let Some(given) = self.get(key) else {
            self.problem(format!("{key:?} is missing: {wanted}"));
            return Vec::new();
        };
        let texts: Option<Vec<&str>> = match given {
            Value::Array(items) => items.iter().map(Value::as_str).collect(),
            _ => None,
        };
        match texts {
            Some(texts) if (1..=most).contains(&texts.len()) => texts,
            Some(texts) => {
                self.problem(format!(
                    "{key:?} must be {wanted}, and this has {}",
                    texts.len()
                ));
                Vec::new()
            }
            None if given.is_array() => {
                self.problem(format!(
                    "{key:?} must be {wanted}, and this has other things in it"
                ));
                Vec::new()
            }
            None => {
                self.wrong(key, &wanted, given);
                Vec::new()
            }
        }
    }

    /// An object; an empty one if it is left out.
    pub(crate) fn object(&mut self, key: &'static str, what: &str) -> JsonObject {
        match self.get(key) {
            None => JsonObject::new(),
            Some(Value::Object(object)) => object.clone(),
            Some(other) => {
                self.wrong(key, &format!("an object: {what}"), other);
                JsonObject::new()
            }
        }
    }

    /// What is wrong with the arguments, unless nothing is.
    ///
    /// # Errors
    ///
    /// One line for each problem.
    pub(crate) fn check(mut self) -> Result<(), String> {
        for key in self.given.into_iter().flat_map(JsonObject::keys) {
            if self.known.contains(&key.as_str()) {
                continue;
            }
            let shown = shown(key);
            self.problems
                .push(match nearest(key, self.known.iter().copied()) {
                    Some(near) => format!("there is no argument {shown}; did you mean {near:?}?"),
                    None if self.known.is_empty() => {
                        format!("there is no argument {shown}: it takes none")
                    }
                    None => format!(
                        "there is no argument {shown}; the arguments are {}",
                        self.known.join(", ")
                    ),
                });
        }
        if self.problems.is_empty() {
            return Ok(());
        }
        let tool = self.tool;
        Err(format!(
            "{tool} was not called:\n- {}",
            self.problems.join("\n- ")
        ))
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        // Many clients write null for what they leave out.
        self.given?.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, key: &str, wanted: &str, given: &Value) {
        let given = match given {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => shown(text),
            Value::Array(_) => "an array".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        self.problem(format!("{key:?} must be {wanted}, and this is {given}"));
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }
}

/// A text of a model's as it is said again: quoted, and no longer than it need be.
pub(crate) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN);
    match text.get(..end) {
        Some(head) if end < text.len() => format!("{:?}", format!("{head}…")),
        _ => format!("{text:?}"),
    }
}

/// The candidate that a word was probably meant to be.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if word.len() > 300 {
        return None;
    }
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(given: Value, expected: Expect) {
        let given = given.as_object();
        let mut arguments = Arguments::of("find", given);
        let query = arguments.text("query", "what to look for");
        let detail = arguments.choice("detail", &[("names", 1), ("full", 2)]);
        let limit = arguments.count("limit", 50, 10);
        let server = arguments.optional_text("server", "its name");
        let names = arguments.texts("names", 2, "the tools");
        let args = arguments.object("args", "the tool's");
        let said = match arguments.check() {
            Ok(()) => format!("{query:?} {detail:?} {limit} {server:?} {names:?} {args:?}"),
            Err(problems) => problems,
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn arguments_that_fit() {
        check(
            json!({ "query": "a", "names": ["x"] }),
            expect![[r#""a" Some(1) 10 None ["x"] {}"#]],
        );
        check(
            json!({ "query": "a", "detail": "full", "limit": 50, "server": "s", "names": ["x", "y"], "args": { "b": 1 } }),
            expect![[r#""a" Some(2) 50 Some("s") ["x", "y"] {"b": Number(1)}"#]],
        );
        check(
            json!({ "query": "a", "detail": null, "server": null, "names": ["x"] }),
            expect![[r#""a" Some(1) 10 None ["x"] {}"#]],
        );
    }

    #[test]
    fn all_problems_at_once() {
        check(
            json!({}),
            expect![[r#"
            find was not called:
            - "query" is missing: what to look for, a string
            - "names" is missing: an array of 1 to 2 strings: the tools"#]],
        );
        check(
            json!({
                "qeury": "a", "zzz": 1, "query": 7, "detail": "all", "limit": 51,
                "server": ["s"], "names": ["a", 1], "args": "x".repeat(100),
            }),
            expect![[r#"
                find was not called:
                - "query" must be a string: what to look for, and this is 7
                - "detail" must be one of "names", "full", and this is "all"
                - "limit" must be a whole number from 1 to 50, and this is 51
                - "server" must be a string: its name, and this is an array
                - "names" must be an array of 1 to 2 strings: the tools, and this has other things in it
                - "args" must be an object: the tool's, and this is "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
                - there is no argument "qeury"; did you mean "query"?
                - there is no argument "zzz"; the arguments are query, detail, limit, server, names, args"#]],
        );
        check(
            json!({ "query": " ", "limit": 1.5, "names": [] }),
            expect![[r#"
                find was not called:
                - "limit" must be a whole number from 1 to 50, and this is 1.5
                - "names" must be an array of 1 to 2 strings: the tools, and this has 0"#]],
        );
    }
}
