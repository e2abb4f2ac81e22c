//! Whom a server asks: the caller of the request on whose stream the question
//! comes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, join};
use serde_json::{Value, json};
use tokio::sync::{Barrier, watch};

use super::server::{Request, Server};
use super::{call, in_time, keep, result_of};
use crate::caller::{Caller, Elicit, Log, LogLevel, Offers, Progress, Refusal};
use crate::spec::ServerSpec;

/// Somebody who says who they are, and remembers what was logged.
pub(super) struct Named {
    name: &'static str,
    heard: Mutex<Vec<String>>,
}

impl Named {
    pub(super) fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            heard: Mutex::default(),
        })
    }

    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }
}

impl Caller for Named {
    fn offers(&self) -> Offers {
        Offers {
            form: true,
            ..Offers::default()
        }
    }

    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let who = format!("{} for {}", self.name, request.tool.unwrap_or("no tool"));
        Box::pin(async move { Ok(json!({ "action": "accept", "content": { "who": who } })) })
    }

    fn logs(&self) -> Option<LogLevel> {
        Some(LogLevel::Info)
    }

    fn log(&self, log: Log<'_>) {
        let heard = log.data.to_string();
        self.heard.lock().expect("no panic").push(heard);
    }

    fn progress(&self, progress: Progress<'_>) {
        let heard = format!("{} of {}", progress.progress, progress.tool);
        self.heard.lock().expect("no panic").push(heard);
    }
}

/// What the server was answered, by the id of its question.
pub(super) type Answers = Arc<watch::Sender<HashMap<String, String>>>;

/// A message of the server's, as an event.
pub(super) fn event(message: Value) -> String {
    format!("data: {message}\n\n")
}

pub(super) fn question(id: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "who": { "type": "string" } } });
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "elicitation/create",
        "params": { "message": "Who is there?", "requestedSchema": schema },
    })
}

pub(super) async fn answer_to(answers: &Answers, id: &str) -> String {
    let mut answers = answers.subscribe();
    let answered = answers.wait_for(|answers| answers.contains_key(id)).await;
    answered.expect("the sender is there")[id].clone()
}

/// Logs and asks on the stream of the call, once everybody is there.
async fn ask_within(request: &mut Request, all: &Barrier, answers: &Answers) {
    let message: Value = serde_json::from_str(&request.body).expect("it is JSON");
    let tool = message["params"]["name"]
        .as_str()
        .expect("a tool")
        .to_owned();
    request.events().await;
    all.wait().await;
    let log = json!({
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": { "level": "info", "data": format!("of {tool}") },
    });
    request.write(event(log)).await;
    request.write(event(question(&tool))).await;
    let own = answer_to(answers, &tool).await;
    let aside = answer_to(answers, "aside").await;
    let result = json!([own, aside]);
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    request.write(event(answer)).await;
}

pub(super) async fn handle(mut request: Request, all: Arc<Barrier>, answers: Answers) {
    match request.method().as_str() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "logging": {} },
                "serverInfo": { "name": "s", "version": "1" },
            });
            result_of(&mut request, "Mcp-Session-Id: s-1\r\n", result).await;
        }
        "tools/list" => result_of(&mut request, "", json!({ "tools": [] })).await,
        "logging/setLevel" => result_of(&mut request, "", json!({})).await,
        "tools/call" => ask_within(&mut request, &all, &answers).await,
        "GET" => {
            request.events().await;
            all.wait().await;
            request.write(event(question("aside"))).await;
            request.gone().await;
        }
        "POST" => {
            let message: Value = serde_json::from_str(&request.body).expect("it is JSON");
            let id = message["id"].as_str().expect("an id").to_owned();
            let said = message["result"]["content"]["who"].as_str();
            let said = said.unwrap_or("nobody").to_owned();
            answers.send_modify(|answers| drop(answers.insert(id, said)));
            request.answer("202 Accepted", "", "").await;
        }
        _ => request.answer("202 Accepted", "", "").await,
    }
}

