//! A dry run: calls that would change something are shown and not made.

use std::error::Error;

use callgate::dry_run::DryRun;
use callgate::{GateBuilder, RunRequest};

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let gate = builder.build().await?;
    let request = RunRequest::new("await ticketing_createIssue({ title: 'x' })");
    let report = gate.run(request.dry_run(DryRun::default())).await;
    for call in report.dry_run.unwrap_or_default() {
        println!("{}: {}", call.function, call.decision);
    }
    gate.shutdown().await;
    Ok(())
}
