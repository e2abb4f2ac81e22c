//! Runs that end, or ask another question, while the client that has a token is away.

use callgate::settings::CheckMode;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{ContentBlock, ProtocolVersion, RequestId};
use rmcp::service::RunningService;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::*;

struct Handler;

impl ServerHandler for Handler {}

/// The runs of one user, and a client of 2026-07-28 that has forms.
struct Bench {
    gate: Gate,
    runs: Runs,
    served: RunningService<RoleServer, Handler>,
}

type Answered = Result<CallToolResponse, String>;

impl Bench {
    async fn new() -> Self {
        let gate = Gate::builder().spare_workers(0).check(CheckMode::Off);
        let (ours, _theirs) = tokio::io::duplex(1);
        Self {
            gate: gate.build().await.expect("a gate"),
            runs: Runs::new(ServeConfig::default(), Outside::default()),
            served: rmcp::service::serve_directly(Handler, tokio::io::split(ours), None),
        }
    }

    /// Asks one or two questions in turn, the first until it is given up, and answers with the
    /// answers.
    async fn ask(&self, given_up: oneshot::Receiver<()>, is_asked_twice: bool) -> Answered {
        let work = move |asker: Arc<ClientAsker>| async move {
            let first = tokio::select! {
                biased;
                answers = asker.request(vec![(None, form())]) => format!("{answers:?}"),
                _ = given_up => "given up".to_owned(),
            };
            let second = match is_asked_twice {
                true => format!("{:?}", asker.request(vec![(None, form())]).await),
                false => String::new(),
            };
            let content = vec![ContentBlock::text(format!("{first} {second}"))];
            Ok(CallToolResult::success(content))
        };
        self.request(CallToolRequestParams::new("tool"), work).await
    }

    /// Comes again with an answer to either question.
    async fn come(&self, state: &str) -> Answered {
        let mut request = CallToolRequestParams::new("tool");
        request.request_state = Some(state.to_owned());
        let answers = json!({ "question-1": "yes", "question-2": "yes" });
        request.input_responses = serde_json::from_value(answers).expect("responses");
        let nothing =
            |_: Arc<ClientAsker>| async { Err(ErrorData::internal_error("a new run", None)) };
        self.request(request, nothing).await
    }

    async fn request<F>(
        &self,
        request: CallToolRequestParams,
        work: impl FnOnce(Arc<ClientAsker>) -> F,
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
        let call = ToolRequest {
            params: &request,
            context: &context,
            client: &Client::of_request(&context, None).expect("a client"),
            roots: &Roots::default(),
        };
        let purpose = Purpose::new(Purpose::CALL, "tool");
        let answer = self.runs.without_script(&self.gate, call, purpose, work);
        answer.await.map_err(|error| error.message.into_owned())
    }

    /// The run of a state.
    fn run(&self, state: &str) -> Arc<ServedRun> {
        let (run, _) = resume::read(state).expect("a state");
        self.runs.store.get(run).expect("it is there")
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

/// The state of an answer that asks exactly this question.
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

fn unknown() -> Result<Value, String> {
    Err(NO_RUN.to_owned())
}

#[tokio::test]
async fn run_ended_meanwhile_gives_its_result() {
    let bench = Bench::new().await;
    let (give_up, given_up) = oneshot::channel();
    let state = wanted(bench.ask(given_up, false).await, "question-1");
    give_up.send(()).expect("it waits");
    bench.all_end().await;
    let (one, other) = tokio::join!(bench.come(&state), bench.come(&state));
    let expected = Ok(json!("given up "));
    assert_eq!((said(one), said(other)), (expected.clone(), expected));
    bench.runs.end().await;
    assert_eq!(said(bench.come(&state).await), unknown());
}

#[tokio::test]
async fn run_with_new_question_asks_it() {
    let bench = Bench::new().await;
    let (give_up, given_up) = oneshot::channel();
    let state = wanted(bench.ask(given_up, true).await, "question-1");
    let run = bench.run(&state);
    let mut questions = run.pending.subscribe();
    questions.mark_unchanged();
    give_up.send(()).expect("it waits");
    questions.changed().await.expect("another question");
    // The answers are for the first question alone.
    let second = wanted(bench.come(&state).await, "question-2");
    let expected = Ok(json!("given up [Ok(String(\"yes\"))]"));
    assert_eq!(said(bench.come(&second).await), expected);
    bench.all_end().await;
    assert_eq!(said(bench.come(&second).await), expected);
    bench.runs.end().await;
}
