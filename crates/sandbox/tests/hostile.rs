//! A worker that has been taken over: whatever it sends, the host ends it with a typed end.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_sandbox::wire::{
    Call, Done, Exception, Frame, Level, LimitHit, Output, OutputEnd, Ready, ReturnValue,
    WhichLimit, WorkerFrame,
};
use callgate_sandbox::{End, Ended, JailOptions, Launcher, LauncherOptions, WorkerProgram};
use support::{Handler, job};
use tokio_util::sync::CancellationToken;

/// Runs a script in a "worker" that sends these bytes and then waits.
async fn run(bytes: &[u8]) -> Ended {
    run_in(JailOptions::process_only(), bytes).await
}

async fn run_in(jail: JailOptions, bytes: &[u8]) -> Ended {
    let folder = std::env::temp_dir().join(format!(
        "callgate-hostile-{}-{:x}",
        std::process::id(),
        bytes.iter().fold(bytes.len() as u64, |h, b| h
            .wrapping_mul(31)
            .wrapping_add(u64::from(*b)))
    ));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("bytes"), bytes).unwrap();
    let program = folder.join("worker");
    let script = format!(
        "#!/bin/sh\ncat '{}' >&0\nexec sleep 60\n",
        folder.join("bytes").display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut options = LauncherOptions::default();
    options.spares = 0;
    options.jail = jail;
    let launcher = Launcher::new(WorkerProgram::Path(program), options);
    let mut job = job("");
    job.limits.script_time = Duration::from_secs(5);
    let ended = launcher
        .run(job, Arc::new(Handler::default()), CancellationToken::new())
        .await;
    std::fs::remove_dir_all(&folder).unwrap();
    ended
}

fn bytes(frames: Vec<WorkerFrame>) -> Vec<u8> {
    let ready = WorkerFrame::Ready(Ready::default());
    std::iter::once(ready)
        .chain(frames)
        .flat_map(|frame| frame.encode(usize::MAX).unwrap().slices().concat())
        .collect()
}

