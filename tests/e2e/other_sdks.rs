//! Servers written with the SDKs of other people, which speak old and new
//! revisions, over both transports.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::Gate;
use callgate::config::Config;
use callgate::faces::{Caller, Refusal};
use callgate::faces::{Offers, Wanted, WantedKind};
use callgate_tests::listening::Listening;
use callgate_tests::{Workbench, node, real_servers, repository};
use futures::future::BoxFuture;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// One revision of each era, as a configuration names them.
const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

const SCRIPT: &str = "
    const { sum } = await sdk_add({ a: 2, b: 40 });
    let failed;
    try { await sdk_fail({}) } catch (error) { failed = error.message }
    return [sum, failed.includes('it failed, as it should')];";

/// A server's program and arguments, but for the transport.
#[derive(Clone, Copy)]
enum Sdk {
    TypeScript,
    Python,
}

impl Sdk {
    fn program(self) -> (String, Vec<String>) {
        let fixture = |name: &str| {
            let path = repository().join("fixtures/real-servers").join(name);
            path.display().to_string()
        };
        match self {
            Self::TypeScript => ("node".to_owned(), vec![fixture("sdk-server.cjs")]),
            Self::Python => {
                let python = real_servers().join("venv/bin/python");
                (python.display().to_string(), vec![fixture("sdk_server.py")])
            }
        }
    }

    fn modules() -> String {
        real_servers()
            .join("node/node_modules")
            .display()
            .to_string()
    }

    /// The server, and its entry in a configuration.
    fn over_http(self) -> (Listening, Value) {
        let (program, args) = self.program();
        let mut command = Command::new(program);
        command
            .args(args)
            .arg("http")
            .env("NODE_PATH", Self::modules());
        let listening = Listening::start(&mut command);
        let url = format!("http://127.0.0.1:{}/mcp", listening.port);
        (listening, json!({ "url": url }))
    }

    fn over_stdio(self) -> Value {
        let (command, mut args) = self.program();
        args.push("stdio".to_owned());
        json!({ "command": command, "args": args, "env": { "NODE_PATH": Self::modules() } })
    }
}

/// Calls the server's tools in every revision that both sides speak.
fn check(server: &Value) {
    for setting in REVISIONS {
        let mut server = server.clone();
        server["protocol"] = setting.into();
        let bench = Workbench::new(json!({ "sdk": server }));
        let ran = bench.run(SCRIPT, &[]);
        assert_eq!(ran.code, 0, "{setting}: {ran:#?}");
        assert_eq!(ran.stdout, "[42,true]\n", "{setting}: {ran:#?}");
    }
    // Without a `protocol` setting, Callgate finds the newest revision of the server.
    let bench = Workbench::new(json!({ "sdk": server }));
    let logged = [(); 2].map(|()| bench.callgate(&["-v", "tools"]).stderr);
    assert!(logged[1].contains("revision=\"2026-07-28\""), "{logged:?}");
}

/// A person who fills in forms, with a model that answers.
#[derive(Default)]
struct Ada {
    asked: Mutex<Vec<Value>>,
}

impl Caller for Ada {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = true;
        offers.sampling = true;
        offers
    }

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let (asked, answer) = match wanted.kind {
            WantedKind::Sample => {
                let content = json!({ "type": "text", "text": "an answer" });
                let message = json!({ "role": "assistant", "content": content, "model": "m" });
                (&wanted.params["messages"][0]["content"]["text"], message)
            }
            _ => {
                let form = json!({ "action": "accept", "content": { "name": "Ada" } });
                (&wanted.params["message"], form)
            }
        };
        self.asked.lock().expect("no panic").push(asked.clone());
        Box::pin(async { Ok(answer) })
    }
}

/// A gate with the server in this revision, and with a caller that answers questions.
async fn gate(server: &Value, revision: &str, ada: &Arc<Ada>) -> Gate {
    let mut server = server.clone();
    server["protocol"] = revision.into();
    let bench = Workbench::new(json!({ "sdk": server }));
    let config = Config::load(&bench.path().join("callgate.json")).expect("a configuration");
    let gate = Gate::builder()
        .config(&config)
        .caller(Arc::clone(ada) as Arc<dyn Caller>)
        .spare_workers(0);
    gate.build().await.expect("a gate")
}

async fn call(gate: &Gate, tool: &str) -> String {
    call_with(gate, tool, &json!({})).await
}

async fn call_with(gate: &Gate, tool: &str, arguments: &Value) -> String {
    let arguments = to_raw_value(arguments).expect("JSON");
    let called = gate.call(tool, arguments).await;
    let called = called.unwrap_or_else(|error| panic!("{tool}: {error}"));
    called.get().to_owned()
}

