//! Runs that are ended: by time, memory or calls, or because they are cancelled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_sandbox::{CallHandler, End, Ended, Limits, ScriptCall, Thrown, WhichLimit};
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::limited;
use crate::support::{job, launcher, printed, returned, run_job};

/// Runs a script that prints `before` first, and expects it to end on this limit, with that output,
/// well before ten seconds.
async fn check(script: &str, expected: WhichLimit, change: impl FnOnce(&mut Limits)) -> Ended {
    let began = Instant::now();
    let job = limited(&format!("console.log('before');\n{script}"), change);
    let ended = run_job(job).await;
    assert!(
        matches!(ended.end, End::Limit { which, limit: 1.., observed: 1.. } if which == expected),
        "{script}: {:?}",
        ended.end
    );
    assert_eq!(printed(&ended.output), "before\n", "{script}");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{script}: {took:?}");
    ended
}

#[tokio::test]
async fn script_time() {
    for script in [
        "while (true) {}",
        "never({}); while (true) {}",
        "for (;;) await null;",
        "await new Promise(r => setTimeout(r, 60000));",
        "setInterval(() => {}, 1); await new Promise(() => {});",
        // Built-ins that V8 does not stop.
        "Array.prototype.includes.call({length: 2 ** 53 - 1}, 1);",
        "new Array(2 ** 32 - 2).fill(0);",
        "/(a+)+$/.test('a'.repeat(50) + 'b');",
        // Code that runs again while the run is being stopped.
        "try { while (true) {} } finally { while (true) {} }",
        "Error.prepareStackTrace = () => { while (true) {} }; while (true) { try { null.x } catch {} }",
        "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {});",
        "return { toJSON() { while (true) {} } };",
    ] {
        check(script, WhichLimit::ScriptTime, |_| {}).await;
    }
    // Nothing of a thrown value is run, unless it is a real error.
    for script in [
        "throw { get name() { while (true) {} }, get message() { while (true) {} } };",
        "throw new Proxy(new Error('x'), { get() { while (true) {} }, getPrototypeOf() { while (true) {} } });",
    ] {
        let end = run_job(limited(script, |_| {})).await.end;
        assert!(matches!(end, End::Threw(_)), "{script}: {end:?}");
    }
}

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
async fn run_time() {
    check("await never({});", WhichLimit::RunTime, |limits| {
        limits.run_time = Duration::from_millis(300);
    })
    .await;
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

#[tokio::test]
async fn entries() {
    check(
        "return 'x'.repeat(2 ** 28).split('').length;",
        WhichLimit::Entries,
        |limits| limits.script_time = Duration::from_secs(8),
    )
    .await;
}

#[tokio::test]
async fn memory() {
    for script in [
        "const a = []; while (true) a.push({ x: new Array(100).fill(1.5) });",
        "const a = []; while (true) a.push((a.length + 'é').repeat(1e6).split('').join('-'));",
        "const a = []; while (true) a.push(new Uint8Array(1e6));",
        "const a = []; while (true) a.push(new ArrayBuffer(3e8));",
        "const a = []; while (true) a.push(new TextEncoder().encode('x'.repeat(1e6)));",
        "const m = new Map(); for (let i = 0;; i++) m.set(i, { i });",
        "let s = 'x'; while (true) { s = s + s; JSON.parse('[\"' + s + '\"]'); }",
        // Memory that V8 takes outside of its heap.
        "return JSON.stringify('a'.repeat(5e8)).length;",
        "return JSON.parse('['.repeat(2e7)).length;",
        "const a = []; while (true) a.push(new Intl.DateTimeFormat('de'));",
    ] {
        check(script, WhichLimit::Memory, |limits| {
            limits.heap_bytes = 64 << 20;
            limits.buffer_bytes = 64 << 20;
            limits.script_time = Duration::from_secs(8);
        })
        .await;
    }
}

#[tokio::test]
async fn what_makes_v8_abort_is_typed_too() {
    for script in [
        "JSON.stringify('a'.repeat(5e8));",
        "Array.prototype.sort.call({ length: 2 ** 53 - 1 });",
        "new Array(2 ** 28).fill(0).sort();",
    ] {
        let script = format!("console.log('before');\n{script}");
        let Ended { end, output, .. } = run_job(limited(&script, |_| {})).await;
        let is_typed = matches!(end, End::Crashed { .. } | End::Limit { .. });
        assert!(is_typed, "{script}: {end:?}");
        assert_eq!(printed(&output), "before\n", "{script}");
    }
}

#[tokio::test]
async fn calls() {
    let script = "for (let i = 0; i < 30; i++) await echo({ i });";
    check(script, WhichLimit::Calls, |limits| limits.calls = 20).await;
}

#[tokio::test]
async fn never_settled() {
    for script in [
        "await new Promise(() => {});",
        "await Promise.race([]);",
        "await { then() {} };",
        "const id = setInterval(() => {}, 1); clearInterval(id); await new Promise(() => {});",
    ] {
        let began = Instant::now();
        let end = run_job(job(script)).await.end;
        assert!(matches!(end, End::NeverSettled), "{script}: {end:?}");
        assert!(began.elapsed() < Duration::from_secs(5), "{script}");
    }
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
        let began = Instant::now();
        let Ended { end, output, .. } = launcher(0).run(job, calls, cancel).await;
        assert!(matches!(end, End::Cancelled), "{script}: {end:?}");
        assert_eq!(printed(&output), "before\n", "{script}");
        // The limit of script time alone would be ten seconds.
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{script}: {took:?}");
    }
}
