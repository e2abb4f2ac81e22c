//! Connections that take no more calls: what was not sent on them is made on the next one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_gate::{CallOptions, Caller, Elicit, NobodyToAsk, Offers, Opened, Refusal, Servers};
use callgate_policy::Definition;
use expect_test::expect;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::counted::Counted;
use crate::support::{Runs as _, Target, allow_all, call, in_time, odd, one, raw, show, target};

/// A line of a shell that answers a request.
fn answer(id: u32, result: &Value) -> String {
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    format!("echo '{answer}';")
}

/// What the first of a server's processes does instead, for ever, from when it is asked for
/// its tools.
fn first(listing: &str) -> String {
    let initialized = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "first", "version": "1" },
    });
    format!(
        "if mkdir first 2>/dev/null; then \
           read -r initialize; {} read -r initialized; read -r list; {listing} \
           exec tail -f /dev/null; \
         fi;",
        answer(0, &initialized),
    )
}

/// The first of its processes takes no more requests once it has told of its tools, and
/// stays. What could not be sent to it is sent to the next, if the tool is the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_could_not_be_sent_is_made_on_the_next_connection() {
    let tool = |name: &str, description: Value| {
        let mut tool = json!({ "name": name, "inputSchema": { "type": "object" } });
        if !description.is_null() {
            tool["description"] = description;
        }
        tool
    };
    let (same, other) = (tool("pid", Value::Null), tool("listed", json!("another")));
    let listed = json!({ "tools": [same, other] });
    let first = first(&format!(
        "echo $$ > first/pid; exec 0<&-; {} exec 3>&1 >/dev/null;",
        answer(1, &listed),
    ));
    for decided in [&same, &other] {
        let mut counted = Counted::new("changes", &first);
        counted.spec.era = "2025-11-25".parse().expect("a revision");
        let (broker, run, name) = one(counted.spec.clone()).await;
        let pid = std::fs::read_to_string(counted.file("first/pid")).expect("it was started");
        let target = Target {
            definition: Some(Arc::new(Definition::of(decided))),
            ..target(&name, decided["name"].as_str().expect("a name"))
        };
        let called = run.call(target, raw(json!({})), CallOptions::default());
        let said = show(in_time(called).await);
        if decided == &same {
            let next: u32 = said.trim_matches('"').parse().expect("a process id");
            assert_ne!(next.to_string(), pid.trim());
        } else {
            expect![[r#"Protocol { server: "changes", function: "changes_listed", code: -32056, message: "the server has changed the tool, which is another than the one that was decided about; nothing was done; call it again to have it decided anew", data: None, retryable: true }"#]].assert_eq(&said);
        }
        assert_eq!(counted.starts(), 2);
        let stat = format!("/proc/{}/stat", pid.trim());
        in_time(async {
            // One that nobody has waited for yet is a zombie.
            while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
                tokio::task::yield_now().await;
            }
        })
        .await;
        in_time(broker.shut_down()).await;
    }
}

/// The first of its processes takes no more requests once it works on a call, whose answer
/// it still brings: the calls that follow wait for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_could_not_be_sent_ends_no_other() {
    let listed = json!({ "tools": [{ "name": "pid", "inputSchema": { "type": "object" } }] });
    let done = json!({ "content": [{ "type": "text", "text": "done" }] });
    let first = first(&format!(
        "{} read -r call; mkfifo first/ends; exec 0<&-; mkdir first/works; cat first/ends; {}",
        answer(1, &listed),
        answer(2, &done),
    ));
    let mut counted = Counted::new("changes", &first);
    counted.spec.era = "2025-11-25".parse().expect("a revision");
    let (broker, run, name) = one(counted.spec.clone()).await;
    let working = {
        let (run, name) = (run.clone(), name.clone());
        tokio::spawn(async move { call(&run, &name, "pid", json!({})).await })
    };
    in_time(async {
        while !counted.file("first/works").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // For longer than a server that closes its input has to end.
    let options = CallOptions {
        timeout: Some(Duration::from_secs(1)),
        ..CallOptions::default()
    };
    let called = run.call(target(&name, "pid"), raw(json!({})), options);
    let said = show(in_time(called).await);
    expect![[r#"Protocol { server: "changes", function: "changes_pid", code: -32000, message: "the server takes no more calls on its connection, and there is another when those that it has are over", data: None, retryable: true }"#]].assert_eq(&said);
    std::fs::write(counted.file("first/ends"), "").expect("it works on it");
    assert_eq!(in_time(working).await.expect("no panic"), r#""done""#);
    let next = in_time(call(&run, &name, "pid", json!({}))).await;
    assert!(next.trim_matches('"').parse::<u32>().is_ok(), "{next}");
    assert_eq!(counted.starts(), 2);
    in_time(broker.shut_down()).await;
}

/// A person who opens one page, and is back from it when told to be.
struct AtThePage(Mutex<Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>>);

impl Caller for AtThePage {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.url = true;
        offers
    }

    fn elicit<'a>(&'a self, _request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async { Ok(json!({ "action": "accept" })) })
    }

    fn back_from<'a>(&'a self, _opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        let page = self.0.lock().expect("no panic").take();
        Box::pin(async move {
            let (opened, done) = page.expect("one page");
            opened.send(()).expect("the test waits for it");
            done.await.expect("the test tells");
            Ok(())
        })
    }
}

/// The first of its processes wants a page opened for a call, and takes no more requests.
/// Whoever opens it is longer at it than the call may take, and the call is made all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_takes_longer_than_the_call_may_is_not_opened_in_vain() {
    let listed = json!({ "tools": [{ "name": "pid", "inputSchema": { "type": "object" } }] });
    let page = json!({
        "mode": "url", "elicitationId": "door", "url": "https://door.example/open", "message": "m",
    });
    let refused = json!({
        "jsonrpc": "2.0", "id": 2,
        "error": { "code": -32042, "message": "locked", "data": { "elicitations": [page] } },
    });
    let first = first(&format!(
        "{} read -r call; exec 0<&-; echo '{refused}'; exec 3>&1 >/dev/null;",
        answer(1, &listed),
    ));
    let (opened, is_opened) = oneshot::channel();
    let (finish, is_done) = oneshot::channel();
    let mut counted = Counted::new("changes", &first);
    counted.spec.era = "2025-11-25".parse().expect("a revision");
    counted.spec.caller = Arc::new(AtThePage(Mutex::new(Some((opened, is_done)))));
    let name = counted.spec.name.clone();
    let broker = Servers::connect(vec![counted.spec.clone(), odd("hang-on-call")], |_| {}).await;
    let run = broker.run(allow_all(), Arc::new(NobodyToAsk));
    // Enough to start its next process, when the page is done with.
    let limited = || CallOptions {
        timeout: Some(Duration::from_secs(4)),
        ..CallOptions::default()
    };
    let locked = run.call(target(&name, "pid"), raw(json!({})), limited());
    let at_the_page = async {
        is_opened.await.expect("the page is opened");
        // One that may take as long as the call is over before the page.
        let beside = run.call(target("hang-on-call", "hang"), raw(json!({})), limited());
        let said = show(beside.await);
        assert!(said.starts_with("Timeout"), "{said}");
        finish.send(()).expect("somebody is at the page");
    };
    let (called, ()) = in_time(async { tokio::join!(locked, at_the_page) }).await;
    let said = show(called);
    assert!(said.trim_matches('"').parse::<u32>().is_ok(), "{said}");
    assert_eq!(counted.starts(), 2);
    in_time(broker.shut_down()).await;
}
