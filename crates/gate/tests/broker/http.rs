//! Streamable HTTP, against a server of rmcp's on loopback.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use callgate_gate::{Http, NobodyToAsk, ServerSpec, Servers, Transport};
use expect_test::expect;
use futures::future::join_all;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, json};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use crate::support::{Runs as _, allow_all, call, in_time, odd, one, states};

/// `echo`; `hang`, never answered; `wait`, answered when a hundred are there;
/// `blob { bytes }`.
#[derive(Clone)]
struct Handler {
    hundred: Arc<Barrier>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &'static str| Tool::new(name, "", Map::new());
        let tools = ["echo", "hang", "wait", "blob"].map(tool).to_vec();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let value = match request.name.as_ref() {
            "echo" => json!(arguments),
            "wait" => {
                self.hundred.wait().await;
                json!({ "together": true })
            }
            "blob" => {
                let bytes = arguments
                    .get("bytes")
                    .and_then(|bytes| bytes.as_u64())
                    .unwrap_or(0);
                json!({ "blob": "x".repeat(bytes as usize) })
            }
            _ => std::future::pending().await,
        };
        Ok(CallToolResult::structured(value).into())
    }
}

/// A running endpoint. It ends, connections and all, when its runtime is
/// dropped.
struct Endpoint {
    address: SocketAddr,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Endpoint {
    fn start(json_responses: bool, authorization: Option<&'static str>) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let mut config = StreamableHttpServerConfig::default();
        config.json_response = json_responses;
        config.cancellation_token = CancellationToken::new();
        let handler = Handler {
            hundred: Arc::new(Barrier::new(100)),
        };
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let check = move |request: axum::extract::Request, next: axum::middleware::Next| async move {
            let given = request
                .headers()
                .get("authorization")
                .and_then(|value| value.to_str().ok());
            if authorization.is_some() && given != authorization {
                let challenge = [("www-authenticate", "Bearer realm=\"test\"")];
                return axum::response::IntoResponse::into_response((
                    axum::http::StatusCode::UNAUTHORIZED,
                    challenge,
                ));
            }
            next.run(request).await
        };
        let router = axum::Router::new()
            .nest_service("/mcp", service)
            .layer(axum::middleware::from_fn(check));
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime");
            axum::serve(listener, router).await
        });
        Self {
            address,
            runtime: Some(runtime),
        }
    }

    fn spec(&self, headers: &[(&str, &str)]) -> ServerSpec {
        let headers: BTreeMap<_, _> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let url = format!("http://{}/mcp?key=hunter2-hunter2", self.address);
        ServerSpec::new(
            "web",
            Transport::Http(Http {
                url,
                headers,
                ..Http::default()
            }),
        )
    }

    fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test]
