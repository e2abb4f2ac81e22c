//! The flags of commands about records: questions, ledger files and runs.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use callgate::config::parse_duration;
use callgate::faces::store::RunStatus;
use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::groups::limit;

#[derive(Debug, Args)]
pub struct QuestionsArgs {
    /// Print the open questions as JSON, without answering them; with --watch, one a line
    #[arg(long)]
    pub json: bool,

    /// Wait for new questions, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Check a file and its rotated ones (FILE.N to FILE.1, FILE), line by line
    Verify {
        /// The ledger file
        file: PathBuf,

        /// A file with heads that were printed earlier
        #[arg(long, value_name = "FILE")]
        heads: Option<PathBuf>,
    },

    /// Print a line of JSON per file, to keep in a place that this machine cannot change
    Heads {
        /// The ledger file
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct RunsArgs {
    #[command(subcommand)]
    pub command: Option<RunsCommand>,

    #[command(flatten)]
    pub list: RunListArgs,
}

/// The default of `runs --limit`.
const LISTED: &str = "50";

#[derive(Debug, Args)]
pub struct RunListArgs {
    /// Only runs that started since then: as long ago as 90m or 2d, or a time such as
    /// 2026-08-01T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,

    /// Only runs with this status, such as failed, denied, running or lost
    #[arg(long, value_name = "STATUS", value_parser = run_status)]
    pub status: Option<RunStatus>,

    /// Only runs that called this tool, by its own name or its script name
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,

    /// Only runs of this user of `callgate serve --http`
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    /// Only runs with this text in their script, if scripts are kept
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,

    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value = LISTED, value_parser = limit)]
    pub limit: NonZeroUsize,

    /// Print the runs as JSON
    #[arg(long)]
    pub json: bool,
}

impl RunListArgs {
    /// True if a flag differs from its default.
    pub fn is_given(&self) -> bool {
        let texts = [&self.tool, &self.user, &self.text];
        self.json
            || self.since.is_some()
            || self.status.is_some()
            || self.limit.to_string() != LISTED
            || texts.into_iter().any(Option::is_some)
    }
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// List runs, the newest first
    List(RunListArgs),

    /// Show a run: its status, times, error, configuration and number of calls; with --json,
    /// also its report
    Show {
        /// The run's id
        run: String,

        /// Print the record as JSON
        #[arg(long)]
        json: bool,
    },

    /// Print the output and the value of a run
    Output {
        /// The run's id
        run: String,
    },

    /// Print the script of a run
    Script {
        /// The run's id
        run: String,
    },

    /// List the calls of a run
    Calls {
        /// The run's id
        run: String,

        /// Print the calls as JSON
        #[arg(long)]
        json: bool,
    },

    /// Remove runs that have ended from the record
    Rm {
        /// The runs' ids
        #[arg(
            value_name = "RUN",
            required_unless_present = "before",
            conflicts_with = "before"
        )]
        runs: Vec<String>,

        /// Remove the runs that started before then: as long ago as 12h or 7d, or a time
        #[arg(long, value_name = "TIME", value_parser = moment)]
        before: Option<Timestamp>,
    },
}

/// Reads a time: RFC 3339, or a duration before now, also in days.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    let age = match days {
        Some(days) => Ok(Duration::from_secs(24 * 60 * 60).saturating_mul(days)),
        None => parse_duration(text),
    };
    let wrong = "write a number and s, m, h or d, such as 2d, or a time such as \
                 2026-08-01T00:00:00Z";
    let time = age.ok().map(|age| Timestamp::now().checked_sub(age));
    time.and_then(Result::ok).ok_or_else(|| wrong.to_owned())
}

fn run_status(text: &str) -> Result<RunStatus, &'static str> {
    let wrong = "write running, completed, failed, denied, dryRun, limit, missingServer, cancelled \
                 or lost";
    serde_json::from_value(text.into()).map_err(|_| wrong)
}
