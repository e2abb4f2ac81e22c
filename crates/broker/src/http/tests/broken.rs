//! Lists that break off, and the calls after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use serde_json::{Value, json};

use super::server::{Request, Server};
use super::{call_with, called_by_headers, discovered, in_time, keep, result_of};
use crate::caller::NoCaller;
use crate::spec::ServerSpec;

/// A server with two tools, each on a page of its own. It has the second page once; that
/// page's tool wants its argument as a header, and the other wants a header that the list
/// does not tell of.
async fn answer(mut request: Request, lists: Arc<AtomicUsize>) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    match request.method().as_str() {
        "server/discover" => discovered(&mut request, json!({})).await,
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
            called_by_headers(&mut request, region == "us-west1").await;
        }
    }
}

async fn call(server: &crate::server::Server, tool: &str) -> String {
    let arguments = r#"{"region":"us-west1"}"#;
    call_with(server, tool, arguments, Arc::new(NoCaller)).await
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
