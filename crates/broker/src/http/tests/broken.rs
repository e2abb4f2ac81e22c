//! Lists that break off, and the calls after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use serde_json::{Value, json};

use super::server::{Request, Server};
use super::{in_time, keep, result_of};
use crate::caller::NoCaller;
use crate::calls::Call;
use crate::spec::ServerSpec;

/// A server with two tools, each on a page of its own. It has the second page once; that
/// page's tool wants its argument as a header, and the other wants a header that the list
/// does not tell of.
async fn answer(mut request: Request, lists: Arc<AtomicUsize>) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    match request.method().as_str() {
        "server/discover" => {
            let result = json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            });
            result_of(&mut request, "", result).await;
        }
        "tools/list" if message["params"]["cursor"].is_null() => {
            lists.fetch_add(1, Ordering::SeqCst);
            let tool = json!({ "name": "first", "inputSchema": { "type": "object" } });
            let result =
                json!({ "resultType": "complete", "tools": [tool], "nextCursor": "second" });
            result_of(&mut request, "", result).await;
        }
        "tools/list" if lists.load(Ordering::SeqCst) == 1 => {
            let region = json!({ "type": "string", "x-mcp-header": "Region" });
            let schema = json!({ "type": "object", "properties": { "region": region } });
            let tool = json!({ "name": "second", "inputSchema": schema });
            let result = json!({ "resultType": "complete", "tools": [tool] });
            result_of(&mut request, "", result).await;
        }
        "tools/list" => request.answer("503 Service Unavailable", "", "").await,
        _ => {
            let region = request.header("mcp-param-region").to_owned();
            let name = message["params"]["name"].as_str().unwrap_or_default();
            request.log.note(format!("{name} {region}"));
            if region == "us-west1" {
                let result = json!({ "resultType": "complete", "content": [] });
                return result_of(&mut request, "", result).await;
            }
            let error = json!({ "code": -32020, "message": "HeaderMismatch" });
            let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
            let headers = "Content-Type: application/json\r\n";
            request
                .answer("400 Bad Request", headers, &body.to_string())
                .await;
        }
    }
}

async fn call(server: &crate::server::Server, tool: &str) -> String {
    let call = Call {
        tool,
        arguments: r#"{"region":"us-west1"}"#,
        caller: Arc::new(NoCaller),
        patience: server.patience(),
        decided: None,
    };
    match in_time(server.call(&call)).await {
        Ok(result) => result.get().to_owned(),
        Err((_, said)) => said,
    }
}

#[tokio::test]
async fn tools_are_called_as_before_when_a_new_list_breaks_off() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lists);
    let server = Server::start(move |request| answer(request, Arc::clone(&counted)).boxed()).await;
    let (kept, mut changes) = keep(ServerSpec::http("s", server.url())).await;
    kept.shared.wishes.send_modify(|wishes| *wishes += 1);
    assert!(!kept.is_settled());
    in_time(changes.wait_for(|_| kept.is_settled()))
        .await
        .expect("it is kept");
    let called = r#"{"resultType":"complete","content":[]}"#;
    assert_eq!(call(&kept, "second").await, called);
    // Refused for its headers, this one has the list asked for once more.
    let refused = "HeaderMismatch (code -32020)";
    assert_eq!(call(&kept, "first").await, refused);
    assert_eq!(lists.load(Ordering::SeqCst), 3);
    assert_eq!(call(&kept, "second").await, called);
    assert_eq!(server.log(), "second us-west1\nfirst -\nsecond us-west1\n");
    in_time(kept.shut_down()).await;
}
