//! Requests that are opened, shown, answered and withdrawn.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinHandle;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const ALL: Capabilities = Capabilities {
    form: true,
    url: true,
    sampling: true,
    sampling_tools: true,
    roots: true,
};

type Answers = Vec<Result<Value, NoAnswer>>;

/// Opens requests with these keys in a task.
async fn ask(pending: &Arc<PendingRequests>, keys: &'static [Option<&str>]) -> JoinHandle<Answers> {
    let mut opened = pending.subscribe();
    opened.mark_unchanged();
    let pending = Arc::clone(pending);
    let request: InputRequest =
        serde_json::from_value(json!({ "method": "roots/list" })).expect("a request");
    let requests = keys.iter().map(|key| (*key, request.clone())).collect();
    let waiting = tokio::spawn(async move { pending.ask(requests).await });
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
fn shown(pending: &PendingRequests, numbers: &[u64], keys: &[&str]) {
    let (shown_numbers, requests) = pending.show(ALL).expect("requests");
    let mut shown: Vec<_> = requests.keys().map(String::as_str).collect();
    shown.sort_unstable();
    assert_eq!(
        (shown_numbers.as_slice(), shown.as_slice()),
        (numbers, keys)
    );
}

#[tokio::test]
async fn requests_stay_open_until_they_are_answered() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let long = Some("k".repeat(MAX_KEY + 1).leak() as &str);
    let first = ask(&pending, vec![None, long, Some("name")].leak()).await;
    let keys = ["name", "question-1", "question-2"];
    shown(&pending, &[1, 2, 3], &keys);
    let none = responses(json!({ "question-9": 9, "name-3": 3 }));
    assert_eq!(pending.answer_with_token(&[1, 2, 3], ALL, none), Ok(()));
    shown(&pending, &[1, 2, 3], &keys);
    let some = || responses(json!({ "question-1": 1, "name": 3 }));
    assert_eq!(pending.answer_with_token(&[1, 2, 3], ALL, some()), Ok(()));
    shown(&pending, &[2], &["question-2"]);
    let rest = responses(json!({ "question-2": 2 }));
    assert_eq!(pending.answer_with_token(&[1, 2, 3], ALL, rest), Ok(()));
    let answers = first.await.expect("an end");
    assert_eq!(answers, [Ok(json!(1)), Ok(json!(2)), Ok(json!(3))]);

    // Earlier answers are not for a later request.
    let second = ask(&pending, &[None]).await;
    let used = pending.answer_with_token(&[1, 2, 3], ALL, some());
    assert_eq!(used, Err(RejectedAnswer::Used));
    let unable = pending.answer_with_token(&[4], Capabilities::default(), some());
    assert_eq!(unable, Err(RejectedAnswer::Unannounced));
    pending.answer_any(responses(json!({ "question-04": 0, "question-4": 4 })));
    assert_eq!(second.await.expect("an end"), [Ok(json!(4))]);
}

#[tokio::test]
async fn keys_are_used_once() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let first = ask(&pending, &[Some("name"), Some("question-3"), None]).await;
    shown(
        &pending,
        &[1, 2, 3],
        &["name", "question-3", "question-3-3"],
    );
    withdraw(first).await;
    let _other = ask(&pending, &[Some("name")]).await;
    shown(&pending, &[4], &["name-4"]);
}

#[tokio::test]
async fn a_sent_request_is_not_shown_to_another_client() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let waiting = ask(&pending, &[None]).await;
    let unable = Capabilities::default();
    assert!(pending.send_all(unable).is_empty() && pending.show(unable).is_none());
    assert!(pending.has_unsent());
    assert_eq!(pending.send_all(ALL).len(), 1);
    assert!(pending.show(ALL).is_none() && pending.send_all(ALL).is_empty());
    assert!(!pending.has_unsent() && !pending.give_token(&[1]));
    let other = responses(json!({ "question-1": "other" }));
    pending.answer_any(other.clone());
    assert_eq!(pending.answer_with_token(&[1], ALL, other), Ok(()));
    let failed = Err(NoAnswer::Failed("no".to_owned()));
    pending.answer(1, failed.clone());
    assert_eq!(waiting.await.expect("an end"), [failed]);
}

#[tokio::test]
async fn a_token_is_good_until_all_its_requests_are_answered() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let first = ask(&pending, &[None]).await;
    let second = ask(&pending, &[None]).await;
    assert!(!pending.has_tokens());
    assert!(pending.give_token(&[1, 2]) && pending.has_tokens());
    withdraw(first).await;
    let third = ask(&pending, &[None]).await;
    let all = || responses(json!({ "question-1": 1, "question-2": 2, "question-3": 3 }));
    assert_eq!(pending.answer_with_token(&[1, 2], ALL, all()), Ok(()));
    assert_eq!(second.await.expect("an end"), [Ok(json!(2))]);
    // The first has no answer, so the token stays good, but not for the third.
    assert_eq!(pending.answer_with_token(&[1, 2], ALL, all()), Ok(()));
    shown(&pending, &[3], &["question-3"]);
    assert!(pending.give_token(&[3]));
    assert_eq!(pending.answer_with_token(&[3], ALL, all()), Ok(()));
    assert_eq!(third.await.expect("an end"), [Ok(json!(3))]);
    let used = pending.answer_with_token(&[3], ALL, all());
    assert_eq!(used, Err(RejectedAnswer::Used));
    assert!(pending.has_tokens(), "the first has no answer");
}

#[tokio::test]
async fn refused_and_late_requests_have_no_answer() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    let refused = ask(&pending, &[None]).await;
    pending.refuse(ALL);
    assert_eq!(refused.await.expect("an end"), [Err(NoAnswer::NoClient)]);
    assert!(!pending.has_tokens() && !pending.give_token(&[1]));
    let pending = Arc::new(PendingRequests::new(Duration::ZERO));
    let late = ask(&pending, &[None]).await.await.expect("an end");
    assert_eq!(late, [Err(NoAnswer::Late)]);
}

#[tokio::test]
async fn remembered_requests_are_bounded() {
    let pending = Arc::new(PendingRequests::new(HOUR));
    for number in 1..=MAX_WITHDRAWN as u64 + 1 {
        let waiting = ask(&pending, &[None]).await;
        assert!(pending.give_token(&[number]));
        withdraw(waiting).await;
    }
    let used = pending.answer_with_token(&[1], ALL, responses(json!({})));
    assert_eq!(used, Err(RejectedAnswer::Used));
    assert_eq!(pending.lock().withdrawn.len(), MAX_WITHDRAWN);
}
