//! A ledger sink: the host records every call. A call that it fails to record is not sent.

use std::error::Error;
use std::sync::Arc;

use callgate::ledger::{LedgerError, LedgerEvent, LedgerSink};
use callgate::{GateBuilder, Rules};

struct Printer;

impl LedgerSink for Printer {
    fn event(&self, event: &LedgerEvent<'_>) -> Result<(), LedgerError> {
        if let LedgerEvent::CallEnded(call) = event {
            println!("{}: sent {}", call.line.function, call.was_sent);
        }
        Ok(())
    }
}

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let rules = Rules::builder().allow("ticketing_*").build()?;
    let gate = builder
        .rules(rules)
        .ledger_sink(Arc::new(Printer))
        .build()
        .await?;
    gate.run("await ticketing_createIssue({ title: 'x' })")
        .await;
    gate.shutdown().await;
    Ok(())
}
