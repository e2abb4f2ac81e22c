//! End-to-end tests: the real binaries, real servers, real processes.

mod call_options;
mod check;
mod cli;
mod demo;
mod dry_run;
mod elicit;
mod globals;
mod grants;
mod guarded;
mod hosts;
mod http;
mod keyring;
mod library;
mod limits;
mod logins;
mod odd_servers;
mod positions;
mod questions;
mod real_servers;
mod reports;
mod secrets;
mod serve;
mod serve_asks;
mod serve_client;
mod serve_passes;
mod terminal;
