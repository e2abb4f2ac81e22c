//! Runs that end by time, entries or a cancel. `tests/hostile` has scripts that attack their limits.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callgate_sandbox::{CallHandler, End, Ended, ScriptCall, Thrown, WhichLimit};
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::limited;
use crate::support::{job, launcher, printed, returned, run_by, run_job};

#[tokio::test]
async fn limits_may_be_as_large_as_they_can() {
    let ended = run_job(limited("return await echo({ a: 1 });", |limits| {
        (limits.script_time, limits.run_time) = (Duration::MAX, Duration::MAX);
        limits.buffer_bytes = u64::MAX;
        limits.output_bytes = u64::MAX;
        limits.output_lines = u64::MAX;
        limits.message_bytes = u64::MAX;
        limits.whole_bytes = u64::MAX;
        limits.emits = u64::MAX;
        limits.emit_bytes = u64::MAX;
        limits.result_bytes = u64::MAX;
        limits.input_bytes = u64::MAX;
        limits.reply_bytes = u64::MAX;
        limits.calls_in_flight = u32::MAX;
        limits.calls = u64::MAX;
    }))
    .await;
    assert_eq!(returned(&ended), "{\"a\":1}");
}

#[tokio::test]
async fn waiting_for_a_call_is_not_script_time() {
    let job = limited("return await never({});", |limits| {
        limits.script_time = Duration::from_millis(100);
        limits.run_time = Duration::from_millis(600);
    });
    let Ended {
        end, script_time, ..
    } = run_job(job).await;
    let is_run_time =
        matches!(end, End::Limit { which, limit: 600, .. } if which == WhichLimit::RunTime);
    assert!(is_run_time, "{end:?}");
    assert!(script_time < Duration::from_millis(100), "{script_time:?}");
}

/// Its calls have waited for approval for a part of the time since this moment.
struct Approving(Instant, u32);

impl CallHandler for Approving {
    fn call(&self, _: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        Box::pin(std::future::pending())
    }

    fn approval_time(&self) -> Duration {
        self.0.elapsed() / self.1
    }
}

#[tokio::test]
async fn waiting_for_approval_is_not_run_time() {
    let script = "await new Promise(done => setTimeout(done, 1200)); return 1";
    for (part, expected) in [(1, None), (4, Some(WhichLimit::RunTime))] {
        let job = limited(script, |limits| {
            limits.run_time = Duration::from_millis(600);
        });
        let calls = Arc::new(Approving(Instant::now(), part));
        let ended = run_by(&launcher(0), job, calls, CancellationToken::new()).await;
        let which = match &ended.end {
            End::Limit { which, .. } => Some(*which),
            _ => None,
        };
        assert_eq!(which, expected, "{:?}", ended.end);
    }
}

#[tokio::test]
async fn waiting_for_a_timer_is_not_script_time() {
    let script = "await new Promise(done => setTimeout(done, 1200)); return 1";
    let ended = run_job(limited(script, |limits| {
        limits.script_time = Duration::from_secs(1);
    }))
    .await;
    assert_eq!(returned(&ended), "1");
    assert!(ended.script_time < Duration::from_secs(1));
}

#[tokio::test]
async fn script_over_entry_limit_ends() {
    let script = "console.log('before'); return 'x'.repeat(2 ** 28).split('').length;";
    let job = limited(script, |limits| limits.script_time = Duration::from_secs(8));
    let Ended { end, output, .. } = run_job(job).await;
    let which = WhichLimit::Entries;
    assert!(
        matches!(end, End::Limit { which: hit, .. } if hit == which),
        "{end:?}"
    );
    assert_eq!(printed(&output), "before\n");
}

/// Works on a result, without a break, until the process ends.
struct WorksWhile(PathBuf, Arc<AtomicBool>);

impl CallHandler for WorksWhile {
    fn call(&self, _: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        let (process, has_ended) = (self.0.clone(), Arc::clone(&self.1));
        Box::pin(async move {
            // Like a call that waits for its server.
            tokio::task::yield_now().await;
            let began = Instant::now();
            while process.exists() && began.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
            has_ended.store(!process.exists(), Ordering::SeqCst);
            Ok(RawValue::NULL.to_owned())
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_work_does_not_delay_the_clock() {
    let job = limited("echo({}); while (true) {}", |limits| {
        limits.script_time = Duration::from_millis(200);
    });
    let worker = launcher(0).take(&job.limits).await.unwrap();
    let has_ended = Arc::new(AtomicBool::new(false));
    let process = PathBuf::from(format!("/proc/{}", worker.id()));
    let calls = Arc::new(WorksWhile(process, Arc::clone(&has_ended)));
    let Ended { end, .. } = worker.run(job, calls, CancellationToken::new()).await;
    let which = WhichLimit::ScriptTime;
    assert!(
        matches!(end, End::Limit { which: hit, .. } if hit == which),
        "{end:?}"
    );
    assert!(has_ended.load(Ordering::SeqCst), "the script had 20 s");
}

/// Cancels the run when the script calls, and never answers.
struct CancelOnCall(CancellationToken);

impl CallHandler for CancelOnCall {
    fn call(&self, _: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        self.0.cancel();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn cancel_ends_a_run_at_once() {
    for script in ["never({}); while (true) {}", "await never({});"] {
        let cancel = CancellationToken::new();
        let calls = Arc::new(CancelOnCall(cancel.clone()));
        let job = job(&format!("console.log('before'); {script}"));
        let Ended { end, output, .. } = run_by(&launcher(0), job, calls, cancel).await;
        assert!(matches!(end, End::Cancelled), "{script}: {end:?}");
        assert_eq!(printed(&output), "before\n", "{script}");
    }
}
