//! Calls through the gate, with real servers.

mod authority;
mod calls;
mod consulting;
mod decisions;
mod dry_runs;
mod results;
mod review;
mod support;
