//! The command line: commands and flags.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use callgate::config::{EnvFile, parse_bytes, parse_duration, parse_memory};
use callgate::faces::ExportFormat;
use callgate::faces::Pattern;
use callgate::faces::store::RunStatus;
use callgate::settings::{CheckMode, Detail, SearchBy};
use callgate_serve::config::{self, ToolMode, parse_share};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use jiff::Timestamp;

use crate::clients::Client;
use crate::help;
use crate::rules::RuleArgs;

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
pub struct CheckModeArgs {
    /// Type check: off; warn; on (type errors stop the script); require (a check that
    /// cannot be made stops it, too) [default: on]
    #[arg(long, value_name = "MODE")]
    pub check: Option<CheckMode>,
}

#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// Script names ({server}_{tool}) of the tools, patterns of them, or names of servers
    /// [default: all]
    #[arg(value_name = "PATTERN")]
    pub tools: Vec<String>,

    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub lists: ListArgs,
}

#[derive(Debug, Args)]
pub struct TypesArgs {
    #[command(flatten)]
    pub lists: ListArgs,

    /// Script names ({server}_{tool}) of the tools, patterns of them, or names of servers
    /// [default: all, with the declarations of the sandbox's own globals]
    #[arg(value_name = "PATTERN")]
    pub tools: Vec<String>,

    /// How much of each tool: name, summary (name and first line), signature
    /// (one line with arguments and result) or full (TypeScript declarations)
    #[arg(long, value_name = "LEVEL", default_value_t)]
    pub detail: Detail,

    /// Print Rust types of arguments and results instead, for hosts that embed
    /// Callgate
    #[arg(long, conflicts_with = "detail")]
    pub rust: bool,

    /// Write the declarations of all tools and of the sandbox into this folder, with a
    /// tsconfig.json, so that editors and `tsc` check scripts
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["tools", "detail", "rust"])]
    pub out: Option<PathBuf>,
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

#[derive(Debug, Args)]
pub struct SearchArgs {
    #[command(flatten)]
    pub lists: ListArgs,

    /// The purpose of the tool in words, or a part of its name; with --by regex, a
    /// regular expression. Several words are joined
    #[arg(required = true)]
    pub query: Vec<String>,

    /// Way of searching: by words; by a regex over names, titles and descriptions; by
    /// meaning (vectors, or hybrid with words: needs models.embeddings); by a small
    /// model that picks (needs models.small) [default: the best configured way]
    #[arg(long, value_name = "WAY", value_parser = way)]
    pub by: Option<SearchBy>,

    /// Find only tools of this server
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,

    /// Maximum number of tools
    #[arg(long, value_name = "N", default_value = "10", value_parser = limit)]
    pub limit: NonZeroUsize,

    /// How much of each tool: name, summary (name and first line), signature
    /// (one line with arguments and result) or full (TypeScript declarations)
    #[arg(long, value_name = "LEVEL", default_value_t = Detail::Summary)]
    pub detail: Detail,

    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool, by script name ({server}_{tool})
    pub tool: String,

    /// The arguments: a JSON object, - for one from standard input, or pairs: NAME=TEXT
    /// (a number, true, null and the like where the tool takes no text) and NAME:=JSON
    #[arg(value_name = "ARGUMENT")]
    pub arguments: Vec<String>,

    #[command(flatten)]
    pub permissions: PermissionArgs,

    #[command(flatten)]
    pub dry_run: DryRunArgs,

    #[command(flatten)]
    pub ledger: LedgerArgs,
}

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
pub struct QuestionsArgs {
    /// Print the open questions as JSON, without answering them; with --watch, one a line
    #[arg(long)]
    pub json: bool,

    /// Wait for new questions, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub lists: ListArgs,

    /// Patterns of the tools' script names [default: all]
    #[arg(value_name = "PATTERN")]
    pub tools: Vec<Pattern>,

    /// The provider: anthropic (Messages), openai (Responses) or gemini
    #[arg(long, value_name = "FORMAT")]
    pub format: ExportFormat,

    /// Let the provider's own search load the tools, if it has one
    #[arg(long)]
    pub defer: bool,

    /// With --defer, load tools of this pattern at once; may be repeated
    #[arg(long, value_name = "PATTERN", requires = "defer")]
    pub load: Vec<Pattern>,
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
    #[arg(long, value_name = "N", default_value = "50", value_parser = limit)]
    pub limit: NonZeroUsize,

    /// Print the runs as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// List runs, the newest first
    List(RunListArgs),

    /// Show a run: its script, configuration, times, status and report
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

fn limit(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "write a whole number above zero")
}

fn way(text: &str) -> Result<SearchBy, String> {
    let mut ways = SearchBy::ALL.into_iter();
    let names = SearchBy::ALL.map(|(name, _)| name).join(", ");
    let way = ways.find(|(name, _)| *name == text);
    way.map(|(_, way)| way)
        .ok_or(format!("the ways are: {names}"))
}
