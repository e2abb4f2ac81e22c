//! Runs that end, or come to want something else, while the client that has a state
//! for them is away.

use callgate::CheckMode;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{ProtocolVersion, RequestId};
use rmcp::service::RunningService;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::*;

struct Handler;

impl ServerHandler for Handler {}

/// The runs of one user, and a client of 2026-07-28 that can fill in forms.
struct Bed {
    runs: Runs,
    standing: Standing,
    served: RunningService<RoleServer, Handler>,
}

type Answered = Result<CallToolResponse, String>;

impl Bed {
    async fn new(kept_runs: usize) -> Self {
        let gate = Gate::builder().spare_workers(0).check(CheckMode::Off);
        let gate = Arc::new(gate.build().await.expect("a gate"));
        let gate: futures::future::BoxFuture<'static, _> = Box::pin(async move { gate });
        let options = ServeOptions {
            kept_runs,
            ..ServeOptions::default()
        };
        let (ours, _theirs) = tokio::io::duplex(1);
        Self {
            runs: Runs::new(futures::FutureExt::shared(gate), options).expect("random bytes"),
            standing: Standing::default(),
            served: rmcp::service::serve_directly(Handler, tokio::io::split(ours), None),
        }
    }

    /// Asks two questions one after the other, the first until it is given up, and
    /// says what was answered.
    async fn ask(&self, given_up: oneshot::Receiver<()>, is_asked_twice: bool) -> Answered {
        let work = move |desk: Arc<Desk>| async move {
            let first = tokio::select! {
                biased;
                answers = desk.wish(vec![(None, form())]) => format!("{answers:?}"),
                _ = given_up => "given up".to_owned(),
            };
            let second = match is_asked_twice {
                true => format!("{:?}", desk.wish(vec![(None, form())]).await),
                false => String::new(),
            };
            let content = vec![ContentBlock::text(format!("{first} {second}"))];
            Ok(CallToolResult::success(content))
        };
        self.request(CallToolRequestParams::new("tool"), work).await
    }

    /// Comes again, with this answer to either question.
    async fn come(&self, state: &str) -> Answered {
        let mut request = CallToolRequestParams::new("tool");
        request.request_state = Some(state.to_owned());
        let answers = json!({ "question-1": "yes", "question-2": "yes" });
        request.input_responses = serde_json::from_value(answers).expect("responses");
        let nothing = |_: Arc<Desk>| async { Err(ErrorData::internal_error("a new run", None)) };
        self.request(request, nothing).await
    }

    async fn request<F>(
        &self,
        request: CallToolRequestParams,
        work: impl FnOnce(Arc<Desk>) -> F,
    ) -> Answered
    where
        F: Future<Output = Result<CallToolResult, ErrorData>> + Send + 'static,
    {
        let peer = self.served.peer().clone();
        let mut context = RequestContext::new(RequestId::Number(1), peer);
        context
            .meta
            .set_protocol_version(ProtocolVersion::V_2026_07_28);
        let can = serde_json::from_value(json!({ "elicitation": {} }));
        context
            .meta
            .set_client_capabilities(can.expect("capabilities"));
        let answer = self
            .runs
            .without_script(For::Call("tool"), &request, &context, &self.standing, work)
            .await;
        answer.map_err(|error| error.message.into_owned())
    }

    /// The run that a state is for.
    fn run(&self, state: &str) -> Arc<Run> {
        let ticket = self.runs.seal.open(state, For::Call("tool"));
        let run = self.runs.store.get(&ticket.expect("a ticket").run);
        run.expect("it is there")
    }

    /// Waits until the task of every run has ended.
    async fn all_end(&self) {
        self.runs.tasks.close();
        self.runs.tasks.wait().await;
    }
}

fn form() -> rmcp::model::InputRequest {
    let form = json!({ "method": "elicitation/create", "params": {
        "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} },
    } });
    serde_json::from_value(form).expect("a request")
}

