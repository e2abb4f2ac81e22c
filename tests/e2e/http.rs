//! A real server over streamable HTTP on loopback.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use callgate_tests::listening::Listening;
use callgate_tests::{Ran, Workbench, odd, real_servers, repository};
use serde_json::json;

/// server-everything over HTTP.
fn everything() -> Listening {
    let entry = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    Listening::start(
        Command::new("node")
            .arg("--require")
            .arg(repository().join("fixtures/real-servers/loopback.cjs"))
            .arg(real_servers().join(entry))
            .arg("streamableHttp")
            .env("PORT", "0"),
    )
}

/// Forwards to `port` and tells when the client has sent `needle`.
fn relay(port: u16, needle: &'static str) -> (u16, Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let own = listener.local_addr().expect("its address").port();
    let (seen, sees) = channel();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            // Once the server is gone, its clients are sent away.
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
                continue;
            };
            let back = (
                server.try_clone().expect("a handle"),
                client.try_clone().expect("a handle"),
            );
            let seen = seen.clone();
            thread::spawn(move || forward(client, server, Some((needle, seen))));
            thread::spawn(move || forward(back.0, back.1, None));
        }
    });
    (own, sees)
}

fn forward(mut from: TcpStream, mut to: TcpStream, watch: Option<(&str, Sender<()>)>) {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..read]).is_err() {
            break;
        }
        if let Some((needle, seen)) = &watch {
            all.extend_from_slice(&chunk[..read]);
            if String::from_utf8_lossy(&all).contains(needle) {
                all.clear();
                // The test may have seen enough and gone on.
                let _gone = seen.send(());
            }
        }
    }
    drop(to.shutdown(std::net::Shutdown::Both));
    drop(from.shutdown(std::net::Shutdown::Both));
}

#[test]
fn tools_are_listed_and_called() {
    let server = everything();
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let bench = Workbench::new(json!({ "web": { "url": url } }));
    let ran = bench.run("return await web_get_sum({ a: 2, b: 40 })", &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("42"), "{ran:#?}");
}

#[test]
fn a_server_killed_in_a_call_throws_and_the_report_is_whole() {
    let mut server = everything();
    let (port, called) = relay(server.port, "trigger-long-running-operation");
    let bench = Workbench::new(json!({
        "web": { "url": format!("http://127.0.0.1:{port}/mcp") },
        "odd": odd("flaky"),
    }));
    bench.write(
        "script.ts",
        "let caught;
         try { await web_trigger_long_running_operation({ duration: 600, steps: 1 }) }
         catch (error) { caught = [error instanceof McpProtocolError, error.tool] }
         return [caught, await odd_echo({ still: 'here' })];",
    );
    let command = bench
        .command(&["run", "script.ts", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate");
    called.recv().expect("the call reaches the server");
    server.kill();
    let ran = Ran::from(command.wait_with_output().expect("the end"));
    let report = ran.json();
    assert_eq!(
        report["value"]["json"],
        json!([[true, "web_trigger_long_running_operation"], { "still": "here" }]),
        "{report:#}"
    );
    let functions: Vec<_> = report["calls"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|call| &call["function"])
        .collect();
    assert_eq!(
        functions,
        ["web_trigger_long_running_operation", "odd_echo"],
        "{report:#}"
    );
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_unavailable() {
    // A port that was free a moment ago: nothing listens on it.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    drop(listener);
    let bench = Workbench::new(json!({ "web": { "url": format!("http://127.0.0.1:{port}/mcp") } }));
    let report = bench.report("return 1", &[]);
    assert_eq!(report["status"], "completed", "{report:#}");
    assert_eq!(report["unavailable"][0]["server"], "web", "{report:#}");
}
