//! How long workers and runs take: `cargo run --release -p callgate-sandbox --example measure`.
//!
//! The example is its own worker program, so the figures are those of a host that re-executes
//! itself.

#![expect(clippy::print_stdout, reason = "a program that prints figures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_sandbox::{
    CallHandler, Job, Launcher, LauncherOptions, Limits, ScriptCall, Stretch, Thrown,
    WorkerProgram, worker_main_if_requested,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 40;

struct Answer(Box<RawValue>);

impl CallHandler for Answer {
    fn call(&self, _: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        let answer = self.0.clone();
        async move { Ok(answer) }.boxed()
    }
}

fn main() {
    worker_main_if_requested();
    let tokio = tokio::runtime::Runtime::new().expect("threads can be started");
    tokio.block_on(measure());
}

async fn measure() {
    let small = RawValue::from_string("{\"a\":1}".to_owned()).expect("JSON");
    let entries: Vec<String> = (0..100_000)
        .map(|n| format!("{{\"id\":{n},\"level\":\"error\",\"message\":\"entry {n} of the log, with some text in it\",\"ok\":true}}"))
        .collect();
    let large = RawValue::from_string(format!("[{}]", entries.join(","))).expect("JSON");
    println!("large result: {} bytes", large.get().len());

    show(
        "empty run, no spare (start of a worker to end of the run)",
        runs(0, "", &small).await,
    );
    show("empty run, spare waiting", runs(1, "", &small).await);
    show(
        "one call, spare waiting",
        runs(1, "await tool({});", &small).await,
    );
    show(
        "1000 calls one after the other, spare waiting",
        runs(
            1,
            "for (let i = 0; i < 1000; i++) await tool({ i });",
            &small,
        )
        .await,
    );
    show(
        "1000 calls at once, spare waiting",
        runs(
            1,
            "await Promise.all(Array.from({ length: 1000 }, (_, i) => tool({ i })));",
            &small,
        )
        .await,
    );
    show(
        "large result to a JS value, spare waiting",
        runs(1, "await tool({});", &large).await,
    );
    show(
        "the same text to a value by JSON.parse in the isolate, on top of making the text",
        runs(1, "const t = JSON.stringify(await tool({})); const b = performance.now(); JSON.parse(t); console.log(performance.now() - b);", &large).await,
    );
    show(
        "a gigabyte of console output, spare waiting",
        runs_of(
            2,
            1,
            "const m = 'm'.repeat(1023); for (let i = 0; i < 2 ** 20; i++) console.log(m);",
            &small,
        )
        .await,
    );
}

async fn runs(spares: usize, script: &str, answer: &RawValue) -> Vec<(Duration, String)> {
    runs_of(ROUNDS, spares, script, answer).await
}

async fn runs_of(
    rounds: usize,
    spares: usize,
    script: &str,
    answer: &RawValue,
) -> Vec<(Duration, String)> {
    let mut options = LauncherOptions::default();
    options.spares = spares;
    options.heap_bytes = 512 << 20;
    let launcher = Launcher::new(WorkerProgram::CurrentExe, options);
    let mut times = Vec::new();
    for _ in 0..rounds {
        // Time for the spare to come up.
        tokio::time::sleep(Duration::from_millis(if spares > 0 { 150 } else { 0 })).await;
        let job = Job {
            source_name: "script.ts".to_owned(),
            code: format!("(async () => {{\n{script}\n}})"),
            stretches: vec![Stretch {
                line: 2,
                column: 1,
                author: Some((1, 1)),
            }],
            functions: vec!["tool".to_owned()],
            limits: Limits {
                heap_bytes: 512 << 20,
                script_time: Duration::from_secs(60),
                ..Limits::default()
            },
        };
        let began = Instant::now();
        let ended = launcher
            .run(
                job,
                Arc::new(Answer(answer.to_owned())),
                CancellationToken::new(),
            )
            .await;
        let took = began.elapsed();
        assert!(
            matches!(ended.end, callgate_sandbox::End::Returned(_)),
            "{:?}",
            ended.end
        );
        let said: String = ended.output.head.chars().take(20).collect();
        times.push((took, said));
    }
    times
}

fn show(what: &str, mut times: Vec<(Duration, String)>) {
    times.sort();
    let at = |part: usize| {
        times
            .get(times.len() * part / 100)
            .map_or(Duration::ZERO, |t| t.0)
    };
    let said = times.get(times.len() / 2).map_or("", |t| t.1.trim());
    println!("{what}: median {:?}, 95 % {:?} {said}", at(50), at(95));
}
