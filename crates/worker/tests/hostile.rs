//! A worker that has been taken over: the host ends it with a typed end in every case.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use callgate_sandbox::wire::{Call, Done, LimitHit, OutputEnd, Ready, ReturnValue, WorkerFrame};
use callgate_sandbox::{End, Ended, JailOptions, Launcher, LauncherOptions, ScriptException};
use support::{Handler, encoded, job, pretender, run_by};
use tokio_util::sync::CancellationToken;

/// Runs a script in a "worker" that sends these bytes and then waits.
async fn run(bytes: &[u8]) -> Ended {
    run_in(JailOptions::process_only(), Duration::from_secs(60), bytes).await
}

async fn run_in(jail: JailOptions, script_time: Duration, bytes: &[u8]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let options = LauncherOptions {
        spares: 0,
        jail,
        ..LauncherOptions::default()
    };
    let program = pretender(folder.path(), bytes, "exec sleep 60");
    let launcher = Launcher::new(program, options);
    let mut job = job("");
    job.limits.script_time = script_time;
    job.limits.wait_time = script_time;
    let handler = Arc::new(Handler::default());
    run_by(&launcher, job, handler, CancellationToken::new()).await
}

fn bytes(frames: Vec<WorkerFrame>) -> Vec<u8> {
    let ready = WorkerFrame::Ready(Ready::default());
    std::iter::once(ready)
        .chain(frames)
        .flat_map(encoded)
        .collect()
}

/// Expects this reason for the end of a worker that sends these bytes and then waits for a minute.
async fn check(name: &str, bytes: &[u8], expected: &str) {
    let ended = run(bytes).await;
    let (End::Crashed { reason } | End::NotStarted { reason }) = ended.end else {
        panic!("{name}: {:?}", ended.end)
    };
    assert_eq!(
        reason,
        format!("the worker breaks the protocol: {expected}"),
        "{name}"
    );
}

fn call(tool: &str, input: &str) -> WorkerFrame {
    WorkerFrame::Call(Call {
        id: 1,
        timeout_ms: Some(u64::MAX),
        cancellable: true,
        place: Some((u32::MAX, 0)),
        tool: tool.into(),
        input: input.into(),
    })
}

