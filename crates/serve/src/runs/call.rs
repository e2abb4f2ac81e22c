//! What is done for a request without a script: a call of a server's tool, or a
//! search in which the client's model picks. It has a run's way to its client, for
//! questions, progress and cancelling.

use std::sync::Arc;
use std::time::Duration;

use callgate::{CallRequest, Called, Caller, Gate};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData};
use rmcp::service::{RequestContext, RoleServer};

use super::attend::Attendant;
use super::desk::Desk;
use super::outcome::Outcome;
use super::roots::Folders;
use super::seal::For;
use super::store::Ending;
use super::{Runs, Standing, mistake};

/// How much longer a request waits than what it is for may take.
const LONGER: Duration = Duration::from_secs(60);

/// A call to make.
pub(crate) struct Direct {
    pub(crate) request: CallRequest,
    /// What tells the call from others: the function and its arguments.
    pub(crate) told_by: String,
    /// What the client gets of it.
    pub(crate) answer: Box<dyn FnOnce(Called) -> Result<CallToolResult, ErrorData> + Send>,
}

impl Runs {
    /// Answers a request to call a tool: makes the call, or goes on with a parked
    /// one, until there is something to answer.
    ///
    /// # Errors
    ///
    /// As [`run_script`](Self::run_script).
    pub(crate) async fn call(
        &self,
        gate: Arc<Gate>,
        direct: Direct,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        standing: &Standing,
    ) -> Result<CallToolResponse, ErrorData> {
        let Direct {
            request: call,
            told_by,
            answer,
        } = direct;
        let asks = self.options.asks;
        let work = move |desk: Arc<Desk>| async move {
            let mut call = call.caller(Arc::<Desk>::clone(&desk));
            if asks {
                call = call.asker(desk);
            }
            answer(gate.call_with(call).await)
        };
        self.without_script(For::Call(&told_by), request, context, standing, work)
            .await
    }

    /// Answers a request to look for tools by having the client's model pick
    /// them, or goes on with one whose client was asked. `told_by` are its
    /// arguments.
    ///
    /// # Errors
    ///
    /// As [`run_script`](Self::run_script).
    pub(crate) async fn search<F>(
        &self,
        told_by: &str,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        standing: &Standing,
        search: impl FnOnce(Arc<dyn Caller>) -> F,
    ) -> Result<CallToolResponse, ErrorData>
    where
        F: Future<Output = CallToolResult> + Send + 'static,
    {
        let work = |desk: Arc<Desk>| {
            let searched = search(desk);
            async { Ok(searched.await) }
        };
        self.without_script(For::Search(told_by), request, context, standing, work)
            .await
    }

    /// Does this for a request, or goes on with it, until there is something to
    /// answer. The folders of the client are asked for where a server may want
    /// them.
    pub(super) async fn without_script<F>(
        &self,
        for_it: For<'_>,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        standing: &Standing,
        work: impl FnOnce(Arc<Desk>) -> F,
    ) -> Result<CallToolResponse, ErrorData>
    where
        F: Future<Output = Result<CallToolResult, ErrorData>> + Send + 'static,
    {
        let client = standing.client(context)?;
        // It lasts no longer than a run may.
        let gate = self.gate.clone().await;
        let most = gate.limits().run_time;
        let again = self.again(request, &client, for_it)?;
        let (run, told) = match again {
            Some(run) => {
                let told = run.news.follow();
                (run, told)
            }
            None => {
                let folders = match for_it {
                    For::Call(_) => standing.roots.of(&client, &gate).await,
                    _ => Folders::none(),
                };
                let run = match self.new_run(most) {
                    Ok(run) => run,
                    Err(refused) => return Ok(mistake(refused.to_string())),
                };
                let told = run.news.follow();
                let desk = Desk::new(&client, folders, &run);
                let ending = Ending {
                    run: Arc::clone(&run),
                    store: Arc::clone(&self.store),
                };
                let cancel = run.token();
                let work = work(desk);
                self.tasks.spawn(async move {
                    let outcome = tokio::select! {
                        answer = work => Outcome::of_call(answer),
                        () = cancel.cancelled() => Outcome::cancelled_call(),
                        () = tokio::time::sleep(most) => Outcome::cancelled_call(),
                    };
                    ending.run.end(outcome);
                    drop(ending);
                });
                (run, told)
            }
        };
        // Without tasks there is nothing that would pick up what is left, and searches
        // take no longer than a model.
        let may_be_task = client.tasks && matches!(for_it, For::Call(_));
        let attendant = Attendant {
            client: &client,
            context,
            wait: match may_be_task {
                true => self.options.wait,
                false => most.saturating_add(LONGER),
            },
            carries: true,
            leaves_long: may_be_task,
            told,
        };
        self.carry(&run, for_it, attendant).await
    }
}
