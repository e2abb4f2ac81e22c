//! Polls of tasks that fail on the wire, and what becomes of the tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use super::asking::{Answers, Named, question};
use super::server::Server;
use super::tasks::{spec, task, with_task, with_tasks};
use super::{call, in_time, keep, result_of};

/// A status, and what comes with it.
type Said = (&'static str, &'static str);

/// How a call ends whose polls are answered so at first, one after the other, and what the
/// server has heard of its task, which the call `cancels`.
async fn polled(first: &'static [Said], cancels: bool) -> (String, String) {
    let polls = Arc::new(AtomicUsize::new(0));
    let cancelled = Arc::new(Notify::new());
    let tells_cancelled = Arc::clone(&cancelled);
    let server = Server::start(move |mut request| {
        let (polls, cancelled) = (Arc::clone(&polls), Arc::clone(&tells_cancelled));
        async move {
            let method = request.method();
            if method.starts_with("tasks/") {
                request.log.note(method.as_str());
            }
            if method == "tasks/get" {
                let poll = polls.fetch_add(1, Ordering::Relaxed);
                if let Some((status, body)) = first.get(poll) {
                    return request.answer(status, "", body).await;
                }
            }
            let mut task = task(&json!("one"), "completed");
            task["result"] = json!({ "content": [] });
            result_of(&mut request, "", with_task(&method, task)).await;
            if method == "tasks/cancel" {
                cancelled.notify_one();
            }
        }
        .boxed()
    })
    .await;
    ended(server, cancels.then_some(cancelled)).await
}

/// How a call of this server ends, which somebody may wait for to be cancelled, and what the
/// server has heard.
async fn ended(server: Server, cancelled: Option<Arc<Notify>>) -> (String, String) {
    let (kept, _changes) = keep(spec(&server, "2026-07-28")).await;
    let said = call(&kept, "one", Named::new("ann")).await;
    if let Some(cancelled) = cancelled {
        in_time(cancelled.notified()).await;
    }
    in_time(kept.shut_down()).await;
    (said, server.log())
}

const BUSY: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"busy"}}"#;
const MISMATCH: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"m"}}"#;
const UNKNOWN: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no task"}}"#;

#[tokio::test]
async fn a_poll_that_fails_for_now_is_made_again() {
    let passing: &[&[Said]] = &[
        &[
            ("503 Service Unavailable", ""),
            ("429 Too Many Requests", ""),
        ],
        // Whatever error comes with it.
        &[
            ("503 Service Unavailable", BUSY),
            ("429 Too Many Requests", BUSY),
        ],
        &[
            ("500 Internal Server Error", BUSY),
            ("409 Conflict", UNKNOWN),
        ],
    ];
    for first in passing {
        let (said, log) = polled(first, false).await;
        assert_eq!(said, r#"{"content":[]}"#);
        assert_eq!(log, "tasks/get\ntasks/get\ntasks/get\n");
    }
}

#[tokio::test]
async fn a_task_that_may_go_on_is_cancelled_when_its_poll_is_refused() {
    let (said, log) = polled(&[("400 Bad Request", "")], true).await;
    assert_eq!(said, "it answers with HTTP status 400 Bad Request");
    assert_eq!(log, "tasks/get\ntasks/cancel\n");
    let (said, log) = polled(&[("400 Bad Request", BUSY)], true).await;
    assert_eq!(said, "busy (code -32000)");
    assert_eq!(log, "tasks/get\ntasks/cancel\n");
    // It says nothing of the headers of the call, which is not made again.
    let (said, log) = polled(&[("400 Bad Request", MISMATCH)], true).await;
    assert_eq!(said, "m (code -32020)");
    assert_eq!(log, "tasks/get\ntasks/cancel\n");
    let (said, log) = polled(&[("400 Bad Request", UNKNOWN)], false).await;
    assert_eq!(said, "no task (code -32602)");
    assert_eq!(log, "tasks/get\n");
}

/// How a call ends whose task is `shown` so by its polls, one after the other, as what works or
/// as what wants an answer by that name, before it completes, where the first answers to what it
/// is told are these, and what the server has heard of its task, which the call `cancels`.
async fn told(
    first: &'static [Said],
    shown: &'static [&'static str],
    cancels: bool,
) -> (String, String) {
    let updates = Arc::<AtomicUsize>::default();
    let polls = Arc::<AtomicUsize>::default();
    let cancelled = Arc::new(Notify::new());
    let tells_cancelled = Arc::clone(&cancelled);
    let server = Server::start(move |mut request| {
        let (updates, polls) = (Arc::clone(&updates), Arc::clone(&polls));
        let cancelled = Arc::clone(&tells_cancelled);
        async move {
            let method = request.method();
            let mut result = task(&json!("one"), "working");
            if method.starts_with("tasks/") {
                request.log.note(method.as_str());
            }
            match method.as_str() {
                "tasks/get" => match shown.get(polls.fetch_add(1, Ordering::Relaxed)) {
                    None => {
                        result["status"] = "completed".into();
                        result["result"] = json!({ "content": [] });
                    }
                    Some(&"working") => {}
                    Some(&name) => {
                        let params = question(name)["params"].clone();
                        let asked = json!({ "method": "elicitation/create", "params": params });
                        result["status"] = "input_required".into();
                        result["inputRequests"] = json!({ name: asked });
                    }
                },
                "tasks/update" => {
                    let message: Value = serde_json::from_str(&request.body).expect("JSON");
                    request
                        .log
                        .note(message["params"]["inputResponses"].to_string());
                    let update = updates.fetch_add(1, Ordering::Relaxed);
                    if let Some((status, body)) = first.get(update) {
                        return request.answer(status, "", body).await;
                    }
                }
                _ => {}
            }
            result_of(&mut request, "", with_task(&method, result)).await;
            if method == "tasks/cancel" {
                cancelled.notify_one();
            }
        }
        .boxed()
    })
    .await;
    ended(server, cancels.then_some(cancelled)).await
}