/// A worker that lacks a required layer, or lies about one, is given no script.
#[tokio::test]
async fn a_worker_outside_the_jail_gets_no_script() {
    let claims = |landlock, seccomp| {
        let ready = Ready {
            landlock,
            seccomp,
            ..Ready::default()
        };
        encoded(WorkerFrame::Ready(ready))
    };
    for (ready, expected) in [
        (claims(0, true), "no landlock"),
        (claims(1, false), "no seccomp"),
        (claims(1, true), "not in the jail"),
    ] {
        let ended = run_in(JailOptions::default(), Duration::MAX, &ready).await;
        match ended.end {
            End::NotStarted { reason } => assert!(reason.contains(expected), "{reason}"),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn broken_frames() {
    let returned = |value| WorkerFrame::Done(Done::Returned(value));
    let read = WorkerFrame::Read {
        outcome: "{}".into(),
    };
    let long = ReturnValue::Shown("x".repeat((1 << 20) + 1));
    let twice = WorkerFrame::Ready(Ready::default());
    let name = "x".repeat(5000);
    for (frame, expected) in [
        (read, "it was given no text to parse"),
        (twice, "it is ready for the second time"),
        (call("echo", "{]"), "the input of a call is not JSON"),
        (
            call(&name, "{}"),
            "it calls a function whose name is too long",
        ),
        (
            returned(ReturnValue::Json("{".into())),
            "its result is not JSON",
        ),
        (returned(long), "its result is over the limit"),
    ] {
        check(expected, &bytes(vec![frame]), expected).await;
    }
    let over = |limit| format!("frame of 4294967295 bytes is over the limit of {limit} bytes");
    let broken = |why| format!("broken frame: {why}");
    for (bytes, expected) in [
        (vec![0xff; 64], over(65_536)),
        (vec![1, 0, 0, 0, 99], broken("Serde Deserialization Error")),
        (
            vec![2, 0, 0, 0, 0, 0],
            broken("Hit the end of buffer, expected more data"),
        ),
        (
            encoded(call("echo", "{}")),
            "it sends another frame before it is ready".to_owned(),
        ),
        ([bytes(vec![]), vec![0xff; 64]].concat(), over(17_825_792)),
    ] {
        check(&expected, &bytes, &expected).await;
    }
}

#[tokio::test]
async fn too_much_output_is_cut() {
    let mut frames = vec![
        WorkerFrame::Output {
            text: "x".repeat(1 << 20),
            is_error: false,
        };
        8
    ];
    frames.push(WorkerFrame::OutputEnd(OutputEnd {
        timers: Vec::new(),
        cut_bytes: u64::MAX,
        missing_bytes: u64::MAX,
        cut_lines: u64::MAX,
        tail: "y".repeat(1 << 20),
        is_error: true,
    }));
    frames.push(WorkerFrame::Done(Done::NeverSettled));
    let ended = run(&bytes(frames)).await;
    assert!(matches!(ended.end, End::NeverSettled), "{:?}", ended.end);
    assert_eq!(ended.output.head.len(), 8 << 10);
    assert_eq!(ended.output.tail.len(), 8 << 10);
    assert_eq!(ended.output.cut_bytes, u64::MAX);
}

#[tokio::test]
async fn a_long_exception_is_cut() {
    let exception = ScriptException {
        name: "n".repeat(2 << 20),
        message: "\u{fc}".repeat(2 << 20),
        line: u32::MAX,
        column: u32::MAX,
        stack: "s".repeat(2 << 20),
    };
    let done = WorkerFrame::Done(Done::Threw(exception));
    let End::Threw(told) = run(&bytes(vec![done])).await.end else {
        panic!("it threw");
    };
    let cut = |text: &str, times| format!("{}\u{2026}", text.repeat(times));
    assert_eq!(told.name, cut("n", 1 << 10));
    assert_eq!(told.message, cut("\u{fc}", 32 << 10));
    assert_eq!(told.stack, cut("s", 64 << 10));
}

#[tokio::test]
async fn reported_limit_is_the_host_limit() {
    let hit = LimitHit {
        limit: 7,
        observed: u64::MAX,
    };
    let end = run(&bytes(vec![WorkerFrame::LimitHit(hit)])).await.end;
    assert!(
        matches!(end, End::Limit { limit, .. } if limit == 128 << 20),
        "{end:?}"
    );
}

#[tokio::test]
async fn a_flood_of_calls_ends() {
    let frames = vec![call("never", "{}"); 20_000];
    let Ended { end, .. } = run(&bytes(frames)).await;
    let shown = "Limit { which: Calls, limit: 10000, observed: 10001 }";
    assert_eq!(format!("{end:?}"), shown);
}

#[tokio::test]
async fn flood_of_cancels_is_ignored() {
    // Cancels of calls that were never made, were made twice with one id, or were cancelled before.
    let mut frames = vec![call("never", "{}"); 2];
    frames.extend((0..20_000).map(|n| WorkerFrame::Cancel { call: n % 3 }));
    frames.extend([call("never", "{}"), WorkerFrame::Done(Done::NeverSettled)]);
    let ended = run(&bytes(frames)).await;
    assert!(matches!(ended.end, End::NeverSettled), "{:?}", ended.end);
}

#[tokio::test]
async fn silence_after_ready_ends_the_run() {
    let limit = Duration::from_millis(500);
    let ended = run_in(JailOptions::process_only(), limit, &bytes(vec![])).await;
    let end = ended.end;
    assert!(matches!(end, End::Limit { limit: 500, .. }), "{end:?}");
}
