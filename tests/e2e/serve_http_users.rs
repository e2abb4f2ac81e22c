//! `callgate serve --http` with several users: tokens, roles, and what is not
//! another's.

use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use callgate_tests::{Workbench, fixture, odd};
use rmcp::model::{CallToolRequestParams, ProtocolVersion, ReadResourceRequestParams};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::guarded::{Guarded, follow};
use crate::serve_client::{NEWEST, User, request, shown, value};
use crate::served::{Served, hello, http, said};

const ALICE: &str = "alice-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";
const EVE: &str = "eve-0123456789abcdef";

fn user() -> User {
    User::new(&ProtocolVersion::V_2025_11_25, &[])
}

fn two_users() -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": {
            "ticketing": fixture("callgate-demo-ticketing", &[]),
            "logging": fixture("callgate-demo-logging", &[]),
            "lingers": odd("lingers"),
        },
        "ledger": { "path": "calls.jsonl" },
        "serve": {
            "http": { "bearer": { "alice": ALICE, "bob": BOB, "eve": EVE } },
            "users": {
                "roles": {
                    "writer": { "servers": ["*"], "permissions": { "allow": ["*"] } },
                    "reader": { "servers": ["logging"], "permissions": { "allow": ["logging_*"] } },
                },
                "named": { "alice": ["writer"], "bob": ["reader"] },
            },
        },
    }))
}

#[tokio::test]
async fn roles_select_servers_and_rules() {
    let bench = two_users();
    let served = Served::start(&bench, &[]);
    let alice = served.connect(user(), Some(ALICE)).await;
    let bob = served.connect(user(), Some(BOB)).await;
    let code = "return typeof await ticketing_createIssue({ title: 'A', body: 'B' })";
    let answer = alice.call_tool(request(code)).await.expect("an answer");
    assert_eq!(value(&shown(&answer).1), "object");
    let answer = bob.call_tool(request(code)).await.expect("an answer");
    let (is_error, text) = shown(&answer);
    assert!(is_error && !text.contains("denied"), "{text}");
    // He does not even see them.
    let tools = bob.list_all_tools().await.expect("a list");
    let described = format!("{tools:?}");
    assert!(described.contains("logging_"), "{described}");
    assert!(!described.contains("ticketing"), "{described}");
    let refused = served.try_connect(user(), Some(EVE)).await;
    assert!(refused.is_err());
    let refused = served
        .post(&hello())
        .bearer_auth(EVE)
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        said(refused).await,
        "403 -32600 to null: you have no role here that gives you anything; ask whoever runs this \
         server"
    );
    // Each line says whose call it was.
    let ledger = std::fs::read_to_string(bench.path().join("calls.jsonl")).expect("a ledger");
    let users: Vec<String> = ledger
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["user"].to_string())
        .collect();
    assert_eq!(users, ["\"token alice\"", "\"token alice\""]);
}

#[tokio::test]
async fn sessions_of_others_are_not_found() {
    let bench = two_users();
    let served = Served::start(&bench, &[]);
    let session = served.session(Some(ALICE)).await;
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let with = async |token: &str| {
        let request = served.post(&list).bearer_auth(token);
        let request = request.header("Mcp-Session-Id", &session);
        said(request.send().await.expect("an answer")).await
    };
    let gone = "there is no such session, or it has ended; begin one with initialize";
    assert_eq!(with(BOB).await, format!("404 -32600 to 2: {gone}"));
    let stream = http().get(&served.url).bearer_auth(BOB);
    let stream = stream
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", &session);
    assert_eq!(stream.send().await.expect("an answer").status(), 404);
    let end = http()
        .delete(&served.url)
        .bearer_auth(BOB)
        .header("Mcp-Session-Id", &session);
    assert_eq!(end.send().await.expect("an answer").status(), 404);
    assert!(with(ALICE).await.starts_with("200 "));
}

