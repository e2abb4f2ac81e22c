//! Lists of 2026-07-28: for how long they hold, and who tells that they changed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::{Expect, expect};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderValue;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::server::{self, Server};
use super::{Client, discovered, in_time, keep, result_of};
use crate::caller::NoCaller;
use crate::handshake::{Opening, shake};
use crate::patience::Patience;
use crate::session::{Request, Session};
use crate::spec::ServerSpec;
use crate::subscription::listen;
use callgate_auth::Redact;
use callgate_auth::{AuthError, Authorize, Prompt, Refused, TryAgain};

/// What a server does about changes of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// It does not say that it tells.
    Not,
    /// It says so, and does not agree to it when it is listened to.
    Silently,
    /// It says so, and knows no such request.
    Refuses,
    Does,
}

/// The beginning of what a server says that agrees to tell of changes.
fn acknowledged(id: &Value) -> String {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    event(
        "notifications/subscriptions/acknowledged",
        json!({ "_meta": meta, "notifications": { "toolsListChanged": true } }),
    )
}

fn event(method: &str, params: Value) -> String {
    let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    format!("data: {message}\n\n")
}

/// Whether a list whose pages have each of these `ttlMs` is asked for anew when it is
/// as old as it `holds`, and not when it is half as old; without that, whether it is
/// not asked for anew at all.
async fn check_pages(ttls: &[Value], tells: Tells, holds: Option<Duration>) {
    let lists = Arc::new(AtomicUsize::new(0));
    let (counted, said) = (Arc::clone(&lists), ttls.to_vec());
    let server = Server::start(move |mut request| {
        let (lists, ttls) = (Arc::clone(&counted), said.clone());
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            match request.method().as_str() {
                "server/discover" => {
                    let tools = json!({ "listChanged": tells != Tells::Not });
                    discovered(&mut request, tools).await;
                }
                "tools/list" => {
                    let cursor = message["params"]["cursor"].as_str();
                    let page: usize = cursor.map_or(0, |page| page.parse().expect("ours"));
                    if page == 0 {
                        lists.fetch_add(1, Ordering::SeqCst);
                    }
                    let mut result = json!({ "resultType": "complete", "tools": [] });
                    if !ttls[page].is_null() {
                        result["ttlMs"] = ttls[page].clone();
                    }
                    if page + 1 < ttls.len() {
                        result["nextCursor"] = (page + 1).to_string().into();
                    }
                    result_of(&mut request, "", result).await;
                }
                _ if tells == Tells::Refuses => {
                    let error = json!({ "code": -32601, "message": "Method not found" });
                    let id = &message["id"];
                    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                    request.json(&answer.to_string()).await;
                }
                _ => {
                    request.events().await;
                    if tells == Tells::Does {
                        request.write(acknowledged(&message["id"])).await;
                    }
                    request.gone().await;
                }
            }
        }
        .boxed()
    })
    .await;
    let (kept, mut changes) = keep(ServerSpec::http("s", server.url())).await;
    // That it agrees is a reason for a new list, too.
    let told = u64::from(tells == Tells::Does);
    let is_told = || {
        let connection = kept.shared.stand.connection().expect("it is up");
        kept.is_settled() && kept.shared.reasons(&connection).told == told
    };
    in_time(changes.wait_for(|_| is_told()))
        .await
        .expect("it is kept");
    let ready = kept.shared.listed.ready().expect("it has a list");
    // What is kept on disk holds for as long, where the server says for how long.
    assert!(
        ready.ttl.is_none() || ready.ttl == holds,
        "{ttls:?} {tells:?}"
    );
    let lists = || lists.load(Ordering::SeqCst);
    let before = lists();
    let grow_older = |by| kept.shared.listed.grow_older(by);
    let half = holds.unwrap_or(Duration::from_secs(60)) / 2;
    grow_older(half);
    kept.refresh_if_stale();
    assert!(kept.is_settled(), "{ttls:?} {tells:?}: too early");
    grow_older(half);
    kept.refresh_if_stale();
    assert_eq!(kept.is_settled(), holds.is_none(), "{ttls:?} {tells:?}");
    in_time(changes.wait_for(|_| kept.is_settled()))
        .await
        .expect("it is kept");
    let expected = before + usize::from(holds.is_some());
    assert_eq!(lists(), expected, "{ttls:?} {tells:?}");
    // The new one is fresh.
    kept.refresh_if_stale();
    assert!(kept.is_settled(), "{ttls:?} {tells:?}: once more");
    in_time(kept.shut_down()).await;
}

async fn check(ttl: Value, tells: Tells, holds: Option<Duration>) {
    check_pages(&[ttl], tells, holds).await;
}

