//! One run: the loop between a worker's socket, the calls, the clock and the caller's cancel.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::wire::{
    Call, Done, HostFrame, LeftTimer, LimitHit, Reply, Start, WireError, WorkerFrame, WorkerLimits,
};
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::endings::{Lost, told};
use super::handler::{CallHandler, Undelivered};
use super::outbox::{LONGEST_ANSWER, Outbox};
use super::output::{Emitted, Printed};
use super::pending_calls::{Answered, Outcome, PendingCalls, Refusal, error_bytes};
use super::script_clock::{ScriptClock, Work, WorkRead};
use super::worker_process::{Death, Worker};
use crate::ended::{End, Ended, WhichLimit};
use crate::job::{ERROR_BYTES, Job, Limits};
use crate::wire::FrameReader;

/// Time a worker has to stop by itself before it is killed.
const GRACE: Duration = Duration::from_millis(250);

/// Bytes of a function's name in a call.
const NAME_BYTES: usize = 4096;

/// The longest time limit, a hundred years. Moments in time cannot be computed with longer ones.
pub(super) const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Runs the job in the worker, which is ready, and has been killed when this returns.
pub(super) async fn run(
    worker: Worker,
    mut reader: FrameReader<WorkerFrame>,
    job: Job,
    handler: Arc<dyn CallHandler>,
    cancel: CancellationToken,
) -> Ended {
    let began = Instant::now();
    let mut limits = job.limits.clone();
    limits.script_time = limits.script_time.min(LONGEST);
    limits.run_time = limits.run_time.min(LONGEST);
    reader.set_max_frame(max_worker_frame(&limits));
    let mut run = RunLoop {
        work: WorkRead::default(),
        worker,
        outbox: Outbox::default(),
        clock: ScriptClock::new(began),
        printed: Printed::new(&limits),
        calls: PendingCalls::new(handler, limits.calls_in_flight),
        emitted: Emitted::default(),
        timers: Vec::new(),
        call_count: 0,
        memory: None,
        stopping: None,
        limits,
    };
    let stop = run.drive(job, reader, &cancel, began).await;
    run.finish(stop).await
}

struct RunLoop {
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
    memory: Option<LimitHit>,
    stopping: Option<Stopping>,
}

/// A run that the host has decided to end.
struct Stopping {
    end: End,
    kill_at: Instant,
}

/// The reasons for the end of the loop.
enum Stop {
    /// The worker told how the script ended.
    Told(Done),
    /// The worker is of no use any more. It is late if it did not stop in time.
    Lost(Lost),
}

