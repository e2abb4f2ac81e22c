//! Worker processes that several gates share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callgate_sandbox::{
    Jail, JailOptions, Launcher, LauncherOptions, Limits, MemoryBudget, WorkerProgram,
};

use crate::error::{GateError, GateErrorKind};

/// Worker processes, started ahead of time, that several gates share. A worker runs one
/// script and ends, so scripts of different gates never meet. Clones are the same.
#[derive(Debug, Clone)]
pub struct Workers {
    pub(crate) launcher: Launcher,
    /// The limits of the runs.
    pub(crate) limits: Limits,
    memory: Option<Arc<MemoryBudget>>,
}

/// True once this process has shown that its executable can be a worker.
static IS_OWN_WORKER: AtomicBool = AtomicBool::new(false);

/// Becomes a worker if this process was started as one, and then never returns.
///
/// A host that calls it uses its own executable for workers. The call comes first in `main`, before
/// any thread is started.
#[cfg(feature = "worker")]
pub fn worker_main_if_requested() {
    callgate_worker::worker_main_if_requested();
    IS_OWN_WORKER.store(true, Ordering::Relaxed);
}

/// The worker program of a host that names none.
pub(crate) fn default_program() -> WorkerProgram {
    if IS_OWN_WORKER.load(Ordering::Relaxed) {
        WorkerProgram::CurrentExe
    } else {
        WorkerProgram::Installed
    }
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
            memory: None,
        }
    }

    /// Bounds the memory of all runs together: each counts with the heap and the buffers that its
    /// limits allow. A run that finds no room waits for 30 seconds at most.
    #[must_use]
    pub fn within_memory(mut self, bytes: u64) -> Self {
        let budget = MemoryBudget::new(bytes);
        self.launcher = self.launcher.with_memory(Some(budget.share(false)));
        self.memory = Some(budget);
        self
    }

    /// The same workers for one of several users, who take turns for the memory and have half of
    /// it each at most.
    #[must_use]
    pub fn for_user(&self) -> Self {
        let share = self.memory.as_ref().map(|budget| budget.share(true));
        Self {
            launcher: self.launcher.with_memory(share),
            ..self.clone()
        }
    }

    /// The kernel layers around scripts, asked of a worker.
    ///
    /// # Errors
    ///
    /// [`GateErrorKind::Worker`]: why no script can run.
    pub async fn jail(&self) -> Result<Jail, GateError> {
        let worker = self.launcher.with_memory(None).take(&self.limits).await;
        let worker =
            worker.map_err(|why| GateError::new(GateErrorKind::Worker, why.to_string()))?;
        Ok(worker.jail().clone())
    }
}