#[tokio::test]
async fn a_list_is_asked_for_anew_when_it_no_longer_holds() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for tells in [Tells::Not, Tells::Silently] {
        check(json!(20_000), tells, seconds(20)).await;
        // The least.
        check(json!(1), tells, seconds(5)).await;
        // The most.
        let day = 24 * 60 * 60;
        check(json!(2 * day * 1_000), tells, seconds(day)).await;
        check(json!(u64::MAX), tells, seconds(day)).await;
    }
}

#[tokio::test]
async fn of_several_pages_the_one_that_holds_for_the_least_time_counts() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for tells in [Tells::Not, Tells::Silently] {
        for ttls in [
            [json!(60_000), json!(20_000), json!(40_000)],
            [json!(20_000), json!(60_000), Value::Null],
            [Value::Null, json!("soon"), json!(20_000)],
        ] {
            check_pages(&ttls, tells, seconds(20)).await;
        }
        // One that does not say holds for a minute.
        check_pages(&[json!(300_000), json!(-1)], tells, seconds(60)).await;
        // Beyond the most and the least, too.
        check_pages(&[json!(u64::MAX), json!(7_000)], tells, seconds(7)).await;
    }
    // One page that holds for no time is as if none said for how long.
    check_pages(&[json!(20_000), json!(0)], Tells::Not, seconds(60)).await;
    check_pages(&[json!(0), json!(20_000)], Tells::Does, None).await;
}

#[tokio::test]
async fn a_list_that_does_not_say_for_how_long_holds_for_a_minute_or_until_told() {
    for ttl in [json!(0), Value::Null, json!(-1), json!("soon")] {
        for tells in [Tells::Not, Tells::Silently, Tells::Refuses] {
            check(ttl.clone(), tells, Some(Duration::from_secs(60))).await;
        }
        check(ttl, Tells::Does, None).await;
    }
}

/// A server whose list is what the test has come to, and that tells whoever listens
/// as the test goes on.
async fn tell(
    mut request: server::Request,
    mut step: watch::Receiver<u32>,
    listens: Arc<AtomicUsize>,
) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    match request.method().as_str() {
        "server/discover" => discovered(&mut request, json!({ "listChanged": true })).await,
        "tools/list" => {
            let name = format!("t{}", *step.borrow());
            let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
            let result = json!({ "resultType": "complete", "tools": [tool] });
            result_of(&mut request, "", result).await;
        }
        "subscriptions/listen" => {
            request
                .log
                .note(message["params"]["notifications"].to_string());
            let first = listens.fetch_add(1, Ordering::SeqCst) == 0;
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
            request.events().await;
            request.write(acknowledged(&message["id"])).await;
            let at = if first { 1 } else { 3 };
            // An error means that the test is over.
            if step.wait_for(|step| *step >= at).await.is_err() {
                return;
            }
            let changed = event("notifications/tools/list_changed", json!({ "_meta": meta }));
            request.write(changed).await;
            match first {
                // Then it breaks off.
                true => drop(step.wait_for(|step| *step >= 2).await),
                false => request.gone().await,
            }
        }
        _ => request.answer("202 Accepted", "", "").await,
    }
}

#[tokio::test]
async fn a_server_is_listened_to_and_again_when_the_stream_breaks() {
    let steps = watch::Sender::new(0);
    let listens = Arc::new(AtomicUsize::new(0));
    let step = steps.subscribe();
    let server =
        Server::start(move |request| tell(request, step.clone(), Arc::clone(&listens)).boxed())
            .await;
    let (kept, changes) = keep(ServerSpec::http("s", server.url())).await;
    // As often as it was told, the server is known to have another list, and the
    // last one was asked for after that.
    let told = async |times: u64| {
        let told = || {
            let connection = kept.shared.stand.connection().expect("it is up");
            kept.is_settled() && kept.shared.reasons(&connection).told == times
        };
        in_time(changes.clone().wait_for(|_| told()))
            .await
            .expect("it is kept");
        let ready = kept.shared.listed.ready().expect("it has a list");
        ready.tools[0]["name"].as_str().map(str::to_owned)
    };
    // That it listens counts: what changed before was told to nobody.
    assert_eq!(told(1).await.as_deref(), Some("t0"));
    steps.send_replace(1);
    assert_eq!(told(2).await.as_deref(), Some("t1"));
    steps.send_replace(2);
    assert_eq!(told(3).await.as_deref(), Some("t2"));
    steps.send_replace(3);
    assert_eq!(told(4).await.as_deref(), Some("t3"));
    let wanted = r#"{"toolsListChanged":true}"#;
    assert_eq!(server.log(), format!("{wanted}\n{wanted}\n"));
    in_time(kept.shut_down()).await;
}