/// Each has a server process, grants and runs of their own.
#[tokio::test]
async fn nothing_of_one_user_is_the_others() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "lingers": odd("lingers"), "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["lingers_*"] },
        "serve": { "http": { "bearer": { "alice": ALICE, "bob": BOB } } },
    }));
    let served = Served::start(&bench, &[]);
    let grants = User::new(&ProtocolVersion::V_2025_11_25, &["session"]);
    let alice = served.connect(grants.clone(), Some(ALICE)).await;
    let bob = served.connect(user(), Some(BOB)).await;
    let pids = "return JSON.stringify(await lingers_pids({}))";
    let hers = alice.call_tool(request(pids)).await.expect("an answer");
    let his = bob.call_tool(request(pids)).await.expect("an answer");
    let again = alice.call_tool(request(pids)).await.expect("an answer");
    assert_eq!(value(&shown(&hers).1), value(&shown(&again).1));
    assert_ne!(value(&shown(&hers).1), value(&shown(&his).1));
    // She grants something for her session; it is nothing to him.
    let code = "return typeof await ticketing_createIssue({ title: 'A', body: 'B' })";
    for _ in 0..2 {
        let answer = alice.call_tool(request(code)).await.expect("an answer");
        assert_eq!(value(&shown(&answer).1), "object");
    }
    assert_eq!(grants.asked.lock().expect("no panic").len(), 1);
    let answer = bob.call_tool(request(code)).await.expect("an answer");
    assert!(shown(&answer).1.contains("denied"), "{}", shown(&answer).1);
}

/// What one parks, the other cannot fetch, with the very same state.
#[tokio::test]
async fn parked_runs_of_others_are_not_found() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "serve": { "http": { "bearer": { "alice": ALICE, "bob": BOB } } },
    }));
    let served = Served::start(&bench, &[]);
    let code = "return typeof await ticketing_createIssue({ title: 'A', body: 'B' })";
    let call = async |token: &str, more: Value| {
        let mut params = json!({
            "name": "run_script", "arguments": { "code": code },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
            } });
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = served
            .post(&message)
            .bearer_auth(token)
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", "run_script");
        let answer = request
            .send()
            .await
            .expect("an answer")
            .text()
            .await
            .expect("a text");
        let mut data = answer
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(str::trim);
        let data = data.rfind(|data| data.starts_with('{')).unwrap_or(&answer);
        serde_json::from_str::<Value>(data).unwrap_or_else(|error| panic!("{error}: {answer}"))
    };
    let parked = call(ALICE, json!({})).await;
    let state = &parked["result"]["requestState"];
    assert!(state.is_string(), "{parked}");
    let key = parked["result"]["inputRequests"]
        .as_object()
        .expect("requests")
        .keys()
        .next();
    let key = key.expect("a request").clone();
    let yes = json!({
        "requestState": state,
        "inputResponses": { key: { "action": "accept", "content": { "answer": "once" } } },
    });
    let his = call(BOB, yes.clone()).await;
    assert_eq!(his["error"]["code"], -32602, "{his}");
    let hers = call(ALICE, yes).await;
    assert_eq!(hers["result"]["isError"], false, "{hers}");
}

#[tokio::test]
async fn tokens_that_are_none() {
    let bench = two_users();
    let served = Served::start(&bench, &[]);
    let with = async |header: Option<&str>| {
        let mut request = served.post(&hello());
        if let Some(header) = header {
            request = request.header("Authorization", header);
        }
        let answer = request.send().await.expect("an answer");
        let challenge = answer
            .headers()
            .get("www-authenticate")
            .expect("a challenge");
        let challenge = challenge.to_str().expect("text").to_owned();
        format!("{} [{challenge}]", said(answer).await)
    };
    let needed = "401 -32600 to null: a token is needed; send it in the header \"Authorization: \
                  Bearer …\" [Bearer]";
    assert_eq!(with(None).await, needed);
    let basic = format!("Basic {ALICE}");
    for header in ["Bearer", "Bearer ", basic.as_str(), ALICE, "Bearer a b"] {
        assert_eq!(with(Some(header)).await, needed, "{header}");
    }
    assert_eq!(
        with(Some("Bearer alice-0123456789abcdeg")).await,
        "401 -32600 to null: the token is not known [Bearer error=\"invalid_token\", \
         error_description=\"the token is not known\"]"
    );
    let in_query = http().post(format!("{}?access_token={ALICE}", served.url));
    assert_eq!(in_query.send().await.expect("an answer").status(), 401);
    let twice = served
        .post(&hello())
        .header("Authorization", format!("Bearer {ALICE}"));
    let twice = twice.header("Authorization", format!("Bearer {BOB}"));
    assert_eq!(twice.send().await.expect("an answer").status(), 400);
    let lower = served
        .post(&hello())
        .header("Authorization", format!("bearer {ALICE}"));
    assert_eq!(lower.send().await.expect("an answer").status(), 200);
}

