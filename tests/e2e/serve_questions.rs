//! Questions that a client of `callgate serve` cannot show: a person answers them by their records,
//! outside of the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use callgate_store::{
    Access, AnswerRecord, Choice, QuestionFilter, QuestionRecord, QuestionState, SqliteStore, Store,
};
use callgate_tests::served::{Served, hello, http, said};
use callgate_tests::{Workbench, demo_ticketing};
use reqwest::Method;
use rmcp::model::ProtocolVersion;
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::serve_client::{ERAS, NEWEST, OLDER, User, call, can, connect, request, shown, value};

const CREATE: &str = "return await ticketing_createIssue({ title: 'A', body: 'B' })
    .then(() => 'made', (error) => error.name);";

const ALICE: &str = "alice-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";
const OLGA: &str = "olga-0123456789abcdef";
const LEAD: &str = "lead-0123456789abcdef";

/// A folder where every call needs approval, with a store in it and these settings.
fn bench(mut config: Value) -> Workbench {
    config["mcpServers"] = json!({ "ticketing": demo_ticketing() });
    if config.get("store").is_none() {
        config["store"] = json!({ "path": "store" });
    }
    Workbench::with_config(config)
}

/// A server of two users, with an operator for all and one for Alice.
fn operated(asking: Value) -> Workbench {
    bench(json!({ "asking": asking, "serve": {
        "http": { "bearer": { "alice": ALICE, "bob": BOB } },
        "operators": {
            "olga": { "token": OLGA },
            "lead": { "token": LEAD, "approve": ["alice"] },
            "alice": { "token": "operator-alice-0123456789" },
        },
    } }))
}

fn store(bench: &Workbench) -> SqliteStore {
    SqliteStore::open(&bench.path().join("store")).expect("a store")
}

fn in_state(store: &SqliteStore, state: QuestionState) -> Vec<QuestionRecord> {
    let filter = QuestionFilter {
        state: Some(state),
        ..QuestionFilter::default()
    };
    let found = store.questions(Access::All, &filter);
    found.expect("questions").items
}

/// Answers the open question of a run, as a different process does.
fn answer(bench: &Workbench, run: &str, choice: Choice) {
    let store = store(bench);
    let open = in_state(&store, QuestionState::Open);
    let [question] = &open[..] else {
        panic!("one question: {open:?}");
    };
    assert_eq!(question.run, run);
    assert_eq!(question.function, "ticketing_createIssue");
    let mut answer = AnswerRecord::default();
    answer.choice = choice;
    "cleo".clone_into(&mut answer.by);
    "questions".clone_into(&mut answer.via);
    answer.at = jiff::Timestamp::now();
    let settled = store.answer_question(Access::All, &question.id, &answer);
    assert!(settled.expect("an answer").is_first);
}

