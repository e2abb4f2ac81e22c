//! The host side: starts workers, gives each one script, and enforces every limit.

mod endings;
mod handler;
pub(crate) mod jail;
mod memory;
mod outbox;
mod output;
mod pending_calls;
mod pool;
mod ready_worker;
mod run_loop;
mod script_clock;
mod worker_process;

use std::sync::Arc;
use std::time::Duration;

use crate::job::Limits;
pub use handler::{CallHandler, ScriptCall, Undelivered};
pub use jail::{Jail, JailOptions, MachineCode, forbid_inspection};
pub use memory::{MemoryBudget, MemoryShare, TakenMemory, machine_memory};
use pool::Pool;
use ready_worker::NotReady;
pub use ready_worker::{ReadError, ReadyWorker};
pub use worker_process::WorkerProgram;

/// Time that a run waits for its memory.
const MEMORY_TIME: Duration = Duration::from_secs(30);

/// Settings of a [`Launcher`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LauncherOptions {
    /// Workers that are started ahead of time and wait for a script. Default 1.
    ///
    /// A waiting worker costs about 30 MB of memory, most of it shared with the other workers, and
    /// no processor time. It is started with the heap limit and the `jit` setting of the run before
    /// it; a run with different settings starts its own worker.
    pub spares: usize,
    /// Heap limit of the first spares, in bytes. Default as in [`Limits`].
    pub heap_bytes: u64,
    /// `jit` of the first spares. Default as in [`Limits`].
    pub jit: bool,
    /// Wall time that a worker has to read a text. Default 5 s. The processor time for it is limited
    /// by [`Limits::script_time`].
    ///
    /// Reading takes milliseconds. For some texts the time doubles with each level of nesting; a
    /// text that takes longer is refused.
    pub reading_time: Duration,
    /// The jail that workers get. Default as in [`JailOptions`].
    pub jail: JailOptions,
}

impl Default for LauncherOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            spares: 1,
            heap_bytes: limits.heap_bytes,
            jit: limits.jit,
            reading_time: Duration::from_secs(5),
            jail: JailOptions::default(),
        }
    }
}

/// Starts workers, which run scripts. Cheap to clone; the workers end with the last clone and the
/// last run.
#[derive(Debug, Clone)]
pub struct Launcher {
    pool: Arc<Pool>,
    memory: Option<MemoryShare>,
}

impl Launcher {
    /// Begins to start the spares. A program that cannot be started is reported by the first run.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, if there are to be spares.
    pub fn new(program: WorkerProgram, options: LauncherOptions) -> Self {
        let settings = pool::settings(options.heap_bytes, options.jit, &options.jail);
        let (spares, time) = (options.spares, options.reading_time);
        let pool = Pool::new(program, spares, settings, time, options.jail);
        pool.refill();
        Self { pool, memory: None }
    }

    /// The same workers, whose memory is taken from this share: the heap and the buffers that the
    /// limits of a run allow. Without a share it is not counted.
    #[must_use]
    pub fn with_memory(&self, memory: Option<MemoryShare>) -> Self {
        Self {
            pool: Arc::clone(&self.pool),
            memory,
        }
    }

    /// A worker for a run with these limits. The worker is ready, and its jail is as required. If no
    /// spare waits, one is started: in the order of the calls, and at most one for each processor at
    /// the same time.
    pub async fn take(&self, limits: &Limits) -> Result<ReadyWorker, StartError> {
        let memory = match &self.memory {
            Some(share) => {
                let bytes = limits.heap_bytes.saturating_add(limits.buffer_bytes);
                let taken = tokio::time::timeout(MEMORY_TIME, share.take(bytes)).await;
                Some(taken.map_err(|_late| StartError::Memory)?)
            }
            None => None,
        };
        loop {
            let settings = self.pool.settings(limits);
            let worker = self.pool.take(settings).await.map_err(StartError::Worker)?;
            let pool = Arc::clone(&self.pool);
            match ReadyWorker::wait(worker, pool, limits.script_time).await {
                Ok(ready) => return Ok(ready.with_memory(memory)),
                Err(NotReady::Trapped(_)) if pool::use_simpler_than(settings.jit) => {}
                Err(NotReady::Trapped(reason) | NotReady::Other(reason)) => {
                    return Err(StartError::Worker(reason));
                }
            }
        }
    }
}

/// The reasons why [`Launcher::take`] has no worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Other scripts have the memory.
    #[error(
        "the server's memory for scripts is in use; run the script again later, or end a running \
         script"
    )]
    Memory,
    /// The process could not be started, did not become ready, or lacks a required jail layer.
    #[error("{0}")]
    Worker(String),
}
