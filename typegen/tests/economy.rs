//! What declarations cost a model that reads them, and that nothing is missing
//! from them for it: measured on the 117 tools of a real server.
//!
//! `cargo test -p callgate-typegen --test economy` checks the figures of
//! docs/types.md; `UPDATE_EXPECT=1` writes them anew.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use std::path::Path;

use callgate_typegen::names::assign;
use callgate_typegen::{Declarations, Detail, ToolSchema, generate};
use expect_test::expect;
use serde_json::{Map, Value, json};

/// The tools, if the corpus is there.
#[expect(clippy::print_stderr, reason = "a test that skips says why")]
fn corpus() -> Option<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/corpus/github-mcp-server.tools.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: ../shared/corpus is not beside the checkout");
        return None;
    };
    let mut list: Value = serde_json::from_str(&text).unwrap();
    Some(list["tools"].as_array_mut().unwrap().split_off(0))
}

fn declare(tools: &[Value]) -> Declarations {
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let names: Vec<String> = tools.iter().map(name).collect();
    let functions = assign(names.iter().map(|name| ("github", name.as_str())));
    let schemas: Vec<ToolSchema<'_>> = tools
        .iter()
        .zip(&names)
        .map(|(raw, name)| ToolSchema {
            server: "github",
            tool: name,
            function: functions.function("github", name).unwrap(),
            title: raw["annotations"]["title"].as_str(),
            description: raw["description"].as_str(),
            input: &raw["inputSchema"],
            output: raw.get("outputSchema"),
        })
        .collect();
    generate(&schemas)
}

#[test]
fn what_a_real_catalog_costs() {
    let Some(tools) = corpus() else { return };
    let listed: Vec<Value> = tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool["name"],
                "description": tool["description"],
                "inputSchema": tool["inputSchema"],
            })
        })
        .collect();
    let vocabulary = tiktoken_rs::o200k_base().unwrap();
    let mut table = format!("{:<14}{:>10}{:>10}\n", "", "characters", "tokens");
    let mut row = |label: &str, text: &str| {
        let (characters, tokens) = (text.chars().count(), vocabulary.encode_ordinary(text).len());
        table.push_str(&format!("{label:<14}{characters:>10}{tokens:>10}\n"));
    };
    row("compact JSON", &Value::from(listed).to_string());
    let declarations = declare(&tools);
    for detail in Detail::ALL {
        row(detail.as_str(), &declarations.text(detail, |_| true));
    }
    expect![[r#"
                      characters    tokens
        compact JSON      113511     25103
        name                3180       647
        summary            11437      2311
        signature          29207      7200
        full               87356     20049
    "#]]
    .assert_eq(&table);
}

/// Everything a caller needs is in the declaration of each tool by itself and,
/// as far as it is text, in that of all of them.
#[test]
fn nothing_is_missing() {
    let Some(tools) = corpus() else { return };
    let declarations = declare(&tools);
    // Nothing is widened or shortened, so everything has to be found.
    assert_eq!(declarations.degradations(), []);
    let all = squeezed(&declarations.text(Detail::Full, |_| true));
    let mut checked = Checked::default();
    for tool in &tools {
        let function = format!("github_{}", tool["name"].as_str().unwrap());
        let alone = declarations.text(Detail::Full, |name| name == function);
        let place = Place {
            all: &all,
            squeezed: squeezed(&alone),
            comments: comments(&alone),
        };
        place.has_text(&tool["description"], &mut checked);
        place.has_schema("", &tool["inputSchema"], &mut checked);
    }
    expect![[r#"
        Checked {
            descriptions: 777,
            properties: 658,
            values: 493,
            constraints: 132,
        }
    "#]]
    .assert_debug_eq(&checked);
}

/// How many things were looked for.
#[derive(Debug, Default)]
struct Checked {
    descriptions: usize,
    properties: usize,
    values: usize,
    constraints: usize,
}

/// A tool's declaration, where the tool's parts are looked for.
struct Place<'a> {
    all: &'a str,
    squeezed: String,
    /// What is said of properties: their keys and comments.
    comments: Vec<(String, String)>,
}

impl Place<'_> {
    fn has_text(&self, text: &Value, checked: &mut Checked) {
        let Some(text) = text.as_str().map(squeezed) else {
            return;
        };
        // Notes may go on where a parenthesis ended.
        let text = text.trim_end_matches(')');
        assert!(self.squeezed.contains(text), "{text}");
        assert!(self.all.contains(text), "{text}");
        checked.descriptions += 1;
    }

    /// Looks for a schema under a property's key; an empty one is the input's.
    fn has_schema(&self, key: &str, schema: &Value, checked: &mut Checked) {
        let empty = Map::new();
        let map = schema.as_object().unwrap_or(&empty);
        for (keyword, value) in map {
            match keyword.as_str() {
                "description" => self.has_text(value, checked),
                "properties" => {
                    for (key, schema) in value.as_object().unwrap() {
                        assert!(
                            self.squeezed.contains(&format!("{key}:"))
                                || self.squeezed.contains(&format!("{key}?:")),
                            "{key}"
                        );
                        checked.properties += 1;
                        self.has_schema(key, schema, checked);
                    }
                }
                "items" | "additionalProperties" => self.has_schema(key, value, checked),
                "anyOf" | "oneOf" => {
                    for schema in value.as_array().unwrap() {
                        self.has_schema(key, schema, checked);
                    }
                }
                "enum" => {
                    for value in value.as_array().unwrap() {
                        let value = value.to_string();
                        assert!(self.squeezed.contains(&squeezed(&value)), "{key}: {value}");
                        checked.values += 1;
                    }
                }
                "minLength" | "minItems" if value == 1 => self.has_note(key, "non-empty", checked),
                "minLength" | "minItems" if value == 0 => {}
                "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems"
                | "default" => self.has_note(key, &value.to_string(), checked),
                "type" | "required" => {}
                other => panic!("{other} is not looked for"),
            }
        }
    }

    /// Some comment of the property has this in it.
    fn has_note(&self, key: &str, note: &str, checked: &mut Checked) {
        let found = self.comments.iter().any(|(name, comment)| {
            // Beside an upper bound, `1` is the lower one.
            let lower = note == "non-empty" && comment.contains("1–");
            name == key && (comment.contains(note.trim_matches('"')) || lower)
        });
        assert!(found, "{key}: {note} in {:?}", self.comments);
        checked.constraints += 1;
    }
}

/// A text without white space, which declarations lay out in their own way.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The comments of a text, each with the key of the property that follows it.
fn comments(text: &str) -> Vec<(String, String)> {
    let pieces = text.split("/**").skip(1);
    pieces
        .filter_map(|piece| {
            let (comment, rest) = piece.split_once("*/")?;
            let key = rest.trim_start().split(['?', ':']).next()?;
            Some((key.to_owned(), comment.to_owned()))
        })
        .collect()
}