/// Answers open questions until this many are answered by all threads together. Returns the number of
/// answers that came first.
fn answer_all(bench: &Workbench, answered: &AtomicUsize, count: usize) -> usize {
    let store = store(bench);
    let mut first = 0;
    while answered.load(Ordering::SeqCst) < count {
        for question in in_state(&store, QuestionState::Open) {
            let mut answer = AnswerRecord::default();
            answer.choice = Choice::Once;
            answer.at = jiff::Timestamp::now();
            let settled = store.answer_question(Access::All, &question.id, &answer);
            if settled.expect("an answer").is_first {
                first += 1;
                answered.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    first
}

/// A client without forms.
fn plain(version: &ProtocolVersion) -> User {
    let mut user = User::new(version, &[]);
    user.can = can(json!({}));
    user
}

/// The run in an answer that says that a person must answer in this way.
fn waiting_run(said: &str, way: &str) -> String {
    for part in [way, "You cannot answer", "end your turn", "wait with"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let id = said.split('"').nth(1).expect("an id");
    assert!(id.starts_with("r-"), "{said}");
    id.to_owned()
}

#[tokio::test]
async fn client_without_forms_learns_of_the_question() {
    let way = "`callgate questions` in a terminal";
    for version in ERAS {
        for (choice, expected) in [(Choice::Once, "made\n"), (Choice::Deny, "McpDeniedError")] {
            let bench = bench(json!({}));
            let session = connect(&bench, plain(&version), &[]).await;
            let tools = session.tools().await;
            let described = tools[0].description.as_deref().expect("a description");
            let line = "NEED APPROVAL, and a person is asked outside of this client, with \
                        `callgate questions`, while the run waits: all of ticketing.";
            assert!(described.contains(line), "{described}");
            let begun = Instant::now();
            let (is_error, said) = session.run(CREATE).await;
            assert!(!is_error, "{said}");
            assert!(begun.elapsed() < Duration::from_secs(40), "at once");
            let run = waiting_run(&said, way);
            let (_, said) = session
                .result("wait", json!({ "run": run, "waitMs": 1 }))
                .await;
            assert_eq!(waiting_run(&said, way), run);
            answer(&bench, &run, choice);
            let (is_error, said) = session.result("wait", json!({ "run": run })).await;
            assert!(!is_error && said.starts_with(expected), "{said}");
        }
    }
}

#[tokio::test]
async fn form_without_a_choice_passes_to_the_record() {
    // With null the client fails.
    for content in [json!({ "action": "cancel" }), Value::Null] {
        let bench = bench(json!({}));
        let user = User::new(&ERAS[0], &[]);
        *user.answers.lock().expect("no panic") = vec![content];
        let session = connect(&bench, user, &[]).await;
        let (_, said) = session.run(CREATE).await;
        let run = waiting_run(&said, "`callgate questions`");
        assert_eq!(session.asked().len(), 1);
        answer(&bench, &run, Choice::Run);
        let report = session.result("wait", json!({ "run": run })).await;
        assert_eq!(report, (false, "made\n".to_owned()));
    }
}

/// The form stays open in the client until the question is answered in a different process.
#[tokio::test]
async fn form_is_withdrawn_after_an_answer_elsewhere() {
    for version in OLDER {
        let bench = bench(json!({}));
        let mut user = User::new(&version, &["look"]);
        let (told, mut heard) = mpsc::unbounded_channel();
        user.told = told;
        let session = connect(&bench, user, &[]).await;
        let answered = async {
            let store = store(&bench);
            let run = loop {
                if let Some(question) = in_state(&store, QuestionState::Open).pop() {
                    break question.run;
                }
                tokio::task::yield_now().await;
            };
            answer(&bench, &run, Choice::Once);
        };
        let ((_, said), ()) = tokio::join!(session.run(CREATE), answered);
        assert_eq!(value(&said), "made", "{version}");
        let news = heard.recv().await.expect("news");
        assert_eq!(news, "the form is closed", "{version}");
    }
}

#[tokio::test]
async fn question_without_a_record_is_denied() {
    for config in [
        json!({ "store": false }),
        json!({ "asking": { "ways": ["client"] } }),
    ] {
        let bench = bench(config);
        let session = connect(&bench, plain(&NEWEST), &[]).await;
        let (_, said) = session.run(CREATE).await;
        assert_eq!(value(&said), "McpDeniedError", "{said}");
    }
}

/// Calls without a script end with their request.
#[tokio::test]
async fn call_without_a_script_is_denied() {
    for mode in ["native", "discovery"] {
        let bench = bench(json!({}));
        let session = connect(&bench, plain(&NEWEST), &["--mode", mode]).await;
        let issue = json!({ "title": "A", "body": "B" });
        let (tool, arguments) = match mode {
            "native" => ("ticketing_createIssue", issue),
            _ => (
                "call_tool",
                json!({ "name": "ticketing_createIssue", "args": issue }),
            ),
        };
        let (is_error, said) = session.result(tool, arguments).await;
        assert!(is_error && said.contains("needs approval"), "{said}");
    }
}

/// A request to `/v1/admin`: the status, and the body or its detail.
async fn admin(
    served: &Served,
    token: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let url = format!("http://{}/v1/admin/{path}", served.authority());
    let mut request = http().request(method, url).bearer_auth(token);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let body: Value = response.json().await.expect("JSON");
    let detail = body.get("detail").cloned();
    (status, detail.unwrap_or(body))
}

async fn get(served: &Served, token: &str, path: &str) -> (u16, Value) {
    admin(served, token, Method::GET, path, None).await
}

async fn post(served: &Served, token: &str, id: &str, body: Value) -> (u16, Value) {
    let path = format!("questions/{id}/answer");
    admin(served, token, Method::POST, &path, Some(body)).await
}

type HttpClient = RunningService<RoleClient, User>;

/// A client of this user with a run that asks: the client, the run, and the question's id.
async fn asking(served: &Served, token: &str) -> (HttpClient, String, String) {
    let client = served.connect(plain(&ERAS[0]), Some(token)).await;
    let answer = client.call_tool(request(CREATE)).await.expect("an answer");
    let (is_error, said) = shown(&answer);
    assert!(!is_error, "{said}");
    let run = waiting_run(&said, "an operator of this server must answer");
    let (status, open) = get(served, OLGA, &format!("questions?run={run}")).await;
    assert_eq!(status, 200, "{open}");
    let [question] = &open["questions"].as_array().expect("questions")[..] else {
        panic!("one question: {open}");
    };
    assert_eq!(question["run"], run);
    let id = question["id"].as_str().expect("an id").to_owned();
    (client, run, id)
}

async fn report(client: &HttpClient, run: &str) -> String {
    let answer = client.call_tool(call("wait", json!({ "run": run }))).await;
    shown(&answer.expect("an answer")).1
}

#[tokio::test]
async fn operator_answers_for_a_user_once() {
    let bench = operated(json!({}));
    let served = Served::start(&bench, &[]);
    for (body, expected) in [
        (json!({ "answer": "once" }), "made"),
        (
            json!({ "answer": "deny", "reason": "on Monday" }),
            "McpDeniedError",
        ),
    ] {
        let (client, run, id) = asking(&served, ALICE).await;
        let (_, question) = get(&served, LEAD, &format!("questions/{id}")).await;
        assert_eq!(question["user"], "token alice", "{question}");
        assert_eq!(question["state"], "open", "{question}");
        let (status, answered) = post(&served, OLGA, &id, body.clone()).await;
        assert_eq!(status, 200, "{answered}");
        assert_eq!(answered["state"], "answered", "{answered}");
        assert_eq!(answered["answer"]["by"], "olga", "{answered}");
        // The same answer again changes nothing.
        assert_eq!(post(&served, OLGA, &id, body.clone()).await.0, 200);
        for (token, second) in [(LEAD, body), (OLGA, json!({ "answer": "session" }))] {
            let (status, detail) = post(&served, token, &id, second).await;
            assert_eq!(status, 409, "{detail}");
            let detail = detail.as_str().expect("a detail");
            assert!(detail.contains("first by \"olga\" (way http)"), "{detail}");
        }
        assert_eq!(value(&report(&client, &run).await), expected);
    }
    // A run of the account that is not over HTTP.
    assert_eq!(bench.run("return 1", &[]).code, 0);
    let (status, runs) = get(&served, OLGA, "runs?limit=5").await;
    let faces = runs["runs"].as_array().expect("runs").iter();
    let faces: Vec<_> = faces.map(|run| run["face"].as_str()).collect();
    assert_eq!((status, faces), (200, vec![Some("http"); 2]), "{runs}");
    for path in ["questions/q-0123456789abcdef", "runs/r-0123456789abcdef"] {
        assert_eq!(get(&served, OLGA, path).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn tokens_of_operators_and_users_are_apart() {
    let bench = operated(json!({}));
    let served = Served::start(&bench, &[]);
    for token in [OLGA, LEAD] {
        let refused = served.post(&hello()).bearer_auth(token).send().await;
        let refused = said(refused.expect("an answer")).await;
        assert!(refused.starts_with("403 -32600"), "{refused}");
        assert!(refused.contains("works at /v1/admin only"), "{refused}");
        let tools = http().get(format!("http://{}/v1/tools", served.authority()));
        let refused = tools.bearer_auth(token).send().await.expect("an answer");
        assert_eq!(refused.status(), 403);
    }
    for token in [ALICE, BOB, "nobody-0123456789abcdef"] {
        let (status, detail) = get(&served, token, "questions").await;
        assert_eq!(status, 401, "{detail}");
        assert_eq!(post(&served, token, "q-1", json!({})).await.0, 401);
    }
}

#[tokio::test]
async fn approver_reaches_only_named_users() {
    let bench = operated(json!({}));
    let served = Served::start(&bench, &[]);
    let (hers, her_run, her_question) = asking(&served, ALICE).await;
    let (his, his_run, his_question) = asking(&served, BOB).await;
    let (_, open) = get(&served, LEAD, "questions").await;
    let open = open["questions"].as_array().expect("questions").iter();
    let users: Vec<_> = open.map(|question| &question["user"]).collect();
    assert_eq!(users, ["token alice"]);
    let once = || json!({ "answer": "once" });
    let path = format!("questions/{his_question}");
    assert_eq!(get(&served, LEAD, &path).await.0, 404);
    assert_eq!(post(&served, LEAD, &his_question, once()).await.0, 404);
    assert_eq!(post(&served, LEAD, &her_question, once()).await.0, 200);
    assert_eq!(post(&served, OLGA, &his_question, once()).await.0, 200);
    assert_eq!(value(&report(&hers, &her_run).await), "made");
    assert_eq!(value(&report(&his, &his_run).await), "made");
}

#[tokio::test]
async fn own_run_may_need_a_different_operator() {
    for (own, expected) in [(true, 200), (false, 403)] {
        let bench = operated(json!({ "self": own }));
        let served = Served::start(&bench, &[]);
        let (client, run, id) = asking(&served, ALICE).await;
        let once = json!({ "answer": "once" });
        let token = "operator-alice-0123456789";
        let (status, detail) = post(&served, token, &id, once.clone()).await;
        assert_eq!(status, expected, "{detail}");
        if !own {
            assert_eq!(post(&served, OLGA, &id, once).await.0, 200);
        }
        assert_eq!(value(&report(&client, &run).await), "made");
    }
}

#[tokio::test]
async fn edited_arguments_are_sent_instead() {
    let bench = operated(json!({}));
    let served = Served::start(&bench, &[]);
    let (client, run, id) = asking(&served, BOB).await;
    for (body, why) in [
        (json!({ "answer": "maybe" }), "unknown variant `maybe`"),
        (json!({ "answer": "always" }), "\"answer\" must be"),
        (json!({ "answer": "once", "reason": "x" }), "\"deny\" only"),
        (json!({ "answer": "run", "arguments": {} }), "\"once\" only"),
        (
            json!({ "answer": "once", "arguments": [] }),
            "must be an object",
        ),
        (
            json!({ "answer": "once", "more": 1 }),
            "unknown field `more`",
        ),
    ] {
        let (status, detail) = post(&served, OLGA, &id, body).await;
        let detail = detail.as_str().expect("a detail");
        assert!(status == 400 && detail.contains(why), "{detail}");
    }
    let edited = json!({ "answer": "once", "arguments": { "title": "C", "body": "D" } });
    let (status, answered) = post(&served, OLGA, &id, edited).await;
    assert_eq!(status, 200, "{answered}");
    let bytes = r#"{"body":"D","title":"C"}"#.len();
    assert_eq!(answered["answer"]["edited"]["bytes"], bytes, "{answered}");
    assert_eq!(value(&report(&client, &run).await), "made");
}

#[test]
fn shared_operator_and_user_token_stops_start() {
    for bearer in [json!(ALICE), json!({ "bob": BOB, "alice": ALICE })] {
        let bench = bench(json!({ "serve": {
            "http": { "bearer": bearer }, "operators": { "olga": { "token": ALICE } },
        } }));
        let ran = bench.callgate(&["serve", "--http", "127.0.0.1:0"]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains("have the same token"), "{ran:#?}");
        assert!(!ran.stderr.contains(ALICE), "{ran:#?}");
    }
}

#[tokio::test]
async fn run_over_http_without_operators_is_denied() {
    let bench = bench(json!({}));
    let served = Served::start(&bench, &[]);
    for version in ERAS {
        let client = served.connect(plain(&version), None).await;
        let answer = client.call_tool(request(CREATE)).await.expect("an answer");
        assert_eq!(value(&shown(&answer).1), "McpDeniedError", "{version}");
    }
    assert_eq!(get(&served, OLGA, "questions").await.0, 404);
}

#[tokio::test]
async fn run_without_mcp_waits_for_an_operator() {
    let bench = operated(json!({}));
    let served = Served::start(&bench, &[]);
    for (word, expected) in [("run", "made"), ("deny", "McpDeniedError")] {
        let url = format!("http://{}/v1/run", served.authority());
        let run = http().post(url).bearer_auth(BOB);
        let run = tokio::spawn(run.json(&json!({ "code": CREATE })).send());
        let id = loop {
            let (_, open) = get(&served, OLGA, "questions").await;
            if let Some(id) = open["questions"][0]["id"].as_str() {
                break id.to_owned();
            }
        };
        let (status, detail) = post(&served, OLGA, &id, json!({ "answer": word })).await;
        assert_eq!(status, 200, "{detail}");
        let answer = run.await.expect("no panic").expect("an answer");
        let report: Value = answer.json().await.expect("JSON");
        assert_eq!(report["value"]["json"], expected, "{report}");
    }
}

/// Every `$ref` has its target, and every path answers its methods.
#[tokio::test]
async fn openapi_document_has_the_paths_of_operators() {
    let bench = operated(json!({}));
    let served = Served::start(&bench, &[]);
    let url = format!("http://{}/v1/openapi.json", served.authority());
    let document = http().get(url).bearer_auth(BOB).send().await;
    let document: Value = document.expect("an answer").json().await.expect("JSON");
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().expect("a text");
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    let paths = document["paths"].as_object().expect("paths");
    let paths = paths.iter().filter_map(|(path, item)| {
        let path = path.strip_prefix("/v1/admin/")?;
        Some((path.replace("{id}", "x"), item))
    });
    let paths: Vec<_> = paths.collect();
    assert_eq!(paths.len(), 5);
    for (path, item) in paths {
        for method in [Method::GET, Method::POST] {
            let described = &item[method.as_str().to_lowercase()];
            let body = (method == Method::POST).then(|| json!({ "answer": "once" }));
            let (status, body) = admin(&served, OLGA, method.clone(), &path, body).await;
            if described.is_null() {
                assert_eq!(status, 405, "{method} {path}");
            } else {
                let described = described["responses"].as_object().expect("responses");
                assert!(described.contains_key(&status.to_string()), "{path} {body}");
                assert_eq!(status, if path.contains('x') { 404 } else { 200 }, "{path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_several_processes_are_answered_once() {
    const CALLS: usize = 50;
    let bench = Arc::new(bench(json!({ "ledger": { "path": "calls.jsonl" } })));
    let script = format!(
        "const made = Array.from({{ length: {CALLS} }}, (_, i) => ticketing_createIssue({{ title: `${{i}}` }}));
         return (await Promise.all(made)).length;"
    );
    let answered = Arc::new(AtomicUsize::new(0));
    let answerers = [(); 2].map(|()| {
        let (bench, answered) = (Arc::clone(&bench), Arc::clone(&answered));
        thread::spawn(move || answer_all(&bench, &answered, 3 * CALLS))
    });
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = connect(&bench, plain(&NEWEST), &[]).await;
        let (_, said) = session.run(&script).await;
        sessions.push((session, said));
    }
    for (session, mut said) in sessions {
        // All may be answered before the first look at the run.
        while said.contains("end your turn") {
            let run = waiting_run(&said, "`callgate questions` in a terminal");
            let wait = json!({ "run": run, "waitMs": 50_000 });
            said = session.result("wait", wait).await.1;
        }
        assert_eq!(value(&said), CALLS.to_string(), "{said}");
    }
    let first = answerers.map(|thread| thread.join().expect("no panic"));
    assert_eq!(first.iter().sum::<usize>(), 3 * CALLS);
    let lines = bench.ledger();
    let sent = lines.iter().filter(|line| line["answer"] == "once");
    assert_eq!(sent.count(), 3 * CALLS);
}
