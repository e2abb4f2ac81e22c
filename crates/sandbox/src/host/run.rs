//! One run: the loop between a worker's socket, the calls, the clock and the caller's cancel.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_wire::{
    Call, Decoder, Done, ErrorClass, HostFrame, LimitHit, Reply, Start, TerminateReason, Text,
    Thrown, WireError, WorkerFrame, WorkerLimits,
};
use futures::FutureExt;
use serde_json::value::RawValue;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::CallHandler;
use super::captured::Collector;
use super::clock::Clock;
use super::endings::{crashed, data_bytes, told, with_stderr};
use super::outbox::{LONGEST_ANSWER, Outbox};
use super::process::{Death, Worker};
use crate::{Captured, End, Ended, Job, Limits, WhichLimit};

/// Time a worker has to stop by itself before it is killed.
const GRACE: Duration = Duration::from_millis(250);

/// Time a worker has to come up.
const READY_TIME: Duration = Duration::from_secs(20);

/// Bytes of a function's name in a call.
const NAME_BYTES: usize = 4096;

/// Bytes of inputs that may wait for their turn or their answer, beyond which calls are refused.
const WAITING_BYTES: usize = 256 << 20;

/// Longer limits than this, a hundred years, cannot be told from none, and moments in time cannot be
/// reckoned with them.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Runs the job in the worker, which has been killed when this returns.
pub(super) async fn run(
    mut worker: Worker,
    job: Job,
    handler: Arc<dyn CallHandler>,
    cancel: CancellationToken,
) -> Ended {
    let began = Instant::now();
    let mut limits = job.limits.clone();
    limits.script_time = limits.script_time.min(LONGEST);
    limits.run_time = limits.run_time.min(LONGEST);
    let socket = worker
        .take_socket()
        .and_then(|socket| UnixStream::from_std(socket).ok());
    let Some(socket) = socket else {
        return Ended {
            end: End::NotStarted {
                reason: "the socket of the worker cannot be used".to_owned(),
            },
            output: Captured::default(),
            script_time: Duration::ZERO,
            calls: 0,
        };
    };
    let (reading, writing) = socket.into_split();
    let (outbox, to_write) = Outbox::new();
    let mut writer = JoinSet::new();
    writer.spawn(to_write.write(writing));

    let mut run = Run {
        worker,
        outbox,
        handler,
        clock: Clock::new(began),
        cpu: Duration::ZERO,
        collector: Collector::new(limits.output_bytes),
        calls: JoinSet::new(),
        queue: VecDeque::new(),
        waiting_bytes: 0,
        call_count: 0,
        memory: None,
        stopping: None,
        limits,
    };
    let stop = run.drive(job, reading, &cancel, began).await;
    run.finish(stop).await
}

struct Run {
    worker: Worker,
    outbox: Outbox,
    handler: Arc<dyn CallHandler>,
    limits: Limits,
    clock: Clock,
    /// The last reading of the worker's processor time.
    cpu: Duration,
    collector: Collector,
    calls: JoinSet<Answered>,
    queue: VecDeque<Queued>,
    waiting_bytes: usize,
    call_count: u64,
    memory: Option<LimitHit>,
    stopping: Option<Stopping>,
}

/// A call that waits for its turn, in memory of its own: a frame keeps the whole buffer alive that it
/// was received in.
struct Queued {
    id: u64,
    function: String,
    input: Box<RawValue>,
}

/// A call that the handler has answered.
struct Answered {
    id: u64,
    input_bytes: usize,
    outcome: Result<Box<RawValue>, Thrown>,
}

/// A run that the host has decided to end.
struct Stopping {
    end: End,
    kill_at: Instant,
}

/// Why the loop ended.
enum Stop {
    /// The worker told how the script ended.
    Told(Done),
    /// The worker closed the socket.
    Gone,
    /// The worker sent something else than frames.
    Violation(String),
    /// The worker did not stop in time after it was told to.
    Kill,
    /// The worker did not come up.
    NotReady,
}

