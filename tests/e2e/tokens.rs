//! The use of a login's tokens by the link to a server.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;

use callgate::faces::auth;
use callgate::faces::auth::LoginRequest;
use callgate_tests::{Ran, Workbench};
use expect_test::expect;
use serde_json::{Value, json};

use crate::guarded::{Follow, Guarded};

/// A folder with the configuration of a guarded server, and a login there.
struct LoggedIn {
    guarded: Guarded,
    bench: Workbench,
}

impl LoggedIn {
    async fn with(quirks: serde_json::Value) -> Self {
        let guarded = Guarded::start(&quirks);
        let bench = guarded.bench(&json!({ "tokens": "file" }));
        let this = Self { guarded, bench };
        this.log_in(&[]).await;
        this
    }

    async fn log_in(&self, scopes: &[&str]) {
        let mut request = LoginRequest::new(Arc::new(Follow));
        request.scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let server = self.guarded.spec(&self.folder());
        auth::login(&server, request).await.expect("a login");
    }

    fn folder(&self) -> PathBuf {
        self.bench.path().join("state/callgate/auth")
    }

    fn start(&self, tool: &str) -> Child {
        start(&self.bench, tool)
    }

    /// Calls a tool, and returns the output with the exit code.
    fn call(&self, tool: &str) -> String {
        shown(&self.guarded, self.start(tool))
    }

    fn status(&self) -> String {
        self.bench.callgate(&["auth", "status", "web"]).stdout
    }

    /// Expects this number of renewals at the authorization server.
    async fn has_renewed(&self, times: u64) {
        let seen = self.guarded.seen().await;
        assert_eq!(seen["refresh_token"], times, "{seen:#}");
    }

    /// The file with this extension.
    fn file(&self, extension: &str) -> PathBuf {
        let files = std::fs::read_dir(self.folder()).expect("the folder of logins");
        let mut files = files.map(|entry| entry.expect("an entry").path());
        files
            .find(|file| file.extension().is_some_and(|has| has == extension))
            .expect("such a file")
    }
}

