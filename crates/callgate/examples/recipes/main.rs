//! The recipes of the crate's documentation, as one program: `recipes NAME`.
//!
//! `CALLGATE_DEMO_TICKETING` names the demo's ticketing server, and `CALLGATE_WORKER` the worker
//! program. A test runs every recipe.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is what these programs are for"
)]

mod asker;
mod call;
mod cancellation;
mod dry_run;
mod events;
mod ledger_sink;
mod reviewer;
mod rules;
mod search;

use std::env;
use std::error::Error;

use callgate::{Gate, GateBuilder, ServerSpec};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match env::args().nth(1).as_deref() {
        Some("asker") => asker::run(builder()?).await,
        Some("call") => call::run(builder()?).await,
        Some("cancellation") => cancellation::run(builder()?).await,
        Some("dry_run") => dry_run::run(builder()?).await,
        Some("events") => events::run(builder()?).await,
        Some("ledger_sink") => ledger_sink::run(builder()?).await,
        Some("reviewer") => reviewer::run(builder()?).await,
        Some("rules") => rules::run(builder()?).await,
        Some("search") => search::run(builder()?).await,
        _ => Err("name a recipe, such as `asker`".into()),
    }
}

/// A gate with the server `ticketing`, whose tools are `createIssue` and `listIssues`.
fn builder() -> Result<GateBuilder, Box<dyn Error>> {
    let server = env::var("CALLGATE_DEMO_TICKETING")?;
    let worker = env::var("CALLGATE_WORKER")?;
    let builder = Gate::builder().worker_binary(worker);
    Ok(builder.server(ServerSpec::stdio("ticketing", server, [] as [&str; 0])))
}
