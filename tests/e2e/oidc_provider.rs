//! OAuth against a third-party authorization server: discovery, registration or a metadata
//! document, login, renewal, more scopes, revocation. The resource server is Callgate over HTTP.

use std::process::Command;

use callgate_tests::listening::Listening;
use callgate_tests::{Ran, Workbench, real_servers, repository};
use serde_json::{Value, json};

use crate::serve_http_tokens;
use callgate_tests::served::Served;

/// The authorization server.
struct Provider(Listening);

impl Provider {
    fn start() -> Self {
        let program = repository().join("fixtures/real-servers/authorization-server.mjs");
        let modules = real_servers().join("node/node_modules");
        let mut command = Command::new("node");
        command.arg(program).env("NODE_PATH", modules);
        Self(Listening::start(&mut command))
    }

    fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.0.port)
    }

    /// The kinds of requests that the authorization server has served, with their counts.
    async fn seen(&self) -> Value {
        let url = format!("{}/seen", self.issuer());
        let answer = reqwest::get(url).await.expect("an answer");
        serde_json::from_str(&answer.text().await.expect("its text")).expect("JSON")
    }

    /// Callgate as the resource server: it accepts this provider's tokens with these scopes.
    fn guards(&self, scopes: &[&str]) -> Workbench {
        let oauth = json!({ "issuer": self.issuer(), "scopes": scopes });
        Workbench::with_config(json!({ "serve": { "http": { "oauth": oauth } } }))
    }
}

/// Callgate as the OAuth client: it requests these scopes, or those that the server names.
fn client(served: &Served, scopes: &[&str]) -> Workbench {
    let oauth = json!({ "tokens": "file", "scopes": scopes });
    Workbench::new(json!({ "gate": { "url": served.url, "oauth": oauth } }))
}

/// Calls a tool of the resource server.
fn call(bench: &Workbench) -> Ran {
    let script = r#"{"code":"return 6 * 7"}"#;
    bench.callgate(&["call", "gate_run_script", script])
}

#[track_caller]
fn assert_called(ran: &Ran) {
    assert_eq!(ran.stdout, "\"42\\n\"\n", "{ran:#?}");
}

/// Logs in through the command, as a person with a browser does.
async fn log_in(bench: &Workbench, more: &[&str]) {
    let arguments = [&["auth", "login", "gate", "--no-browser"], more].concat();
    serve_http_tokens::log_in(bench, &arguments, browse).await;
}

/// Goes where a page leads, with the cookies of the way, to the end of it.
async fn browse(page: &str) {
    let browser = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client");
    let mut page = reqwest::Url::parse(page).expect("a URL");
    let mut cookies: Vec<(String, String)> = Vec::new();
    for _ in 0..10 {
        let jar: Vec<String> = cookies.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let request = browser.get(page.clone()).header("Cookie", jar.join("; "));
        let answer = request.send().await.expect("an answer");
        for cookie in answer.headers().get_all("set-cookie") {
            let cookie = cookie.to_str().expect("text");
            let pair = cookie.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').expect("a cookie");
            cookies.retain(|(known, _)| known != name);
            if !value.is_empty() {
                cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        let Some(place) = answer.headers().get("location") else {
            assert_eq!(answer.status(), 200, "{page}");
            return;
        };
        let place = place.to_str().expect("text");
        page = page.join(place).expect("a place");
    }
    panic!("it leads nowhere: {page}");
}

#[tokio::test]
async fn login_calls_renewal_and_logout_succeed() {
    let provider = Provider::start();
    let server = provider.guards(&["use"]);
    let served = Served::start(&server, &[]);
    let client = client(&served, &[]);
    let without = call(&client);
    assert_eq!(without.code, 5, "{without:?}");

    log_in(&client, &[]).await;
    assert_eq!(
        provider.seen().await,
        json!({ "registered": 1, "authorization_code": 1 })
    );
    // The access tokens expire before use: each of the three requests of a call (discovery, the
    // list of tools, the call) has a token of its own.
    assert_called(&call(&client));
    assert_called(&call(&client));
    assert_eq!(
        provider.seen().await,
        json!({ "registered": 1, "authorization_code": 1, "refresh_token": 6 })
    );

    let logout = client.callgate(&["auth", "logout", "gate"]);
    assert_eq!(logout.code, 0, "{logout:#?}");
    assert_eq!(
        provider.seen().await,
        json!({ "registered": 1, "authorization_code": 1, "refresh_token": 6, "revoked": 1 })
    );
    let after = call(&client);
    assert_eq!(after.code, 5, "{after:?}");
}

/// The client does not register: the authorization server reads its metadata document.
#[tokio::test]
async fn login_by_metadata_document_needs_no_registration() {
    let provider = Provider::start();
    let server = provider.guards(&["use"]);
    let served = Served::start(&server, &[]);
    let document = "https://documents.example/client.json";
    let oauth = json!({ "tokens": "file", "clientMetadataUrl": document });
    let client = Workbench::new(json!({ "gate": { "url": served.url, "oauth": oauth } }));
    log_in(&client, &[]).await;
    assert_eq!(
        provider.seen().await,
        json!({ "documents": 1, "authorization_code": 1 })
    );
    let status = client.callgate(&["auth", "status", "gate"]);
    let shown = format!("  client: {document}\n");
    assert!(status.stdout.contains(&shown), "{status:#?}");
    assert_called(&call(&client));
    assert_eq!(
        provider.seen().await,
        json!({ "documents": 1, "authorization_code": 1, "refresh_token": 3 })
    );
}
