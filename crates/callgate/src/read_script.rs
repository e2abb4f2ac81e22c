//! Reading a script, in the worker that is then to run it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use callgate_sandbox::{End, Launcher, NotRead, Reserved};
use callgate_script::Prepared;

use crate::report::{self, RunReport};
use crate::{Limits, RunRequest};

/// A script that was read, and the worker that waits for it.
pub(crate) struct Read {
    pub(crate) prepared: Prepared,
    pub(crate) worker: Reserved,
    /// Wall time that reading took.
    pub(crate) took: Duration,
}

/// What was read of a request's script before there was a gate for it.
#[derive(Clone, Default)]
pub(crate) struct ReadAhead(Arc<Mutex<Option<Read>>>);

impl ReadAhead {
    pub(crate) fn keep(&self, read: Read) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
    }

    /// Wall time that reading what is kept took.
    pub(crate) fn took(&self) -> Duration {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map_or(Duration::ZERO, |read| read.took)
    }

    /// What is kept, once, if its worker is one for these limits and has not ended meanwhile: it
    /// may have waited for a person.
    fn take(&self, limits: &Limits) -> Option<Read> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut read = kept.filter(|read| read.worker.fits(limits))?;
        read.worker.is_alive().then_some(read)
    }
}

/// Reads the script of a request, or gives the report with which its run ends.
pub(crate) async fn read(
    launcher: &Launcher,
    limits: &Limits,
    request: &RunRequest,
) -> Result<Read, Box<RunReport>> {
    if let Some(read) = request.read_ahead.take(limits) {
        return Ok(read);
    }
    let started = Instant::now();
    let reading = async {
        let worker = launcher.take(limits).await;
        let worker = worker.map_err(|reason| NotRead::Ended(End::NotStarted { reason }))?;
        worker.read_script(&request.source, limits).await
    };
    let read = tokio::select! {
        read = reading => read,
        () = request.cancel.cancelled() => return Err(Box::new(report::cancelled(request))),
    };
    match read {
        Ok((worker, prepared)) => Ok(Read {
            prepared,
            worker,
            took: started.elapsed(),
        }),
        Err(NotRead::Refused(error)) => Err(Box::new(report::rejected(request, &error))),
        Err(NotRead::Ended(end)) => Err(Box::new(report::unread(request, end))),
    }
}
