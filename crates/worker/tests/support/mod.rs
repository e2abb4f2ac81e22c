//! Support of the integration tests: runs scripts in a real worker.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use callgate_sandbox::wire::{WorkerFrame, encode};
use callgate_sandbox::{
    CallHandler, Captured, End, Ended, ErrorClass, Job, Launcher, LauncherOptions, Limits,
    MappedRange, Returned, ScriptCall, ScriptInput, Thrown, WorkerProgram,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

/// A launcher of the worker binary, without spares unless the test asks for them.
pub fn launcher(spares: usize) -> Launcher {
    let options = LauncherOptions {
        spares,
        ..LauncherOptions::default()
    };
    let program = WorkerProgram::Path(env!("CARGO_BIN_EXE_test-worker").into());
    Launcher::new(program, options)
}

/// The author's lines in the wrapper of the script crate.
pub fn job(script: &str) -> Job {
    Job {
        source_name: "script.ts".to_owned(),
        code: format!("(async () => {{\"use strict\";\n{script}\n}})"),
        source_map: vec![MappedRange {
            line: 2,
            column: 1,
            author: Some((1, 1)),
        }],
        functions: ["echo", "fail", "never", "big", "gate", "told", "dropped"]
            .map(str::to_owned)
            .to_vec(),
        input: ScriptInput {
            args: vec![
                "one".to_owned(),
                String::new(),
                "drei \u{e9}\u{1f600}".to_owned(),
            ],
            stdin: "first\nsecond \u{20ac}\n".to_owned(),
        },
        limits: Limits::default(),
    }
}

/// Runs the script with the functions of [`Handler`].
pub async fn run(script: &str) -> Ended {
    run_job(job(script)).await
}

/// Runs the job with the functions of [`Handler`].
pub async fn run_job(job: Job) -> Ended {
    run_with(job, Handler::default()).await
}

/// Runs the job in a new worker.
pub async fn run_with(job: Job, handler: impl CallHandler + 'static) -> Ended {
    run_by(
        &launcher(0),
        job,
        Arc::new(handler),
        CancellationToken::new(),
    )
    .await
}

/// Runs the job in a worker of this launcher.
pub async fn run_by(
    launcher: &Launcher,
    job: Job,
    handler: Arc<dyn CallHandler>,
    cancel: CancellationToken,
) -> Ended {
    match launcher.take(&job.limits).await {
        Ok(worker) => worker.run(job, handler, cancel).await,
        Err(error) => Ended::without_script(End::NotStarted {
            reason: error.to_string(),
        }),
    }
}

/// The value that a script returned as JSON.
#[track_caller]
pub fn returned(ended: &Ended) -> &str {
    match &ended.end {
        End::Returned(Returned::Undefined) => "",
        End::Returned(Returned::Json(json)) => json.get(),
        other => panic!("{other:?}"),
    }
}

/// The bytes of a frame on the socket.
pub fn encoded(frame: WorkerFrame) -> Vec<u8> {
    encode(&frame, usize::MAX).unwrap()
}

/// A program that sends these bytes to its host, like a worker, and then runs `then`.
pub fn pretender(folder: &Path, bytes: &[u8], then: &str) -> WorkerProgram {
    let (program, sent) = (folder.join("worker"), folder.join("bytes"));
    std::fs::write(&sent, bytes).unwrap();
    let script = format!("#!/bin/sh\ncat '{}' >&0\n{then}\n", sent.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    WorkerProgram::Path(program)
}

/// The run's end as text, for golden comparisons.
pub fn shown(ended: &Ended) -> String {
    let mut text = printed(&ended.output);
    for block in &ended.emitted {
        text.push_str(&format!("emitted {block}\n"));
    }
    match &ended.end {
        End::Returned(Returned::Undefined) => {}
        End::Returned(Returned::Json(json)) => text.push_str(&format!("=> {json}\n")),
        End::Returned(Returned::Shown(value)) => text.push_str(&format!("=> shown {value}\n")),
        End::Threw(e) => text.push_str(&format!(
            "threw {:?} {:?} at {}:{}\n{}\n",
            e.name, e.message, e.line, e.column, e.stack
        )),
        other => text.push_str(&format!("{other:?}\n")),
    }
    for timer in &ended.timers {
        let what = if timer.repeats { "interval" } else { "timer" };
        text.push_str(&format!("left: {what} of line {}\n", timer.line));
    }
    text
}

/// Everything that was printed, with a mark where something was cut.
pub fn printed(output: &Captured) -> String {
    if output.cut_bytes == 0 {
        format!("{}{}", output.head, output.tail)
    } else {
        format!(
            "{}[cut {} bytes, {} lines]{}",
            output.head, output.cut_bytes, output.cut_lines, output.tail
        )
    }
}

/// Functions for scripts to call.
#[derive(Default)]
pub struct Handler {
    /// Calls so far, by name.
    pub calls: Arc<Mutex<BTreeMap<String, u64>>>,
    /// Calls of `never` that were dropped.
    dropped: Arc<AtomicU64>,
    in_flight: Arc<AtomicU64>,
    gate: Arc<tokio::sync::Notify>,
}

impl CallHandler for Handler {
    fn call(&self, call: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        let ScriptCall {
            function, input, ..
        } = call;
        let mut calls = self.calls.lock().unwrap();
        *calls.entry(function.clone()).or_default() += 1;
        let raw = |text: String| RawValue::from_string(text).unwrap();
        // The number in the input.
        let number = || -> u64 {
            let digits = input.get().trim_matches(|c: char| !c.is_ascii_digit());
            digits.parse().unwrap()
        };
        match function.as_str() {
            "echo" | "mcp.searchTools" | "mcp.getToolDetails" => async move { Ok(input) }.boxed(),
            "never" => {
                let dropped = CountDrop(Arc::clone(&self.dropped));
                async move {
                    let _dropped = dropped;
                    std::future::pending().await
                }
                .boxed()
            }
            "dropped" => {
                let dropped = self.dropped.load(Ordering::SeqCst);
                async move { Ok(raw(dropped.to_string())) }.boxed()
            }
            // The time limit and the place of the call.
            "told" => {
                let timeout = call.timeout.map(|timeout| timeout.as_millis());
                let place = call.place.map(|(line, column)| [line, column]);
                let told = serde_json::json!([timeout, place]).to_string();
                async move { Ok(raw(told)) }.boxed()
            }
            "big" => {
                let text = "x".repeat(number() as usize - 2);
                async move { Ok(raw(format!("\"{text}\""))) }.boxed()
            }
            // Answers when the number of calls in the input is in flight.
            "gate" => {
                let wanted = number();
                let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
                let gate = Arc::clone(&self.gate);
                let open = now == wanted;
                async move {
                    if open {
                        for _ in 1..wanted {
                            gate.notify_one();
                            tokio::task::yield_now().await;
                        }
                        gate.notify_waiters();
                    } else {
                        gate.notified().await;
                    }
                    Ok(raw(now.to_string()))
                }
                .boxed()
            }
            _ => {
                let class = match input.get() {
                    text if text.contains("protocol") => ErrorClass::Protocol,
                    text if text.contains("timeout") => ErrorClass::Timeout,
                    text if text.contains("denied") => ErrorClass::Denied,
                    text if text.contains("extract") => ErrorClass::Extract,
                    _ => ErrorClass::Tool,
                };
                let message = format!("{function} failed");
                let fields =
                    format!(r#"{{"tool":"{function}","server":"demo","retryable":false}}"#);
                let thrown = Thrown {
                    class,
                    message,
                    fields,
                };
                async move { Err(thrown) }.boxed()
            }
        }
    }
}

/// Counts that it was dropped.
struct CountDrop(Arc<AtomicU64>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
