//! `cargo xtask docs`: the schema of the configuration, and the tables of its keys in
//! `docs/configuration.md`.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::project::Project;
use crate::{demo, files, process, say, setup};

const SCHEMA: &str = "docs/callgate.schema.json";
const DOCUMENT: &str = "docs/configuration.md";
/// The start of the line before a table; the name of an object in the schema follows.
const BEGIN: &str = "<!-- keys of ";
/// The line after a table.
const END: &str = "<!-- end -->\n";

/// Writes the files that are out of date. Tests compare both with the schema.
pub(crate) fn run(project: &Project) -> Result<()> {
    setup::for_build(project)?;
    say::step("build");
    demo::build(project, "dev")?;
    let schema = process::output(Command::new(project.built("callgate")).arg("schema"))?;
    let document = files::read(&project.root.join(DOCUMENT))?;
    let document = with_tables(&document, &serde_json::from_str(&schema)?)?;
    for (name, text) in [(SCHEMA, schema), (DOCUMENT, document)] {
        let file = project.root.join(name);
        if files::read(&file)? != text {
            files::write(&file, &text)?;
            say::result(format_args!("{name} is written"));
        }
    }
    Ok(())
}

/// The text with the tables of this schema in place of its own.
fn with_tables(text: &str, schema: &Value) -> Result<String> {
    let mut parts = text.split(BEGIN);
    let mut new = parts.next().unwrap_or_default().to_owned();
    let parts: Vec<(&str, &str)> = parts
        .map(|part| part.split_once(" -->\n").context("a marker has no end"))
        .collect::<Result<_>>()?;
    let own: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    for (name, rest) in parts {
        let (_, after) = rest
            .split_once(END)
            .with_context(|| format!("the table of {name} needs the line {END:?}"))?;
        let mut table = String::from("| key | value | meaning | default |\n|---|---|---|---|\n");
        rows(schema, name, "", &own, &mut table)?;
        new += &format!("{BEGIN}{name} -->\n{table}{END}{after}");
    }
    Ok(new)
}

/// Adds the rows of an object of the schema. Objects in it without a table of their own are part
/// of the table.
fn rows(schema: &Value, name: &str, above: &str, own: &[&str], table: &mut String) -> Result<()> {
    let object = &schema["definitions"][name];
    let properties = object["properties"].as_object();
    let properties = properties.with_context(|| format!("the schema has no object {name}"))?;
    for (key, property) in properties {
        let path = format!("{above}{key}");
        if let Some(inner) = reference(property)
            && schema["definitions"][inner]["properties"].is_object()
        {
            if !own.contains(&inner) {
                rows(schema, inner, &format!("{path}."), own, table)?;
            }
            continue;
        }
        let description = property["description"].as_str().unwrap_or_default();
        let (meaning, default) = match description.split_once("Default: ") {
            Some((meaning, default)) => (meaning.trim_end(), default.trim_end_matches('.')),
            None => (description, ""),
        };
        let required = object["required"].as_array().into_iter().flatten();
        let default = if required.into_iter().any(|it| it == key) {
            "required"
        } else {
            default
        };
        let value = value(schema, property);
        let meaning = meaning.trim_end_matches('.').replace('|', "\\|");
        *table += &format!("| `{path}` | {value} | {meaning} | {default} |\n");
    }
    Ok(())
}

/// The name of the part of the schema that this one refers to.
fn reference(schema: &Value) -> Option<&str> {
    let reference = schema["$ref"].as_str();
    let reference = reference.or_else(|| schema["allOf"][0]["$ref"].as_str());
    reference?.strip_prefix("#/definitions/")
}

/// The values of a schema, in words.
fn value(root: &Value, schema: &Value) -> String {
    match reference(schema) {
        Some("Duration") => return "time".to_owned(),
        Some("Size") => return "size".to_owned(),
        Some("FolderPath") => return "path".to_owned(),
        Some("Value") => return "text, or looked up".to_owned(),
        Some(name) => return value(root, &root["definitions"][name]),
        None => {}
    }
    let literals = |values: &Value| -> Vec<String> {
        let values = values.as_array().into_iter().flatten();
        let literal = |value: &Value| format!("`{}`", value.as_str().unwrap_or_default());
        values.map(literal).collect()
    };
    if schema["enum"].is_array() {
        return literals(&schema["enum"]).join(", ");
    }
    if let Some(options) = schema["oneOf"].as_array() {
        // Variants with a description have a constant each, and the others one list.
        let options = options.iter().flat_map(|option| match &option["enum"] {
            Value::Null => literals(&Value::Array(vec![option["const"].clone()])),
            several => literals(several),
        });
        return options.collect::<Vec<_>>().join(", ");
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let options: Vec<String> = options.iter().map(|it| value(root, it)).collect();
        return options.join(", or ");
    }
    let plain = match schema["type"].as_str() {
        Some("string") => "text",
        Some("integer") => "integer",
        Some("number") => "number",
        Some("boolean") => "boolean",
        Some("array") => return format!("list: {}", value(root, &schema["items"])),
        Some("object") => "object",
        _ => "any",
    };
    plain.to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn tables_in_docs_are_current() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let schema = files::read(&root.join(SCHEMA)).unwrap();
        let document = files::read(&root.join(DOCUMENT)).unwrap();
        let new = with_tables(&document, &serde_json::from_str(&schema).unwrap()).unwrap();
        assert!(new == document, "run `cargo xtask docs`");
    }
}
