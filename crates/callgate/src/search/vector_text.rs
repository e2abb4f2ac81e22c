//! What of a tool becomes a vector.

use callgate_catalog::CatalogTool;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Bytes of a description that are read; small models read no more.
const MAX_DESCRIPTION: usize = 1_000;
/// Parameters that are named.
const MAX_PARAMETERS: usize = 30;
/// Bytes of the name of one.
const MAX_NAME: usize = 100;

/// What a vector is known by: the hash of the text that it was made of, which
/// follows from the server's name and the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(pub(super) [u8; 32]);

impl Key {
    pub(super) fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

/// What a tool is said to do, as a text for a model of embeddings: the server,
/// the name as words, the title, the description and the parameters' names.
pub(super) fn of(tool: &CatalogTool) -> String {
    let definition = &tool.definition;
    let mut text = format!("{}: {}", words(&definition.server), words(&definition.name));
    let title = definition
        .title
        .as_deref()
        .or(definition.annotations.title.as_deref());
    if let Some(title) = title {
        text.push_str(" - ");
        text.push_str(beginning(title, MAX_NAME));
    }
    if let Some(description) = &definition.description {
        text.push_str(". ");
        text.push_str(beginning(description, MAX_DESCRIPTION));
    }
    let parameters = definition
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    let names = parameters
        .into_iter()
        .flatten()
        .map(|(name, _)| words(name));
    let names: Vec<String> = names.take(MAX_PARAMETERS).collect();
    if !names.is_empty() {
        text.push_str(". Takes ");
        text.push_str(&names.join(", "));
    }
    text
}

fn beginning(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// `createIssue` and `create_issue` as `create issue`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut was_lower = false;
    for c in beginning(name, MAX_NAME).chars() {
        if !c.is_alphanumeric() {
            words.push(' ');
            was_lower = false;
            continue;
        }
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        words.extend(c.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callgate_catalog::{Catalog, ToolDefinition};
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_tools() {
        let check = |raw: Value, expected: Expect| {
            let definition = ToolDefinition::parse("issue-tracker", &raw).unwrap();
            let catalog = Arc::new(Catalog::build(vec![definition]));
            expected.assert_eq(&of(&catalog.tools()[0]));
        };
        check(
            json!({
                "name": "createIssue2",
                "title": "Create an issue",
                "description": "Files an issue.\nReturns its id.",
                "inputSchema": { "properties": { "issueTitle": {}, "HTTPUrl": {} } },
            }),
            expect![[r#"
                issue tracker: create issue2 - Create an issue. Files an issue.
                Returns its id.. Takes issue title, httpurl"#]],
        );
        check(
            json!({ "name": "x", "inputSchema": {} }),
            expect!["issue tracker: x"],
        );
        let long = "ü".repeat(2_000);
        let raw = json!({ "name": "x", "description": long, "inputSchema": { "properties": 5 } });
        let definition = ToolDefinition::parse("s", &raw).unwrap();
        assert_eq!(
            of(&Catalog::build(vec![definition]).tools()[0]).len(),
            1_006
        );
    }
}
