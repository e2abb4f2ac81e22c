//! One run: the loop between a worker's socket, the calls, the clock and the caller's cancel.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::wire::{
    Call, Done, HostFrame, LeftTimer, LimitHit, Reply, Start, WireError, WorkerFrame, WorkerLimits,
};
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::endings::{Lost, reported};
use super::handler::{CallHandler, Undelivered};
use super::outbox::{MAX_ANSWER_BYTES, Outbox};
use super::output::{Emitted, Printed};
use super::pending_calls::{Answered, Outcome, PendingCalls, Refusal, error_bytes};
use super::script_clock::{ScriptClock, Work, WorkRead};
use super::worker_process::{Death, Worker};
use crate::ended::{End, Ended, WhichLimit};
use crate::job::{ERROR_BYTES, Job, Limits};
use crate::wire::FrameReader;

/// Time for a worker to stop by itself before it is killed.
const STOP_GRACE: Duration = Duration::from_millis(250);

/// Bytes of a function's name in a call.
const NAME_BYTES: usize = 4096;

/// Maximum time limit: a hundred years. Adding more to an [`Instant`] can overflow.
const MAX_TIME: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Runs the job in a ready worker, which is killed before this returns.
pub(super) async fn run(
    worker: Worker,
    mut reader: FrameReader<WorkerFrame>,
    job: Job,
    handler: Arc<dyn CallHandler>,
    cancel: CancellationToken,
) -> Ended {
    let began = Instant::now();
    let mut limits = job.limits.clone();
    limits.script_time = limits.script_time.min(MAX_TIME);
    limits.wait_time = limits.wait_time.min(MAX_TIME);
    limits.run_time = limits.run_time.min(MAX_TIME);
    reader.set_max_frame(max_worker_frame(&limits));
    let mut work = WorkRead::default();
    let clock = ScriptClock::new(began, work.get(&worker));
    let mut run = RunLoop {
        began,
        work,
        worker,
        outbox: Outbox::default(),
        clock,
        printed: Printed::new(&limits),
        calls: PendingCalls::new(handler, limits.calls_in_flight),
        emitted: Emitted::default(),
        timers: Vec::new(),
        call_count: 0,
        stopping: None,
        limits,
    };
    let stop = run.drive(job, reader, &cancel).await;
    run.finish(stop).await
}

struct RunLoop {
    began: Instant,
    worker: Worker,
    outbox: Outbox,
    limits: Limits,
    clock: ScriptClock,
    work: WorkRead,
    printed: Printed,
    calls: PendingCalls,
    emitted: Emitted,
    timers: Vec<LeftTimer>,
    call_count: u64,
    stopping: Option<Stopping>,
}

/// A run that the host has decided to end.
struct Stopping {
    end: End,
    kill_at: Instant,
}

/// The reasons for the end of the loop.
enum Stop {
    /// The worker reported how the script ended.
    Done(Done),
    /// The worker is of no use any more. It is late if it did not stop in time.
    Lost(Lost),
}

impl RunLoop {
    async fn drive(
        &mut self,
        job: Job,
        mut reader: FrameReader<WorkerFrame>,
        cancel: &CancellationToken,
    ) -> Stop {
        if let Err(error) = self.start(job) {
            self.stop(End::NotStarted {
                reason: format!("the script is too large: {error}"),
            });
        }
        let timer = tokio::time::sleep_until((self.began + self.limits.run_time).into());
        tokio::pin!(timer);
        loop {
            if let Some(stop) = self.take_received(&mut reader) {
                return stop;
            }
            self.calls.begin();
            let Some(wake) = self.next_check() else {
                return Stop::Lost(Lost::Late);
            };
            if wake < timer.deadline().into_std() || timer.is_elapsed() {
                timer.as_mut().reset(wake.into());
            }
            self.outbox.flush(reader.socket());
            let blocked = !self.outbox.is_empty();
            tokio::select! {
                biased;
                () = cancel.cancelled(), if self.stopping.is_none() => {
                    self.stop(End::Cancelled);
                }
                read = read_or_room(&mut reader, blocked) => {
                    if !read {
                        return Stop::Lost(Lost::Gone);
                    }
                }
                answered = self.calls.next() => {
                    self.reply(answered);
                    while let Some(answered) = self.calls.next().now_or_never() {
                        self.reply(answered);
                    }
                    self.note_calling();
                }
                () = timer.as_mut() => {}
            }
            self.work.expire();
        }
    }

