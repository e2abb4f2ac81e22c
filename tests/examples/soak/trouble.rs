//! Servers that come and go: killed, taken out of use, and into it again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use crate::client::{Client, Era};
use crate::host;
use crate::tally::Tally;
use crate::{Fallible, PASSING};

/// Between two troubles.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is tried to have a server back at the end.
const TRIES: u32 = 30;

/// Makes trouble until it is told to stop; then all servers must come back.
///
/// # Errors
///
/// One that does not.
pub async fn make(
    url: String,
    pid: u32,
    tally: Arc<Tally>,
    mut stopped: watch::Receiver<bool>,
) -> Fallible<()> {
    // The only mode in which servers can always be switched.
    let client = Client::connect(&url, Era::Sessions, "discovery").await?;
    for step in 0_usize.. {
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => (),
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
        let server = PASSING[step / 3 % PASSING.len()];
        match step % 3 {
            0 => match host::kill(pid, server) {
                true => tally.happened("killed"),
                false => tally.happened("not there to be killed"),
            },
            1 => switch(&client, "disable_server", server, &tally).await,
            _ => switch(&client, "enable_server", server, &tally).await,
        }
    }
    for server in PASSING {
        back(&client, server).await?;
    }
    client.end().await
}

async fn switch(client: &Client, tool: &'static str, server: &str, tally: &Tally) {
    match client.call(tool, json!({ "server": server })).await {
        Ok(_) => tally.happened(tool),
        Err(error) => tally.wrong(tool, &error.to_string()),
    }
}

async fn back(client: &Client, server: &str) -> Fallible<()> {
    let mut last = String::new();
    for _ in 0..TRIES {
        let enabled = client
            .call("enable_server", json!({ "server": server }))
            .await;
        let call = json!({ "name": format!("{server}_listIssues"), "args": {} });
        match enabled {
            Ok(_) => match client.call("call_tool", call).await {
                Ok(_) => return Ok(()),
                Err(error) => last = error.to_string(),
            },
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(format!("{server} does not come back: {last}").into())
}
