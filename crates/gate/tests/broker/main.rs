//! The broker against servers of our own that are odd on purpose, over real
//! processes and real sockets.

mod authority;
mod callers;
mod calls;
mod changing;
mod consulting;
mod counted;
mod crashing;
mod decisions;
mod dry_runs;
mod http;
mod leaving;
mod processes;
mod progress;
mod repeating;
mod resting;
mod results;
mod review;
mod starting;
mod support;
mod unsteady;
