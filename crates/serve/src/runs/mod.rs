//! The runs of one user: started, detached from their request, parked with a question, waited
//! for, and kept for a while after their end.

mod answerer;
mod answers;
mod arguments;
mod asker;
mod caller;
mod client;
mod limits;
mod outcome;
mod outside;
mod pages;
mod pending;
mod progress;
mod question;
pub(crate) mod resources;
mod resume;
mod roots;
mod served_run;
mod shown;
mod store;
mod tasks;
mod wait;

pub(crate) use answerer::Answerer;
pub(crate) use arguments::{cancel_schema, report_schema, run_script_schema, wait_schema};
pub(crate) use asker::ClientAsker;
pub use caller::AnyClient;
pub(crate) use client::{Client, OneMessage, log_level};
pub(crate) use outside::Outside;
pub use outside::Records;
pub(crate) use resume::Purpose;
pub(crate) use roots::{PendingGate, Roots};
pub(crate) use store::NoRun;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use callgate::faces::{Caller, NoAsker, NoCaller};
use callgate::{Gate, RunReport, RunRequest};
use futures::FutureExt as _;
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, ErrorData,
    InputRequiredResult, JsonObject,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use answers::{mistake, part_of, still_running};
use arguments::{ScriptArguments, WaitArguments, wait_time};
use outcome::Outcome;
use resume::{NO_RUN, UNDECLARED, other_request};
use roots::Folders;
use served_run::ServedRun;
use store::{KEPT_OUTPUT, KEPT_TIME, MAX_PARKED, Store};
use wait::{WaitEnd, Waiter};

use crate::config::ServeConfig;
use crate::message::SESSION_HEADER;

/// The time for runs to end when the service ends.
const END_TIME: Duration = Duration::from_secs(5);
/// The time that a request waits beyond the limit of its call or search.
const EXTRA_TIME: Duration = Duration::from_secs(60);

/// The warning of a report if the configuration has changed.
const CHANGED: &str = "the configuration has changed since this server started, and the change has \
                       no effect yet: tell the user to restart this server";

/// A `tools/call` of a client.
#[derive(Clone, Copy)]
pub(crate) struct ToolRequest<'a> {
    pub(crate) params: &'a CallToolRequestParams,
    pub(crate) context: &'a RequestContext<RoleServer>,
    pub(crate) client: &'a Client,
    pub(crate) roots: &'a Roots,
}