/// One whose gate cannot be made does not wait for ever, and hurts no other one;
/// and it is tried again.
#[tokio::test]
async fn a_gate_that_cannot_be_made() {
    let bench = Workbench::with_config(json!({
        "ledger": { "path": "folder/calls.jsonl" },
        "serve": { "http": { "bearer": { "alice": ALICE } } },
    }));
    let served = Served::start(&bench, &[]);
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } } });
    let send = async || {
        let request = served
            .post(&call)
            .bearer_auth(ALICE)
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/list");
        said(request.send().await.expect("an answer")).await
    };
    assert_eq!(
        send().await,
        "503 -32603 to 2: this server could not be made ready for you; whoever runs it can read why"
    );
    std::fs::create_dir(bench.path().join("folder")).expect("a folder");
    assert!(send().await.starts_with("200 "));
}

/// So many users at a time: the idle one makes room, a busy one does not.
#[tokio::test]
async fn users_are_bounded() {
    let bench = Workbench::with_config(json!({
        "serve": {
            "http": { "bearer": { "alice": ALICE, "bob": BOB } },
            "users": { "most": 1 },
        },
    }));
    let served = Served::start(&bench, &[]);
    let session = served.session(Some(ALICE)).await;
    let his = served
        .post(&hello())
        .bearer_auth(BOB)
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        said(his).await,
        "503 -32603 to null: there are as many users as there may be; come again later"
    );
    let end = http()
        .delete(&served.url)
        .bearer_auth(ALICE)
        .header("Mcp-Session-Id", &session);
    assert_eq!(end.send().await.expect("an answer").status(), 202);
    served.session(Some(BOB)).await;
}

/// Logs in through the command, as a person with a browser does.
async fn log_in(bench: &Workbench, arguments: &[&str]) {
    let mut login = tokio::process::Command::new(callgate_tests::binary("callgate"))
        .args(arguments)
        .current_dir(bench.path())
        .env("XDG_STATE_HOME", bench.path().join("state"))
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate");
    let said = login.stderr.take().expect("a piped stderr");
    let mut lines = BufReader::new(said).lines();
    while let Some(line) = lines.next_line().await.expect("UTF-8") {
        if line.starts_with("http://") {
            follow(&line).await.expect("the browser's way");
        }
    }
    assert!(login.wait().await.expect("an end").success());
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// A token of the authorization server, with these claims besides what is right.
async fn signed(guarded: &Guarded, header: Value, changed: Value) -> String {
    let mut claims = json!({
        "iss": guarded.issuer, "aud": "http://localhost/mcp", "sub": "u-1", "scope": "use",
        "exp": now() + 600, "roles": ["reader"],
    });
    for (name, value) in changed.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    let wanted = json!({ "header": header, "claims": claims });
    let asked = http()
        .post(format!("{}/sign", guarded.issuer))
        .body(wanted.to_string());
    let asked = asked.header("Content-Type", "application/json");
    let answer = asked.send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    answer.text().await.expect("a token")
}

fn es256() -> Value {
    json!({ "alg": "ES256", "kid": "one", "typ": "at+jwt" })
}

fn with_issuer(guarded: &Guarded) -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": { "logging": fixture("callgate-demo-logging", &[]) },
        "serve": {
            "http": {
                "bearer": { "ci": ALICE },
                "oauth": {
                    "issuer": guarded.issuer, "resource": "http://localhost/mcp", "scopes": ["use"],
                },
            },
            "users": {
                "roles": { "reader": { "servers": ["logging"] }, "none": {} },
                "named": { "ci": ["reader"] },
                "subjects": { "u-2": ["reader"] },
            },
        },
    }))
}

