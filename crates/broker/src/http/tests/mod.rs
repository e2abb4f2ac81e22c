//! The link against servers that do as the revisions say, and others.

mod asking;
mod broken;
mod decided;
mod ended;
mod hostile;
mod learning;
mod lists;
mod logins;
mod logs;
mod mirroring;
mod older;
mod polls;
mod posts;
mod refused;
mod server;
mod sessions;
mod stateless;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tokio::sync::watch;

use self::server::Server;
use super::{Endpoint, HttpLink};
use crate::caller::Caller;
use crate::calls::Call;
use crate::inbox::Inbox;
use crate::link::{Link, Outgoing};
use crate::spec::{Http, ServerSpec, Transport};
use callgate_auth::{Authorize, NoAuthorization};

/// The limit of messages, in bytes.
const LIMIT: usize = 10_000;

/// A client of one server.
struct Client {
    inbox: Arc<Inbox>,
    link: Arc<dyn Link>,
}

impl Client {
    fn new(server: &Server) -> Self {
        Self::with(&server.url(), Arc::new(NoAuthorization))
    }

    fn with(url: &str, authorize: Arc<dyn Authorize>) -> Self {
        let http = Http {
            url: url.to_owned(),
            headers: [("X-Key".to_owned(), "hunter2-hunter2".to_owned())].into(),
            ..Http::default()
        };
        let secrets = Transport::Http(http.clone()).redact();
        let inbox = Inbox::new("s".into(), LIMIT);
        let endpoint = Endpoint::new(&http, authorize, secrets).expect("it is a URL");
        let link = HttpLink::new("s".into(), endpoint, Arc::clone(&inbox));
        Self {
            inbox,
            link: Arc::new(link),
        }
    }

    /// A client that has agreed on a revision.
    fn speaking(server: &Server, version: ProtocolVersion) -> Self {
        let client = Self::new(server);
        client.link.agreed(&version);
        client
    }

    /// Sends a request and shows its answer.
    async fn request(&self, method: &str) -> String {
        self.request_with(method, None, &[]).await
    }

    async fn request_with(
        &self,
        method: &str,
        name: Option<&str>,
        parameters: &[(String, String)],
    ) -> String {
        let sent = async {
            let mut flight = crate::flight::Flight::open(&self.inbox, &self.link, None, method)
                .expect("it is not lost");
            let id = flight.id();
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
            let message = Outgoing {
                text: &text,
                method,
                id: Some(id),
                name,
                parameters,
                decided: None,
            };
            flight.send(message).await?;
            flight.answer().await
        };
        match in_time(sent).await {
            Ok(result) => result.get().to_owned(),
            Err(failure) => format!("{failure:?}"),
        }
    }
}

/// Keeps a server up that is of this kind.
async fn keep(spec: ServerSpec) -> (crate::server::Server, watch::Receiver<u64>) {
    let changes = Arc::new(watch::Sender::default());
    let launch = watch::Sender::new(()).subscribe();
    let server = in_time(crate::server::Server::start(spec, true, &changes, launch)).await;
    assert!(server.shared.stand.connection().is_some(), "it is up");
    (server, changes.subscribe())
}

/// Calls a tool for somebody and shows the result.
async fn call(server: &crate::server::Server, tool: &str, caller: Arc<dyn Caller>) -> String {
    call_with(server, tool, "{}", caller).await
}

async fn call_with(
    server: &crate::server::Server,
    tool: &str,
    arguments: &str,
    caller: Arc<dyn Caller>,
) -> String {
    let call = Call {
        tool,
        arguments,
        caller,
        patience: server.patience(),
        decided: None,
    };
    match in_time(server.call(&call)).await {
        Ok(result) => result.get().to_owned(),
        Err((_, said)) => said,
    }
}

/// Answers a request with a result, as JSON, with headers besides.
async fn result_of(request: &mut server::Request, headers: &str, result: Value) {
    let message: Value = serde_json::from_str(&request.body).expect("it is JSON");
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    let headers = format!("Content-Type: application/json\r\n{headers}");
    request
        .answer("200 OK", &headers, &answer.to_string())
        .await;
}

/// What a server of 2026-07-28 says of itself, and of how it has tools.
async fn discovered(request: &mut server::Request, tools: Value) {
    let result = json!({
        "resultType": "complete",
        "supportedVersions": [ProtocolVersion::V_2026_07_28],
        "capabilities": { "tools": tools },
        "serverInfo": { "name": "s", "version": "1" },
    });
    result_of(request, "", result).await;
}

/// Answers a call if its headers are `right`, and refuses it for them if they are not.
async fn called_by_headers(request: &mut server::Request, right: bool) {
    if right {
        let result = json!({ "resultType": "complete", "content": [] });
        return result_of(request, "", result).await;
    }
    let error = json!({ "code": -32020, "message": "HeaderMismatch" });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    let headers = "Content-Type: application/json\r\n";
    request
        .answer("400 Bad Request", headers, &body.to_string())
        .await;
}

/// Fails instead of hanging.
async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("within 20 s")
}
