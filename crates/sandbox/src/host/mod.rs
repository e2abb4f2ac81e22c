//! The host side: starts workers ahead of time, gives each one script, and holds every limit.

mod calls;
mod captured;
mod clock;
mod emitted;
mod endings;
mod hush;
mod jail;
mod outbox;
mod process;
mod reserved;
mod run;
mod spares;

use std::io::ErrorKind;
use std::num::NonZero;
use std::os::fd::IntoRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::worker::{Jit, Settings};
use crate::{End, Ended, ErrorClass, Job, Limits, Thrown};
pub use jail::{Jail, JailOptions, Layer, MachineCode, forbid_inspection};
use process::{Spawner, Worker};
use reserved::NotUp;
pub use reserved::{NotRead, Reserved};
use spares::Spares;

/// Bytes of the smallest heap that V8 starts with.
const LEAST_HEAP_BYTES: u64 = 16 << 20;

/// The program that workers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerProgram {
    /// The executable of this process, which calls
    /// [`worker_main_if_requested`](crate::worker_main_if_requested) first thing in its `main`.
    CurrentExe,
    /// An executable that does so, `callgate-worker` for one.
    Path(PathBuf),
}

impl WorkerProgram {
    /// `callgate-worker` in the folder of the executable of this process, or
    /// [`CurrentExe`](Self::CurrentExe) where there is none.
    ///
    /// The file is opened once and stays open until the process ends: the one that replaces it in
    /// an update is of another build.
    #[must_use]
    pub fn beside_current_exe() -> Self {
        static PROGRAM: OnceLock<WorkerProgram> = OnceLock::new();
        let find = || {
            let Ok(exe) = std::env::current_exe() else {
                return Self::CurrentExe;
            };
            let path = exe.with_file_name("callgate-worker");
            match std::fs::File::open(&path) {
                Ok(file) => Self::Path(format!("/proc/self/fd/{}", file.into_raw_fd()).into()),
                Err(error) if error.kind() == ErrorKind::NotFound => Self::CurrentExe,
                // The first run says what is wrong with it.
                Err(_) => Self::Path(path),
            }
        };
        PROGRAM.get_or_init(find).clone()
    }
}

impl<P: AsRef<Path>> From<P> for WorkerProgram {
    fn from(path: P) -> Self {
        Self::Path(path.as_ref().to_owned())
    }
}

/// Settings of a [`Launcher`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LauncherOptions {
    /// Workers that are started ahead of time and wait for a script. Default 1.
    ///
    /// A waiting worker costs about 30 MB of memory, most of it shared with the other workers, and
    /// no processor time. It is started with the heap limit and the `jit` setting of the run before
    /// it; a run with others starts its own worker.
    pub spares: usize,
    /// Workers that wait at the most. While runs come faster than workers start, more than `spares`
    /// wait: one more after each run that had to wait for its worker, and one fewer after ten seconds
    /// without such a run. Default: twice the processors. Fewer than `spares` means as many as those;
    /// without spares there are none of these either.
    pub most_spares: usize,
    /// Heap limit of the first spares, in bytes. Default as in [`Limits`](crate::Limits).
    pub heap_bytes: u64,
    /// `jit` of the first spares. Default as in [`Limits`](crate::Limits).
    pub jit: bool,
    /// Time of the processor that a worker has to read a text. Default 5 s. By the clock, a script has
    /// its [`script_time`](crate::Limits::script_time), and a type four times as much.
    ///
    /// Reading takes milliseconds; on some texts, the time that the parser takes doubles with each
    /// level of what stands inside each other. A text that takes longer is refused.
    pub reading_time: Duration,
    /// The jail that workers get. Default as in [`JailOptions`].
    pub jail: JailOptions,
}

impl Default for LauncherOptions {
    fn default() -> Self {
        let limits = crate::Limits::default();
        Self {
            spares: 1,
            most_spares: std::thread::available_parallelism().map_or(2, |count| 2 * count.get()),
            heap_bytes: limits.heap_bytes,
            jit: limits.jit,
            reading_time: Duration::from_secs(5),
            jail: JailOptions::default(),
        }
    }
}

/// Answers the calls of scripts.
pub trait CallHandler: Send + Sync {
    /// Answers one call.
    ///
    /// The future is dropped when the script cancels the call, or when the run ends before it does.
    /// It must not block: the task that holds the run's limits is the one that polls it.
    fn call(&self, call: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>>;

    /// What the script catches where a call of this function, or the answer to it, does not get
    /// where it should, for the reason given. It must be quick. Default: an error of
    /// [`ErrorClass::Protocol`] without fields.
    fn undelivered(&self, _function: &str, _what: Undelivered, message: String) -> Thrown {
        Thrown {
            class: ErrorClass::Protocol,
            message: message.into(),
            fields: "{}".into(),
        }
    }

    /// Hears what the script prints while it runs, as far as it is kept. It must be quick.
    fn printed(&self, _text: &str) {}
}

/// What of a call does not get where it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undelivered {
    /// The call: too much waits for its turn or its answer.
    Call,
    /// The answer: it is too large, or too much waits for the script to take it.
    Answer,
}

