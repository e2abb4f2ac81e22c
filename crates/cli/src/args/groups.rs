//! Flags that several commands have.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use callgate::config::{parse_bytes, parse_duration, parse_memory};
use callgate::faces::Pattern;
use callgate::settings::CheckMode;
use clap::Args;

use crate::help;
use crate::rules::RuleArgs;

#[derive(Debug, Args)]
pub struct PermissionArgs {
    #[command(flatten)]
    pub rules: RuleArgs,

    /// Approve every call that needs approval in this run (deny rules still win)
    #[arg(long, help_heading = help::RULES)]
    pub yes: bool,

    /// Warn instead of failing when a deny rule, or another restriction, matches no tool
    /// (`allowUnmatched` in `permissions`)
    #[arg(long, help_heading = help::RULES)]
    pub allow_unmatched_rules: bool,
}

#[derive(Debug, Args)]
pub struct DryRunArgs {
    /// Make only calls that read (by the hints of servers marked trusted); answer other
    /// calls with made-up results, and list them
    #[arg(long, help_heading = help::RULES)]
    pub dry_run: bool,

    /// In a dry run, treat tools of this pattern as tools that only read; may be
    /// repeated
    #[arg(long, value_name = "PATTERN", requires = "dry_run", help_heading = help::RULES)]
    pub reads: Vec<Pattern>,

    /// In a dry run, answer calls that are not made with the results in this file,
    /// a JSON object from tool names to results
    #[arg(long, value_name = "FILE", requires = "dry_run", help_heading = help::RULES)]
    pub recorded: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LedgerArgs {
    /// Append a line to this file before and after each call; a call is not made if
    /// its line cannot be written
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT)]
    pub ledger: Option<PathBuf>,

    /// Write arguments and results to the ledger, besides their hashes
    #[arg(long, help_heading = help::OUTPUT)]
    pub ledger_bodies: bool,
}

/// Limits that override those of the configuration.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Time to compute: waiting for tools, answers and timers is not counted [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = help::LIMITS)]
    pub timeout: Option<Duration>,

    /// Memory of the script, at least 16MiB [default: 128MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, help_heading = help::LIMITS)]
    pub memory: Option<u64>,

    /// Size of the output, and of the returned value: longer ones are cut in the middle
    /// [default: 64MiB; of `serve`, 16KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = help::LIMITS)]
    pub output: Option<u64>,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Ask every server for its tools, and wait for it [default: use cached lists]
    #[arg(long, help_heading = help::SERVERS)]
    pub refresh: bool,
}

#[derive(Debug, Args)]
pub struct CheckModeArgs {
    /// Type check: off; warn; on (type errors stop the script); require (a check that
    /// cannot be made stops it, too) [default: on]
    #[arg(long, value_name = "MODE")]
    pub check: Option<CheckMode>,
}

/// Reads a limit of a list.
pub fn limit(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "write a whole number above zero")
}
