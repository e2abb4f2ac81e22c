//! One call without a script, through the same rules and the same ledger.

use std::error::Error;

use callgate::{GateBuilder, Rules};
use serde_json::json;
use serde_json::value::to_raw_value;

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let rules = Rules::builder().allow("ticketing_*").build()?;
    let gate = builder.rules(rules).build().await?;
    let arguments = to_raw_value(&json!({ "title": "x" }))?;
    let issue = gate.call("ticketing_createIssue", arguments).await?;
    println!("{issue}");
    gate.shutdown().await;
    Ok(())
}
