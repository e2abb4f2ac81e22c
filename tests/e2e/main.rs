//! End-to-end tests: the real binaries, real servers, real processes.

mod check;
mod cli;
mod demo;
mod dry_run;
mod globals;
mod grants;
mod http;
mod library;
mod limits;
mod odd_servers;
mod positions;
mod real_servers;
mod reports;
mod secrets;
mod serve;
mod terminal;
