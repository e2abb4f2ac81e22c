//! Calls: many at once, in turn, never answered, left alone.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::sync::Arc;

use callgate_sandbox::Limits;
use support::{Handler, job, launcher, run, run_job, shown};
use tokio_util::sync::CancellationToken;

async fn check(script: &str, expected: &str) {
    assert_eq!(shown(&run(script).await), expected, "{script}");
}

#[tokio::test]
async fn a_hundred_calls_are_in_flight_together() {
    // No call of `gate` is answered before a hundred are there.
    let script = "const all = await Promise.all(Array.from({ length: 100 }, () => gate({ n: 100 })));\n\
         return [all.length, new Set(all).size];";
    check(script, "=> [100,100]\n").await;
}

#[tokio::test]
async fn more_calls_than_may_be_in_flight_take_turns() {
    let mut job = job(
        "const all = await Promise.all(Array.from({ length: 500 }, (_, i) => echo({ i })));\n\
         return all.every((value, i) => value.i === i);",
    );
    job.limits.calls_in_flight = 3;
    assert_eq!(shown(&run_job(job).await), "=> true\n");
}

#[tokio::test]
async fn values_cross_whole() {
    check(
        "const value = { s: 'é😀\\u0000\\ud800', n: -1.5e300, b: [true, null], o: { __proto__x: 1 } };\n\
         const back = await echo(value);\n\
         return [back.s.length, back.n, back.b, back.o];",
        "=> [5,-1.5e+300,[true,null],{\"__proto__x\":1}]\n",
    )
    .await;
    check(
        "return await echo({ ['__proto__']: 1 });",
        "=> {\"__proto__\":1}\n",
    )
    .await;
}

#[tokio::test]
async fn results() {
    for (script, expected) in [
        ("", ""),
        ("return undefined;", ""),
        ("return null;", "=> null\n"),
        ("return [1, { a: 'b' }];", "=> [1,{\"a\":\"b\"}]\n"),
        ("return 10n;", "=> shown 10n\n"),
        ("return { big: 10n };", "=> shown { big: 10n }\n"),
        ("return new Map([[1, 2]]);", "=> shown Map(1) { 1 => 2 }\n"),
        ("return () => 1;", "=> shown [Function (anonymous)]\n"),
        (
            "const o = {}; o.o = o; return o;",
            "=> shown <ref *1> { o: [Circular *1] }\n",
        ),
        (
            "return { get x() { throw 1; } };",
            "=> shown { x: [Getter] }\n",
        ),
        ("return { toJSON: () => 'mine' };", "=> \"mine\"\n"),
        ("return Promise.resolve(7);", "=> 7\n"),
        ("return { then(done) { done(8); } };", "=> 8\n"),
        ("JSON.stringify = () => 'not mine'; return 1;", "=> 1\n"),
    ] {
        check(script, expected).await;
    }
}

