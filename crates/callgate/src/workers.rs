//! Worker processes that several gates take from.

use callgate_sandbox::{Jail, JailOptions, Launcher, LauncherOptions, WorkerProgram};

use crate::Limits;

/// Worker processes, started ahead of time, that several gates take from. A
/// worker runs one script and ends, so nothing of one gate's script meets
/// another's. Clones are the same.
#[derive(Debug, Clone)]
pub struct Workers {
    pub(crate) launcher: Launcher,
    /// Of the runs they are for.
    pub(crate) limits: Limits,
}

impl Workers {
    /// So many workers that wait, for runs with these limits, in this jail.
    #[must_use]
    pub fn new(program: WorkerProgram, spares: usize, limits: &Limits, jail: &JailOptions) -> Self {
        let mut options = LauncherOptions::default();
        options.spares = spares;
        options.heap_bytes = limits.heap_bytes;
        options.jit = limits.jit;
        options.jail = jail.clone();
        Self {
            launcher: Launcher::new(program, options),
            limits: limits.clone(),
        }
    }

    /// The kernel layers that scripts run in. Takes a worker to find out.
    ///
    /// # Errors
    ///
    /// Why no script can run.
    pub async fn jail(&self) -> Result<Jail, String> {
        let worker = self.launcher.take(&self.limits).await?;
        Ok(worker.jail().clone())
    }
}
