//! `callgate serve` asks its client's user about calls: by a request where the
//! protocol has one, else by an answer that the client comes again to. What
//! servers ask for while they work goes the same ways.

#![expect(
    deprecated,
    reason = "sampling and roots are, and clients have them all the same"
)]

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex};

use callgate_tests::{Workbench, fixture};
use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    Implementation, InputRequest, InputRequiredResult, ListRootsResult, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RoleClient,
    RunningService,
};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A client whose user gives these answers, one after the other.
#[derive(Clone)]
struct User {
    version: ProtocolVersion,
    can: ClientCapabilities,
    answers: Arc<Mutex<Vec<Value>>>,
    asked: Arc<Mutex<Vec<ElicitRequestParams>>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl User {
    fn new(version: &ProtocolVersion, answers: &[&str]) -> Self {
        let filled_in = |answer: &&str| json!({ "answer": answer });
        Self {
            version: version.clone(),
            can: can(json!({ "elicitation": {} })),
            answers: Arc::new(Mutex::new(answers.iter().rev().map(filled_in).collect())),
            asked: Arc::default(),
            told: Arc::default(),
        }
    }
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::new(self.can.clone(), Implementation::new("test", "1"));
        config.protocol_version = self.version.clone();
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.lock().expect("no panic").push(request);
        let answer = self.answers.lock().expect("no panic").pop();
        let result = match answer {
            Some(answer) => json!({ "action": "accept", "content": answer }),
            None => json!({ "action": "decline" }),
        };
        Ok(serde_json::from_value(result).expect("a result"))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let result = json!({
            "model": "test",
            "role": "assistant",
            "content": { "type": "text", "text": format!("{} of it", params.max_tokens) },
        });
        Ok(serde_json::from_value(result).expect("a result"))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let result = json!({ "roots": [{ "uri": "file:///home/test" }] });
        Ok(serde_json::from_value(result).expect("a result"))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let message = params.message.unwrap_or_default();
        let told = format!("{} {message}", params.progress);
        self.told.lock().expect("no panic").push(told);
    }
}

fn can(capabilities: Value) -> ClientCapabilities {
    serde_json::from_value(capabilities).expect("capabilities")
}

struct Session {
    client: RunningService<RoleClient, User>,
    pid: u32,
    user: User,
}

const OLDER: [ProtocolVersion; 2] = [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25];
const NEWEST: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// A folder whose rules leave every call to be asked about.
fn bench() -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
    }))
}

