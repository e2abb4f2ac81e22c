//! The command line: commands, flags, and the help text.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use callgate::config::{ToolMode, parse_bytes, parse_duration, parse_memory, parse_share};
use callgate::rule::Pattern;
use callgate::{CheckMode, Detail, SearchBy, export::ExportFormat};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::clients::Client;
use crate::rules::RuleArgs;

const RUN_EXAMPLES: &str = "\
Examples:
  callgate run report.ts                         a script against ./callgate.json
  echo 'return await git_status({repo_path: \".\"})' | callgate run -
  callgate run sync.ts --allow 'fs_read*' --deny 'fs_move*' --timeout 5s
  callgate run sync.ts --yes --json | jq .calls
  callgate run sync.ts --dry-run                 only what reads; says what it would do

Exit codes:
  0 the script completed (or its dry run did what it could)
  1 it failed, or has type errors   2 usage or configuration error
  3 a call was denied   4 a limit was reached   5 a server it needs did not start
  130 interrupted";

const CHECK_EXIT_CODES: &str = "\
Exit codes, as `run` would end if the script called all it names:
  0 no problems   1 syntax or type errors, or a call of an unknown tool
  2 usage or configuration error
  3 a call is denied, or would be asked about and there is no terminal
  5 a server it needs did not start   130 interrupted";

const LIST_EXIT_CODES: &str = "\
Exit codes: 0 done, 2 usage or configuration error, or a name that no tool has,
5 no server started, or not that of a tool that is named, 130 interrupted";

const SERVE_EXIT_CODES: &str = "\
Exit codes:
  0 it was told to end, or its client over stdio went away
  2 usage or configuration error, or it could not serve
  130 a second Ctrl-C, which does not wait";

const AUTH_EXIT_CODES: &str = "\
Exit codes:
  0 done, or logged in   1 it failed, or there is no login (status)
  2 usage or configuration error, or a server that takes no login
  130 interrupted";

const INIT_EXAMPLES: &str = "\
Examples:
  callgate init                                  choose among the servers of your clients
  callgate init --yes --from cursor              without questions: all that Cursor uses
  callgate init --client claude-code             add Callgate to Claude Code

Values that may be secrets stay out of the file: references to variables stand for them.

Exit codes: 0 written, or nothing to do   1 no server was found
2 usage or configuration error, or nothing was written";

const TOP_EXAMPLES: &str = "\
Examples:
  callgate init                                  set it up in this folder
  callgate tools                                 what the configured servers offer
  callgate types git_log                         the declaration of one tool
  callgate check report.ts                       what a script would call, and what it needs
  callgate run report.ts                         run it
  callgate call time_get_current_time '{\"timezone\":\"UTC\"}'

The configuration is --config FILE, else callgate.json, else .mcp.json, in this
folder or the nearest one above.";

/// Run TypeScript whose only power is the MCP tools you allow.
#[derive(Debug, Parser)]
#[command(name = "callgate", version, after_help = TOP_EXAMPLES, propagate_version = true)]
pub struct Cli {
    /// Configuration file; default: the nearest callgate.json or .mcp.json
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Work with the skill in this folder: of the servers, only those that its
    /// SKILL.md names are in use; may be repeated
    #[arg(long = "skill", global = true, value_name = "DIR")]
    pub skills: Vec<PathBuf>,

