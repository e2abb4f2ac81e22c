//! A client of `callgate serve`: its capabilities, its user's answers, and the
//! requests and notifications that it received.

#![expect(
    deprecated,
    reason = "sampling, roots and logging are, and clients have them all the same"
)]

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex};

use callgate_tests::served::lifecycle;
use callgate_tests::{Workbench, demo_ticketing, odd};
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    CreateMessageRequestParams, CreateMessageResult, CustomNotification, ElicitRequestParams,
    ElicitResult, ErrorCode, Implementation, InputRequiredResult, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientServiceExt as _, NotificationContext, RequestContext, RoleClient, RunningService,
};
use rmcp::transport::TokioChildProcess;
use rmcp::{ErrorData, ServiceError};
use serde_json::{Value, json};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

/// A client with a user who gives these answers, one after the other.
#[derive(Clone)]
pub struct User {
    /// The name of the client.
    pub name: &'static str,
    /// The revision it speaks.
    pub version: ProtocolVersion,
    /// The capabilities that the client announces.
    pub can: ClientCapabilities,
    /// The contents for forms or whole results, the last one first; without any, the client
    /// declines. With null it fails.
    pub answers: Arc<Mutex<Vec<Value>>>,
    /// The elicitation requests that the client received.
    pub asked: Arc<Mutex<Vec<ElicitRequestParams>>>,
    /// The model of the client.
    pub model: Model,
    /// The sampling requests that the model answered.
    pub sampled: Arc<Mutex<Vec<CreateMessageRequestParams>>>,
    /// The roots of the client.
    pub roots: Arc<Mutex<Vec<String>>>,
    /// Receives the number and the message of each progress notification, and the ids of
    /// completed URL elicitations.
    pub told: mpsc::UnboundedSender<String>,
    /// Receives the log messages of servers.
    pub logs: mpsc::UnboundedSender<Value>,
}

/// The answer of a client's model to a sampling request.
#[derive(Clone, Copy)]
pub enum Model {
    /// A text with the token limit of the request.
    Counts,
    /// This text.
    Says(&'static str),
    /// An error, as if the user rejects the request.
    Declines,
}

impl User {
    /// A client with forms that speaks this revision.
    pub fn new(version: &ProtocolVersion, answers: &[&str]) -> Self {
        let filled_in = |answer: &&str| json!({ "answer": answer });
        Self {
            name: "test",
            version: version.clone(),
            can: can(json!({ "elicitation": {} })),
            answers: Arc::new(Mutex::new(answers.iter().rev().map(filled_in).collect())),
            asked: Arc::default(),
            model: Model::Counts,
            sampled: Arc::default(),
            roots: Arc::new(Mutex::new(vec!["file:///home/test".to_owned()])),
            told: mpsc::unbounded_channel().0,
            logs: mpsc::unbounded_channel().0,
        }
    }
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::new(self.can.clone(), Implementation::new(self.name, "1"));
        config.protocol_version = self.version.clone();
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.lock().expect("no panic").push(request);
        let answer = self.answers.lock().expect("no panic").pop();
        let result = match answer {
            Some(Value::Null) => return Err(ErrorData::internal_error("no window", None)),
            // The person looks at it until the server withdraws it.
            Some(answer) if answer["answer"] == "look" => {
                context.ct.cancelled().await;
                let _ = self.told.send("the form is closed".to_owned());
                return Err(ErrorData::internal_error("withdrawn", None));
            }
            Some(answer) if answer["action"].is_string() => answer,
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
        let text = match self.model {
            Model::Counts => format!("{} of it", params.max_tokens),
            Model::Says(text) => text.to_owned(),
            Model::Declines => return Err(ErrorData::new(ErrorCode(-1), "rejected", None)),
        };
        self.sampled.lock().expect("no panic").push(params);
        let result = json!({
            "model": "test",
            "role": "assistant",
            "content": { "type": "text", "text": text },
        });
        Ok(serde_json::from_value(result).expect("a result"))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.roots.lock().expect("no panic");
        let roots: Vec<_> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
        let result = json!({ "roots": roots });
        Ok(serde_json::from_value(result).expect("a result"))
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        assert_eq!(notification.method, "notifications/elicitation/complete");
        let params = notification.params.unwrap_or_default();
        let id = params["elicitationId"].as_str().unwrap_or_default();
        let _unheard = self.told.send(format!("done {id}"));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let log = serde_json::to_value(params).expect("JSON");
        let _unheard = self.logs.send(log);
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let message = params.message.unwrap_or_default();
        let told = format!("{} {message}", params.progress);
        // Most tests do not receive from the channel.
        let _unheard = self.told.send(told);
    }
}

/// These capabilities.
pub fn can(capabilities: Value) -> ClientCapabilities {
    serde_json::from_value(capabilities).expect("capabilities")
}

/// A connection to `callgate serve`.
pub struct Session {
    pub client: RunningService<RoleClient, User>,
    pub pid: u32,
    pub user: User,
}

/// Revisions in which servers send requests.
pub const OLDER: [ProtocolVersion; 2] =
    [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25];
/// The revision in which servers answer that a call requires input.
pub const NEWEST: ProtocolVersion = ProtocolVersion::V_2026_07_28;
/// One revision of each era.
pub const ERAS: [ProtocolVersion; 2] = [ProtocolVersion::V_2025_11_25, NEWEST];
/// The refusal of a state that belongs to no run.
pub const NO_RUN: &str = "no run has this requestState: this server did not give it, or its run \
                          ended too long ago; a new call without it does the work of that run \
                          again";

/// A server with a tool that never answers, and a server with calls that need approval.
pub fn hanging_and_asked() -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": {
            "ticketing": demo_ticketing(),
            "odd": odd("hang-on-call"),
        },
        "permissions": { "allow": ["odd_*"] },
        // These clients answer faster than a person.
        "asking": { "ways": ["client", "terminal"] },
    }))
}

