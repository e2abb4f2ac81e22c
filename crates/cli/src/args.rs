//! The command line: commands and flags.

mod groups;
mod records;
mod serve;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

use callgate::config::EnvFile;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::clients::Client;
use crate::help;
use crate::rules::RuleArgs;

pub use groups::{CheckModeArgs, DryRunArgs, LedgerArgs, LimitArgs, ListArgs, PermissionArgs};
pub use records::{LedgerCommand, QuestionsArgs, RunListArgs, RunsArgs, RunsCommand};
pub use serve::{AuthArgs, AuthCommand, HttpArgs, ServeArgs};
pub use tools::{CallArgs, ExportArgs, SearchArgs, ToolsArgs, TypesArgs};

/// Run TypeScript that can only call the MCP tools you allow
#[derive(Debug, Parser)]
#[command(name = "callgate", version, after_help = help::TOP_EXAMPLES, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub sources: Sources,

    /// Log more to stderr (-v: info, -vv: debug)
    #[arg(short, long, global = true, help_heading = help::GLOBAL, action = clap::ArgAction::Count)]
    pub verbose: u8,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The configuration of a command.
#[derive(Debug, Clone, Args)]
pub struct Sources {
    /// Configuration file; default: the nearest callgate.json or .mcp.json
    #[arg(long, global = true, value_name = "FILE", help_heading = help::GLOBAL)]
    pub config: Option<PathBuf>,

    /// Use the skill in this folder, and only the servers that its SKILL.md names;
    /// may be repeated
    #[arg(long = "skill", global = true, value_name = "DIR", help_heading = help::SERVERS)]
    pub skills: Vec<PathBuf>,

    /// Take values for ${NAME} in the configuration from this file of lines NAME=value,
    /// where the environment has none; may be repeated, and the last value counts
    #[arg(long = "env-file", global = true, value_name = "FILE")]
    pub env_files: Vec<PathBuf>,

    /// Enable the server of this name, although its "connect" is "manual"; may be repeated
    #[arg(long, global = true, value_name = "NAME", help_heading = help::SERVERS)]
    pub enable: Vec<String>,

    /// The values of `env_files`.
    #[arg(skip)]
    pub environment: EnvFile,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a script against the configured servers
    #[command(after_help = help::examples(help::RUN_EXAMPLES))]
    Run(RunArgs),

    /// Print the problems of a script, the tools it would call and the grants it needs,
    /// without running it
    #[command(after_help = help::EXIT_CODES)]
    Check(CheckArgs),

    /// Print the TypeScript declarations of the tools, or Rust types
    #[command(after_help = help::EXIT_CODES)]
    Types(TypesArgs),

    /// List the tools, grouped by server, and what the rules say about each
    #[command(after_help = help::examples(help::TOOLS_EXAMPLES))]
    Tools(ToolsArgs),

    /// Find tools by their purpose, the best matches first
    #[command(after_help = help::examples(help::SEARCH_EXAMPLES))]
    Search(SearchArgs),

    /// Call one tool and print its result as JSON
    #[command(after_help = help::examples(help::CALL_EXAMPLES))]
    Call(CallArgs),

    /// Serve scripts and search as tools of an MCP server, over stdio or HTTP
    #[command(after_help = help::SERVE_EXIT_CODES)]
    Serve(ServeArgs),

    /// Print the tools as the array that a provider's API takes
    #[command(after_help = help::examples(help::EXPORT_EXAMPLES))]
    Export(ExportArgs),

    /// Log in at HTTP servers, show logins, and log out
    #[command(after_help = help::AUTH_EXIT_CODES)]
    Auth(AuthArgs),

    /// Answer the open questions about calls of all runs on this account, one by one
    #[command(after_help = help::QUESTIONS_EXAMPLES)]
    Questions(QuestionsArgs),

    /// Check a ledger file for changed and removed lines, or print its heads, which make
    /// a cut end detectable
    #[command(after_help = help::LEDGER_EXAMPLES)]
    Ledger {
        #[command(subcommand)]
        command: LedgerCommand,
    },

