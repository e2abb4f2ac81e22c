//! Calls and searches without a script. Like a run, they can ask the client, tell it their
//! progress and be cancelled.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData};
use rmcp::service::{RequestContext, RoleServer};

use super::asker::ClientAsker;
use super::client_settings::ClientSettings;
use super::outcome::Outcome;
use super::resume::Purpose;
use super::roots::Folders;
use super::store::EndGuard;
use super::wait::Waiter;
use super::{Runs, mistake};

/// The time that a request waits longer than its call or search may take.
const EXTRA_TIME: Duration = Duration::from_secs(60);

impl Runs {
    /// Does the work for a request, or goes on with it, until there is something to answer.
    pub(crate) async fn without_script<F>(
        &self,
        purpose: Purpose,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        settings: &ClientSettings,
        work: impl FnOnce(Arc<ClientAsker>) -> F,
    ) -> Result<CallToolResponse, ErrorData>
    where
        F: Future<Output = Result<CallToolResult, ErrorData>> + Send + 'static,
    {
        let client = settings.client(context)?;
        let gate = self.gate.clone().await;
        let max_time = gate.limits().run_time;
        let is_call = purpose.noun == Purpose::CALL;
        // Only a task can be left: nothing else would fetch the answer.
        let may_be_task = client.tasks && is_call;
        let wait = if may_be_task {
            self.options.wait
        } else {
            max_time.saturating_add(EXTRA_TIME)
        };
        if let Some(run) = self.resume(request, &client, purpose)? {
            let mut waiter = Waiter::new(&client, context, &run, wait);
            waiter.leaves_long = may_be_task;
            return self.wait_and_answer(&run, waiter).await;
        }
        // A search needs no folders.
        let folders = if is_call {
            settings.roots.get(&client, &gate).await
        } else {
            Folders::none()
        };
        let run = match self.new_run(purpose, max_time) {
            Ok(run) => run,
            Err(refused) => return Ok(mistake(refused.to_string())),
        };
        let mut waiter = Waiter::new(&client, context, &run, wait);
        waiter.leaves_long = may_be_task;
        let guard = EndGuard {
            run: Arc::clone(&run),
            store: Arc::clone(&self.store),
        };
        let work = work(ClientAsker::new(&client, folders, &run));
        let cancel = run.cancel.clone();
        self.tasks.spawn(async move {
            let outcome = tokio::select! {
                answer = work => Outcome::of_call(answer),
                () = cancel.cancelled() => Outcome::cancelled_call(),
                () = tokio::time::sleep(max_time) => Outcome::cancelled_call(),
            };
            guard.run.end(outcome);
            drop(guard);
        });
        self.wait_and_answer(&run, waiter).await
    }
}
