//! The MCP server: lists one tool, and runs scripts with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callgate::{Gate, RunReport, RunRequest, Status};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::carry::{Carried, Carry};
use crate::client::{Client, Way};
use crate::description;
use crate::desk::Desk;
use crate::lot::Lot;
use crate::options::ServeOptions;
use crate::roots::Roots;

const TOOL: &str = "run_script";

/// How long runs have to end when the client is gone.
const ENDING: Duration = Duration::from_secs(5);

/// Answers for `run_script` over one gate. Clones are the same.
#[derive(Clone)]
pub(crate) struct RunScript {
    inner: Arc<Inner>,
}

struct Inner {
    gate: Shared<BoxFuture<'static, Arc<Gate>>>,
    /// Made once: the tools that a client sees do not change in a session.
    tool: OnceCell<Tool>,
    options: ServeOptions,
    lot: Arc<Lot>,
    roots: Roots,
    /// Runs so far.
    count: AtomicU64,
    /// The tasks of the runs, and what ends them all.
    runs: TaskTracker,
    stop: CancellationToken,
}

impl RunScript {
    /// # Errors
    ///
    /// If the system gives no random bytes.
    pub(crate) fn new(
        gate: BoxFuture<'static, Arc<Gate>>,
        options: ServeOptions,
    ) -> std::io::Result<Self> {
        let lot = Arc::new(Lot::new(options.parked_runs, options.answer_time)?);
        let inner = Inner {
            gate: gate.shared(),
            tool: OnceCell::new(),
            options,
            lot,
            roots: Roots::default(),
            count: AtomicU64::new(0),
            runs: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Ends all runs, those that are parked too, and waits a moment for it.
    pub(crate) async fn end(&self) {
        self.inner.lot.clear();
        self.inner.stop.cancel();
        self.inner.runs.close();
        let _late = tokio::time::timeout(ENDING, self.inner.runs.wait()).await;
    }

    async fn tool(&self) -> &Tool {
        self.inner
            .tool
            .get_or_init(|| async { definition(&*self.inner.gate.clone().await) })
            .await
    }

    /// Begins a run, in a task of its own: it may outlive the request.
    async fn begin(&self, code: &str, client: &Client) -> Carried {
        let inner = &self.inner;
        let roots = inner.roots.of(client).await;
        let (desk, drawer) = Desk::new(client, roots, inner.options.answer_time);
        let desk = Arc::new(desk);
        let cancel = inner.stop.child_token();
        let mut request = RunRequest::new(code)
            .cancel_on(cancel.clone())
            .caller(Arc::<Desk>::clone(&desk));
        if inner.options.asks {
            request = request.asker(desk);
        }
        let gate = inner.gate.clone();
        let report = inner
            .runs
            .spawn(async move { gate.await.run(request).await });
        let id = inner.count.fetch_add(1, Ordering::Relaxed);
        Carried::new(id, report, drawer, cancel)
    }

    /// Waits with a run until there is something to answer.
    async fn carry(
        &self,
        mut carried: Carried,
        code: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        loop {
            match carried.carry(context).await {
                Carry::Ended(report) => return Ok(result(&report).into()),
                Carry::Lost => {
                    let message = "the task of the run ended abnormally";
                    return Err(ErrorData::internal_error(message, None));
                }
                Carry::Wants(wishes) => match self.inner.lot.park(carried, wishes, code) {
                    Ok(required) => return Ok(required.into()),
                    Err(again) => carried = *again,
                },
            }
        }
    }
}

impl ServerHandler for RunScript {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(
            Implementation::new("callgate", env!("CARGO_PKG_VERSION")).with_title("Callgate"),
        )
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        self.inner.roots.forget();
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![
            self.tool().await.clone(),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != TOOL {
            return Err(ErrorData::invalid_params(
                format!(
                    "no tool is named {:?}; the only one is {TOOL:?}",
                    request.name
                ),
                None,
            ));
        }
        // Wrong arguments are the model's to mend, so they come back as a
        // result it sees, not as a protocol error that its client swallows
        // (MCP 2025-11-25, server/tools, "Error Handling").
        match code(request.arguments.as_ref()) {
            Ok(code) => {
                let client = Client::of(&context);
                let carried = match request.request_state.as_deref() {
                    None => self.begin(code, &client).await,
                    Some(state) if client.way == Way::Rounds => {
                        let responses = request.input_responses.clone().unwrap_or_default();
                        let fetched = self.inner.lot.fetch(state, code, responses);
                        fetched.map_err(|refused| {
                            ErrorData::invalid_params(refused.to_string(), None)
                        })?
                    }
                    Some(_) => {
                        let message = "a requestState comes with protocol 2026-07-28 or later";
                        return Err(ErrorData::invalid_params(message, None));
                    }
                };
                self.carry(carried, code, &context).await
            }
            Err(message) => Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into()),
        }
    }
}

fn result(report: &RunReport) -> CallToolResult {
    let content = vec![ContentBlock::text(report.to_string())];
    match report.status {
        Status::Completed => CallToolResult::success(content),
        _ => CallToolResult::error(content),
    }
}

fn definition(gate: &Gate) -> Tool {
    Tool::new(TOOL, description::run_script(gate), input_schema())
        .with_title("Run a script")
        .with_annotations(
            // What a script does is up to the tools it calls, so nothing milder
            // can be promised here.
            ToolAnnotations::new()
                .read_only(false)
                .destructive(true)
                .open_world(true),
        )
}

fn code(arguments: Option<&JsonObject>) -> Result<&str, String> {
    let arguments = arguments.ok_or("run_script needs an argument \"code\": the script's text")?;
    if let Some(unknown) = arguments.keys().find(|key| *key != "code") {
        return Err(format!(
            "run_script has no argument {unknown:?}; it takes \"code\" alone"
        ));
    }
    match arguments.get("code") {
        Some(Value::String(code)) => Ok(code),
        Some(_) => Err("\"code\" must be a string: the script's text".to_owned()),
        None => Err("run_script needs an argument \"code\": the script's text".to_owned()),
    }
}

fn input_schema() -> Arc<JsonObject> {
    let schema = json!({
        "type": "object",
        "properties": {
            "code": { "type": "string", "description": "the TypeScript script" }
        },
        "required": ["code"],
        "additionalProperties": false
    });
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
