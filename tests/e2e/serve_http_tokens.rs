//! `callgate serve --http` and tokens: those it takes, those that only look so, and
//! logins by which they are had.

use std::process::Stdio;

use callgate_tests::Workbench;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::guarded::{Guarded, follow};
use crate::serve_client::{request, shown};
use crate::serve_http_users::{ALICE, BOB, two_users, user};
use callgate_tests::served::{Served, hello, http, said};

#[tokio::test]
async fn invalid_tokens_are_refused() {
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
    let needed = "401 -32600 to nothing: a token is required; send it in the header \"Authorization: \
                  Bearer …\" [Bearer]";
    assert_eq!(with(None).await, needed);
    let basic = format!("Basic {ALICE}");
    for header in ["Bearer", "Bearer ", basic.as_str(), ALICE, "Bearer a b"] {
        assert_eq!(with(Some(header)).await, needed, "{header}");
    }
    assert_eq!(
        with(Some("Bearer alice-0123456789abcdeg")).await,
        "401 -32600 to nothing: the token is unknown [Bearer error=\"invalid_token\", \
         error_description=\"the token is unknown\"]"
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

#[tokio::test]
async fn unreachable_issuer_blocks_only_oauth_tokens() {
    let bench = Workbench::with_config(json!({ "serve": { "http": {
        "bearer": { "ci": ALICE },
        "oauth": { "issuer": "http://127.0.0.1:1", "resource": "http://localhost/mcp" },
    } } }));
    let served = Served::start(&bench, &[]);
    let token = "eyJhbGciOiJFUzI1NiJ9.e30.AAAA";
    let request = served.post(&hello()).bearer_auth(token);
    let answer = said(request.send().await.expect("an answer")).await;
    let expected = "503 -32603 to nothing: the token cannot be checked now";
    assert!(answer.starts_with(expected), "{answer}");
    // Tokens that need no issuer are good.
    let request = served.post(&hello()).bearer_auth(ALICE);
    assert_eq!(request.send().await.expect("an answer").status(), 200);
}

/// A login of one user is not used for a different user.
#[tokio::test]
async fn logins_at_servers_are_each_users_own() {
    let guarded = Guarded::start(&json!({}));
    let bench = Workbench::with_config(json!({
        "mcpServers": { "web": { "url": guarded.url, "oauth": { "tokens": "file" } } },
        "permissions": { "allow": ["*"] },
        "serve": { "http": { "bearer": { "alice": ALICE, "bob": BOB } } },
    }));
    let login = ["auth", "login", "web", "--no-browser", "--user", "alice"];
    log_in(&bench, &login, through).await;
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

/// Logs in through the command, like a person who completes the page in a browser.
pub async fn log_in(bench: &Workbench, arguments: &[&str], browse: impl AsyncFn(&str)) {
    let mut login = tokio::process::Command::from(bench.command(arguments))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate");
    let said = login.stderr.take().expect("a piped stderr");
    let mut lines = BufReader::new(said).lines();
    let mut all = String::new();
    while let Some(line) = lines.next_line().await.expect("UTF-8") {
        if line.starts_with("http://") {
            browse(&line).await;
        }
        all += &line;
        all.push('\n');
    }
    assert!(login.wait().await.expect("an end").success(), "{all}");
}

/// The way of a browser that our own authorization server needs.
async fn through(page: &str) {
    follow(page).await.expect("the browser's way");
}
