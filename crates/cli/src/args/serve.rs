//! The flags of `serve`, and of the logins of its users.

use std::net::SocketAddr;
use std::time::Duration;

use callgate::config::parse_duration;
use callgate_serve::config::{self, ToolMode, parse_share};
use clap::{Args, Subcommand};

use super::groups::{CheckModeArgs, LedgerArgs, LimitArgs, PermissionArgs};
use crate::help;

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub http: HttpArgs,

    /// The tools of clients that choose no mode: code (run_script), discovery (search
    /// and call, no scripts) or native (the servers' own tools) [default: code]
    #[arg(long, value_name = "MODE")]
    pub mode: Option<ToolMode>,

    /// Size of the model's context in tokens [default: 200000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub context_window: Option<u64>,

    /// Share of the context for the declarations in the description of run_script
    /// [default: 0.02]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub context_share: Option<f64>,

    /// Time that a question to the client's user waits for an answer [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub answer_time: Option<Duration>,

    /// Time that run_script waits for its script before it answers that the script
    /// still runs [default: 45s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub wait: Option<Duration>,

    #[command(flatten)]
    pub permissions: PermissionArgs,

    #[command(flatten)]
    pub ledger: LedgerArgs,

    #[command(flatten)]
    pub limits: LimitArgs,

    #[command(flatten)]
    pub check: CheckModeArgs,
}

#[derive(Debug, Args)]
pub struct HttpArgs {
    /// Serve over HTTP at this address, such as 127.0.0.1:8080, instead of stdio; port
    /// 0 takes a free port [default: the address in the configuration]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, value_parser = config::address,
          help_heading = help::HTTP)]
    pub http: Option<Option<SocketAddr>>,

    /// Accept requests with this host in the Host header, besides the address itself;
    /// may be repeated
    #[arg(long = "allowed-host", value_name = "HOST", requires = "http",
          value_parser = config::host, help_heading = help::HTTP)]
    pub hosts: Vec<String>,

    /// Accept requests from pages of this origin, such as https://app.example.com; may
    /// be repeated
    #[arg(long = "allowed-origin", value_name = "ORIGIN", requires = "http",
          value_parser = config::origin, help_heading = help::HTTP)]
    pub origins: Vec<String>,

    /// Accept requests with the bearer token in this environment variable
    #[arg(long, value_name = "NAME", requires = "http", help_heading = help::HTTP)]
    pub bearer_env: Option<String>,
}

#[derive(Debug, Args)]
pub struct AuthArgs {
    #[command(subcommand)]
    pub command: AuthCommand,

    /// The login of the user of `callgate serve --http` with this bearer token name
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "subject")]
    pub user: Option<String>,

    /// The login of the user of `callgate serve --http` with this subject ("sub") in
    /// access tokens
    #[arg(long, global = true, value_name = "SUB")]
    pub subject: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Log in at a server with a browser, and store its tokens
    Login {
        /// The server, by its name in the configuration
        server: String,

        /// A scope to request, besides those that were granted before; may be repeated
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,

        /// Open the login page in a browser, besides printing its URL
        #[arg(long)]
        browser: bool,

        /// Print the URL and wait, even without a terminal
        #[arg(long, conflicts_with = "browser")]
        no_browser: bool,
    },

    /// Show the logins and when they expire, but no tokens
    Status {
        /// The server, by its name in the configuration [default: all]
        server: Option<String>,

        /// Print the logins as JSON
        #[arg(long)]
        json: bool,
    },

    /// Delete a server's tokens, and revoke them if the server offers that
    Logout {
        /// The server, by its name in the configuration
        server: String,
    },
}
