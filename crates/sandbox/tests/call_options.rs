//! What a script says of one call besides its input: signals, timeouts, and where it was made.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use callgate_sandbox::{Ended, Job};
use support::{Handler, job, launcher, run, shown};
use tokio_util::sync::CancellationToken;

async fn check(script: &str, expected: &str) {
    assert_eq!(shown(&run(script).await), expected, "{script}");
}

/// Runs the job and says besides how many calls of which name were made, and how many of `never`
/// were dropped before the run had ended.
async fn observed(job: Job) -> (Ended, String, u64) {
    let handler = Handler::default();
    let (calls, dropped) = (Arc::clone(&handler.calls), Arc::clone(&handler.dropped));
    let ended = launcher(0)
        .run(job, Arc::new(handler), CancellationToken::new())
        .await;
    let calls = format!("{:?}", calls.lock().unwrap());
    (ended, calls, dropped.load(Ordering::SeqCst))
}

#[tokio::test]
async fn an_aborted_signal_makes_no_call() {
    let job = job("const signal = AbortSignal.abort('enough');
         const said = [];
         for (const call of [() => echo({}, { signal }), () => mcp.callTool('echo', {}, { signal })])
           await call().catch((reason) => said.push(reason));
         return said;");
    let (ended, calls, _) = observed(job).await;
    assert_eq!(shown(&ended), "=> [\"enough\",\"enough\"]\n");
    assert_eq!(calls, "{}");
    assert_eq!(ended.calls, 0);
}

#[tokio::test]
async fn abort_drops_the_call() {
    let job = job("const c = new AbortController();
         const call = never({}, { signal: c.signal });
         await echo({});
         c.abort(new Error('enough'));
         try { await call } catch (error) { console.log(String(error), error === c.signal.reason) }
         while (await dropped({}) < 1);");
    let (ended, calls, _) = observed(job).await;
    assert_eq!(shown(&ended), "Error: enough true\n");
    assert!(calls.contains("\"never\": 1"), "{calls}");
}

#[tokio::test]
async fn one_signal_drops_many() {
    check(
        "const c = new AbortController();
         const calls = Array.from({ length: 300 }, () => never({}, { signal: c.signal }));
         await echo({});
         c.abort();
         const all = await Promise.allSettled(calls);
         while (await dropped({}) < 300);
         return all.every((one) => one.reason.name === 'AbortError');",
        "=> true\n",
    )
    .await;
}

#[tokio::test]
async fn a_run_does_not_wait_for_calls_that_were_aborted() {
    check(
        "const c = new AbortController(); never({}, { signal: c.signal }).catch(() => {}); c.abort(); return 1;",
        "=> 1\n",
    )
    .await;
    check(
        "const signal = AbortSignal.timeout(20);
         try { await never({}, { signal }) } catch (error) { return [error.name, error instanceof DOMException] }",
        "=> [\"TimeoutError\",true]\n",
    )
    .await;
    check(
        "const c = new AbortController();
         const signal = AbortSignal.any([AbortSignal.timeout(60_000), c.signal]);
         const call = never({}, { signal });
         c.abort('one of them');
         return await call.catch((reason) => reason);",
        "=> \"one of them\"\n",
    )
    .await;
}

#[tokio::test]
async fn what_was_aborted_before_its_turn_is_never_made() {
    let mut job = job("const c = new AbortController();
         const calls = [never({}, { signal: c.signal }), echo({}, { signal: c.signal })];
         await 0;
         c.abort('both');
         const all = await Promise.allSettled(calls);
         return [...all.map((one) => one.reason), await told({})];");
    job.limits.calls_in_flight = 1;
    let (ended, calls, _) = observed(job).await;
    assert_eq!(shown(&ended), "=> [\"both\",\"both\",[null,[6,57]]]\n");
    assert!(!calls.contains("echo"), "{calls}");
}

#[tokio::test]
async fn an_abort_after_the_answer_is_nothing() {
    check(
        "const c = new AbortController();
         let settled = 0;
         const value = await echo({ a: 1 }, { signal: c.signal }).finally(() => settled++);
         c.abort();
         return [value, settled, await echo({}).then(() => settled)];",
        "=> [{\"a\":1},1,1]\n",
    )
    .await;
}

#[tokio::test]
async fn a_signal_that_lives_long_keeps_no_calls() {
    // Kept, the results alone would be three times the heap.
    let mut job = job("const { signal } = new AbortController();
         let bytes = 0;
         for (let i = 0; i < 100; i++) bytes += (await big({ bytes: 1_000_000 }, { signal })).length;
         return bytes;");
    job.limits.heap_bytes = 32 << 20;
    let (ended, ..) = observed(job).await;
    assert_eq!(shown(&ended), "=> 99999800\n");
}

#[tokio::test]
async fn the_host_is_told_of_a_timeout() {
    check(
        "return [await told({}), await told({}, { timeoutMs: 1500.9 }), await told({}, {}), await told({}, null),
           await mcp.callTool('told', {}, { timeoutMs: 7, signal: null })].map(([timeout]) => timeout);",
        "=> [null,1500,null,null,7]\n",
    )
    .await;
}

#[tokio::test]
async fn options_that_are_none_are_refused() {
    for (options, expected) in [
        (
            "5",
            "TypeError: echo: the options must be an object, not a number",
        ),
        (
            "'x'",
            "TypeError: echo: the options must be an object, not a string",
        ),
        (
            "[]",
            "TypeError: echo: the options must be an object, not an array",
        ),
        (
            "{ timeout: 5 }",
            "TypeError: echo: there is no option `timeout`; did you mean `timeoutMs`?",
        ),
        (
            "{ timeoutMs: 5, retries: 1 }",
            "TypeError: echo: there is no option `retries`",
        ),
        (
            "{ signal: {} }",
            "TypeError: echo: `signal` must be an AbortSignal, not an object",
        ),
        (
            "{ signal: new Proxy(AbortSignal.abort(), {}) }",
            "TypeError: echo: `signal` must be an AbortSignal, not an object",
        ),
        (
            "{ signal: Object.create(AbortSignal.prototype) }",
            "TypeError: echo: `signal` must be an AbortSignal, not an object",
        ),
        (
            "{ timeoutMs: '5' }",
            "TypeError: echo: `timeoutMs` must be a number, not a string",
        ),
        (
            "{ timeoutMs: null }",
            "TypeError: echo: `timeoutMs` must be a number, not null",
        ),
        (
            "{ timeoutMs: 0 }",
            "RangeError: echo: `timeoutMs` must be 1 or more milliseconds, not 0",
        ),
        (
            "{ timeoutMs: NaN }",
            "RangeError: echo: `timeoutMs` must be 1 or more milliseconds, not NaN",
        ),
        (
            "{ timeoutMs: Infinity }",
            "RangeError: echo: `timeoutMs` must be 1 or more milliseconds, not Infinity",
        ),
        ("{ get signal() { throw 'mine' } }", "mine"),
    ] {
        let script =
            format!("try {{ await echo({{}}, {options}) }} catch (e) {{ return String(e) }}");
        let ended = run(&script).await;
        assert_eq!(shown(&ended), format!("=> \"{expected}\"\n"), "{script}");
        assert_eq!(ended.calls, 0);
    }
    // The error stands where the call does.
    check(
        "const x = 1;\nawait echo({}, { timeoutMs: 0 });",
        "threw \"RangeError\" \"echo: `timeoutMs` must be 1 or more milliseconds, not 0\" at 2:7\n\
         RangeError: echo: `timeoutMs` must be 1 or more milliseconds, not 0\n    at script.ts:2:7\n",
    )
    .await;
}

#[tokio::test]
async fn the_host_is_told_where_a_call_stands() {
    check(
        "const [, here] = await told({});
  const [, there] = await told(
    {});
const helper = async () => (await mcp.callTool('told', {}))[1];
return [here, there, await helper(), (await [{}].map((one) => told(one))[0])[1], (await Promise.resolve({}).then(told))[1]];",
        "=> [[1,24],[2,27],[4,39],[5,63],null]\n",
    )
    .await;
}

#[tokio::test]
async fn what_a_script_makes_of_signals_is_its_own_to_suffer() {
    check(
        "for (const key of ['addEventListener', 'removeEventListener', 'dispatchEvent', 'aborted', 'reason']) {
           const prototype = key in EventTarget.prototype ? EventTarget.prototype : AbortSignal.prototype;
           Object.defineProperty(prototype, key, { get() { throw new Error(key) } });
         }
         for (const [C, key] of [[Map, 'get'], [Map, 'set'], [Map, 'delete'], [Set, 'add'], [Set, 'delete'], [Set, Symbol.iterator]])
           C.prototype[key] = () => { throw new Error(String(key)) };
         Object.defineProperty(Array.prototype, 0, { set() { throw new Error('index') } });
         globalThis.Promise = class { constructor() { throw new Error('Promise') } };
         const c = new AbortController();
         const call = never({}, { signal: c.signal });
         const value = await echo({ a: 1 }, { signal: c.signal });
         try { c.abort('enough') } catch (error) { console.log(error.message) }
         try { await call } catch (reason) { return [value, reason] }",
        "dispatchEvent\n=> [{\"a\":1},\"enough\"]\n",
    )
    .await;
}
