//! Rules: one tool is allowed, one is denied, and the rest would ask.

use std::error::Error;

use callgate::{GateBuilder, Rules};

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let rules = Rules::builder()
        .allow("ticketing_list*")
        .deny("ticketing_createIssue")
        .build()?;
    let gate = builder.rules(rules).build().await?;
    let report = gate
        .run("await ticketing_createIssue({ title: 'x' })")
        .await;
    println!("{}", report.status); // denied
    gate.shutdown().await;
    Ok(())
}