#[tokio::test]
async fn exceptions() {
    for (script, expected) in [
        (
            "const x = 1;\n  throw new TypeError('no');",
            "threw \"TypeError\" \"no\" at 2:9\nTypeError: no\n    at script.ts:2:9\n",
        ),
        ("throw 'text';", "threw \"\" \"'text'\" at 0:0\n\n"),
        ("throw null;", "threw \"\" \"null\" at 0:0\n\n"),
        (
            "throw { code: 1 };",
            "threw \"\" \"{ code: 1 }\" at 0:0\n\n",
        ),
        (
            "await missing_tool({});",
            "threw \"ReferenceError\" \"missing_tool is not defined\" at 1:1\n\
             ReferenceError: missing_tool is not defined\n    at script.ts:1:1\n",
        ),
        (
            "setTimeout(() => { throw new Error('later'); }, 1); await new Promise(() => {});",
            "threw \"Error\" \"later\" at 1:26\nError: later\n    at script.ts:1:26\n",
        ),
        (
            "Promise.reject(new Error('left alone')); await echo({}); return 1;",
            "threw \"Error\" \"left alone\" at 1:16\nError: left alone\n    at script.ts:1:16\n",
        ),
        (
            "Promise.reject(new Error('at the end')); return 1;",
            "threw \"Error\" \"at the end\" at 1:16\nError: at the end\n    at script.ts:1:16\n",
        ),
        (
            "queueMicrotask(() => { throw new Error('micro'); }); await echo({});",
            "threw \"Error\" \"micro\" at 1:30\nError: micro\n    at script.ts:1:30\n",
        ),
        (
            "const f = () => f(); f();",
            "threw \"RangeError\" \"Maximum call stack size exceeded\" at 1:",
        ),
        (
            "throw new Error('a', { cause: new Error('b', { cause: 'c' }) });",
            "threw \"Error\" \"a\" at 1:7\nError: a\n    at script.ts:1:7\n\
             Caused by: Error: b\n    at script.ts:1:31\nCaused by: 'c'\n",
        ),
        (
            "const e = new Error('x'); e.cause = e; throw e;",
            "threw \"Error\" \"x\" at 1:11\nError: x\n    at script.ts:1:11\n",
        ),
        (
            "let x = ;",
            "threw \"SyntaxError\" \"Unexpected token ';'\" at 1:9\nSyntaxError: Unexpected token ';'\n",
        ),
    ] {
        let mut got = shown(&run(script).await);
        if script.contains("f()") {
            // Where in `f` the stack ends is up to V8.
            got.truncate(expected.len());
        }
        assert_eq!(got, expected, "{script}");
    }
}

#[tokio::test]
async fn calls_that_are_left_alone_are_made_to_their_end() {
    let script =
        "echo({ a: 1 }).then((first) => echo(first)).then((last) => console.log(last)); return 1;";
    let ended = run(script).await;
    assert_eq!(shown(&ended), "{ a: 1 }\n=> 1\n");
    assert_eq!(ended.calls, 2);
}

#[tokio::test]
async fn a_handler_that_panics_is_an_error_of_the_call() {
    struct Broken;
    impl callgate_sandbox::CallHandler for Broken {
        fn call(
            &self,
            _: callgate_sandbox::ScriptCall,
        ) -> futures::future::BoxFuture<
            'static,
            Result<Box<serde_json::value::RawValue>, callgate_sandbox::Thrown>,
        > {
            panic!("a bug");
        }
    }
    let script = "try { await echo({}); } catch (e) { return `${e.name}: ${e.message}`; }";
    let ended = launcher(0)
        .run(job(script), Arc::new(Broken), CancellationToken::new())
        .await;
    assert_eq!(
        shown(&ended),
        "=> \"McpProtocolError: the host failed while it answered the call\"\n"
    );
}

#[tokio::test]
async fn spares_serve_many_runs() {
    let launcher = launcher(2);
    for round in 0..6 {
        let mut job = job(&format!("return {round};"));
        // Every other run wants a heap that no spare has.
        job.limits.heap_bytes = if round % 2 == 0 {
            64 << 20
        } else {
            Limits::default().heap_bytes
        };
        let ended = launcher
            .run(job, Arc::new(Handler::default()), CancellationToken::new())
            .await;
        assert_eq!(shown(&ended), format!("=> {round}\n"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_side_by_side() {
    let launcher = launcher(1);
    let runs = (0..12).map(|n| {
        let launcher = launcher.clone();
        tokio::spawn(async move {
            let job = job(&format!("return (await echo({{ n: {n} }})).n;"));
            shown(
                &launcher
                    .run(job, Arc::new(Handler::default()), CancellationToken::new())
                    .await,
            )
        })
    });
    let ended = futures::future::join_all(runs).await;
    for (n, text) in ended.into_iter().enumerate() {
        assert_eq!(text.expect("no panic"), format!("=> {n}\n"));
    }
}

#[tokio::test]
async fn without_a_compiler() {
    let mut job = job("let n = 0; for (let i = 0; i < 1e5; i++) n += i; return n;");
    job.limits.jit = false;
    assert_eq!(shown(&run_job(job).await), "=> 4999950000\n");
}