#[tokio::test]
async fn access_tokens() {
    let guarded = Guarded::start(&json!({}));
    let bench = with_issuer(&guarded);
    let served = Served::start(&bench, &[]);
    let metadata = "/.well-known/oauth-protected-resource";
    for path in [metadata.to_owned(), format!("{metadata}/mcp")] {
        let url = served.url.replace("/mcp", &path);
        let answer = http().get(url).send().await.expect("an answer");
        assert_eq!(
            answer.text().await.expect("a text"),
            json!({
                "resource": "http://localhost/mcp", "authorization_servers": [guarded.issuer],
                "bearer_methods_supported": ["header"], "resource_name": "Callgate",
                "scopes_supported": ["use"],
            })
            .to_string()
        );
    }
    let elsewhere = served.url.replace("/mcp", &format!("{metadata}/other"));
    assert_eq!(
        http()
            .get(elsewhere)
            .send()
            .await
            .expect("an answer")
            .status(),
        404
    );

    let where_ = "resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\"";
    let with = async |token: &str| {
        let request = served.post(&hello()).bearer_auth(token);
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        let challenge = answer.headers().get("www-authenticate");
        let challenge = challenge.map(|value| value.to_str().expect("text").to_owned());
        format!("{status} {}", challenge.unwrap_or_default())
    };
    let anonymous = served.post(&hello()).send().await.expect("an answer");
    assert_eq!(
        anonymous.headers()["www-authenticate"],
        format!("Bearer {where_}, scope=\"use\"")
    );
    assert_eq!(with(ALICE).await, "200 ");
    assert_eq!(
        with(&signed(&guarded, es256(), json!({})).await).await,
        "200 "
    );
    let invalid = |why: &str| {
        format!(
            "401 Bearer {where_}, scope=\"use\", error=\"invalid_token\", error_description=\"{why}\""
        )
    };
    for (header, changed, why) in [
        (
            es256(),
            json!({ "exp": now() - 100 }),
            "the token has expired",
        ),
        (
            es256(),
            json!({ "aud": "http://localhost/other" }),
            "the token is for another audience",
        ),
        (
            es256(),
            json!({ "iss": "https://evil.example" }),
            "the token is not from the issuer that is trusted",
        ),
        (
            json!({ "alg": "none" }),
            json!({}),
            "the token's header cannot be read, or its algorithm is not taken",
        ),
        (
            json!({ "alg": "HS256", "kid": "one" }),
            json!({}),
            "the token's algorithm is not taken",
        ),
        (
            json!({ "alg": "ES256", "kid": "../../../etc/passwd" }),
            json!({}),
            "the token is signed with a key that its issuer does not have",
        ),
    ] {
        let token = signed(&guarded, header, changed).await;
        assert_eq!(with(&token).await, invalid(why));
    }
    let useless = signed(&guarded, es256(), json!({ "scope": "other" })).await;
    assert_eq!(
        with(&useless).await,
        format!("403 Bearer {where_}, error=\"insufficient_scope\", scope=\"use\"")
    );
    // Roles: by the claim, by the subject, and none.
    for (changed, expected) in [
        (json!({ "roles": "other reader" }), "200 "),
        (json!({ "roles": [], "sub": "u-2" }), "200 "),
        (json!({ "roles": [] }), "403 "),
        (json!({ "roles": ["none"] }), "403 "),
        (json!({ "roles": { "reader": true } }), "403 "),
        // A subject is no name of a token.
        (json!({ "roles": [], "sub": "ci" }), "403 "),
        (json!({ "roles": [], "sub": "token ci" }), "403 "),
    ] {
        let token = signed(&guarded, es256(), changed.clone()).await;
        assert_eq!(with(&token).await, expected, "{changed}");
    }
    // Flooded with keys that are not there, the server asks once.
    for n in 0..20 {
        let header = json!({ "alg": "ES256", "kid": format!("made-up-{n}") });
        let token = signed(&guarded, header, json!({})).await;
        assert!(with(&token).await.starts_with("401 "));
    }
    assert_eq!(guarded.seen().await["keys"], 1);
}

#[tokio::test]
async fn an_issuer_that_is_away_lets_nobody_in() {
    let guarded = Guarded::start(&json!({}));
    let bench = with_issuer(&guarded);
    let served = Served::start(&bench, &[]);
    let token = signed(&guarded, es256(), json!({})).await;
    drop(guarded);
    let request = served.post(&hello()).bearer_auth(&token);
    let answer = said(request.send().await.expect("an answer")).await;
    assert!(
        answer.starts_with("503 -32603 to null: whether the token is good"),
        "{answer}"
    );
    // Tokens that need no issuer are good.
    let request = served.post(&hello()).bearer_auth(ALICE);
    assert_eq!(request.send().await.expect("an answer").status(), 200);
}

