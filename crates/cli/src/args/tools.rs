//! The flags of commands about tools.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use callgate::faces::ExportFormat;
use callgate::settings::{Detail, SearchBy};
use clap::Args;

use super::groups::{DryRunArgs, LedgerArgs, ListArgs, PermissionArgs, limit};

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

    /// The detail of each tool: name, summary (name and first line), signature
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

    /// The detail of each tool: name, summary (name and first line), signature
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
pub struct ExportArgs {
    #[command(flatten)]
    pub lists: ListArgs,

    /// Script names ({server}_{tool}) of the tools, patterns of them, or names of servers
    /// [default: all]
    #[arg(value_name = "PATTERN")]
    pub tools: Vec<String>,

    /// The provider: anthropic (Messages), openai (Responses) or gemini
    #[arg(long, value_name = "FORMAT")]
    pub format: ExportFormat,

    /// Let the provider's own search load the tools, if it has one
    #[arg(long)]
    pub defer: bool,

    /// With --defer, load tools of this pattern or server at once; may be repeated
    #[arg(long, value_name = "PATTERN", requires = "defer")]
    pub load: Vec<String>,
}

fn way(text: &str) -> Result<SearchBy, String> {
    let mut ways = SearchBy::ALL.into_iter();
    let names = SearchBy::ALL.map(|(name, _)| name).join(", ");
    let way = ways.find(|(name, _)| *name == text);
    way.map(|(_, way)| way)
        .ok_or(format!("the ways are: {names}"))
}
