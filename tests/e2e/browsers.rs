//! Logins that a call waits for, by a host that has a browser.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::auth::{self, Grant, LoginRequest, OAuth, OpenUrl};
use callgate::config::CacheConfig;
use callgate::rule::{Effect, Pattern, Rule};
use callgate::{
    Answer, Connect, Gate, GateBuilder, JournalOptions, Rules, ServerSpec, ServerState, Source,
    ask_with,
};
use callgate_tests::binary;
use expect_test::expect;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::guarded::{Follow, Guarded, decline, follow};

#[tokio::test]
async fn a_host_with_a_browser_logs_in_while_a_call_waits() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let gate = builder(guarded.spec(folder.path()))
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
    assert_eq!(seen["lastScope"], "write read", "{seen:#}");
    gate.shutdown().await;
}

/// What a person does with a page.
#[derive(Clone, Copy)]
enum Does {
    LogIn,
    /// Goes back from it without.
    Decline,
    /// Has no browser to see it in.
    CannotSee,
    /// Leaves it open, and logs in there when told to.
    Waits,
}

/// Does one thing after the other, and the last one with every later page.
struct Person {
    does: Vec<Does>,
    pages: AtomicUsize,
    goes_on: Notify,
    issuer: String,
}

impl Person {
    fn who(does: impl Into<Vec<Does>>, guarded: &Guarded) -> Arc<Self> {
        Arc::new(Self {
            does: does.into(),
            pages: AtomicUsize::new(0),
            goes_on: Notify::new(),
            issuer: guarded.issuer.clone(),
        })
    }

    fn pages(&self) -> usize {
        self.pages.load(Ordering::SeqCst)
    }
}