    /// Takes the frames that have been received.
    fn take_received(&mut self, reader: &mut FrameReader<WorkerFrame>) -> Option<Stop> {
        loop {
            match reader.next_read() {
                Ok(Some(frame)) => {
                    if let Some(stop) = self.take(frame) {
                        return Some(stop);
                    }
                }
                Ok(None) => return None,
                Err(error) => return Some(violation(&error.to_string())),
            }
        }
    }

    /// Stops a run that has passed a time limit, and returns when to check the limits again. `None`
    /// if a stopped worker has used up its grace time.
    fn next_check(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.stopping.is_none() {
            let work = self.work.get(&self.worker);
            let Some(end) = self.passed(now, work) else {
                let (script, wait) = (self.limits.script_time, self.limits.wait_time);
                let next = self.clock.next_check(script, wait, now, work);
                let end = self.began + self.limits.run_time + self.calls.approval_time();
                return Some(next.min(end));
            };
            self.stop(end);
        }
        let kill_at = self.stopping.as_ref()?.kill_at;
        (now < kill_at).then_some(kill_at)
    }

    fn take(&mut self, frame: WorkerFrame) -> Option<Stop> {
        match frame {
            WorkerFrame::Ready(_) => return Some(violation("it is ready for the second time")),
            WorkerFrame::Read { .. } => return Some(violation("it was given no text to parse")),
            WorkerFrame::Call(call) => return self.call(call),
            WorkerFrame::Cancel { call } => self.calls.cancel(call),
            WorkerFrame::Output { text, is_error } => {
                self.calls.printed(self.printed.head(&text), is_error);
            }
            WorkerFrame::More { text, is_error } => {
                self.calls.printed(self.printed.more(&text), is_error);
            }
            WorkerFrame::Emit { block } => {
                if let Err(fault) = self.emitted.take(block, &self.limits) {
                    return Some(violation(fault));
                }
            }
            WorkerFrame::OutputEnd(mut end) => {
                self.printed.end(&end);
                end.timers.truncate(LeftTimer::MAX);
                self.timers = end.timers;
            }
            WorkerFrame::LimitHit(hit) => {
                let end = self.memory_end(hit);
                self.stop(end);
            }
            WorkerFrame::Done(done) => return Some(Stop::Done(done)),
        }
        None
    }

    fn start(&mut self, job: Job) -> Result<(), WireError> {
        let l = &self.limits;
        self.outbox.push(HostFrame::Start(Start {
            source_name: job.source_name,
            functions: job.functions,
            source_map: job.source_map,
            input: job.input,
            limits: WorkerLimits {
                output_bytes: l.output_bytes,
                output_lines: l.output_lines,
                message_bytes: l.message_bytes.max(l.output_bytes),
                depth: l.depth,
                more_bytes: l.whole_bytes,
                emits: l.emits,
                emit_bytes: l.emit_bytes,
                // The host cuts a value that it keeps in whole.
                result_bytes: l.result_bytes.max(l.whole_bytes),
                frame_bytes: l.input_bytes,
                buffer_bytes: l.buffer_bytes,
                script_ms: milliseconds(l.script_time),
                run_ms: milliseconds(l.run_time),
            },
            code: job.code,
        }))
    }

