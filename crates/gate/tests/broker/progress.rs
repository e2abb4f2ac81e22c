//! How long a call may take whose server says that it works on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_gate::{CallError, CallOptions, NobodyToAsk, ServerSpec, Servers};
use futures::FutureExt as _;
use futures::future::{join, join_all};
use serde_json::json;

use crate::support::{Runs as _, allow_all, call, in_time, odd, one, raw, target};

/// How long a call may take without a sign of work: longer than one step does on any machine.
const IDLE: Duration = Duration::from_secs(5);
/// Longer than that.
const LONGER: Duration = Duration::from_secs(6);

/// The server whose tool `hold` reports progress with each step, in both eras.
fn reporting() -> [ServerSpec; 2] {
    ["reports", "reports --modern"].map(|mode| {
        let mut spec = odd(mode);
        spec.call_timeout = IDLE;
        spec
    })
}

/// One more step, in a run of its own: none makes more than ten thousand calls.
async fn step(broker: &Servers, server: &str) {
    let run = broker.run(allow_all(), Arc::new(NobodyToAsk));
    assert_eq!(call(&run, server, "step", json!({})).await, r#""done""#);
}

#[tokio::test]
async fn progress_keeps_a_call_going_beyond_its_idle_limit() {
    let each = reporting().map(|spec| async {
        let (broker, run, server) = one(spec).await;
        let hold = call(&run, &server, "hold", json!({}));
        let steps = async {
            let began = Instant::now();
            while began.elapsed() < LONGER {
                step(&broker, &server).await;
            }
            call(&run, &server, "release", json!({})).await
        };
        // The call is on its way before the first step.
        let (held, _released) = in_time(join(hold, steps)).await;
        in_time(broker.shut_down()).await;
        assert_eq!(held, r#""done""#, "{server}");
    });
    join_all(each).await;
}

#[tokio::test]
async fn a_server_that_reports_for_ever_has_so_much_time_in_all() {
    let each = reporting().map(|mut spec| async {
        spec.max_call_time = LONGER;
        let (broker, run, server) = one(spec).await;
        let began = Instant::now();
        let hold = run.call(
            target(&server, "hold"),
            raw(json!({})),
            CallOptions::default(),
        );
        let hold = hold.fuse();
        futures::pin_mut!(hold);
        let held = in_time(async {
            loop {
                let mut step = std::pin::pin!(step(&broker, &server).fuse());
                futures::select_biased! {
                    held = hold => break held,
                    () = step => {}
                }
            }
        })
        .await;
        assert!(began.elapsed() >= LONGER, "{:?}", began.elapsed());
        let Err(CallError::Timeout { limit, .. }) = held else {
            panic!("{held:?}");
        };
        assert_eq!(limit, LONGER);
        let lines = run.ledger();
        let outcomes: Vec<_> = lines
            .iter()
            .map(|line| format!("{:?}", line.outcome))
            .collect();
        assert_eq!(outcomes, ["TimedOut { limit_ms: 6000 }"]);
        in_time(broker.shut_down()).await;
    });
    join_all(each).await;
}