/// Two calls of two callers in one session. What comes on the session's own stream
/// is for neither of them.
#[tokio::test]
async fn a_question_on_the_stream_of_a_call_goes_to_its_caller() {
    // The calls, and the session's own stream.
    let all = Arc::new(Barrier::new(3));
    let answers = Answers::default();
    let server = Server::start(move |request| {
        handle(request, Arc::clone(&all), Arc::clone(&answers)).boxed()
    })
    .await;
    let mut spec = ServerSpec::http("s", server.url());
    spec.era = "2025-11-25".parse().expect("a revision");
    spec.caller = Named::new("gate");
    let (kept, _changes) = keep(spec).await;
    let (ann, bob) = (Named::new("ann"), Named::new("bob"));
    let one = call(&kept, "one", Arc::clone(&ann) as _);
    let two = call(&kept, "two", Arc::clone(&bob) as _);
    let (one, two) = join(one, two).await;
    assert_eq!(one, r#"["ann for one","gate for no tool"]"#);
    assert_eq!(two, r#"["bob for two","gate for no tool"]"#);
    assert_eq!(ann.heard(), [r#""of one""#]);
    assert_eq!(bob.heard(), [r#""of two""#]);
    in_time(kept.shut_down()).await;
}

/// The ids of the calls whose streams have broken off, by their tools.
type Broken = Arc<Mutex<HashMap<String, Value>>>;

/// Breaks the stream of a call off before anything is said on it, and asks on each of
/// the streams that take it up: the first breaks off when it has asked, the second
/// brings the answer, too.
async fn break_off(mut request: Request, all: Arc<Barrier>, answers: Answers, broken: Broken) {
    let ids = || broken.lock().unwrap_or_else(PoisonError::into_inner);
    let resumes = request.header("last-event-id").to_owned();
    if request.method() == "tools/call" {
        let message: Value = serde_json::from_str(&request.body).expect("it is JSON");
        let tool = message["params"]["name"].as_str().expect("a tool");
        ids().insert(tool.to_owned(), message["id"].clone());
        request.events().await;
        // Both calls are in flight when they are asked about.
        all.wait().await;
        let named = format!("retry: 0\nid: {tool} 1\ndata:\n\n");
        request.write(named).await;
    } else if let Some(tool) = resumes.strip_suffix(" 1") {
        request.events().await;
        let asked = format!("id: {tool} 2\n{}", event(question(tool)));
        request.write(asked).await;
    } else if let Some(tool) = resumes.strip_suffix(" 2") {
        let again = format!("{tool} again");
        request.events().await;
        request.write(event(question(&again))).await;
        let result = json!([
            answer_to(&answers, tool).await,
            answer_to(&answers, &again).await
        ]);
        let id = ids()[tool].clone();
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        request.write(event(answer)).await;
    } else if request.method() == "GET" {
        // The session's own stream, on which nothing is said.
        request.events().await;
        request.gone().await;
    } else {
        handle(request, all, answers).await;
    }
}

/// Two calls of two callers in one session, as above.
#[tokio::test]
async fn a_question_on_a_stream_that_was_taken_up_again_goes_to_its_caller() {
    let all = Arc::new(Barrier::new(2));
    let (answers, broken) = (Answers::default(), Broken::default());
    let server = Server::start(move |request| {
        let (all, answers) = (Arc::clone(&all), Arc::clone(&answers));
        break_off(request, all, answers, Arc::clone(&broken)).boxed()
    })
    .await;
    let mut spec = ServerSpec::http("s", server.url());
    spec.era = "2025-11-25".parse().expect("a revision");
    spec.caller = Named::new("gate");
    let (kept, _changes) = keep(spec).await;
    let one = call(&kept, "one", Named::new("ann"));
    let two = call(&kept, "two", Named::new("bob"));
    let (one, two) = join(one, two).await;
    assert_eq!(one, r#"["ann for one","ann for one"]"#);
    assert_eq!(two, r#"["bob for two","bob for two"]"#);
    in_time(kept.shut_down()).await;
}
