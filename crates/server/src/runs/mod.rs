//! The runs of one user: begun, parked with a question, carried to their
//! report.

mod arguments;
mod caller;
mod carry;
mod client;
mod desk;
mod lot;
mod question;
mod roots;

pub use caller::AnyClient;
pub(crate) use roots::Roots;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callgate::{RunReport, RunRequest, Status};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::options::ServeOptions;
use crate::service::ComingGate;

use carry::{Carried, Carry};
use client::{Client, Way};
use desk::Desk;
use lot::Lot;

/// How long runs have to end when there is nobody any more.
const ENDING: Duration = Duration::from_secs(5);

/// The runs of one user over one gate.
pub(crate) struct Runs {
    gate: ComingGate,
    options: ServeOptions,
    lot: Arc<Lot>,
    /// Runs so far.
    count: AtomicU64,
    /// The tasks of the runs, and what ends them all.
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Runs {
    /// # Errors
    ///
    /// If the system gives no random bytes.
    pub(crate) fn new(gate: ComingGate, options: ServeOptions) -> std::io::Result<Self> {
        let lot = Arc::new(Lot::new(options.parked_runs, options.answer_time)?);
        Ok(Self {
            gate,
            options,
            lot,
            count: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// The input schema of `run_script`.
    pub(crate) fn run_script_schema() -> Arc<JsonObject> {
        arguments::run_script_schema()
    }

    /// Answers a call of `run_script`: begins a run, or goes on with a parked
    /// one, until there is something to answer. `roots` are the folders of the
    /// client's session.
    ///
    /// # Errors
    ///
    /// What is wrong with the protocol: a `requestState` that is not good. Wrong
    /// arguments are a result.
    pub(crate) async fn run_script(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        roots: &Roots,
    ) -> Result<CallToolResponse, ErrorData> {
        // Wrong arguments are the model's to mend, so they come back as a
        // result it sees, not as a protocol error that its client swallows
        // (MCP 2025-11-25, server/tools, "Error Handling").
        let code = match arguments::code(request.arguments.as_ref()) {
            Ok(code) => code,
            Err(message) => {
                return Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into());
            }
        };
        let client = Client::of(context);
        let carried = match request.request_state.as_deref() {
            None => self.begin(code, &client, roots).await,
            Some(state) if client.way == Way::Rounds => {
                let responses = request.input_responses.clone().unwrap_or_default();
                let fetched = self.lot.fetch(state, code, responses);
                fetched.map_err(|refused| ErrorData::invalid_params(refused.to_string(), None))?
            }
            Some(_) => {
                let message = "a requestState comes with protocol 2026-07-28 or later";
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        self.carry(carried, code, context).await
    }

    /// Whether a run goes on, be it parked.
    pub(crate) fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Ends all runs, those that are parked too, and waits a moment for it.
    pub(crate) async fn end(&self) {
        self.lot.clear();
        self.stop.cancel();
        self.tasks.close();
        let _late = tokio::time::timeout(ENDING, self.tasks.wait()).await;
    }

    /// Begins a run, in a task of its own: it may outlive the request.
    async fn begin(&self, code: &str, client: &Client, roots: &Roots) -> Carried {
        let roots = roots.of(client).await;
        let (desk, drawer) = Desk::new(client, roots, self.options.answer_time);
        let desk = Arc::new(desk);
        let cancel = self.stop.child_token();
        let mut request = RunRequest::new(code)
            .cancel_on(cancel.clone())
            .caller(Arc::<Desk>::clone(&desk));
        if self.options.asks {
            request = request.asker(desk);
        }
        let gate = self.gate.clone();
        let report = self
            .tasks
            .spawn(async move { gate.await.run(request).await });
        let id = self.count.fetch_add(1, Ordering::Relaxed);
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
                Carry::Wants(wishes) => match self.lot.park(carried, wishes, code) {
                    Ok(required) => return Ok(required.into()),
                    Err(again) => carried = *again,
                },
            }
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
