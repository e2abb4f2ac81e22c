//! Servers written with the SDKs of other people, which speak old and new
//! revisions, over both transports.

use std::process::Command;

use callgate::{ServerSpec, Transport};
use callgate_broker::{Broker, Status};
use callgate_tests::listening::Listening;
use callgate_tests::{Workbench, real_servers, repository};
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

    fn over_http(self) -> Listening {
        let (program, args) = self.program();
        let mut command = Command::new(program);
        command
            .args(args)
            .arg("http")
            .env("NODE_PATH", Self::modules());
        Listening::start(&mut command)
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
    // What was found out is not shown, so the client under it is asked.
    let found_out = found_out(server);
    assert_eq!(found_out, "2026-07-28");
}

/// The revision that is spoken with a server of which nothing is known.
fn found_out(server: &Value) -> String {
    let text = |name: &str| server[name].as_str().map(str::to_owned);
    let spec = match text("url") {
        Some(url) => ServerSpec::http("sdk", url),
        None => {
            let args = server["args"].as_array().into_iter().flatten();
            let env = server["env"].as_object().into_iter().flatten();
            ServerSpec::new(
                "sdk",
                Transport::Stdio(callgate::Stdio {
                    command: text("command").unwrap_or_default(),
                    args: args.filter_map(Value::as_str).map(str::to_owned).collect(),
                    env: env
                        .filter_map(|(name, value)| {
                            Some((name.clone(), value.as_str()?.to_owned()))
                        })
                        .collect(),
                    ..callgate::Stdio::default()
                }),
            )
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let broker = Broker::start(vec![spec]).await;
        let state = broker.servers().next().expect("one server");
        broker.shutdown().await;
        match state.status {
            Status::Ready(ready) => ready.protocol_version.clone(),
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn typescript_over_stdio() {
    check(&Sdk::TypeScript.over_stdio());
}

#[test]
fn typescript_over_http() {
    let server = Sdk::TypeScript.over_http();
    check(&json!({ "url": format!("http://127.0.0.1:{}/mcp", server.port) }));
}

#[test]
fn python_over_stdio() {
    check(&Sdk::Python.over_stdio());
}

#[test]
fn python_over_http() {
    let server = Sdk::Python.over_http();
    check(&json!({ "url": format!("http://127.0.0.1:{}/mcp", server.port) }));
}
