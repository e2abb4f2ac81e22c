//! Scripts that want more than they may have: each ends typed, in time, with what it printed so far.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_sandbox::{End, Ended, Job, Limits, Returned, WhichLimit};
use support::{job, launcher, printed, run_job, shown};
use tokio_util::sync::CancellationToken;

fn limited(script: &str, change: impl FnOnce(&mut Limits)) -> Job {
    let mut job = job(script);
    job.limits.script_time = Duration::from_millis(500);
    change(&mut job.limits);
    job
}

/// Runs a script that prints `before` first, and expects it to end on this limit, with that output,
/// well before ten seconds.
async fn check(script: &str, which: WhichLimit, change: impl FnOnce(&mut Limits)) -> Ended {
    let began = Instant::now();
    let job = limited(&format!("console.log('before');\n{script}"), change);
    let ended = run_job(job).await;
    match &ended.end {
        End::Limit {
            which: hit,
            limit,
            observed,
        } => {
            assert_eq!(*hit, which, "{script}");
            assert!(*limit > 0 && *observed > 0, "{script}: {limit} {observed}");
        }
        other => panic!("{script}: {other:?}"),
    }
    assert_eq!(printed(&ended.output), "before\n", "{script}");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{script}: {:?}",
        began.elapsed()
    );
    ended
}

#[tokio::test]
async fn script_time() {
    for script in [
        "while (true) {}",
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
        "throw { get name() { while (true) {} }, get message() { while (true) {} } };",
        "return { toJSON() { while (true) {} } };",
        "throw new Proxy(new Error('x'), { get() { while (true) {} }, getPrototypeOf() { while (true) {} } });",
    ] {
        if script.starts_with("throw") {
            // Nothing of a thrown value is run, unless it is a real error.
            let ended = run_job(limited(script, |_| {})).await;
            assert!(
                matches!(ended.end, End::Threw(_)),
                "{script}: {:?}",
                ended.end
            );
            continue;
        }
        check(script, WhichLimit::ScriptTime, |_| {}).await;
    }
}

