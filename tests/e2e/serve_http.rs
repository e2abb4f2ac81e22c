//! `callgate serve --http`: clients of both eras, and the end.

use std::ffi::CString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

use callgate_tests::{Workbench, demo_ticketing, odd};
use expect_test::expect;
use reqwest::header::HeaderMap;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::cli::told;
use crate::serve_client::{NEWEST, User, request, shown, value};
use callgate_tests::served::{Served, hello, http, said};

const ERAS: [ProtocolVersion; 3] = [
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    NEWEST,
];

#[tokio::test]
async fn clients_of_both_eras_run_scripts() {
    let bench = Workbench::new(json!({ "ticketing": demo_ticketing() }));
    let mut served = Served::start(&bench, &[]);
    for version in ERAS {
        let client = served.connect(User::new(&version, &[]), None).await;
        let tools = client.list_all_tools().await.expect("a list");
        assert!(
            tools.iter().any(|tool| tool.name == "run_script"),
            "{tools:?}"
        );
        let code = "const issue = await ticketing_createIssue({ title: 'A', body: 'B' });
                    return typeof issue.issueId";
        let answer = client.call_tool(request(code)).await.expect("an answer");
        let (is_error, text) = shown(&answer);
        assert!(!is_error, "{version}: {text}");
        assert_eq!(value(&text), "string", "{version}");
    }
    served.terminate();
    assert_eq!(served.wait(), (Some(0), String::new()));
}

/// A person is asked in both eras, over HTTP as over stdio.
#[tokio::test]
async fn users_are_asked() {
    let bench = Workbench::asking();
    let served = Served::start(&bench, &[]);
    for version in ERAS {
        let user = User::new(&version, &["once"]);
        let client = served.connect(user.clone(), None).await;
        let code = "return typeof await ticketing_createIssue({ title: 'A', body: 'B' })";
        let answer = client.call_tool(request(code)).await.expect("an answer");
        assert_eq!(value(&shown(&answer).1), "object", "{version}");
        assert_eq!(user.asked.lock().expect("no panic").len(), 1, "{version}");
    }
}

/// A run that is under way when the server is told to end comes to its own end.
#[tokio::test]
async fn the_end_waits_for_runs() {
    for version in ERAS {
        let mut bench = Noting::new(&json!({}));
        let mut served = Served::start(&bench.bench, &[]);
        let client = served.connect(User::new(&version, &[]), None).await;
        let run = tokio::spawn({
            let code = "await notes_note({ id: 'begun' });
                        await new Promise(resolve => setTimeout(resolve, 300));
                        return 'to its end'";
            let peer = client.peer().clone();
            async move { peer.call_tool(request(code)).await }
        });
        bench.noted().await;
        served.terminate();
        let answer = run.await.expect("no panic").expect("a report");
        assert_eq!(value(&shown(&answer).1), "to its end", "{version}");
        assert_eq!(served.wait().0, Some(0), "{version}");
    }
}

#[tokio::test]
async fn without_sessions_each_request_has_its_mode() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    let mut served = Served::start(&bench, &[]);
    let url = served.url.clone();
    for (header, query, tool) in [
        ("", "", "run_script"),
        ("code", "", "run_script"),
        ("native", "?tool_mode=discovery", "odd_echo"),
        ("", "?tool_mode=native", "odd_echo"),
        ("discovery", "", "call_tool"),
    ] {
        served.url = format!("{url}{query}");
        let mut request = served.modern("tools/list", json!({}), &json!({}));
        if !header.is_empty() {
            request = request.header("X-MCP-Tool-Mode", header);
        }
        let listed = said(request.send().await.expect("an answer")).await;
        assert!(
            listed.contains(&format!("\"{tool}\"")),
            "{header}{query}: {listed}"
        );
    }
}