fn update(name: &str) -> String {
    let answer = r#"{"action":"accept","content":{"who":"ann for one"}}"#;
    format!("tasks/update\n{{\"{name}\":{answer}}}\n")
}

/// Whoever was asked is not asked again for it.
#[tokio::test]
async fn answers_that_a_server_does_not_take_for_now_are_given_again() {
    let (said, log) = told(
        &[
            ("503 Service Unavailable", ""),
            ("429 Too Many Requests", BUSY),
            ("500 Internal Server Error", BUSY),
        ],
        &["k"],
        false,
    )
    .await;
    assert_eq!(said, r#"{"content":[]}"#);
    let updates = update("k").repeat(4);
    assert_eq!(log, format!("tasks/get\n{updates}tasks/get\n"));
}

const NO: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"not k"}}"#;
const REFUSED: Said = ("400 Bad Request", NO);

#[tokio::test]
async fn answers_that_never_got_there_are_refused_at_once() {
    let turned_away: &[&[Said]] = &[
        &[REFUSED],
        &[("429 Too Many Requests", ""), REFUSED],
        &[("425 Too Early", BUSY), REFUSED],
    ];
    for first in turned_away {
        let (said, log) = told(first, &["k"], true).await;
        assert_eq!(said, "not k (code -32602)");
        let updates = update("k").repeat(first.len());
        assert_eq!(log, format!("tasks/get\n{updates}tasks/cancel\n"));
    }
}

/// The first time they may have got there, or may not.
#[tokio::test]
async fn the_next_poll_settles_what_a_refusal_of_answers_given_again_means() {
    let first: &[Said] = &[("503 Service Unavailable", ""), REFUSED];
    let updates = update("k").repeat(2);

    let (said, log) = told(first, &["k", "k"], true).await;
    assert_eq!(said, "not k (code -32602)");
    assert_eq!(
        log,
        format!("tasks/get\n{updates}tasks/get\ntasks/cancel\n")
    );

    let (said, log) = told(first, &["k"], false).await;
    assert_eq!(said, r#"{"content":[]}"#);
    assert_eq!(log, format!("tasks/get\n{updates}tasks/get\n"));

    // Settled once, it stays so.
    let (said, log) = told(first, &["k", "working", "k"], false).await;
    assert_eq!(said, r#"{"content":[]}"#);
    let polls = "tasks/get\n".repeat(3);
    assert_eq!(log, format!("tasks/get\n{updates}{polls}"));
    let (said, log) = told(first, &["k", "l", "k"], false).await;
    assert_eq!(said, r#"{"content":[]}"#);
    let (other, polls) = (update("l"), "tasks/get\n".repeat(2));
    assert_eq!(
        log,
        format!("tasks/get\n{updates}tasks/get\n{other}{polls}")
    );
}

/// How a call ends whose task wants input, where the first answers to the request for its
/// result are these.
async fn fetched(first: &'static [Said]) -> (String, String) {
    let requests = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |mut request| {
        let requests = Arc::clone(&requests);
        async move {
            let method = request.method();
            if matches!(method.as_str(), "tasks/result" | "tasks/cancel") {
                request.log.note(method.as_str());
            }
            if method == "tasks/result" {
                let number = requests.fetch_add(1, Ordering::Relaxed);
                return match first.get(number) {
                    Some((status, body)) => request.answer(status, "", body).await,
                    None => result_of(&mut request, "", json!({ "content": [] })).await,
                };
            }
            let all = Arc::new(Barrier::new(1));
            with_tasks(request, "input_required", all, Answers::default()).await;
        }
        .boxed()
    })
    .await;
    let (kept, _changes) = keep(spec(&server, "2025-11-25")).await;
    let said = call(&kept, "one", Named::new("ann")).await;
    in_time(kept.shut_down()).await;
    (said, server.log())
}

/// It is a long request, which a proxy cuts off in its own time.
#[tokio::test]
async fn the_result_of_a_task_that_wants_input_is_asked_for_until_it_is_there() {
    let (said, log) = fetched(&[
        ("504 Gateway Timeout", ""),
        ("503 Service Unavailable", BUSY),
    ])
    .await;
    assert_eq!(said, r#"{"content":[]}"#);
    assert_eq!(log, "tasks/result\ntasks/result\ntasks/result\n");
    // What the call has come to, by a server that has a status for each error.
    let (said, log) = fetched(&[("500 Internal Server Error", BUSY)]).await;
    assert_eq!(said, "busy (code -32000)");
    assert_eq!(log, "tasks/result\n");
}