    /// Log more to stderr (-v: info, -vv: debug)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a script against the configured servers
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),

    /// Say what is wrong with a script, what it would call and which grants it needs,
    /// without running it
    #[command(after_help = CHECK_EXIT_CODES)]
    Check(CheckArgs),

    /// Print the TypeScript declarations of the tools, or Rust types
    #[command(after_help = LIST_EXIT_CODES)]
    Types(TypesArgs),

    /// List the tools, grouped by server
    #[command(after_help = LIST_EXIT_CODES)]
    Tools {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        lists: ListArgs,
    },

    /// Find tools by what they do, the best first
    #[command(
        after_help = "Examples:\n  callgate search 'close a pull request'\n  callgate search createIsue --detail signature\n  callgate search '^git_.*(log|diff)' --by regex\n\nExit codes: 0 found, 1 nothing found, 2 usage or configuration error,\n5 no server started, 130 interrupted"
    )]
    Search(SearchArgs),

    /// Call one tool and print its result as JSON
    #[command(
        after_help = "Example:\n  callgate call fs_read_file '{\"path\": \"README.md\"}'\n  callgate call fs_write_file - < arguments.json\n\nExit codes: 0 a result, 1 the call failed, 2 usage or configuration error,\n3 denied, 5 the server did not start, 130 interrupted"
    )]
    Call(CallArgs),

    /// Serve scripts and search as tools of an MCP server, over stdio or HTTP
    #[command(after_help = SERVE_EXIT_CODES)]
    Serve(ServeArgs),

    /// Print the tools as the array that a provider's interface takes
    #[command(
        after_help = "Example:\n  callgate export --format anthropic --defer --load 'git_*' > tools.json\n\nExit codes: 0 done, 2 usage or configuration error, or a pattern that matches no tool,\n5 no server started, or not that of a pattern, 130 interrupted"
    )]
    Export(ExportArgs),

    /// Log in at HTTP servers, and see and end logins
    #[command(after_help = AUTH_EXIT_CODES)]
    Auth(AuthArgs),

    /// Make a callgate.json from the servers of other MCP clients, or add Callgate to one
    /// of them
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),

    /// Try everything that a run needs, and say what is missing and what to do
    #[command(
        after_help = "Exit codes: 0 nothing is missing, 1 something that a run needs is, 2 usage error,\n130 interrupted"
    )]
    Doctor {
        /// Print what was found as JSON
        #[arg(long)]
        json: bool,
    },

    /// Look at the configuration found here, and accept it, so that commands use it
    #[command(
        after_help = "A callgate.json or .mcp.json that was found may come from another author. It starts\nnothing until you accept it. A later change that only tightens needs no new acceptance.\n\nExit codes: 0 accepted or forgotten, 2 not accepted, no terminal to ask at, or no file"
    )]
    Trust {
        /// Forget that it was accepted
        #[arg(long)]
        forget: bool,
    },

    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  callgate completions bash > ~/.local/share/bash-completion/completions/callgate"
    )]
    Completions {
        /// The shell to write it for
        shell: Shell,
    },

    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man {
        /// The folder
        folder: PathBuf,
    },
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The script, or - for standard input
    pub file: PathBuf,

    /// Print the whole report as JSON instead of text
    #[arg(long)]
    pub json: bool,

    /// Show the tools that the script names and ask, before it runs, which of
    /// them it may call
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

/// Permissions for one run.
#[derive(Debug, Args)]
pub struct PermissionArgs {
    #[command(flatten)]
    pub rules: RuleArgs,

    /// Answer every question with yes in this run (rules that deny still win)
    #[arg(long)]
    pub yes: bool,

    /// Warn instead of failing when a deny rule, or another restriction, matches no tool
    /// (`allowUnmatched` in `permissions`)
    #[arg(long)]
    pub allow_unmatched_rules: bool,
}

/// A dry run.
#[derive(Debug, Args)]
pub struct DryRunArgs {
    /// Make only calls that read (tools of a server marked trusted that say so);
    /// answer the others with an error, and say what they would have been
    #[arg(long)]
    pub dry_run: bool,

    /// In a dry run, take tools of this pattern for ones that only read; may be
    /// repeated
    #[arg(long, value_name = "PATTERN", requires = "dry_run")]
    pub reads: Vec<Pattern>,

    /// In a dry run, answer calls that are not made with the results in this file:
    /// a JSON object from tool names to results
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    pub recorded: Option<PathBuf>,
}

/// The ledger.
#[derive(Debug, Args)]
pub struct LedgerArgs {
    /// Append a line to this file before each call and one after it; a call that
    /// cannot be written down is not made
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,

    /// Write arguments and results to the ledger's file, too, and not only their
    /// hashes
    #[arg(long)]
    pub ledger_bodies: bool,
}

