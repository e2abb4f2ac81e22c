//! A worker that is taken for one run: it comes up, reads a text, and gets its script.

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

/// Time a worker has to come up.
const READY_TIME: Duration = Duration::from_secs(20);

/// Bytes of a frame of a worker that comes up.
const FIRST_FRAME_BYTES: usize = 64 << 10;

/// Bytes of memory that reading may take besides the parser's stack, which is reserved in whole and
/// used in part.
const READING_BYTES: u64 = 1 << 30;

/// Bytes of a frame besides the outcome.
const BESIDES: usize = 1 << 10;

/// A worker that was taken for one run. Dropping it ends it.
///
/// A script is parsed in the worker that is to run it, so that the damage it does to the parser ends
/// with that worker. The parsed result is unchecked but for its type: the code is for the same worker,
/// and all else is a forecast.
#[derive(Debug)]
pub struct ReadyWorker {
    worker: Worker,
    reader: FrameReader<WorkerFrame>,
    jail: Jail,
    /// The script's time, which reading may not pass either.
    script_time: Duration,
    /// Kept so that the thread that started the worker lives as long as the worker.
    pool: Arc<Pool>,
    /// Held until the worker has ended.
    memory: Option<TakenMemory>,
}

/// The reasons why a text was not read.
#[derive(Debug)]
pub enum NotRead<E> {
    /// The text is at fault.
    Refused(E),
    /// The worker is at fault.
    Ended(End),
}

/// The reasons why a worker did not come up, for a person.
pub(super) enum NotUp {
    /// The processor or V8 stopped it by a trap, which happens where V8 sets up machine code.
    Trapped(String),
    /// Something else.
    Other(String),
}

impl ReadyWorker {
    /// Waits until the worker is ready, and looks at its jail.
    pub(super) async fn come_up(
        mut worker: Worker,
        pool: Arc<Pool>,
        script_time: Duration,
    ) -> Result<Self, NotUp> {
        let socket = worker.take_socket();
        let reader = socket.and_then(|socket| FrameReader::new(socket, FIRST_FRAME_BYTES).ok());
        let unusable = || NotUp::Other("the socket of the worker cannot be used".to_owned());
        let mut reader = reader.ok_or_else(unusable)?;
        let first = next(&mut reader, &mut Outbox::default(), READY_TIME).await;
        let lost = match first {
            Ok(WorkerFrame::Ready(ready)) => {
                let required = &pool.jail.required;
                let jail = jail::check(&ready, worker.id(), worker.settings(), required);
                worker.set_memory(&ready);
                return Ok(Self {
                    jail: jail.map_err(NotUp::Other)?,
                    script_time,
                    worker,
                    reader,
                    pool,
                    memory: None,
                });
            }
            Ok(_) => Lost::Violation("it speaks before it is ready".to_owned()),
            Err(lost) => lost,
        };
        let death = worker.end().await;
        let reason = lost.before_ready(&death);
        Err(match death.signal() {
            Some(libc::SIGTRAP | libc::SIGILL) => NotUp::Trapped(reason),
            _ => NotUp::Other(reason),
        })
    }

    /// The worker, which holds this memory.
    pub(super) fn with_memory(self, memory: Option<TakenMemory>) -> Self {
        Self { memory, ..self }
    }

    /// True if it was started for runs with these limits.
    pub fn fits(&self, limits: &Limits) -> bool {
        self.worker.settings() == self.pool.settings(limits)
    }

    /// The id of the worker's process.
    pub fn id(&self) -> u32 {
        self.worker.id()
    }

    /// The kernel layers in force around the worker.
    pub fn jail(&self) -> &Jail {
        &self.jail
    }

    /// True if its process is there still.
    pub fn is_alive(&mut self) -> bool {
        self.worker.is_alive()
    }

    /// Makes the worker parse a script, within
    /// [`reading_time`](super::LauncherOptions::reading_time), and within as much time of a processor
    /// as the limits give the script.
    /// The error: a text that is not a script, that takes too long, or that crashes the parser; or
    /// the end of the worker.
    pub async fn read_script(self, source: &str) -> Result<(Self, Prepared), NotRead<ScriptError>> {
        self.read(Readable::Script, source, |kind, what| {
            ScriptError::without_place(kind, format!("the script {what}"))
        })
        .await
    }

    /// Makes the worker derive a JSON Schema from a TypeScript type.
    /// The error: as in [`Self::read_script`], or a type that has no JSON Schema.
    pub async fn read_type(self, text: &str) -> Result<Value, NotRead<TypeTextError>> {
        let read = self.read(Readable::Type, text, |_, what| {
            TypeTextError::new(format!("the type {what}"))
        });
        read.await.map(|(_ends, schema)| schema)
    }

    /// Runs one script to its end.
    ///
    /// Returns the result of the run in every case, and does not panic on any frame of a worker.
    /// When the future is dropped the worker dies. Needs a tokio runtime with I/O and time.
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

    /// Makes the worker read a text. `fault` makes the error for a text on which the
    /// parser fails.
    async fn read<T: DeserializeOwned, E: DeserializeOwned>(
        mut self,
        what: Readable,
        text: &str,
        fault: impl FnOnce(ScriptErrorKind, &str) -> E,
    ) -> Result<(Self, T), NotRead<E>> {
        let lost = match self.ask(what, text).await {
            Ok(outcome) => match serde_json::from_str::<Result<T, E>>(&outcome) {
                Ok(read) => {
                    return read.map(|read| (self, read)).map_err(NotRead::Refused);
                }
                Err(_) => Lost::Violation("it has read something else than a text".to_owned()),
            },
            Err(lost) => lost,
        };
        let death = self.worker.end().await;
        let (kind, what) = match lost {
            Lost::Late => {
                let seconds = self.pool.reading_time.min(self.script_time).as_secs_f64();
                let what = format!("takes longer than {seconds} s to parse");
                (ScriptErrorKind::TooComplex, what)
            }
            Lost::Gone if out_of_memory(&death) => {
                let what = "takes too much memory to parse".to_owned();
                (ScriptErrorKind::TooComplex, what)
            }
            // A text that crashes the parser ends the process by a signal. A program that is no
            // worker ends without one, and SIGKILL, which is not counted, comes from outside.
            Lost::Gone if death.signal().is_some() => (
                ScriptErrorKind::Internal,
                "makes the parser fail".to_owned(),
            ),
            lost => return Err(NotRead::Ended(lost.end(&death, &Limits::default()))),
        };
        let what = format!("{what}; write it in simpler pieces");
        Err(NotRead::Refused(fault(kind, &what)))
    }

    /// The outcome of a text, as the worker says it.
    async fn ask(&mut self, what: Readable, text: &str) -> Result<String, Lost> {
        self.reader.set_max_frame(max_read_bytes(what) + BESIDES);
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
            () = works(&self.worker, self.script_time) => Err(Lost::Late),
        };
        match read? {
            WorkerFrame::Read { outcome } => Ok(outcome),
            _ => Err(Lost::Violation("it speaks before it has read".to_owned())),
        }
    }
}

/// Returns when the worker has used this much time of a processor from now on.
async fn works(worker: &Worker, time: Duration) {
    let (began, before) = (Instant::now(), worker.cpu_time());
    loop {
        let used = match (before, worker.cpu_time()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            // Where no clock counts that, the time on the wall does.
            _ => began.elapsed(),
        };
        if used >= time {
            return;
        }
        tokio::time::sleep(time - used).await;
    }
}

/// The next frame of a worker in this time, while it is told what is in `outbox`.
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