    /// List recorded runs, and show one: its script, output and calls
    #[command(after_help = help::RUNS_EXAMPLES)]
    Runs(RunsArgs),

    /// Make a callgate.json from the servers of other MCP clients, or add Callgate to one
    /// of them
    #[command(after_help = help::INIT_EXAMPLES)]
    Init(InitArgs),

    /// Try everything that a run needs, and say what is missing and how to fix it
    #[command(after_help = help::DOCTOR_EXIT_CODES)]
    Doctor {
        /// Print the findings as JSON
        #[arg(long)]
        json: bool,
    },

    /// Show the configuration found here, and accept it, so that commands use it
    #[command(after_help = help::TRUST_EXIT_CODES)]
    Trust {
        /// Withdraw the acceptance
        #[arg(long)]
        forget: bool,
    },

    /// Print the JSON Schema of callgate.json, for editors
    #[command(
        after_help = "Example:\n  callgate schema > callgate.schema.json\nand in callgate.json beside it:\n  \"$schema\": \"./callgate.schema.json\""
    )]
    Schema,

    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  callgate completions bash > ~/.local/share/bash-completion/completions/callgate"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },

    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man {
        /// The folder
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The script, or - for standard input
    #[arg(required_unless_present = "eval")]
    pub file: Option<OsString>,

    /// Arguments of the script, mcp.args; write -- before those that begin with -
    #[arg(value_name = "ARGUMENT")]
    pub args: Vec<String>,

    /// Run this code instead of a file; all words are its arguments
    #[arg(short, long, value_name = "CODE")]
    pub eval: Option<String>,

    /// Print the whole report as JSON instead of text
    #[arg(long)]
    pub json: bool,

    /// Before the run, list the tools that the script names and ask which of them it
    /// may call
    #[arg(long)]
    pub grant: bool,

    #[command(flatten)]
    pub permissions: PermissionArgs,

    #[command(flatten)]
    pub dry_run: DryRunArgs,

    #[command(flatten)]
    pub ledger: LedgerArgs,

    #[command(flatten)]
    pub limits: LimitArgs,

    #[command(flatten)]
    pub check: CheckModeArgs,
}

impl RunArgs {
    /// True if standard input has the script.
    pub fn is_script_on_stdin(&self) -> bool {
        self.eval.is_none() && self.file.as_deref().is_some_and(|file| file == "-")
    }
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The script, or - for standard input
    pub file: PathBuf,

    #[command(flatten)]
    pub lists: ListArgs,

    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,

    /// Ask which of the tools that need approval to allow always, and write that to the
    /// configuration file
    #[arg(long, conflicts_with = "json")]
    pub grant: bool,

    #[command(flatten)]
    pub rules: RuleArgs,

    #[command(flatten)]
    pub check: CheckModeArgs,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// File to write [default: callgate.json in this folder]; with --client, the file that the
    /// client's entry names
    #[arg(long, value_name = "FILE", help_heading = help::GLOBAL)]
    pub config: Option<PathBuf>,

    /// Add Callgate to this client's configuration instead
    #[arg(long, value_name = "CLIENT", conflicts_with_all = ["from", "servers", "read_only", "force"])]
    pub client: Option<Client>,

    /// With --client, print the changes without writing them
    #[arg(long, requires = "client")]
    pub print: bool,

    /// Take only servers of this client; may be repeated
    #[arg(long, value_name = "CLIENT")]
    pub from: Vec<Client>,

    /// Take the server of this name, without questions; may be repeated
    #[arg(long = "server", value_name = "NAME")]
    pub servers: Vec<String>,

    /// The rule for tools whose hints say that they only read: ask or allow
    /// [default: ask]
    #[arg(long, value_name = "RULE", value_parser = ["ask", "allow"])]
    pub read_only: Option<String>,

    /// Replace an existing file, which is kept as FILE.bak
    #[arg(long)]
    pub force: bool,

    /// Ask no questions: take all servers that are in use here, and no secrets
    #[arg(long)]
    pub yes: bool,
}
