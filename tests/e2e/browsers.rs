//! Logins that a call waits for, by a host that has a browser.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::auth::{self, Grant, LoginRequest, OAuth, OpenUrl};
use callgate::{Gate, Rules, Source};
use callgate_tests::binary;
use expect_test::expect;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;

use crate::guarded::{Follow, Guarded, decline, follow};

#[tokio::test]
async fn a_host_with_a_browser_logs_in_while_a_call_waits() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let gate = Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .spare_workers(0)
        .server(guarded.spec(folder.path()))
        .rules(Rules::new(["*"], [], []).expect("a rule"))
        .browser(Arc::new(Follow))
        .build()
        .await
        .expect("a gate");
    let arguments = || RawValue::from_string("{\"a\":1}".to_owned()).expect("JSON");
    let read = gate.call("web_read", arguments()).await;
    assert_eq!(read.expect("a result").get(), "{\"a\":1}");
    let write = gate.call("web_write", arguments()).await;
    assert_eq!(write.expect("a result").get(), "{\"a\":1}");
    let seen = guarded.seen().await;
    assert_eq!(seen["authorizations"], 2, "{seen:#}");
    assert_eq!(seen["lastScope"], "read write", "{seen:#}");
    gate.shutdown().await;
}

/// Logs in once, and goes back from every later page without.
struct Reluctant {
    pages: AtomicUsize,
    issuer: String,
}

impl OpenUrl for Reluctant {
    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, io::Result<()>> {
        let is_first = self.pages.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            let gone = match is_first {
                true => follow(url).await,
                false => decline(url, &self.issuer).await,
            };
            gone.map_err(io::Error::other)
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_person_who_refuses_is_not_asked_again() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Arc::new(Reluctant {
        pages: AtomicUsize::new(0),
        issuer: guarded.issuer.clone(),
    });
    let gate = Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .spare_workers(0)
        .server(guarded.spec(folder.path()))
        .rules(Rules::new(["*"], [], []).expect("a rule"))
        .browser(Arc::clone(&person) as Arc<dyn OpenUrl>)
        .build()
        .await
        .expect("a gate");
    let write = async || {
        let arguments = RawValue::from_string("{\"a\":1}".to_owned()).expect("JSON");
        match gate.call("web_write", arguments).await {
            Ok(result) => result.get().to_owned(),
            Err(error) => error.to_string(),
        }
    };
    expect![[r#"web.write: the login at server `web` failed: the authorization server refused it with "access_denied" (code -32000)"#]].assert_eq(&write().await);
    let pages = || person.pages.load(Ordering::SeqCst);
    assert_eq!(pages(), 2);
    for _ in 0..2 {
        expect![[r#"web.write: server `web` wants the scope "read write"; its page was shown, no login has come of it, and it is not shown again; run `callgate auth login web --scope 'read write'` (code -32000)"#]].assert_eq(&write().await);
    }
    assert_eq!(pages(), 2);
    // Until somebody logs in of their own will.
    let mut request = LoginRequest::new(Arc::new(Follow));
    request.scopes = vec!["write".to_owned()];
    let server = guarded.spec(folder.path());
    auth::login(&server, request).await.expect("a login");
    assert_eq!(write().await, "{\"a\":1}");
    assert_eq!(pages(), 2);
    gate.shutdown().await;
}

#[tokio::test]
async fn a_server_that_always_refuses_asks_a_person_a_few_times_at_most() {
    let guarded = Guarded::start(&json!({ "refuseTokens": true }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let mut oauth = OAuth {
        folder: Some(folder.path().to_owned()),
        place: auth::TokenPlace::File,
        ..OAuth::default()
    };
    let gate = |oauth: &OAuth| {
        Gate::builder()
            .worker_binary(binary("callgate-worker"))
            .spare_workers(0)
            .server(guarded.spec_with(oauth.clone()))
            .browser(Arc::new(Follow))
            .build()
    };
    let built = gate(&oauth).await.expect("a gate");
    assert_eq!(built.unavailable().len(), 1);
    let seen = guarded.seen().await;
    let asked = seen["authorizations"].as_u64().expect("a count");
    assert!(asked <= 3, "{seen:#}");
    built.shutdown().await;

    oauth.grant = Grant::ClientCredentials;
    oauth.client_id = Some("registered".to_owned());
    oauth.issuer = Some(guarded.issuer.clone());
    oauth.client_secret = Some(Source::text("registered-secret"));
    let built = gate(&oauth).await.expect("a gate");
    expect!["server `web` did not start: the login at server `web` failed: the server refuses the token just issued"].assert_eq(&guarded.plain(&built.unavailable()[0].reason));
    built.shutdown().await;
}
