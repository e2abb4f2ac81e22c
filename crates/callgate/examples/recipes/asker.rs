//! A custom asker: the host answers the questions of its scripts.

use std::error::Error;

use callgate::question::ask_with;
use callgate::{Answer, GateBuilder};

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let asker = ask_with(|question| async move {
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
