//! A reviewer: a check of arguments by the host, besides the rules.

use std::error::Error;
use std::sync::Arc;

use callgate::review::{Review, Reviewed, Reviewer};
use callgate::{GateBuilder, Rules};
use futures::future::{BoxFuture, FutureExt as _, ready};

struct NoPasswords;

impl Reviewer for NoPasswords {
    fn review_arguments<'a>(&'a self, call: Reviewed<'a>) -> BoxFuture<'a, Review> {
        let review = if call.arguments.contains("password") {
            Review::Deny("it names a password".to_owned())
        } else {
            Review::Allow
        };
        ready(review).boxed()
    }
}

pub async fn run(builder: GateBuilder) -> Result<(), Box<dyn Error>> {
    let rules = Rules::builder().allow("ticketing_*").build()?;
    let gate = builder
        .rules(rules)
        .reviewer(Arc::new(NoPasswords))
        .build()
        .await?;
    let report = gate
        .run("await ticketing_createIssue({ title: 'my password' })")
        .await;
    println!("{}", report.status); // denied
    gate.shutdown().await;
    Ok(())
}
