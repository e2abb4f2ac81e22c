//! Requests that are opened, shown, answered and withdrawn.

use std::sync::Arc;

use callgate::faces::Caller as _;
use serde_json::json;
use tokio::task::JoinHandle;

use super::super::AnyClient;
use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn all() -> Offers {
    AnyClient::default().offers()
}

type Answers = Vec<Result<Value, NoAnswer>>;

/// Opens requests with these keys in a task.
async fn ask(pending: &Arc<PendingRequests>, keys: &'static [Option<&str>]) -> JoinHandle<Answers> {
    let mut opened = pending.subscribe();
    opened.mark_unchanged();
    let pending = Arc::clone(pending);
    let request: InputRequest =
        serde_json::from_value(json!({ "method": "roots/list" })).expect("a request");
    let requests = keys.iter().map(|key| (*key, request.clone())).collect();
    let waiting = tokio::spawn(async move {
        let answers = pending.ask(requests).await.into_iter();
        answers.map(|it| it.map(|it| it.value)).collect()
    });
    opened.changed().await.expect("a request");
    waiting
}

async fn withdraw(waiting: JoinHandle<Answers>) {
    waiting.abort();
    assert!(waiting.await.expect_err("withdrawn").is_cancelled());
}

fn responses(value: Value) -> InputResponses {
    serde_json::from_value(value).expect("responses")
}

#[track_caller]
fn shown(pending: &PendingRequests, keys: &[&str]) {
    let requests = pending.show(all()).expect("requests");
    let mut shown: Vec<_> = requests.keys().map(String::as_str).collect();
    shown.sort_unstable();
    assert_eq!(shown, keys);
}

#[tokio::test]
async fn requests_stay_open_until_they_are_answered() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let long = Some("k".repeat(MAX_KEY + 1).leak() as &str);
    let first = ask(&pending, vec![None, long, Some("name")].leak()).await;
    let keys = ["name", "question-1", "question-2"];
    shown(&pending, &keys);
    pending.answer_all(responses(json!({ "question-9": 9, "name-3": 3 })));
    shown(&pending, &keys);
    pending.answer_all(responses(json!({ "question-1": 1, "name": 3 })));
    shown(&pending, &["question-2"]);
    pending.answer_all(responses(json!({ "question-2": 2 })));
    let answers = first.await.expect("an end");
    assert_eq!(answers, [Ok(json!(1)), Ok(json!(2)), Ok(json!(3))]);
    assert!(pending.show(all()).is_none());
}

#[tokio::test]
async fn keys_are_used_once() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let first = ask(&pending, &[Some("name"), Some("question-3"), None]).await;
    shown(&pending, &["name", "question-2", "question-3"]);
    withdraw(first).await;
    let _other = ask(&pending, &[Some("name")]).await;
    shown(&pending, &["question-4"]);
}

#[tokio::test]
async fn sent_request_is_not_shown_to_other_clients() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let waiting = ask(&pending, &[None]).await;
    let unable = Offers::default();
    assert!(pending.send_all(unable).is_empty() && pending.show(unable).is_none());
    assert!(pending.has_unsent());
    assert_eq!(pending.send_all(all()).len(), 1);
    assert!(pending.show(all()).is_none() && pending.send_all(all()).is_empty());
    assert!(!pending.has_unsent());
    let other = responses(json!({ "question-1": "other" }));
    pending.answer_all(other);
    let failed = Err(NoAnswer::Failed("no".to_owned()));
    pending.answer("question-1", failed.clone());
    assert_eq!(waiting.await.expect("an end"), [failed]);
}

#[tokio::test]
async fn refused_and_late_requests_have_no_answer() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let refused = ask(&pending, &[None]).await;
    pending.refuse(all());
    assert_eq!(refused.await.expect("an end"), [Err(NoAnswer::NoClient)]);
    let pending = Arc::new(PendingRequests::new(Duration::ZERO));
    let late = ask(&pending, &[None]).await.await.expect("an end");
    assert_eq!(late, [Err(NoAnswer::Late)]);
}