#[tokio::test]
async fn limits_may_be_as_large_as_they_can() {
    let ended = run_job(limited("return await echo({ a: 1 });", |limits| {
        limits.script_time = Duration::MAX;
        limits.run_time = Duration::MAX;
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
    assert_eq!(shown(&ended), "=> {\"a\":1}\n");
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
    let ended = run_job(job).await;
    assert!(
        matches!(
            ended.end,
            End::Limit {
                which: WhichLimit::RunTime,
                limit: 600,
                ..
            }
        ),
        "{:?}",
        ended.end
    );
    assert!(
        ended.script_time < Duration::from_millis(100),
        "{:?}",
        ended.script_time
    );
}

#[tokio::test]
async fn work_while_a_call_is_under_way_is_script_time() {
    check("never({}); while (true) {}", WhichLimit::ScriptTime, |_| {}).await;
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
        let ended = run_job(limited(
            &format!("console.log('before');\n{script}"),
            |_| {},
        ))
        .await;
        assert!(
            matches!(ended.end, End::Crashed { .. } | End::Limit { .. }),
            "{script}: {:?}",
            ended.end
        );
        assert_eq!(printed(&ended.output), "before\n", "{script}");
    }
}

#[tokio::test]
async fn buffers_that_grow_in_place_end_too() {
    let script = "const all = []; try { while (true) { \
         const b = new ArrayBuffer(8, { maxByteLength: 2 ** 30 }); b.resize(2 ** 28); all.push(b); } \
         } catch (error) { return [all.length < 8, error.name]; }";
    let ended = run_job(limited(script, |_| {})).await;
    match ended.end {
        End::Returned(Returned::Json(json)) => assert_eq!(json.get(), "[true,\"RangeError\"]"),
        End::Limit {
            which: WhichLimit::Memory,
            ..
        } => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn calls() {
    check(
        "for (let i = 0; i < 30; i++) await echo({ i });",
        WhichLimit::Calls,
        |limits| {
            limits.calls = 20;
        },
    )
    .await;
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
        let ended = run_job(job(script)).await;
        assert!(
            matches!(ended.end, End::NeverSettled),
            "{script}: {:?}",
            ended.end
        );
        assert!(began.elapsed() < Duration::from_secs(5), "{script}");
    }
}

#[tokio::test]
async fn a_gigabyte_of_output_is_cut() {
    let mut job = job("const m = 'm'.repeat(1023); console.log('first'); \
         for (let i = 0; i < 2 ** 20; i++) console.log(m); console.log('last');");
    job.limits.script_time = Duration::from_secs(60);
    job.limits.output_bytes = 40;
    let ended = run_job(job).await;
    assert!(
        matches!(ended.end, End::Returned(Returned::Undefined)),
        "{:?}",
        ended.end
    );
    assert_eq!(ended.output.head, format!("first\n{}", "m".repeat(14)));
    assert_eq!(ended.output.tail, format!("{}\nlast\n", "m".repeat(14)));
    assert_eq!(ended.output.cut_bytes, (1 << 30) + 6 + 5 - 40);
    assert_eq!(ended.output.cut_lines, (1 << 20) - 1);
}

#[tokio::test]
async fn giant_values_are_shown_within_a_budget() {
    let check = async |value: &str, expected: &str| {
        let script = format!("console.log({value}); console.log('end');");
        let ended = run_job(limited(&script, |limits| {
            limits.script_time = Duration::from_secs(60);
            limits.message_bytes = 1000;
            limits.output_bytes = 1000;
        }))
        .await;
        assert!(
            matches!(ended.end, End::Returned(Returned::Undefined)),
            "{:?}",
            ended.end
        );
        let printed = printed(&ended.output);
        assert!(printed.contains(expected), "{printed}");
        assert!(printed.ends_with("end\n"), "{printed}");
    };
    let big = "Object.fromEntries(Array.from({ length: 2e5 }, (_, i) => ['key' + i, 'value']))";
    check(big, "more properties").await;
    check("new Array(2 ** 32 - 1)", "[ <4294967295 empty items> ]").await;
    let items = "Array.from({ length: 1e6 }, (_, i) => 'item' + i)";
    check(items, "more items").await;
}

#[tokio::test]
async fn a_giant_message_is_cut_where_the_output_is_and_counted() {
    let check = async |text: &str, bytes: u64, (head, tail): (&str, &str), cut: u64| {
        let script = format!("console.log({text});");
        let ended = run_job(limited(&script, |limits| {
            limits.script_time = Duration::from_secs(60);
            limits.output_bytes = bytes;
        }))
        .await;
        assert!(
            matches!(ended.end, End::Returned(Returned::Undefined)),
            "{:?}",
            ended.end
        );
        assert_eq!(ended.output.head, head);
        assert_eq!(ended.output.tail, tail);
        assert_eq!(ended.output.cut_bytes, cut);
    };
    // More than a message may have by itself.
    let head = "é".repeat(75_000);
    let tail = format!("{}\n", "é".repeat(25_000));
    check("'é'.repeat(1e5)", 300_000, (&head, &tail), 0).await;
    let (head, tail) = ("x".repeat(20), format!("{}\n", "x".repeat(19)));
    check("'x'.repeat(1e8)", 40, (&head, &tail), 100_000_001 - 40).await;
    let (head, tail) = ("😀".repeat(5), format!("{}\n", "😀".repeat(4)));
    check("'😀'.repeat(1e6)", 40, (&head, &tail), 4_000_001 - 37).await;
}

#[tokio::test]
async fn a_giant_message_that_is_kept_in_whole_says_what_it_lacks() {
    let ended = run_job(limited("console.log('a' + '😀'.repeat(40));", |limits| {
        limits.output_bytes = 8;
        limits.message_bytes = 8;
        limits.whole_bytes = 1000;
    }))
    .await;
    let whole = ended.output.whole.as_deref();
    assert_eq!(whole, Some("a😀… 74 characters cut …😀😀\n"));
    assert_eq!(ended.output.cut_bytes, 162 - 2);
}

#[tokio::test]
async fn what_a_stuck_script_printed_is_in_the_report() {
    let script = "for (let i = 0; i < 100; i++) console.log('line ' + i); \
         Array.prototype.includes.call({length: 2 ** 53 - 1}, 1);";
    let ended = run_job(limited(script, |limits| limits.output_bytes = 32)).await;
    assert!(matches!(
        ended.end,
        End::Limit {
            which: WhichLimit::ScriptTime,
            ..
        }
    ));
    assert_eq!(
        printed(&ended.output),
        "line 0\nline 1\nli[cut 758 bytes, 96 lines]line 98\nline 99\n"
    );
}

#[tokio::test]
async fn a_hundred_megabytes_of_result() {
    let mut job = limited(
        "const text = await big({ bytes: 100000000 }); return text.length;",
        |l| {
            l.script_time = Duration::from_secs(8);
        },
    );
    let ended = run_job(job.clone()).await;
    assert!(
        matches!(&ended.end, End::Returned(Returned::Json(json)) if json.get() == "99999998"),
        "the default limits: {:?}",
        ended.end
    );
    job.limits.reply_bytes = 1 << 20;
    let ended = run_job(job).await;
    match ended.end {
        End::Threw(exception) => {
            assert_eq!(exception.name, "McpProtocolError");
            assert_eq!(
                exception.message,
                "the result is 100000000 bytes of JSON, over the limit of 1048576 bytes"
            );
        }
        other => panic!("a smaller limit: {other:?}"),
    }
}

#[tokio::test]
async fn a_long_return_value_is_cut() {
    let mut job = job("return 'é'.repeat(1000);");
    job.limits.result_bytes = 11;
    match run_job(job).await.end {
        End::Returned(Returned::Cut {
            head,
            tail,
            total_bytes,
            whole,
        }) => {
            assert_eq!(
                (head.as_str(), tail.as_str(), total_bytes, whole),
                ("\"éé", "éé\"", 2002, None)
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_cut_can_be_kept_in_whole() {
    let script = "for (let i = 0; i < 100; i++) console.log(`line ${i}`); return 'é'.repeat(100);";
    let mut job = job(script);
    job.limits.output_bytes = 20;
    job.limits.result_bytes = 11;
    job.limits.whole_bytes = 1 << 20;
    let ended = run_job(job.clone()).await;
    let lines: String = (0..100).map(|i| format!("line {i}\n")).collect();
    assert_eq!(ended.output.head, "line 0\nlin");
    assert_eq!(ended.output.tail, "8\nline 99\n");
    assert_eq!(ended.output.whole, Some(lines));
    let End::Returned(Returned::Cut {
        head, tail, whole, ..
    }) = ended.end
    else {
        panic!("{:?}", ended.end);
    };
    assert_eq!((head.as_str(), tail.as_str()), ("\"éé", "éé\""));
    assert_eq!(whole, Some(format!("\"{}\"", "é".repeat(100))));

    // There is not room for all of it.
    job.limits.whole_bytes = 30;
    let ended = run_job(job).await;
    let whole = ended.output.whole.expect("it is kept");
    assert!(whole.starts_with("line 0\nline 1\nline 2\n"), "{whole}");
    assert!(
        whole.ends_with("bytes are not kept; the end follows]\n8\nline 99\n"),
        "{whole}"
    );
    let End::Returned(Returned::Cut {
        head,
        tail,
        total_bytes,
        whole,
    }) = ended.end
    else {
        panic!("{:?}", ended.end);
    };
    assert_eq!(
        (head.as_str(), tail.as_str(), total_bytes),
        ("\"éé", "éé\"", 202)
    );
    assert_eq!(whole, None);
}

#[tokio::test]
async fn what_is_emitted_is_bounded() {
    let script = "const thrown = (content) => {
        try { mcp.emit(content); return 'none' } catch (error) { return `${error.name}: ${error.message}` }
      };
      const long = thrown('x'.repeat(100));
      mcp.emit('a'); mcp.emit('b');
      return [long, thrown('c')];";
    let mut job = job(script);
    job.limits.emits = 2;
    job.limits.emit_bytes = 100;
    let ended = run_job(job).await;
    let emitted: Vec<_> = ended.emitted.iter().map(|block| block.get()).collect();
    let block = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    assert_eq!(emitted, [block("a"), block("b")]);
    let End::Returned(Returned::Json(json)) = ended.end else {
        panic!("{:?}", ended.end);
    };
    assert_eq!(
        json.get(),
        "[\"RangeError: with this block of 125 bytes the script would have emitted 125, over the \
         limit of 100 bytes\",\"RangeError: the script has emitted 2 blocks, which is as many as it \
         may\"]"
    );
}

/// Cancels the run when the script calls, and never answers.
struct CancelOnCall(CancellationToken);

impl callgate_sandbox::CallHandler for CancelOnCall {
    fn call(
        &self,
        _: callgate_sandbox::ScriptCall,
    ) -> futures::future::BoxFuture<
        'static,
        Result<Box<serde_json::value::RawValue>, callgate_sandbox::Thrown>,
    > {
        self.0.cancel();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn cancel_ends_a_run_at_once() {
    for script in [
        "console.log('before'); never({}); while (true) {}",
        "console.log('before'); await never({});",
    ] {
        let cancel = CancellationToken::new();
        let calls = Arc::new(CancelOnCall(cancel.clone()));
        let began = Instant::now();
        let ended = launcher(0).run(job(script), calls, cancel).await;
        assert!(
            matches!(ended.end, End::Cancelled),
            "{script}: {:?}",
            ended.end
        );
        assert_eq!(printed(&ended.output), "before\n", "{script}");
        // The limit of script time alone would be ten seconds.
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{script}: {:?}",
            began.elapsed()
        );
    }
}
