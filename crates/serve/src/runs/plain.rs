//! A run for a client that only waits for the report (REST).

use std::sync::Arc;

use callgate::{Gate, RunReport};
use rmcp::model::JsonObject;

use super::Runs;
use super::arguments::ScriptArguments;
use super::resume::Purpose;
use super::store::NoRun;

/// The reason why there is no report.
#[derive(Debug)]
pub(crate) enum NoReport {
    /// The arguments are wrong.
    Wrong(String),
    NotBegun(NoRun),
    /// The run's task ended abnormally.
    Lost,
}

impl Runs {
    /// Runs a script to its end, without questions. Dropping the future cancels the run.
    pub(crate) async fn report(
        &self,
        gate: Arc<Gate>,
        arguments: &JsonObject,
    ) -> Result<RunReport, NoReport> {
        let given = ScriptArguments::read_for_report(arguments, &gate).map_err(NoReport::Wrong)?;
        let limits = given.limits(gate.limits());
        let run = self
            .new_run(Purpose::new(Purpose::SCRIPT, &given.code), limits.run_time)
            .map_err(NoReport::NotBegun)?;
        let _cancel_on_drop = run.cancel.clone().drop_guard();
        let running = self.begin(gate, &run, given, None);
        running.await.map_err(|_lost| NoReport::Lost)
    }
}