fn start(bench: &Workbench, tool: &str) -> Child {
    bench
        .command(&["call", tool, r#"{"a":1}"#])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate")
}

fn shown(guarded: &Guarded, call: Child) -> String {
    let ran = Ran::from(call.wait_with_output().expect("the end"));
    guarded.plain(&format!("{} {}{}", ran.code, ran.stdout, ran.stderr))
}

#[tokio::test]
async fn concurrent_processes_renew_a_token_once() {
    let here = LoggedIn::with(json!({ "firstExpiresIn": 0 })).await;
    // Both wait for the lock that this test holds until then.
    let path = here.file("lock");
    let lock = File::options().write(true).open(&path).expect("the lock");
    lock.lock().expect("the lock");
    let inode = lock.metadata().expect("its number").ino();
    let mut both = [here.start("web_read"), here.start("web_read")];
    while waiting_for(inode) < 2 {
        for process in &mut both {
            assert_eq!(process.try_wait().expect("its state"), None, "ended early");
        }
        std::thread::yield_now();
    }
    drop(lock);
    for process in both {
        assert_eq!(shown(&here.guarded, process), "0 {\"a\":1}\n");
    }
    here.has_renewed(1).await;
    // The new token is saved, so a third process has nothing to renew.
    assert_eq!(here.call("web_read"), "0 {\"a\":1}\n");
    here.has_renewed(1).await;
}

/// The number of waiters for a lock on the file with this inode number.
fn waiting_for(inode: u64) -> usize {
    let locks = std::fs::read_to_string("/proc/locks").expect("the locks");
    let blocked = locks
        .lines()
        .filter(|line| line.contains("->") && line.contains(&format!(":{inode} ")));
    blocked.count()
}

#[tokio::test]
async fn refused_token_is_renewed() {
    let here = LoggedIn::with(json!({})).await;
    here.guarded.post("expire").await;
    expect![[r#"
        0 {"a":1}
    "#]]
    .assert_eq(&here.call("web_read"));
    here.has_renewed(1).await;
    // Names that only the server knows may be among those that it granted.
    let seen = here.guarded.seen().await;
    assert_eq!(seen["renewals with a scope"], json!(null), "{seen:#}");
}

#[tokio::test]
async fn refused_login_has_ended() {
    for quirks in [json!({}), json!({ "noRefresh": true })] {
        let here = LoggedIn::with(quirks).await;
        here.guarded.post("forget").await;
        here.guarded.post("expire").await;
        let said = here.call("web_read");
        assert!(said.contains("needs a new login"), "{said}");
        let status = here.bench.callgate(&["auth", "status", "web"]);
        let ended = "web: the login has ended; log in again\n";
        assert!(status.stdout.starts_with(ended), "{status:#?}");
        assert_eq!(status.code, 1, "{status:#?}");
        let doctor = here.bench.callgate(&["doctor"]).stdout;
        assert!(doctor.contains("callgate auth login web"), "{doctor}");
        assert!(!doctor.contains("\"url\" is right"), "{doctor}");
        here.log_in(&[]).await;
        assert!(here.status().starts_with("web: logged in, "));
    }
}

/// An earlier version took endpoints from any party that said it was the issuer.
#[tokio::test]
async fn login_of_earlier_version_is_refused() {
    let here = LoggedIn::with(json!({})).await;
    let file = here.file("json");
    let text = std::fs::read_to_string(&file).expect("the login");
    let mut older: Value = serde_json::from_str(&text).expect("JSON");
    older["version"] = 1.into();
    std::fs::write(&file, older.to_string()).expect("the login");
    let before = here.guarded.seen().await;
    let said = here.call("web_read");
    assert!(said.contains("log in again"), "{said}");
    let after = here.guarded.seen().await;
    assert_eq!(before["with a token"], after["with a token"]);
    here.log_in(&[]).await;
    assert_eq!(here.call("web_read"), "0 {\"a\":1}\n");
}

/// A token is renewed half a minute before its end, and good until then.
#[tokio::test]
async fn unrenewable_token_is_used_until_expiry() {
    for quirks in [
        json!({ "firstExpiresIn": 29, "refreshStatus": 503 }),
        json!({ "firstExpiresIn": 29, "refreshStatus": 400 }),
        json!({ "firstExpiresIn": 29, "noRefresh": true }),
    ] {
        let here = LoggedIn::with(quirks).await;
        assert_eq!(here.call("web_read"), "0 {\"a\":1}\n");
        let status = here.status();
        assert!(status.starts_with("web: logged in, for "), "{status}");
    }
    let here = LoggedIn::with(json!({ "firstExpiresIn": 29 })).await;
    here.guarded.post("forget").await;
    for _ in 0..2 {
        assert_eq!(here.call("web_read"), "0 {\"a\":1}\n");
    }
    let ended = json!({ "firstExpiresIn": 0, "refreshStatus": 503 });
    let ended = LoggedIn::with(ended).await;
    expect![[r#"
        5 error: server `web` did not start: the token of server `web` cannot be renewed: the authorization server answered 503, "temporarily_unavailable"; try again later, or run `callgate auth login web`
    "#]].assert_eq(&ended.call("web_read"));
    let status = ended.status();
    assert!(
        status.starts_with("web: logged in, the token has expired"),
        "{status}"
    );
}

#[tokio::test]
async fn expired_login_error_asks_for_new_login() {
    let here = LoggedIn::with(json!({ "firstExpiresIn": 0 })).await;
    let ended = "5 error: server `web` did not start: server `web` needs a new login: the token \
                 has ended, and it cannot be renewed; run `callgate auth login web`\n";
    here.guarded.post("forget").await;
    // The refresh token is not tried again.
    for _ in 0..2 {
        assert_eq!(here.call("web_read"), ended);
    }
    here.has_renewed(1).await;
    // The refresh token of a new login is tried.
    here.log_in(&[]).await;
    here.guarded.post("forget").await;
    assert_eq!(here.call("web_read"), ended);
    here.has_renewed(2).await;
    let without = LoggedIn::with(json!({ "firstExpiresIn": 0, "noRefresh": true })).await;
    assert_eq!(without.call("web_read"), ended);
}

#[tokio::test]
async fn token_for_wrong_audience_is_refused() {
    let here = LoggedIn::with(json!({ "wrongAudience": true })).await;
    expect![[r#"
        5 error: server `web` did not start: server `web` refuses its token; run `callgate auth login web`
    "#]].assert_eq(&here.call("web_read"));
    here.has_renewed(1).await;
}

#[tokio::test]
async fn token_is_sent_only_to_its_resource() {
    let here = LoggedIn::with(json!({})).await;
    let file = here.file("json");
    let text = std::fs::read_to_string(&file).expect("the login");
    let other = here.guarded.url.replace("/mcp", "/other");
    let resource = |url: &str| format!("\"resource\": \"{url}\"");
    assert!(text.contains(&resource(&here.guarded.url)), "{text}");
    let changed = text.replace(&resource(&here.guarded.url), &resource(&other));
    std::fs::write(&file, changed).expect("the login");
    let before = here.guarded.seen().await;
    expect![[r#"
        5 error: server `web` did not start: server `web` has a login that is for a different resource; run `callgate auth login web`
    "#]].assert_eq(&here.call("web_read"));
    let after = here.guarded.seen().await;
    assert_eq!(before["with a token"], after["with a token"]);
    // The same name with a different URL finds no login.
    let elsewhere = json!({ "url": format!("{other}?x=1"), "oauth": { "tokens": "file" } });
    let config = json!({ "mcpServers": { "web": elsewhere } });
    here.bench.write("callgate.json", &config.to_string());
    let none = "web: not logged in (set \"oauth\": false if it needs no login)\n";
    assert_eq!(here.status(), none);
}

#[tokio::test]
async fn client_credentials_grant_needs_no_person() {
    let guarded = Guarded::start(&json!({}));
    let bench = guarded.bench(&json!({
        "grant": "client_credentials", "clientId": "registered", "issuer": guarded.issuer,
        "clientSecret": { "command": ["echo", "registered-secret"] }, "scopes": ["read", "write"]
    }));
    expect![[r#"
        0 {"a":1}
    "#]]
    .assert_eq(&shown(&guarded, start(&bench, "web_write")));
    let seen = guarded.seen().await;
    assert_eq!(seen["client_credentials"], 1, "{seen:#}");
    assert!(
        !bench.state().join("callgate/auth").exists(),
        "nothing is kept of it"
    );
    let narrow = guarded.bench(&json!({
        "grant": "client_credentials", "clientId": "registered", "issuer": guarded.issuer,
        "clientSecret": "registered-secret"
    }));
    expect![[r#"
        1 error: web_write: server `web` wants the scope "write"; write it in "scopes" of the server's "oauth", and see that the authorization server grants it to the client (code -32000)
    "#]].assert_eq(&shown(&guarded, start(&narrow, "web_write")));
    let wrong = guarded.bench(&json!({
        "grant": "client_credentials", "clientId": "registered", "issuer": guarded.issuer,
        "clientSecret": "not-the-secret"
    }));
    expect![[r#"
        5 error: server `web` did not start: the login at server `web` failed: the authorization server answered 401, "invalid_client"
    "#]].assert_eq(&shown(&guarded, start(&wrong, "web_read")));
}