#[test]
fn wider_than_loopback_needs_protection() {
    let bench = Workbench::new(json!({}));
    let commands = [
        "serve --http 0.0.0.0:0",
        "serve --http",
        "serve --http 127.0.0.1:0 --bearer-env CALLGATE_NOT_SET",
    ];
    expect![[r#"
        2 serve --http 0.0.0.0:0: callgate: 0.0.0.0:0 can be reached from other machines, and no token is needed; set "bearer" or "oauth" in "serve", "http", or serve on 127.0.0.1
        2 serve --http: callgate: --http needs an address, such as 127.0.0.1:8080, here or as "address" in "serve", "http" of the configuration
        2 serve --http 127.0.0.1:0 --bearer-env CALLGATE_NOT_SET: callgate: --bearer-env CALLGATE_NOT_SET: environment variable not found
    "#]].assert_eq(&told(&bench, &commands));
    let mut said = String::new();
    for http in [
        json!({ "address": "0.0.0.0:0", "bearer": "0123456789abcdef" }),
        json!({ "address": "0.0.0.0:0", "oauth": { "issuer": "https://login.example" } }),
        json!({ "bearer": "short" }),
    ] {
        let bench = Workbench::with_config(json!({ "serve": { "http": http } }));
        said += &told(&bench, &["serve --http"]);
    }
    expect![[r#"
        2 serve --http: callgate: 0.0.0.0:0 has no name of its own, so no Host header could be right; name the hosts that clients use with --allowed-host or "allowedHosts" in "serve", "http"
        2 serve --http: callgate: "oauth" in "serve", "http" has no "resource", and 0.0.0.0:0 is not what clients call; write the URL that they use, such as "https://callgate.example.com/mcp"
        2 serve --http: callgate: callgate.json:1:28: "bearer" in "http" in "serve" is a token of fewer than 16 characters and could be guessed; use one such as `openssl rand -hex 32` prints
    "#]].assert_eq(&said);
}

/// What the answers to good requests must not tell others.
#[tokio::test]
async fn answers_are_for_nobody_else() {
    let bench = Workbench::with_config(json!({
        "serve": { "http": { "allowedOrigins": ["https://app.example"] } },
    }));
    let served = Served::start(&bench, &[]);
    let plain = served.post(&hello()).send().await.expect("an answer");
    let get = |headers: &HeaderMap, name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().expect("text").to_owned())
    };
    assert_eq!(
        get(plain.headers(), "x-content-type-options").as_deref(),
        Some("nosniff")
    );
    assert_eq!(get(plain.headers(), "access-control-allow-origin"), None);
    let app = "https://app.example";
    let page = served
        .post(&hello())
        .header("Origin", app)
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        get(page.headers(), "access-control-allow-origin").as_deref(),
        Some(app)
    );
    assert_eq!(get(page.headers(), "vary").as_deref(), Some("Origin"));
    let asked = http().request(reqwest::Method::OPTIONS, &served.url);
    let wanted = "authorization, mcp-param-region";
    let asked = asked.header("Origin", app);
    let asked = asked.header("Access-Control-Request-Headers", wanted);
    let asked = asked.send().await.expect("an answer");
    assert_eq!(asked.status(), 204);
    let allowed = get(asked.headers(), "access-control-allow-headers");
    assert_eq!(allowed.as_deref(), Some(wanted));
    let asked = http().request(reqwest::Method::OPTIONS, &served.url);
    let asked = asked
        .header("Origin", "https://evil.example")
        .send()
        .await
        .expect("an answer");
    assert_eq!(asked.status(), 403);
    assert_eq!(get(asked.headers(), "access-control-allow-origin"), None);
}

/// A folder with a server that a script can tell that it has begun.
pub struct Noting {
    pub bench: Workbench,
    pipe: Option<BufReader<File>>,
}

impl Noting {
    pub fn new(serve: &Value) -> Self {
        let bench = Workbench::empty();
        let pipe = bench.path().join("notes");
        let name = CString::new(pipe.display().to_string()).expect("a name");
        // SAFETY: a system call with a name that ends with a NUL.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let mut notes = odd("effects");
        notes["env"] = json!({ "EFFECTS": pipe });
        let config = json!({
            "mcpServers": { "notes": notes }, "permissions": { "allow": ["*"] }, "serve": serve,
        });
        bench.write("callgate.json", &config.to_string());
        // For both ends, so that it waits for nobody to open the other one.
        let pipe = File::options().read(true).write(true).open(pipe);
        let pipe = Some(BufReader::new(pipe.expect("the pipe")));
        Self { bench, pipe }
    }

    /// Waits for a note.
    pub async fn noted(&mut self) {
        let mut pipe = self.pipe.take().expect("it is noted once");
        let note = tokio::task::spawn_blocking(move || {
            let mut note = String::new();
            pipe.read_line(&mut note).expect("a note");
            note
        });
        assert_eq!(note.await.expect("no panic"), "done begun\n");
    }
}
