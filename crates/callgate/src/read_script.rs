//! Reads a script in the worker that then runs it.

use std::time::Instant;

use callgate_sandbox::{End, Launcher, Limits, ReadError};

use crate::report::RunReport;
use crate::report::build::{input_refused, millis, rejected, unread};
use crate::run_request::{ReadScript, RunRequest};
use crate::workers::Workers;

impl RunRequest {
    /// The report of this request if its text is no acceptable script; found out before any
    /// server starts.
    ///
    /// The script is read in one of these workers. The next run of the request or of a clone
    /// takes place in that worker, if its limits are the same; a
    /// [`preview`](crate::Gate::preview) keeps it for the run.
    pub async fn rejected(&self, workers: &Workers) -> Option<RunReport> {
        let started = Instant::now();
        match read(&workers.launcher, &workers.limits, self).await {
            Ok(read) => {
                *self.read_ahead.lock() = Some(read);
                None
            }
            Err(mut report) => {
                report.total_ms = millis(started.elapsed());
                Some(*report)
            }
        }
    }
}

/// Reads the script of a request.
/// The error: the report of a run that ends before it begins.
pub(crate) async fn read(
    launcher: &Launcher,
    limits: &Limits,
    request: &RunRequest,
) -> Result<ReadScript, Box<RunReport>> {
    if let Some(over) = request.input_over_limit() {
        return Err(Box::new(input_refused(request, over)));
    }
    let kept = request.read_ahead.lock().take();
    // Its worker must have these limits and be alive still.
    if let Some(mut read) = kept.filter(|read| read.worker.fits(limits))
        && read.worker.is_alive()
    {
        return Ok(read);
    }
    let started = Instant::now();
    let reading = async {
        let worker = launcher.take(limits).await;
        let not_started = |reason| ReadError::Ended(End::NotStarted { reason });
        let worker = worker.map_err(|error| not_started(error.to_string()))?;
        worker.read_script(&request.source).await
    };
    let read = tokio::select! {
        read = reading => read,
        () = request.settings.cancel.cancelled() => return Err(Box::new(request.cancelled())),
    };
    match read {
        Ok((worker, prepared)) => Ok(ReadScript {
            prepared,
            worker,
            took: started.elapsed(),
        }),
        Err(ReadError::Refused(error)) => Err(Box::new(rejected(request, &error))),
        Err(ReadError::Ended(end)) => Err(Box::new(unread(request, end))),
    }
}