    fn call(&mut self, call: Call) -> Option<Stop> {
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
            self.stop(end);
            return None;
        }
        let (id, function) = (call.id, call.tool.clone());
        match self.calls.take(call) {
            Ok(()) => self.note_calling(),
            Err(Refusal::Answer(thrown)) => self.answer(id, &function, Err(thrown)),
            Err(Refusal::Violation(fault)) => return Some(violation(fault)),
        }
        None
    }

    fn reply(&mut self, answered: Answered) {
        if let Some(outcome) = answered.outcome {
            self.answer(answered.id, &answered.function, outcome);
        }
    }

    fn answer(&mut self, call: u64, function: &str, outcome: Outcome) {
        let limit = usize::try_from(self.limits.reply_bytes).unwrap_or(usize::MAX);
        let limit = limit.min(MAX_ANSWER_BYTES);
        let (what, bytes, limit) = match &outcome {
            Ok(json) => ("result", json.get().len(), limit),
            Err(thrown) => ("error", error_bytes(thrown), limit.max(ERROR_BYTES)),
        };
        let lost = if bytes > limit {
            Some(format!(
                "the {what} is {bytes} bytes of JSON, over the limit of {limit} bytes"
            ))
        } else if let Err(unread) = self.outbox.check_room(bytes) {
            Some(format!(
                "the {what} of {bytes} bytes is lost, because {unread} bytes of other answers wait \
                 for the script; await some calls before the next"
            ))
        } else {
            None
        };
        let outcome = match lost {
            Some(reason) => Err(self
                .calls
                .undelivered(function, Undelivered::Answer, reason)),
            None => outcome.map(|json| Box::<str>::from(json).into()),
        };
        // The limit above ensures that it can be encoded.
        let _ = self.outbox.push(HostFrame::Reply(Reply { call, outcome }));
    }

    fn note_calling(&mut self) {
        let is_calling = !self.calls.is_empty();
        let work = self.work.get(&self.worker);
        self.clock.set_calling(is_calling, Instant::now(), work);
    }

    /// Asks the worker to stop, and sets the time for it.
    fn stop(&mut self, end: End) {
        if self.stopping.is_some() {
            return;
        }
        self.worker.ask_to_stop();
        self.stopping = Some(Stopping {
            end,
            kill_at: Instant::now() + STOP_GRACE,
        });
        self.calls.clear();
    }

    /// The end by a time limit that has been reached, if one has.
    fn passed(&self, now: Instant, work: Work) -> Option<End> {
        let spent = self.clock.spent(now, work);
        let waited = self.clock.waited(now, work);
        let whole = now.saturating_duration_since(self.began);
        let whole = whole.saturating_sub(self.calls.approval_time());
        let (which, limit, observed) = if spent >= self.limits.script_time {
            (WhichLimit::ScriptTime, self.limits.script_time, spent)
        } else if waited >= self.limits.wait_time {
            (WhichLimit::WaitTime, self.limits.wait_time, waited)
        } else if whole >= self.limits.run_time {
            (WhichLimit::RunTime, self.limits.run_time, whole)
        } else {
            return None;
        };
        Some(End::Limit {
            which,
            limit: milliseconds(limit),
            observed: milliseconds(observed),
        })
    }

    async fn finish(mut self, stop: Stop) -> Ended {
        let now = Instant::now();
        self.work.expire();
        let script_time = self.clock.spent(now, self.work.get(&self.worker));
        let death = match &stop {
            // Killed, and not waited for: shutting down V8 takes longer than many scripts run.
            Stop::Done(_) => {
                drop(self.worker);
                Death::default()
            }
            _ => self.worker.end().await,
        };
        // The caller must not see the end of the run before every future of the handler is dropped.
        self.calls.end().await;
        let end = match (self.stopping, stop) {
            (Some(stopping), _) => stopping.end,
            (None, Stop::Done(done)) => reported(done, &self.limits),
            (None, Stop::Lost(lost)) => lost.end(&death, &self.limits),
        };
        Ended {
            end,
            output: self.printed.into_captured(),
            emitted: self.emitted.blocks,
            timers: self.timers,
            jail: None,
            script_time,
        }
    }

    fn memory_end(&self, hit: LimitHit) -> End {
        // The worker reports which of the two limits was passed; their values are the host's own.
        let is_buffers = hit.limit == self.limits.buffer_bytes;
        let (heap, buffers) = (self.limits.heap_bytes, self.limits.buffer_bytes);
        End::Limit {
            which: WhichLimit::Memory,
            limit: if is_buffers { buffers } else { heap },
            observed: hit.observed,
        }
    }
}

fn violation(fault: &str) -> Stop {
    Stop::Lost(Lost::Violation(fault.to_owned()))
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reads available bytes, or waits until a full socket accepts more; false at the end of the stream.
pub(super) async fn read_or_room(reader: &mut FrameReader<WorkerFrame>, full: bool) -> bool {
    if !full {
        let read = poll_fn(|context| reader.poll_read(context)).await;
        return read.unwrap_or(false);
    }
    let Ok(writing) = reader.socket().try_clone() else {
        return false;
    };
    tokio::select! {
        biased;
        read = poll_fn(|context| reader.poll_read(context)) => read.unwrap_or(false),
        // The reading side reports a worker that is gone.
        _ = Outbox::room(writing) => true,
    }
}

/// Maximum bytes of a frame from the worker.
fn max_worker_frame(limits: &Limits) -> usize {
    let l = limits;
    let shown = l.result_bytes.max(l.output_bytes).max(l.message_bytes);
    let largest = shown
        .max(l.input_bytes)
        .max(l.whole_bytes)
        .max(l.emit_bytes);
    // Names, stacks and messages of errors come on top.
    usize::try_from(largest)
        .unwrap_or(usize::MAX)
        .saturating_add(1 << 20)
}
