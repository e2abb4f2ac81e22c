//! The text of a tool that an embeddings model turns into a vector.

use callgate_catalog::Tool;

/// The limit of a description in the text, in bytes: small models do not read more.
const MAX_DESCRIPTION: usize = 1_000;
/// The limit of parameters in the text.
const MAX_PARAMETERS: usize = 30;
/// The limit of a name or title, in bytes.
const MAX_NAME: usize = 100;

/// Server, name as words, title, description and the parameters' names.
pub(super) fn vector_text(tool: &Tool) -> String {
    let definition = &tool.definition;
    let mut text = format!("{}: {}", words(&definition.server), words(&definition.name));
    if let Some(title) = definition.shown_title() {
        text.push_str(" - ");
        text.push_str(start_of(title, MAX_NAME));
    }
    if let Some(description) = &definition.description {
        text.push_str(". ");
        text.push_str(start_of(description, MAX_DESCRIPTION));
    }
    let parameters = definition.input_schema["properties"].as_object();
    let names = parameters.into_iter().flat_map(|names| names.keys());
    let names: Vec<String> = names.take(MAX_PARAMETERS).map(|name| words(name)).collect();
    if !names.is_empty() {
        text.push_str(". Takes ");
        text.push_str(&names.join(", "));
    }
    text
}

fn start_of(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// `createIssue` and `create_issue` as `create issue`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut was_lower = false;
    for c in start_of(name, MAX_NAME).chars() {
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        } else {
            words.push(' ');
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use callgate_catalog::{Catalog, ToolDefinition};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn vector_text_joins_name_description_and_parameters() {
        let text = |raw: Value| {
            let definition = ToolDefinition::parse("issue-tracker", &raw).unwrap();
            vector_text(&Catalog::build(vec![definition]).tools()[0])
        };
        let raw = json!({
            "name": "createIssue2",
            "title": "Create an issue",
            "description": "Files an issue.\nReturns its id.",
            "inputSchema": { "properties": { "issueTitle": {}, "HTTPUrl": {} } },
        });
        assert_eq!(
            text(raw),
            "issue tracker: create issue2 - Create an issue. Files an issue.\nReturns its id.. \
             Takes issue title, httpurl"
        );
        let long = "ü".repeat(2_000);
        let raw = json!({ "name": "x", "description": long, "inputSchema": { "properties": 5 } });
        assert_eq!(text(raw).len(), 1_018);
    }
}
