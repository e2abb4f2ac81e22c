//! Scripts that exceed a limit: each gets a typed end in time and keeps its output so far.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod ends;
mod sizes;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use callgate_sandbox::{Job, Limits};
use support::job;

fn limited(script: &str, change: impl FnOnce(&mut Limits)) -> Job {
    let mut job = job(script);
    job.limits.script_time = Duration::from_millis(500);
    job.limits.wait_time = Duration::from_secs(2);
    change(&mut job.limits);
    job
}