impl OpenUrl for Person {
    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, io::Result<()>> {
        let page = self.pages.fetch_add(1, Ordering::SeqCst);
        let does = self.does[page.min(self.does.len() - 1)];
        async move {
            let gone = match does {
                Does::LogIn => follow(url).await,
                Does::Decline => decline(url, &self.issuer).await,
                Does::CannotSee => Err("there is no browser".into()),
                Does::Waits => {
                    self.goes_on.notified().await;
                    follow(url).await
                }
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

/// A gate to the server, whose logins this person makes.
async fn gate_of(guarded: &Guarded, folder: &Path, person: &Arc<Person>) -> Gate {
    gate_to(guarded.spec(folder), person).await
}

async fn gate_to(server: ServerSpec, person: &Arc<Person>) -> Gate {
    builder(server)
        .rules(Rules::new(["*"], [], []).expect("a rule"))
        .browser(Arc::clone(person) as Arc<dyn OpenUrl>)
        .build()
        .await
        .expect("a gate")
}

/// What a call of a tool gives, or why it fails.
async fn said(gate: &Gate, tool: &str) -> String {
    let arguments = RawValue::from_string("{\"a\":1}".to_owned()).expect("JSON");
    match gate.call(tool, arguments).await {
        Ok(result) => result.get().to_owned(),
        Err(error) => error.to_string(),
    }
}

/// An authorization server may say by other names what it has granted.
#[tokio::test]
async fn a_page_for_more_is_for_what_was_asked_for_before_too() {
    let guarded = Guarded::start(&json!({ "answer": { "scope": "urn:read,urn:write" } }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn], &guarded);
    let gate = gate_of(&guarded, folder.path(), &person).await;
    assert_eq!(said(&gate, "web_write").await, "{\"a\":1}");
    let seen = guarded.seen().await;
    assert_eq!(seen["lastScope"], "write read", "{seen:#}");
    assert_eq!(person.pages(), 2);
    gate.shutdown().await;
}

/// Whoever it was that logged in: nobody is shown what somebody else could see.
#[tokio::test]
async fn a_login_that_a_call_waits_for_has_the_tools_listed_anew() {
    let guarded = Guarded::start(&json!({ "ownTools": true }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let cache = folder.path().join("cache");
    let gate_of = async |spec| {
        let gate = builder(spec)
            .rules(Rules::new(["*"], [], []).expect("a rule"))
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
    // A list may take as long as it does on a busy machine.
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
    // For more than before.
    assert_eq!(said(&gate, "web_write").await, "{\"a\":1}");
    in_time(&gate, "of_2").await;
    // The one before has ended.
    guarded.post("expire").await;
    guarded.post("forget").await;
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    in_time(&gate, "of_3").await;
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
    // By somebody else, in a process of their own.
    let login = LoginRequest::new(Arc::new(Follow));
    let login = auth::login(&guarded.spec(folder.path()), login).await;
    login.expect("a login");
    let gate = gate_of(lazy()).await;
    assert_eq!(own(&gate), "of_4");
    gate.shutdown().await;
}

#[tokio::test]
async fn a_person_who_refuses_is_not_asked_again() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn, Does::Decline], &guarded);
    let gate = gate_of(&guarded, folder.path(), &person).await;
    let write = || said(&gate, "web_write");
    expect![[r#"web_write: the login at server `web` failed: the authorization server refused it with "access_denied" (code -32000)"#]].assert_eq(&write().await);
    assert_eq!(person.pages(), 2);
    for _ in 0..2 {
        expect![[r#"web_write: server `web` wants the scope "write"; its page was shown, no login has come of it, and it is not shown again; run `callgate auth login web --scope write` (code -32000)"#]].assert_eq(&write().await);
    }
    assert_eq!(person.pages(), 2);
    // Until somebody logs in of their own will.
    let mut request = LoginRequest::new(Arc::new(Follow));
    request.scopes = vec!["write".to_owned()];
    let server = guarded.spec(folder.path());
    auth::login(&server, request).await.expect("a login");
    assert_eq!(write().await, "{\"a\":1}");
    assert_eq!(person.pages(), 2);
    gate.shutdown().await;
}

#[tokio::test]
async fn a_person_who_refuses_a_scope_is_asked_for_a_login() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn, Does::Decline, Does::LogIn], &guarded);
    let gate = gate_of(&guarded, folder.path(), &person).await;
    expect![[r#"web_write: the login at server `web` failed: the authorization server refused it with "access_denied" (code -32000)"#]].assert_eq(&said(&gate, "web_write").await);
    guarded.post("expire").await;
    guarded.post("forget").await;
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    assert_eq!(person.pages(), 3);
    gate.shutdown().await;
}

/// Each has nothing to do with the other but the person.
#[tokio::test]
async fn connections_that_want_the_same_login_show_one_page() {
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
            .rules(Rules::new(["*"], [], []).expect("a rule"))
            .build()
    };
    let (one, other) = tokio::join!(gate(), gate());
    for gate in [one.expect("a gate"), other.expect("a gate")] {
        assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
        gate.shutdown().await;
    }
    assert_eq!(person.pages(), 1);
}

/// Whose page a call waits for is told when its time is over; what the next one wants, though
/// it is something else, waits for the same page.
#[tokio::test]
async fn a_call_that_cannot_wait_for_a_login_any_longer_says_so() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn, Does::Waits], &guarded);
    let opener = Arc::clone(&person) as Arc<dyn OpenUrl>;
    let oauth = OAuth {
        folder: Some(folder.path().to_owned()),
        place: auth::TokenPlace::File,
        browser: Some(auth::Browser::new(opener)),
        ..OAuth::default()
    };
    let gate = async || {
        let mut spec = guarded.spec_with(oauth.clone());
        spec.call_timeout = Duration::from_secs(3);
        let gate = builder(spec)
            .rules(Rules::new(["*"], [], []).expect("a rule"))
            .build();
        gate.await.expect("a gate")
    };
    let (one, other) = (gate().await, gate().await);
    expect![[r#"web_write: server `web` wants the scope "write", and a login with it has not come in time; log in on the page that was shown, or run `callgate auth login web --scope write`, and try again (code -32000)"#]].assert_eq(&said(&one, "web_write").await);
    guarded.post("expire").await;
    guarded.post("forget").await;
    expect!["web_read: server `web` wants a login, which has not come in time; log in on the page that was shown, or run `callgate auth login web`, and try again (code -32000)"].assert_eq(&said(&other, "web_read").await);
    assert_eq!(person.pages(), 2);
    person.goes_on.notify_one();
    assert_eq!(said(&other, "web_read").await, "{\"a\":1}");
    assert_eq!(said(&one, "web_write").await, "{\"a\":1}");
    assert_eq!(person.pages(), 2);
    one.shutdown().await;
    other.shutdown().await;
}

/// Whoever logs in for it may have other tools than those that it was decided by.
#[tokio::test]
async fn a_call_goes_with_no_login_but_that_which_it_was_decided_by() {
    let guarded = Guarded::start(&json!({ "ownTools": true }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn, Does::LogIn], &guarded);
    let gate = gate_to(guarded.spec(folder.path()), &person).await;
    assert_eq!(said(&gate, "web_of_1").await, "{\"a\":1}");
    guarded.post("expire").await;
    guarded.post("forget").await;
    expect!["web_of_1: its server no longer lists the tool; nothing was done (code -32056)"]
        .assert_eq(&said(&gate, "web_of_1").await);
    assert_eq!(person.pages(), 2);
    let seen = guarded.seen().await;
    assert_eq!(seen["calls of of_1"], 1, "{seen:#}");
    // What both have is called with the new one.
    guarded.post("expire").await;
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    gate.shutdown().await;
}

/// Somebody who is asked about a call is not asked again because it wants a login, and the
/// use of a rule that it takes is the only one.
#[tokio::test]
async fn a_call_that_has_a_login_made_is_decided_about_once() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn], &guarded);
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let mut rules = Rules::new([], ["web_write"], []).expect("a rule");
    let mut once = Rule::new(Effect::Allow, Pattern::new("web_read").expect("a pattern"));
    once.max_calls = Some(1);
    rules.push(once);
    let gate = builder(guarded.spec(folder.path()))
        .rules(rules)
        .asker(ask_with(move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Answer::Once)
        }))
        .browser(Arc::clone(&person) as Arc<dyn OpenUrl>)
        .build()
        .await
        .expect("a gate");
    assert_eq!(said(&gate, "web_write").await, "{\"a\":1}");
    assert_eq!((person.pages(), asked.load(Ordering::SeqCst)), (2, 1));
    guarded.post("expire").await;
    guarded.post("forget").await;
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    assert_eq!((person.pages(), asked.load(Ordering::SeqCst)), (3, 1));
    // Its one use was had, once.
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    assert_eq!((person.pages(), asked.load(Ordering::SeqCst)), (3, 2));
    gate.shutdown().await;
}

