//! Calls: concurrent, in sequence, aborted, not awaited.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::sync::Arc;

use callgate_sandbox::{CallHandler, Ended, Job, ScriptCall, Thrown};
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use support::{Handler, job, launcher, run, run_by, run_job, run_with, shown};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_hundred_calls_are_in_flight_together() {
    // No call of `gate` is answered before a hundred are in flight.
    let script = "const all = await Promise.all(Array.from({ length: 100 }, () => gate({ n: 100 })));\n\
         return [all.length, new Set(all).size];";
    assert_eq!(shown(&run(script).await), "=> [100,100]\n");
}

#[tokio::test]
async fn calls_over_the_in_flight_limit_wait() {
    let mut job = job(
        "const all = await Promise.all(Array.from({ length: 500 }, (_, i) => echo({ i })));\n\
         return all.every((value, i) => value.i === i);",
    );
    job.limits.calls_in_flight = 3;
    assert_eq!(shown(&run_job(job).await), "=> true\n");
}

#[tokio::test]
async fn unawaited_calls_are_completed() {
    let script =
        "echo({ a: 1 }).then((first) => echo(first)).then((last) => console.log(last)); return 1;";
    let ended = run(script).await;
    assert_eq!(shown(&ended), "{ a: 1 }\n=> 1\n");
}

#[tokio::test]
async fn panicking_handler_fails_the_call() {
    struct Broken;
    impl CallHandler for Broken {
        fn call(&self, _: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
            panic!("a bug");
        }
    }
    let script = "try { await echo({}); } catch (e) { return `${e.name}: ${e.message}`; }";
    let ended = run_with(job(script), Broken).await;
    let error = "McpProtocolError: the host failed while it answered the call";
    assert_eq!(shown(&ended), format!("=> \"{error}\"\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn spares_serve_many_runs_side_by_side() {
    let launcher = launcher(2);
    let runs = (0..12).map(|n| {
        let mut job = job(&format!("return (await echo({{ n: {n} }})).n;"));
        if n % 2 == 0 {
            // A heap size that differs from the spares'.
            job.limits.heap_bytes = 64 << 20;
        }
        let launcher = launcher.clone();
        tokio::spawn(async move {
            let handler = Arc::new(Handler::default());
            shown(&run_by(&launcher, job, handler, CancellationToken::new()).await)
        })
    });
    let ended = futures::future::join_all(runs).await;
    for (n, text) in ended.into_iter().enumerate() {
        assert_eq!(text.expect("no panic"), format!("=> {n}\n"));
    }
}

#[tokio::test]
async fn script_runs_without_jit() {
    let mut job = job("let n = 0; for (let i = 0; i < 1e5; i++) n += i; return n;");
    job.limits.jit = false;
    assert_eq!(shown(&run_job(job).await), "=> 4999950000\n");
}

/// The result of the job, and the number of calls of each function.
async fn observed(job: Job) -> (Ended, String) {
    let handler = Handler::default();
    let calls = Arc::clone(&handler.calls);
    let ended = run_with(job, handler).await;
    let calls = format!("{:?}", calls.lock().unwrap());
    (ended, calls)
}

#[tokio::test]
async fn an_aborted_signal_makes_no_call() {
    let job = job("const signal = AbortSignal.abort('enough');
         const said = [];
         for (const call of [() => echo({}, { signal }), () => mcp.callTool('echo', {}, { signal })])
           await call().catch((reason) => said.push(reason));
         return said;");
    let (ended, calls) = observed(job).await;
    assert_eq!(shown(&ended), "=> [\"enough\",\"enough\"]\n");
    assert_eq!(calls, "{}");
}

#[tokio::test]
async fn call_aborted_while_queued_is_not_made() {
    let mut job = job("const c = new AbortController();
         const calls = [never({}, { signal: c.signal }), echo({}, { signal: c.signal })];
         await 0;
         c.abort('both');
         const all = await Promise.allSettled(calls);
         return [...all.map((one) => one.reason), await told({})];");
    job.limits.calls_in_flight = 1;
    let (ended, calls) = observed(job).await;
    assert_eq!(shown(&ended), "=> [\"both\",\"both\",[null,[6,57]]]\n");
    assert!(!calls.contains("echo"), "{calls}");
}

#[tokio::test]
async fn long_lived_signal_does_not_retain_calls() {
    // Without garbage collection, the results alone would be three times the heap.
    let mut job = job("const { signal } = new AbortController();
         let bytes = 0;
         for (let i = 0; i < 100; i++) bytes += (await big({ bytes: 1_000_000 }, { signal })).length;
         return bytes;");
    job.limits.heap_bytes = 32 << 20;
    assert_eq!(shown(&run_job(job).await), "=> 99999800\n");
}
