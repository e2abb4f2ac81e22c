//! A run whose client waits for the report, and can do nothing else for it.

use std::sync::Arc;

use callgate::{Gate, Limits, NoCaller, NobodyToAsk, RunReport, RunRequest};
use rmcp::model::JsonObject;
use serde_json::Value;

use super::arguments;
use super::{Ending, NoRun, Runs};
use crate::arguments::Wrong;

/// Why there is no report.
#[derive(Debug)]
pub(crate) enum NoReport {
    /// What was asked for is wrong.
    Wrong(Wrong),
    /// It did not begin.
    NotBegun(NoRun),
    /// Its task ended abnormally.
    Lost,
}

impl Runs {
    /// What [`report`](Self::report) takes, as a schema.
    pub(crate) fn report_schema(limits: &Limits) -> Value {
        arguments::plain_schema(limits)
    }

    /// Runs a script to its end. It is cancelled when this is dropped: its client
    /// is gone. Nobody is asked; what needs an answer has none.
    pub(crate) async fn report(
        &self,
        gate: Arc<Gate>,
        arguments: &JsonObject,
    ) -> Result<RunReport, NoReport> {
        let given = arguments::plain(arguments, &gate).map_err(NoReport::Wrong)?;
        let run = self
            .new_run(given.limits.run_time)
            .map_err(NoReport::NotBegun)?;
        let mut request = RunRequest::new(given.code)
            .limits(given.limits)
            .cancel_on(run.token())
            .caller(Arc::new(NoCaller));
        if let Some(servers) = given.servers {
            request = request.servers(servers);
        }
        if self.options.asks {
            request = request.asker(Arc::new(NobodyToAsk));
        }
        let _until_dropped = run.token().drop_guard();
        let ending = Ending {
            run,
            store: Arc::clone(&self.store),
        };
        let running = self.tasks.spawn(async move {
            let report = gate.run(request).await;
            drop(ending);
            report
        });
        running.await.map_err(|_lost| NoReport::Lost)
    }
}