/// Has the server ask for something in each of these revisions.
async fn check_asks(server: &Value, revisions: &[&str]) {
    for revision in revisions {
        let ada = Arc::new(Ada::default());
        let gate = gate(server, revision, &ada).await;
        assert_eq!(call(&gate, "sdk_ask").await, "\"Ada\"", "{revision}");
        let asked = ada.asked.lock().expect("no panic").clone();
        assert_eq!(asked, ["Who is it?"], "{revision}");
        gate.shutdown().await;
    }
}

#[tokio::test]
async fn everything_server_can_request_sampling() {
    let ada = Arc::new(Ada::default());
    let server = node("server-everything", &["stdio"]);
    let gate = gate(&server, "2025-11-25", &ada).await;
    let tool = "sdk_trigger_sampling_request";
    // After the handshake, the server lists the tools that the host's capabilities allow.
    while !gate.view().has_tool(tool) {
        tokio::task::yield_now().await;
    }
    let called = call_with(&gate, tool, &json!({ "prompt": "why?" })).await;
    assert!(called.contains("an answer"), "{called}");
    let asked = ada.asked.lock().expect("no panic").clone();
    assert_eq!(asked, ["Resource trigger-sampling-request context: why?"]);
    gate.shutdown().await;
}

/// Makes the server list a new tool in this revision.
async fn check_grows(server: &Value, revision: &str) {
    let gate = gate(server, revision, &Arc::default()).await;
    assert!(!gate.view().has_tool("sdk_fresh"), "{revision}");
    assert_eq!(call(&gate, "sdk_grow").await, "\"grown\"", "{revision}");
    // Over HTTP, the notification of the change comes beside the answer.
    let comes = async {
        while !gate.view().has_tool("sdk_fresh") {
            tokio::task::yield_now().await;
        }
    };
    let came = tokio::time::timeout(Duration::from_secs(30), comes).await;
    assert!(came.is_ok(), "{revision}: no list has it");
    assert_eq!(call(&gate, "sdk_fresh").await, "\"fresh\"", "{revision}");
    gate.shutdown().await;
}

#[test]
fn each_sdk_server_works_over_stdio() {
    check(&Sdk::TypeScript.over_stdio());
    check(&Sdk::Python.over_stdio());
}

#[test]
fn each_sdk_server_works_over_http() {
    for sdk in [Sdk::TypeScript, Sdk::Python] {
        let (_listening, server) = sdk.over_http();
        check(&server);
    }
}

/// That of Python does not say in the older era that its list can change.
#[tokio::test]
async fn sdk_servers_ask_and_add_tools_over_stdio() {
    for (sdk, grows) in [
        (Sdk::TypeScript, &REVISIONS[..]),
        (Sdk::Python, &REVISIONS[..1]),
    ] {
        let server = sdk.over_stdio();
        check_asks(&server, &REVISIONS).await;
        for revision in grows {
            check_grows(&server, revision).await;
        }
    }
}

/// That of TypeScript has no sessions over HTTP in the older era, and can do neither.
#[tokio::test]
async fn sdk_servers_ask_and_add_tools_over_http() {
    for (sdk, asks) in [
        (Sdk::TypeScript, &REVISIONS[..1]),
        (Sdk::Python, &REVISIONS[..]),
    ] {
        let (_listening, server) = sdk.over_http();
        check_asks(&server, asks).await;
        check_grows(&server, REVISIONS[0]).await;
    }
}

/// Starts a server that knows sessions on this port; 0 is any.
fn with_sessions(sdk: Sdk, port: u16) -> Listening {
    let mut command = match sdk {
        Sdk::TypeScript => {
            let everything = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
            let mut command = Command::new("node");
            command
                .arg("--require")
                .arg(repository().join("fixtures/real-servers/loopback.cjs"))
                .arg(real_servers().join("node").join(everything))
                .arg("streamableHttp");
            command
        }
        Sdk::Python => {
            let (program, args) = sdk.program();
            let mut command = Command::new(program);
            command.args(args).arg("http");
            command
        }
    };
    Listening::start(command.env("PORT", port.to_string()))
}

/// A restarted server does not know the earlier sessions.
#[tokio::test(flavor = "multi_thread")]
async fn restarted_server_is_called_in_new_session() {
    for (sdk, tool, arguments) in [
        (Sdk::TypeScript, "sdk_echo", json!({ "message": "hello" })),
        (Sdk::Python, "sdk_add", json!({ "a": 2, "b": 40 })),
    ] {
        let mut listening = with_sessions(sdk, 0);
        let port = listening.port;
        let server = json!({ "url": format!("http://127.0.0.1:{port}/mcp") });
        let gate = gate(&server, "2025-11-25", &Arc::default()).await;
        let before = call_with(&gate, tool, &arguments).await;
        listening.kill();
        let _listening = with_sessions(sdk, port);
        for _ in 0..2 {
            assert_eq!(call_with(&gate, tool, &arguments).await, before);
        }
        gate.shutdown().await;
    }
}