/// From the first 401 to a call: Callgate logs in at Callgate.
#[tokio::test]
async fn a_whole_login() {
    let guarded = Guarded::start(&json!({ "anyResource": true }));
    let bench = Workbench::with_config(json!({
        "serve": { "http": { "oauth": { "issuer": guarded.issuer, "scopes": ["use"] } } },
    }));
    let served = Served::start(&bench, &[]);
    let client = Workbench::new(json!({ "gate": { "url": served.url, "oauth": {} } }));
    log_in(&client, &["auth", "login", "gate", "--no-browser"]).await;
    let mut call = client.command(&["call", "gate_run_script", r#"{"code":"return 6 * 7"}"#]);
    let output = call
        .env("XDG_STATE_HOME", client.path().join("state"))
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .output()
        .expect("start callgate");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "\"42\\n\"\n",
        "{output:?}"
    );
}

/// A login that was made for one user is nothing to another.
#[tokio::test]
async fn logins_at_servers_are_each_users_own() {
    let guarded = Guarded::start(&json!({}));
    let bench = Workbench::with_config(json!({
        "mcpServers": { "web": { "url": guarded.url, "oauth": { "tokens": "file" } } },
        "permissions": { "allow": ["*"] },
        "serve": { "http": { "bearer": { "alice": ALICE, "bob": BOB } } },
    }));
    let login = ["auth", "login", "web", "--no-browser", "--user", "alice"];
    log_in(&bench, &login).await;
    let served = Served::start(&bench, &[]);
    let call = async |token: &str| {
        let client = served.connect(user(), Some(token)).await;
        let code = "return await web_read({ page: 7 })";
        let answer = client.call_tool(request(code)).await.expect("an answer");
        shown(&answer)
    };
    let (is_error, text) = call(ALICE).await;
    assert!(!is_error && text.contains("\"page\""), "{text}");
    let (is_error, text) = call(BOB).await;
    assert!(is_error && text.contains("not available"), "{text}");
}

/// A user of the newest revision has no session, and is the same user with each
/// request.
#[tokio::test]
async fn users_without_sessions() {
    let bench = two_users();
    let served = Served::start(&bench, &[]);
    let client = served.connect(User::new(&NEWEST, &[]), Some(ALICE)).await;
    let pids = "return JSON.stringify(await lingers_pids({}))";
    let first = client.call_tool(request(pids)).await.expect("an answer");
    let second = client.call_tool(request(pids)).await.expect("an answer");
    let (is_error, text) = shown(&first);
    assert!(!is_error, "{text}");
    assert_eq!(value(&text), value(&shown(&second).1));
}

/// A run that one left, the other cannot wait for, end or read, with its very id.
#[tokio::test]
async fn runs_that_others_left_are_not_found() {
    for version in [ProtocolVersion::V_2025_11_25, NEWEST] {
        let bench = Workbench::with_config(json!({
            "serve": { "http": { "bearer": { "alice": ALICE, "bob": BOB } } },
        }));
        let served = Served::start(&bench, &[]);
        let alice = served.connect(User::new(&version, &[]), Some(ALICE)).await;
        let bob = served.connect(User::new(&version, &[]), Some(BOB)).await;
        let call = async |client: &RunningService<RoleClient, User>, name, arguments: Value| {
            let arguments = arguments.as_object().expect("an object").clone();
            let request = CallToolRequestParams::new(name).with_arguments(arguments);
            shown(&client.call_tool(request).await.expect("an answer"))
        };
        let code = "await new Promise(resolve => setTimeout(resolve, 200)); return 'hers'";
        let arguments = json!({ "code": code, "limits": { "waitMs": 0 } });
        let (is_error, said) = call(&alice, "run_script", arguments).await;
        assert!(!is_error, "{said}");
        let run = said.split('"').nth(1).expect("an id").to_owned();
        let (is_error, his) = call(&bob, "wait", json!({ "run": run, "cancel": true })).await;
        let none = "r-00000000000000000000000000000000";
        let (_, unknown) = call(&bob, "wait", json!({ "run": none })).await;
        assert!(is_error, "{his}");
        assert_eq!(his.replace(&run, none), unknown);
        let (is_error, hers) = call(&alice, "wait", json!({ "run": run })).await;
        assert_eq!((is_error, value(&hers)), (false, "hers"), "{version}");
        let output = || ReadResourceRequestParams::new(format!("callgate://runs/{run}/output"));
        assert!(bob.read_resource(output()).await.is_err());
        let arguments = json!({ "run": run, "offset": 0 });
        let (is_error, his) = call(&bob, "wait", arguments).await;
        assert!(is_error && !his.contains("hers"), "{his}");
    }
}
