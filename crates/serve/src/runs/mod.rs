//! The runs of one user: begun, left, parked with a question, waited for, and
//! kept for a while when they have ended.

mod arguments;
mod attend;
mod board;
mod call;
mod caller;
mod client;
mod desk;
mod news;
mod outcome;
mod pages;
mod plain;
mod question;
mod resources;
mod roots;
mod run;
mod seal;
mod standing;
mod store;
mod tasks;

pub(crate) use call::Direct;
pub use caller::{AnyClient, OneClient};
pub(crate) use client::has_model;
pub(crate) use plain::NoReport;
pub(crate) use roots::Roots;
pub(crate) use run::NoRun;
pub(crate) use standing::{Standing, level_of};

use std::sync::Arc;
use std::time::Duration;

use callgate::{Gate, Limits, RunRequest};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    InputRequiredResult, JsonObject, ReadResourceRequestParams, ReadResourceResult, Resource,
    ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::options::ServeOptions;
use crate::service::ComingGate;

use arguments::{ScriptArguments, WaitArguments};
use attend::{Attendant, Until};
use board::Untaken;
use client::{Client, Way};
use desk::Desk;
use outcome::Outcome;
use roots::Folders;
use run::Run;
use seal::{For, Refused, Seal, Ticket};
use store::{Ending, Keep, Store};

/// How long runs have to end when there is nobody any more.
const ENDING: Duration = Duration::from_secs(5);

