//! Texts are read in workers: what a text does to the parser ends with its worker.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use callgate_sandbox::wire::{Frame, Ready, WorkerFrame};
use callgate_sandbox::{
    JailOptions, Launcher, LauncherOptions, Limits, NotRead, Reserved, WorkerProgram,
};
use expect_test::{Expect, expect};
use support::{Handler, job, launcher, shown};
use tokio_util::sync::CancellationToken;

async fn take(launcher: &Launcher) -> Reserved {
    launcher.take(&Limits::default()).await.unwrap()
}

/// The end of a text that was not read.
fn told<T, E: std::fmt::Display>(read: Result<T, NotRead<E>>) -> String {
    match read {
        Ok(_) => "it was read".to_owned(),
        Err(NotRead::Refused(error)) => error.to_string(),
        Err(NotRead::Ended(end)) => format!("{end:?}"),
    }
}

#[tokio::test]
async fn a_script_is_read_in_the_worker_that_runs_it() {
    let launcher = launcher(0);
    let worker = take(&launcher).await;
    let (worker, prepared) = worker
        .read_script("const n: number = 6;\nreturn n * 7;", &Limits::default())
        .await
        .unwrap();
    let job = callgate_sandbox::Job {
        code: prepared.code,
        ..job("")
    };
    let handler = Arc::new(Handler::default());
    let ended = worker.run(job, handler, CancellationToken::new()).await;
    assert_eq!(shown(&ended), "=> 42\n");
}

#[tokio::test]
async fn what_is_no_script_and_no_type_is_refused() {
    let launcher = launcher(0);
    let read = take(&launcher)
        .await
        .read_script("let = = 1", &Limits::default())
        .await;
    assert_eq!(
        told(read),
        callgate_script::prepare("let = = 1")
            .unwrap_err()
            .to_string()
    );
    let read = take(&launcher).await.read_type("{ a?: string[] }").await;
    let expected = serde_json::json!({
        "type": "object",
        "properties": { "a": { "type": "array", "items": { "type": "string" } } },
        "additionalProperties": false
    });
    assert_eq!(read.unwrap(), expected);
    let read = take(&launcher).await.read_type("Date").await;
    assert_eq!(
        told(read),
        "the type \"Date\" cannot be a JSON Schema: JSON has no dates; write string"
    );
}

/// The time of the parser doubles with each level of these: it would take hours.
#[tokio::test]
async fn a_text_that_takes_too_long_is_refused() {
    let mut options = LauncherOptions::default();
    options.spares = 0;
    options.reading_time = Duration::from_millis(500);
    let program = WorkerProgram::Path(env!("CARGO_BIN_EXE_test-worker").into());
    let launcher = Launcher::new(program, options);
    let nested = |open: &str, close: &str| format!("{}1{}", open.repeat(40), close.repeat(40));
    for script in [
        format!("f({})", nested("<T>[", "]")),
        format!("f({})", nested("async<T>(a=", ")")),
        format!(
            "type T = {};\nreturn 1",
            nested("(infer U extends ", " ? b : c)")
        ),
    ] {
        let read = take(&launcher)
            .await
            .read_script(&script, &Limits::default())
            .await;
        assert_eq!(
            told(read),
            "script.ts: the script takes longer than 0.5 s to parse; write it in simpler pieces"
        );
    }
    let ty = nested("(infer U extends ", " ? b : c)");
    assert_eq!(
        told(take(&launcher).await.read_type(&ty).await),
        "the type takes longer than 0.5 s to parse; write it in simpler pieces"
    );
}

/// What a program that says these frames to whoever started it, and then does this, is taken for.
async fn check(name: &str, frames: Vec<WorkerFrame>, then: &str, expected: Expect) {
    let folder =
        std::env::temp_dir().join(format!("callgate-reading-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let bytes = folder.join("bytes");
    let said: Vec<u8> = frames
        .into_iter()
        .flat_map(|frame| frame.encode(usize::MAX).unwrap().slices().concat())
        .collect();
    std::fs::write(&bytes, said).unwrap();
    let program = folder.join("worker");
    let text = format!("#!/bin/sh\ncat '{}' >&0\n{then}\n", bytes.display());
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut options = LauncherOptions::default();
    options.spares = 0;
    options.reading_time = Duration::from_millis(500);
    options.jail = JailOptions::process_only();
    let launcher = Launcher::new(WorkerProgram::Path(program), options);
    let limits = Limits {
        script_time: Duration::from_secs(4),
        ..Limits::default()
    };
    let read = take(&launcher).await.read_script("return 1", &limits).await;
    std::fs::remove_dir_all(&folder).unwrap();
    expected.assert_eq(&told(read));
}

#[tokio::test]
async fn workers_that_do_not_read() {
    let ready = || WorkerFrame::Ready(Ready::default());
    let read = |outcome: &str| WorkerFrame::Read {
        outcome: outcome.into(),
    };
    let dies = "head -c 1 >/dev/null; kill -ABRT $$";
    check(
        "dies",
        vec![ready()],
        dies,
        expect!["script.ts: the script makes the parser fail; write it in simpler pieces"],
    )
    .await;
    let out = format!("echo 'memory allocation of 8 bytes failed' >&2; {dies}");
    check(
        "memory",
        vec![ready()],
        &out,
        expect!["script.ts: the script takes too much memory to parse; write it in simpler pieces"],
    )
    .await;
    let waits = "exec sleep 60";
    check(
        "busy",
        vec![ready()],
        "while :; do :; done",
        expect![
            "script.ts: the script takes longer than 0.5 s to parse; write it in simpler pieces"
        ],
    )
    .await;
    check(
        "silent",
        vec![ready()],
        waits,
        expect!["Limit { which: ScriptTime, limit: 4000, observed: 4000 }"],
    )
    .await;
    let killed = "head -c 1 >/dev/null; kill -KILL $$";
    check(
        "killed",
        vec![ready()],
        killed,
        expect![[r#"Crashed { reason: "the worker closed its socket before the script ended" }"#]],
    )
    .await;
    let other = vec![ready(), read("nothing")];
    check("text", other, waits, expect![[r#"Crashed { reason: "the worker breaks the protocol: it has read something else than a text" }"#]]).await;
    check("none", vec![ready(), read("")], waits, expect![[r#"Crashed { reason: "the worker breaks the protocol: it has read something else than a text" }"#]]).await;
    check(
        "twice",
        vec![ready(), ready()],
        waits,
        expect![[
            r#"Crashed { reason: "the worker breaks the protocol: it speaks before it has read" }"#
        ]],
    )
    .await;
}
