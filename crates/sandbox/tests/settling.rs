//! What a host does for several calls at once, when none of them can go on by itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use std::sync::{Arc, Mutex};

use callgate_sandbox::{CallHandler, ScriptCall, Thrown};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use serde_json::value::RawValue;
use support::{job, launcher, shown};
use tokio_util::sync::CancellationToken;

/// `echo` waits until the handler has settled, `gate` leaves something to be settled when
/// it is answered, and `told` says how it stands.
#[derive(Default)]
struct Settling {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    waiting: Vec<oneshot::Sender<()>>,
    left: u32,
    /// How many calls each settling had let go on.
    settled: Vec<usize>,
}

impl CallHandler for Settling {
    fn call(&self, call: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        let state = Arc::clone(&self.state);
        async move {
            match call.function.as_str() {
                "echo" => {
                    let (settled, wait) = oneshot::channel();
                    state.lock().unwrap().waiting.push(settled);
                    wait.await.unwrap();
                }
                "gate" => state.lock().unwrap().left += 1,
                _ => {
                    let state = state.lock().unwrap();
                    let told = serde_json::json!([state.left, state.settled]).to_string();
                    return Ok(RawValue::from_string(told).unwrap());
                }
            }
            Ok(call.input)
        }
        .boxed()
    }

    fn settle(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let waiting = std::mem::take(&mut state.waiting);
        if state.left > 0 || !waiting.is_empty() {
            state.left = 0;
            state.settled.push(waiting.len());
        }
        let goes_on = !waiting.is_empty();
        for settled in waiting {
            settled.send(()).unwrap();
        }
        goes_on
    }
}

async fn check(script: &str, expected: &str) {
    let settling = Arc::new(Settling::default());
    let ended = launcher(0)
        .run(job(script), settling, CancellationToken::new())
        .await;
    assert_eq!(shown(&ended), expected, "{script}");
}

#[tokio::test]
async fn calls_in_turn_are_settled_one_by_one() {
    check(
        "for (let i = 0; i < 3; i++) await echo({ i });\nreturn await told({});",
        "=> [0,[1,1,1]]\n",
    )
    .await;
}

#[tokio::test]
async fn calls_at_once_are_settled_together() {
    check(
        "await Promise.all(Array.from({ length: 50 }, (_, i) => echo({ i })));\n\
         const [, settled] = await told({});\n\
         return [settled.length < 10, settled.reduce((sum, calls) => sum + calls)];",
        "=> [true,50]\n",
    )
    .await;
}

#[tokio::test]
async fn what_an_answer_leaves_is_settled_before_the_script_is_heard_again() {
    check(
        "const told_each = [];\n\
         for (let i = 0; i < 3; i++) { await gate({}); told_each.push((await told({}))[0]); }\n\
         return [told_each, (await told({}))[1]];",
        "=> [[0,0,0],[0,0,0]]\n",
    )
    .await;
}
