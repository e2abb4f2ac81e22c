//! The schema that a script gives: a JSON Schema, or a TypeScript type as text.

use callgate_sandbox::{Launcher, NotRead};
use callgate_schema::{Author, Schema};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::Limits;

/// Why there is no schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoSchema {
    /// What was given is at fault, for this reason.
    Refused(String),
    /// There was no process that reads types, or it ended.
    Unread,
}

impl From<String> for NoSchema {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}

/// Reads a JSON Schema, or a TypeScript type in a JSON string.
pub(super) async fn read(text: &str, types: &TypeReader) -> Result<Schema, NoSchema> {
    let refused = |message: &str| NoSchema::Refused(message.to_owned());
    Author::Script.takes(text.len())?;
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        // A script gives whole JSON. The parser has a key of its own, though, whose value it does
        // not take as it is.
        NoSchema::Refused(match message.starts_with("recursion limit exceeded") {
            true => "the schema is nested too deep".to_owned(),
            false => format!("the schema could not be read: {message}"),
        })
    })?;
    let value = match value {
        Value::String(ty) => types.read(&ty).await?,
        Value::Object(_) => value,
        _ => {
            let message = "the schema must be a JSON Schema object, or a TypeScript type as text";
            return Err(refused(message));
        }
    };
    // It may take a while to compile.
    let compiled = tokio::task::spawn_blocking(|| Schema::new(value, Author::Script)).await;
    Ok(compiled.map_err(|_panic| refused("the schema could not be read"))??)
}

/// Has types parsed, one after the other, each in a worker of its own: the text may do
/// anything to the parser.
pub(crate) struct TypeReader {
    launcher: Mutex<Launcher>,
    /// Of the workers that wait.
    limits: Limits,
}

impl TypeReader {
    pub(crate) fn new(launcher: Launcher, limits: Limits) -> Self {
        Self {
            launcher: Mutex::new(launcher),
            limits,
        }
    }

    async fn read(&self, ty: &str) -> Result<Value, NoSchema> {
        // What is the matter with the host's own processes is nothing for a script.
        let unread = |reason: &dyn std::fmt::Debug| {
            tracing::warn!(?reason, "a type was not read");
            NoSchema::Unread
        };
        let launcher = self.launcher.lock().await;
        let worker = launcher.take(&self.limits).await;
        let worker = worker.map_err(|reason| unread(&reason))?;
        worker.read_type(ty).await.map_err(|error| match error {
            NotRead::Refused(error) => NoSchema::Refused(error.to_string()),
            NotRead::Ended(end) => unread(&end),
        })
    }
}

#[cfg(test)]
mod tests {
    use callgate_sandbox::{LauncherOptions, WorkerProgram};
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    /// There is no worker here: types are read in the tests of `mcp.extract`.
    fn check(schema: &Value, expected: Expect) {
        let program = WorkerProgram::Path("/nonexistent/worker".into());
        let mut options = LauncherOptions::default();
        options.spares = 0;
        let types = TypeReader::new(Launcher::new(program, options), Limits::default());
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let shown = match runtime.block_on(read(&schema.to_string(), &types)) {
            Ok(schema) => schema.text().to_owned(),
            Err(NoSchema::Refused(message)) => message,
            Err(NoSchema::Unread) => "it was not read".to_owned(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn schemas() {
        check(
            &json!({ "type": "array", "items": { "$ref": "#/$defs/a" }, "$defs": { "a": {} } }),
            expect![[r##"{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{}}}"##]],
        );
        check(
            &json!({ "properties": { "$ref": { "type": "string" } } }),
            expect![[r#"{"properties":{"$ref":{"type":"string"}}}"#]],
        );
        check(
            &json!({ "properties": { "$serde_json::private::RawValue": {} } }),
            expect![
                "the schema could not be read: invalid type: map, expected raw value at line 1 column 48"
            ],
        );
    }

    #[test]
    fn what_is_no_schema() {
        check(
            &json!(5),
            expect!["the schema must be a JSON Schema object, or a TypeScript type as text"],
        );
        check(&json!("Date"), expect!["it was not read"]);
        check(
            &json!({ "description": "x".repeat(70_000) }),
            expect!["the schema has 70018 bytes, over the limit of 65536"],
        );
    }
}