/// Starts `callgate serve` with these flags in the folder.
pub async fn connect(bench: &Workbench, user: User, flags: &[&str]) -> Session {
    let command = bench.command(&[&["serve"], flags].concat());
    let transport = TokioChildProcess::new(tokio::process::Command::from(command));
    let transport = transport.expect("start callgate serve");
    let pid = transport.id().expect("it runs");
    let lifecycle = lifecycle(&user);
    let client = user.clone().serve_with_lifecycle(transport, lifecycle);
    let client = client.await.expect("an MCP handshake");
    Session { client, pid, user }
}

impl Session {
    pub async fn tool(&self, name: &str, arguments: Value) -> CallToolResponse {
        let answer = self.client.call_tool_once(call(name, arguments)).await;
        answer.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The tools that the client sees.
    pub async fn tools(&self) -> Vec<Tool> {
        self.client.list_all_tools().await.expect("a list")
    }

    /// Changes the roots of the client, and notifies the server.
    pub async fn change_roots(&self, roots: &[&str]) {
        let roots = roots.iter().map(|uri| (*uri).to_owned()).collect();
        *self.user.roots.lock().expect("no panic") = roots;
        let told = self.client.notify_roots_list_changed().await;
        told.expect("it is told");
    }

    /// Calls a tool; questions go to the client's user.
    pub async fn call(&self, name: &str, arguments: Value) -> CallToolResult {
        let result = self.client.call_tool(call(name, arguments)).await;
        result.expect("an answer")
    }

    /// Calls a tool: true for an error, and the text.
    pub async fn result(&self, name: &str, arguments: Value) -> (bool, String) {
        shown(&self.call(name, arguments).await)
    }

    /// Runs a script; questions go to the client's user.
    pub async fn run(&self, code: &str) -> (bool, String) {
        self.result("run_script", json!({ "code": code })).await
    }

    /// Runs a script until it requires input.
    pub async fn park(&self, code: &str) -> InputRequiredResult {
        match self.client.call_tool_once(request(code)).await {
            Ok(CallToolResponse::InputRequired(required)) => required,
            other => panic!("{other:?}"),
        }
    }

    /// Repeats the call, with this state and these answers.
    async fn again(
        &self,
        code: &str,
        state: &str,
        answers: Value,
    ) -> Result<CallToolResponse, ServiceError> {
        let mut request = request(code);
        request.request_state = Some(state.to_owned());
        request.input_responses = serde_json::from_value(answers).expect("responses");
        self.client.call_tool_once(request).await
    }

    /// Repeats the call, which requires more input.
    pub async fn park_again(&self, code: &str, state: &str, answers: Value) -> InputRequiredResult {
        match self.again(code, state, answers).await {
            Ok(CallToolResponse::InputRequired(required)) => required,
            other => panic!("{other:?}"),
        }
    }

    /// Repeats the call, which ends with the report or an error.
    pub async fn come(&self, code: &str, state: &str, answers: Value) -> Result<String, String> {
        match self.again(code, state, answers).await {
            Ok(CallToolResponse::Complete(result)) => Ok(shown(&result).1),
            Err(ServiceError::McpError(error)) => {
                assert_eq!(error.code.0, -32602, "{error:?}");
                Err(error.message.into_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    /// The elicitation requests to the user, as JSON.
    pub fn asked(&self) -> Vec<Value> {
        let asked = self.user.asked.lock().expect("no panic");
        let as_value = |request| serde_json::to_value(request).expect("JSON");
        asked.iter().map(as_value).collect()
    }

    /// Descriptors of the present workers; each is readable once its worker has ended.
    pub fn workers(&self) -> Vec<AsyncFd<OwnedFd>> {
        let workers = callgate_tests::workers(self.pid).into_iter();
        workers
            .filter_map(|pid| end_of(pid.cast_signed()))
            .collect()
    }
}

/// A call of a tool.
pub fn call(tool: &str, arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().expect("an object").clone();
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
}

/// A call that runs a script.
pub fn request(code: &str) -> CallToolRequestParams {
    call("run_script", json!({ "code": code }))
}

pub fn shown(result: &CallToolResult) -> (bool, String) {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    let text = texts.map(|text| text.text.as_str()).collect();
    (result.is_error.unwrap_or(false), text)
}

/// The returned value in a report: the first line.
pub fn value(report: &str) -> &str {
    report.lines().next().unwrap_or_default()
}

/// A descriptor that can be read once the process has ended.
pub fn end_of(pid: i32) -> Option<AsyncFd<OwnedFd>> {
    // SAFETY: a system call with numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the descriptor is new, and has no other owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the descriptor is owned, so it is open, and the same one, until it is dropped.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok()
}

/// Waits until one of the processes has ended.
pub async fn one_ends(workers: &[AsyncFd<OwnedFd>]) {
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