/// The state, where exactly this is wanted.
#[track_caller]
fn wanted(answer: Answered, key: &str) -> String {
    let Ok(CallToolResponse::InputRequired(required)) = answer else {
        panic!("{answer:?}");
    };
    let requests = required.input_requests.expect("requests");
    assert_eq!(requests.keys().collect::<Vec<_>>(), [key]);
    required.request_state.expect("a state")
}

#[track_caller]
fn said(answer: Answered) -> Result<Value, String> {
    match answer? {
        CallToolResponse::Complete(result) => {
            let result = serde_json::to_value(result).expect("JSON");
            Ok(result["content"][0]["text"].clone())
        }
        other => panic!("{other:?}"),
    }
}

fn used() -> Result<Value, String> {
    Err(Refused::Used.to_string())
}

#[tokio::test]
async fn a_run_that_ended_while_its_client_was_away_says_what_it_came_to() {
    let bed = Bed::new(64).await;
    let (give_up, given_up) = oneshot::channel();
    let state = wanted(bed.ask(given_up, false).await, "question-1");
    give_up.send(()).expect("it waits");
    bed.all_end().await;
    let (one, other) = tokio::join!(bed.come(&state), bed.come(&state));
    let expected = Ok(json!("given up "));
    assert_eq!((said(one), said(other)), (expected.clone(), expected));
    bed.runs.end().await;
    assert_eq!(said(bed.come(&state).await), used());
}

#[tokio::test]
async fn a_run_that_wants_something_else_by_now_asks_for_that() {
    let bed = Bed::new(64).await;
    let (give_up, given_up) = oneshot::channel();
    let state = wanted(bed.ask(given_up, true).await, "question-1");
    let run = bed.run(&state);
    let mut wishes = run.board.follow();
    wishes.mark_unchanged();
    give_up.send(()).expect("it waits");
    wishes.changed().await.expect("another wish");
    // The answers are for the first alone, whatever they are called.
    let second = wanted(bed.come(&state).await, "question-2");
    let again = wanted(bed.come(&state).await, "question-2");
    let answers = tokio::join!(bed.come(&second), bed.come(&again));
    let expected = Ok(json!("given up [Ok(String(\"yes\"))]"));
    assert_eq!(
        (said(answers.0), said(answers.1)),
        (expected.clone(), used())
    );
    bed.all_end().await;
    assert_eq!(said(bed.come(&second).await), used());
    // Nobody has answered with the first, so it is good for what came of the run.
    assert_eq!(said(bed.come(&state).await), expected);
    bed.runs.end().await;
}

#[tokio::test]
async fn a_run_whose_client_answered_is_not_kept() {
    let bed = Bed::new(64).await;
    let (_give_up, given_up) = oneshot::channel();
    let state = wanted(bed.ask(given_up, false).await, "question-1");
    let answer = bed.come(&state).await;
    assert_eq!(said(answer), Ok(json!("[Ok(String(\"yes\"))] ")));
    bed.all_end().await;
    assert!(bed.runs.store.is_empty());
    assert_eq!(said(bed.come(&state).await), used());
}

#[tokio::test]
async fn what_is_kept_for_those_who_have_a_state_is_bounded() {
    let bed = Bed::new(1).await;
    let mut states = Vec::new();
    for _ in 0..2 {
        let (give_up, given_up) = oneshot::channel();
        let state = wanted(bed.ask(given_up, false).await, "question-1");
        let mut ended = bed.run(&state).follow();
        give_up.send(()).expect("it waits");
        while ended.changed().await.is_ok() && ended.borrow().is_none() {}
        states.push(state);
    }
    bed.all_end().await;
    assert_eq!(bed.runs.store.ended().len(), 1);
    assert_eq!(said(bed.come(&states[0]).await), used());
    assert_eq!(said(bed.come(&states[1]).await), Ok(json!("given up ")));
    bed.runs.end().await;
}
