//! The pool: workers that are started ahead of time and wait for a script.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::jail::JailOptions;
use super::worker_process::{Spawner, Worker, WorkerProgram};
use crate::job::Limits;
use crate::wire::{Jit, Settings};

/// Time that a run has before a spare is started beside it: on few processors, the start of a worker
/// takes the time of most scripts.
const SPARE_DELAY: Duration = Duration::from_millis(20);

/// Bytes of the smallest heap that V8 starts with.
const MIN_HEAP_BYTES: u64 = 16 << 20;

/// Starts workers, and keeps spares waiting.
#[derive(Debug)]
pub(super) struct Pool {
    spawner: Spawner,
    spares: Mutex<Spares>,
    /// Permits for workers that start, one for each processor. More at the same time would only
    /// slow each other down.
    starts: Arc<Semaphore>,
    pub(super) reading_time: Duration,
    pub(super) jail: JailOptions,
}

/// The waiting workers. All have the same settings, which are those of the last run.
#[derive(Debug)]
struct Spares {
    wanted: usize,
    settings: Settings,
    waiting: Vec<Worker>,
    starting: usize,
}

impl Pool {
    /// A pool of `wanted` spares. [`Self::refill`] starts them.
    pub(super) fn new(
        program: WorkerProgram,
        wanted: usize,
        settings: Settings,
        reading_time: Duration,
        jail: JailOptions,
    ) -> Arc<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new(Self {
            spawner: Spawner::new(program),
            spares: Mutex::new(Spares {
                wanted,
                settings,
                waiting: Vec::new(),
                starting: 0,
            }),
            starts: Arc::new(Semaphore::new(processors)),
            reading_time,
            jail,
        })
    }

    /// The settings of a worker for a run with these limits.
    pub(super) fn settings(&self, limits: &Limits) -> Settings {
        settings(limits.heap_bytes, limits.jit, &self.jail)
    }

    /// A worker with these settings: a waiting one, or else a new one.
    pub(super) async fn take(self: &Arc<Self>, settings: Settings) -> Result<Worker, String> {
        let waiting = self.spares.lock().take(settings);
        let worker = match waiting {
            Some(worker) => Ok(worker),
            None => {
                let permit = Arc::clone(&self.starts).acquire_owned().await;
                let permit = permit.map_err(|error| error.to_string())?;
                self.start(settings, permit, false).await
            }
        };
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(SPARE_DELAY).await;
            if let Some(pool) = pool.upgrade() {
                pool.refill();
            }
        });
        worker
    }

    /// Starts missing spares, if there are permits. Runs that wait for a permit come first.
    pub(super) fn refill(self: &Arc<Self>) {
        while let Ok(permit) = Arc::clone(&self.starts).try_acquire_owned() {
            let Some(settings) = self.spares.lock().begin_start() else {
                return;
            };
            let pool = Arc::clone(self);
            tokio::spawn(async move {
                let worker = pool.start(settings, permit, true).await;
                let unwanted = pool.spares.lock().end_start(settings, worker.ok());
                drop(unwanted);
            });
        }
    }

    /// Starts a worker, which keeps its permit until it is ready or has ended. Then, after a spare,
    /// the next spare is started.
    async fn start(
        self: &Arc<Self>,
        settings: Settings,
        permit: OwnedSemaphorePermit,
        is_spare: bool,
    ) -> Result<Worker, String> {
        let worker = self.spawner.spawn(settings).await?;
        let pool = Arc::downgrade(self);
        if let Some(socket) = worker.clone_socket()
            && let Ok(socket) = UnixStream::from_std(socket)
        {
            tokio::spawn(async move {
                let _ = socket.readable().await;
                drop(permit);
                if is_spare && let Some(pool) = pool.upgrade() {
                    pool.refill();
                }
            });
        }
        Ok(worker)
    }
}

impl Spares {
    /// Takes the waiting worker that was started first. Different settings replace all spares.
    fn take(&mut self, settings: Settings) -> Option<Worker> {
        if settings != self.settings {
            self.settings = settings;
            self.starting = 0;
        }
        self.waiting
            .retain_mut(|worker| worker.settings() == settings && worker.is_alive());
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0))
    }

    /// The settings of a worker to start now; `None` if there are enough.
    fn begin_start(&mut self) -> Option<Settings> {
        let is_missing = self.waiting.len() + self.starting < self.wanted;
        self.starting += usize::from(is_missing);
        is_missing.then_some(self.settings)
    }

    /// Adds the worker that was started, if any. Gives it back if its settings are no longer wanted.
    fn end_start(&mut self, settings: Settings, worker: Option<Worker>) -> Option<Worker> {
        if settings != self.settings || self.starting == 0 {
            return worker;
        }
        self.starting -= 1;
        self.waiting.extend(worker);
        None
    }
}

/// The fastest way to make machine code that is known to work on this machine.
static FASTEST_JIT: Mutex<Jit> = Mutex::new(Jit::Keys);

/// Makes later workers use the next simpler way to make machine code than `jit`, with which V8 did
/// not start; false if `jit` is the simplest.
///
/// V8 150 is known to abort while it sets up machine code on some kernels of WSL2 and on some Macs.
pub(super) fn use_simpler_than(jit: Jit) -> bool {
    let Some(next) = jit.next() else {
        return false;
    };
    let mut fastest = FASTEST_JIT.lock();
    *fastest = next.max(*fastest);
    true
}

/// The settings of a worker with this heap, with or without machine code, in this jail.
pub(super) fn settings(heap_bytes: u64, jit: bool, jail: &JailOptions) -> Settings {
    Settings {
        heap_bytes: heap_bytes.max(MIN_HEAP_BYTES),
        jit: if jit { *FASTEST_JIT.lock() } else { Jit::Off },
        layers: jail.layers(),
    }
}