async fn connect(bench: &Workbench, user: User, flags: &[&str]) -> Session {
    let mut command = tokio::process::Command::new(callgate_tests::binary("callgate"));
    command.arg("serve").args(flags).current_dir(bench.path());
    let transport = TokioChildProcess::new(command).expect("start callgate serve");
    let pid = transport.id().expect("it runs");
    let lifecycle = if user.version == NEWEST {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![NEWEST],
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let client = user.clone().serve_with_lifecycle(transport, lifecycle);
    let client = client.await.expect("an MCP handshake");
    Session { client, pid, user }
}

impl Session {
    /// Runs a script and has the client's user asked.
    async fn run(&self, code: &str) -> (bool, String) {
        let result = self.client.call_tool(request(code)).await;
        shown(&result.expect("an answer"))
    }

    /// Runs a script until it wants something.
    async fn park(&self, code: &str) -> InputRequiredResult {
        match self.client.call_tool_once(request(code)).await {
            Ok(CallToolResponse::InputRequired(required)) => required,
            other => panic!("{other:?}"),
        }
    }

    /// Comes again, with this state and this answer.
    async fn come(&self, code: &str, state: &str, answer: Value) -> Result<String, String> {
        let mut request = request(code);
        request.request_state = Some(state.to_owned());
        request.input_responses = serde_json::from_value(answer).expect("responses");
        match self.client.call_tool_once(request).await {
            Ok(CallToolResponse::Complete(result)) => Ok(value(&shown(&result).1).to_owned()),
            Ok(other) => panic!("{other:?}"),
            Err(rmcp::ServiceError::McpError(error)) => {
                assert_eq!(error.code.0, -32602, "{error:?}");
                Err(error.message.into_owned())
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    /// What the user was asked.
    fn asked(&self) -> Vec<Value> {
        let asked = self.user.asked.lock().expect("no panic");
        let as_value = |request| serde_json::to_value(request).expect("JSON");
        asked.iter().map(as_value).collect()
    }

    /// The ends of the workers there are.
    fn workers(&self) -> Vec<AsyncFd<OwnedFd>> {
        let children = format!("/proc/{0}/task", self.pid);
        let tasks = std::fs::read_dir(children).expect("it runs").flatten();
        let pids: Vec<String> = tasks
            .flat_map(|task| {
                let children = std::fs::read_to_string(task.path().join("children"));
                let children = children.unwrap_or_default();
                children
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .filter(|pid| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.starts_with(b"callgate-worker\0")
            })
            .collect();
        pids.iter()
            .filter_map(|pid| end_of(pid.parse().ok()?))
            .collect()
    }
}

fn request(code: &str) -> CallToolRequestParams {
    let Value::Object(arguments) = json!({ "code": code }) else {
        unreachable!("an object")
    };
    CallToolRequestParams::new("run_script").with_arguments(arguments)
}

fn shown(result: &CallToolResult) -> (bool, String) {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    let text = texts.map(|text| text.text.as_str()).collect();
    (result.is_error.unwrap_or(false), text)
}

/// What a report says was returned, without what it says of calls that were
/// denied.
fn value(report: &str) -> &str {
    report.lines().next().unwrap_or_default()
}

/// A descriptor that can be read once the process has ended.
fn end_of(pid: i32) -> Option<AsyncFd<OwnedFd>> {
    // SAFETY: a system call with numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the descriptor is new, and nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the descriptor is owned, so it is open, and the same one, until it is dropped.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok()
}

/// Waits until one of the processes has ended.
async fn one_ends(workers: &[AsyncFd<OwnedFd>]) {
    assert!(!workers.is_empty());
    let ends = workers.iter().map(|end| Box::pin(end.readable()));
    let end = futures::future::select_all(ends);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), end).await;
    ended
        .expect("a worker ends")
        .0
        .expect("a descriptor")
        .retain_ready();
}

const CREATE: &str = "const make = () => ticketing_createIssue({ title: 'A', body: 'B' })
  .then((issue) => issue.issueId !== '', (error) => error.name);
";

/// Makes two calls, and says what became of them and how often somebody was
/// asked.
async fn check(answers: &[&str], expected: &str, asked: usize) {
    for version in OLDER.iter().chain([&NEWEST]) {
        let bench = bench();
        let session = connect(&bench, User::new(version, answers), &[]).await;
        let script = format!("{CREATE}return [await make(), await make()];");
        let (is_error, said) = session.run(&script).await;
        assert!(!is_error, "{version}: {said}");
        assert_eq!(value(&said), expected, "{version}");
        assert_eq!(session.asked().len(), asked, "{version}");
        session.client.cancel().await.expect("a clean end");
    }
}

#[tokio::test]
async fn a_yes_is_for_one_call() {
    check(&["once", "once"], "[true,true]", 2).await;
    check(&["once", "deny"], "[true,\"McpDeniedError\"]", 2).await;
}

#[tokio::test]
async fn a_yes_can_be_for_all_calls_of_the_run() {
    check(&["run"], "[true,true]", 1).await;
}

#[tokio::test]
async fn anything_else_is_a_no() {
    let no = "[\"McpDeniedError\",\"McpDeniedError\"]";
    check(&["yes", "always"], no, 2).await;
    // Whoever declines fills in nothing.
    check(&[], no, 2).await;
}

#[tokio::test]
async fn a_yes_can_be_for_the_session() {
    let bench = bench();
    let session = connect(&bench, User::new(&NEWEST, &["session"]), &[]).await;
    let script = format!("{CREATE}return await make();");
    for _ in 0..2 {
        assert_eq!(session.run(&script).await, (false, "true\n".to_owned()));
    }
    assert_eq!(session.asked().len(), 1);
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn the_form_says_what_is_asked() {
    let bench = bench();
    let session = connect(&bench, User::new(&OLDER[1], &[]), &[]).await;
    session.run(&format!("{CREATE}await make();")).await;
    let asked = session.asked();
    let message = asked[0]["message"].as_str().expect("a message");
    for said in [
        "ticketing_createIssue",
        "\"title\":\"A\"",
        "ticketing_createIssue({ title",
    ] {
        assert!(message.contains(said), "{said} is not in:\n{message}");
    }
    assert_eq!(
        asked[0]["requestedSchema"],
        json!({
            "type": "object",
            "properties": { "answer": { "type": "string", "enum": ["once", "run", "session", "deny"] } },
            "required": ["answer"],
        })
    );
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn a_client_without_forms_is_not_asked() {
    for version in [&OLDER[0], &NEWEST] {
        let bench = bench();
        let mut user = User::new(version, &["once"]);
        user.can = can(json!({ "sampling": {}, "elicitation": { "url": {} } }));
        let session = connect(&bench, user, &[]).await;
        let (_, said) = session.run(&format!("{CREATE}return await make();")).await;
        assert_eq!(value(&said), "McpDeniedError");
        assert_eq!(session.asked(), Vec::<Value>::new());
        session.client.cancel().await.expect("a clean end");
    }
}

#[tokio::test]
async fn a_state_is_good_once_and_for_its_script_alone() {
    let bench = bench();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let script = format!("{CREATE}return await make();");
    let required = session.park(&script).await;
    let state = required.request_state.expect("a state");
    let asked = required.input_requests.expect("requests");
    assert!(
        matches!(asked["question-1"], InputRequest::Elicitation(_)),
        "{asked:?}"
    );
    let yes = || json!({ "question-1": { "action": "accept", "content": { "answer": "once" } } });

    let not_ours = "the requestState is not one that this server gave for this script";
    let mut forged = state.clone();
    let last = forged.pop().expect("a character");
    forged.push(if last == 'A' { 'B' } else { 'A' });
    for (code, state) in [
        (script.as_str(), forged.as_str()),
        (&script, ""),
        ("return 1", &state),
    ] {
        assert_eq!(
            session.come(code, state, yes()).await,
            Err(not_ours.to_owned())
        );
    }
    let refused = session.come(&script, &state, json!({})).await;
    let missing = "inputResponses has no answer to question-1, which was asked for";
    assert_eq!(refused, Err(missing.to_owned()));

    // None of that has changed anything.
    assert_eq!(
        session.come(&script, &state, yes()).await,
        Ok("true".to_owned())
    );
    let used = "the requestState was used before, or its run has ended; run the script anew";
    assert_eq!(
        session.come(&script, &state, yes()).await,
        Err(used.to_owned())
    );
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn parked_runs_do_not_meet() {
    let bench = bench();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let script = |n: u32| format!("{CREATE}return [{n}, await make()];");
    let states = [
        session
            .park(&script(1))
            .await
            .request_state
            .expect("a state"),
        session
            .park(&script(2))
            .await
            .request_state
            .expect("a state"),
    ];
    let say = |answer: &str| json!({ "question-1": { "action": "accept", "content": { "answer": answer } } });
    let swapped = session.come(&script(1), &states[1], say("once")).await;
    assert!(swapped.is_err(), "{swapped:?}");
    let second = session.come(&script(2), &states[1], say("deny")).await;
    let first = session.come(&script(1), &states[0], say("once")).await;
    assert_eq!(second, Ok("[2,\"McpDeniedError\"]".to_owned()));
    assert_eq!(first, Ok("[1,true]".to_owned()));
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn a_run_that_nobody_comes_for_ends() {
    let bench = bench();
    let flags = ["--answer-time", "500ms"];
    let session = connect(&bench, User::new(&NEWEST, &[]), &flags).await;
    let script = format!("{CREATE}return await make();");
    let required = session.park(&script).await;
    one_ends(&session.workers()).await;
    let yes = json!({ "question-1": { "action": "accept", "content": { "answer": "once" } } });
    let state = required.request_state.expect("a state");
    let expired = "the requestState has expired, and its run was cancelled; run the script anew";
    assert_eq!(
        session.come(&script, &state, yes).await,
        Err(expired.to_owned())
    );
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn a_parked_run_ends_with_its_client() {
    let bench = bench();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    session.park(&format!("{CREATE}return await make();")).await;
    let workers = session.workers();
    session.client.cancel().await.expect("a clean end");
    one_ends(&workers).await;
}

/// Calls a server of an older revision that asks its client for all there is.
async fn check_passed_on(version: &ProtocolVersion, capabilities: Value, expected: Value) {
    let bench = Workbench::new(json!({ "odd": callgate_tests::odd("asks") }));
    let mut user = User::new(version, &[]);
    user.can = can(capabilities);
    user.answers = Arc::new(Mutex::new(vec![json!({ "name": "Ada" })]));
    let session = connect(&bench, user, &[]).await;
    let (is_error, said) = session.run("return await odd_ask({})").await;
    assert!(!is_error, "{version}: {said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said, expected, "{version}");
    for asked in session.asked() {
        assert_eq!(asked["message"], "The server \"odd\" asks: your name?");
    }
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn what_servers_ask_is_passed_on() {
    let mut answers = json!({
        "elicitation/create": { "action": "accept", "content": { "name": "Ada" } },
        "ping": {},
        "roots/list": { "roots": [{ "uri": "file:///home/test" }] },
        "sampling/createMessage": {
            "content": { "text": "1 of it", "type": "text" },
            "model": "test",
            "role": "assistant",
        },
    });
    let all = json!({ "elicitation": {}, "roots": {}, "sampling": {} });
    check_passed_on(&OLDER[1], all.clone(), answers.clone()).await;
    // A client of the newest revision is not asked for its folders.
    answers["roots/list"] = json!({ "error": -32601 });
    check_passed_on(&NEWEST, all, answers).await;
}

#[tokio::test]
async fn what_a_client_cannot_do_is_declined() {
    let declined = json!({
        "elicitation/create": { "action": "decline" },
        "ping": {},
        "roots/list": { "error": -32601 },
        "sampling/createMessage": { "error": -32601 },
    });
    for version in [&OLDER[1], &NEWEST] {
        check_passed_on(version, json!({}), declined.clone()).await;
    }
}
