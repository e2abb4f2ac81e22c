//! Cancellation: the host ends a run.

use std::error::Error;

use callgate::{CancellationToken, GateBuilder, RunRequest};

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let gate = builder.build().await?;
    let token = CancellationToken::new();
    let end = token.clone();
    let request =
        RunRequest::new("console.log('started'); await new Promise(done => setTimeout(done, 1e6))")
            .on_event(move |_printed| end.cancel())
            .cancel_on(token);
    let report = gate.run(request).await;
    println!("{}", report.status); // cancelled
    gate.shutdown().await;
    Ok(())
}
