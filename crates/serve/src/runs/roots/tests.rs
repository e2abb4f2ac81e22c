//! The number of times that a client is asked for its folders.

use callgate::faces::Caller as _;
use callgate::settings::CheckMode;
use futures::FutureExt as _;
use rmcp::handler::server::ServerHandler;
use rmcp::service::{RoleServer, RunningService};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use super::*;

struct Handler;

impl ServerHandler for Handler {}

/// A client of a session that can be asked for folders.
struct Bench {
    client: Client,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    to: WriteHalf<DuplexStream>,
    gate: PendingGate,
    _served: RunningService<RoleServer, Handler>,
}

impl Bench {
    async fn new() -> Self {
        let gate = Gate::builder().spare_workers(0).check(CheckMode::Off);
        let gate = Arc::new(gate.build().await.expect("a gate"));
        let gate: BoxFuture<'static, _> = Box::pin(async move { Ok(gate) });
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (from, to) = tokio::io::split(theirs);
        let served = rmcp::service::serve_directly(Handler, tokio::io::split(ours), None);
        Self {
            client: Client {
                peer: served.peer().clone(),
                capabilities: super::super::AnyClient::default().offers(),
                is_stateless: false,
                has_titles: true,
                tasks: false,
                logs: None,
                max_output: None,
                replaces_text: false,
                name: None,
            },
            lines: BufReader::new(from).lines(),
            to,
            gate: gate.shared(),
            _served: served,
        }
    }

    /// Follows the roots, and returns how often the client was asked; it answers with this.
    async fn follow(&mut self, roots: &Roots, member: &str, answer: Value) -> usize {
        let (lines, to) = (&mut self.lines, &mut self.to);
        let mut asked = 0;
        let answering = async {
            while let Some(line) = lines.next_line().await.expect("UTF-8") {
                let message: Value = serde_json::from_str(&line).expect("JSON");
                assert_eq!(message["method"], "roots/list");
                asked += 1;
                let mut said = json!({ "jsonrpc": "2.0", "id": message["id"] });
                said[member] = answer.clone();
                let said = format!("{said}\n");
                to.write_all(said.as_bytes()).await.expect("room");
            }
            panic!("the connection ended");
        };
        tokio::select! {
            () = roots.follow(&self.client, self.gate.clone()) => {}
            () = answering => {}
        }
        asked
    }
}

#[tokio::test]
async fn refusing_client_is_asked_once_per_change() {
    let mut bench = Bench::new().await;
    let roots = Roots::of_only_client();
    let no = json!({ "code": -32601, "message": "no" });
    for _ in 0..3 {
        assert_eq!(bench.follow(&roots, "error", no.clone()).await, 1);
        roots.changed();
    }
    let named = json!({ "roots": [{ "uri": "file:///a" }] });
    assert_eq!(bench.follow(&roots, "result", named).await, 1);
    assert_eq!(roots.so_far().len(), 1);
}
