//! Logins that a call waits for, by a host that has a browser.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::config::CacheConfig;
use callgate::faces::Connect;
use callgate::faces::auth;
use callgate::faces::auth::{LoginPage, LoginRequest, OAuth, OpenUrl};
use callgate::{Gate, GateBuilder, Rules, ServerSpec};
use callgate_tests::binary;
use expect_test::expect;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;

use crate::guarded::{Follow, Guarded, decline, follow};

/// A person's reaction to a login page.
#[derive(Clone, Copy)]
enum Does {
    LogIn,
    /// Refuses the login and returns to the client.
    Decline,
}

/// A person with a reaction to each page; the last reaction holds for every later page.
struct Person {
    does: Vec<Does>,
    pages: AtomicUsize,
    issuer: String,
}

impl Person {
    fn who(does: impl Into<Vec<Does>>, guarded: &Guarded) -> Arc<Self> {
        Arc::new(Self {
            does: does.into(),
            pages: AtomicUsize::new(0),
            issuer: guarded.issuer.clone(),
        })
    }

    fn pages(&self) -> usize {
        self.pages.load(Ordering::SeqCst)
    }
}

impl OpenUrl for Person {
    fn open<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, io::Result<()>> {
        let url = page.url.as_str();
        let page = self.pages.fetch_add(1, Ordering::SeqCst);
        let does = self.does[page.min(self.does.len() - 1)];
        async move {
            let gone = match does {
                Does::LogIn => follow(url).await,
                Does::Decline => decline(url, &self.issuer).await,
            };
            gone.map_err(io::Error::other)
        }
        .boxed()
    }
}

fn builder(server: ServerSpec) -> GateBuilder {
    Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .spare_workers(0)
        .server(server)
}

/// A gate to the guarded server, with the logins made by `person`.
async fn gate_of(guarded: &Guarded, folder: &Path, person: &Arc<Person>) -> Gate {
    builder(guarded.spec(folder))
        .rules(Rules::builder().allow("*").build().expect("a rule"))
        .browser(Arc::clone(person) as Arc<dyn OpenUrl>)
        .build()
        .await
        .expect("a gate")
}

/// The result of a tool call as JSON text, or its error message.
async fn said(gate: &Gate, tool: &str) -> String {
    let arguments = RawValue::from_string("{\"a\":1}".to_owned()).expect("JSON");
    match gate.call(tool, arguments).await {
        Ok(result) => result.get().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A list of tools belongs to one login: no later login sees the list of an earlier one.
#[tokio::test]
async fn login_during_call_refreshes_the_tool_list() {
    let guarded = Guarded::start(&json!({ "ownTools": true }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let cache = folder.path().join("cache");
    let gate_of = async |spec| {
        let gate = builder(spec)
            .rules(Rules::builder().allow("*").build().expect("a rule"))
            .browser(Arc::new(Follow))
            .cache(Some(CacheConfig::at(&cache)))
            .build();
        gate.await.expect("a gate")
    };
    let own = |gate: &Gate| {
        let tools = gate.tools().into_iter().map(|tool| tool.tool);
        let own = tools.filter(|tool| tool.starts_with("of_"));
        own.collect::<Vec<_>>().join(" ")
    };
    // A new list of tools may be slow on a busy machine.
    let in_time = async |gate: &Gate, wanted: &str| {
        let comes = async {
            while own(gate) != wanted {
                gate.refresh().await;
                tokio::task::yield_now().await;
            }
        };
        let came = tokio::time::timeout(Duration::from_secs(30), comes).await;
        assert_eq!((own(gate), came.is_ok()), (wanted.to_owned(), true));
    };
    let gate = gate_of(guarded.spec(folder.path())).await;
    assert_eq!(own(&gate), "of_1");
    // This call needs a further scope, and so a second login.
    assert_eq!(said(&gate, "web_write").await, "{\"a\":1}");
    in_time(&gate, "of_2").await;
    // The tokens of the second login become invalid.
    guarded.post("expire").await;
    guarded.post("forget").await;
    // The tool's description differs from login to login.
    let changed = said(&gate, "web_read").await;
    assert!(
        changed.starts_with("web_read: the server changed the tool's definition"),
        "{changed}"
    );
    in_time(&gate, "of_3").await;
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    gate.shutdown().await;
    let asked = async || guarded.seen().await["with a token"].clone();
    let before = asked().await;
    let lazy = || {
        let mut spec = guarded.spec(folder.path());
        spec.connect = Connect::Lazy;
        spec
    };
    let gate = gate_of(lazy()).await;
    assert_eq!(own(&gate), "of_3");
    gate.shutdown().await;
    assert_eq!(asked().await, before, "it is kept");
    // A login outside of the gate, as from a different process.
    let login = LoginRequest::new(Arc::new(Follow));
    let login = auth::login(&guarded.spec(folder.path()), login).await;
    login.expect("a login");
    let gate = gate_of(lazy()).await;
    assert_eq!(own(&gate), "of_4");
    gate.shutdown().await;
}

#[tokio::test]
async fn refused_login_is_not_asked_again() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn, Does::Decline], &guarded);
    let gate = gate_of(&guarded, folder.path(), &person).await;
    let write = || said(&gate, "web_write");
    expect![[r#"web_write: the login at server `web` failed: the authorization server refused it with "access_denied" (code -32000)"#]].assert_eq(&write().await);
    assert_eq!(person.pages(), 2);
    for _ in 0..2 {
        expect![[r#"web_write: server `web` wants the scope "write"; its page was shown without success, and is not shown again; run `callgate auth login web --scope write` (code -32000)"#]].assert_eq(&write().await);
    }
    assert_eq!(person.pages(), 2);
    // A login outside of the gate makes the scope available.
    let mut request = LoginRequest::new(Arc::new(Follow));
    request.scopes = vec!["write".to_owned()];
    let server = guarded.spec(folder.path());
    auth::login(&server, request).await.expect("a login");
    assert_eq!(write().await, "{\"a\":1}");
    assert_eq!(person.pages(), 2);
    gate.shutdown().await;
}

/// The two gates share only the folder of tokens and the browser.
#[tokio::test]
async fn connections_with_same_login_show_one_page() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn], &guarded);
    let opener = Arc::clone(&person) as Arc<dyn OpenUrl>;
    let oauth = OAuth {
        folder: Some(folder.path().to_owned()),
        place: auth::TokenPlace::File,
        browser: Some(auth::Browser::new(opener)),
        ..OAuth::default()
    };
    let gate = || {
        builder(guarded.spec_with(oauth.clone()))
            .rules(Rules::builder().allow("*").build().expect("a rule"))
            .build()
    };
    let (one, other) = tokio::join!(gate(), gate());
    for gate in [one.expect("a gate"), other.expect("a gate")] {
        assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
        gate.shutdown().await;
    }
    assert_eq!(person.pages(), 1);
}