/// Expects the worker that sends these bytes to be ended at once, for this reason.
async fn check(name: &str, bytes: &[u8], expected: &str) {
    let began = Instant::now();
    let ended = run(bytes).await;
    match &ended.end {
        End::Crashed { reason } | End::NotStarted { reason } => {
            assert_eq!(
                reason,
                &format!("the worker breaks the protocol: {expected}"),
                "{name}"
            );
        }
        other => panic!("{name}: {other:?}"),
    }
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{name}: {:?}",
        began.elapsed()
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
        WorkerFrame::Ready(ready)
            .encode(100)
            .unwrap()
            .slices()
            .concat()
    };
    for (ready, expected) in [
        (claims(0, true), "no landlock"),
        (claims(1, false), "no seccomp"),
        (claims(1, true), "not in the jail"),
    ] {
        match run_in(JailOptions::default(), &ready).await.end {
            End::NotStarted { reason } => assert!(reason.contains(expected), "{reason}"),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn broken_frames() {
    check(
        "length",
        &[0xff; 64],
        "frame of 4294967295 bytes is over the limit of 65536 bytes",
    )
    .await;
    check(
        "version",
        &[2, 0, 0, 0, 9, 0x81],
        "frame of version 9, where version 2 is spoken",
    )
    .await;
    check(
        "kind",
        &[2, 0, 0, 0, 2, 99],
        "frame with a broken header: Serde Deserialization Error",
    )
    .await;
    check(
        "short",
        &[3, 0, 0, 0, 2, 0, 0],
        "frame with a broken header: Hit the end of buffer, expected more data",
    )
    .await;
    check(
        "early",
        &call("echo", "{}").encode(100).unwrap().slices().concat(),
        "it speaks before it is ready",
    )
    .await;
    check(
        "length of a later one",
        &[bytes(vec![]), vec![0xff; 64]].concat(),
        "frame of 4294967295 bytes is over the limit of 17825792 bytes",
    )
    .await;
    check(
        "unasked",
        &bytes(vec![WorkerFrame::Read {
            outcome: "{}".into(),
        }]),
        "it reads what it was not given",
    )
    .await;
    check(
        "twice",
        &bytes(vec![WorkerFrame::Ready(Ready::default())]),
        "it says twice that it is ready",
    )
    .await;
    check(
        "not JSON",
        &bytes(vec![call("echo", "{]")]),
        "the input of a call is not JSON",
    )
    .await;
    check(
        "long name",
        &bytes(vec![call(&"x".repeat(5000), "{}")]),
        "it calls a function whose name is too long",
    )
    .await;
    let returned = |value| bytes(vec![WorkerFrame::Done(Done::Returned(value))]);
    check(
        "bad result",
        &returned(ReturnValue::Json("{".into())),
        "its result is not JSON",
    )
    .await;
    check(
        "long result",
        &returned(ReturnValue::Shown("x".repeat((1 << 20) + 1).into())),
        "its result is over the limit",
    )
    .await;
}

#[tokio::test]
async fn too_much_output_is_cut() {
    let mut frames = vec![
        WorkerFrame::Output(Output {
            level: Level::Log,
            text: "x".repeat(1 << 20).into()
        });
        8
    ];
    frames.push(WorkerFrame::OutputEnd(OutputEnd {
        cut_bytes: u64::MAX,
        missing_bytes: u64::MAX,
        cut_lines: u64::MAX,
        tail: "y".repeat(1 << 20).into(),
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
    let exception = Exception {
        name: "n".repeat(2 << 20).into(),
        message: "\u{fc}".repeat(2 << 20).into(),
        line: u32::MAX,
        column: u32::MAX,
        stack: "s".repeat(2 << 20).into(),
    };
    let done = WorkerFrame::Done(Done::Threw(exception));
    match run(&bytes(vec![done])).await.end {
        End::Threw(told) => {
            assert_eq!(told.name, format!("{}\u{2026}", "n".repeat(1 << 10)));
            assert_eq!(
                told.message,
                format!("{}\u{2026}", "\u{fc}".repeat(32 << 10))
            );
            assert_eq!(told.stack, format!("{}\u{2026}", "s".repeat(64 << 10)));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_limit_that_is_told_is_the_hosts() {
    let hit = LimitHit {
        which: WhichLimit::Memory,
        limit: 7,
        observed: u64::MAX,
    };
    let ended = run(&bytes(vec![WorkerFrame::LimitHit(hit)])).await;
    match ended.end {
        End::Limit { limit, .. } => assert_eq!(limit, 128 << 20),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_flood_of_calls_ends() {
    let frames = vec![call("never", "{}"); 20_000];
    let ended = run(&bytes(frames)).await;
    assert!(
        matches!(
            ended.end,
            End::Limit {
                limit: 10_000,
                observed: 10_001,
                ..
            }
        ),
        "{:?}",
        ended.end
    );
    assert_eq!(ended.calls, 10_000);
}

#[tokio::test]
async fn a_flood_of_cancels_is_nothing() {
    // Of calls that were never made, made twice under one number, and cancelled before.
    let mut frames = vec![call("never", "{}"); 2];
    frames.extend((0..20_000).map(|n| WorkerFrame::Cancel { call: n % 3 }));
    frames.extend([call("never", "{}"), WorkerFrame::Done(Done::NeverSettled)]);
    let ended = run(&bytes(frames)).await;
    assert!(matches!(ended.end, End::NeverSettled), "{:?}", ended.end);
    assert_eq!(ended.calls, 3);
}

#[tokio::test]
async fn silence_after_ready_is_script_time() {
    let ended = run(&bytes(vec![])).await;
    assert!(
        matches!(ended.end, End::Limit { limit: 5000, .. }),
        "{:?}",
        ended.end
    );
}