/// A tool that is another one with another login is decided about as that.
#[tokio::test]
async fn a_call_whose_login_has_another_tool_of_the_name_is_decided_about_anew() {
    let guarded = Guarded::start(&json!({ "ownTools": true }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn], &guarded);
    let asked: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let ledger = folder.path().join("calls.jsonl");
    let gate = builder(guarded.spec(folder.path()))
        .ledger(Some((ledger.clone(), JournalOptions::default())))
        .asker(ask_with(move |question| {
            let said = question.description.map(|said| said.to_string());
            noted.lock().expect("no panic").extend(said);
            std::future::ready(Answer::Once)
        }))
        .browser(Arc::clone(&person) as Arc<dyn OpenUrl>)
        .build()
        .await
        .expect("a gate");
    guarded.post("expire").await;
    guarded.post("forget").await;
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    assert_eq!(*asked.lock().expect("no panic"), ["of_1", "of_2"]);
    assert_eq!(guarded.seen().await["calls of read"], 1);
    gate.shutdown().await;
    let lines = std::fs::read_to_string(&ledger).expect("a ledger");
    let ends = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        format!("{} {} {}", line["event"], line["outcome"], line["code"])
    });
    assert_eq!(
        ends.collect::<Vec<_>>(),
        [
            "\"before\" null null",
            "\"after\" \"protocolError\" -32056",
            "\"before\" null null",
            "\"after\" \"ok\" null",
        ]
    );
}

/// What was decided by one person's list is not made by another's login that has none.
#[tokio::test]
async fn a_call_does_not_go_with_a_login_that_has_no_list() {
    let guarded = Guarded::start(&json!({ "listsFor": 1 }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn], &guarded);
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let gate = builder(guarded.spec(folder.path()))
        .asker(ask_with(move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Answer::Once)
        }))
        .browser(Arc::clone(&person) as Arc<dyn OpenUrl>)
        .build()
        .await
        .expect("a gate");
    guarded.post("expire").await;
    guarded.post("forget").await;
    for calls in 1..3 {
        expect!["web_read: requests go with another login by now than the server's tools were listed with; nothing was done; call it again later (code -32056)"].assert_eq(&said(&gate, "web_read").await);
        assert_eq!((person.pages(), asked.load(Ordering::SeqCst)), (2, calls));
    }
    assert_eq!(guarded.seen().await["calls of read"], json!(null));
    gate.shutdown().await;
}

/// Whoever has no login any more is told to log in, with every call.
#[tokio::test]
async fn a_logout_while_a_gate_is_up_is_told_as_that() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn], &guarded);
    gate_of(&guarded, folder.path(), &person)
        .await
        .shutdown()
        .await;
    let server = guarded.spec(folder.path());
    let gate = builder(server.clone())
        .rules(Rules::new(["*"], [], []).expect("a rule"))
        .build()
        .await
        .expect("a gate");
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    auth::logout(&server).await.expect("a logout");
    guarded.post("expire").await;
    for _ in 0..3 {
        expect!["web_read: server `web` wants a login, and there is none; run `callgate auth login web` (code -32000)"].assert_eq(&said(&gate, "web_read").await);
    }
    assert_eq!(person.pages(), 1);
    gate.shutdown().await;
}

