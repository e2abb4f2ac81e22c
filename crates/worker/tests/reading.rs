//! Workers parse texts: damage to the parser ends with its worker.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use callgate_sandbox::wire::{Ready, WorkerFrame};
use callgate_sandbox::{
    JailOptions, Launcher, LauncherOptions, Limits, ReadError, ReadyWorker, WorkerProgram,
};
use support::{Handler, encoded, job, launcher, pretender, shown};
use tokio_util::sync::CancellationToken;

async fn take(launcher: &Launcher) -> ReadyWorker {
    launcher.take(&Limits::default()).await.unwrap()
}

/// The error of a text that was not read.
fn error<T, E: std::fmt::Display>(read: Result<T, ReadError<E>>) -> String {
    match read {
        Ok(_) => "it was read".to_owned(),
        Err(ReadError::Refused(error)) => error.to_string(),
        Err(ReadError::Ended(end)) => format!("{end:?}"),
    }
}

#[tokio::test]
async fn script_is_parsed_in_its_own_worker() {
    let launcher = launcher(0);
    let worker = take(&launcher).await;
    let (worker, prepared) = worker
        .read_script("const n: number = 6;\nreturn n * 7;")
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
async fn invalid_scripts_and_types_are_refused() {
    let launcher = launcher(0);
    let read = take(&launcher).await.read_script("let = = 1").await;
    let expected = callgate_script::prepare("let = = 1").unwrap_err();
    assert_eq!(error(read), expected.to_string());
    let read = take(&launcher).await.read_type("{ a?: string[] }").await;
    let expected = serde_json::json!({
        "type": "object",
        "properties": { "a": { "type": "array", "items": { "type": "string" } } },
        "additionalProperties": false
    });
    assert_eq!(read.unwrap(), expected);
    let read = take(&launcher).await.read_type("Date").await;
    assert_eq!(
        error(read),
        "the type \"Date\" cannot be a JSON Schema: JSON has no dates; write string"
    );
}

/// The parser's time doubles with each level of these: it would take hours.
#[tokio::test]
async fn slow_parsing_text_is_refused() {
    let options = LauncherOptions {
        spares: 0,
        reading_time: Duration::from_millis(500),
        ..LauncherOptions::default()
    };
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
        let read = take(&launcher).await.read_script(&script).await;
        assert_eq!(
            error(read),
            "the script takes longer than 0.5 s to parse; write it in simpler pieces"
        );
    }
    let ty = nested("(infer U extends ", " ? b : c)");
    assert_eq!(
        error(take(&launcher).await.read_type(&ty).await),
        "the type takes longer than 0.5 s to parse; write it in simpler pieces"
    );
}

/// The script's own time limit applies to its parser, too.
#[tokio::test]
async fn script_time_limits_reading() {
    let launcher = Launcher::new(
        WorkerProgram::Path(env!("CARGO_BIN_EXE_test-worker").into()),
        LauncherOptions {
            spares: 0,
            reading_time: Duration::from_secs(3600),
            ..LauncherOptions::default()
        },
    );
    let limits = Limits {
        script_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let worker = launcher.take(&limits).await.unwrap();
    let bomb = format!("{}0{}", "async<U>(b=".repeat(50), ")".repeat(50));
    assert_eq!(
        error(worker.read_script(&bomb).await),
        "the script takes longer than 0.3 s to parse; write it in simpler pieces"
    );
}

#[tokio::test]
async fn workers_failing_to_read_are_reported() {
    let dies = "head -c 1 >/dev/null; kill -ABRT $$";
    let no_memory = format!("echo 'memory allocation of 8 bytes failed' >&2; {dies}");
    let waits = "exec sleep 60";
    let killed = "head -c 1 >/dev/null; kill -KILL $$";
    let ready = || WorkerFrame::Ready(Ready::default());
    let read = |outcome: &str| WorkerFrame::Read {
        outcome: outcome.into(),
    };
    let late = "the script takes longer than 0.5 s to parse; write it in simpler pieces";
    let protocol = "the worker breaks the protocol: it ";
    let other = "the worker breaks the protocol: the outcome of its parser is invalid";
    let early = format!("{protocol}sends another frame before the outcome of its parser");
    for (then, more, expected) in [
        (
            dies,
            None,
            "the script makes the parser fail; write it in simpler pieces",
        ),
        (
            &no_memory,
            None,
            "the script takes too much memory to parse; write it in simpler pieces",
        ),
        ("while :; do :; done", None, late),
        (waits, None, late),
        (
            killed,
            None,
            "the worker closed its socket before the script ended",
        ),
        (waits, Some(read("nothing")), other),
        (waits, Some(read("")), other),
        (waits, Some(ready()), &early),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let sent: Vec<u8> = iter::once(ready()).chain(more).flat_map(encoded).collect();
        let options = LauncherOptions {
            spares: 0,
            reading_time: Duration::from_millis(500),
            jail: JailOptions::process_only(),
            ..LauncherOptions::default()
        };
        let launcher = Launcher::new(pretender(folder.path(), &sent, then), options);
        let read = take(&launcher).await.read_script("return 1").await;
        let error = error(read);
        let crashed = format!("Crashed {{ reason: {expected:?} }}");
        assert!(error == expected || error == crashed, "{then}: {error}");
    }
}