impl RunLoop {
    async fn drive(
        &mut self,
        job: Job,
        mut reader: FrameReader<WorkerFrame>,
        cancel: &CancellationToken,
        began: Instant,
    ) -> Stop {
        if let Err(error) = self.start(job) {
            self.stop(End::NotStarted {
                reason: format!("the script is too large: {error}"),
            });
        }
        let timer = tokio::time::sleep_until((began + self.limits.run_time).into());
        tokio::pin!(timer);
        loop {
            // The frames that have been received.
            loop {
                match reader.next_read() {
                    Ok(Some(frame)) => {
                        if let Some(stop) = self.take(frame) {
                            return stop;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return violation(&error.to_string()),
                }
            }
            self.calls.begin();
            let now = Instant::now();
            let wake = match &self.stopping {
                Some(stopping) if now >= stopping.kill_at => return Stop::Lost(Lost::Late),
                Some(stopping) => stopping.kill_at,
                None => {
                    let work = self.work.get(&self.worker);
                    if let Some(end) = self.passed(now, began, work) {
                        self.stop(end);
                        continue;
                    }
                    self.clock
                        .look_again(self.limits.script_time, now, work)
                        .min(began + self.limits.run_time)
                }
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
                    self.note_waiting();
                }
                () = timer.as_mut() => {}
            }
            self.work.expire();
        }
    }

    fn take(&mut self, frame: WorkerFrame) -> Option<Stop> {
        match frame {
            WorkerFrame::Ready(_) => return Some(violation("it says twice that it is ready")),
            WorkerFrame::Read { .. } => return Some(violation("it reads what it was not given")),
            WorkerFrame::Call(call) => return self.call(call),
            WorkerFrame::Cancel { call } => self.calls.cancel(call),
            WorkerFrame::Output { text } => {
                self.calls.printed(self.printed.head(&text));
            }
            WorkerFrame::More { text } => {
                self.calls.printed(self.printed.more(&text));
            }
            WorkerFrame::Emit { block } => {
                if let Err(what) = self.emitted.take(block, &self.limits) {
                    return Some(violation(what));
                }
            }
            WorkerFrame::OutputEnd(mut end) => {
                self.printed.end(&end);
                end.timers.truncate(LeftTimer::MAX);
                self.timers = end.timers;
            }
            WorkerFrame::LimitHit(hit) => {
                self.memory.get_or_insert(hit);
                if self.stopping.is_none() {
                    let end = self.memory_end(hit);
                    self.stop(end);
                }
            }
            WorkerFrame::Done(done) => return Some(Stop::Told(done)),
        }
        None
    }

    fn start(&mut self, job: Job) -> Result<(), WireError> {
        let l = &self.limits;
        self.outbox.push(HostFrame::Start(Start {
            source_name: job.source_name,
            functions: job.functions,
            source_map: job.source_map,
            limits: WorkerLimits {
                output_bytes: l.output_bytes,
                output_lines: l.output_lines,
                message_bytes: l.message_bytes.max(l.output_bytes),
                depth: l.depth,
                more_bytes: l.whole_bytes,
                emits: l.emits,
                emit_bytes: l.emit_bytes,
                // Where it is kept in whole, this end cuts it.
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
            Ok(()) => self.note_waiting(),
            Err(Refusal::Answer(thrown)) => self.answer(id, &function, Err(thrown)),
            Err(Refusal::Violation(what)) => return Some(violation(what)),
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
        let limit = limit.min(LONGEST_ANSWER);
        let (what, bytes, limit) = match &outcome {
            Ok(json) => ("result", json.get().len(), limit),
            Err(thrown) => ("error", error_bytes(thrown), limit.max(ERROR_BYTES)),
        };
        let lost = if bytes > limit {
            Some(format!(
                "the {what} is {bytes} bytes of JSON, over the limit of {limit} bytes"
            ))
        } else if let Err(unread) = self.outbox.has_room(bytes) {
            Some(format!(
                "the {what} of {bytes} bytes is lost, because {unread} bytes of others wait for the \
                 script; await some calls before the next"
            ))
        } else {
            None
        };
        let outcome = match lost {
            Some(why) => Err(self.calls.undelivered(function, Undelivered::Answer, why)),
            None => outcome.map(|json| Box::<str>::from(json).into()),
        };
        // No longer than the limit above, so it can be encoded.
        let _short = self.outbox.push(HostFrame::Reply(Reply { call, outcome }));
    }

    fn note_waiting(&mut self) {
        let waiting = !self.calls.is_empty();
        let work = self.work.get(&self.worker);
        self.clock.set_waiting(waiting, Instant::now(), work);
    }

    /// Asks the worker to stop, and sets the time for it.
    fn stop(&mut self, end: End) {
        if self.stopping.is_some() {
            return;
        }
        self.worker.ask_to_stop();
        self.stopping = Some(Stopping {
            end,
            kill_at: Instant::now() + GRACE,
        });
        self.calls.clear();
    }

    /// The limit of time that has been reached, if one has.
    fn passed(&self, now: Instant, began: Instant, work: Work) -> Option<End> {
        let spent = self.clock.spent(now, work);
        let whole = now.saturating_duration_since(began);
        let (which, limit, observed) = if spent >= self.limits.script_time {
            (WhichLimit::ScriptTime, self.limits.script_time, spent)
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
            // Killed, and not waited for: taking down a V8 takes longer than many a script.
            Stop::Told(_) => {
                drop(self.worker);
                Death::default()
            }
            _ => self.worker.end().await,
        };
        // Every future of the handler is dropped before the caller has the end of the run.
        self.calls.end().await;
        let end = match (self.stopping, stop) {
            (Some(stopping), _) => stopping.end,
            (None, Stop::Told(done)) => told(done, &self.limits),
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
        // The worker says which of the two limits passed; their values are the host's own.
        let is_buffers = hit.limit == self.limits.buffer_bytes;
        let (heap, buffers) = (self.limits.heap_bytes, self.limits.buffer_bytes);
        End::Limit {
            which: WhichLimit::Memory,
            limit: if is_buffers { buffers } else { heap },
            observed: hit.observed,
        }
    }
}

fn violation(what: &str) -> Stop {
    Stop::Lost(Lost::Violation(what.to_owned()))
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reads what is there, or waits until a socket that is full takes more; false at the end of the
/// stream.
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
        // A worker that is gone shows on the reading side.
        _ = Outbox::room(writing) => true,
    }
}

/// The longest frame a worker may send.
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