#[tokio::test]
async fn a_call_that_cannot_wait_for_the_login_of_a_start_says_so() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn, Does::Waits], &guarded);
    let mut spec = guarded.spec(folder.path());
    // The first attempt fails before the call, which then waits for another one.
    spec.start_timeout = Duration::from_secs(6);
    spec.call_timeout = Duration::from_secs(3);
    spec.connect = Connect::Lazy;
    spec.idle = Some(Duration::from_millis(10));
    let gate = gate_to(spec, &person).await;
    guarded.post("expire").await;
    guarded.post("forget").await;
    let rests = async {
        while gate.servers()[0].state != ServerState::Idle {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), rests)
        .await
        .expect("it rests");
    expect!["web_read: server `web` wants a login, which has not come in time; log in on the page that was shown, or run `callgate auth login web`, and try again (code -32000)"].assert_eq(&said(&gate, "web_read").await);
    person.goes_on.notify_one();
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    assert_eq!(person.pages(), 2);
    gate.shutdown().await;
}

#[tokio::test]
async fn a_start_that_cannot_wait_for_a_login_any_longer_says_so() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::Waits], &guarded);
    let mut spec = guarded.spec(folder.path());
    spec.start_timeout = Duration::from_secs(3);
    let gate = gate_to(spec, &person).await;
    expect!["server `web` did not start: server `web` wants a login, which has not come in time; log in on the page that was shown, or run `callgate auth login web`, and try again"].assert_eq(&gate.unavailable()[0].reason);
    gate.shutdown().await;
}

#[tokio::test]
async fn a_page_that_nobody_was_shown_is_shown_again() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn, Does::CannotSee, Does::LogIn], &guarded);
    let gate = gate_of(&guarded, folder.path(), &person).await;
    expect!["web_write: the login at server `web` failed: its page cannot be shown: there is no browser (code -32000)"].assert_eq(&said(&gate, "web_write").await);
    assert_eq!(said(&gate, "web_write").await, "{\"a\":1}");
    assert_eq!(person.pages(), 3);
    gate.shutdown().await;
}

/// What a person has agreed to is asked for again when that login has ended.
#[tokio::test]
async fn a_login_in_place_of_another_is_for_as_much() {
    let guarded = Guarded::start(&json!({}));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn], &guarded);
    let gate = gate_of(&guarded, folder.path(), &person).await;
    assert_eq!(said(&gate, "web_write").await, "{\"a\":1}");
    assert_eq!(person.pages(), 2);
    guarded.post("expire").await;
    guarded.post("forget").await;
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    let seen = guarded.seen().await;
    assert_eq!(seen["lastScope"], "read write", "{seen:#}");
    assert_eq!(said(&gate, "web_write").await, "{\"a\":1}");
    assert_eq!(person.pages(), 3);
    gate.shutdown().await;
}

/// The clock says so before the server does.
#[tokio::test]
async fn a_login_that_has_ended_asks_for_another_one() {
    let guarded = Guarded::start(&json!({ "noRefresh": true }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let server = guarded.spec(folder.path());
    let made = auth::login(&server, LoginRequest::new(Arc::new(Follow))).await;
    let file = made.expect("a login").file;
    let text = std::fs::read_to_string(&file).expect("the login");
    let mut login: Value = serde_json::from_str(&text).expect("JSON");
    assert!(login["made"].is_u64() && login["tokens"]["expiresAt"].is_u64());
    login["made"] = 1_000.into();
    login["tokens"]["expiresAt"] = 4_600.into();
    std::fs::write(&file, login.to_string()).expect("the login");

    let person = Person::who([Does::LogIn], &guarded);
    let gate = gate_of(&guarded, folder.path(), &person).await;
    assert_eq!(said(&gate, "web_read").await, "{\"a\":1}");
    assert_eq!(person.pages(), 1);
    gate.shutdown().await;
}

#[tokio::test]
async fn tokens_that_end_at_once_ask_a_person_once() {
    let guarded = Guarded::start(&json!({ "firstExpiresIn": 0, "noRefresh": true }));
    let folder = tempfile::TempDir::new().expect("a folder");
    let person = Person::who([Does::LogIn], &guarded);
    let gate = gate_of(&guarded, folder.path(), &person).await;
    expect!["server `web` did not start: server `web` needs a new login: the token has ended, and there is nothing to renew it by; run `callgate auth login web`"].assert_eq(&gate.unavailable()[0].reason);
    assert_eq!(person.pages(), 1);
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
        builder(guarded.spec_with(oauth.clone()))
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
