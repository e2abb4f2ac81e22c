//! The arguments of a call: parsed, checked, and written in one canonical form.

use std::sync::Arc;

use callgate_catalog::Tool;
use callgate_schema::{Declared, Fit, Token, TokenKind, extent, tokens};
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// serde_json's limit of nesting.
const MAX_LEVELS: u32 = 127;
/// The limit of values in the arguments of one call. Small values take up to a hundred times as
/// much memory as their text.
const MAX_VALUES: u64 = 1 << 20;
/// serde_json may read an object with such a name as the JSON in its text: without a limit of
/// depth, and as a different value than a server reads.
const PRIVATE_NAMES: &str = "$serde_json::private::";

/// The arguments of a call. Rules, askers, reviewers, the ledger and the server see the same
/// text, however the script wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    text: Arc<str>,
}

impl Arguments {
    /// Parses a JSON object, or null for an empty one. `noun` names it in the error.
    pub(crate) fn parse(given: &str, noun: &str) -> Result<Self, String> {
        if extent(given).parts > MAX_VALUES {
            return Err(format!(
                "the {noun} must have at most {MAX_VALUES} values, and have more; give some of \
                 them as text, or in parts"
            ));
        }
        if tokens(given).any(is_private_name) {
            return Err(format!(
                "a text in the {noun} begins with {PRIVATE_NAMES:?}, which many programs in Rust do \
                 not read as a name; write it differently"
            ));
        }
        let value = match serde_json::from_str(given) {
            Ok(Value::Null) => Value::Object(Map::new()),
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return Err(format!("the {noun} must be one JSON object")),
            Err(error) if error.to_string().starts_with("recursion limit exceeded") => {
                return Err(format!(
                    "the {noun} must be nested at most {MAX_LEVELS} levels deep; give deeper \
                     values as text, or in parts"
                ));
            }
            Err(error) => return Err(format!("the {noun} must be one JSON object: {error}")),
        };
        let text = with_long_integers(given).unwrap_or_else(|| value.to_string());
        Ok(Self { text: text.into() })
    }

    /// The arguments as they are sent.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Parses the arguments again. The value is not kept, because calls that wait for an asker
    /// would hold many of them.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// The first reason why changed arguments do not fit their tool's `inputSchema`, as a clause.
pub(crate) async fn schema_problem(tool: &Tool, arguments: &Arguments) -> Option<String> {
    let schema = tool.definition.input_schema.clone();
    let text = Arc::clone(arguments.text());
    let fit = spawn_blocking(move || Declared::new(schema).fit(&text)).await;
    // The script's own arguments are left to the server, as are those of an unknown schema.
    let Ok(Fit::Wrong { problems }) = fit else {
        return None;
    };
    let first = problems.first().map_or("", |first| first);
    Some(format!(
        "the operator's changed arguments do not fit the tool's inputSchema: {first}"
    ))
}

/// True for a string that, as a name, is one of [`PRIVATE_NAMES`].
fn is_private_name(token: Token<'_>) -> bool {
    if token.kind != TokenKind::String {
        return false;
    }
    if !token.text.contains('\\') {
        let name = token.text.get(1..).unwrap_or_default();
        return name.starts_with(PRIVATE_NAMES);
    }
    let name: Option<String> = serde_json::from_str(token.text).ok();
    name.is_some_and(|name| name.starts_with(PRIVATE_NAMES))
}

/// The canonical text of a JSON text with integers of more than 64 bits, which a [`Value`] does
/// not hold; `None` without such integers. They pass through the value as strings with a mark.
fn with_long_integers(given: &str) -> Option<String> {
    if !tokens(given).any(is_long_integer) {
        return None;
    }
    // Random, so that no text of a script contains the mark.
    let mark = Uuid::new_v4().simple().to_string();
    let mut marked = String::with_capacity(given.len());
    for token in tokens(given) {
        if is_long_integer(token) {
            marked += &format!("\"{mark}{}\"", token.text);
        } else {
            marked += token.text;
        }
    }
    let value: Value = serde_json::from_str(&marked).ok()?;
    let (written, begin) = (value.to_string(), format!("\"{mark}"));
    let mut parts = written.split(&begin);
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (number, behind) = part.split_once('"')?;
        text.push_str(number);
        text.push_str(behind);
    }
    Some(text)
}

