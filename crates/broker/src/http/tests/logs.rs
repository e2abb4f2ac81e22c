//! Log messages, which the host's own log takes over HTTP, too.

use std::sync::Arc;

use futures::FutureExt;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::server::Server;
use super::{in_time, keep, result_of};
use crate::fake::TakesAll;
use crate::spec::ServerSpec;

#[tokio::test]
async fn a_server_is_asked_for_what_the_hosts_log_takes() {
    let _log = tracing::subscriber::set_default(TakesAll);
    let asked = Arc::new(Notify::new());
    let tells = Arc::clone(&asked);
    let server = Server::start(move |mut request| {
        let asked = Arc::clone(&tells);
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            match request.method().as_str() {
                "initialize" => {
                    let result = json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": { "logging": {}, "tools": {} },
                        "serverInfo": { "name": "s", "version": "1" },
                    });
                    result_of(&mut request, "Mcp-Session-Id: s-1\r\n", result).await;
                }
                "tools/list" => result_of(&mut request, "", json!({ "tools": [] })).await,
                "logging/setLevel" => {
                    request.log.note(message["params"]["level"].to_string());
                    result_of(&mut request, "", json!({})).await;
                    asked.notify_one();
                }
                "GET" => request.answer("405 Method Not Allowed", "", "").await,
                _ => request.answer("202 Accepted", "", "").await,
            }
        }
        .boxed()
    })
    .await;
    let mut spec = ServerSpec::http("s", server.url());
    spec.era = "2025-11-25".parse().expect("a revision");
    let (kept, _changes) = keep(spec).await;
    in_time(asked.notified()).await;
    assert_eq!(server.log(), "\"debug\"\n");
    in_time(kept.shut_down()).await;
}