/// A call of a script. All of it comes from the worker, and nothing more is known about it.
#[derive(Debug)]
pub struct ScriptCall {
    /// The function's name: any string of at most 4096 bytes.
    pub function: String,
    /// The input, which is valid JSON.
    pub input: Box<RawValue>,
    /// How long the script gives the call; `None` if it does not say. Whoever answers holds it.
    pub timeout: Option<Duration>,
    /// Line and column of the call in the author's text, if the worker says so. They may be any
    /// numbers.
    pub place: Option<(u32, u32)>,
}

/// Starts workers, which run scripts. Cheap to clone; the workers end with the last clone and the
/// last run.
#[derive(Debug, Clone)]
pub struct Launcher {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    spawner: Spawner,
    spares: Mutex<Spares<Worker>>,
    /// Places for workers that start, one for each processor. More at the same time would only
    /// slow each other down.
    places: Arc<Semaphore>,
    reading_time: Duration,
    jail: JailOptions,
}

impl Launcher {
    /// A launcher whose spares are on their way when this returns. Whether the program can be started
    /// at all shows in the first run.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, if there are to be spares.
    #[must_use]
    pub fn new(program: WorkerProgram, options: LauncherOptions) -> Self {
        let settings = settings(options.heap_bytes, options.jit, &options.jail);
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let launcher = Self {
            inner: Arc::new(Inner {
                jail: options.jail,
                spawner: Spawner::new(program),
                spares: Mutex::new(Spares::new(options.spares, options.most_spares, settings)),
                places: Arc::new(Semaphore::new(processors)),
                reading_time: options.reading_time,
            }),
        };
        launcher.inner.refill();
        launcher
    }

    /// A worker for a run with these limits, which has them for good. The worker is up, and its jail
    /// is as required. Where none waits, one is started: in the order of the calls, and at most one
    /// for each processor at the same time.
    ///
    /// # Errors
    ///
    /// Why none can be started.
    pub async fn take(&self, limits: &Limits) -> Result<Reserved, String> {
        loop {
            let settings = self.inner.settings(limits);
            let waiting = self.inner.spares().take(settings, Instant::now());
            let worker = match waiting {
                Some(worker) => Ok(worker),
                None => {
                    let place = Arc::clone(&self.inner.places).acquire_owned().await;
                    let place = place.map_err(|error| error.to_string())?;
                    self.inner.start(settings, place).await
                }
            };
            self.inner.refill();
            match Reserved::come_up(worker?, Arc::clone(&self.inner)).await {
                Ok(reserved) => return Ok(reserved),
                Err(NotUp::Trapped(reason)) => {
                    if !use_simpler_than(settings.jit) {
                        return Err(reason);
                    }
                }
                Err(NotUp::Other(reason)) => return Err(reason),
            }
        }
    }

    /// Runs one script that needs no reading in a worker of its own, as [`Reserved::run`] does.
    pub async fn run(
        &self,
        job: Job,
        calls: Arc<dyn CallHandler>,
        cancel: CancellationToken,
    ) -> Ended {
        let taken = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ended::without_script(End::Cancelled),
            taken = self.take(&job.limits) => taken,
        };
        match taken {
            Ok(worker) => worker.run(job, calls, cancel).await,
            Err(reason) => Ended::without_script(End::NotStarted { reason }),
        }
    }
}

impl Inner {
    fn settings(&self, limits: &Limits) -> Settings {
        settings(limits.heap_bytes, limits.jit, &self.jail)
    }

    /// Starts a worker, which keeps its place until it says that it is ready, or ends.
    async fn start(
        self: &Arc<Self>,
        settings: Settings,
        place: OwnedSemaphorePermit,
    ) -> Result<Worker, String> {
        let worker = self.spawner.spawn(settings).await?;
        let launcher = Arc::downgrade(self);
        if let Some(socket) = worker.clone_socket()
            && let Ok(socket) = UnixStream::from_std(socket)
        {
            tokio::spawn(async move {
                let _ = socket.readable().await;
                drop(place);
                if let Some(launcher) = launcher.upgrade() {
                    launcher.refill();
                }
            });
        }
        Ok(worker)
    }

    /// Starts the spares that are missing, as far as there are places. Runs that wait for a place
    /// are before them.
    fn refill(self: &Arc<Self>) {
        while let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            let Some(settings) = self.spares().begin_start() else {
                return;
            };
            let launcher = Arc::clone(self);
            tokio::spawn(async move {
                let worker = launcher.start(settings, place).await;
                let unwanted = launcher.spares().started(settings, worker.ok());
                drop(unwanted);
            });
        }
    }

    fn spares(&self) -> MutexGuard<'_, Spares<Worker>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fastest way to make machine code with which workers start on this machine, as far as this
/// process knows.
static FASTEST_JIT: Mutex<Jit> = Mutex::new(Jit::Keys);

fn fastest_jit() -> MutexGuard<'static, Jit> {
    FASTEST_JIT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has workers from now on make machine code in the next simpler way than `jit`, with which V8 did
/// not start; false if there is none.
///
/// V8 150 is known to abort while it sets up machine code on some kernels of WSL2 and on some Macs.
fn use_simpler_than(jit: Jit) -> bool {
    let Some(next) = jit.next() else {
        return false;
    };
    let mut fastest = fastest_jit();
    *fastest = next.max(*fastest);
    true
}

fn settings(heap_bytes: u64, jit: bool, jail: &JailOptions) -> Settings {
    Settings {
        heap_bytes: heap_bytes.max(LEAST_HEAP_BYTES),
        jit: if jit { *fastest_jit() } else { Jit::Off },
        layers: jail.layers(),
    }
}
