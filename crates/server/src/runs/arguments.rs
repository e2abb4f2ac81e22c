//! What `run_script` takes.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// The input schema of `run_script`.
pub(crate) fn run_script_schema() -> Arc<JsonObject> {
    let schema = json!({
        "type": "object",
        "properties": {
            "code": { "type": "string", "description": "the TypeScript script" }
        },
        "required": ["code"],
        "additionalProperties": false
    });
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

/// The script's text, or what is wrong with the arguments.
pub(crate) fn code(arguments: Option<&JsonObject>) -> Result<&str, String> {
    let arguments = arguments.ok_or("run_script needs an argument \"code\": the script's text")?;
    if let Some(unknown) = arguments.keys().find(|key| *key != "code") {
        return Err(format!(
            "run_script has no argument {unknown:?}; it takes \"code\" alone"
        ));
    }
    match arguments.get("code") {
        Some(Value::String(code)) => Ok(code),
        Some(_) => Err("\"code\" must be a string: the script's text".to_owned()),
        None => Err("run_script needs an argument \"code\": the script's text".to_owned()),
    }
}