async fn calls_over_both_kinds_of_response() {
    for json_responses in [false, true] {
        let endpoint = Endpoint::start(json_responses, None);
        let (broker, run, server) = in_time(one(endpoint.spec(&[]))).await;
        expect!["web: 2026-07-28, tools [echo, hang, wait, blob]\n"].assert_eq(&states(&broker));
        let echo = in_time(call(&run, &server, "echo", json!({ "a": [1, "é"] }))).await;
        assert_eq!(echo, r#"{"a":[1,"é"]}"#);
        let calls = (0..100).map(|_| call(&run, &server, "wait", json!({})));
        assert_eq!(
            in_time(join_all(calls)).await,
            vec![r#"{"together":true}"#; 100]
        );
        in_time(broker.shut_down()).await;
    }
}

#[tokio::test]
async fn an_older_revision_can_be_fixed() {
    let endpoint = Endpoint::start(false, None);
    let mut spec = endpoint.spec(&[]);
    spec.era = "2025-11-25".parse().expect("a revision");
    let (broker, run, server) = in_time(one(spec)).await;
    expect!["web: 2025-11-25, tools [echo, hang, wait, blob]\n"].assert_eq(&states(&broker));
    assert_eq!(in_time(call(&run, &server, "echo", json!({}))).await, "{}");
    in_time(broker.shut_down()).await;
}

#[tokio::test]
async fn headers_are_sent_and_asked_for() {
    let endpoint = Endpoint::start(false, Some("Bearer hunter2"));
    let (broker, run, server) =
        in_time(one(endpoint.spec(&[("Authorization", "Bearer hunter2")]))).await;
    assert_eq!(in_time(call(&run, &server, "echo", json!({}))).await, "{}");
    in_time(broker.shut_down()).await;

    let broker = in_time(Servers::connect(vec![endpoint.spec(&[])], |_| {})).await;
    let states = states(&broker).replace(&endpoint.address.to_string(), "HOST");
    expect![[r#"
        server `web` did not start: server `web` wants a login, and there is none; run `callgate auth login web`
    "#]].assert_eq(&states);
}

#[tokio::test]
async fn a_server_killed_in_a_call_ends_it_and_no_other_server() {
    for json_responses in [false, true] {
        let mut endpoint = Endpoint::start(json_responses, None);
        let broker = in_time(Servers::connect(
            vec![endpoint.spec(&[]), odd("flaky")],
            |_| {},
        ))
        .await;
        let run = broker.run(allow_all(), Arc::new(NobodyToAsk));
        let hang = call(&run, "web", "hang", json!({}));
        futures::pin_mut!(hang);
        // The call is on its way once another one has come back.
        assert!(futures::poll!(&mut hang).is_pending());
        in_time(call(&run, "web", "echo", json!({}))).await;
        endpoint.kill();
        let hang = tokio::time::timeout(Duration::from_secs(5), hang)
            .await
            .expect("at once");
        assert!(
            hang.starts_with("Protocol {") && hang.contains("code: -32000"),
            "{hang}"
        );
        let later = in_time(call(&run, "web", "echo", json!({}))).await;
        // Whether a connection that is kept has been seen to be gone is chance.
        let unreachable = r#"code: -32000, message: "the server cannot be reached: "#;
        assert!(later.contains(unreachable), "{later}");
        assert_eq!(
            in_time(call(&run, "flaky", "empty", json!({}))).await,
            "null"
        );
        in_time(broker.shut_down()).await;
    }
}

#[tokio::test]
async fn a_result_over_the_limit_is_a_typed_error() {
    let endpoint = Endpoint::start(false, None);
    let mut spec = endpoint.spec(&[]);
    spec.max_message_bytes = 100_000;
    let (broker, run, server) = in_time(one(spec)).await;
    expect![[r#"Protocol { server: "web", function: "web_blob", code: -32050, message: "the answer is over the limit of 100000 bytes; ask the tool for less (a filter, a page), or raise \"result\" under \"limits\"", data: None, retryable: false }"#]].assert_eq(&in_time(call(&run, &server, "blob", json!({ "bytes": 200_000 }))).await);
    assert_eq!(in_time(call(&run, &server, "echo", json!({}))).await, "{}");
    in_time(broker.shut_down()).await;
}

#[tokio::test]
async fn endpoints_that_are_none() {
    let http = |name: &str, url: &str, headers: &[(&str, &str)]| {
        let headers = headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        ServerSpec::new(
            name,
            Transport::Http(Http {
                url: url.to_owned(),
                headers,
                ..Http::default()
            }),
        )
    };
    let unused = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = unused.local_addr().expect("an address").port();
    drop(unused);
    let mut keyed = http(
        "keyed",
        &format!("http://127.0.0.1:{port}/hunter2/mcp"),
        &[],
    );
    if let Transport::Http(http) = &mut keyed.transport {
        http.secrets = BTreeMap::from([("KEY".to_owned(), "hunter2".to_owned())]);
    }
    let broker = in_time(Servers::connect(
        vec![
            http(
                "refused",
                &format!("http://127.0.0.1:{port}/mcp?key=hunter2"),
                &[],
            ),
            keyed,
            http("relative", "localhost:3000/mcp", &[]),
            http("no url", "mcp", &[]),
            http("bad header", "http://localhost/", &[("a b", "c")]),
            http("bad value", "http://localhost/", &[("a", "hunter2\n")]),
            http("reserved", "http://localhost/", &[("Accept", "x")]),
        ],
        |_| {},
    ))
    .await;
    let states = states(&broker).replace(&port.to_string(), "PORT");
    expect![[r#"
        server `refused` did not start: http://127.0.0.1:PORT/mcp did not answer as an MCP endpoint: the server cannot be reached: Connection refused (os error 111)
        server `keyed` did not start: http://127.0.0.1:PORT/[KEY]/mcp did not answer as an MCP endpoint: the server cannot be reached: Connection refused (os error 111)
        server `relative` did not start: its URL cannot be used: its scheme is neither http nor https; write it as https://host/path
        server `no url` did not start: its URL cannot be used: relative URL without a base; write it as https://host/path
        server `bad header` did not start: header "a b" cannot be sent: its name is not allowed
        server `bad value` did not start: header "a" cannot be sent: its value has characters that headers cannot have
        server `reserved` did not start: header "Accept" cannot be sent: the protocol sets it itself; leave it out
    "#]].assert_eq(&states);
}