fn is_long_integer(token: Token<'_>) -> bool {
    token.kind == TokenKind::Number
        && !token.text.contains(['.', 'e', 'E'])
        && token.text.parse::<i64>().is_err()
        && token.text.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use callgate_catalog::ToolDefinition;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn changed_arguments_must_fit_the_schema() {
        let mut definition = ToolDefinition::new("s", "t");
        definition.input_schema = json!({
            "type": "object",
            "properties": { "n": { "type": "integer" }, "to": { "type": "string" } },
            "required": ["to"],
        });
        let tool = Tool::new("s_t", definition);
        let problem = async |given: &str| {
            let arguments = Arguments::parse(given, "arguments").expect("arguments");
            schema_problem(&tool, &arguments).await
        };
        for wrong in [r#"{"to":"a","n":"7"}"#, r#"{"n":7}"#] {
            let problem = problem(wrong).await.expect("a problem");
            let start = "the operator's changed arguments do not fit the tool's inputSchema: ";
            assert!(problem.starts_with(start), "{problem}");
        }
        assert_eq!(problem(r#"{"to":"a","n":7}"#).await, None);
        let unknown = Tool::new("s_u", ToolDefinition::new("s", "u"));
        let arguments = Arguments::parse("{}", "arguments").expect("arguments");
        assert_eq!(schema_problem(&unknown, &arguments).await, None);
    }

    #[test]
    fn integers_keep_their_digits() {
        for (given, expected) in [
            (
                r#"{"id": 1234567890123456789}"#,
                r#"{"id":1234567890123456789}"#,
            ),
            (
                r#"{"b": [-18446744073709551616, 12345678901234567890123], "b": {"\u0041": 99999999999999999999}}"#,
                r#"{"b":{"A":99999999999999999999}}"#,
            ),
            (
                r#"{"n": [-18446744073709551617, 590295810358705651712,1.50, 1e300]}"#,
                r#"{"n":[-18446744073709551617,590295810358705651712,1.5,1e+300]}"#,
            ),
            (
                "{\"\u{e000}1\": \"\\ue00012345678901234567890123\", \"12345678901234567890123\": 12345678901234567890123}",
                "{\"\u{e000}1\":\"\u{e000}12345678901234567890123\",\"12345678901234567890123\":12345678901234567890123}",
            ),
            (
                r#"{"s": "\"12345678901234567890123", "t": "\\"}"#,
                r#"{"s":"\"12345678901234567890123","t":"\\"}"#,
            ),
        ] {
            let parsed = Arguments::parse(given, "arguments").expect("arguments");
            assert_eq!(**parsed.text(), *expected);
        }
        let long = format!(
            "{{\"s\":\"{}\",\"n\":[{}0]}}",
            "\u{e000}".repeat(300_000),
            "12345678901234567890123,".repeat(10_000)
        );
        let parsed = Arguments::parse(&long, "arguments").expect("arguments");
        assert_eq!(**parsed.text(), *long);
    }

    #[test]
    fn arguments_are_normalized_or_refused() {
        let parse = |json: &str| match Arguments::parse(json, "arguments") {
            Ok(arguments) => {
                assert_eq!(arguments.value().to_string(), **arguments.text());
                arguments.text.to_string()
            }
            Err(problem) => problem,
        };
        let private = r#"{"a":{"\u0024serde_json::private::RawValue":"{}"}}"#;
        for (json, expected) in [
            ("null", "{}"),
            (r#"{"a": 1,"a":2, "b":"\u0041"}"#, r#"{"a":2,"b":"A"}"#),
            (
                r#"{"a":1e400}"#,
                "must be one JSON object: number out of range",
            ),
            ("[]", "must be one JSON object"),
            ("{} {}", "must be one JSON object: trailing characters"),
            (&"{\"a\":".repeat(200), "nested at most 127 levels deep"),
            (
                &format!(r#"{{"a":[{}0]}}"#, "0,".repeat(1 << 20)),
                "at most 1048576 values",
            ),
            (private, "a text in the arguments begins with"),
            (r#"{"$serde_json::private::Number":"1"}"#, "begins with"),
        ] {
            let parsed = parse(json);
            assert!(parsed.contains(expected), "{parsed}");
        }
    }
}
