//! A worker that is taken for one run: it becomes ready, reads a text, and gets its script.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::wire::{HostFrame, Read, Readable, WorkerFrame};
use callgate_script::{Prepared, ScriptError, ScriptErrorKind, TypeTextError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::endings::{Lost, data_bytes, out_of_memory};
use super::handler::CallHandler;
use super::jail::{self, Jail};
use super::memory::TakenMemory;
use super::outbox::Outbox;
use super::pool::Pool;
use super::run_loop;
use super::worker_process::Worker;
use crate::ended::{End, Ended};
use crate::job::{Job, Limits};
use crate::wire::FrameReader;
use crate::wire::max_read_bytes;

/// Time until a worker must be ready.
const READY_TIME: Duration = Duration::from_secs(20);

/// Maximum bytes of a worker's first frame.
const FIRST_FRAME_BYTES: usize = 64 << 10;

/// Bytes of memory that reading may take besides the parser's stack, which is reserved in whole and
/// used in part.
const READING_BYTES: u64 = 1 << 30;

/// Bytes of a [`WorkerFrame::Read`] besides the outcome.
const READ_FRAME_OVERHEAD: usize = 1 << 10;

/// A worker that was taken for one run. Dropping it ends it.
///
/// A script is parsed in the worker that will run it, so that damage to the parser ends with that
/// worker. The parsed result is unchecked except for its type: the code is for the same worker, and
/// the host uses the other parts only as a forecast.
#[derive(Debug)]
pub struct ReadyWorker {
    worker: Worker,
    reader: FrameReader<WorkerFrame>,
    jail: Jail,
    /// Limits reading, too.
    script_time: Duration,
    /// Keeps the thread alive that started the worker.
    pool: Arc<Pool>,
    /// Held until the worker has ended.
    memory: Option<TakenMemory>,
}

/// The reasons why a text was not read.
#[derive(Debug)]
pub enum ReadError<E> {
    /// The text is at fault.
    Refused(E),
    /// The worker is at fault.
    Ended(End),
}

/// The reasons why a worker did not become ready, for a person.
pub(super) enum NotReady {
    /// The processor or V8 stopped it by a trap, which happens where V8 sets up machine code.
    Trapped(String),
    Other(String),
}

impl ReadyWorker {
    /// Waits until the worker is ready, and checks its jail.
    pub(super) async fn wait(
        mut worker: Worker,
        pool: Arc<Pool>,
        script_time: Duration,
    ) -> Result<Self, NotReady> {
        let socket = worker.take_socket();
        let reader = socket.and_then(|socket| FrameReader::new(socket, FIRST_FRAME_BYTES).ok());
        let unusable = || NotReady::Other("the socket of the worker cannot be used".to_owned());
        let mut reader = reader.ok_or_else(unusable)?;
        let first = next(&mut reader, &mut Outbox::default(), READY_TIME).await;
        let lost = match first {
            Ok(WorkerFrame::Ready(ready)) => {
                let required = &pool.jail.required;
                let jail = jail::check(&ready, worker.id(), worker.settings(), required);
                worker.set_memory(&ready);
                return Ok(Self {
                    jail: jail.map_err(NotReady::Other)?,
                    script_time,
                    worker,
                    reader,
                    pool,
                    memory: None,
                });
            }
            Ok(_) => Lost::Violation("it sends another frame before it is ready".to_owned()),
            Err(lost) => lost,
        };
        let death = worker.end().await;
        let reason = lost.before_ready(&death);
        Err(match death.signal() {
            Some(libc::SIGTRAP | libc::SIGILL) => NotReady::Trapped(reason),
            _ => NotReady::Other(reason),
        })
    }

    pub(super) fn with_memory(self, memory: Option<TakenMemory>) -> Self {
        Self { memory, ..self }
    }

    /// True if the worker was started for runs with these limits.
    pub fn fits(&self, limits: &Limits) -> bool {
        self.worker.settings() == self.pool.settings(limits)
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.worker.id()
    }

    /// The kernel layers in force around the worker.
    pub fn jail(&self) -> &Jail {
        &self.jail
    }

    /// True if the process has not ended.
    pub fn is_alive(&mut self) -> bool {
        self.worker.is_alive()
    }

    /// Makes the worker parse a script, within
    /// [`reading_time`](super::LauncherOptions::reading_time), and within the processor time that the
    /// limits give the script.
    ///
    /// # Errors
    ///
    /// The text is not a script, takes too long or crashes the parser, or the worker ended.
    pub async fn read_script(
        self,
        source: &str,
    ) -> Result<(Self, Prepared), ReadError<ScriptError>> {
        self.read(Readable::Script, source, |kind, fault| {
            ScriptError::without_place(kind, format!("the script {fault}"))
        })
        .await
    }

    /// Makes the worker derive a JSON Schema from a TypeScript type.
    ///
    /// # Errors
    ///
    /// As in [`Self::read_script`], and a type that has no JSON Schema.
    pub async fn read_type(self, text: &str) -> Result<Value, ReadError<TypeTextError>> {
        let read = self.read(Readable::Type, text, |_, fault| {
            TypeTextError::new(format!("the type {fault}"))
        });
        read.await.map(|(_worker, schema)| schema)
    }

    /// Runs one script to its end.
    ///
    /// Returns the result of the run in every case, and does not panic on any frame of a worker.
    /// The worker dies when the future is dropped. Needs a tokio runtime with I/O and time.
    pub async fn run(
        self,
        job: Job,
        calls: Arc<dyn CallHandler>,
        cancel: CancellationToken,
    ) -> Ended {
        if let Err(error) = self.worker.limit_memory(data_bytes(&job.limits)) {
            let reason = format!("the memory of the worker cannot be limited: {error}");
            return Ended::without_script(End::NotStarted { reason });
        }
        // A task of the runtime's own: in a host that waits for the run on another thread, each frame
        // and each reply would go through that thread.
        let pool = self.pool;
        let run = run_loop::run(self.worker, self.reader, job, calls, cancel);
        let ended = AbortOnDropHandle::new(tokio::spawn(run)).await;
        pool.refill();
        drop((pool, self.memory));
        let mut ended = ended.unwrap_or_else(|_| {
            Ended::without_script(End::Crashed {
                reason: "the host's runtime is shutting down".to_owned(),
            })
        });
        ended.jail = Some(self.jail);
        ended
    }

    /// Makes the worker read a text. `error` makes the error for a text on which the parser fails.
    async fn read<T: DeserializeOwned, E: DeserializeOwned>(
        mut self,
        what: Readable,
        text: &str,
        error: impl FnOnce(ScriptErrorKind, &str) -> E,
    ) -> Result<(Self, T), ReadError<E>> {
        let lost = match self.request_read(what, text).await {
            Ok(outcome) => match serde_json::from_str::<Result<T, E>>(&outcome) {
                Ok(read) => {
                    return read.map(|read| (self, read)).map_err(ReadError::Refused);
                }
                Err(_) => Lost::Violation("the outcome of its parser is invalid".to_owned()),
            },
            Err(lost) => lost,
        };
        let death = self.worker.end().await;
        let (kind, fault) = match lost {
            Lost::Late => {
                let seconds = self.pool.reading_time.min(self.script_time).as_secs_f64();
                let fault = format!("takes longer than {seconds} s to parse");
                (ScriptErrorKind::TooComplex, fault)
            }
            Lost::Gone if out_of_memory(&death) => {
                let fault = "takes too much memory to parse".to_owned();
                (ScriptErrorKind::TooComplex, fault)
            }
            // A text that crashes the parser ends the process by a signal. A program that is not a
            // worker ends without one, and SIGKILL, which is not counted, comes from outside.
            Lost::Gone if death.signal().is_some() => (
                ScriptErrorKind::Internal,
                "makes the parser fail".to_owned(),
            ),
            lost => return Err(ReadError::Ended(lost.end(&death, &Limits::default()))),
        };
        let fault = format!("{fault}; write it in simpler pieces");
        Err(ReadError::Refused(error(kind, &fault)))
    }

    /// Sends a text to the worker's parser and returns its outcome, unchecked.
    async fn request_read(&mut self, what: Readable, text: &str) -> Result<String, Lost> {
        let max_frame = max_read_bytes(what) + READ_FRAME_OVERHEAD;
        self.reader.set_max_frame(max_frame);
        let memory = READING_BYTES + callgate_script::stack_bytes(text.len()) as u64;
        let limited = self.worker.limit_memory(memory);
        limited.map_err(|error| Lost::Violation(format!("its memory is unbounded: {error}")))?;
        let mut outbox = Outbox::default();
        let text = text.into();
        outbox
            .push(HostFrame::Read(Read { what, text }))
            .map_err(|error| Lost::Violation(error.to_string()))?;
        let read = tokio::select! {
            read = next(&mut self.reader, &mut outbox, self.pool.reading_time) => read,
            () = wait_for_cpu_time(&self.worker, self.script_time) => Err(Lost::Late),
        };
        match read? {
            WorkerFrame::Read { outcome } => Ok(outcome),
            _ => Err(Lost::Violation(
                "it sends another frame before the outcome of its parser".to_owned(),
            )),
        }
    }
}

/// Returns when the worker has used this much more processor time.
async fn wait_for_cpu_time(worker: &Worker, time: Duration) {
    let (began, before) = (Instant::now(), worker.cpu_time());
    loop {
        let used = match (before, worker.cpu_time()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            // Systems without that clock count wall time.
            _ => began.elapsed(),
        };
        if used >= time {
            return;
        }
        tokio::time::sleep(time - used).await;
    }
}

/// Sends the frames in `outbox`, and returns the worker's next frame within this time.
async fn next(
    reader: &mut FrameReader<WorkerFrame>,
    outbox: &mut Outbox,
    time: Duration,
) -> Result<WorkerFrame, Lost> {
    let frame = async {
        loop {
            match reader.next_read() {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(error) => return Err(Lost::Violation(error.to_string())),
            }
            outbox.flush(reader.socket());
            let blocked = !outbox.is_empty();
            if !run_loop::read_or_room(reader, blocked).await {
                return Err(Lost::Gone);
            }
        }
    };
    tokio::time::timeout(time, frame)
        .await
        .unwrap_or(Err(Lost::Late))
}