/// The runs of one user over one gate.
pub(crate) struct Runs {
    gate: ComingGate,
    options: ServeOptions,
    store: Arc<Store>,
    seal: Seal,
    /// The tasks of the runs, and what ends them all.
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Runs {
    /// # Errors
    ///
    /// If the system gives no random bytes.
    pub(crate) fn new(gate: ComingGate, options: ServeOptions) -> std::io::Result<Self> {
        let keep = Keep {
            time: options.kept_time,
            runs: options.kept_runs,
            bytes: options.kept_bytes,
        };
        Ok(Self {
            gate,
            store: Arc::new(Store::new(options.runs, keep)),
            seal: Seal::new()?,
            options,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// The input schema of `run_script`, where these are the limits.
    pub(crate) fn run_script_schema(limits: &Limits) -> Arc<JsonObject> {
        arguments::run_script_schema(limits)
    }

    /// The input schema of `wait`.
    pub(crate) fn wait_schema() -> Arc<JsonObject> {
        arguments::wait_schema()
    }

    /// What `wait` is for.
    pub(crate) fn wait_description() -> &'static str {
        "Wait for a run that run_script left to go on, and get its result; cancel it; or read the \
         whole output of one that has ended, in parts."
    }

    /// Answers a call of `run_script`: begins a run, or goes on with a parked
    /// one, until there is something to answer. `standing` is what the client's
    /// session has said.
    ///
    /// # Errors
    ///
    /// What is wrong with the protocol: a `requestState` that is not good. Wrong
    /// arguments are a result.
    pub(crate) async fn run_script(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        standing: &Standing,
    ) -> Result<CallToolResponse, ErrorData> {
        let gate = tokio::select! {
            gate = self.gate.clone() => gate,
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the request was cancelled", None));
            }
        };
        // Wrong arguments are the model's to mend, so they come back as a
        // result it sees, not as a protocol error that its client swallows
        // (MCP 2025-11-25, server/tools, "Error Handling").
        let given = match arguments::run_script(request.arguments.as_ref(), &gate) {
            Ok(given) => given,
            Err(wrong) => return Ok(mistake(wrong.to_string())),
        };
        let client = standing.client(context)?;
        let (wait, code) = (given.wait, given.code);
        let for_it = For::Script(code);
        let again = self.again(request, &client, for_it)?;
        let (run, told) = match again {
            Some(run) => {
                let told = run.news.follow();
                (run, told)
            }
            None => {
                let folders = standing.roots.of(&client, &gate).await;
                let run = match self.new_run(given.limits.run_time) {
                    Ok(run) => run,
                    Err(refused) => return Ok(mistake(refused.to_string())),
                };
                let told = run.news.follow();
                self.begin(gate, &run, given, &client, folders);
                (run, told)
            }
        };
        let attendant = Attendant {
            client: &client,
            context,
            wait: wait.unwrap_or(self.options.wait),
            carries: true,
            leaves_long: false,
            told,
        };
        self.carry(&run, for_it, attendant).await
    }

    /// Whether a run goes on, be it parked.
    pub(crate) fn go_on(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Whether a run goes on, or can still be asked for.
    pub(crate) fn is_busy(&self) -> bool {
        self.go_on() || !self.store.is_empty()
    }

    /// Answers a call of `wait`: waits for a run that was left, until there is
    /// something to answer.
    ///
    /// # Errors
    ///
    /// As [`run_script`](Self::run_script).
    pub(crate) async fn wait(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        standing: &Standing,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = match arguments::wait(request.arguments.as_ref()) {
            Ok(given) => given,
            Err(wrong) => return Ok(mistake(wrong.to_string())),
        };
        let client = standing.client(context)?;
        let for_it = For::Wait(given.run);
        let run = match self.again(request, &client, for_it)? {
            Some(run) => run,
            None => match self.store.get(given.run) {
                Some(run) => run,
                None => return Ok(mistake(self.no_run(given.run))),
            },
        };
        if given.cancel {
            run.cancel();
        }
        let attendant = Attendant {
            client: &client,
            context,
            wait: given.wait.unwrap_or(self.options.wait),
            carries: false,
            leaves_long: false,
            told: run.news.follow(),
        };
        let response = self.carry(&run, for_it, attendant).await?;
        match (given.part, run.outcome()) {
            (Some(_), Some(outcome)) => Ok(part(&given, &outcome)),
            _ => Ok(response),
        }
    }

    /// The whole outputs there are.
    pub(crate) fn list_resources(&self) -> Vec<Resource> {
        resources::list(&self.store)
    }

    /// The form of their addresses.
    pub(crate) fn resource_templates() -> Vec<ResourceTemplate> {
        resources::templates()
    }

    /// The whole output of a run, or a part of it.
    ///
    /// # Errors
    ///
    /// That there is none at this address.
    pub(crate) fn read_resource(
        &self,
        request: &ReadResourceRequestParams,
    ) -> Result<ReadResourceResult, ErrorData> {
        resources::read(&self.store, &request.uri)
    }

    /// Ends all runs, and waits a moment for it.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _late = tokio::time::timeout(ENDING, self.tasks.wait()).await;
        self.store.clear();
    }

    /// Sends a client away that comes again with what takes no state.
    ///
    /// # Errors
    ///
    /// If the request has a state.
    pub(crate) fn expect_no_state(request: &CallToolRequestParams) -> Result<(), ErrorData> {
        match &request.request_state {
            None => Ok(()),
            Some(_) => {
                let refused = Refused::Forged("this call");
                Err(ErrorData::invalid_params(refused.to_string(), None))
            }
        }
    }

    /// The run that a client comes for again, with the answers handed over. It may
    /// have ended meanwhile, or want something else.
    fn again(
        &self,
        request: &CallToolRequestParams,
        client: &Client,
        for_it: For<'_>,
    ) -> Result<Option<Arc<Run>>, ErrorData> {
        let Some(state) = request.request_state.as_deref() else {
            return Ok(None);
        };
        if client.way != Way::Rounds {
            let message = "a requestState comes with protocol 2026-07-28 or later";
            return Err(ErrorData::invalid_params(message, None));
        }
        let fetch = || {
            let ticket = self.seal.open(state, for_it)?;
            let run = self.store.get(&ticket.run).ok_or(Refused::Used)?;
            let responses = request.input_responses.clone().unwrap_or_default();
            run.board
                .answer_given(&ticket.wishes, client.can, responses)
                .map_err(|untaken| match untaken {
                    Untaken::Used => Refused::Used,
                    Untaken::Unannounced => Refused::Unannounced,
                })?;
            Ok(run)
        };
        fetch()
            .map(Some)
            .map_err(|refused: Refused| ErrorData::invalid_params(refused.to_string(), None))
    }

    fn new_run(&self, run_time: Duration) -> Result<Arc<Run>, NoRun> {
        let cancel = self.stop.child_token();
        let run = Run::new(self.options.answer_time, run_time, cancel);
        let run = Arc::new(run.map_err(|error| {
            // What the system says is for whoever runs this.
            tracing::error!(%error, "a run cannot begin: no random bytes can be had");
            NoRun::Failed
        })?);
        self.store.begin(&run)?;
        Ok(run)
    }

    /// Begins a run, in a task of its own: it may outlive the request.
    fn begin(
        &self,
        gate: Arc<Gate>,
        run: &Arc<Run>,
        given: ScriptArguments<'_>,
        client: &Client,
        folders: Folders,
    ) {
        let desk = Desk::new(client, folders, run);
        let watched = Arc::clone(run);
        let mut limits = given.limits;
        limits.whole_bytes = self.options.whole_output;
        // A message that is cut where it is printed is whole nowhere.
        limits.message_bytes = limits.message_bytes.max(limits.whole_bytes);
        let mut request = RunRequest::new(given.code)
            .limits(limits)
            .cancel_on(run.token())
            .caller(Arc::<Desk>::clone(&desk))
            .on_event(move |event| watched.news.note(event));
        if let Some(servers) = given.servers {
            request = request.servers(servers);
        }
        if self.options.asks {
            request = request.asker(desk);
        }
        let ending = Ending {
            run: Arc::clone(run),
            store: Arc::clone(&self.store),
        };
        self.tasks.spawn(async move {
            let report = gate.run(request).await;
            ending.run.end(Outcome::of(&report, &ending.run.id));
            drop(ending);
        });
    }

    /// Waits with a run until there is something to answer.
    async fn carry(
        &self,
        run: &Arc<Run>,
        for_it: For<'_>,
        mut attendant: Attendant<'_>,
    ) -> Result<CallToolResponse, ErrorData> {
        loop {
            match attendant.attend(run).await {
                Until::Ended(outcome) => return outcome.answer().map(Into::into),
                Until::Waited => {
                    return match run.leave() {
                        Some(outcome) => outcome.answer().map(Into::into),
                        None if attendant.carries && attendant.client.tasks => {
                            Ok(self.new_task(run).into())
                        }
                        None => Ok(goes_on(run)),
                    };
                }
                Until::Wants(wishes, requests) => {
                    let ticket = Ticket {
                        run: run.id.clone(),
                        wishes,
                    };
                    // It is parked itself by now.
                    let has_room = self.store.parked() <= self.options.parked_runs;
                    let lasts = self.lasts(run);
                    let state = self.seal.close(&ticket, for_it, lasts);
                    match state.filter(|_| has_room) {
                        None => run.board.refuse(attendant.client.can),
                        // Else there is something else to answer by now.
                        Some(state) if run.give(&ticket.wishes) => {
                            return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
                        }
                        Some(_) => {}
                    }
                }
            }
        }
    }

    /// How long a run can be asked for, from its beginning.
    fn lasts(&self, run: &Run) -> Duration {
        run.most_time.saturating_add(self.options.kept_time)
    }

    fn no_run(&self, id: &str) -> String {
        let shown: String = id.chars().take(80).collect();
        format!(
            "there is no run {shown:?} to wait for: it never was, it ended with its first answer, \
             or it ended more than {} s ago",
            self.options.kept_time.as_secs()
        )
    }
}

/// The answer while a run goes on.
fn goes_on(run: &Run) -> CallToolResponse {
    let text = format!(
        "The script goes on as run {:?}, for {} s so far ({}).\n\
         Call the tool wait with {{ \"run\": {:?} }} for its result; add \"cancel\": true to end it.\n",
        run.id,
        run.age().as_secs(),
        run.news.so_far(),
        run.id,
    );
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// The part of an output that `wait` is asked for.
fn part(given: &WaitArguments<'_>, outcome: &Outcome) -> CallToolResponse {
    let (Some(whole), Some(part)) = (&outcome.whole, given.part) else {
        return mistake(
            "the output of this run was not cut: all of it is in its result, which wait gives \
             without \"offset\" and \"bytes\""
                .to_owned(),
        );
    };
    match resources::part(whole, part) {
        Some((text, said)) => {
            let content = vec![ContentBlock::text(text), ContentBlock::text(said)];
            CallToolResult::success(content).into()
        }
        None => mistake(format!(
            "the output has {} bytes, and no offset {}",
            whole.len(),
            part.offset
        )),
    }
}

/// What is wrong with a call, for the model to see.
fn mistake(message: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(message)]).into()
}

#[cfg(test)]
mod tests;
