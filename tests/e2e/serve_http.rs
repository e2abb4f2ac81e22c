//! `callgate serve --http`: clients of both eras, and the end.

use std::ffi::CString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

use callgate_tests::{Workbench, fixture, odd};
use reqwest::header::HeaderMap;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::serve_client::{NEWEST, User, request, shown, value};
use crate::served::{Served, hello, http, said};

const ERAS: [ProtocolVersion; 3] = [
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    NEWEST,
];

#[tokio::test]
async fn clients_of_both_eras_run_scripts() {
    let bench = Workbench::new(json!({ "ticketing": fixture("callgate-demo-ticketing", &[]) }));
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
        client.cancel().await.expect("a clean end");
    }
    served.terminate();
    assert_eq!(served.wait(), (Some(0), String::new()));
}

/// A person is asked in both eras, over HTTP as over stdio.
#[tokio::test]
async fn users_are_asked() {
    let config = json!({ "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) } });
    let bench = Workbench::with_config(config);
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

/// The newest revision has no sessions, and its headers must be those of the
/// body.
#[tokio::test]
async fn headers_of_the_newest_revision() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let right = served.modern("tools/list", json!({}), &json!({})).send();
    let right = right.await.expect("an answer");
    assert_eq!(right.status(), 200);
    assert!(!right.headers().contains_key("mcp-session-id"));
    assert!(right.text().await.expect("a text").contains("run_script"));
    let send = async |name: &str, value: &'static str| {
        let request = served.modern("tools/list", json!({}), &json!({})).build();
        let mut request = request.expect("a request");
        let name = reqwest::header::HeaderName::from_bytes(name.as_bytes()).expect("a name");
        request
            .headers_mut()
            .insert(name, value.parse().expect("a value"));
        said(http().execute(request).await.expect("an answer")).await
    };
    let other = send("mcp-method", "tools/call").await;
    assert!(other.starts_with("400 -32020 to 7: "), "{other}");
    let other = send("mcp-protocol-version", "2025-11-25").await;
    assert!(other.starts_with("400 "), "{other}");
    let other = send("mcp-protocol-version", "2099-01-01").await;
    assert!(other.starts_with("400 "), "{other}");
}

#[test]
fn wider_than_loopback_needs_protection() {
    let bench = Workbench::new(json!({}));
    let refused = |flags: &[&str]| {
        let ran = bench.callgate(&[&["serve", "--http"], flags].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        ran.stderr
    };
    assert_eq!(
        refused(&["0.0.0.0:0"]),
        "callgate: 0.0.0.0:0 can be reached from other machines, and no token is needed; set \
         \"bearer\" or \"oauth\" in \"serve\", \"http\", or serve on 127.0.0.1\n"
    );
    assert_eq!(
        refused(&[]),
        "callgate: --http needs an address, such as 127.0.0.1:8080, here or as \"address\" in \
         \"serve\", \"http\" of the configuration\n"
    );
    assert_eq!(
        refused(&["127.0.0.1:0", "--bearer-env", "CALLGATE_NOT_SET"]),
        "callgate: --bearer-env CALLGATE_NOT_SET: environment variable not found\n"
    );
    let bench = Workbench::with_config(json!({
        "serve": { "http": { "address": "0.0.0.0:0", "bearer": "0123456789abcdef" } },
    }));
    let ran = bench.callgate(&["serve", "--http"]);
    assert_eq!(
        ran.stderr,
        "callgate: 0.0.0.0:0 has no name of its own, so no Host header could be right; name the \
         hosts that clients use with --allowed-host or \"allowedHosts\" in \"serve\", \"http\"\n"
    );
    let bench = Workbench::with_config(json!({ "serve": { "http": {
        "address": "0.0.0.0:0", "oauth": { "issuer": "https://login.example" },
    } } }));
    let ran = bench.callgate(&["serve", "--http"]);
    assert!(ran.stderr.contains("has no \"resource\""), "{}", ran.stderr);
    let bench = Workbench::with_config(json!({ "serve": { "http": { "bearer": "short" } } }));
    let ran = bench.callgate(&["tools"]);
    assert_eq!(
        ran.stderr,
        "callgate: callgate.json:1:28: \"bearer\" in \"http\" in \"serve\" is a token of fewer than \
         16 characters and could be guessed; use one such as `openssl rand -hex 32` prints\n"
    );
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
    let asked = asked.header("Origin", app).header(
        "Access-Control-Request-Headers",
        "authorization, mcp-param-region,Mcp-Param-Table , x-other, mcp-param-bad name",
    );
    let asked = asked.send().await.expect("an answer");
    assert_eq!(asked.status(), 204);
    let headers = get(asked.headers(), "access-control-allow-headers").unwrap_or_default();
    assert!(headers.starts_with("Authorization, "), "{headers}");
    // Arguments may be mirrored, and nothing else is allowed that a page asks for.
    let more = "X-MCP-Tool-Mode, mcp-param-region, mcp-param-table";
    assert!(headers.ends_with(more), "{headers}");
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
