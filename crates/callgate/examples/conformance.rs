//! The client under test of the official conformance suite: a host program
//! that connects to the suite's server and calls the tools it finds.
//!
//! The suite hands over the server's URL as the last argument, the scenario's
//! name in `MCP_CONFORMANCE_SCENARIO`, and what else the scenario needs as JSON
//! in `MCP_CONFORMANCE_CONTEXT`.

use std::error::Error;

use callgate::{CallError, Gate, Rules, ServerSpec};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(host())
}

async fn host() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().ok_or("no URL")?;
    let context = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    let gate = Gate::builder()
        .server(ServerSpec::http("suite", url))
        .rules(Rules::new(["suite_*"], [], [])?)
        .build()
        .await?;
    let outcome = call_all(&gate, &context).await;
    gate.shutdown().await;
    outcome
}

/// Calls each tool that is offered: those that must not be called are not.
async fn call_all(gate: &Gate, context: &Value) -> Result<(), Box<dyn Error>> {
    if let Some(server) = gate.unavailable().first() {
        return Err(server.reason.clone().into());
    }
    for tool in gate.tools() {
        let arguments = arguments(&tool.tool, context).to_string();
        let called = gate.call(&tool.function, RawValue::from_string(arguments)?);
        match called.await {
            Ok(_) => {}
            // Some scenarios are about tools that fail.
            Err(CallError::Tool { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What to call a tool with: what the scenario says, else what fits all others.
fn arguments(tool: &str, context: &Value) -> Value {
    let named = context["toolCalls"].as_array().into_iter().flatten();
    let mut named = named.filter(|call| call["name"] == tool);
    match (named.next(), tool) {
        (Some(call), _) => call["arguments"].clone(),
        (None, "add_numbers") => json!({ "a": 5, "b": 3 }),
        (None, "valid_tool") => json!({ "region": "us-west1" }),
        (None, _) => json!({}),
    }
}
