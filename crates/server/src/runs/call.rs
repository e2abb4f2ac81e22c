//! A call of a server's tool that no script makes: it has a run's way to its
//! client, for questions, progress and cancelling.

use std::sync::Arc;
use std::time::Duration;

use callgate::{CallRequest, Called, Gate};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData};
use rmcp::service::{RequestContext, RoleServer};

use super::attend::Attendant;
use super::client::Client;
use super::desk::Desk;
use super::outcome::Outcome;
use super::seal::For;
use super::{Ending, Roots, Runs, mistake};

/// How much longer a request waits than its call may take.
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
        roots: &Roots,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = Client::of(context);
        let most = gate.limits().run_time;
        let told_by = direct.told_by.clone();
        let for_it = For::Call(&told_by);
        let again = self.again(request, &client, for_it)?;
        let (run, lines) = match again {
            Some(run) => {
                let lines = run.news.follow();
                (run, lines)
            }
            None => {
                let roots = roots.of(&client).await;
                let run = match self.new_run(most) {
                    Ok(run) => run,
                    Err(refused) => return Ok(mistake(refused)),
                };
                let lines = run.news.follow();
                let desk = Arc::new(Desk {
                    can: client.can,
                    roots,
                    run: Arc::clone(&run),
                });
                let mut call = direct.request.caller(Arc::<Desk>::clone(&desk));
                if self.options.asks {
                    call = call.asker(desk);
                }
                let ending = Ending {
                    run: Arc::clone(&run),
                    store: Arc::clone(&self.store),
                };
                let cancel = run.token();
                let answer = direct.answer;
                self.tasks.spawn(async move {
                    let outcome = tokio::select! {
                        called = gate.call_with(call) => Outcome::of_call(answer(called)),
                        () = cancel.cancelled() => Outcome::cancelled_call(),
                        () = tokio::time::sleep(most) => Outcome::cancelled_call(),
                    };
                    ending.run.end(outcome);
                    drop(ending);
                });
                (run, lines)
            }
        };
        let attendant = Attendant {
            client: &client,
            context,
            // A call is not left: there is nothing that would pick it up.
            wait: most.saturating_add(LONGER),
            carries: true,
            lines,
        };
        self.carry(&run, for_it, attendant).await
    }
}