/// The list was as new before as it is after.
#[tokio::test]
async fn a_list_is_not_asked_for_because_nobody_could_listen() {
    let listens = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |mut request| {
        let listens = Arc::clone(&listens);
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            match request.method().as_str() {
                "server/discover" => discovered(&mut request, json!({ "listChanged": true })).await,
                "tools/list" => {
                    let result = json!({ "resultType": "complete", "tools": [] });
                    result_of(&mut request, "", result).await;
                }
                _ if listens.fetch_add(1, Ordering::SeqCst) == 0 => {
                    request.answer("503 Service Unavailable", "", "").await;
                }
                _ => {
                    request.events().await;
                    request.write(acknowledged(&message["id"])).await;
                    request.gone().await;
                }
            }
        }
        .boxed()
    })
    .await;
    let (kept, mut changes) = keep(ServerSpec::http("s", server.url())).await;
    let is_told = || {
        let connection = kept.shared.stand.connection().expect("it is up");
        kept.is_settled() && kept.shared.reasons(&connection).told == 1
    };
    in_time(changes.wait_for(|_| is_told()))
        .await
        .expect("it is kept");
    // But for that it is listened to now.
    assert_eq!(*kept.shared.wishes.borrow(), 0);
    in_time(kept.shut_down()).await;
}

/// Requests go with the login of this name.
#[derive(Debug)]
pub(super) struct Person(pub(super) Mutex<&'static str>);

impl Person {
    fn name(&self) -> &'static str {
        *self.0.lock().expect("no panic")
    }
}

impl Authorize for Person {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        let header = HeaderValue::from_static(self.name());
        std::future::ready(Ok(Some(header))).boxed()
    }

    fn refused<'a>(&'a self, _refusal: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        std::future::ready(Ok(TryAgain::No)).boxed()
    }

    fn login_id(&self) -> Option<Arc<str>> {
        Some(self.name().into())
    }
}

/// Who logs in is told of changes of their own tools, and hears no more of those of the login
/// before; also where the server did `not` agree `to` tell that one.
async fn check_logins(not_to: Option<&'static str>, expected: Expect) {
    let server = Server::start(move |mut request| {
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let login = request.header("authorization").to_owned();
            match request.method().as_str() {
                "server/discover" => discovered(&mut request, json!({ "listChanged": true })).await,
                "subscriptions/listen" if not_to == Some(login.as_str()) => {
                    let error = json!({ "code": -32601, "message": "Method not found" });
                    let id = &message["id"];
                    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                    request.log.note(format!("{login} is refused"));
                    request.json(&answer.to_string()).await;
                }
                "subscriptions/listen" => {
                    request.log.note(format!("{login} listens"));
                    request.events().await;
                    request.write(acknowledged(&message["id"])).await;
                    request.gone().await;
                    request.log.note(format!("{login} is gone"));
                }
                _ => {
                    let result = json!({ "resultType": "complete", "tools": [] });
                    result_of(&mut request, "", result).await;
                }
            }
        }
        .boxed()
    })
    .await;
    let person = Arc::new(Person(Mutex::new("anna")));
    let Client { inbox, link } = Client::with(&server.url(), Arc::clone(&person) as _);
    let (caller, secrets) = (Arc::new(NoCaller), Redact::default());
    let session = Session::new("s".into(), inbox, link, caller, secrets);
    let limit = Duration::from_secs(20);
    in_time(shake(&session, &Opening::Both, limit))
        .await
        .expect("they agree");
    let mut changes = session.watch_changes();
    let wishes = watch::Sender::new(0);
    let goes_on = async {
        let noted = async |what: &str| {
            while !server.log().contains(what) {
                tokio::task::yield_now().await;
            }
        };
        match not_to {
            Some(_) => noted("anna is refused").await,
            None => drop(changes.wait_for(|it| it.acknowledged.is_some()).await),
        }
        let before = changes.borrow().acknowledged;
        *person.0.lock().expect("no panic") = "bob";
        let request = Request::new("tools/list", "");
        let listed = session.request(request, Patience::exactly(limit)).await;
        listed.expect("a list");
        let told = changes.wait_for(|it| it.acknowledged != before).await;
        let (tools, logins) = told.map(|it| (it.tools, it.logins)).expect("it is there");
        if not_to.is_none() {
            noted("anna is gone").await;
        }
        // One for each that the server agreed to tell, and one for the login.
        assert_eq!((tools, logins), (2 + u64::from(not_to.is_none()), 1));
        let mut log: Vec<_> = server.log().lines().map(str::to_owned).collect();
        // One may be gone before or after the other listens.
        log.sort();
        log.join("; ")
    };
    let log = tokio::select! {
        log = in_time(goes_on) => log,
        () = listen("s", &wishes, &session) => panic!("it goes on for ever"),
    };
    expected.assert_eq(&log);
    // The login was a reason for a list already.
    assert_eq!(*wishes.borrow(), 0);
    session.close().await;
}

#[tokio::test]
async fn a_server_is_listened_to_with_the_login_that_there_is_now() {
    check_logins(None, expect!["anna is gone; anna listens; bob listens"]).await;
    check_logins(Some("anna"), expect!["anna is refused; bob listens"]).await;
}
