//! Calls through the gate, with real servers.

mod authority;
mod calls;
mod consulting;
mod decisions;
mod dry_runs;
mod questions;
mod results;
mod review;
mod support;