impl Run {
    async fn drive(
        &mut self,
        job: Job,
        mut reading: OwnedReadHalf,
        cancel: &CancellationToken,
        began: Instant,
    ) -> Stop {
        let mut decoder = Decoder::<WorkerFrame>::new(self.max_worker_frame());
        let mut job = Some(job);
        let ready_by = began + READY_TIME;
        loop {
            // What has been received.
            loop {
                match decoder.next() {
                    Ok(Some(frame)) => {
                        if let Some(stop) = self.take(frame, &mut job) {
                            return stop;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return Stop::Violation(error.to_string()),
                }
            }
            let now = Instant::now();
            self.cpu = self.worker.cpu_time().unwrap_or(self.cpu);
            let wake = match &self.stopping {
                Some(stopping) if now >= stopping.kill_at => return Stop::Kill,
                Some(stopping) => stopping.kill_at,
                None if job.is_some() && now >= ready_by => return Stop::NotReady,
                None if job.is_some() => ready_by,
                None => match self.passed(now, began) {
                    Some((end, reason)) => {
                        self.stop(end, reason);
                        continue;
                    }
                    None => self
                        .clock
                        .look_again(self.limits.script_time, now, self.cpu)
                        .min(began + self.limits.run_time),
                },
            };
            tokio::select! {
                biased;
                () = cancel.cancelled(), if self.stopping.is_none() => {
                    self.stop(End::Cancelled, TerminateReason::Cancelled);
                    if job.is_some() {
                        return Stop::Kill;
                    }
                }
                read = receive(&mut reading, &mut decoder) => {
                    if !read {
                        return Stop::Gone;
                    }
                }
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => {
                    self.reply(done);
                }
                () = tokio::time::sleep_until(wake.into()) => {}
            }
        }
    }

    /// One frame of the worker.
    fn take(&mut self, frame: WorkerFrame, job: &mut Option<Job>) -> Option<Stop> {
        match frame {
            WorkerFrame::Ready { pid: _ } => {
                let Some(job) = job.take() else {
                    return Some(violation("it says twice that it is ready"));
                };
                // The script's time begins here, however long the worker took to come up.
                self.clock = Clock::new(Instant::now());
                if let Err(error) = self.start(job) {
                    self.stop(
                        End::NotStarted {
                            reason: format!("the script is too large: {error}"),
                        },
                        TerminateReason::Limit,
                    );
                    return Some(Stop::Kill);
                }
            }
            _ if job.is_some() => return Some(violation("it speaks before it is ready")),
            WorkerFrame::Call(call) => return self.call(&call),
            WorkerFrame::Output(output) => self.collector.head(&output.text),
            WorkerFrame::OutputEnd(end) => self.collector.end(&end),
            WorkerFrame::LimitHit(hit) => {
                self.memory.get_or_insert(hit);
                if self.stopping.is_none() {
                    let end = self.memory_end(hit);
                    self.stop(end, TerminateReason::Limit);
                }
            }
            WorkerFrame::Done(done) => return Some(Stop::Told(done)),
        }
        None
    }

    fn start(&self, job: Job) -> Result<(), WireError> {
        let l = &self.limits;
        self.outbox.send(HostFrame::Start(Start {
            source_name: job.source_name.into(),
            line_offset: job.line_offset,
            functions: job.functions.into_iter().map(Text::from).collect(),
            limits: WorkerLimits {
                output_bytes: l.output_bytes,
                output_lines: l.output_lines,
                message_bytes: l.message_bytes,
                depth: l.depth,
                result_bytes: l.result_bytes,
                frame_bytes: l.input_bytes,
                buffer_bytes: l.buffer_bytes,
                data_bytes: data_bytes(l),
            },
            code: job.code.into(),
        }))
    }

    fn call(&mut self, call: &Call) -> Option<Stop> {
        if self.stopping.is_some() {
            return None;
        }
        if call.tool.len() > NAME_BYTES {
            return Some(violation("it calls a function whose name is too long"));
        }
        self.call_count += 1;
        if self.call_count > self.limits.calls {
            let end = End::Limit {
                which: WhichLimit::Calls,
                limit: self.limits.calls,
                observed: self.call_count,
            };
            self.call_count = self.limits.calls;
            self.stop(end, TerminateReason::Limit);
            return None;
        }
        let bytes = call.input.len();
        if self.waiting_bytes.saturating_add(bytes) > WAITING_BYTES {
            self.answer(
                call.id,
                Err(refused(format!(
                    "{}: calls with {WAITING_BYTES} bytes of input are under way; await some first",
                    call.tool
                ))),
            );
            return None;
        }
        let Ok(input) = RawValue::from_string(call.input.as_str().to_owned()) else {
            return Some(violation("the input of a call is not JSON"));
        };
        self.waiting_bytes += bytes;
        self.queue.push_back(Queued {
            id: call.id,
            function: call.tool.as_str().to_owned(),
            input,
        });
        self.begin_calls();
        self.note_waiting();
        None
    }

    /// Hands queued calls to the handler as far as there is room.
    fn begin_calls(&mut self) {
        let most = usize::try_from(self.limits.calls_in_flight)
            .unwrap_or(usize::MAX)
            .max(1);
        while self.calls.len() < most {
            let Some(Queued {
                id,
                function,
                input,
            }) = self.queue.pop_front()
            else {
                return;
            };
            let input_bytes = input.get().len();
            let handler = Arc::clone(&self.handler);
            self.calls.spawn(async move {
                // A handler that panics is a bug of the host's, and no reason for the script to wait
                // for ever.
                let answer = AssertUnwindSafe(async move { handler.call(function, input).await });
                let outcome = answer.catch_unwind().await.unwrap_or_else(|_panic| {
                    Err(refused(
                        "the host failed while it answered the call".to_owned(),
                    ))
                });
                Answered {
                    id,
                    input_bytes,
                    outcome,
                }
            });
        }
    }

    fn reply(&mut self, done: Result<Answered, JoinError>) {
        // Only a run that is being stopped has tasks that do not come to their end.
        let Ok(Answered {
            id,
            input_bytes,
            outcome,
        }) = done
        else {
            return;
        };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(input_bytes);
        self.answer(id, outcome);
        self.begin_calls();
        self.note_waiting();
    }

    fn answer(&self, call: u64, outcome: Result<Box<RawValue>, Thrown>) {
        let limit = usize::try_from(self.limits.reply_bytes)
            .unwrap_or(usize::MAX)
            .min(LONGEST_ANSWER);
        let (what, bytes) = match &outcome {
            Ok(json) => ("result", json.get().len()),
            Err(thrown) => (
                "error",
                thrown.message.len().saturating_add(thrown.fields.len()),
            ),
        };
        let outcome = if bytes > limit {
            Err(refused(format!(
                "the {what} is {bytes} bytes of JSON, over the limit of {limit} bytes"
            )))
        } else if let Err(unread) = self.outbox.has_room(bytes) {
            Err(refused(format!(
                "the {what} of {bytes} bytes is lost, because {unread} bytes of others wait for the \
                 script; await some calls before the next"
            )))
        } else {
            outcome.map(|json| Text::from(Box::<str>::from(json)))
        };
        // No longer than the limit above, so it can be encoded.
        let _short = self.outbox.send(HostFrame::Reply(Reply { call, outcome }));
    }

    fn note_waiting(&mut self) {
        let waiting = !self.calls.is_empty() || !self.queue.is_empty();
        self.cpu = self.worker.cpu_time().unwrap_or(self.cpu);
        self.clock.set_waiting(waiting, Instant::now(), self.cpu);
    }

    /// Asks the worker to stop, and sets the time for it.
    fn stop(&mut self, end: End, reason: TerminateReason) {
        if self.stopping.is_some() {
            return;
        }
        let _small = self.outbox.send(HostFrame::Terminate { reason });
        self.stopping = Some(Stopping {
            end,
            kill_at: Instant::now() + GRACE,
        });
        self.calls.abort_all();
        self.queue.clear();
    }

    fn passed(&self, now: Instant, began: Instant) -> Option<(End, TerminateReason)> {
        let spent = self.clock.spent(now, self.cpu);
        let whole = now.saturating_duration_since(began);
        let (which, limit, observed, reason) = if spent >= self.limits.script_time {
            let limit = self.limits.script_time;
            (
                WhichLimit::ScriptTime,
                limit,
                spent,
                TerminateReason::ScriptTime,
            )
        } else if whole >= self.limits.run_time {
            (
                WhichLimit::RunTime,
                self.limits.run_time,
                whole,
                TerminateReason::RunTime,
            )
        } else {
            return None;
        };
        let end = End::Limit {
            which,
            limit: milliseconds(limit),
            observed: milliseconds(observed),
        };
        Some((end, reason))
    }

    fn max_worker_frame(&self) -> usize {
        let l = &self.limits;
        let largest = l
            .input_bytes
            .max(l.result_bytes)
            .max(l.output_bytes)
            .max(l.message_bytes);
        // Names, stacks and messages of errors come on top.
        usize::try_from(largest)
            .unwrap_or(usize::MAX)
            .saturating_add(1 << 20)
    }

    async fn finish(mut self, stop: Stop) -> Ended {
        let now = Instant::now();
        self.cpu = self.worker.cpu_time().unwrap_or(self.cpu);
        let script_time = self.clock.spent(now, self.cpu);
        let death = match &stop {
            // Killed, and not waited for: taking down a V8 takes longer than many a script.
            Stop::Told(_) => {
                drop(self.worker);
                Death::default()
            }
            _ => self.worker.end().await,
        };
        // Every future of the handler is dropped before the caller has the end of the run.
        self.calls.shutdown().await;
        let end = match (self.stopping, stop) {
            (Some(stopping), _) => stopping.end,
            (None, Stop::Told(done)) => told(done, &self.limits),
            (None, Stop::Gone) => crashed(&death, &self.limits),
            (None, Stop::Violation(reason)) => End::Crashed {
                reason: format!("the worker breaks the protocol: {reason}"),
            },
            (None, Stop::NotReady | Stop::Kill) => End::NotStarted {
                reason: with_stderr(
                    "the worker did not come up; does the program call worker_main_if_requested \
                     first thing in its main?"
                        .to_owned(),
                    &death,
                ),
            },
        };
        Ended {
            end,
            output: self.collector.into_captured(),
            script_time,
            calls: self.call_count,
        }
    }

    fn memory_end(&self, hit: LimitHit) -> End {
        End::Limit {
            which: WhichLimit::Memory,
            // A worker is asked which of the two it was, not what they are.
            limit: if hit.limit == self.limits.buffer_bytes {
                self.limits.buffer_bytes
            } else {
                self.limits.heap_bytes
            },
            observed: hit.observed,
        }
    }
}

fn violation(what: &str) -> Stop {
    Stop::Violation(what.to_owned())
}

fn refused(message: String) -> Thrown {
    Thrown {
        class: ErrorClass::Protocol,
        message: message.into(),
        fields: "{}".into(),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reads what is there into the decoder; false at the end of the stream. Nothing is lost when the
/// future is dropped while it waits.
async fn receive(reading: &mut OwnedReadHalf, decoder: &mut Decoder<WorkerFrame>) -> bool {
    loop {
        if reading.readable().await.is_err() {
            return false;
        }
        match reading.try_read_buf(decoder.space(READ_BYTES)) {
            Ok(read) => return read > 0,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
    }
}
