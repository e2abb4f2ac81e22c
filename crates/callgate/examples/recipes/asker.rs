//! A custom asker: the host answers the questions of its scripts.

use std::error::Error;
use std::sync::Arc;

use callgate::{Answer, GateBuilder, Question};

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let asker = Arc::new(|question: Question| async move {
        println!("{} {}", question.function, question.arguments);
        if question.arguments.len() < 100 {
            Answer::Run
        } else {
            Answer::Deny
        }
    });
    let gate = builder.asker(asker).build().await?;
    let report = gate
        .run("await ticketing_createIssue({ title: 'x' })")
        .await;
    println!("{}", report.status); // completed
    gate.shutdown().await;
    Ok(())
}
