//! A host that calls a tool for ever, with its ledger on disk: for the test that
//! kills it.
//!
//! `journal_host LEDGER EFFECTS SERVER NAME MAX_BYTES KEEP`. SERVER is the odd server's
//! binary; the last two bound the ledger's file.
//! Standard output has a line `done ID PID` for each call that was answered, after
//! the answer, with the server's process, and `failed ID` for each that was not.
//! When the server is gone, it is started anew.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callgate_broker::{
    Broker, CallOptions, Journal, JournalOptions, NobodyToAsk, RunSetup, ServerSpec, Stdio, Target,
    Transport,
};
use callgate_policy::Rules;
use serde_json::value::to_raw_value;

/// How many calls are made at one time.
const AT_ONCE: usize = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ledger, effects, server, name, max_bytes, keep] = arguments.as_slice() else {
        return Err("usage: journal_host LEDGER EFFECTS SERVER NAME MAX_BYTES KEEP".into());
    };
    let mut options = JournalOptions::default();
    options.bodies = true;
    options.max_bytes = max_bytes.parse()?;
    options.keep = keep.parse()?;
    let journal = Arc::new(Journal::open(Path::new(ledger), options)?);
    let rules = Arc::new(Rules::new(["*"], [], [])?);
    let mut calls = 0;
    loop {
        let stdio = Stdio {
            command: server.clone(),
            args: vec!["effects".to_owned()],
            env: [("EFFECTS".to_owned(), effects.clone())].into(),
            ..Stdio::default()
        };
        let mut spec = ServerSpec::new("effects", Transport::Stdio(stdio));
        // A server that is killed time and again is started again later and later.
        // A call that would have to wait for longer than this fails, and a new
        // broker starts the server at once.
        spec.call_timeout = Duration::from_secs(1);
        let broker = Broker::start(vec![spec]).await;
        let mut setup = RunSetup::new(Arc::clone(&rules), Arc::new(NobodyToAsk));
        setup.journal = Some(Arc::clone(&journal));
        let run = broker.run_with(setup);
        let mut gone = false;
        while !gone {
            let ids: Vec<String> = (0..AT_ONCE)
                .map(|at| format!("{name}.{}", calls + at))
                .collect();
            calls += AT_ONCE;
            let made = ids.iter().map(|id| {
                // Some lines are longer than a page, where a write can be cut.
                let padding = "x".repeat(calls * 997 % 9_000);
                let arguments = serde_json::json!({ "id": id, "padding": padding });
                let target = Target {
                    function: "effects_note".to_owned(),
                    server: "effects".to_owned(),
                    tool: "note".to_owned(),
                    ..Target::default()
                };
                let run = run.clone();
                async move {
                    let arguments = to_raw_value(&arguments)?;
                    let called = run.call(target, arguments, CallOptions::default()).await;
                    tell(&match &called {
                        Ok(pid) => format!("done {id} {}\n", pid.get().trim_matches('"')),
                        Err(_) => format!("failed {id}\n"),
                    })?;
                    Ok::<bool, std::io::Error>(called.is_err())
                }
            });
            for failed in futures::future::try_join_all(made).await? {
                gone |= failed;
            }
        }
        broker.shutdown().await;
    }
}

/// By one write, past every buffer.
fn tell(line: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}