/// The runs of one user over one gate.
pub(crate) struct Runs {
    options: ServeConfig,
    pub(crate) outside: Outside,
    store: Arc<Store>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Runs {
    pub(crate) fn new(options: ServeConfig, outside: Outside) -> Self {
        Self {
            store: Arc::default(),
            options,
            outside,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Answers a call of `run_script`: starts a run, or resumes a parked one.
    pub(crate) async fn run_script(
        &self,
        gate: Arc<Gate>,
        call: ToolRequest<'_>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = match ScriptArguments::read(call.params.arguments.as_ref(), &gate) {
            Ok(given) => given,
            Err(wrong) => return Ok(mistake(wrong)),
        };
        let purpose = Purpose::new(Purpose::SCRIPT, &given.code);
        let wait = wait_time(given.limits.wait_ms, self.options.wait);
        let max_time = given.limits.tighten(gate.limits()).run_time;
        let begin = |run: &Arc<ServedRun>, asker| {
            self.begin(Arc::clone(&gate), run, given, Some(asker));
        };
        self.serve(&gate, call, purpose, Some(wait), max_time, begin)
            .await
    }

    /// Starts or resumes a call or a search without a script. Like a script, it can ask the client,
    /// report progress and be cancelled.
    pub(crate) async fn without_script<F>(
        &self,
        gate: &Gate,
        call: ToolRequest<'_>,
        purpose: Purpose,
        work: impl FnOnce(Arc<ClientAsker>) -> F,
    ) -> Result<CallToolResponse, ErrorData>
    where
        F: Future<Output = Result<CallToolResult, ErrorData>> + Send + 'static,
    {
        let (max_time, limit) = (gate.limits().run_time, gate.limits().output_bytes);
        let is_call = purpose.noun == Purpose::CALL;
        let begin = |run: &Arc<ServedRun>, asker| {
            let (work, cancel, id) = (work(asker), run.cancel.clone(), run.id.clone());
            // Over HTTP, the memory for the arguments is held with the request's parts.
            let held = call.context.extensions.get::<Parts>().cloned();
            self.spawn(run, async move {
                let _held = held;
                let outcome = tokio::select! {
                    answer = work => if is_call {
                        Outcome::of_long_call(answer, &id, limit)
                    } else {
                        Outcome::of_call(answer)
                    },
                    () = cancel.cancelled() => Outcome::cancelled_call(),
                    () = tokio::time::sleep(max_time) => Outcome::cancelled_call(),
                };
                (outcome, ())
            });
        };
        self.serve(gate, call, purpose, None, max_time, begin).await
    }

    /// Resumes the run that a request names, or starts a run, and waits for it. Without `wait` this
    /// takes up to the run's time limit, unless the client gets a task.
    async fn serve(
        &self,
        gate: &Gate,
        call: ToolRequest<'_>,
        purpose: Purpose,
        wait: Option<Duration>,
        max_time: Duration,
        begin: impl FnOnce(&Arc<ServedRun>, Arc<ClientAsker>),
    ) -> Result<CallToolResponse, ErrorData> {
        let client = call.client;
        // A call without a script can be detached as a task only: `wait` is for scripts.
        let detaches_long = client.tasks && purpose.noun == Purpose::CALL;
        let wait = match wait {
            Some(wait) => wait,
            None if detaches_long => self.options.wait,
            None => max_time.saturating_add(EXTRA_TIME),
        };
        let (run, asker) = match self.resume(call.params, client, purpose)? {
            Some(run) => (run, None),
            None => {
                // A search needs no folders.
                let folders = match purpose.noun {
                    Purpose::SEARCH => Folders::none(),
                    _ => call.roots.get(client, gate).await,
                };
                let run = match self.new_run(purpose, max_time, session(call)) {
                    Ok(run) => run,
                    Err(refused) => return Ok(mistake(refused.to_string())),
                };
                let asker = ClientAsker::new(client, folders, &run);
                (run, Some(asker))
            }
        };
        let mut waiter = Waiter::new(call.client, call.context, &run, wait);
        waiter.detaches_long = detaches_long;
        if let Some(asker) = asker {
            begin(&run, asker);
        }
        self.wait_and_answer(&run, waiter).await
    }

    /// Answers a call of `wait`, or with `cancels` of `cancel_run`: waits for a detached run, which
    /// `cancel_run` ends.
    pub(crate) async fn wait(
        &self,
        call: ToolRequest<'_>,
        cancels: bool,
    ) -> Result<CallToolResponse, ErrorData> {
        let request = call.params;
        let given = match WaitArguments::read(request.arguments.as_ref(), cancels) {
            Ok(given) => given,
            Err(wrong) => return Ok(mistake(wrong)),
        };
        let is_other = |state: &String| resume::read(state).is_none_or(|(run, _)| run != given.run);
        if request.request_state.as_ref().is_some_and(is_other) {
            return Err(invalid(other_request("this run")));
        }
        let Some(run) = self.store.get(&given.run) else {
            return Ok(mistake(format!(
                "there is no run {}: the id is wrong, run_script returned its result, or \
                 it ended more than {} s ago",
                crate::arguments::quoted(&given.run),
                KEPT_TIME.as_secs()
            )));
        };
        if request.request_state.is_some() {
            Self::take_answers(&run, request, call.client)?;
        }
        if cancels {
            run.cancel.cancel();
        }
        if given.part().is_some() && !run.has_ended() {
            return Ok(still_running(&run, true));
        }
        let wait = wait_time(given.wait_ms, self.options.wait);
        let mut waiter = Waiter::new(call.client, call.context, &run, wait);
        waiter.owns_run = false;
        let response = self.wait_and_answer(&run, waiter).await?;
        match (given.part(), run.outcome()) {
            (Some(part), Some(outcome)) => Ok(part_of(&outcome, part)),
            _ => Ok(response),
        }
    }

    /// Runs a script to its end, without questions. Dropping the future cancels the run.
    pub(crate) async fn report(
        &self,
        gate: Arc<Gate>,
        arguments: &JsonObject,
    ) -> Result<RunReport, NoRun> {
        let given = ScriptArguments::read_for_report(arguments, &gate).map_err(NoRun::Wrong)?;
        let limits = given.limits.tighten(gate.limits());
        let purpose = Purpose::new(Purpose::SCRIPT, &given.code);
        let run = self.new_run(purpose, limits.run_time, None)?;
        let _cancel_on_drop = run.cancel.clone().drop_guard();
        let running = self.begin(gate, &run, given, None);
        running.await.map_err(|_lost| NoRun::Lost)
    }

    /// True if a run has not ended, parked ones included.
    pub(crate) fn has_running(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// True if a run has not ended or is kept.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_running() || !self.store.is_empty()
    }

    /// Cancels the runs of a session that its client has ended.
    pub(crate) fn end_session(&self, session: &str) {
        self.store.cancel_session(session);
    }

    /// Cancels all runs, and waits for their ends.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(END_TIME, self.tasks.wait()).await;
        self.store.clear();
    }

    /// Takes the answers of a client that repeats its request, and returns the run. The run may have
    /// ended, or wait for a further answer.
    fn resume(
        &self,
        request: &CallToolRequestParams,
        client: &Client,
        purpose: Purpose,
    ) -> Result<Option<Arc<ServedRun>>, ErrorData> {
        let Some(state) = request.request_state.as_deref() else {
            return Ok(None);
        };
        let (run, round) = resume::read(state).ok_or_else(|| invalid(NO_RUN))?;
        let run = self
            .store
            .get(run)
            .filter(|run| round <= *run.pending.subscribe().borrow());
        let run = run.ok_or_else(|| invalid(NO_RUN))?;
        if run.purpose != purpose {
            return Err(invalid(other_request(purpose.noun)));
        }
        Self::take_answers(&run, request, client)?;
        Ok(Some(run))
    }

    fn take_answers(
        run: &ServedRun,
        request: &CallToolRequestParams,
        client: &Client,
    ) -> Result<(), ErrorData> {
        if !client.is_stateless {
            let message = "requestState needs protocol 2026-07-28 or later";
            return Err(ErrorData::invalid_params(message, None));
        }
        if run.pending.has_unsent() && !run.pending.can_be_answered(client.capabilities) {
            return Err(invalid(UNDECLARED));
        }
        let responses = request.input_responses.clone();
        run.pending.answer_all(responses.unwrap_or_default());
        Ok(())
    }

    fn new_run(
        &self,
        purpose: Purpose,
        max_time: Duration,
        session: Option<String>,
    ) -> Result<Arc<ServedRun>, NoRun> {
        let cancel = self.stop.child_token();
        let mut run = ServedRun::new(purpose, self.options.answer_time, max_time, cancel);
        run.session = session;
        let run = Arc::new(run);
        self.store.begin(&run)?;
        Ok(run)
    }

    /// Starts a run in its own task, because it may outlive the request. Without a client it cannot
    /// ask.
    fn begin(
        &self,
        gate: Arc<Gate>,
        run: &Arc<ServedRun>,
        mut given: ScriptArguments,
        client: Option<Arc<ClientAsker>>,
    ) -> JoinHandle<RunReport> {
        let replaces_text = client.as_ref().is_some_and(|client| client.replaces_text);
        if let Some(bytes) = client.as_ref().and_then(|client| client.max_output) {
            given.limits.output_bytes.get_or_insert(bytes);
        }
        let mut limits = given.limits.tighten(gate.limits());
        if client.is_some() {
            limits.whole_bytes = KEPT_OUTPUT;
            // Messages must not be cut when they are printed: the whole output has them.
            limits.message_bytes = limits.message_bytes.max(limits.whole_bytes);
        }
        let name = client.as_ref().and_then(|client| client.name.clone());
        let asker = self.outside.asker(run, client.as_ref());
        let asker = asker.unwrap_or_else(|| Arc::new(NoAsker));
        let caller: Arc<dyn Caller> = match client {
            Some(client) => client,
            None => Arc::new(NoCaller),
        };
        let progress = Arc::clone(run);
        let mut request = RunRequest::new(given.code)
            .id(run.id.as_str())
            .client(name)
            .limits(limits)
            .cancel_on(run.cancel.clone())
            .caller(caller)
            .on_event(move |event| progress.progress.count(event));
        if let Some(servers) = given.servers {
            request = request.servers(servers);
        }
        if self.options.asks {
            request = request.asker(asker);
        }
        let id = run.id.clone();
        let file = self.options.file.clone();
        let is_structured = self.options.structured_report && !replaces_text;
        self.spawn(run, async move {
            let mut report = gate.run(request).await;
            if file.is_some_and(|file| file.has_changed()) {
                report.warn(CHANGED);
            }
            (Outcome::of_script(&report, &id, is_structured), report)
        })
    }

    /// Does the work of a run in a task. The run ends with the task, normally or not.
    fn spawn<T: Send + 'static>(
        &self,
        run: &Arc<ServedRun>,
        work: impl Future<Output = (Outcome, T)> + Send + 'static,
    ) -> JoinHandle<T> {
        let (run, store) = (Arc::clone(run), Arc::clone(&self.store));
        self.tasks.spawn(async move {
            match AssertUnwindSafe(work).catch_unwind().await {
                Ok((outcome, made)) => {
                    store.end(&run, outcome);
                    made
                }
                Err(panic) => {
                    store.end(&run, Outcome::lost());
                    resume_unwind(panic)
                }
            }
        })
    }

