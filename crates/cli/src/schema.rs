//! `callgate schema`: the JSON Schema of the configuration.

use callgate::config::schema;
use callgate_serve::config::ServeConfig;

/// The schema with all sections, as JSON text.
pub fn text() -> String {
    format!("{:#}\n", schema::<ServeConfig>())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use callgate::config::{ConfigError, Loaded};
    use serde_json::{Map, Value, json};

    use super::*;

    fn load(file: &Value) -> Result<Loaded<ServeConfig>, ConfigError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("callgate.json");
        std::fs::write(&path, file.to_string()).expect("a file");
        Loaded::load(&path, |_| None)
    }

    /// A schema of a value, and the parts that it may refer to.
    #[derive(Clone, Copy)]
    struct Node<'s> {
        root: &'s Value,
        schema: &'s Value,
    }

    impl<'s> Node<'s> {
        fn of(self, schema: &'s Value) -> Self {
            let root = self.root;
            let target = schema["$ref"]
                .as_str()
                .map(|it| &root["definitions"][it.replace("#/definitions/", "")]);
            match (target, &schema["allOf"][0]) {
                (Some(target), _) => Self {
                    root,
                    schema: target,
                },
                (None, Value::Null) => Self { root, schema },
                (None, only) => self.of(only),
            }
        }

        fn properties(self) -> impl Iterator<Item = (&'s String, &'s Value)> {
            self.schema["properties"].as_object().into_iter().flatten()
        }

        /// A value of the right type with every key; each object has the key `extra`, too.
        fn sample(self, extra: Option<&str>) -> Value {
            let schema = self.schema;
            let part = |part| self.of(part).sample(extra);
            if let Some(example) = schema["examples"].get(0).or(schema["enum"].get(0)) {
                return example.clone();
            }
            if let Some(options) = schema["anyOf"].as_array() {
                return options.last().map(part).expect("an option");
            }
            if let Some(option) = schema["oneOf"].get(0) {
                return option.get("const").unwrap_or(&option["enum"][0]).clone();
            }
            match schema["type"].as_str() {
                Some("object") => {
                    let members = self.properties().map(|(key, of)| (key.clone(), part(of)));
                    let mut members: Map<String, Value> = members.collect();
                    match &schema["additionalProperties"] {
                        of @ Value::Object(_) => members.insert("a".to_owned(), part(of)),
                        _ => extra.and_then(|extra| members.insert(extra.to_owned(), json!(1))),
                    };
                    members.into()
                }
                Some("array") => json!([part(&schema["items"])]),
                Some("boolean") => json!(false),
                Some("string") => json!("text"),
                _ => json!(1),
            }
        }

        /// The defaults of all keys.
        fn defaults(self) -> Map<String, Value> {
            let defaults = self.properties().filter_map(|(key, schema)| {
                let of = self.of(schema);
                let default = schema.get("default").cloned();
                let inner =
                    || Some(of.defaults().into()).filter(|_| of.schema["required"].is_null());
                Some((key.clone(), default.or_else(inner)?))
            });
            defaults
                .filter(|(_, default)| *default != json!({}))
                .collect()
        }
    }

    #[test]
    fn schema_in_docs_is_current() {
        expect_test::expect_file!["../../../docs/callgate.schema.json"].assert_eq(&text());
    }

    #[test]
    fn reader_accepts_keys_of_schema_and_no_others() {
        let root = schema::<ServeConfig>();
        let node = Node {
            root: &root,
            schema: &root,
        };
        let unknown = |file: &Value| {
            let problems = load(file)
                .expect_err("values of the wrong form")
                .to_string();
            let unknown = problems.lines().filter(|line| line.contains("unknown key"));
            unknown.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(unknown(&node.sample(None)), Vec::<String>::new());
        let with_extra = node.sample(Some("zzz"));
        let objects = with_extra.to_string().matches("\"zzz\"").count();
        assert!(objects > 20, "{with_extra}");
        assert_eq!(unknown(&with_extra).len(), objects);
    }

    #[test]
    fn unknown_keys_do_not_validate() {
        let root = schema::<ServeConfig>();
        let validator = jsonschema::validator_for(&root).expect("a schema");
        for file in [
            json!({ "zzz": 1 }),
            json!({ "servers": {} }),
            json!({ "mcpServers": { "a": { "command": "a", "autoApprove": [] } } }),
            json!({ "serve": { "http": { "port": 80 } } }),
            json!({ "limits": { "timeout": null } }),
            json!({ "limits": { "timeout": "2 seconds" } }),
            json!({ "limits": { "callsInFlight": 0 } }),
        ] {
            assert!(!validator.is_valid(&file), "{file}");
        }
    }

    #[test]
    fn defaults_of_schema_are_those_of_the_reader() {
        let root = schema::<ServeConfig>();
        let node = Node {
            root: &root,
            schema: &root,
        };
        let mut defaults = node.defaults();
        // Of these, the configuration keeps whether they are set.
        defaults.remove("check");
        if let Some(cache) = defaults.get_mut("cache").and_then(Value::as_object_mut) {
            cache.remove("ttl");
        }
        assert!(defaults.len() > 5, "{defaults:?}");
        let settings = |file: Value| {
            let loaded = load(&file).expect("a configuration");
            let mut config = loaded.config;
            config.path.clear();
            config.folder.clear();
            config.sha256.clear();
            format!("{config:#?}\n{:#?}", loaded.serve)
        };
        assert_eq!(settings(defaults.into()), settings(json!({})));
    }

    #[test]
    fn examples_in_docs_validate() {
        let root = schema::<ServeConfig>();
        let validator = jsonschema::validator_for(&root).expect("a schema");
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = std::fs::read_dir(project.join("docs")).expect("the folder");
        let docs = docs.map(|entry| entry.expect("an entry").path());
        let mut count = 0;
        for file in docs.chain([project.join("README.md")]) {
            let text = std::fs::read_to_string(&file).expect("a text");
            for block in text.split("```json").skip(1) {
                let block = block.split("```").next().unwrap_or_default();
                let block = block.strip_prefix('c').unwrap_or(block).trim();
                // Some show a member alone.
                let block = match block.strip_prefix('"') {
                    Some(_) => format!("{{{block}}}"),
                    None => block.to_owned(),
                };
                let options = jsonc_parser::ParseOptions::default();
                let parsed = jsonc_parser::parse_to_serde_value::<Value>(&block, &options);
                let Ok(example @ Value::Object(_)) = parsed else {
                    continue;
                };
                let is_key = |key: &String| root["properties"].get(key).is_some();
                if !example.as_object().is_some_and(|it| it.keys().any(is_key)) {
                    continue;
                }
                count += 1;
                let errors: Vec<String> = validator
                    .iter_errors(&example)
                    .map(|it| it.to_string())
                    .collect();
                assert!(
                    errors.is_empty(),
                    "{}: {errors:?}\n{example:#}",
                    file.display()
                );
            }
        }
        assert!(count > 5, "{count}");
    }
}
