//! Worker processes that several gates share.

use callgate_sandbox::{Jail, JailOptions, Launcher, LauncherOptions, Limits, WorkerProgram};

/// Worker processes, started ahead of time, that several gates share. A worker runs one
/// script and ends, so scripts of different gates never meet. Clones are the same.
#[derive(Debug, Clone)]
pub struct Workers {
    pub(crate) launcher: Launcher,
    /// The limits of the runs.
    pub(crate) limits: Limits,
}

impl Workers {
    /// Workers for runs with these limits in this jail, of which `spares` wait.
    pub fn new(program: WorkerProgram, spares: usize, limits: &Limits, jail: &JailOptions) -> Self {
        let options = LauncherOptions {
            spares,
            heap_bytes: limits.heap_bytes,
            jit: limits.jit,
            jail: jail.clone(),
            ..LauncherOptions::default()
        };
        Self {
            launcher: Launcher::new(program, options),
            limits: limits.clone(),
        }
    }

    /// The kernel layers around scripts, asked of a worker.
    ///
    /// # Errors
    ///
    /// Why no script can run.
    pub async fn jail(&self) -> Result<Jail, String> {
        let worker = self.launcher.take(&self.limits).await?;
        Ok(worker.jail().clone())
    }
}