    /// Waits for a run until there is something to answer.
    async fn wait_and_answer(
        &self,
        run: &Arc<ServedRun>,
        mut waiter: Waiter<'_>,
    ) -> Result<CallToolResponse, ErrorData> {
        loop {
            match waiter.wait(run).await {
                WaitEnd::Ended(outcome) => return outcome.answer.clone().map(Into::into),
                WaitEnd::TimeOver => {
                    if let Some(outcome) = run.detach() {
                        return outcome.answer.clone().map(Into::into);
                    }
                    if waiter.owns_run && waiter.client.tasks {
                        return Ok(CreateTaskResult::new(self.task(run)).into());
                    }
                    return Ok(still_running(run, false));
                }
                WaitEnd::Questions(questions) => {
                    // This run already counts as parked.
                    if self.store.parked() > MAX_PARKED {
                        run.pending.refuse(waiter.client.capabilities);
                    } else if run.ask_again() {
                        let state = Some(resume::state(&run.id, *run.pending.subscribe().borrow()));
                        return Ok(InputRequiredResult::new(Some(questions), state).into());
                    }
                }
            }
        }
    }
}

/// The MCP session over HTTP in which a request came.
fn session(call: ToolRequest<'_>) -> Option<String> {
    if call.client.is_stateless {
        return None;
    }
    let parts = call.context.extensions.get::<Parts>()?;
    let session = parts.headers.get(SESSION_HEADER)?;
    session.to_str().ok().map(str::to_owned)
}

fn invalid(message: impl Into<Cow<'static, str>>) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

#[cfg(test)]
mod tests;
