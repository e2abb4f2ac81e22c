//! The schema that a script gives to `mcp.extract`: a JSON Schema, or a TypeScript type as text.

use callgate_sandbox::{Launcher, Limits, NotRead};
use callgate_schema::{Author, Schema};
use serde_json::Value;
use tokio::sync::Mutex;

/// Why there is no schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoSchema {
    /// The script's schema is at fault, for this reason.
    Refused(String),
    /// No process could read the type.
    Unread,
}

impl From<String> for NoSchema {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}

/// Reads schemas. Types are parsed one at a time, each in a worker of its own: a hostile text
/// can crash the parser.
pub(crate) struct SchemaReader {
    launcher: Mutex<Launcher>,
    /// The limits of the waiting workers.
    limits: Limits,
}

impl SchemaReader {
    pub(crate) fn new(launcher: Launcher, limits: Limits) -> Self {
        Self {
            launcher: Mutex::new(launcher),
            limits,
        }
    }

    /// Reads a JSON Schema, or a TypeScript type in a JSON string.
    pub(super) async fn read(&self, text: &str) -> Result<Schema, NoSchema> {
        Author::Script.takes(text.len())?;
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            if message.starts_with("recursion limit exceeded") {
                "the schema is nested too deep".to_owned()
            } else {
                format!("the schema could not be read: {message}")
            }
        })?;
        let schema = match value {
            Value::String(type_text) => self.read_type(&type_text).await?,
            Value::Object(_) => value,
            _ => {
                let message =
                    "the schema must be a JSON Schema object, or a TypeScript type as text";
                return Err(NoSchema::Refused(message.to_owned()));
            }
        };
        let compiled = tokio::task::spawn_blocking(|| Schema::new(schema, Author::Script)).await;
        let compiled = compiled.map_err(|_panic| "the schema could not be read".to_owned())?;
        Ok(compiled?)
    }

    async fn read_type(&self, text: &str) -> Result<Value, NoSchema> {
        // A script does not learn why the host's processes fail.
        let unread = |reason: &dyn std::fmt::Debug| {
            tracing::warn!(?reason, "a type was not read");
            NoSchema::Unread
        };
        let launcher = self.launcher.lock().await;
        let worker = launcher.take(&self.limits).await;
        let worker = worker.map_err(|reason| unread(&reason))?;
        worker.read_type(text).await.map_err(|error| match error {
            NotRead::Refused(error) => NoSchema::Refused(error.to_string()),
            NotRead::Ended(end) => unread(&end),
        })
    }
}

#[cfg(test)]
mod tests {
    use callgate_sandbox::{LauncherOptions, WorkerProgram};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn schemas_are_read_and_refused() {
        let program = WorkerProgram::Path("/nonexistent/worker".into());
        let options = LauncherOptions {
            spares: 0,
            ..LauncherOptions::default()
        };
        let reader = SchemaReader::new(Launcher::new(program, options), Limits::default());
        let schema = json!({ "items": { "$ref": "#/$defs/a" }, "$defs": { "a": {} } });
        let read = reader.read(&schema.to_string()).await.expect("a schema");
        assert_eq!(read.text(), schema.to_string());
        let refused = |message: &str| NoSchema::Refused(message.to_owned());
        let not_object = "the schema must be a JSON Schema object, or a TypeScript type as text";
        let long = json!({ "description": "x".repeat(70_000) });
        for (schema, expected) in [
            (json!(5), refused(not_object)),
            // No worker can be started here.
            (json!("Date"), NoSchema::Unread),
            (
                long,
                refused("the schema has 70018 bytes, over the limit of 65536"),
            ),
        ] {
            let error = reader
                .read(&schema.to_string())
                .await
                .expect_err("no schema");
            assert_eq!(error, expected);
        }
    }
}