/// Limits for one run, before the configuration's.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Script time: not counted while waiting for a tool or an answer [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,

    /// The isolate's memory, at least 16MiB [default: 128MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,

    /// Output, and returned value, each: what is over it is cut in the middle [default: 64MiB;
    /// of `serve`, 16KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub output: Option<u64>,
}

/// The lists of tools that a command goes by.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Ask every server for its tools, and wait for it; default: kept lists while they hold
    #[arg(long)]
    pub refresh: bool,
}

/// Flags of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The script, or - for standard input
    pub file: PathBuf,

    #[command(flatten)]
    pub lists: ListArgs,

    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,

    /// Ask which of the tools it would ask about are to be allowed for good, and
    /// write that into the configuration file
    #[arg(long, conflicts_with = "json")]
    pub grant: bool,

    #[command(flatten)]
    pub rules: RuleArgs,

    #[command(flatten)]
    pub check: CheckModeArgs,
}

/// The type check.
#[derive(Debug, Args)]
pub struct CheckModeArgs {
    /// Type check: off, warn (run on), on (type errors stop the script), or require
    /// (so does a check that could not be made) [default: on]
    #[arg(long, value_name = "MODE")]
    pub check: Option<CheckMode>,
}

/// Flags of `types`.
#[derive(Debug, Args)]
pub struct TypesArgs {
    #[command(flatten)]
    pub lists: ListArgs,

    /// Tools to declare, by generated name; all if none is named
    pub tools: Vec<String>,

    /// How much of each tool: name, summary (name and first line), signature
    /// (one line with arguments and result) or full (TypeScript declarations)
    #[arg(long, value_name = "LEVEL", default_value_t)]
    pub detail: Detail,

    /// Print Rust types of arguments and results instead, for hosts that embed
    /// Callgate
    #[arg(long, conflicts_with = "detail")]
    pub rust: bool,
}

/// Flags of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Add Callgate to this client's configuration, instead
    #[arg(long, value_name = "CLIENT", conflicts_with_all = ["from", "servers", "read_only", "force"])]
    pub client: Option<Client>,

    /// With --client, only show the difference
    #[arg(long, requires = "client")]
    pub print: bool,

    /// Take servers of this client only; may be repeated
    #[arg(long, value_name = "CLIENT")]
    pub from: Vec<Client>,

    /// Take the server of this name, without questions; may be repeated
    #[arg(long = "server", value_name = "NAME")]
    pub servers: Vec<String>,

    /// Tools that say they only read are asked about, or allowed [default: ask]
    #[arg(long, value_name = "RULE", value_parser = ["ask", "allow"])]
    pub read_only: Option<String>,

    /// Replace an existing file, which is kept as FILE.bak
    #[arg(long)]
    pub force: bool,

    /// Ask nothing: take all servers that are in use here, and no secrets
    #[arg(long)]
    pub yes: bool,
}

/// Flags of `search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    #[command(flatten)]
    pub lists: ListArgs,

    /// What the tool is to do, in words; a part of its name; or, with --by regex,
    /// a regular expression
    pub query: String,

    /// Way of searching: by words; by a regex over names, titles and descriptions; by meaning
    /// (vectors, or hybrid with words: needs models.embeddings); by a small model that picks
    /// (needs models.small) [default: the best way that is configured]
    #[arg(long, value_name = "WAY", value_parser = way)]
    pub by: Option<SearchBy>,

    /// Only tools of this server
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,

    /// The most tools to print
    #[arg(long, value_name = "N", default_value = "10", value_parser = limit)]
    pub limit: NonZeroUsize,

    /// How much of each tool: name, summary (name and first line), signature
    /// (one line with arguments and result) or full (TypeScript declarations)
    #[arg(long, value_name = "LEVEL", default_value_t = Detail::Summary)]
    pub detail: Detail,

    /// Print what was found as JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `call`.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool, by generated name ({server}_{tool})
    pub tool: String,

    /// Its arguments as a JSON object, or - for standard input
    #[arg(default_value = "{}")]
    pub arguments: String,

    #[command(flatten)]
    pub permissions: PermissionArgs,

    #[command(flatten)]
    pub dry_run: DryRunArgs,

    #[command(flatten)]
    pub ledger: LedgerArgs,
}

/// Flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub http: HttpArgs,

    /// The tools that a client sees if it does not choose: code (run_script),
    /// discovery (search and call, no scripts) or native (the servers' own tools)
    /// [default: code]
    #[arg(long, value_name = "MODE")]
    pub mode: Option<ToolMode>,

    /// The size of the model's context in tokens [default: 200000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub context_window: Option<u64>,

    /// The part of the context that declarations in run_script's description may
    /// take [default: 0.02]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub context_share: Option<f64>,

    /// How long a question to the client's user waits for its answer [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub answer_time: Option<Duration>,

    /// How long a call waits for its script before it is answered that the script
    /// goes on [default: 45s]
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

/// Serving over HTTP.
#[derive(Debug, Args)]
pub struct HttpArgs {
    /// Serve over HTTP at this address, such as 127.0.0.1:8080, instead of standard
    /// input and output; port 0 takes a free one [default: the configuration's]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, value_parser = callgate::config::address)]
    pub http: Option<Option<SocketAddr>>,

    /// Take requests whose Host header names this host, besides the address itself;
    /// may be repeated
    #[arg(long = "allowed-host", value_name = "HOST", requires = "http",
          value_parser = callgate::config::host)]
    pub hosts: Vec<String>,

    /// Take requests from pages of this origin, such as https://app.example.com; may
    /// be repeated
    #[arg(long = "allowed-origin", value_name = "ORIGIN", requires = "http",
          value_parser = callgate::config::origin)]
    pub origins: Vec<String>,

    /// Take requests with the bearer token that is in this environment variable
    #[arg(long, value_name = "NAME", requires = "http")]
    pub bearer_env: Option<String>,
}

/// Flags of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub lists: ListArgs,

    /// Patterns of the tools, by generated name; all if none is given
    #[arg(value_name = "PATTERN")]
    pub tools: Vec<Pattern>,

    /// The provider: anthropic (Messages), openai (Responses) or gemini
    #[arg(long, value_name = "FORMAT")]
    pub format: ExportFormat,

    /// Leave the tools for the provider's own search to load, where it has one
    #[arg(long)]
    pub defer: bool,

    /// With --defer, load tools of this pattern at once all the same; may be
    /// repeated
    #[arg(long, value_name = "PATTERN", requires = "defer")]
    pub load: Vec<Pattern>,
}

/// Flags of `auth`.
#[derive(Debug, Args)]
pub struct AuthArgs {
    #[command(subcommand)]
    pub command: AuthCommand,

    /// The login of the owner of the bearer token with this name at `callgate serve --http`
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "subject")]
    pub user: Option<String>,

    /// The login of the owner of access tokens with this subject ("sub") there
    #[arg(long, global = true, value_name = "SUB")]
    pub subject: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Log in at a server with a browser, and keep its tokens
    #[command(after_help = AUTH_EXIT_CODES)]
    Login {
        /// The server, by its name in the configuration
        server: String,

        /// A scope to ask for, besides those that were asked for and granted before; may be
        /// repeated
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,

        /// Open the login's page in a browser, besides printing its URL
        #[arg(long)]
        browser: bool,

        /// Print the URL and wait, also without a terminal
        #[arg(long, conflicts_with = "browser")]
        no_browser: bool,
    },

    /// Show the logins and until when they last; prints no token
    #[command(after_help = AUTH_EXIT_CODES)]
    Status {
        /// The server, by its name in the configuration; all if none is named
        server: Option<String>,
    },

    /// Delete a server's tokens, and have them taken back where that is offered
    #[command(after_help = AUTH_EXIT_CODES)]
    Logout {
        /// The server, by its name in the configuration
        server: String,
    },
}

fn limit(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "write a whole number above zero")
}

fn way(text: &str) -> Result<SearchBy, String> {
    let mut ways = SearchBy::ALL.into_iter();
    let names = SearchBy::ALL.map(|(name, _)| name).join(", ");
    let way = ways.find(|(name, _)| *name == text);
    way.map(|(_, way)| way)
        .ok_or(format!("the ways are {names}"))
}
